// The charts that stand first: every scenario, selecting against predicting, and the gap against uploads.

const STEP = AXES.includes("split") ? "split" : AXES.includes("epochs") ? "epochs" : "";

function stepOf(cell) {
  return STEP ? word(cell, STEP) : "none";
}

// A small panel has room for the name of a split, not for its words.
function shortStep(words) {
  return STEP === "epochs" ? `E = ${words}` : axis(STEP).values[axis(STEP).words.indexOf(words)];
}

// Small multiples: every scenario in a panel of its own, epochs to the right, one line per method.
function drawOverview(metric) {
  const scenarios = axis("scenario").values;
  const where = chosen();
  delete where.scenario;
  const rows = findCells(where)
    .map((cell) => ({
      scenario: axis("scenario").values[code(cell, "scenario")],
      method: word(cell, "method"),
      step: stepOf(cell),
      label: groupName(cell),
      key: keyOf(cell),
      ...summarise(valuesOf(cell, metric.name)),
    }))
    .filter((r) => !Number.isNaN(r.mean));
  const methods = METHOD_NAMES.filter((m) => rows.some((r) => r.method === m));
  legend("overview-chart", methods);
  const whole = widthOf("overview-chart");
  const across = Math.max(1, Math.min(scenarios.length, Math.floor(whole / 230)));
  const width = whole / across;
  const height = 182;
  // Panels go along the epochs, or along the ways of dealing rows out; with neither, along the methods.
  const along = STEP ? axis(STEP).words.filter((w) => w !== "none" && rows.some((r) => r.step === w)) : [];
  const values = along.length > 1 ? along : [];
  const shared = metric.scale === "share" || metric.scale === "log";
  const all = rows.map((r) => r.mean);
  const level = (s) => (metric.scale === "log" ? undefined : DATA.pooled[s]?.[metric.name]?.[0]);
  const parts = scenarios.map((scenario, i) => {
    const own = rows.filter((r) => r.scenario === scenario);
    const domain = extent(shared ? all : own.map((r) => r.mean).concat(level(scenario) ?? []), metric);
    const body = panel({
      width,
      height,
      left: 48,
      right: 14,
      top: 30,
      bottom: 26,
      title: axis("scenario").words[i],
      x: {
        kind: "band",
        values: values.length ? values : methods,
        say: (v) => (values.length ? shortStep(v) : ""),
      },
      y: { kind: emphasise(metric), domain },
      marks: (X, Y, box) => {
        const drawn =
          level(scenario) === undefined
            ? []
            : [
                rule(box.left, Y(level(scenario)), box.right, Y(level(scenario)), {
                  colour: "var(--ink)",
                  width: 1,
                  dash: "4 3",
                  tip: `pooled Lasso: ${brief(level(scenario))}`,
                }),
              ];
        for (const method of methods) {
          const mine = own.filter((r) => r.method === method);
          const moving = mine.filter((r) => values.includes(r.step));
          if (values.length && moving.length > 1)
            drawn.push(
              line(
                moving.map((r) => [X(r.step), Y(r.mean)]),
                method,
              ),
            );
          for (const r of mine) {
            const tip = `${axis("scenario").words[i]}\n${tipOf(r.label, metric, r)}`;
            const still = values.length > 0 && !values.includes(r.step);
            if (still)
              drawn.push(
                rule(box.left, Y(r.mean), box.right, Y(r.mean), { method, tip, width: 1.2, dash: "2 3" }),
              );
            drawn.push(
              point(still ? box.right - 4 : X(values.length ? r.step : method), Y(r.mean), method, {
                tip,
                key: r.key,
                size: 0.75,
              }),
            );
          }
        }
        return drawn;
      },
    });
    return tag(
      "g",
      {
        transform: `translate(${(i % across) * width},${Math.floor(i / across) * height})`,
        "data-scenario": scenario,
        class: "small",
      },
      tag("rect", { width, height, fill: "transparent" }),
      body,
    );
  });
  put(
    "overview-chart",
    height * Math.ceil(scenarios.length / across),
    `Mean ${metric.label} in every scenario`,
    parts.join(""),
  );
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
    const r = {
      x: mean(cell, x),
      y: mean(cell, y),
      rule: AXES.includes("rule") ? axis("rule").values[code(cell, "rule")] : "min",
      label: groupName(cell),
      method: word(cell, "method"),
      key: keyOf(cell),
      words: AXES.includes("rule") ? word(cell, "rule") : "",
      epochs: AXES.includes("epochs") && word(cell, "epochs") !== "none" ? word(cell, "epochs") : "",
    };
    if (!Number.isNaN(r.x)) pointsOf.set(r.label, [...(pointsOf.get(r.label) ?? []), r]);
  }
  const all = [...pointsOf.values()].flat();
  if (!all.length) return nothing("tradeoff-chart");
  const several = new Set(all.map((r) => r.epochs).filter(Boolean)).size > 1;
  const scenario = axis("scenario").values[code0("scenario")];
  const pooled = DATA.pooled[scenario];
  const known = pooled?.[x] && pooled?.[y];
  legend(
    "tradeoff-chart",
    METHOD_NAMES.filter((m) => all.some((r) => r.method === m)),
  );
  const height = 380;
  put(
    "tradeoff-chart",
    height,
    `F1 against ${across.label}; ${describe()}`,
    panel({
      width: widthOf("tradeoff-chart"),
      height,
      x: {
        label: `${across.label} (left is better)`,
        domain: extent(all.map((r) => r.x).concat(known ? pooled[x][0] : [])),
      },
      y: { label: "F1 (up is better)", domain: [0, 1] },
      marks: (X, Y, box) => {
        const parts = [];
        if (known)
          parts.push(
            tag(
              "g",
              { class: "pooled" },
              point(X(pooled[x][0]), Y(pooled[y][0]), "", {
                tip: `pooled Lasso\n${across.label} ${brief(pooled[x][0])}\nF1 ${brief(pooled[y][0])}`,
                size: 1.3,
              }),
              text(X(pooled[x][0]) + 9, Y(pooled[y][0]) + 4, "pooled Lasso", {
                size: 11,
                colour: "var(--soft)",
              }),
            ),
          );
        const named = [];
        for (const own of pointsOf.values()) {
          const start = own.find((r) => r.rule === "min") ?? own[0];
          const end = own.find((r) => r.rule === "1se");
          if (end && (end.x !== start.x || end.y !== start.y)) {
            const [x1, y1, x2, y2] = [X(start.x), Y(start.y), X(end.x), Y(end.y)];
            const turn = Math.atan2(y2 - y1, x2 - x1);
            const head = [0.45, -0.45].map(
              (a) =>
                `${(x2 - 8 * Math.cos(turn + a)).toFixed(1)},${(y2 - 8 * Math.sin(turn + a)).toFixed(1)}`,
            );
            parts.push(
              rule(x1, y1, x2, y2, { method: start.method, width: 1.2 }),
              tag("polygon", {
                points: `${x2.toFixed(1)},${y2.toFixed(1)} ${head.join(" ")}`,
                fill: look(start.method).colour,
                "data-method": start.method,
                class: "arrow",
              }),
            );
          }
          for (const r of own)
            if (r === start || r === end) {
              if (r === end && !(end.x !== start.x || end.y !== start.y)) continue;
              parts.push(
                point(X(r.x), Y(r.y), r.method, {
                  open: r === end,
                  key: r.key,
                  size: 1.1,
                  tip: `${r.label}${r.words ? `, ${r.words}` : ""}\n${across.label} ${brief(r.x)}\nF1 ${brief(r.y)}`,
                }),
              );
            }
          // Which E a mark is stands beside it, or whose it is where all have one E; marks on one spot share the words.
          if (start.epochs) {
            const own_words = several ? start.epochs : start.method;
            const near = named.find(
              (n) => Math.abs(n.x - X(start.x)) < 40 && Math.abs(n.y - Y(start.y)) < 12,
            );
            if (near) near.words.add(own_words);
            else named.push({ x: X(start.x), y: Y(start.y), words: new Set([own_words]) });
            if (near) near.x = Math.min(near.x, X(start.x));
          }
        }
        for (const { x: left, y: up, words } of named) {
          const told = `${several ? "E = " : ""}${[...words].slice(0, 3).join(", ")}${words.size > 3 ? ", …" : ""}`;
          // To the left of the mark, unless the axis is there.
          const room = left - 8 - 5.8 * told.length > box.left;
          parts.push(
            text(room ? left - 8 : left + 10, room ? up + 4 : up - 8, told, {
              size: 10.5,
              anchor: room ? "end" : "start",
              colour: "var(--soft)",
            }),
          );
        }
        return parts;
      },
    }),
  );
  keepTable("tradeoff", "F1 and test error by rule", {
    columns: [
      "scenario",
      ...CONTROLS.filter((c) => c !== "scenario" && c !== "rule"),
      "rule",
      "what",
      x,
      "f1",
    ],
    rows: all.map((r) => ({ ...chosenValues(), rule: r.rule, what: r.label, [x]: r.x, f1: r.y })),
  });
}

// The gap against uploads, both logarithmic; medians with quartiles.
function drawUploads() {
  document.getElementById("uploads").hidden = !DATA.gaps.length;
  if (!DATA.gaps.length) return;
  const scenario = axis("scenario").values[code0("scenario")];
  const arms = CONTROLS.filter((c) => c in DATA.gaps[0] && c !== "scenario");
  const rows = DATA.gaps.filter(
    (r) => r.scenario === scenario && arms.every((a) => r[a] === axis(a).values[code0(a)]),
  );
  if (!rows.length) return nothing("uploads-chart");
  const byLine = Map.groupBy
    ? Map.groupBy(rows, (r) => `${r.method}~${r.epochs}`)
    : groupBy(rows, (r) => `${r.method}~${r.epochs}`);
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
  const told = new Set(rows.map((r) => r.epochs).filter(Boolean)).size > 1;
  const name = (own) => (told && own[0].epochs ? `${own[0].method}, E = ${own[0].epochs}` : own[0].method);
  const wide = widthOf("uploads-chart") > 560;
  put(
    "uploads-chart",
    height,
    `Relative gap against uploads; ${axis("scenario").words[code0("scenario")]}`,
    panel({
      width: widthOf("uploads-chart"),
      height,
      right: wide ? 34 + 7.2 * Math.max(...lines.map((own) => name(own).length)) : 16,
      top: wide ? 18 : 10,
      x: {
        kind: "log",
        label: "uploads per site, in vectors of p numbers",
        domain: [Math.min(...rows.map((r) => r.uploads)), Math.max(...rows.map((r) => r.uploads))].map(
          (v, i) => (i ? v : Math.max(v, 0.5)),
        ),
        say: brief,
      },
      y: {
        kind: "log",
        label: "median relative gap",
        domain: extent(
          lines.flat().flatMap((r) => [r.low, r.high]),
          { scale: "log" },
        ),
        say: (v) => (v <= FLOOR ? "≤ 1e−16" : brief(v)),
      },
      marks: (X, Y, box) => {
        const parts = lines.flatMap((own) => {
          const { method } = own[0];
          const band = [
            ...own.map((r) => [X(r.uploads), Y(r.high)]),
            ...own.toReversed().map((r) => [X(r.uploads), Y(r.low)]),
          ];
          return [
            tag("polygon", {
              points: band.map((p) => p.map((v) => v.toFixed(1)).join()).join(" "),
              fill: look(method).colour,
              opacity: 0.13,
              "data-method": method,
              class: "band",
            }),
            line(
              own.map((r) => [X(r.uploads), Y(r.gap)]),
              method,
            ),
            ...own.map((r) =>
              point(X(r.uploads), Y(r.gap), method, {
                size: 0.85,
                tip: `${name(own)}\n${brief(r.uploads)} uploads: gap ${brief(r.gap)}\nhalf of ${r.n} replicates: ${brief(r.low)} to ${brief(r.high)}`,
              }),
            ),
          ];
        });
        if (wide) {
          const places = spread(
            lines.map((own) => Y(own.at(-1).gap)),
            14,
            [box.top - 8, box.bottom + 30],
          );
          lines.forEach((own, i) =>
            parts.push(
              rule(X(own.at(-1).uploads) + 6, Y(own.at(-1).gap), box.right + 14, places[i], {
                method: own[0].method,
                width: 0.6,
                dash: "2 2",
              }).replace("mark rule", "leader"),
              text(box.right + 17, places[i] + 4, name(own), {
                size: 11.5,
                weight: 600,
                method: own[0].method,
              }),
            ),
          );
        }
        return parts;
      },
    }),
  );
  keepTable("uploads", "Gap against uploads", {
    columns: ["scenario", ...arms, "method", "epochs", "uploads", "gap", "low", "high", "n"],
    rows: lines.flat(),
  });
}

function groupBy(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return groups;
}
