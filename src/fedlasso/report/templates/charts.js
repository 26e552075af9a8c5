// The charts of one chosen scenario: means, paired differences, distribution and cost.

function emphasise(metric) {
  return metric.scale === "log" ? "log" : "linear";
}

function tipOf(name, metric, { mean, se, low, high, n }) {
  const interval = Number.isNaN(se)
    ? ""
    : `\n95% of the mean: ${withUnit(low, metric.unit)} to ${withUnit(high, metric.unit)}`;
  return `${name}\n${metric.label} ${withUnit(mean, metric.unit)} (SE ${brief(se)})${interval}\n${n} ${n === 1 ? "replicate" : "replicates"}`;
}

// A dashed line at what the pooled Lasso scores, where it scores at all.
function pooledLine(scenario, metric, Y, box, marks) {
  const level = DATA.pooled[scenario]?.[metric.name];
  if (level === undefined || metric.scale === "log") return [];
  const y = Y(level[0]);
  return [
    tag(
      "g",
      { class: "pooled" },
      rule(box.left, y, box.right, y, {
        colour: "var(--ink)",
        width: 1.2,
        dash: "5 4",
        tip: `pooled Lasso: ${brief(level[0])} (SE ${brief(level[1])})`,
      }),
      nameLine("pooled Lasso", y, marks, box),
    ),
  ];
}

// A share cannot leave its axis, though its interval may.
function endsOf({ low, high }, metric) {
  return metric.scale === "share" ? [Math.max(0, low), Math.min(1, high)] : [low, high];
}

// One row per method, where there is nothing else to go along.
function drawMeansInRows(known, methods, scale, metric, scenario) {
  const height = 56 + 24 * methods.length;
  const level = metric.scale === "log" ? undefined : DATA.pooled[scenario]?.[metric.name];
  put(
    "means-chart",
    height,
    `Mean ${within(metric.label)} by method; ${describe()}`,
    panel({
      width: widthOf("means-chart"),
      height,
      top: level ? 18 : 8,
      bottom: 42,
      x: scale,
      y: { kind: "band", values: methods },
      marks: (X, Y, box) => {
        const parts = [];
        if (level)
          parts.push(
            rule(X(level[0]), box.top, X(level[0]), box.bottom, {
              colour: "var(--ink)",
              width: 1.2,
              dash: "5 4",
              tip: `pooled Lasso: ${brief(level[0])} (SE ${brief(level[1])})`,
            }),
            text(X(level[0]), box.top - 5, "pooled Lasso", {
              anchor: "middle",
              size: 11,
              colour: "var(--soft)",
            }),
          );
        for (const r of known) {
          const [low, high] = endsOf(r, metric);
          if (!Number.isNaN(r.se))
            parts.push(rule(X(low), Y(r.method), X(high), Y(r.method), { method: r.method, width: 2 }));
          parts.push(
            point(X(r.mean), Y(r.method), r.method, {
              tip: tipOf(r.label, metric, r),
              key: r.key,
              size: 1.1,
            }),
          );
        }
        return parts;
      },
    }),
  );
}

function drawMeans(rows, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.mean));
  if (!known.length) return nothing("means-chart");
  const methods = METHOD_NAMES.filter((m) => known.some((r) => r.method === m));
  const columns = known.some(
    (r) => r.epochs !== undefined && r.epochs !== "none" && r.epochs !== known[0].epochs,
  );
  const field = columns ? "epochs" : SIDE.includes("split") ? "split" : "method";
  const values =
    columns || field === "split"
      ? axis(field).words.filter((w) => known.some((r) => r[field] === w))
      : methods;
  const scenario = axis("scenario").values[code0("scenario")];
  const pooled = DATA.pooled[scenario]?.[metric.name]?.[0];
  // Ways of dealing rows out have short names, too, where long ones have no room side by side.
  const room = (widthOf("means-chart") - 70) / values.length;
  const short = field === "split" && Math.max(...values.map((v) => 6.8 * v.length + 8)) > room;
  const y = {
    kind: emphasise(metric),
    label: metric.label,
    domain: extent(
      known.flatMap((r) => [r.low, r.high, r.mean]).concat(metric.scale === "log" ? [] : (pooled ?? [])),
      metric,
    ),
  };
  const x = {
    kind: "band",
    values,
    label: field === "epochs" ? `${axis("epochs").label} E` : field === "split" ? axis("split").label : "",
    say: (v) => (short ? axis("split").values[axis("split").words.indexOf(v)] : v),
  };
  legend("means-chart", methods);
  if (field === "method") return drawMeansInRows(known, methods, y, metric, scenario);
  put(
    "means-chart",
    300,
    `Mean ${within(metric.label)} by method; ${describe()}`,
    panel({
      width: widthOf("means-chart"),
      height: 300,
      x,
      y,
      marks: (X, Y, box) => {
        // Side by side over the middle of their label, in the order of the legend.
        const beside = Object.fromEntries(
          values.map((v) => [v, methods.filter((m) => known.some((r) => r[field] === v && r.method === m))]),
        );
        const at = (r) => {
          const group = beside[r[field]];
          const apart = Math.min(26, (0.8 * X.step) / group.length);
          return X(r[field]) + (group.indexOf(r.method) - (group.length - 1) / 2) * apart;
        };
        const marks = known.map((r) => {
          const [low, high] = Number.isNaN(r.se) ? [r.mean, r.mean] : endsOf(r, metric);
          return [at(r), Y(high), Y(low)];
        });
        const lines = [];
        if (field === "epochs")
          for (const method of methods) {
            const own = known.filter((r) => r.method === method && r.epochs !== "none");
            const corners = own.map((r) => [at(r), Y(r.mean)]);
            if (own.length > 1) lines.push(line(corners, method, { width: 1, opacity: 0.6 }));
            marks.push(...along(corners));
          }
        const parts = [...pooledLine(scenario, metric, Y, box, marks), ...lines];
        for (const r of known) {
          const [low, high] = endsOf(r, metric);
          if (!Number.isNaN(r.se))
            parts.push(rule(at(r), Y(low), at(r), Y(high), { method: r.method, width: 2 }));
          parts.push(
            point(at(r), Y(r.mean), r.method, { tip: tipOf(r.label, metric, r), key: r.key, size: 1.15 }),
          );
        }
        return parts;
      },
    }),
  );
}

function drawContrast(rows, pair, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.mean));
  if (!known.length) return nothing("contrast-chart", "Nothing to compare: no data set has both");
  const several = new Set(known.map((r) => r.scenario)).size > 1;
  const groupOf = (r) => (several ? r.scenario : r.what || r.scenario);
  const groups = [...new Set(known.map(groupOf))];
  const whats = [...new Set(known.map((r) => r.what))];
  const methods = METHOD_NAMES.filter((m) => known.some((r) => r.method === m));
  // With several scenarios every dot says in words which of the other choices it is.
  const rests = [...new Set(known.map((r) => r.rest))];
  legend("contrast-chart", pair.name === "method" ? [] : methods);
  const step = several ? Math.max(26, 14 * whats.length) : 26;
  const height = 60 + step * groups.length;
  const narrow = widthOf("contrast-chart") < 560;
  const inside = several && rests.length > 1;
  put(
    "contrast-chart",
    height,
    `${metric.label}: ${pair.label}`,
    panel({
      width: widthOf("contrast-chart"),
      height,
      top: 8,
      bottom: 44,
      right: inside && !narrow ? 14 + Math.max(...rests.map((words) => widthOfWords(words, 10))) : 16,
      y: { kind: "band", values: groups, tips: SCENARIO_TIPS },
      x: {
        kind: metric.scale === "log" ? "symlog" : "linear",
        label: `${metric.label}: ${pair.label}`,
        domain: extent(known.flatMap((r) => [r.low, r.high, r.mean, 0]).filter(Number.isFinite)),
      },
      marks: (X, Y, box) => {
        const parts = [
          rule(X(0), box.top, X(0), box.bottom, { colour: "var(--ink)", width: 1.2 }).replace(
            "mark rule",
            "zero",
          ),
        ];
        for (const r of known) {
          const y =
            Y(groupOf(r)) +
            (several
              ? (whats.indexOf(r.what) - (whats.length - 1) / 2) * Math.min(13, (step - 4) / whats.length)
              : 0);
          if (!Number.isNaN(r.se))
            parts.push(rule(X(r.low), y, X(r.high), y, { method: r.method, width: 2 }));
          parts.push(
            point(X(r.mean), y, r.method, {
              tip: `${r.scenario}\n${pair.label}\n${tipOf(r.what || r.scenario, metric, r)}`,
              size: several ? 0.8 : 1.1,
            }),
          );
          if (inside && r.rest)
            parts.push(
              text(narrow ? box.right : box.right + 4, y + 3.5, r.rest, {
                size: 10,
                anchor: narrow ? "end" : "start",
                colour: "var(--soft)",
                method: r.method,
              }),
            );
        }
        return parts;
      },
    }),
  );
}

function drawSpread(rows, metric) {
  const known = rows.filter((r) => !Number.isNaN(r.value));
  if (!known.length) return nothing("spread-chart");
  const groups = [...new Set(known.map((r) => r.group))];
  const height = 50 + (paper ? 17 : 26) * groups.length;
  legend(
    "spread-chart",
    METHOD_NAMES.filter((m) => known.some((r) => r.method === m)),
  );
  put(
    "spread-chart",
    height,
    `${metric.label} of every replicate; ${describe()}`,
    panel({
      width: widthOf("spread-chart"),
      height,
      top: 6,
      bottom: 42,
      y: { kind: "band", values: groups },
      x: {
        kind: emphasise(metric),
        label: metric.label,
        domain: extent(
          known.map((r) => r.value),
          metric,
        ),
      },
      marks: (X, Y) => {
        // On paper rows are closer, and no bar touches the next.
        const half = paper ? 7 : 10;
        const parts = known.map((r) =>
          tag("circle", {
            class: "mark dot",
            cx: X(r.value),
            cy: Y(r.group) + (((r.replicate * 7) % 11) - 5),
            r: 3.1,
            fill: look(r.method).colour,
            "fill-opacity": 0.55,
            stroke: look(r.method).colour,
            "stroke-width": 0.7,
            "data-method": r.method,
            "data-key": r.key,
            "data-replicate": r.replicate,
            "data-tip": `${r.group}\nreplicate ${r.replicate}: ${brief(r.value)}\nchoose it to see its row and how to rerun it`,
          }),
        );
        for (const group of groups) {
          const own = known.filter((r) => r.group === group);
          const middle = median(own.map((r) => r.value));
          parts.push(
            rule(X(middle), Y(group) - half, X(middle), Y(group) + half, {
              method: own[0].method,
              width: 3,
              tip: `${group}\nmedian ${brief(middle)}`,
            }),
          );
        }
        return parts;
      },
    }),
  );
}

// Parts of a cost are no methods, so they are greys with an outline.
const PART_GREYS = ["#5b6470", "#8d97a3", "#b9c1ca", "#e4e8ec"];

function drawLedger(rows, cost) {
  if (!rows.length) return nothing("ledger-chart");
  const groups = [...new Set(rows.map((r) => r.group))];
  const parts = [...new Set(rows.map((r) => r.part))];
  const totals = groups.map((g) => rows.filter((r) => r.group === g).reduce((sum, r) => sum + r.value, 0));
  const unit = cost.parts[0].unit;
  const thick = paper ? 10 : 16;
  const height = 50 + 1.5 * thick * groups.length;
  const key = document.getElementById("ledger-chart-legend");
  key.replaceChildren(
    ...(parts.length > 1
      ? parts.map((part, i) => {
          const swatch = element("i", { class: "swatch", style: `background:${PART_GREYS[i]}` });
          return element("span", {}, swatch, part);
        })
      : []),
  );
  put(
    "ledger-chart",
    height,
    `${cost.label}; ${describe()}`,
    panel({
      width: widthOf("ledger-chart"),
      height,
      top: 6,
      bottom: 42,
      y: { kind: "band", values: groups },
      x: {
        label: cost.label.replace(" (bytes)", ""),
        domain: [0, 1.04 * Math.max(...totals) || 1],
        unit,
        say: (v) => withUnit(v, unit),
      },
      marks: (X, Y) =>
        groups.flatMap((group) => {
          let from = 0;
          return rows
            .filter((r) => r.group === group)
            .map((r) => {
              const start = from;
              from += r.value;
              const fill = parts.length > 1 ? PART_GREYS[parts.indexOf(r.part)] : look(r.method).colour;
              return tag("rect", {
                class: "mark bar",
                x: X(start),
                y: Y(group) - thick / 2,
                width: Math.max(0, X(from) - X(start)),
                height: thick,
                fill,
                stroke: "var(--soft)",
                "stroke-width": 0.8,
                "data-method": r.method,
                "data-tip": `${group}\n${r.part}: ${withUnit(r.value, unit)}`,
              });
            });
        }),
    }),
  );
}
