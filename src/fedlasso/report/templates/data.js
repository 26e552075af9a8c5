// The recorded rows: decoding, and means of what is chosen. Nothing here draws.

const DATA = JSON.parse(document.getElementById("data").textContent);
const AXES = DATA.axes.map((axis) => axis.name);
const COLUMNS = DATA.columns;
const METRICS = COLUMNS.filter((c) => c.kind === "metric");
const COLUMN = Object.fromEntries(COLUMNS.map((c, j) => [c.name, AXES.length + j]));
let doubles;

async function readDoubles() {
  const text = atob(DATA.doubles);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  doubles = new Float64Array(await new Response(inflated).arrayBuffer());
}

// Of some axes the page shows one value at a time; all values of the others stand side by side.
const CONTROLS = DATA.axes.filter((a) => a.control).map((a) => a.name);
const SIDE = DATA.axes.filter((a) => !a.control).map((a) => a.name);

const SEVERAL_EPOCHS = (DATA.axes.find((a) => a.name === "epochs")?.values ?? []).filter(Boolean).length > 1;
const AXIS = Object.fromEntries(DATA.axes.map((a) => [a.name, a]));
// What the records are about: simulated scenarios, or data sets.
const KIND = AXIS.scenario.label.toLowerCase();

function axis(name) {
  return AXIS[name];
}

function keyOf(cell) {
  return cell.slice(0, AXES.length).join();
}

// Cells by their axis codes, e.g. "0,2,1,1,0,0".
const CELLS = new Map(DATA.cells.map((cell) => [cell.slice(0, AXES.length).join(), cell]));

// `where` maps axis names to codes; axes that it lacks are no condition.
function findCells(where) {
  return DATA.cells.filter((cell) =>
    AXES.every((name, i) => where[name] === undefined || cell[i] === where[name]),
  );
}

function replicatesOf(cell) {
  return DATA.replicates[cell[AXES.indexOf("scenario")]];
}

// One value a replicate; a vector of length one holds for every replicate.
function valuesOf(cell, column) {
  const [start, length] = DATA.spans[cell[COLUMN[column]]];
  if (length === 1) return replicatesOf(cell).map(() => doubles[start]);
  return Array.from(doubles.subarray(start, start + length));
}

function code(cell, name) {
  return cell[AXES.indexOf(name)];
}

function title(cell, name) {
  return axis(name).titles[code(cell, name)];
}

function word(cell, name) {
  return axis(name).words[code(cell, name)];
}

function value(cell, name) {
  return axis(name).values[code(cell, name)];
}

// The values of all axes, as records have them.
function valuesAt(cell) {
  return Object.fromEntries(AXES.map((name) => [name, value(cell, name)]));
}

// What people call a method: "goal:prediction" is the prediction goal.
function nameMethod(method) {
  return axis("method").words[axis("method").values.indexOf(method)] ?? method;
}

function median(values) {
  const sorted = values.filter((v) => !Number.isNaN(v)).sort((a, b) => a - b);
  if (!sorted.length) return NaN;
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function quantile(values, share) {
  const sorted = values.filter((v) => !Number.isNaN(v)).sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const [low, high] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return low + (high - low) * (place - Math.floor(place));
}

function summarise(values) {
  const known = values.filter((v) => !Number.isNaN(v));
  const n = known.length;
  if (n === 0) return { n, mean: NaN, se: NaN, low: NaN, high: NaN };
  const mean = known.reduce((a, b) => a + b, 0) / n;
  const squares = known.reduce((a, b) => a + (b - mean) ** 2, 0);
  const se = n > 1 ? Math.sqrt(squares / (n - 1) / n) : NaN;
  return { n, mean, se, low: mean - 1.96 * se, high: mean + 1.96 * se };
}

// Pairs of values of one axis, later minus earlier, that the chosen cells can be compared along.
function pairs() {
  const found = [];
  for (const name of AXES.filter((a) => a !== "scenario")) {
    const { values, titles } = axis(name);
    for (let i = 0; i < values.length; i++)
      for (let j = i + 1; j < values.length; j++)
        found.push({
          name,
          first: i,
          second: j,
          value: [name, values[i], values[j]].join("~"),
          label: `${titles[j]} minus ${titles[i]}`,
        });
  }
  // The paper's contrast, fewest to most epochs, comes first; a method without epochs has 0 of them.
  const epochs = axis("epochs")?.values ?? [];
  const fewest = epochs.findIndex((e) => e > 0);
  return found.filter((p) => p.name !== "epochs" || p.first >= fewest).sort((a, b) => paper(b) - paper(a));
  function paper(p) {
    return Number(p.name === "epochs" && p.first === fewest && p.second === epochs.length - 1);
  }
}

// Paired differences of `column`, one summary a remaining cell. A method without epochs is compared
// with every epoch count of the other.
function differences(pair, where, column) {
  const at = AXES.indexOf(pair.name);
  return findCells({ ...where, [pair.name]: pair.first }).flatMap((cell) => {
    const key = cell.slice(0, AXES.length);
    key[at] = pair.second;
    let other = CELLS.get(key.join());
    if (!other && pair.name === "method" && AXES.includes("epochs")) {
      key[AXES.indexOf("epochs")] = axis("epochs").values.indexOf(0);
      other = CELLS.get(key.join());
    }
    if (!other) return [];
    const a = valuesOf(cell, column);
    const b = valuesOf(other, column);
    return [{ cell, ...summarise(b.map((v, i) => v - a[i])) }];
  });
}
