// Tables: of a chart, the rows behind a point, and the full grid to filter, sort and download.

const TEXT = { text: true };
// Means are printed to their standard errors; downloads have every digit.
const SUMMARY = [...["Mean", "SE", "Low", "High"].map((name) => [name, { of: name.toLowerCase(), se: "se" }]), ["n"]];

// A column is a name and what is in it: text, or numbers that are known to a standard error.
function fillTable(id, caption, columns, rows, { button, sort, limit = Infinity, marked } = {}) {
  const heads = columns.map(([name, { text } = {}]) => {
    const [order, arrow] = sort?.by !== name ? ["none", ""] : sort.up ? ["ascending", " ▲"] : ["descending", " ▼"];
    const inside = sort ? `<button type="button" data-sort="${escape(name)}">${escape(name)}${arrow}</button>` : escape(name);
    return `<th scope="col" class="${text ? "text" : ""}"${arrow && ` aria-sort="${order}"`}>${inside}</th>`;
  });
  if (button) heads.push('<th scope="col">Rows</th>');
  const body = rows.slice(0, limit).map((row) => {
    const cells = columns.map(([name, { text, se, of = name } = {}]) => {
      const dot = of === "method" ? `<i class="dot" style="background:${look(row.method).colour}"></i>` : "";
      const printed = dot ? nameMethod(row.method) : se ? toError(row[of], row[se]) : format(row[of]);
      return `<td class="${text ? "text" : ""}">${dot}${escape(printed)}</td>`;
    });
    const attributes = `type="button" data-key="${row.key}" aria-label="Rows of ${escape(row.label)}"`;
    if (button) cells.push(`<td><button ${attributes}>show</button></td>`);
    return `<tr${marked?.(row) ? ' class="marked"' : ""}>${cells.join("")}</tr>`;
  });
  const head = `<thead><tr>${heads.join("")}</tr></thead>`;
  byId(id).innerHTML = `<caption>${escape(caption)}</caption>${head}<tbody>${body.join("")}</tbody>`;
}

function showRows() {
  const places = SIDE.map((name) => [name, axis(name).values.findIndex((v) => String(v) === state[`row-${name}`])]);
  const [cell] = findCells({ ...chosen(), ...Object.fromEntries(places) });
  const values = cell && COLUMNS.map((c) => valuesOf(cell, c.name));
  const numbers = (i) => Object.fromEntries(COLUMNS.map((c, j) => [c.name, values[j][i]]));
  const rows = (cell ? replicatesOf(cell) : []).map((replicate, i) => ({ replicate, ...numbers(i) }));
  const columns = [["replicate"], ...COLUMNS.map((c) => [c.name])];
  const caption = cell ? `${groupName(cell)}; ${describe()}` : "No finished replicate for this choice";
  fillTable("rows-table", caption, columns, rows, { marked: (row) => String(row.replicate) === state.replicate });
  kept.rows = rows.map((row) => ({ ...valuesAt(cell), ...row }));
  const call = `rerun("${DATA.folder}", "${chosenValues().scenario}", ${state.replicate})`;
  byId("rerun").textContent = `python -c 'from fedlasso.study import rerun; print(${call})'`;
}

const FEW = 100;
const grid = { rows: [], by: null, up: true };
const GRID_COLUMNS = [
  ...DATA.axes.map((a) => [a.heading, { text: !a.number, of: a.name === "method" ? "method" : a.heading }]),
  ["n"],
  ...METRICS.flatMap((m) => [m.label, `${m.label} SE`].map((name) => [name, { se: `${m.label} SE` }])),
];

function gridRow(cell) {
  const row = { method: value(cell, "method") };
  for (const { name, heading, number } of DATA.axes) {
    // A number that stands for "none" is no number.
    const known = word(cell, name) === String(value(cell, name)) ? value(cell, name) : NaN;
    row[heading] = number ? known : word(cell, name);
  }
  for (const metric of METRICS) {
    const { n, mean, se } = summarise(valuesOf(cell, metric.name));
    Object.assign(row, { n, [metric.label]: mean, [`${metric.label} SE`]: se });
  }
  row.text = AXES.map((name) => `${title(cell, name)} ${value(cell, name)}`).join(" ").toLowerCase();
  return row;
}

function showGrid() {
  // "E = 5" is one word, so that the 5 is not found elsewhere.
  const filter = byId("filter").value.toLowerCase().replaceAll(/\s*=\s*/g, "=");
  const wanted = filter.split(/\s+/).filter(Boolean);
  // Words are found by how they begin; numbers and methods only whole ("P" is not "Panel").
  const methods = axis("method").values.map((method) => method.toLowerCase());
  const whole = (word) => (/\d$/.test(word) || methods.includes(word) ? `${word} ` : word);
  const holds = (text, word) => ` ${text.replaceAll(" = ", "=").replaceAll(",", "")} `.includes(` ${whole(word)}`);
  const rows = grid.rows.filter((row) => wanted.every((word) => holds(row.text, word)));
  const sign = grid.up ? 1 : -1;
  const compareNumbers = (x, y) => Number.isNaN(x) - Number.isNaN(y) || sign * (x - y);
  const compare = (x, y) => (typeof x === "string" ? sign * x.localeCompare(y) : compareNumbers(x, y));
  if (grid.by) rows.sort((a, b) => compare(a[grid.by], b[grid.by]));
  const limit = byId("all").checked ? Infinity : FEW;
  const count = `${brief(rows.length)} of ${brief(grid.rows.length)} rows match; ${brief(Math.min(limit, rows.length))} shown.`;
  byId("grid-count").textContent = count;
  const caption = "Means and Monte Carlo standard errors of every combination";
  fillTable("grid-table", caption, GRID_COLUMNS, rows, { sort: grid, limit });
  kept.grid = rows.map((row) => Object.fromEntries(GRID_COLUMNS.map(([name]) => [name, row[name]])));
}

function startGrid() {
  grid.rows = DATA.cells.map(gridRow);
  byId("filter").addEventListener("input", showGrid);
  byId("all").addEventListener("change", showGrid);
  byId("grid-table").addEventListener("click", (event) => {
    const by = event.target.closest("[data-sort]")?.dataset.sort;
    if (by) Object.assign(grid, { by, up: grid.by === by ? !grid.up : true });
    if (by) showGrid();
  });
  showGrid();
}
