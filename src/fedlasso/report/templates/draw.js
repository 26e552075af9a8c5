// Scales, axes and marks as SVG text. Colours of words and lines are the page's own variables, so
// that themes and paper change them without drawing again.

const FLOOR = 1e-16; // where a logarithmic axis ends; rounding leaves nothing closer

function escape(text) {
  return String(text).replace(
    /[&<>"]/g,
    (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c],
  );
}

function tag(name, attributes = {}, ...children) {
  let told = "";
  for (const [k, v] of Object.entries(attributes))
    if (v !== undefined && v !== null)
      told += ` ${k}="${typeof v === "number" ? Math.round(v * 100) / 100 : escape(v)}"`;
  return children.length ? `<${name}${told}>${children.join("")}</${name}>` : `<${name}${told}/>`;
}

// Numbers as people write them: three digits, powers of ten where zeros would not be counted.
function brief(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6))
    return value.toExponential(1).replace(".0e", "e").replace("e+", "e").replaceAll("-", "−");
  return (
    size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)))
  ).replace("-", "−");
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let place = 0;
  while (Math.abs(value) >= 1024 && place < 3) {
    value /= 1024;
    place += 1;
  }
  return `${Number(value.toPrecision(3))} ${units[place]}`;
}

function withUnit(value, unit) {
  if (Number.isNaN(value)) return "—";
  return unit === "bytes" ? bytes(value) : unit ? `${brief(value)} ${unit}` : brief(value);
}

// A number with as many decimals as give its standard error two digits.
function toError(value, se) {
  if (!Number.isFinite(value) || !(se > 0)) return brief(value);
  const decimals = Math.max(0, 1 - Math.floor(Math.log10(se)));
  if (decimals > 6 || Math.abs(value) >= 1e6) return brief(value);
  const told = value.toFixed(decimals);
  return (Number(told) === 0 ? told.replace("-", "") : told).replace("-", "−");
}

function extent(values, { scale, zero, pad = 0.06 } = {}) {
  if (scale === "share") return [0, 1];
  const known = values.filter((v) => Number.isFinite(v));
  if (!known.length) return scale === "log" ? [1e-3, 1] : [0, 1];
  let low = Math.min(...known, ...(zero ? [0] : []));
  let high = Math.max(...known, ...(zero ? [0] : []));
  if (scale === "log") {
    low = Math.max(low, FLOOR);
    high = Math.max(high, 10 * low);
    return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))];
  }
  const room = (high - low || Math.abs(high) || 1) * pad;
  return [zero && low === 0 ? 0 : low - room, high + room];
}

// A scale takes a value to a place between two ends; it knows its ticks.
function makeScale({ kind = "linear", domain, values, unit }, ends) {
  const [from, to] = ends;
  const place = (share) => from + share * (to - from);
  if (kind === "band") {
    const step = 1 / Math.max(1, values.length);
    const scale = (value) => place((values.indexOf(value) + 0.5) * step);
    return Object.assign(scale, { ticks: values, step: Math.abs(step * (to - from)) });
  }
  if (kind === "log") {
    const [low, high] = domain.map(Math.log10);
    const every = Math.ceil((high - low) / Math.max(2, Math.abs(to - from) / 45));
    const steps = high - low <= 2.2 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let k = Math.ceil(low - 1e-9) - (steps.length > 1 ? 1 : 0); k <= high + 1e-9; k += every)
      for (const step of steps)
        if (step * 10 ** k >= domain[0] * 0.999 && step * 10 ** k <= domain[1] * 1.001)
          ticks.push(Number(`${step}e${k}`));
    return Object.assign((v) => place((Math.log10(Math.max(v, domain[0])) - low) / (high - low)), { ticks });
  }
  if (kind === "symlog") {
    const size = Math.max(...domain.map(Math.abs)) || 1;
    const small = size / 1e4;
    const bend = (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / small);
    const [low, high] = domain.map(bend);
    const powers = [size, size / 100].map((v) => 10 ** Math.floor(Math.log10(v)));
    const ticks = [...powers.map((v) => -v), 0, ...powers.reverse()].filter(
      (v) => v >= domain[0] && v <= domain[1],
    );
    return Object.assign((v) => place((bend(v) - low) / (high - low || 1)), { ticks });
  }
  const [low, high] = domain;
  // Labels stand side by side along x, and on top of each other along y.
  const rough = (high - low) / Math.max(2, Math.abs(to - from) / (to > from ? 75 : 45));
  const power = 10 ** Math.floor(Math.log10(rough));
  // Bytes are counted in powers of two, all else in tens.
  const steps =
    unit === "bytes"
      ? [-1, 0].map((k) => 2 ** (Math.ceil(Math.log2(rough)) + k))
      : [0.5, 1, 2, 5, 10].map((m) => m * power);
  const first = steps.findIndex((step) => step >= rough * 0.999);
  const every = (step) => {
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
      ticks.push(Number((k * step).toPrecision(12)));
    return ticks;
  };
  // One label alone says nothing about a scale.
  const wide = every(steps[first]);
  const ticks = wide.length > 1 ? wide : every(steps[first - 1]);
  return Object.assign((v) => place((v - low) / (high - low)), { ticks });
}

// Marks. `method` lets the legend isolate; `tip` is what the pointer is told.
const SHAPES = {
  circle: "M4,0A4,4,0,1,1,-4,0A4,4,0,1,1,4,0Z",
  square: "M-3.6,-3.6H3.6V3.6H-3.6Z",
  "triangle-up": "M0,-4.8L4.6,3.4H-4.6Z",
  "triangle-down": "M0,4.8L4.6,-3.4H-4.6Z",
  "triangle-left": "M-4.8,0L3.4,-4.6V4.6Z",
  "triangle-right": "M4.8,0L-3.4,-4.6V4.6Z",
  diamond: "M0,-5.2L5.2,0L0,5.2L-5.2,0Z",
  narrow: "M0,-5.8L3.2,0L0,5.8L-3.2,0Z",
  cross: "M-1.5,-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5V-1.5H-1.5Z",
  saltire: "M-4.6,-2.6L-2.6,-4.6L0,-2L2.6,-4.6L4.6,-2.6L2,0L4.6,2.6L2.6,4.6L0,2L-2.6,4.6L-4.6,2.6L-2,0Z",
  star: "M0,-5.6L1.5,-1.8L5.4,-1.7L2.3,0.8L3.3,4.6L0,2.4L-3.3,4.6L-2.3,0.8L-5.4,-1.7L-1.5,-1.8Z",
  pentagon: "M0,-5L4.8,-1.5L2.9,4H-2.9L-4.8,-1.5Z",
};

function look(method) {
  return DATA.methods[method] ?? { colour: "var(--ink)", shape: "cross" };
}

function point(x, y, method, { tip, key, open, size = 1, replicate } = {}) {
  const { colour, shape } = look(method);
  return tag("path", {
    class: "mark point",
    d: SHAPES[shape],
    transform: `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${size})`,
    fill: open ? "var(--back)" : colour,
    stroke: colour,
    "stroke-width": open ? 1.6 : 0.6,
    "data-method": method,
    "data-tip": tip,
    "data-key": key,
    "data-replicate": replicate,
  });
}

function rule(x1, y1, x2, y2, { method, colour, width = 1.6, dash, tip } = {}) {
  return tag("line", {
    x1,
    y1,
    x2,
    y2,
    stroke: colour ?? look(method).colour,
    "stroke-width": width,
    "stroke-dasharray": dash,
    "data-method": method,
    "data-tip": tip,
    class: "mark rule",
  });
}

function line(points, method, { width = 1.6, dash, opacity } = {}) {
  return tag("polyline", {
    points: points.map((p) => p.map((v) => v.toFixed(1)).join()).join(" "),
    fill: "none",
    stroke: look(method).colour,
    "stroke-width": width,
    "stroke-dasharray": dash,
    opacity,
    "data-method": method,
    class: "mark line",
  });
}

function text(
  x,
  y,
  words,
  { anchor = "start", colour = "var(--ink)", size = 12, weight, method, rotate, tip, halo } = {},
) {
  return tag(
    "text",
    {
      x,
      y,
      "text-anchor": anchor,
      fill: colour,
      "font-size": size,
      "font-weight": weight,
      "data-method": method,
      "data-tip": tip,
      transform: rotate ? `rotate(${rotate} ${x} ${y})` : undefined,
      // Words among marks stay readable: the page shows around them.
      ...(halo
        ? { stroke: "var(--back)", "stroke-width": 3, "stroke-linejoin": "round", "paint-order": "stroke" }
        : {}),
    },
    escape(words),
  );
}

// One pair of axes with marks on it, as a group; `left` is the room for the labels of the y axis.
function panel({ width, height, x, y, marks, left, right = 16, top = 10, bottom = 40, title }) {
  const yLabels = (y.kind === "band" ? y.values : makeScale(y, [height, 0]).ticks).map((v) =>
    (y.say ?? brief)(v),
  );
  left ??= Math.min(
    width * 0.45,
    16 + (y.label ? 16 : 0) + 6.9 * Math.max(...yLabels.map((t) => String(t).length), 2),
  );
  const X = makeScale(x, [left, width - right]);
  const Y = makeScale(y, y.kind === "band" ? [top, height - bottom] : [height - bottom, top]);
  const grid = [];
  // Names that are too long for their side are smaller, all of them, before any is broken into lines.
  const nameOf = (v) => String((y.say ?? brief)(v));
  const fits = Y.ticks.every((v) => widthOfWords(nameOf(v), 12) <= left - 12);
  const size = y.kind !== "band" || fits ? 12 : 10.5;
  for (const v of Y.ticks) {
    grid.push(
      rule(left, Y(v), width - right, Y(v), { colour: "var(--line)", width: 1 }).replace("mark rule", "grid"),
    );
    const words = nameOf(v);
    const lines = y.kind === "band" ? breakWords(words, left - 12, size) : [words];
    lines.forEach((told, i) =>
      grid.push(
        text(left - 7, Y(v) + 4 + (i - (lines.length - 1) / 2) * size, told, {
          anchor: "end",
          size,
          tip: y.tips?.[v],
        }),
      ),
    );
  }
  // Where labels would run into each other, every second or third is left out.
  const longest = Math.max(...X.ticks.map((v) => String((x.say ?? brief)(v)).length));
  const every = x.kind === "band" ? Math.ceil((6.6 * longest + 6) / X.step) : 1;
  X.ticks.forEach((v, i) => {
    if (x.kind !== "band")
      grid.push(
        rule(X(v), top, X(v), height - bottom, { colour: "var(--line)", width: 1 }).replace(
          "mark rule",
          "grid",
        ),
      );
    if (i % every === 0)
      grid.push(text(X(v), height - bottom + 16, (x.say ?? brief)(v), { anchor: "middle" }));
  });
  if (x.label) {
    // In the middle of the axis, unless it would be cut there.
    const half = widthOfWords(x.label, 12) / 2 + 2;
    const middle = Math.min(Math.max((left + width - right) / 2, half), width - half);
    grid.push(text(middle, height - bottom + 33, x.label, { anchor: "middle" }));
  }
  if (y.label) grid.push(text(13, (top + height - bottom) / 2, y.label, { anchor: "middle", rotate: -90 }));
  if (title) {
    // A title that is too long for its panel is smaller.
    const start = Math.min(left, 30);
    const size = Math.min(12.5, (12.5 * (width - start)) / (1.1 * widthOfWords(title, 12.5)));
    grid.push(text(start, top - 11, title, { weight: 600, size }));
  }
  return grid.join("") + marks(X, Y, { left, right: width - right, top, bottom: height - bottom }).join("");
}

function svg(width, height, description, body) {
  return tag(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": description,
      "font-family": "system-ui, sans-serif",
    },
    body,
  );
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

function put(id, height, description, parts) {
  document.getElementById(id).innerHTML = svg(widthOf(id), height, description, parts);
}

function nothing(id, words = "No finished replicate for this choice") {
  put(id, 60, words, text(10, 34, words));
}

// The legend names methods once; choosing one dims the others in every chart.
function legend(id, methods) {
  const place = document.getElementById(`${id}-legend`);
  place.replaceChildren(
    ...methods.map((method) => {
      const press = element("button", {
        type: "button",
        "data-only": method,
        "aria-pressed": String(only.has(method)),
        title: DATA.words[method] ?? "",
      });
      press.innerHTML =
        svg(
          14,
          14,
          "",
          tag("g", { transform: "translate(7,7)" }, point(0, 0, method).replace(/data-method="[^"]*"/, "")),
        ).replace('role="img" aria-label=""', 'aria-hidden="true"') + escape(method);
      return press;
    }),
  );
}

const only = new Set();

function isolate() {
  for (const mark of document.querySelectorAll(".chart [data-method]"))
    mark.classList.toggle("dim", only.size > 0 && !only.has(mark.dataset.method));
  for (const press of document.querySelectorAll("[data-only]"))
    press.setAttribute("aria-pressed", String(only.has(press.dataset.only)));
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
  document.addEventListener(
    "scroll",
    () => {
      tip.hidden = true;
    },
    { passive: true },
  );
}
