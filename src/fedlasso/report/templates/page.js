// Controls and addresses: what is chosen is in `state`, by name, and `show` draws all of it.

const state = {};
const usual = {};
const BILLS = [...new Set(COLUMNS.map((c) => c.bill).filter(Boolean))];
const COSTS = BILLS.map((label) => ({ label, parts: COLUMNS.filter((c) => c.bill === label) }));
const SCENARIO_TIPS = Object.fromEntries(
  axis("scenario").values.map((name, i) => [axis("scenario").words[i], DATA.scenarios[name]?.words]),
);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function startControls() {
  for (const select of document.querySelectorAll("select[name]")) {
    usual[select.name] = [...select.options].find((option) => option.defaultSelected)?.value ?? "";
    select.addEventListener("change", () => {
      state[select.name] = select.value;
      show();
    });
  }
  document.getElementById("reset").addEventListener("click", () => {
    Object.assign(state, usual);
    only.clear();
    show();
  });
  document.addEventListener("submit", (event) => event.preventDefault());
}

// The address carries what differs from the usual view, by name, so that a view can be sent.
function address(at) {
  const differing = Object.entries(state).filter(([name, value]) => value !== usual[name]);
  const isolated = only.size ? [["only", [...only].join()]] : [];
  return new URLSearchParams([...(at ? [["at", at]] : []), ...differing, ...isolated]).toString();
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, usual);
  only.clear();
  for (const [name, value] of given) {
    const select = document.getElementById(name);
    if (name in state && [...select.options].some((o) => o.value === value)) state[name] = value;
  }
  for (const name of given.get("only")?.split(",") ?? []) if (name in DATA.methods) only.add(name);
  return given.get("at");
}

function follow() {
  const at = readAddress();
  show();
  const place = at && document.getElementById(at);
  if (!place) return;
  place.scrollIntoView();
  place.querySelector("h2")?.focus({ preventScroll: true });
}

// The code of what is chosen on an axis that the page controls.
const code0 = (name) => Math.max(0, axis(name).values.findIndex((v) => String(v) === state[name]));
const chosen = () => Object.fromEntries(CONTROLS.map((name) => [name, code0(name)]));
const chosenValues = () => Object.fromEntries(CONTROLS.map((name) => [name, axis(name).values[code0(name)]]));
const chosenMetric = () => METRICS.find((m) => m.name === state.metric);
const describe = (names = CONTROLS) => names.map((name) => axis(name).titles[code0(name)]).join(", ");

// An epoch count tells cells apart only where a method has several.
function nameOf(cell, names) {
  const tells = (name) => name !== "epochs" || (SEVERAL_EPOCHS && word(cell, name) !== "none");
  const titles = names.filter(tells).map((name) => title(cell, name));
  return titles.join(", ");
}

const groupName = (cell) => nameOf(cell, SIDE);

// Which choices change what a chart says: it is drawn again when one of them does, and a finding is
// its title while they are the finding's own.
const OTHERS = CONTROLS.filter((name) => name !== "scenario");
const MATTERS = {
  overview: [...OTHERS, "metric"],
  tradeoff: CONTROLS.filter((name) => name !== "rule"),
  uploads: ["scenario", ...ARMS, "epochs_shown"],
  means: [...CONTROLS, "metric"],
  contrast: [...OTHERS, "metric", "pair", "scope"],
  spread: [...CONTROLS, "metric"],
  ledger: [...CONTROLS, "cost"],
  rows: [...CONTROLS, ...SIDE.map((name) => `row-${name}`), "replicate"],
};
const shown = {};

function redraw(name, draw) {
  const choices = [...MATTERS[name], name === "contrast" && state.scope === "one" ? "scenario" : ""];
  const inputs = JSON.stringify([paper, widths, choices.map((key) => state[key])]);
  if (shown[name] !== inputs) draw();
  shown[name] = inputs;
}

function entitle(name, words) {
  const fits = ({ chart, view }) =>
    chart === name && MATTERS[name].every((key) => state[key] === String(view[key] ?? usual[key]));
  const finding = DATA.findings.find(fits);
  const place = document.getElementById(`${name}-chart-title`);
  place.textContent = finding?.text ?? words;
  place.classList.toggle("found", Boolean(finding));
}

function showRowsOf(key, replicate) {
  const cell = key.split(",").map(Number);
  for (const name of AXES) state[SIDE.includes(name) ? `row-${name}` : name] = String(value(cell, name));
  if (replicate !== undefined) state.replicate = replicate;
  show();
  document.getElementById("rows").scrollIntoView();
  document.getElementById("row-method").focus({ preventScroll: true });
}

function show() {
  const metric = chosenMetric();
  const cells = findCells(chosen());
  measure();
  for (const select of document.querySelectorAll("select[name]")) select.value = state[select.name];
  const told = address();
  history.replaceState(null, "", told ? `#${told}` : location.pathname + location.search);
  redraw("overview", showOverview);
  redraw("tradeoff", showTradeoff);
  redraw("uploads", showUploads);
  redraw("means", () => showMeans(cells, metric));
  redraw("contrast", () => showContrast(metric));
  redraw("spread", () => showSpread(cells, metric));
  redraw("ledger", () => showLedger(cells));
  redraw("rows", showRows);
  isolate();
  document.getElementById("status").textContent =
    `Showing ${within(metric.label)}; ${describe()}; ${cells.length} ${cells.length === 1 ? "mean" : "means"}.`;
}

function showAll() {
  show();
  showAgreement();
  showTheory();
  isolate();
}

function drawForPaper(width) {
  paper = width;
  for (const words of document.querySelectorAll("#explain details")) words.open = width > 0;
  showAll();
}

function dress(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "Light colours" : "Dark colours";
}

// A browser may refuse to keep anything.
function remember(action) {
  try {
    return action(localStorage);
  } catch {
    return null;
  }
}

// The colours that the reader chose last time; else those of the system.
function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const now = () => remember((kept) => kept.getItem("fedlasso-theme")) ?? (dark.matches ? "dark" : "light");
  dress(now());
  dark.addEventListener("change", () => dress(now()));
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remember((kept) => kept.setItem("fedlasso-theme", theme));
    dress(theme);
  });
}

function startPresses() {
  document.addEventListener("click", (event) => {
    const find = (name) => event.target.closest(`[data-${name}]`);
    const [mark, legend, small, button] = ["key", "only", "scenario", "copy"].map(find);
    if (button) copy(document.getElementById(button.dataset.copy).textContent, button);
    if (mark) return showRowsOf(mark.dataset.key, mark.dataset.replicate);
    if (legend && !only.delete(legend.dataset.only)) only.add(legend.dataset.only);
    if (small) state.scenario = small.dataset.scenario;
    if (legend || small) show();
  });
}

// The bar that stays in view must not cover what a link leads to.
function watchBar() {
  const bar = document.getElementById("controls");
  const tell = () => {
    const height = getComputedStyle(bar).position === "sticky" ? bar.offsetHeight + 8 : 8;
    document.documentElement.style.setProperty("--bar", `${height}px`);
  };
  new ResizeObserver(tell).observe(bar);
  tell();
}

const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function start() {
  startTips();
  startMenus();
  startPresses();
  startControls();
  watchBar();
  await readDoubles();
  // The first chart is painted before the others are drawn.
  readAddress();
  measure();
  redraw("overview", showOverview);
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
