// What all charts share, on top of Observable Plot: looks of methods, axes, marks that answer to the
// pointer, labels that keep clear of marks. Colours are CSS variables, so themes and paper change them
// without drawing again.

const FLOOR = 1e-16; // the end of a logarithmic axis: smaller gaps are rounding

const polygon = (...corners) => ({
  draw(context, size) {
    const scale = Math.sqrt(size / 50);
    corners.forEach(([x, y], i) => context[i ? "lineTo" : "moveTo"](scale * x, scale * y));
    context.closePath();
  },
});

const SYMBOLS = {
  circle: Plot.symbolCircle,
  square: Plot.symbolSquare,
  "triangle-up": Plot.symbolTriangle,
  "triangle-down": polygon([0, 4.8], [4.6, -3.4], [-4.6, -3.4]),
  "triangle-left": polygon([-4.8, 0], [3.4, -4.6], [3.4, 4.6]),
  "triangle-right": polygon([4.8, 0], [-3.4, -4.6], [-3.4, 4.6]),
  diamond: Plot.symbolDiamond2,
  narrow: Plot.symbolDiamond,
  cross: Plot.symbolCross,
  star: Plot.symbolStar,
  saltire: polygon([-4, -5], [0, -1.5], [4, -5], [5, -4], [1.5, 0], [5, 4], [4, 5], [0, 1.5], [-4, 5], [-5, 4], [-1.5, 0], [-5, -4]),
  pentagon: polygon([0, -5], [4.8, -1.5], [2.9, 4], [-2.9, 4], [-4.8, -1.5]),
};

function look(method) {
  return DATA.methods[method] ?? { colour: "var(--ink)", shape: "cross" };
}

function colourOf(row) {
  return row.colour ?? look(row.method).colour;
}

function symbolPath(method) {
  const { colour, shape } = look(method);
  return `<path d="${Plot.symbol(SYMBOLS[shape], 52)()}" fill="${colour}"/>`;
}

function extent(values, { scale, pad = 0.06 } = {}) {
  if (scale === "share") return [0, 1];
  const known = values.filter(Number.isFinite);
  if (!known.length) return scale === "log" ? [1e-3, 1] : [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  if (scale === "log") {
    const start = Math.max(low, FLOOR);
    return [Math.floor(Math.log10(start)), Math.ceil(Math.log10(Math.max(high, 10 * start)))].map((k) => 10 ** k);
  }
  const room = (high - low || Math.abs(high) || 1) * pad;
  return [low - room, high + room];
}

// An axis has a domain of numbers, or `values`, whose places are 0, 1, 2 and so on.

// Differences of gaps span many powers of ten on both sides of zero.
function smallOf(domain) {
  return (Math.max(...domain.map(Math.abs)) || 1) / 1e4;
}

function scaleOf({ kind = "linear", domain, values }, down) {
  if (values) return { axis: null, domain: down ? [values.length - 0.5, -0.5] : [-0.5, values.length - 0.5] };
  return { axis: null, type: kind, domain, clamp: kind === "log", constant: kind === "symlog" ? smallOf(domain) : undefined };
}

// At least two ticks, about `apart` pixels from each other.
function ticksOf({ kind, domain, values, unit }, room, apart) {
  if (values) return values.map((_, i) => i);
  const [low, high] = domain;
  const count = Math.max(3, room / apart);
  if (kind === "log") {
    const digits = high / low <= 160 ? "125" : "1";
    return Plot.scaleLog(domain, [0, 1])
      .ticks(count)
      .filter((v) => digits.includes(v.toExponential()[0]));
  }
  if (kind === "symlog") {
    const powers = [1e4, 1e2].map((factor) => 10 ** Math.floor(Math.log10(factor * smallOf(domain))));
    return [-powers[0], -powers[1], 0, powers[1], powers[0]].filter((v) => v >= low && v <= high);
  }
  if (unit !== "bytes") return Plot.ticks(low, high, count);
  const step = 2 ** Math.ceil(Math.log2(high / count));
  return Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
}

function sayTick({ values, say }) {
  return values ? (i) => String((say ?? brief)(values[i])) : (say ?? brief);
}

// The words of a chart are about this wide.
function widthOfWords(words, size) {
  return 0.57 * size * String(words).length;
}

// One pair of axes with marks on it. "E = 5" is not broken into lines.
function panel({ width, height, x, y, marks, left, right = 16, top = 10, bottom = 40, title }) {
  const yTicks = ticksOf(y, height - top - bottom, 45);
  const names = yTicks.map(sayTick(y)).map((name) => name.replaceAll(" = ", "\u00a0=\u00a0"));
  const longest = Math.max(2, ...names.map((name) => name.length));
  const margin = left ?? Math.min(width * 0.45, 16 + (y.label ? 16 : 0) + 6.9 * longest);
  const fontSize = y.values && widthOfWords(" ".repeat(longest), 12) > margin - 12 ? 10.5 : 12;
  const xTicks = ticksOf(x, width - margin - right, 75);
  const words = xTicks.map(sayTick(x));
  // Where labels have no room side by side, every second or third is printed.
  const step = (width - margin - right) / words.length;
  const every = x.values ? Math.ceil((6.6 * Math.max(...words.map((word) => word.length)) + 6) / step) : 1;
  const grid = { stroke: "var(--line)", strokeOpacity: 1 };
  const axis = { tickSize: 0, labelAnchor: "center", labelArrow: "none" };
  const start = Math.min(margin, 30);
  const heading = title && {
    fontSize: Math.min(12.5, (12.5 * (width - start)) / (1.1 * widthOfWords(title, 12.5))),
    fontWeight: 600,
    frameAnchor: "top-left",
    dx: start - margin,
    dy: -21,
  };
  const drawn = Plot.plot({
    width,
    height,
    marginLeft: margin,
    marginRight: right,
    marginTop: top,
    marginBottom: bottom,
    x: scaleOf(x),
    y: scaleOf(y, true),
    marks: [
      Plot.gridY(yTicks, grid),
      x.values ? null : Plot.gridX(xTicks, grid),
      Plot.axisY(yTicks, { ...axis, tickFormat: (_, i) => names[i], label: y.label ?? null, labelOffset: margin - 5, fontSize, lineWidth: (margin - 10) / fontSize / 1.15 }),
      Plot.axisX(xTicks, { ...axis, tickFormat: (_, i) => (i % every ? "" : words[i]), label: x.label ?? null, labelOffset: 33 }),
      title ? Plot.text([title], heading) : null,
      marks,
    ],
  });
  if (y.tips)
    drawn.querySelectorAll("[aria-label='y-axis tick label'] text").forEach((text, i) => {
      text.dataset.tip = y.tips[y.values[i]];
    });
  return drawn;
}

// Marks. A row has its place (x and y, or their ends), and may have a method, a tip for the pointer,
// and the key of the records behind it. `place` may move marks once their places in pixels are known.
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
          if (row[key] !== undefined) node.dataset[key] = row[key];
      }
      if (weave) weaveDashes([...drawn.children]);
      return drawn;
    },
  });
}

// Marks at one place stand side by side, so that methods which coincide can be told apart.
function setApart(index, scales, { x: X, y: Y, ...values }) {
  const groups = Map.groupBy(index, (i) => `${Math.round(X[i] / 3)},${Math.round(Y[i] / 3)}`);
  const moved = Float64Array.from(X);
  for (const own of groups.values())
    own.forEach((i, k) => {
      moved[i] += 7 * (k - (own.length - 1) / 2);
    });
  return { ...values, x: moved, y: Y };
}

// Lines that coincide show all their colours, a dash of each in turn.
function weaveDashes(nodes) {
  const course = (node) => (node.getAttribute("d") ?? node.getAttribute("y1")).replaceAll(/[\d.]+/g, (v) => Math.round(v));
  for (const own of Map.groupBy(nodes, course).values())
    if (own.length > 1)
      own.forEach((node, k) => {
        node.setAttribute("stroke-dasharray", `6 ${6 * (own.length - 1)}`);
        node.setAttribute("stroke-dashoffset", -6 * k);
      });
}

function points(rows, { size = 1, place = setApart } = {}) {
  return mark("dot", "mark point", rows, {
    x: "x",
    y: "y",
    r: 4 * size,
    symbol: (row) => SYMBOLS[row.shape ?? look(row.method).shape],
    fill: (row) => (row.open ? "var(--back)" : colourOf(row)),
    stroke: colourOf,
    strokeWidth: rows.some((row) => row.open) ? 1.4 : 0.6,
    place,
  });
}

function bars(rows, options) {
  return mark("link", "mark rule", rows, { x1: "x1", x2: "x2", y1: "y1", y2: "y2", stroke: colourOf, strokeWidth: 2, ...options });
}

function lines(rows, options) {
  return mark("line", "mark line", rows, { x: "x", y: "y", z: "z", stroke: colourOf, strokeWidth: 1.6, weave: true, ...options });
}

// A level of the pooled Lasso, or zero, across the whole panel.
function level(along, value, name, tip, options) {
  const row = { [along]: value, tip, colour: "var(--ink)" };
  return mark(along === "x" ? "ruleX" : "ruleY", name, [row], { [along]: along, stroke: colourOf, strokeWidth: 1.2, ...options });
}

function texts(rows, options) {
  return mark("text", "words", rows, { x: "x", y: "y", text: "words", fill: "var(--soft)", fontSize: 11, ...options });
}

function overlaps(a, b) {
  return Math.min(a[2], b[2]) > Math.max(a[0], b[0]) && Math.min(a[3], b[3]) > Math.max(a[1], b[1]);
}

// Places along a broken line, for words to keep clear of it.
function along(corners) {
  return corners.flatMap(([x, y], i) => {
    const [left, top] = corners[Math.max(0, i - 1)];
    const pieces = Math.max(1, Math.ceil(Math.hypot(x - left, y - top) / 8));
    const at = (k) => [left + ((k + 1) / pieces) * (x - left), top + ((k + 1) / pieces) * (y - top)];
    return Array.from({ length: pieces }, (_, k) => at(k));
  });
}

// Words beside their places: each goes to the nearest free room, clear of courses (broken lines, or
// single places) and of the words before it.
function labels(rows, courses, { fontSize = 10.5, ...options } = {}) {
  const place = (index, scales, values, { width, height, marginRight, marginTop, marginBottom }) => {
    const spots = courses.flatMap((course) => along(course.map(([x, y]) => [scales.x(x), scales.y(y)])));
    const taken = spots.map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]);
    const box = [0, marginTop - 8, width - marginRight + 8, height - marginBottom];
    const moved = { ...values, x: Float64Array.from(values.x), y: Float64Array.from(values.y) };
    for (const i of index) {
      const size = [widthOfWords(rows[i].words, fontSize) * (options.fontWeight ? 1.22 : 1), fontSize + 2];
      const [left, top, right, bottom] = findRoom(values.x[i], values.y[i], size, taken, box);
      taken.push([left - 5, top, right + 5, bottom]);
      moved.x[i] = left;
      moved.y[i] = (top + bottom) / 2;
    }
    return moved;
  };
  const look = { textAnchor: "start", stroke: "var(--back)", strokeWidth: 3, fontSize };
  return texts(rows, { ...look, ...options, place });
}

function findRoom(x, y, [wide, high], taken, box) {
  const offers = [9, 14, 20, 28, 38].flatMap((far) => [
    [x - far - wide, y - high / 2],
    [x + far, y - high / 2],
    [x - wide / 2, y - far - high / 2],
    [x - wide / 2, y + far - high / 2],
    [x - wide - far / 2, y - far - high / 2],
    [x + far / 2, y - far - high / 2],
    [x - wide - far / 2, y + far - high / 2],
    [x + far / 2, y + far - high / 2],
  ]);
  const rooms = offers.map(([left, top]) => [left, top, left + wide, top + high]);
  const inside = rooms.filter((r) => r[0] >= box[0] && r[1] >= box[1] && r[2] <= box[2] && r[3] <= box[3]);
  const covered = (room) => taken.filter((other) => overlaps(room, other)).length;
  return inside.find((room) => !covered(room)) ?? inside.sort((a, b) => covered(a) - covered(b))[0] ?? rooms[0];
}

// On paper a chart is drawn as wide as the paper is, so that its words keep their size.
let paper = 0;

// All charts are measured before any is drawn: between drawings each look would lay the page out anew.
const widths = {};

function measure() {
  for (const place of document.querySelectorAll(".chart"))
    widths[place.id] = Math.max(280, Math.floor(place.clientWidth || 700));
}

function widthOf(id) {
  return paper || widths[id];
}

function svgElement(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Puts panels into a chart, in rows of `across`.
function put(id, description, panels, across = 1) {
  const [wide, high] = ["width", "height"].map((side) => Number(panels[0].drawn.getAttribute(side)));
  const [width, height] = [across * wide, Math.ceil(panels.length / across) * high];
  const groups = panels.map(({ drawn, ...attributes }, i) => {
    const transform = `translate(${(i % across) * wide},${Math.floor(i / across) * high})`;
    const ground = svgElement("rect", { width: wide, height: high, fill: "transparent" });
    const parts = [...drawn.children].filter((part) => part.tagName !== "style");
    return svgElement("g", { transform, ...attributes }, ground, ...parts);
  });
  const frame = {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": description,
    color: "var(--ink)",
    fill: "currentColor",
    "font-family": "system-ui, sans-serif",
    "font-size": 12,
  };
  document.getElementById(id).replaceChildren(svgElement("svg", frame, ...groups));
}

function nothing(id, told = "No finished replicate for this choice") {
  const text = Plot.text([told], { frameAnchor: "left" });
  put(id, told, [{ drawn: Plot.plot({ width: widthOf(id), height: 60, axis: null, marks: [text] }) }]);
  document.getElementById(`${id}-legend`).replaceChildren();
}

// The legend names methods once; choosing one dims the others in every chart.
function legend(id, shown) {
  const methods = Object.keys(DATA.methods).filter((method) => shown.includes(method));
  const buttons = methods.map((method) => {
    const button = element("button", {
      type: "button",
      "data-only": method,
      "aria-pressed": String(only.has(method)),
      title: DATA.words[method] ?? "",
    });
    button.innerHTML = `<svg width="14" height="14" viewBox="-7 -7 14 14" aria-hidden="true">${symbolPath(method)}</svg>${escape(nameMethod(method))}`;
    return button;
  });
  document.getElementById(`${id}-legend`).replaceChildren(...buttons);
}

const only = new Set();

function isolate() {
  for (const mark of document.querySelectorAll(".chart [data-method]"))
    mark.classList.toggle("dim", only.size > 0 && !only.has(mark.dataset.method));
  for (const button of document.querySelectorAll("[data-only]"))
    button.setAttribute("aria-pressed", String(only.has(button.dataset.only)));
}

function startTips() {
  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const { clientX: x, clientY: y } = event;
    tip.style.left = `${Math.min(x + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
  });
  const hide = () => {
    tip.hidden = true;
  };
  document.addEventListener("scroll", hide, { passive: true });
}
