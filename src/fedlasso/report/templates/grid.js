// The full grid: every cell with all its means, to filter, sort and download.

const grid = { rows: [], by: null, up: true };
const FEW = 100;

function gridColumns() {
  return [
    ...DATA.axes.map((a) => [a.heading, { text: !a.number, axis: a.name }]),
    ["n"],
    ...METRICS.flatMap((m) => [m.label, `${m.label} SE`].map((name) => [name, { se: `${m.label} SE` }])),
  ];
}

// A number that stands for "none" is no number.
function numberOf(cell, name) {
  const value = axis(name).values[code(cell, name)];
  return word(cell, name) === String(value) ? value : NaN;
}

function gridRow(cell, columns) {
  const row = { method: value(cell, "method") };
  for (const [label, { axis: name } = {}] of columns)
    if (name) row[label] = axis(name).number ? numberOf(cell, name) : word(cell, name);
  for (const metric of METRICS) {
    const { n, mean, se } = summarise(valuesOf(cell, metric.name));
    Object.assign(row, { n, [metric.label]: mean, [`${metric.label} SE`]: se });
  }
  row.text = AXES.map((name) => `${title(cell, name)} ${value(cell, name)}`).join(" ").toLowerCase();
  return row;
}

function showGrid() {
  // "E = 5" is one word, so that the 5 is not found elsewhere.
  const asked = document
    .getElementById("filter")
    .value.toLowerCase()
    .replaceAll(/\s*=\s*/g, "=")
    .split(/\s+/)
    .filter(Boolean);
  // Words are found by how they begin; numbers and methods only whole ("P" is not "Panel").
  const whole = (word) => /\d$/.test(word) || Object.keys(DATA.methods).some((m) => m.toLowerCase() === word);
  const holds = (text, word) =>
    ` ${text.replaceAll(" = ", "=").replaceAll(",", "")} `.includes(` ${word}${whole(word) ? " " : ""}`);
  const rows = grid.rows.filter((row) => asked.every((word) => holds(row.text, word)));
  if (grid.by) {
    const sign = grid.up ? 1 : -1;
    rows.sort((a, b) => {
      const [x, y] = [a[grid.by], b[grid.by]];
      if (typeof x === "string") return sign * x.localeCompare(y);
      return Number.isNaN(x) - Number.isNaN(y) || sign * (x - y);
    });
  }
  const limit = document.getElementById("all").checked ? Infinity : FEW;
  const press = (name) => {
    grid.up = grid.by === name ? !grid.up : true;
    grid.by = name;
    showGrid();
  };
  document.getElementById("grid-count").textContent =
    `${brief(rows.length)} of ${brief(grid.rows.length)} rows match; ${brief(Math.min(limit, rows.length))} shown.`;
  const columns = gridColumns();
  const sort = { by: grid.by, up: grid.up, press };
  fillTable("grid-table", "Means and Monte Carlo standard errors of every combination", columns, rows, { sort, limit });
  keep("grid", rows.map((row) => Object.fromEntries(columns.map(([name]) => [name, row[name]]))));
}

function startGrid() {
  const columns = gridColumns();
  grid.rows = DATA.cells.map((cell) => gridRow(cell, columns));
  document.getElementById("filter").addEventListener("input", showGrid);
  document.getElementById("all").addEventListener("change", showGrid);
  showGrid();
}
