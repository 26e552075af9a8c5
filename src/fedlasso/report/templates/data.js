// The recorded rows: decoding, and means of what is chosen. Nothing here draws.

const maker = (space) => (name, attributes = {}, ...children) => {
  const made = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const element = maker("http://www.w3.org/1999/xhtml");
const svgElement = maker("http://www.w3.org/2000/svg");

const byId = (id) => document.getElementById(id);
const DATA = JSON.parse(byId("data").textContent);
const AXES = DATA.axes.map((axis) => axis.name);
const COLUMNS = DATA.columns;
const METRICS = COLUMNS.filter((c) => c.kind === "metric");
const COLUMN = Object.fromEntries(COLUMNS.map((c, j) => [c.name, AXES.length + j]));
const METHODS = Object.keys(DATA.methods);
// Of some axes the page shows one value at a time; all values of the others stand side by side.
const CONTROLS = DATA.axes.filter((a) => a.control).map((a) => a.name);
const SIDE = DATA.axes.filter((a) => !a.control).map((a) => a.name);
const AXIS = Object.fromEntries(DATA.axes.map((a) => [a.name, a]));
const SEVERAL_EPOCHS = (AXIS.epochs?.values ?? []).filter(Boolean).length > 1;
// What the records are about: simulated scenarios, or data sets.
const KIND = AXIS.scenario.label.toLowerCase();
// Cells by their axis codes, e.g. "0,2,1,1,0,0".
const keyOf = (cell) => cell.slice(0, AXES.length).join();
const CELLS = new Map(DATA.cells.map((cell) => [keyOf(cell), cell]));
let doubles;

async function readDoubles() {
  const text = atob(DATA.doubles);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  doubles = new Float64Array(await new Response(inflated).arrayBuffer());
}

const axis = (name) => AXIS[name];
const code = (cell, name) => cell[AXES.indexOf(name)];
const title = (cell, name) => axis(name).titles[code(cell, name)];
const word = (cell, name) => axis(name).words[code(cell, name)];
const value = (cell, name) => axis(name).values[code(cell, name)];
const valuesAt = (cell) => Object.fromEntries(AXES.map((name) => [name, value(cell, name)]));
const replicatesOf = (cell) => DATA.replicates[code(cell, "scenario")];
// What people call a method: "goal:prediction" is the prediction goal, fitted to all rows.
const nameMethod = (method) => axis("method").words[axis("method").values.indexOf(method)] ?? method;

// `where` maps axis names to codes; axes that it lacks are no condition.
function findCells(where) {
  return DATA.cells.filter((cell) => AXES.every((name, i) => where[name] === undefined || cell[i] === where[name]));
}

// One value a replicate; a vector of length one holds for every replicate.
function valuesOf(cell, column) {
  const [start, length] = DATA.spans[cell[COLUMN[column]]];
  if (length === 1) return replicatesOf(cell).map(() => doubles[start]);
  return Array.from(doubles.subarray(start, start + length));
}

const knownOf = (values) => values.filter((v) => !Number.isNaN(v));
const median = (values) => Plot.median(values) ?? NaN;

function summarise(values) {
  const known = knownOf(values);
  const n = known.length;
  if (n === 0) return { n, mean: NaN, se: NaN, low: NaN, high: NaN };
  const mean = known.reduce((a, b) => a + b, 0) / n;
  const squares = known.reduce((a, b) => a + (b - mean) ** 2, 0);
  const se = n > 1 ? Math.sqrt(squares / (n - 1) / n) : NaN;
  return { n, mean, se, low: mean - 1.96 * se, high: mean + 1.96 * se };
}

// Paired differences of `column`, one summary a remaining cell. A method without epochs is compared
// with every epoch count of the other.
function differences(pair, where, column) {
  return findCells({ ...where, [pair.name]: pair.first }).flatMap((cell) => {
    const key = cell.slice(0, AXES.length);
    key[AXES.indexOf(pair.name)] = pair.second;
    let other = CELLS.get(key.join());
    if (!other && pair.name === "method" && AXES.includes("epochs")) {
      key[AXES.indexOf("epochs")] = axis("epochs").values.indexOf(0);
      other = CELLS.get(key.join());
    }
    if (!other) return [];
    const [a, b] = [cell, other].map((each) => valuesOf(each, column));
    return [{ cell, ...summarise(b.map((v, i) => v - a[i])) }];
  });
}
