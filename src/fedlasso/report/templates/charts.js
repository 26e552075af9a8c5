// The charts of what is chosen: each draws itself from the rows, and names what it holds.

function emphasise(metric) {
  return metric.scale === "log" ? "log" : "linear";
}

function tipOf(name, metric, { mean, se, low, high, n }) {
  const interval = Number.isNaN(se) ? "" : `\n95% of the mean: ${withUnit(low, metric.unit)} to ${withUnit(high, metric.unit)}`;
  return `${name}\n${metric.label} ${withUnit(mean, metric.unit)} (SE ${brief(se)})${interval}\n${n} replicates`;
}

// A dashed line at what the pooled Lasso scores, where it scores at all.
function pooledLine(scenario, metric, Y, box) {
  const level = DATA.pooled[scenario]?.[metric.name];
  if (level === undefined || metric.scale === "log") return [];
  const y = Y(level[0]);
  return [tag("g", { class: "pooled" }, rule(box.left, y, box.right, y, { colour: "var(--ink)", width: 1.2, dash: "5 4", tip: `pooled Lasso: ${brief(level[0])} (SE ${brief(level[1])})` }),
    text(box.right - 2, y - 4, "pooled Lasso", { anchor: "end", size: 11, colour: "var(--soft)" }))];
}

function drawMeans(rows, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.mean));
  if (!known.length) return nothing("means-chart");
  const methods = METHOD_NAMES.filter((m) => known.some((r) => r.method === m));
  const columns = known.some((r) => r.epochs !== undefined && r.epochs !== "none" && r.epochs !== known[0].epochs);
  const field = columns ? "epochs" : SIDE.includes("split") ? "split" : "method";
  const values = columns || field === "split" ? axis(field).words.filter((w) => known.some((r) => r[field] === w)) : methods;
  const scenario = axis("scenario").values[code0("scenario")];
  const pooled = DATA.pooled[scenario]?.[metric.name]?.[0];
  const many = field === "method" && values.length > 6;
  const bottom = many ? 92 : 40;
  const y = { kind: emphasise(metric), label: metric.label, domain: extent(known.flatMap((r) => [r.low, r.high, r.mean]).concat(metric.scale === "log" ? [] : pooled ?? []), metric) };
  const x = { kind: "band", values, label: field === "epochs" ? `${axis("epochs").label} E` : field === "split" ? axis("split").label : "", say: many ? () => "" : (v) => v };
  legend("means-chart", methods);
  put("means-chart", 300 + bottom - 40, `Mean ${metric.label} by method; ${describe()}`, panel({
    width: widthOf("means-chart"), height: 300 + bottom - 40, x, y, bottom, marks: (X, Y, box) => {
      const offset = (m) => field === "method" ? 0 : (methods.indexOf(m) - (methods.length - 1) / 2) * Math.min(26, 0.8 * X.step / methods.length);
      const at = (r) => X(r[field]) + offset(r.method);
      const parts = pooledLine(scenario, metric, Y, box);
      if (field === "epochs")
        for (const method of methods) {
          const own = known.filter((r) => r.method === method && r.epochs !== "none");
          if (own.length > 1) parts.push(line(own.map((r) => [at(r), Y(r.mean)]), method, { width: 1, opacity: 0.6 }));
        }
      for (const r of known) {
        const tip = tipOf(r.label, metric, r);
        // A share cannot leave its axis, though its interval may.
        const ends = metric.scale === "share" ? [Math.max(0, r.low), Math.min(1, r.high)] : [r.low, r.high];
        if (!Number.isNaN(r.se)) parts.push(rule(at(r), Y(ends[0]), at(r), Y(ends[1]), { method: r.method, width: 2 }));
        parts.push(point(at(r), Y(r.mean), r.method, { tip, key: r.key, size: 1.15 }));
      }
      if (many) for (const v of values) parts.push(text(X(v) + 4, box.bottom + 14, v, { anchor: "end", rotate: -40, size: 11 }));
      return parts;
    },
  }));
}

// Small multiples: every scenario in a panel of its own, epochs to the right, one line per method.
function drawOverview(metric) {
  const scenarios = axis("scenario").values;
  const where = chosen();
  delete where.scenario;
  const rows = findCells(where).map((cell) => ({ scenario: axis("scenario").values[code(cell, "scenario")], method: word(cell, "method"),
    epochs: AXES.includes("epochs") ? word(cell, "epochs") : "none", label: groupName(cell), key: keyOf(cell), ...summarise(valuesOf(cell, metric.name)) }))
    .filter((r) => !Number.isNaN(r.mean));
  const methods = METHOD_NAMES.filter((m) => rows.some((r) => r.method === m));
  legend("overview-chart", methods);
  const whole = widthOf("overview-chart");
  const across = Math.max(1, Math.min(scenarios.length, Math.floor(whole / 230)));
  const width = whole / across;
  const height = 178;
  const values = AXES.includes("epochs") ? axis("epochs").words.filter((w) => w !== "none" && rows.some((r) => r.epochs === w)) : [];
  const shared = metric.scale === "share" || metric.scale === "log";
  const all = rows.map((r) => r.mean);
  const level = (s) => metric.scale === "log" ? undefined : DATA.pooled[s]?.[metric.name]?.[0];
  const parts = scenarios.map((scenario, i) => {
    const own = rows.filter((r) => r.scenario === scenario);
    const domain = extent(shared ? all : own.map((r) => r.mean).concat(level(scenario) ?? []), metric);
    const body = panel({
      width, height, left: 48, right: 14, top: 26, bottom: 26, title: axis("scenario").words[i],
      x: { kind: "band", values: values.length ? values : methods, say: (v) => values.length ? `E = ${v}` : "" }, y: { kind: emphasise(metric), domain },
      marks: (X, Y, box) => {
        const drawn = level(scenario) === undefined ? [] : [rule(box.left, Y(level(scenario)), box.right, Y(level(scenario)), { colour: "var(--ink)", width: 1, dash: "4 3", tip: `pooled Lasso: ${brief(level(scenario))}` })];
        for (const method of methods) {
          const mine = own.filter((r) => r.method === method);
          const moving = mine.filter((r) => values.includes(r.epochs));
          if (values.length && moving.length) drawn.push(line(moving.map((r) => [X(r.epochs), Y(r.mean)]), method));
          for (const r of mine) {
            const tip = `${axis("scenario").words[i]}\n${tipOf(r.label, metric, r)}`;
            const still = values.length > 0 && !values.includes(r.epochs);
            if (still) drawn.push(rule(box.left, Y(r.mean), box.right, Y(r.mean), { method, tip, width: 1.2, dash: "2 3" }));
            drawn.push(point(still ? box.right - 4 : X(values.length ? r.epochs : method), Y(r.mean), method, { tip, key: r.key, size: 0.75 }));
          }
        }
        return drawn;
      },
    });
    return tag("g", { transform: `translate(${(i % across) * width},${Math.floor(i / across) * height})`, "data-scenario": scenario, class: "small" },
      tag("rect", { width, height, fill: "transparent" }), body);
  });
  put("overview-chart", height * Math.ceil(scenarios.length / across), `Mean ${metric.label} in every scenario`, parts.join(""));
  keepTable("overview", `${metric.label} in every scenario`, csvRows(findCells(where), metric));
}

// F1 against test error; an arrow leads from the smallest validation error to the one-SE rule.
function drawTradeoff() {
  const [x, y] = [["test_mse", "test_deviance"].find((n) => n in COLUMN), "f1"];
  document.getElementById("tradeoff").hidden = !(x && y in COLUMN);
  if (!x || !(y in COLUMN)) return;
  const [across, up] = [x, y].map((name) => METRICS.find((m) => m.name === name));
  const where = chosen();
  delete where.rule;
  const mean = (cell, name) => summarise(valuesOf(cell, name)).mean;
  const pointsOf = new Map();
  for (const cell of findCells(where)) {
    const r = { x: mean(cell, x), y: mean(cell, y), rule: AXES.includes("rule") ? axis("rule").values[code(cell, "rule")] : "min", label: groupName(cell), method: word(cell, "method"), key: keyOf(cell), words: AXES.includes("rule") ? word(cell, "rule") : "",
      epochs: AXES.includes("epochs") && word(cell, "epochs") !== "none" ? word(cell, "epochs") : "" };
    if (!Number.isNaN(r.x)) pointsOf.set(r.label, [...(pointsOf.get(r.label) ?? []), r]);
  }
  const all = [...pointsOf.values()].flat();
  if (!all.length) return nothing("tradeoff-chart");
  const scenario = axis("scenario").values[code0("scenario")];
  const pooled = DATA.pooled[scenario];
  const known = pooled?.[x] && pooled?.[y];
  legend("tradeoff-chart", METHOD_NAMES.filter((m) => all.some((r) => r.method === m)));
  const height = 380;
  put("tradeoff-chart", height, `F1 against ${across.label}; ${describe()}`, panel({
    width: widthOf("tradeoff-chart"), height,
    x: { label: `${across.label} (left is better)`, domain: extent(all.map((r) => r.x).concat(known ? pooled[x][0] : [])) },
    y: { label: "F1 (up is better)", domain: [0, 1] },
    marks: (X, Y) => {
      const parts = [];
      if (known) parts.push(tag("g", { class: "pooled" }, point(X(pooled[x][0]), Y(pooled[y][0]), "", { tip: `pooled Lasso\n${across.label} ${brief(pooled[x][0])}\nF1 ${brief(pooled[y][0])}`, size: 1.3 }),
        text(X(pooled[x][0]) + 9, Y(pooled[y][0]) + 4, "pooled Lasso", { size: 11, colour: "var(--soft)" })));
      const named = [];
      for (const own of pointsOf.values()) {
        const start = own.find((r) => r.rule === "min") ?? own[0];
        const end = own.find((r) => r.rule === "1se");
        if (end && (end.x !== start.x || end.y !== start.y)) {
          const [x1, y1, x2, y2] = [X(start.x), Y(start.y), X(end.x), Y(end.y)];
          const turn = Math.atan2(y2 - y1, x2 - x1);
          const head = [0.45, -0.45].map((a) => `${(x2 - 8 * Math.cos(turn + a)).toFixed(1)},${(y2 - 8 * Math.sin(turn + a)).toFixed(1)}`);
          parts.push(rule(x1, y1, x2, y2, { method: start.method, width: 1.2 }),
            tag("polygon", { points: `${x2.toFixed(1)},${y2.toFixed(1)} ${head.join(" ")}`, fill: look(start.method).colour, "data-method": start.method, class: "arrow" }));
        }
        for (const r of own) if (r === start || r === end) {
          if (r === end && !(end.x !== start.x || end.y !== start.y)) continue;
          parts.push(point(X(r.x), Y(r.y), r.method, { open: r === end, key: r.key, size: 1.1,
            tip: `${r.label}${r.words ? `, ${r.words}` : ""}\n${across.label} ${brief(r.x)}\nF1 ${brief(r.y)}` }));
        }
        // Which E a mark is stands beside it; marks on one spot share the words.
        if (start.epochs) {
          const near = named.find((n) => Math.abs(n.x - X(start.x)) < 40 && Math.abs(n.y - Y(start.y)) < 12);
          if (near) near.epochs.add(start.epochs);
          else named.push({ x: X(start.x), y: Y(start.y), epochs: new Set([start.epochs]) });
          if (near) near.x = Math.min(near.x, X(start.x));
        }
      }
      for (const { x: left, y: up, epochs } of named)
        parts.push(text(left - 8, up + 4, `E = ${[...epochs].join(", ")}`, { size: 10.5, anchor: "end", colour: "var(--soft)" }));
      return parts;
    },
  }));
  keepTable("tradeoff", "F1 and test error by rule", { columns: ["scenario", ...CONTROLS.filter((c) => c !== "scenario" && c !== "rule"), "rule", "what", x, "f1"],
    rows: all.map((r) => ({ ...chosenValues(), rule: r.rule, what: r.label, [x]: r.x, f1: r.y })) });
}

// The gap against uploads, both logarithmic; medians with quartiles.
function drawUploads() {
  document.getElementById("uploads").hidden = !DATA.gaps.length;
  if (!DATA.gaps.length) return;
  const scenario = axis("scenario").values[code0("scenario")];
  const arms = CONTROLS.filter((c) => c in DATA.gaps[0] && c !== "scenario");
  const rows = DATA.gaps.filter((r) => r.scenario === scenario && arms.every((a) => r[a] === axis(a).values[code0(a)]));
  if (!rows.length) return nothing("uploads-chart");
  const byLine = Map.groupBy ? Map.groupBy(rows, (r) => `${r.method}~${r.epochs}`) : groupBy(rows, (r) => `${r.method}~${r.epochs}`);
  let lines = [...byLine.values()].map((own) => own.sort((a, b) => a.uploads - b.uploads));
  if (state.epochs_shown === "best") {
    const best = new Map();
    for (const own of lines) {
      const last = own.at(-1).gap;
      if (!best.has(own[0].method) || last < best.get(own[0].method).at(-1).gap) best.set(own[0].method, own);
    }
    lines = [...best.values()];
  }
  const methods = METHOD_NAMES.filter((m) => lines.some((own) => own[0].method === m));
  legend("uploads-chart", methods);
  const height = 430;
  const name = (own) => own[0].epochs ? `${own[0].method}, E = ${own[0].epochs}` : own[0].method;
  const wide = widthOf("uploads-chart") > 560;
  put("uploads-chart", height, `Relative gap against uploads; ${axis("scenario").words[code0("scenario")]}`, panel({
    width: widthOf("uploads-chart"), height, right: wide ? 120 : 16,
    x: { kind: "log", label: "uploads per site, in vectors of p numbers", domain: [Math.min(...rows.map((r) => r.uploads)), Math.max(...rows.map((r) => r.uploads))].map((v, i) => i ? v : Math.max(v, 0.5)), say: brief },
    y: { kind: "log", label: "median relative gap", domain: extent(lines.flat().flatMap((r) => [r.low, r.high]), { scale: "log" }), say: (v) => v <= FLOOR ? "≤ 1e−16" : brief(v) },
    marks: (X, Y, box) => {
      const parts = lines.flatMap((own) => {
        const { method } = own[0];
        const band = [...own.map((r) => [X(r.uploads), Y(r.high)]), ...own.toReversed().map((r) => [X(r.uploads), Y(r.low)])];
        return [tag("polygon", { points: band.map((p) => p.map((v) => v.toFixed(1)).join()).join(" "), fill: look(method).colour, opacity: 0.13, "data-method": method, class: "band" }),
          line(own.map((r) => [X(r.uploads), Y(r.gap)]), method),
          ...own.map((r) => point(X(r.uploads), Y(r.gap), method, { size: 0.85, tip: `${name(own)}\n${brief(r.uploads)} uploads: gap ${brief(r.gap)}\nhalf of ${r.n} replicates: ${brief(r.low)} to ${brief(r.high)}` }))];
      });
      if (wide) {
        const places = spread(lines.map((own) => Y(own.at(-1).gap)), 14);
        lines.forEach((own, i) => parts.push(
          rule(X(own.at(-1).uploads) + 6, Y(own.at(-1).gap), box.right + 14, places[i], { method: own[0].method, width: 0.7 }).replace("mark rule", "leader"),
          text(box.right + 17, places[i] + 4, name(own), { size: 11.5, weight: 600, method: own[0].method })));
      }
      return parts;
    },
  }));
  keepTable("uploads", "Gap against uploads", { columns: ["scenario", ...arms, "method", "epochs", "uploads", "gap", "low", "high", "n"], rows: lines.flat() });
}

function groupBy(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return groups;
}

function drawContrast(rows, pair, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.mean));
  if (!known.length) return nothing("contrast-chart", "Nothing to compare: no data set has both");
  const several = new Set(known.map((r) => r.scenario)).size > 1;
  const groups = [...new Set(known.map((r) => several ? r.scenario : r.what))];
  const whats = [...new Set(known.map((r) => r.what))];
  const methods = METHOD_NAMES.filter((m) => known.some((r) => r.method === m));
  // With several scenarios every dot says in words which of the other choices it is.
  const rests = [...new Set(known.map((r) => r.rest))];
  legend("contrast-chart", pair.name === "method" ? [] : methods);
  const step = several ? Math.max(26, 14 * whats.length) : 26;
  const height = 60 + step * groups.length;
  const narrow = widthOf("contrast-chart") < 560;
  const inside = several && rests.length > 1;
  put("contrast-chart", height, `${metric.label}: ${pair.label}`, panel({
    width: widthOf("contrast-chart"), height, top: 8, bottom: 44, right: inside && !narrow ? 66 : 16,
    y: { kind: "band", values: groups, tips: SCENARIO_TIPS },
    x: { kind: metric.scale === "log" ? "symlog" : "linear", label: `${metric.label}: ${pair.label}`, domain: extent(known.flatMap((r) => [r.low, r.high, r.mean, 0]).filter(Number.isFinite)) },
    marks: (X, Y, box) => {
      const parts = [rule(X(0), box.top, X(0), box.bottom, { colour: "var(--ink)", width: 1.2 }).replace("mark rule", "zero")];
      for (const r of known) {
        const y = Y(several ? r.scenario : r.what) + (several ? (whats.indexOf(r.what) - (whats.length - 1) / 2) * Math.min(13, (step - 4) / whats.length) : 0);
        if (!Number.isNaN(r.se)) parts.push(rule(X(r.low), y, X(r.high), y, { method: r.method, width: 2 }));
        parts.push(point(X(r.mean), y, r.method, { tip: `${r.scenario}\n${pair.label}\n${tipOf(r.what || r.scenario, metric, r)}`, size: several ? 0.8 : 1.1 }));
        if (inside && r.rest) parts.push(text(narrow ? box.right : box.right + 4, y + 3.5, r.rest, { size: 10, anchor: narrow ? "end" : "start", colour: "var(--soft)", method: r.method }));
      }
      return parts;
    },
  }));
}

function drawSpread(rows, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.value));
  if (!known.length) return nothing("spread-chart");
  const groups = [...new Set(known.map((r) => r.group))];
  const height = 50 + 26 * groups.length;
  legend("spread-chart", METHOD_NAMES.filter((m) => known.some((r) => r.method === m)));
  put("spread-chart", height, `${metric.label} of every replicate; ${describe()}`, panel({
    width: widthOf("spread-chart"), height, top: 6, bottom: 42,
    y: { kind: "band", values: groups }, x: { kind: emphasise(metric), label: metric.label, domain: extent(known.map((r) => r.value), metric) },
    marks: (X, Y) => {
      const parts = known.map((r) => tag("circle", { class: "mark dot", cx: X(r.value), cy: Y(r.group) + ((r.replicate * 7) % 11 - 5), r: 3.1, fill: look(r.method).colour, "fill-opacity": 0.55, stroke: look(r.method).colour, "stroke-width": 0.7,
        "data-method": r.method, "data-key": r.key, "data-replicate": r.replicate, "data-tip": `${r.group}\nreplicate ${r.replicate}: ${brief(r.value)}\nchoose it to see its row and how to rerun it` }));
      for (const group of groups) {
        const own = known.filter((r) => r.group === group);
        const middle = median(own.map((r) => r.value));
        parts.push(rule(X(middle), Y(group) - 10, X(middle), Y(group) + 10, { method: own[0].method, width: 3, tip: `${group}\nmedian ${brief(middle)}` }));
      }
      return parts;
    },
  }));
}

// Parts of a cost are no methods, so they are greys with an outline.
const PART_GREYS = ["#5b6470", "#8d97a3", "#b9c1ca", "#e4e8ec"];

function drawLedger(rows, cost) {
  if (!rows.length) return nothing("ledger-chart");
  const groups = [...new Set(rows.map((r) => r.group))];
  const parts = [...new Set(rows.map((r) => r.part))];
  const totals = groups.map((g) => rows.filter((r) => r.group === g).reduce((sum, r) => sum + r.value, 0));
  const unit = cost.parts[0].unit;
  const height = 50 + 24 * groups.length;
  const key = document.getElementById("ledger-chart-legend");
  key.replaceChildren(...(parts.length > 1 ? parts.map((part, i) => {
    const swatch = element("i", { class: "swatch", style: `background:${PART_GREYS[i]}` });
    return element("span", {}, swatch, part);
  }) : []));
  put("ledger-chart", height, `${cost.label}; ${describe()}`, panel({
    width: widthOf("ledger-chart"), height, top: 6, bottom: 42,
    y: { kind: "band", values: groups }, x: { label: cost.label, domain: [0, 1.04 * Math.max(...totals) || 1], unit, say: (v) => withUnit(v, unit) },
    marks: (X, Y) => groups.flatMap((group) => {
      let from = 0;
      return rows.filter((r) => r.group === group).map((r) => {
        const start = from;
        from += r.value;
        const fill = parts.length > 1 ? PART_GREYS[parts.indexOf(r.part)] : look(r.method).colour;
        return tag("rect", { class: "mark bar", x: X(start), y: Y(group) - 8, width: Math.max(0, X(from) - X(start)), height: 16, fill, stroke: "var(--soft)", "stroke-width": 0.8, "data-method": r.method,
          "data-tip": `${group}\n${r.part}: ${withUnit(r.value, unit)}` });
      });
    }),
  }));
}

// Published means across, ours upwards; the two agree on the line.
function drawAgreement() {
  if (!DATA.agreement) return;
  const metrics = [...new Set(DATA.agreement.cells.map((c) => c.metric))];
  const whole = widthOf("agreement-chart");
  const across = whole < 620 ? 1 : metrics.length;
  const width = whole / across;
  const height = 270;
  legend("agreement-chart", METHOD_NAMES.filter((m) => DATA.agreement.cells.some((c) => c.method === m)));
  const parts = metrics.map((metric, i) => {
    const own = DATA.agreement.cells.filter((c) => c.metric === metric && c.our_mean !== null);
    const { label, scale } = METRICS.find((m) => m.name === metric);
    const ends = (c) => [c.our_mean - 1.96 * c.our_se, c.our_mean + 1.96 * c.our_se];
    const domain = extent(own.flatMap((c) => [c.mean, c.our_mean, ...(scale === "log" ? [] : ends(c))]), { scale });
    const kind = scale === "log" ? "log" : "linear";
    return tag("g", { transform: `translate(${(i % across) * width},${Math.floor(i / across) * height})` }, panel({
      width, height, top: 26, title: label, x: { kind, domain, label: "published" }, y: { kind, domain, label: "ours" },
      marks: (X, Y, box) => [rule(X(domain[0]), Y(domain[0]), X(domain[1]), Y(domain[1]), { colour: "var(--soft)", width: 1, dash: "4 3" }).replace("mark rule", "identity"),
        ...own.flatMap((c) => {
          const tip = `${c.scenario_words}: ${c.method}, E = ${c.epochs}\npublished ${brief(c.mean)} (SE ${brief(c.se)})\nours ${brief(c.our_mean)} (SE ${brief(c.our_se)})\nz = ${brief(c.z)}`;
          const [low, high] = scale === "share" ? [Math.max(0, ends(c)[0]), Math.min(1, ends(c)[1])] : ends(c);
          return [rule(X(c.mean), Y(low), X(c.mean), Y(high), { method: c.method, width: 1.4 }),
            point(X(c.mean), Y(c.our_mean), c.method, { tip, open: Math.abs(c.z) > 1.96, size: 0.9 })];
        })],
    }));
  });
  put("agreement-chart", height * Math.ceil(metrics.length / across), "Published means against ours", parts.join(""));
}
