// Controls, tables and downloads: what is chosen is in `state`, and `show` draws all of it.

const state = {};
const PAIRS = pairs();
const COSTS = [...new Set(COLUMNS.map((c) => c.bill).filter(Boolean))]
  .map((label) => ({ label, parts: COLUMNS.filter((c) => c.bill === label) }));

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function addSelect(form, name, label, options) {
  const select = element("select", { id: name, name });
  options.forEach((text, i) => select.append(element("option", { value: i }, text)));
  document.getElementById(form).append(element("label", { for: name }, label, select));
  select.addEventListener("change", () => { state[name] = Number(select.value); show(); });
  state[name] ??= 0;
}

function addControls() {
  for (const name of CONTROLS) {
    state[name] = Math.max(0, axis(name).values.indexOf(DATA.primary[name] ?? axis(name).values[0]));
    addSelect("controls", name, axis(name).label, axis(name).titles);
  }
  addSelect("controls", "metric", "Outcome", METRICS.map((m) => m.label));
  addSelect("contrast-controls", "pair", "Difference", PAIRS.map((p) => p.label));
  addSelect("contrast-controls", "scope", "In", ["the chosen scenario", "all scenarios"]);
  addSelect("ledger-controls", "cost", "Cost", COSTS.map((c) => c.label));
  for (const name of SIDE) addSelect("rows-controls", `row-${name}`, axis(name).label, axis(name).titles);
  for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (e) => e.preventDefault());
}

// The address carries the choices, so that a view can be sent to somebody.
function readAddress() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
    if (name in state && document.getElementById(name)?.options[Number(value)]) state[name] = Number(value);
}

function chosen() {
  return Object.fromEntries(CONTROLS.map((a) => [a, state[a]]));
}

function describe() {
  return CONTROLS.map((a) => axis(a).titles[state[a]]).join(", ");
}

function groupName(cell) {
  return SIDE.map((a) => title(cell, a)).join(", ");
}

// Tables remember their exact values for the download; `columns` are [name, is text].
const tables = {};

function fillTable(id, caption, columns, rows, { button, sort, limit = Infinity } = {}) {
  const table = document.getElementById(id);
  tables[id] = { columns, rows };
  const head = element("tr");
  for (const [name, text] of columns) {
    const cell = element("th", { scope: "col", class: text ? "text" : "" });
    if (sort) {
      const mark = sort.by === name ? (sort.up ? " ▲" : " ▼") : "";
      const press = element("button", { type: "button" }, name + mark);
      press.addEventListener("click", () => sort.press(name));
      if (mark) cell.setAttribute("aria-sort", sort.up ? "ascending" : "descending");
      cell.append(press);
    } else cell.append(name);
    head.append(cell);
  }
  if (button) head.append(element("th", { scope: "col" }, "Rows"));
  const body = element("tbody");
  for (const row of rows.slice(0, limit)) {
    const line = element("tr");
    for (const [name, text] of columns) {
      const cell = element("td", { class: text ? "text" : "" });
      const colour = name === "Method" && DATA.methods[row[name]]?.colour;
      if (colour) cell.append(element("i", { class: "dot", style: `background:${colour}` }));
      cell.append(format(row[name]));
      line.append(cell);
    }
    if (button) {
      const press = element("button", { type: "button", "aria-label": `Rows of ${row.label}` }, "show");
      press.addEventListener("click", () => showRowsOf(row.key));
      line.append(element("td", {}, press));
    }
    body.append(line);
  }
  table.replaceChildren(element("caption", {}, caption), element("thead", {}, head), body);
}

function toCsv({ columns, rows }) {
  const quote = (v) => {
    if (v === undefined || v === null || Number.isNaN(v)) return "";
    return /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
  };
  const names = columns.map(([name]) => name);
  return [names, ...rows.map((row) => names.map((n) => row[n]))].map((r) => r.map(quote).join(",")).join("\n") + "\n";
}

function download(id) {
  const address = URL.createObjectURL(new Blob([toCsv(tables[id])], { type: "text/csv" }));
  element("a", { href: address, download: `${id.replace("-table", "")}.csv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function showMeans(cells, metric) {
  const rows = cells.map((cell) => ({
    key: cell.slice(0, AXES.length).join(), label: groupName(cell),
    ...Object.fromEntries(SIDE.flatMap((a) => [[a, word(cell, a)], [axis(a).heading, word(cell, a)]])),
    ...summarise(valuesOf(cell, metric.name)),
  }));
  const better = metric.better ? ` ${metric.better === "higher" ? "Higher" : "Lower"} is better.` : "";
  document.getElementById("metric-caption").textContent = `${metric.label}. ${metric.caption}${better}`;
  fillTable("means-table", `${metric.label}: ${describe()}`,
    [...SIDE.map((a) => [axis(a).heading, !axis(a).number]), ["Mean"], ["SE"], ["Low"], ["High"], ["n"]],
    rows.map((r) => ({ ...r, Mean: r.mean, SE: r.se, Low: r.low, High: r.high })),
    { button: true });
  return draw("means-chart", meansSpec(rows, metric), `Mean ${metric.label} by method and epochs; ${describe()}`, showRowsOf);
}

function showContrast(metric) {
  const pair = PAIRS[state.pair];
  if (!pair) return Promise.resolve();
  const where = chosen();
  delete where[pair.name];
  if (state.scope === 1) delete where.scenario;
  const rest = SIDE.filter((a) => a !== pair.name);
  const rows = differences(pair, where, metric.name).map(({ cell, ...numbers }) => ({
    scenario: word(cell, "scenario"), method: word(cell, "method"),
    what: rest.map((a) => title(cell, a)).join(", "), ...numbers,
  }));
  fillTable("contrast-table", `${metric.label}: ${pair.label}`,
    [["Scenario", true], ["Of", true], ["Mean"], ["SE"], ["Low"], ["High"], ["n"]],
    rows.map((r) => ({ Scenario: r.scenario, Of: r.what, Mean: r.mean, SE: r.se, Low: r.low, High: r.high, n: r.n })));
  return draw("contrast-chart", contrastSpec(rows, pair, metric), `Paired differences of ${metric.label}: ${pair.label}`);
}

function showSpread(cells, metric) {
  const rows = cells.flatMap((cell) => valuesOf(cell, metric.name).map((value, i) => ({
    key: cell.slice(0, AXES.length).join(), group: groupName(cell), method: word(cell, "method"),
    replicate: replicatesOf(cell)[i], value,
  })));
  return draw("spread-chart", spreadSpec(rows, metric), `${metric.label} of every replicate; ${describe()}`, showRowsOf);
}

function showLedger(cells) {
  const cost = COSTS[state.cost];
  if (!cost) return Promise.resolve();
  const mean = (cell, name) => summarise(valuesOf(cell, name)).mean;
  const rows = cells.flatMap((cell) => cost.parts.map(({ name, part, less }, place) => ({
    group: groupName(cell), method: word(cell, "method"), part, place,
    value: mean(cell, name) - (less && less in COLUMN ? mean(cell, less) : 0),
  }))).filter((row) => !Number.isNaN(row.value));
  fillTable("ledger-table", `${cost.label}: ${describe()}`, [["Of", true], ["Part", true], ["Mean"]],
    rows.map((r) => ({ Of: r.group, Part: r.part, Mean: r.value })));
  return draw("ledger-chart", ledgerSpec(rows, cost.label), `${cost.label}; ${describe()}`);
}

function showRows() {
  const side = Object.fromEntries(SIDE.map((a) => [a, state[`row-${a}`]]));
  const [cell] = findCells({ ...chosen(), ...side });
  const columns = [["replicate"], ...COLUMNS.map((c) => [c.name])];
  const values = cell && COLUMNS.map((c) => valuesOf(cell, c.name));
  const rows = cell ? replicatesOf(cell).map((replicate, i) =>
    ({ replicate, ...Object.fromEntries(COLUMNS.map((c, j) => [c.name, values[j][i]])) })) : [];
  fillTable("rows-table", cell ? `${groupName(cell)}; ${describe()}` : "No finished replicate for this choice", columns, rows);
}

function showRowsOf(key) {
  const codes = key.split(",").map(Number);
  for (const name of SIDE) state[`row-${name}`] = codes[AXES.indexOf(name)];
  show();
  document.getElementById("rows").scrollIntoView();
  document.getElementById("row-method").focus({ preventScroll: true });
}

// One drawing at a time: a choice made while the last one is drawn waits for it.
let drawing = Promise.resolve();

function show() {
  document.body.setAttribute("aria-busy", "true");
  drawing = drawing.then(showNow);
  return drawing;
}

async function showNow() {
  const metric = METRICS[state.metric];
  const cells = findCells(chosen());
  for (const select of document.querySelectorAll("select")) select.value = state[select.name];
  history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  showRows();
  await Promise.all([showMeans(cells, metric), showContrast(metric), showSpread(cells, metric), showLedger(cells)]);
  document.getElementById("status").textContent = `Showing ${metric.label}; ${describe()}; ${cells.length} cells.`;
  document.body.removeAttribute("aria-busy");
}

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light colours" : "Dark colours";
}

async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dress(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => { dress(dark.matches ? "dark" : "light"); show(); });
  document.getElementById("theme").addEventListener("click", () => {
    dress(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  for (const press of document.querySelectorAll("[data-csv]"))
    press.addEventListener("click", () => download(press.dataset.csv));
  addControls();
  readAddress();
  await readDoubles();
  await show();
  startGrid();
}

// Let the browser paint the page before the charts are drawn.
requestAnimationFrame(() => setTimeout(start));
