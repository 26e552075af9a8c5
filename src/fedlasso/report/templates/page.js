// Controls and addresses: what is chosen is in `state`, by name, and `show` draws all of it.

const state = {};
const usual = {};

function startControls() {
  for (const select of document.querySelectorAll("select[name]")) {
    usual[select.name] = [...select.options].find((option) => option.defaultSelected)?.value ?? "";
    select.addEventListener("change", () => {
      state[select.name] = select.value;
      show();
    });
  }
  byId("reset").addEventListener("click", () => {
    Object.assign(state, usual);
    only.clear();
    show();
  });
  document.addEventListener("submit", (event) => event.preventDefault());
}

// The address carries what differs from the usual view, by name, so that a view can be sent.
function address(at) {
  const differing = Object.entries(state).filter(([name, value]) => value !== usual[name]);
  const [first, last] = [at ? [["at", at]] : [], only.size ? [["only", [...only].join()]] : []];
  return new URLSearchParams([...first, ...differing, ...last]).toString();
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, usual);
  only.clear();
  for (const [name, value] of given) {
    const select = byId(name);
    if (name in state && [...select.options].some((o) => o.value === value)) state[name] = value;
  }
  for (const name of given.get("only")?.split(",") ?? []) if (name in DATA.methods) only.add(name);
  return given.get("at");
}

function follow() {
  const at = readAddress();
  show();
  const place = at && byId(at);
  if (place) lead(place, place.querySelector("h2"));
}

// The bar that stays in view must not cover what a link leads to.
function lead(place, focused) {
  const bar = byId("controls");
  const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight + 8 : 8;
  document.documentElement.style.setProperty("--bar", `${height}px`);
  place.scrollIntoView();
  focused?.focus({ preventScroll: true });
}

// The code of what is chosen on an axis that the page controls.
const code0 = (name) => Math.max(0, axis(name).values.findIndex((v) => String(v) === state[name]));
const chosen = () => Object.fromEntries(CONTROLS.map((name) => [name, code0(name)]));
const chosenValues = () => Object.fromEntries(CONTROLS.map((name) => [name, axis(name).values[code0(name)]]));
const chosenMetric = () => METRICS.find((m) => m.name === state.metric);
const describe = (names = CONTROLS) => names.map((name) => axis(name).titles[code0(name)]).join(", ");

// An epoch count distinguishes cells only where a method has several.
function nameOf(cell, names) {
  const distinguishes = (name) => name !== "epochs" || (SEVERAL_EPOCHS && word(cell, name) !== "none");
  return Array.from(names.filter(distinguishes), (name) => title(cell, name)).join(", ");
}

const groupName = (cell) => nameOf(cell, SIDE);

// Each section with the choices that change it: it is drawn again when one of them does, and a finding
// is the title of its chart while they are the finding's own.
const OTHERS = CONTROLS.filter((name) => name !== "scenario");
const SECTIONS = {
  overview: [showOverview, ...OTHERS, "metric"],
  tradeoff: [showTradeoff, ...CONTROLS.filter((name) => name !== "rule")],
  uploads: [showUploads, "scenario", ...ARMS, "epochs_shown"],
  means: [showMeans, ...CONTROLS, "metric"],
  contrast: [showContrast, ...OTHERS, "metric", "pair", "scope"],
  spread: [showSpread, ...CONTROLS, "metric"],
  ledger: [showLedger, ...CONTROLS, "cost"],
  rows: [showRows, ...CONTROLS, ...SIDE.map((name) => `row-${name}`), "replicate"],
};
const shown = {};

function redraw(name, cells, metric) {
  const [draw, ...choices] = SECTIONS[name];
  const scenario = name === "contrast" && state.scenario;
  const inputs = JSON.stringify([paper, widths, scenario, ...choices.map((key) => state[key])]);
  if (shown[name] !== inputs) draw(cells, metric);
  shown[name] = inputs;
}

function entitle(name, words) {
  const fits = ({ chart, view }) =>
    chart === name && SECTIONS[name].slice(1).every((key) => state[key] === String(view[key] ?? usual[key]));
  const finding = DATA.findings.find(fits);
  byId(`${name}-chart-title`).textContent = finding?.text ?? words;
  byId(`${name}-chart-title`).classList.toggle("found", Boolean(finding));
}

function showRowsOf(key, replicate) {
  const cell = key.split(",").map(Number);
  for (const name of AXES) state[SIDE.includes(name) ? `row-${name}` : name] = String(value(cell, name));
  if (replicate !== undefined) state.replicate = replicate;
  show();
  lead(byId("rows"), byId("row-method"));
}

function show() {
  const metric = chosenMetric();
  const cells = findCells(chosen());
  measure();
  for (const select of document.querySelectorAll("select[name]")) select.value = state[select.name];
  const hash = address();
  history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  for (const name of Object.keys(SECTIONS)) redraw(name, cells, metric);
  isolate();
  const count = `${cells.length} ${cells.length === 1 ? "mean" : "means"}`;
  byId("status").textContent = `Showing ${within(metric.label)}; ${describe()}; ${count}.`;
}

function showAll() {
  measure();
  showAgreement();
  showTheory();
  show();
}

function drawForPaper(width) {
  paper = width;
  for (const words of document.querySelectorAll("#explain details")) words.open = width > 0;
  showAll();
}

// The colours that the reader chose last time; else those of the system.
function startTheme() {
  let storage = {};
  try {
    storage = localStorage;
  } catch {
    // This browser keeps nothing.
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const dress = () => {
    const theme = storage["fedlasso-theme"] ?? (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    byId("theme").textContent = theme === "dark" ? "Light colours" : "Dark colours";
  };
  dress();
  dark.addEventListener("change", dress);
  byId("theme").addEventListener("click", () => {
    storage["fedlasso-theme"] = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    dress();
  });
}

function press(event) {
  const find = (name) => event.target.closest(`[data-${name}]`);
  const [mark, legend, small, text, take] = ["key", "only", "scenario", "copy", "take"].map(find);
  if (take) TAKE[take.dataset.take](take.dataset.of, take);
  if (text) copy(byId(text.dataset.copy).textContent, text);
  for (const menu of document.querySelectorAll(".menu[open]")) menu.open = menu.contains(event.target) && !take;
  if (mark) return showRowsOf(mark.dataset.key, mark.dataset.replicate);
  if (legend && !only.delete(legend.dataset.only)) only.add(legend.dataset.only);
  if (small) state.scenario = small.dataset.scenario;
  if (legend || small) show();
}

const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function start() {
  startTips();
  document.addEventListener("click", press);
  startControls();
  await readDoubles();
  // The first chart is painted before the others are drawn.
  readAddress();
  measure();
  redraw("overview", [], chosenMetric());
  await painted();
  follow();
  addEventListener("hashchange", follow);
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(showAll, 120);
  });
  addEventListener("beforeprint", () => drawForPaper(690));
  addEventListener("afterprint", () => drawForPaper(0));
  setTimeout(() => {
    showAgreement();
    startTheory();
    startUse();
    startGrid();
    document.body.dataset.ready = "yes";
  });
}

startTheme();
painted().then(start);
