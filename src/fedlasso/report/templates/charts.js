// Vega-Lite specifications of the four charts. Colours come from DATA.methods, and only from there.

function ink() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    ["back", "ink", "soft", "line"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function config() {
  const { ink: dark, soft, line } = ink();
  return {
    background: null, font: "system-ui, sans-serif",
    axis: { labelColor: dark, titleColor: dark, gridColor: line, domainColor: soft, tickColor: soft,
      labelFontSize: 12, titleFontSize: 12, labelLimit: 220, tickCount: 6 },
    legend: { labelColor: dark, titleColor: dark, labelFontSize: 12, orient: "top", columns: innerWidth < 700 ? 2 : 0 },
    header: { labelColor: dark, labelFontSize: 12, labelFontWeight: "bold" },
    view: { stroke: null },
  };
}

const METHOD_NAMES = Object.keys(DATA.methods);
const METHOD_COLOUR = {
  field: "method", type: "nominal", title: "Method",
  scale: { domain: METHOD_NAMES, range: METHOD_NAMES.map((m) => DATA.methods[m].colour) },
};
const METHOD_SHAPE = {
  field: "method", type: "nominal", title: "Method",
  scale: { domain: METHOD_NAMES, range: METHOD_NAMES.map((m) => DATA.methods[m].shape) },
};
// Parts of a cost are no methods, so they are greys, dark to light, with an outline.
const PART_GREYS = ["#4a525c", "#8d97a3", "#c3cad2", "#eef0f3"];
const drawn = {};

async function draw(id, spec, description, choose) {
  const element = document.getElementById(id);
  const whole = {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json", description, config: config(),
    width: "container", autosize: { type: "fit-x", contains: "padding" }, ...spec,
  };
  const result = await vegaEmbed(element, whole, { actions: false, renderer: "svg", tooltip: true });
  drawn[id]?.finalize();
  drawn[id] = result;
  if (choose) result.view.addEventListener("click", (_, item) => item?.datum?.key && choose(item.datum.key));
}

function emptyNote(rows) {
  return rows.length ? {} : { title: { text: "No finished replicate for this choice", color: ink().ink } };
}

function meansSpec(rows, metric) {
  const byEpochs = new Set(rows.map((r) => r.epochs)).size > 1;
  const many = new Set(rows.map((r) => r.method)).size > 8;
  const x = byEpochs
    ? { field: "epochs", type: "ordinal", title: `${axis("epochs").label} ${axis("epochs").heading}`, sort: axis("epochs").words, axis: { labelAngle: 0 } }
    : { field: "method", type: "nominal", title: null, sort: METHOD_NAMES, axis: { labelAngle: many ? -40 : 0 } };
  // Methods that are named along the axis need no legend.
  const named = (channel) => byEpochs ? channel : { ...channel, legend: null };
  const y = (field, title) => ({ field, type: "quantitative", title, scale: { zero: false } });
  const tooltip = [...SIDE, "mean", "se", "low", "high", "n"].map((field) => ({ field }));
  const offset = byEpochs ? { xOffset: { field: "method", type: "nominal", sort: METHOD_NAMES } } : {};
  return {
    ...emptyNote(rows), height: 280, data: { values: rows },
    encoding: { x, ...offset, color: named(METHOD_COLOUR), tooltip },
    layer: [
      { mark: { type: "rule", strokeWidth: 2 }, encoding: { y: y("low", metric.label), y2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: 110, opacity: 1, cursor: "pointer" },
        encoding: { y: y("mean", metric.label), shape: named(METHOD_SHAPE) } },
      ...(innerWidth < 700 || many || !byEpochs ? [] : [{
        mark: { type: "text", dx: 9, align: "left", fontSize: 11, fontWeight: "bold" },
        encoding: { y: y("mean", metric.label), text: { field: "method" }, color: { value: ink().ink } } }]),
    ],
  };
}

function contrastSpec(rows, pair, metric) {
  const labels = [...new Set(rows.map((r) => r.what))];
  const scenarios = [...new Set(rows.map((r) => r.scenario))];
  const several = scenarios.length > 1;
  const y = several
    ? { y: { field: "scenario", type: "nominal", sort: scenarios, title: null, axis: { grid: true } },
        yOffset: { field: "what", type: "nominal", sort: labels } }
    : { y: { field: "what", type: "nominal", sort: labels, title: null, axis: { grid: true } } };
  const colour = pair.name === "method"
    ? { value: DATA.methods[axis("method").values[pair.second]].colour } : METHOD_COLOUR;
  const x = { type: "quantitative", title: `${metric.label}: ${pair.label}` };
  const tooltip = ["scenario", "what", "mean", "se", "low", "high", "n"].map((field) => ({ field }));
  return {
    ...emptyNote(rows), data: { values: rows },
    height: several ? scenarios.length * Math.max(60, 9 * labels.length) : 26 * Math.max(1, labels.length),
    encoding: { ...y, tooltip, color: colour },
    layer: [
      { mark: { type: "rule", color: ink().ink }, encoding: { x: { datum: 0, ...x }, y: null, yOffset: null, color: null, tooltip: null } },
      { mark: { type: "rule", strokeWidth: 2 }, encoding: { x: { field: "low", ...x }, x2: { field: "high" } } },
      { mark: { type: "point", filled: true, size: several ? 35 : 90, opacity: 1 }, encoding: { x: { field: "mean", ...x } } },
    ],
  };
}

function spreadSpec(rows, metric) {
  const groups = [...new Set(rows.map((r) => r.group))];
  const x = { type: "quantitative", title: metric.label, scale: { zero: false } };
  return {
    ...emptyNote(rows), height: 26 * Math.max(1, groups.length), data: { values: rows },
    encoding: { y: { field: "group", type: "nominal", sort: groups, title: null, axis: { grid: true } }, color: METHOD_COLOUR },
    layer: [
      { mark: { type: "circle", size: 30, opacity: 0.55, cursor: "pointer" },
        encoding: { x: { field: "value", ...x }, tooltip: ["group", "replicate", "value"].map((field) => ({ field })) } },
      { mark: { type: "tick", thickness: 3, size: 20 }, encoding: { x: { field: "value", aggregate: "median", ...x } } },
    ],
  };
}

function ledgerSpec(rows, title) {
  const groups = [...new Set(rows.map((r) => r.group))];
  const parts = [...new Set([...rows].sort((a, b) => a.place - b.place).map((r) => r.part))];
  const several = parts.length > 1;
  return {
    ...emptyNote(rows), height: 24 * Math.max(1, groups.length), data: { values: rows },
    mark: { type: "bar", stroke: ink().soft, strokeWidth: 0.5 },
    encoding: {
      y: { field: "group", type: "nominal", sort: groups, title: null },
      x: { field: "value", type: "quantitative", title },
      color: several
        ? { field: "part", type: "nominal", title: null, scale: { domain: parts, range: PART_GREYS } }
        : { ...METHOD_COLOUR, legend: null },
      order: { field: "place", type: "quantitative" },
      tooltip: ["group", "part", "value"].map((field) => ({ field })),
    },
  };
}
