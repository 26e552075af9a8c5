// Controls and addresses: what is chosen is in `state`, by name, and `show` draws all of it.

const state = {};
const usual = {};
const PAIRS = pairs();
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

function addSelect(form, name, label, options, first, tip) {
  const select = element("select", { id: name, name });
  for (const { value, label: words } of options) select.append(element("option", { value }, words));
  document.getElementById(form).append(element("label", { for: name, ...(tip ? { title: tip } : {}) }, label, select));
  select.addEventListener("change", () => {
    state[name] = select.value;
    show();
  });
  usual[name] = String(first ?? options[0]?.value ?? "");
  state[name] = usual[name];
}

function addAxis(form, name, id, first) {
  const options = axis(name).values.map((value, i) => ({ value, label: axis(name).titles[i] }));
  addSelect(form, id, axis(name).label, options, first, DATA.axis_words[name]);
}

function addControls() {
  for (const name of CONTROLS)
    addAxis("controls", name, name, DATA.primary[name] ?? DATA.first[name] ?? axis(name).values[0]);
  const outcomes = METRICS.map((m) => ({ value: m.name, label: m.label }));
  const first = ["fdp", "f1", "test_mse", "test_deviance"].find((name) => name in COLUMN);
  addSelect("controls", "metric", "Outcome", outcomes, first);
  const reset = element("button", { type: "button", id: "reset" }, "Reset");
  reset.addEventListener("click", () => {
    Object.assign(state, usual);
    only.clear();
    show();
  });
  document.getElementById("controls").append(reset);
  addSelect("uploads-controls", "epochs_shown", "Lines", [
    { value: "best", label: "each method at its best E" },
    { value: "all", label: "every E" },
  ]);
  document.getElementById("uploads-controls").hidden = !SEVERAL_EPOCHS;
  addSelect("contrast-controls", "pair", "Difference", PAIRS);
  addSelect("contrast-controls", "scope", "In", [
    { value: "one", label: `the chosen ${KIND}` },
    { value: "all", label: `all ${KIND}s` },
  ]);
  addSelect("ledger-controls", "cost", "Cost", BILLS.map((label) => ({ value: label, label })));
  for (const name of SIDE) addAxis("rows-controls", name, `row-${name}`, value(DATA.cells[0], name));
  const replicates = DATA.replicates[0].map((n) => ({ value: n, label: String(n) }));
  addSelect("rows-controls", "replicate", "Replicate to rerun", replicates);
  for (const form of document.querySelectorAll("form")) form.addEventListener("submit", (e) => e.preventDefault());
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
function code0(name) {
  return Math.max(0, axis(name).values.findIndex((v) => String(v) === state[name]));
}

function chosen() {
  return Object.fromEntries(CONTROLS.map((name) => [name, code0(name)]));
}

function describe(names = CONTROLS) {
  return names.map((name) => axis(name).titles[code0(name)]).join(", ");
}

// An epoch count tells cells apart only where a method has several.
function nameOf(cell, names) {
  const tells = (name) => name !== "epochs" || (SEVERAL_EPOCHS && word(cell, name) !== "none");
  return names
    .filter(tells)
    .map((name) => title(cell, name))
    .join(", ");
}

function groupName(cell) {
  return nameOf(cell, SIDE);
}

// Which choices change what a chart says; a finding is its title while these are the finding's own.
const OTHERS = CONTROLS.filter((name) => name !== "scenario");
const MATTERS = {
  overview: [...OTHERS, "metric"],
  tradeoff: CONTROLS.filter((name) => name !== "rule"),
  uploads: ["scenario"],
  contrast: [...OTHERS, "metric", "pair", "scope"],
};

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
  const metric = METRICS.find((m) => m.name === state.metric);
  const cells = findCells(chosen());
  measure();
  for (const select of document.querySelectorAll("select[name]")) select.value = state[select.name];
  const told = address();
  history.replaceState(null, "", told ? `#${told}` : location.pathname + location.search);
  drawOverview(metric);
  entitle("overview", `Mean ${within(metric.label)} in every ${KIND}${OTHERS.length ? `: ${describe(OTHERS)}` : ""}`);
  drawTradeoff();
  entitle("tradeoff", `F1 against test error: ${describe()}`);
  drawUploads();
  entitle("uploads", `Gap to the pooled optimum against uploads: ${describe(["scenario"])}`);
  showMeans(cells, metric);
  showContrast(metric);
  showSpread(cells, metric);
  showLedger(cells);
  showRows();
  isolate();
  document.getElementById("status").textContent =
    `Showing ${within(metric.label)}; ${describe()}; ${cells.length} ${cells.length === 1 ? "mean" : "means"}.`;
}

function showAll() {
  show();
  drawAgreement();
  drawTheory();
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

async function start() {
  startTips();
  startMenus();
  startPresses();
  addControls();
  watchBar();
  await readDoubles();
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
    drawAgreement();
    startTheory();
    startUse();
    startGrid();
    document.body.dataset.ready = "yes";
  });
}

startTheme();
// Let the browser paint the page before the charts are drawn.
requestAnimationFrame(() => setTimeout(start));
