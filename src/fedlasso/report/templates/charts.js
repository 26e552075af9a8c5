// The charts of the chosen view: every scenario, means, paired differences, replicates and costs.

// What means go along: the splits of real data, else the epochs.
const STEP = AXES.includes("split") ? "split" : AXES.includes("epochs") ? "epochs" : "";

function shortStep(step) {
  return STEP === "split" ? axis(STEP).values[axis(STEP).words.indexOf(step)] : step === "none" ? step : `E = ${step}`;
}

function tipOf(name, metric, { mean, se, low, high, n }) {
  const interval = `\n95% of the mean: ${withUnit(low, metric.unit)} to ${withUnit(high, metric.unit)}`;
  const text = `${name}\n${metric.label} ${withUnit(mean, metric.unit)} (SE ${brief(se)})`;
  return `${text}${Number.isNaN(se) ? "" : interval}\n${n} ${n === 1 ? "replicate" : "replicates"}`;
}

function axisOf(metric, values, label) {
  return { kind: metric.scale === "log" ? "log" : "linear", domain: extent(values, metric), label };
}

function measured(rows) {
  return rows.filter((row) => !Number.isNaN(row.mean));
}

function withInterval(rows) {
  return rows.filter((row) => !Number.isNaN(row.se));
}

function methodsOf(rows) {
  return Object.keys(DATA.methods).filter((method) => rows.some((row) => row.method === method));
}

// Means of one scenario along the steps, methods side by side in the order of the legend; without
// steps, one row per method. A method without epochs is a level, too.
function meansPanel(rows, metric, scenario, { sideways, values, size, named, width, right = 16, x, ...options }) {
  const pooled = metric.scale === "log" ? undefined : DATA.pooled[scenario]?.[metric.name];
  const step = (width - right - 60) / values.length;
  const beside = Map.groupBy(rows, (row) => row[STEP]);
  const placed = rows.map((row) => {
    const [low, high] = metric.scale === "share" ? [Math.max(0, row.low), Math.min(1, row.high)] : [row.low, row.high];
    const own = beside.get(row[STEP]);
    const shift = Math.min(26 / step, 0.8 / own.length) * (own.indexOf(row) - (own.length - 1) / 2);
    const at = sideways ? values.indexOf(row.method) : values.indexOf(row[STEP]) + shift;
    const ends = sideways ? { x: row.mean, x1: low, x2: high, y: at, y1: at, y2: at } : { x: at, x1: at, x2: at, y: row.mean, y1: low, y2: high };
    return { ...row, ...ends, z: row.method };
  });
  const [still, moving] = [true, false].map((stays) => placed.filter((row) => (row.epochs === "none") === stays));
  const levels = { y: "y", stroke: colourOf, strokeWidth: 1, strokeOpacity: 0.7, strokeDasharray: "2 3", weave: true };
  const tip = pooled && `pooled Lasso: ${brief(pooled[0])} (SE ${brief(pooled[1])})`;
  const label = pooled && named && { x: pooled[0], y: pooled[0], words: sideways ? "pooled Lasso" : "pooled\nLasso" };
  const aside = sideways ? { y: undefined, frameAnchor: "top", dy: -12 } : { x: undefined, frameAnchor: "right", textAnchor: "start", dx: 6 };
  return panel({
    ...options,
    width,
    right: label && !sideways ? 56 : right,
    ...(sideways ? { x: options.y, y: { values, say: nameMethod } } : { x: { ...x, values } }),
    marks: [
      pooled ? level(sideways ? "x" : "y", pooled[0], "mark rule pooled", tip, { strokeDasharray: "5 4" }) : null,
      label ? texts([label], aside) : null,
      STEP === "epochs" && !sideways ? [mark("ruleY", "mark rule", still, levels), lines(moving, { strokeWidth: 1.2, strokeOpacity: 0.7 })] : null,
      named ? bars(withInterval(placed)) : null,
      points(placed, { size, place: null }),
    ],
  });
}

function stepsOf(rows) {
  const values = STEP ? axis(STEP).words.filter((word) => rows.some((row) => row[STEP] === word)) : [];
  const sideways = values.filter((value) => value !== "none").length < 2;
  return { sideways, values: sideways ? methodsOf(rows) : values };
}

function drawOverview(metric) {
  const { scenario: _, ...where } = chosen();
  const cells = findCells(where);
  const rows = measured(cells.map((cell) => summaryOf(cell, metric)));
  const steps = stepsOf(rows);
  const scenarios = axis("scenario").values;
  const whole = widthOf("overview-chart");
  const across = Math.max(1, Math.min(scenarios.length, Math.floor(whole / (steps.sideways ? 320 : 230))));
  const width = whole / across;
  const room = (width - 76) / steps.values.length - 6;
  const fits = steps.sideways || STEP === "split" || steps.values.every((step) => 6.6 * shortStep(step).length < room);
  const shared = metric.scale === "share" || metric.scale === "log";
  const panels = scenarios.map((scenario, i) => {
    const title = axis("scenario").words[i];
    const own = rows.filter((row) => row.scenario === scenario);
    const seen = shared ? rows.map((row) => row.mean) : [...own.map((row) => row.mean), DATA.pooled[scenario]?.[metric.name]?.[0]];
    const drawn = meansPanel(
      own.map((row) => ({ ...row, tip: `${title}\n${tipOf(row.label, metric, row)}` })),
      metric,
      scenario,
      {
        ...steps,
        title,
        width,
        height: steps.sideways ? 62 + 16 * steps.values.length : 182,
        left: steps.sideways ? undefined : 48,
        top: 30,
        bottom: 28,
        size: 0.75,
        x: { say: fits ? shortStep : undefined },
        y: axisOf(metric, seen),
      },
    );
    return { drawn, class: "small", "data-scenario": scenario };
  });
  legend("overview-chart", methodsOf(rows));
  put("overview-chart", `Mean ${within(metric.label)} in every ${KIND}`, panels, across);
  keep("overview", csvRows(cells, metric));
}

function drawMeans(rows, metric) {
  const known = measured(rows).map((row) => ({ ...row, tip: tipOf(row.label, metric, row) }));
  if (!known.length) return nothing("means-chart");
  const steps = stepsOf(known);
  const scenario = axis("scenario").values[code0("scenario")];
  const width = widthOf("means-chart");
  const short = STEP === "split" && steps.values.some((value) => 6.8 * value.length + 8 > (width - 110) / steps.values.length);
  const seen = [...known.flatMap((row) => [row.low, row.high, row.mean]), metric.scale !== "log" && DATA.pooled[scenario]?.[metric.name]?.[0]];
  const drawn = meansPanel(known, metric, scenario, {
    ...steps,
    named: true,
    width,
    height: steps.sideways ? 66 + 24 * steps.values.length : 300,
    top: steps.sideways ? 22 : 10,
    size: 1.1,
    x: { label: STEP && (STEP === "epochs" ? `${axis(STEP).label} E` : axis(STEP).label), say: short ? shortStep : undefined },
    y: axisOf(metric, seen, metric.label),
  });
  legend("means-chart", methodsOf(known));
  put("means-chart", `Mean ${within(metric.label)} by method; ${describe()}`, [{ drawn }]);
}

function drawContrast(rows, pair, metric) {
  const known = measured(rows);
  if (!known.length) return nothing("contrast-chart", "Nothing to compare: no data set has both");
  const several = new Set(known.map((row) => row.scenario)).size > 1;
  const groupOf = (row) => (several ? row.scenario : row.what || row.scenario);
  const groups = [...new Set(known.map(groupOf))];
  const whats = [...new Set(known.map((row) => row.what))];
  const rests = [...new Set(known.map((row) => row.rest))];
  const step = several ? Math.max(26, 14 * whats.length) : 26;
  const apart = several ? Math.min(13, (step - 4) / whats.length) / step : 0;
  const placed = known.map((row) => {
    const y = groups.indexOf(groupOf(row)) + apart * (whats.indexOf(row.what) - (whats.length - 1) / 2);
    const tip = `${row.scenario}\n${pair.label}\n${tipOf(row.what || row.scenario, metric, row)}`;
    return { ...row, x: row.mean, x1: row.low, x2: row.high, y, y1: y, y2: y, tip, words: row.rest };
  });
  const width = widthOf("contrast-chart");
  const narrow = width < 560;
  // With several scenarios every dot says in words which of the other choices it is.
  const inside = several && rests.length > 1;
  const aside = { x: undefined, frameAnchor: "right", textAnchor: narrow ? "end" : "start", dx: narrow ? 0 : 4, fontSize: 10 };
  const drawn = panel({
    width,
    height: 60 + step * groups.length,
    bottom: 44,
    right: inside && !narrow ? 14 + Math.max(...rests.map((rest) => widthOfWords(rest, 10))) : 16,
    x: {
      kind: metric.scale === "log" ? "symlog" : "linear",
      label: `${metric.label}: ${pair.label}`,
      domain: extent([...known.flatMap((row) => [row.low, row.high, row.mean]), 0]),
    },
    y: { values: groups, tips: SCENARIO_TIPS },
    marks: [
      level("x", 0, "zero"),
      bars(withInterval(placed)),
      points(placed, { size: several ? 0.8 : 1.1, place: null }),
      inside ? texts(placed, aside) : null,
    ],
  });
  legend("contrast-chart", pair.name === "method" ? [] : methodsOf(known));
  put("contrast-chart", `${metric.label}: ${pair.label}`, [{ drawn }]);
}

function drawSpread(rows, metric) {
  const known = rows.filter((row) => !Number.isNaN(row.x));
  if (!known.length) return nothing("spread-chart");
  const groups = Map.groupBy(known, (row) => row.group);
  const names = [...groups.keys()];
  const step = paper ? 17 : 26;
  const dots = known.map((row) => {
    const y = names.indexOf(row.group) + (((row.replicate * 7) % 11) - 5) / step;
    const tip = `${row.group}\nreplicate ${row.replicate}: ${brief(row.x)}\nchoose it to see its row and how to rerun it`;
    return { ...row, y, tip };
  });
  const medians = names.map((name, i) => {
    const middle = median(groups.get(name).map((row) => row.x));
    const ends = { x1: middle, x2: middle, y1: i - 0.39, y2: i + 0.39 };
    return { ...ends, method: groups.get(name)[0].method, tip: `${name}\nmedian ${brief(middle)}` };
  });
  const look = { x: "x", y: "y", r: 3.1, fill: colourOf, fillOpacity: 0.55, stroke: colourOf, strokeWidth: 0.7 };
  const seen = known.map((row) => row.x);
  const drawn = panel({
    width: widthOf("spread-chart"),
    height: 50 + step * names.length,
    x: axisOf(metric, seen, metric.label),
    y: { values: names },
    marks: [mark("dot", "mark dot", dots, look), bars(medians, { strokeWidth: 3 })],
  });
  legend("spread-chart", methodsOf(known));
  put("spread-chart", `${metric.label} of every replicate; ${describe()}`, [{ drawn }]);
}

// Parts of a cost are no methods, so they are greys with an outline.
const PART_GREYS = ["#5b6470", "#8d97a3", "#b9c1ca", "#e4e8ec"];

function drawLedger(rows, cost) {
  if (!rows.length) return nothing("ledger-chart");
  const groups = [...new Set(rows.map((row) => row.group))];
  const parts = [...new Set(rows.map((row) => row.part))];
  const [{ unit }] = cost.parts;
  const totals = groups.map(() => 0);
  const stacked = rows.map((row) => {
    const at = groups.indexOf(row.group);
    const x1 = totals[at];
    totals[at] += row.value;
    const colour = parts.length > 1 ? PART_GREYS[parts.indexOf(row.part)] : undefined;
    const tip = `${row.group}\n${row.part}: ${withUnit(row.value, unit)}`;
    return { method: row.method, colour, x1, x2: totals[at], y1: at - 0.33, y2: at + 0.33, tip };
  });
  const look = { x1: "x1", x2: "x2", y1: "y1", y2: "y2", fill: colourOf, stroke: "var(--soft)", strokeWidth: 0.8 };
  const drawn = panel({
    width: widthOf("ledger-chart"),
    height: 50 + (paper ? 15 : 24) * groups.length,
    x: {
      label: cost.label.replace(" (bytes)", ""),
      domain: [0, 1.04 * Math.max(...totals) || 1],
      unit,
      say: (value) => withUnit(value, unit),
    },
    y: { values: groups },
    marks: mark("rect", "mark bar", stacked, look),
  });
  const keys = parts.map((part, i) => {
    const swatch = element("i", { class: "swatch", style: `background:${PART_GREYS[i]}` });
    return element("span", {}, swatch, part);
  });
  document.getElementById("ledger-chart-legend").replaceChildren(...(parts.length > 1 ? keys : []));
  put("ledger-chart", `${cost.label}; ${describe()}`, [{ drawn }]);
}
