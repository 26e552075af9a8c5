// What all charts share, on top of Observable Plot: looks of methods, axes, marks, words and legends.
// Colours are CSS variables, so that themes and paper change them without drawing again.

const FLOOR = 1e-16; // the end of a logarithmic axis: smaller gaps are rounding

// A symbol of D3, and by how many degrees it is turned.
const SYMBOLS = {
  circle: [Plot.symbolCircle, 0], star: [Plot.symbolStar, 0], wye: [Plot.symbolWye, 0], narrow: [Plot.symbolDiamond, 0],
  square: [Plot.symbolSquare, 0], diamond: [Plot.symbolSquare, 45],
  cross: [Plot.symbolCross, 0], saltire: [Plot.symbolCross, 45],
  "triangle-up": [Plot.symbolTriangle, 0], "triangle-down": [Plot.symbolTriangle, 180],
  "triangle-left": [Plot.symbolTriangle, -90], "triangle-right": [Plot.symbolTriangle, 90],
};

const look = (method) => DATA.methods[method] ?? { colour: "var(--ink)", shape: "cross" };
const colourOf = (row) => row.colour ?? look(row.method).colour;
const symbolOf = (row) => SYMBOLS[row.shape ?? look(row.method).shape];

function symbolPath(method) {
  const [symbol, turn] = symbolOf({ method });
  return svgElement("path", { d: Plot.symbol(symbol, 50)(), fill: look(method).colour, transform: `rotate(${turn})` });
}

function extent(values, { scale, pad = 0.06 } = {}) {
  if (scale === "proportion") return [0, 1];
  const known = values.filter(Number.isFinite);
  if (!known.length) return scale === "log" ? [1e-3, 1] : [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const start = Math.max(low, FLOOR);
  const powers = [Math.floor(Math.log10(start)), Math.ceil(Math.log10(Math.max(high, 10 * start)))];
  if (scale === "log") return powers.map((power) => 10 ** power);
  const room = (high - low || Math.abs(high) || 1) * pad;
  return [low - room, high + room];
}

// An axis has a domain of numbers, or `values`, whose places are 0, 1, 2 and so on.
function scaleOf({ kind, domain, values }) {
  if (values) return { axis: null, domain: [-0.5, values.length - 0.5] };
  return { axis: null, type: kind, domain, clamp: kind === "log", constant: Math.max(...domain.map(Math.abs)) / 1e4 };
}

// Ticks as Plot takes them: about how many, or a list. Three or more give at least two labels.
function ticksOf({ kind, domain, values, unit }, room) {
  if (values) return values.map((_, i) => i);
  const count = Math.max(3, Math.round(room));
  const largest = Math.max(...domain.map(Math.abs)) || 1;
  if (kind === "symlog") {
    const powers = [1, 100].map((part) => 10 ** Math.floor(Math.log10(largest / part)));
    return [...powers.map((v) => -v), 0, ...powers.reverse()].filter((v) => v >= domain[0] && v <= domain[1]);
  }
  if (kind === "log") {
    const digits = domain[1] / domain[0] < 200 ? /^[125]/ : /^1/;
    return Plot.scaleLog(domain, [0, 1]).ticks(count).filter((v) => digits.test(v.toExponential()));
  }
  // Bytes are counted in powers of two.
  if (unit !== "bytes") return count;
  const step = 2 ** Math.ceil(Math.log2(largest / count));
  return Array.from({ length: Math.floor(largest / step) + 1 }, (_, i) => i * step);
}

// Neighbouring ticks differ, so they may need more digits. "E = 5" and short names are not broken into lines.
const sayNumber = (v) => (v >= 1000 || Number(v.toPrecision(3)) === v ? brief(v) : format(v).replace("-", "−"));

const unbroken = (words) => words.replaceAll(words.length <= 12 ? / /g : / (?== )|(?<= =) /g, "\u00a0");
const sayTick = ({ values, say = values ? brief : sayNumber }) => (tick) => unbroken(String(say(values ? values[tick] : tick)));

// About how wide words are.
const widthOfWords = (words, size) => 0.57 * size * String(words).length;

// One pair of axes with marks on it.
function panel({ width, height, x, y, marks, title, left, right = 16, top = 10, bottom = 42 }) {
  const longest = Math.max(5, ...(y.values ?? []).map((_, i) => sayTick(y)(i).length));
  const margin = left ?? Math.min(width * 0.45, 16 + (y.label ? 18 : 0) + 6.9 * (y.say && !y.values ? 7 : longest));
  const [across, down] = [width - margin - right, height - top - bottom];
  // Long names of y are smaller before they are broken into lines. Where names of x have no room side by
  // side, short ones are printed, or every second or third.
  const fontSize = y.values && 6.9 * longest > margin - 12 ? 10.5 : 12;
  const room = across / (x.values?.length ?? 1) - 6;
  const widest = (say) => 6.6 * Math.max(1, ...(x.values ?? []).map((_, i) => sayTick({ ...x, say })(i).length));
  const say = x.short && widest(x.say) > Math.max(room, widest(x.short)) ? x.short : x.say;
  const every = x.values ? Math.ceil(widest(say) / room) : 1;
  const [xTicks, yTicks] = [ticksOf(x, across / 95), ticksOf(y, down / 55)];
  const grid = { stroke: "var(--line)", strokeOpacity: 1 };
  const axis = { tickSize: 0, labelAnchor: "center", labelArrow: "none" };
  const titleSize = title && Math.min(12.5, (11.4 * (width - 30)) / widthOfWords(title, 12.5));
  const heading = { fontSize: titleSize, fontWeight: 600, frameAnchor: "top-left", dy: -21 };
  const drawn = Plot.plot({
    width, height, marginLeft: margin, marginRight: right, marginTop: top, marginBottom: bottom,
    x: scaleOf(x),
    y: { ...scaleOf(y), reverse: Boolean(y.values) },
    marks: [
      Plot.gridY({ ...grid, ticks: yTicks }),
      x.values ? null : Plot.gridX({ ...grid, ticks: xTicks }),
      Plot.axisY({
        ...axis, ticks: yTicks, tickFormat: sayTick(y), label: y.label || null, labelOffset: margin - 4,
        fontSize, lineWidth: (margin - 10) / fontSize / 1.15,
      }),
      Plot.axisX({
        ...axis, ticks: xTicks, tickFormat: (tick) => (x.values && tick % every ? "" : sayTick({ ...x, say })(tick)),
        label: x.label || null, labelOffset: 33,
      }),
      title ? Plot.text([title], { ...heading, dx: Math.min(margin, 30) - margin }) : null,
      marks,
    ],
  });
  const names = drawn.querySelectorAll("[aria-label='y-axis tick label'] text");
  for (const [i, tip] of (y.tips || []).entries()) if (tip) names[i].dataset.tip = tip;
  return drawn;
}

// Marks. A row has its place (x and y, or their ends), and may have a method, a tip for the pointer, and
// the key of the records behind it. `place` may move marks once their places in pixels are known.
function mark(kind, name, rows, { place, weave, ...options }) {
  return Plot[kind](rows, {
    ...options,
    render(index, scales, values, dimensions, context, next) {
      const placed = place?.(index, scales, values, dimensions) ?? values;
      const drawn = next(index, scales, placed, dimensions, context);
      for (const node of drawn.children) {
        const row = rows[[node.__data__].flat()[0]];
        node.setAttribute("class", name);
        for (const key of ["method", "tip", "key", "replicate"])
          if (row[key] !== undefined) node.setAttribute(`data-${key}`, row[key]);
      }
      if (weave) weaveDashes([...drawn.children]);
      return drawn;
    },
  });
}

// Marks at one place are drawn side by side, so that methods which coincide remain visible.
function setApart(index, scales, { x: X, y: Y, ...values }) {
  const moved = Float64Array.from(X);
  for (const own of Map.groupBy(index, (i) => `${Math.round(X[i] / 2)},${Math.round(Y[i] / 2)}`).values())
    for (const [k, i] of own.entries()) moved[i] += 6 * (k - (own.length - 1) / 2);
  return { ...values, x: moved, y: Y };
}

// Lines that coincide show all their colours, a dash of each in turn.
function weaveDashes(nodes) {
  const places = (node) => node.getAttribute("d") ?? node.getAttribute("y1");
  const course = (node) => places(node).replaceAll(/[\d.]+/g, (v) => Math.round(v));
  for (const own of [...Map.groupBy(nodes, course).values()].filter((each) => each.length > 1))
    for (const [k, node] of own.entries()) {
      node.setAttribute("stroke-dasharray", `6 ${6 * (own.length - 1)}`);
      node.setAttribute("stroke-dashoffset", -6 * k);
    }
}

function points(rows, { size = 1, place = setApart } = {}) {
  return mark("dot", "mark point", rows, {
    x: "x", y: "y", r: 4 * size, place,
    symbol: (row) => symbolOf(row)[0],
    rotate: (row) => symbolOf(row)[1],
    fill: (row) => (row.open ? "var(--back)" : colourOf(row)),
    stroke: colourOf,
    strokeWidth: rows.some((row) => row.open) ? 1.4 : 0.6,
  });
}

const ENDS = { x1: "x1", x2: "x2", y1: "y1", y2: "y2" };

const bars = (rows, options) =>
  mark("link", "mark rule", rows, { ...ENDS, stroke: colourOf, strokeWidth: 2, ...options });
const lines = (rows, options) =>
  mark("line", "mark line", rows, { x: "x", y: "y", z: "z", stroke: colourOf, weave: true, ...options });
const texts = (rows, options) =>
  mark("text", "words", rows, { x: "x", y: "y", text: "words", fill: "var(--soft)", fontSize: 11, ...options });

// A line across the whole panel, upright where the row has an x.
function levels(rows, name, options) {
  const side = rows.some((row) => "x" in row) ? "x" : "y";
  return mark(`rule${side.toUpperCase()}`, name, rows, { [side]: side, stroke: colourOf, ...options });
}

// Places along a row that leads from one end to the other.
const along = ({ x1, x2, y1, y2 }) =>
  Array.from({ length: 30 }, (_, k) => ({ x: x1 + ((x2 - x1) * k) / 30, y: y1 + ((y2 - y1) * k) / 30 }));

const SIDES = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [1, 1], [-1, -1], [-1, 1]];

// Words beside their places: each goes to the nearest room that is clear of spots and of other words,
// or at least of other words.
function labels(rows, spots, options) {
  const clear = (a) => (b) => 2 * Math.abs(a.x - b.x) > a.wide + b.wide || 2 * Math.abs(a.y - b.y) > a.high + b.high;
  const place = (index, scales, values, { width, height, marginLeft, marginBottom }) => {
    const marks = spots.map((row) => ({ x: scales.x(row.x), y: scales.y(row.y), wide: 15, high: 10 }));
    const words = [];
    const moved = { ...values, x: Float64Array.from(values.x), y: Float64Array.from(values.y) };
    for (const i of index) {
      const wide = widthOfWords(rows[i].words, 12) + 6;
      const offer = (far) => ([side, down]) => [side * (far + wide / 2), down * (side ? 14 : far + 9)];
      const offers = [5, 12, 20, 30].flatMap((far) => SIDES.map(offer(far)));
      const rooms = offers.map(([dx, dy]) => ({ x: values.x[i] + dx, y: values.y[i] + dy, wide, high: 14 }));
      const within = (room) => room.x > marginLeft + wide / 2 - 4 && room.x < width - wide / 2;
      const inside = rooms.filter((room) => within(room) && room.y > 7 && room.y < height - marginBottom - 3);
      const free = inside.filter((room) => words.every(clear(room)));
      const best = free.find((room) => marks.every(clear(room))) ?? free[0] ?? rooms[0];
      words.push(best);
      [moved.x[i], moved.y[i]] = [best.x, best.y];
    }
    return moved;
  };
  return texts(rows, { stroke: "var(--back)", strokeWidth: 3, place, ...options });
}

// On paper a chart is drawn as wide as the paper is, so that its words keep their size.
let paper = 0;

// All charts are measured before any is drawn: between drawings each look would lay the page out anew.
const widths = {};

function measure() {
  for (const { id, clientWidth } of document.querySelectorAll(".chart"))
    widths[id.replace("-chart", "")] = Math.max(280, Math.floor(clientWidth || 700));
}

const widthOf = (name) => paper || widths[name];

// Puts panels into a chart, in rows of `across`, and names the methods of these rows in its legend.
function put(name, description, rows, panels, across = 1) {
  const [wide, high] = ["width", "height"].map((side) => Number(panels[0].drawn.getAttribute(side)));
  const [width, height] = [across * wide, Math.ceil(panels.length / across) * high];
  const groups = panels.map(({ drawn, ...attributes }, i) => {
    const transform = `translate(${(i % across) * wide},${Math.floor(i / across) * high})`;
    const ground = svgElement("rect", { width: wide, height: high, fill: "transparent" });
    const parts = [...drawn.children].filter((part) => part.tagName !== "style");
    // The picture has one label for all; groups within it may not have their own.
    for (const part of parts) {
      part.setAttribute("class", `plot-${part.getAttribute("aria-label")}`.replaceAll(" ", "-"));
      part.removeAttribute("aria-label");
    }
    return svgElement("g", { transform, ...attributes }, ground, ...parts);
  });
  const frame = { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description };
  const font = { "font-family": "system-ui, sans-serif", "font-size": 12, "text-anchor": "middle" };
  const sheet = svgElement("svg", { ...frame, ...font, color: "var(--ink)", fill: "currentColor" }, ...groups);
  byId(`${name}-chart`).replaceChildren(sheet);
  byId(`${name}-chart-legend`).replaceChildren(...methodsOf(rows).map(legendButton));
}

function nothing(name, words = "No finished replicate for this choice") {
  const marks = [Plot.text([words], { frameAnchor: "left", textAnchor: "start" })];
  put(name, words, [], [{ drawn: Plot.plot({ width: widthOf(name), height: 60, marks }) }]);
}

const methodsOf = (rows) => METHODS.filter((method) => rows.some((row) => row.method === method));

// The legend names methods once; choosing one dims the others in every chart.
function legendButton(method) {
  const square = { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" };
  const attributes = { type: "button", "data-only": method, title: DATA.words[method] ?? "" };
  return element("button", attributes, svgElement("svg", square, symbolPath(method)), nameMethod(method));
}

const only = new Set();

function isolate() {
  for (const mark of document.querySelectorAll(only.size ? ".chart [data-method]" : ".chart .dim"))
    mark.classList.toggle("dim", only.size > 0 && !only.has(mark.dataset.method));
  for (const button of document.querySelectorAll("[data-only]"))
    button.setAttribute("aria-pressed", String(only.has(button.dataset.only)));
}

function startTips() {
  const tip = byId("tip");
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const { clientX: x, clientY: y } = event;
    tip.style.left = `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
  });
  document.addEventListener("scroll", () => tip.toggleAttribute("hidden", true), { passive: true });
}
