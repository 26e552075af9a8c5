// The charts that stand first: every scenario, and selecting against predicting.

const STEP = AXES.includes("split") ? "split" : AXES.includes("epochs") ? "epochs" : "";

function stepOf(cell) {
  return STEP ? word(cell, STEP) : "none";
}

// A small panel has room for the name of a split, not for its words.
function shortStep(words) {
  return STEP === "epochs" ? `E = ${words}` : axis(STEP).values[axis(STEP).words.indexOf(words)];
}

// The level of the pooled Lasso, and the marks of methods along epochs or splits, as lines.
function alongSteps(own, methods, values, level, metric, scenario) {
  return (X, Y, box) => {
    const drawn =
      level === undefined
        ? []
        : [
            rule(box.left, Y(level), box.right, Y(level), {
              colour: "var(--ink)",
              width: 1,
              dash: "4 3",
              tip: `pooled Lasso: ${brief(level)}`,
            }),
          ];
    for (const method of methods) {
      const mine = own.filter((r) => r.method === method);
      const moving = mine.filter((r) => values.includes(r.step));
      if (moving.length > 1)
        drawn.push(
          line(
            moving.map((r) => [X(r.step), Y(r.mean)]),
            method,
          ),
        );
      for (const r of mine) {
        const tip = `${scenario}\n${tipOf(r.label, metric, r)}`;
        const still = !values.includes(r.step);
        if (still)
          drawn.push(
            rule(box.left, Y(r.mean), box.right, Y(r.mean), { method, tip, width: 1.2, dash: "2 3" }),
          );
        const x = still ? box.right - 4 : X(r.step);
        drawn.push(point(x, Y(r.mean), method, { tip, key: r.key, size: 0.75 }));
      }
    }
    return drawn;
  };
}

// The same with one row per method, which is named beside it.
function alongMethods(own, level, metric, scenario) {
  return (X, Y, box) => [
    ...(level === undefined
      ? []
      : [
          rule(X(level), box.top, X(level), box.bottom, {
            colour: "var(--ink)",
            width: 1,
            dash: "4 3",
            tip: `pooled Lasso: ${brief(level)}`,
          }),
        ]),
    ...own.map((r) =>
      point(X(r.mean), Y(r.method), r.method, {
        tip: `${scenario}\n${tipOf(r.label, metric, r)}`,
        key: r.key,
        size: 0.85,
      }),
    ),
  ];
}

// Small multiples: every scenario in a panel of its own, along the epochs, or along the ways of dealing
// rows out; with neither, one row per method.
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
  const along = STEP ? axis(STEP).words.filter((w) => w !== "none" && rows.some((r) => r.step === w)) : [];
  const values = along.length > 1 ? along : [];
  const across = Math.max(1, Math.min(scenarios.length, Math.floor(whole / (values.length ? 230 : 320))));
  const width = whole / across;
  const height = values.length ? 182 : 62 + 16 * methods.length;
  const shared = metric.scale === "share" || metric.scale === "log";
  const all = rows.map((r) => r.mean);
  const level = (s) => (metric.scale === "log" ? undefined : DATA.pooled[s]?.[metric.name]?.[0]);
  const parts = scenarios.map((scenario, i) => {
    const own = rows.filter((r) => r.scenario === scenario);
    const domain = extent(shared ? all : own.map((r) => r.mean).concat(level(scenario) ?? []), metric);
    const name = axis("scenario").words[i];
    const scale = { kind: emphasise(metric), domain };
    const common = { width, height, right: 14, top: 30, title: name };
    const fits = (width - 62) / values.length > 6.6 * Math.max(...values.map((v) => shortStep(v).length)) + 6;
    const body = values.length
      ? panel({
          ...common,
          left: 48,
          bottom: 26,
          x: { kind: "band", values, say: (v) => (fits || STEP !== "epochs" ? shortStep(v) : v) },
          y: scale,
          marks: alongSteps(own, methods, values, level(scenario), metric, name),
        })
      : panel({
          ...common,
          bottom: 30,
          x: scale,
          y: { kind: "band", values: methods },
          marks: alongMethods(own, level(scenario), metric, name),
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
    `Mean ${within(metric.label)} in every scenario`,
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
  const height = paper ? 245 : 380;
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
            ),
          );
        const named = known ? [{ x: X(pooled[x][0]), y: Y(pooled[y][0]), words: "pooled Lasso" }] : [];
        const spots = named.map((pooled) => [pooled.x, pooled.y]);
        for (const own of pointsOf.values()) {
          const start = own.find((r) => r.rule === "min") ?? own[0];
          const end = own.find((r) => r.rule === "1se");
          if (end && (end.x !== start.x || end.y !== start.y)) {
            const [x1, y1, x2, y2] = [X(start.x), Y(start.y), X(end.x), Y(end.y)];
            const turn = Math.atan2(y2 - y1, x2 - x1);
            for (let way = 0; way < Math.hypot(x2 - x1, y2 - y1); way += 10)
              spots.push([x1 + way * Math.cos(turn), y1 + way * Math.sin(turn)]);
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
              spots.push([X(r.x), Y(r.y)]);
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
          if (start.epochs || !several) {
            const [left, top] = [X(start.x), Y(start.y)];
            const word_of = several ? start.epochs : start.method;
            const near = named.find(
              (n) => n.all && Math.abs(n.x - left) < 14 && Math.abs(n.y - top) < 9,
            );
            if (near) near.all.add(word_of);
            else named.push({ x: left, y: top, all: new Set([word_of]) });
          }
        }
        for (const label of named)
          if (label.all) {
            const [first, more] = [[...label.all].slice(0, 3), label.all.size - 3];
            label.words = `${several ? "E = " : ""}${first.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
          }
        parts.push(...nameMarks(named, spots, box));
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
