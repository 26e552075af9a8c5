// Controls, tables and addresses: what is chosen is in `state`, by name, and `show` draws all of it.

const state = {};
const usual = {};
const PAIRS = pairs();
const COSTS = [...new Set(COLUMNS.map((c) => c.bill).filter(Boolean))].map((label) => ({
  label,
  parts: COLUMNS.filter((c) => c.bill === label),
}));
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
  document
    .getElementById(form)
    .append(element("label", { for: name, ...(tip ? { title: tip } : {}) }, label, select));
  select.addEventListener("change", () => {
    state[name] = select.value;
    show();
  });
  usual[name] = String(first ?? options[0]?.value ?? "");
  state[name] = usual[name];
}

function optionsOf(name) {
  return axis(name).values.map((value, i) => ({ value, label: axis(name).titles[i] }));
}

function addControls() {
  for (const name of CONTROLS)
    addSelect(
      "controls",
      name,
      axis(name).label,
      optionsOf(name),
      DATA.primary[name] ?? DATA.first[name] ?? axis(name).values[0],
      DATA.axis_words[name],
    );
  addSelect(
    "controls",
    "metric",
    "Outcome",
    METRICS.map((m) => ({ value: m.name, label: m.label })),
    ["fdp", "f1", "test_mse", "test_deviance"].find((name) => name in COLUMN),
  );
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
  addSelect(
    "ledger-controls",
    "cost",
    "Cost",
    COSTS.map((c) => ({ value: c.label, label: c.label })),
  );
  for (const name of SIDE)
    addSelect(
      "rows-controls",
      `row-${name}`,
      axis(name).label,
      optionsOf(name),
      axis(name).values[code(DATA.cells[0], name)],
      DATA.axis_words[name],
    );
  addSelect(
    "rows-controls",
    "replicate",
    "Replicate to rerun",
    DATA.replicates[0].map((n) => ({ value: n, label: String(n) })),
  );
  for (const form of document.querySelectorAll("form"))
    form.addEventListener("submit", (e) => e.preventDefault());
}

// The address carries what differs from the usual view, by name, so that a view can be sent.
function address(at) {
  const told = Object.entries(state).filter(([name, value]) => value !== usual[name]);
  return new URLSearchParams([
    ...(at ? [["at", at]] : []),
    ...told,
    ...(only.size ? [["only", [...only].join()]] : []),
  ]).toString();
}

function readAddress() {
  const told = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, usual);
  only.clear();
  for (const [name, value] of told) {
    const select = document.getElementById(name);
    if (name in state && [...select.options].some((o) => o.value === value)) state[name] = value;
  }
  for (const name of told.get("only")?.split(",") ?? []) if (name in DATA.methods) only.add(name);
  return told.get("at");
}

function follow() {
  const at = readAddress();
  show();
  const place = at && document.getElementById(at);
  if (place) {
    place.scrollIntoView();
    place.querySelector("h2")?.focus({ preventScroll: true });
  }
}

// The code of what is chosen on an axis that the page controls.
function code0(name) {
  return Math.max(
    0,
    axis(name).values.findIndex((v) => String(v) === state[name]),
  );
}

function chosen() {
  return Object.fromEntries(CONTROLS.map((a) => [a, code0(a)]));
}

function describe() {
  return CONTROLS.map((a) => axis(a).titles[code0(a)]).join(", ");
}

// An epoch count tells cells apart only where a method has several.
function tells(name, cell) {
  return name !== "epochs" || (SEVERAL_EPOCHS && word(cell, name) !== "none");
}

function nameOf(cell, names) {
  return names
    .filter((name) => tells(name, cell))
    .map((name) => title(cell, name))
    .join(", ");
}

function groupName(cell) {
  return nameOf(cell, SIDE);
}

// Which choices change what a chart says; a finding is its title while these are the finding's own.
const MATTERS = {
  overview: [...CONTROLS.filter((a) => a !== "scenario"), "metric"],
  tradeoff: CONTROLS.filter((a) => a !== "rule"),
  uploads: ["scenario"],
  contrast: [...CONTROLS.filter((a) => a !== "scenario"), "metric", "pair", "scope"],
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
  const codes = key.split(",").map(Number);
  for (const name of AXES) {
    const value = String(axis(name).values[codes[AXES.indexOf(name)]]);
    if (SIDE.includes(name)) state[`row-${name}`] = value;
    else state[name] = value;
  }
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
  entitle(
    "overview",
    `Mean ${within(metric.label)} in every ${KIND}${
      CONTROLS.length > 1
        ? `: ${CONTROLS.filter((a) => a !== "scenario")
            .map((a) => axis(a).titles[code0(a)])
            .join(", ")}`
        : ""
    }`,
  );
  drawTradeoff();
  entitle("tradeoff", `F1 against test error: ${describe()}`);
  drawUploads();
  entitle(
    "uploads",
    `Gap to the pooled optimum against uploads: ${axis("scenario").words[code0("scenario")]}`,
  );
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

// What the reader chose last time, as far as the browser remembers; else what the system says.
function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => {
    try {
      return localStorage.getItem("fedlasso-theme");
    } catch {
      return null;
    }
  };
  const now = () => remembered() ?? (dark.matches ? "dark" : "light");
  dress(now());
  dark.addEventListener("change", () => dress(now()));
  document.getElementById("theme").addEventListener("click", () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("fedlasso-theme", theme);
    } catch {
      /* a browser that keeps nothing */
    }
    dress(theme);
  });
}

function startPresses() {
  document.addEventListener("click", (event) => {
    const held = event.target.closest("[data-key]");
    if (held) return showRowsOf(held.dataset.key, held.dataset.replicate);
    const name = event.target.closest("[data-only]")?.dataset.only;
    if (name) {
      if (!only.delete(name)) only.add(name);
      return show();
    }
    const scenario = event.target.closest("[data-scenario]")?.dataset.scenario;
    if (scenario) {
      state.scenario = scenario;
      show();
    }
  });
  for (const press of document.querySelectorAll("[data-copy]"))
    press.addEventListener("click", () =>
      copy(document.getElementById(press.dataset.copy).textContent, press),
    );
}

// The bar that stays in view must not cover what a link leads to.
function watchBar() {
  const bar = document.getElementById("controls");
  const tell = () =>
    document.documentElement.style.setProperty(
      "--bar",
      `${getComputedStyle(bar).position === "sticky" ? bar.offsetHeight + 8 : 8}px`,
    );
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
