// The charts of the chosen view, each with its table and its download: every scenario, means, paired
// differences, replicates and costs.

// What means go along: the splits of real data, else the epochs.
const STEP = AXES.includes("split") ? "split" : AXES.includes("epochs") ? "epochs" : "";
const STEP_LABEL = STEP === "epochs" ? `${axis(STEP).label} E` : axis(STEP)?.label;

function shortStep(step) {
  if (STEP === "split") return axis(STEP).values[axis(STEP).words.indexOf(step)];
  return step === "none" ? step : `E = ${step}`;
}

function tipOf(name, metric, { mean, se, low, high, n }) {
  const interval = `\n95% of the mean: ${withUnit(low, metric.unit)} to ${withUnit(high, metric.unit)}`;
  const text = `${name}\n${metric.label} ${withUnit(mean, metric.unit)} (SE ${brief(se)})`;
  return `${text}${Number.isNaN(se) ? "" : interval}\n${n} ${n === 1 ? "replicate" : "replicates"}`;
}

const axisOf = (metric, values, label) => ({
  kind: metric.scale === "log" ? "log" : "linear", domain: extent(values, metric), label,
});
const measured = (rows) => rows.filter((row) => !Number.isNaN(row.mean));
const intervals = (rows) => bars(rows.filter((row) => !Number.isNaN(row.se)));

// A cell with its words, and the mean of an outcome.
function summaryOf(cell, metric) {
  const words = Object.fromEntries(SIDE.map((name) => [name, word(cell, name)]));
  const { scenario, method } = valuesAt(cell);
  const names = { key: keyOf(cell), label: groupName(cell), ...words, scenario, method };
  return { ...names, ...summarise(valuesOf(cell, metric.name)) };
}

// Mean and standard error of the pooled Lasso, where it has the outcome.
const pooledAt = (scenario, metric) => (metric.scale !== "log" && DATA.pooled[scenario]?.[metric.name]) || [];

// Along the steps; with fewer than two of them `sideways`, one row per method.
function stepsOf(rows) {
  const values = STEP ? axis(STEP).words.filter((word) => rows.some((row) => row[STEP] === word)) : [];
  const sideways = values.filter((value) => value !== "none").length < 2;
  return { sideways, values: sideways ? methodsOf(rows) : values };
}

// Means of one scenario, methods side by side in the order of the legend. A method without epochs is a
// level, too. A proportion cannot leave its axis, though its interval may.
function meansPanel(rows, metric, scenario, { sideways, values, large, scale, say, short, ...size }) {
  const [along, across] = sideways ? ["y", "x"] : ["x", "y"];
  const [level, error] = pooledAt(scenario, metric);
  const named = large && level !== undefined;
  const step = (size.width - 110) / values.length;
  const beside = Map.groupBy(rows, (row) => row[STEP]);
  const placed = rows.map((row) => {
    const ends = metric.scale === "proportion" ? [Math.max(0, row.low), Math.min(1, row.high)] : [row.low, row.high];
    const own = beside.get(row[STEP]);
    const shift = Math.min(26 / step, 0.8 / own.length) * (own.indexOf(row) - (own.length - 1) / 2);
    const at = sideways ? values.indexOf(row.method) : values.indexOf(row[STEP]) + shift;
    const place = { [along]: at, [`${along}1`]: at, [`${along}2`]: at };
    return { ...row, ...place, [across]: row.mean, [`${across}1`]: ends[0], [`${across}2`]: ends[1], z: row.method };
  });
  const still = placed.filter((row) => row.epochs === "none").map(({ x, ...row }) => row);
  const tip = `pooled Lasso: ${brief(level)} (SE ${brief(error)})`;
  const pooled = { [across]: level, tip, words: "pooled\nLasso" };
  const above = { y: undefined, frameAnchor: "top", dy: -14 };
  const beyond = { x: undefined, frameAnchor: "right", textAnchor: "start", dx: 6 };
  const other = sideways ? { values, say: nameMethod } : { values, say, short, label: large ? STEP_LABEL : "" };
  const moves = STEP === "epochs" && !sideways;
  return panel({
    ...size, [along]: other, [across]: scale,
    right: named && !sideways ? 56 : 16,
    marks: [
      level === undefined ? null : levels([pooled], "mark rule pooled", { strokeWidth: 1.2, strokeDasharray: "5 4" }),
      named ? texts([pooled], sideways ? above : beyond) : null,
      moves ? levels(still, "mark rule", { strokeOpacity: 0.7, strokeDasharray: "2 3", weave: true }) : null,
      moves ? lines(placed.filter((row) => row.epochs !== "none"), { strokeWidth: 1.2, strokeOpacity: 0.7 }) : null,
      large ? intervals(placed) : null,
      points(placed, { size: large ? 1.1 : 0.75, place: null }),
    ],
  });
}

function showOverview(_, metric) {
  const { scenario, ...where } = chosen();
  const cells = findCells(where);
  const rows = measured(cells.map((cell) => summaryOf(cell, metric)));
  const steps = stepsOf(rows);
  const scenarios = axis("scenario").values;
  const whole = widthOf("overview");
  const across = Math.max(1, Math.min(scenarios.length, Math.floor(whole / (steps.sideways ? 320 : 230))));
  const width = whole / across;
  const shared = metric.scale === "proportion" || metric.scale === "log";
  const size = steps.sideways
    ? { width, height: 62 + 16 * steps.values.length, top: 30, bottom: 30 }
    : { width, height: 182, left: 48, top: 30, bottom: 26 };
  const panels = scenarios.map((scenario, i) => {
    const title = axis("scenario").words[i];
    const own = rows.filter((row) => row.scenario === scenario);
    const seen = [...(shared ? rows : own).map((row) => row.mean), pooledAt(scenario, metric)[0]];
    const tipped = own.map((row) => ({ ...row, tip: `${title}\n${tipOf(row.label, metric, row)}` }));
    const options = { ...steps, ...size, title, scale: axisOf(metric, seen), say: shortStep, short: String };
    return { drawn: meansPanel(tipped, metric, scenario, options), class: "small", "data-scenario": scenario };
  });
  put("overview", `Mean ${within(metric.label)} in every ${KIND}`, rows, panels, across);
  kept.overview = csvRows(cells, metric);
  entitle("overview", `Mean ${within(metric.label)} in every ${KIND}${OTHERS.length ? `: ${describe(OTHERS)}` : ""}`);
}

function showMeans(cells, metric) {
  const rows = cells.map((cell) => summaryOf(cell, metric));
  const better = metric.better ? ` ${metric.better === "higher" ? "Higher" : "Lower"} is better.` : "";
  byId("metric-caption").textContent = `${metric.label}. ${metric.caption}${better}`;
  const unpaid = rows.filter((row) => row.n === 0).map((row) => row.label);
  const why = "Either the budget is too small for a first round, or the outcome does not apply.";
  byId("unpaid").textContent = unpaid.length ? `Not recorded, so not drawn: ${unpaid.join("; ")}. ${why}` : "";
  const columns = [...SIDE.map((name) => [axis(name).heading, { text: !axis(name).number, of: name }]), ...SUMMARY];
  fillTable("means-table", `${metric.label}: ${describe()}`, columns, rows, { button: true });
  kept.means = csvRows(cells, metric);
  entitle("means", `${tellMeans(rows, metric)}. ${describe()}`);
  const known = measured(rows).map((row) => ({ ...row, tip: tipOf(row.label, metric, row) }));
  if (!known.length) return nothing("means");
  const steps = stepsOf(known);
  const { scenario } = chosenValues();
  const width = widthOf("means");
  const seen = [...known.flatMap((row) => [row.low, row.high, row.mean]), pooledAt(scenario, metric)[0]];
  const size = steps.sideways ? { width, height: 76 + 24 * steps.values.length, top: 32 } : { width, height: 300 };
  const scale = axisOf(metric, seen, metric.label);
  const drawn = meansPanel(known, metric, scenario, { ...steps, ...size, large: true, scale, say: String, short: shortStep });
  put("means", `Mean ${within(metric.label)} by method; ${describe()}`, known, [{ drawn }]);
}

function showContrast(_, metric) {
  const pair = DATA.pairs.find((p) => p.value === state.pair);
  if (!pair) return;
  const { [pair.name]: compared, ...where } = chosen();
  if (state.scope === "all") delete where.scenario;
  const rest = SIDE.filter((name) => name !== pair.name);
  const found = differences(pair, where, metric.name);
  const rows = found.map(({ cell, ...numbers }) => ({
    scenario: word(cell, "scenario"),
    method: pair.name === "method" ? axis("method").values[pair.second] : value(cell, "method"),
    what: nameOf(cell, rest),
    rest: nameOf(cell, rest.filter((name) => name !== "method")),
    ...numbers,
  }));
  const columns = [[axis("scenario").label, { text: true, of: "scenario" }], ["Of", { text: true, of: "what" }], ...SUMMARY];
  fillTable("contrast-table", `${metric.label}: ${pair.label}`, columns, rows);
  kept.contrast = found.map(({ cell, ...numbers }) => {
    const { [pair.name]: compared, ...others } = valuesAt(cell);
    return { difference: pair.label, ...others, metric: metric.name, ...numbers };
  });
  entitle("contrast", `${tellContrast(rows, pair, metric)}. ${state.scope === "all" ? `All ${KIND}s` : describe()}`);
  const known = measured(rows);
  if (!known.length) return nothing("contrast", "Nothing to compare: no data set has both");
  const several = new Set(known.map((row) => row.scenario)).size > 1;
  const groupOf = (row) => (several ? row.scenario : row.what || row.scenario);
  const distinct = (of) => [...new Set(known.map(of))];
  const [groups, whats, rests] = [groupOf, (row) => row.what, (row) => row.rest].map(distinct);
  const step = several ? Math.max(26, 14 * whats.length) : 26;
  const apart = several ? Math.min(13, (step - 4) / whats.length) / step : 0;
  const placed = known.map((row) => {
    const y = groups.indexOf(groupOf(row)) + apart * (whats.indexOf(row.what) - (whats.length - 1) / 2);
    const tip = `${row.scenario}\n${pair.label}\n${tipOf(row.what || row.scenario, metric, row)}`;
    return { ...row, x: row.mean, x1: row.low, x2: row.high, y, y1: y, y2: y, tip, words: row.rest };
  });
  const width = widthOf("contrast");
  const narrow = width < 560;
  // With several scenarios every dot says in words which of the other choices it is.
  const inside = several && rests.length > 1;
  const settings = Object.fromEntries(Object.values(DATA.scenarios).map((each) => [each.title, each.words]));
  const anchor = narrow ? { textAnchor: "end" } : { textAnchor: "start", dx: 4 };
  const aside = { x: undefined, frameAnchor: "right", fontSize: 10, ...anchor };
  const label = `${metric.label}: ${pair.label}`;
  const domain = extent([...known.flatMap((row) => [row.low, row.high, row.mean]), 0]);
  const drawn = panel({
    width, height: 60 + step * groups.length,
    right: inside && !narrow ? 14 + Math.max(...rests.map((rest) => widthOfWords(rest, 10))) : 16,
    x: { kind: metric.scale === "log" ? "symlog" : "linear", label, domain },
    y: { values: groups, tips: several && groups.map((name) => settings[name]) },
    marks: [
      levels([{ x: 0, colour: "var(--ink)" }], "zero"),
      intervals(placed),
      points(placed, { size: several ? 0.8 : 1.1, place: null }),
      inside ? texts(placed, aside) : null,
    ],
  });
  put("contrast", label, pair.name === "method" ? [] : known, [{ drawn }]);
}

function showSpread(cells, metric) {
  const rows = cells.flatMap((cell) => {
    const shared = { key: keyOf(cell), group: groupName(cell), method: value(cell, "method") };
    return valuesOf(cell, metric.name).map((x, i) => ({ ...shared, replicate: replicatesOf(cell)[i], x }));
  });
  const where = chosenValues();
  kept.spread = rows.map((row) => ({ ...where, what: row.group, replicate: row.replicate, [metric.name]: row.x }));
  entitle("spread", `${metric.label} of every replicate: ${describe()}`);
  const known = rows.filter((row) => !Number.isNaN(row.x));
  if (!known.length) return nothing("spread");
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
  const look = { x: "x", y: "y", r: 3.1, fillOpacity: 0.55, strokeWidth: 0.7 };
  const marks = Array.from(Map.groupBy(dots, colourOf), ([colour, own]) =>
    mark("dot", "mark dot", own, { ...look, fill: colour, stroke: colour }),
  );
  const drawn = panel({
    width: widthOf("spread"), height: 50 + step * names.length,
    x: axisOf(metric, known.map((row) => row.x), metric.label),
    y: { values: names },
    marks: [marks, bars(medians, { strokeWidth: 3 })],
  });
  put("spread", `${metric.label} of every replicate; ${describe()}`, known, [{ drawn }]);
}

// Parts of a cost are no methods, so they are greys with an outline.
const PART_GREYS = ["#5b6470", "#8d97a3", "#b9c1ca", "#e4e8ec"];

// Seconds are medians, which one slow moment of the machine does not move; counts are means.
function showLedger(cells) {
  const cost = { label: state.cost, parts: COLUMNS.filter((c) => c.bill === state.cost) };
  if (!state.cost) return;
  const [{ unit }] = cost.parts;
  const middle = (cell, name) => (unit === "s" ? median(valuesOf(cell, name)) : summarise(valuesOf(cell, name)).mean);
  const rows = cells.flatMap((cell) =>
    cost.parts.map(({ part, name, less }) => ({
      group: groupName(cell),
      method: value(cell, "method"),
      fitted: METRICS.some((m) => summarise(valuesOf(cell, m.name)).n > 0),
      part,
      value: middle(cell, name) - (less in COLUMN ? middle(cell, less) : 0),
    })),
  );
  const known = rows.filter((row) => !Number.isNaN(row.value));
  const printed = known.map((row) => ({ Of: row.group, Part: row.part, Typical: withUnit(row.value, unit) }));
  fillTable("ledger-table", `${cost.label}: ${describe()}`, [["Of", TEXT], ["Part", TEXT], ["Typical"]], printed);
  kept.ledger = known.map((row) => ({ ...chosenValues(), what: row.group, cost: cost.label, part: row.part, value: row.value }));
  entitle("ledger", `${tellLedger(known, cost)}. ${describe()}`);
  if (!known.length) return nothing("ledger");
  const [groups, parts] = ["group", "part"].map((name) => [...new Set(known.map((row) => row[name]))]);
  const say = (value) => withUnit(value, unit);
  const totals = groups.map(() => 0);
  const stacked = known.map((row) => {
    const at = groups.indexOf(row.group);
    const x1 = totals[at];
    totals[at] += row.value;
    const colour = parts.length > 1 ? PART_GREYS[parts.indexOf(row.part)] : undefined;
    const tip = `${row.group}\n${row.part}: ${say(row.value)}`;
    return { method: row.method, colour, x1, x2: totals[at], y1: at - 0.33, y2: at + 0.33, tip };
  });
  const drawn = panel({
    width: widthOf("ledger"), height: 50 + (paper ? 15 : 24) * groups.length,
    x: { label: cost.label.replace(" (bytes)", ""), domain: [0, 1.04 * Math.max(...totals) || 1], unit, say },
    y: { values: groups },
    marks: mark("rect", "mark bar", stacked, { ...ENDS, fill: colourOf, stroke: "var(--soft)", strokeWidth: 0.8 }),
  });
  put("ledger", `${cost.label}; ${describe()}`, [], [{ drawn }]);
  const swatch = (i) => element("i", { class: "swatch", style: `background:${PART_GREYS[i]}` });
  const keys = parts.length > 1 ? parts.map((part, i) => element("span", {}, swatch(i), part)) : [];
  byId("ledger-chart-legend").append(...keys);
}
