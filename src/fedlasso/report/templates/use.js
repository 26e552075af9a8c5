// "What should I use?": the recorded scenario nearest to the reader's own, and who does best there.

const AIMS = [
  { value: "prediction", label: "predict well", metric: "test_mse" },
  { value: "selection", label: "find the right columns", metric: "f1" },
  { value: "objective", label: "reach the pooled Lasso", metric: "relative_gap" },
];

const FOUR = new Set(["CD", "ST", "P", "DA"]);

// What single data sets show: the middle 80% of many, or all of a few.
function spreadOf(values) {
  const known = values.filter((v) => !Number.isNaN(v));
  const share = known.length < 10 ? 0 : 0.1;
  const ends = [share, 1 - share].map((at) => brief(quantile(known, at))).join(" to ");
  return share ? `80% of ${known.length} data sets: ${ends}` : `${known.length} data sets: ${ends}`;
}

function nearestScenario(sites, columns) {
  const away = ([, s]) => Math.abs(Math.log(s.sites / sites)) + Math.abs(Math.log(s.p / columns));
  // On a tie the first one, which is the baseline.
  return Object.entries(DATA.scenarios)
    .filter(([name]) => axis("scenario").values.includes(name))
    .reduce((best, each) => (away(each) < away(best) ? each : best));
}

function command(method, epochs, budget, sites) {
  const goal = method.startsWith("goal:") ? method.slice(5) : null;
  const how = goal
    ? `--goal ${goal} --uploads ${budget}`
    : `--procedure ${method}${epochs ? ` --epochs ${epochs}` : ""}`;
  const files = sites > 5 ? "site*.csv" : Array.from({ length: sites }, (_, i) => `site${i + 1}.csv`).join(" ");
  return `fedlasso fit ${files} --target y ${how} --out model`;
}

function advise() {
  const read = (id) => Math.max(1, Number(document.getElementById(id).value) || 1);
  const [sites, columns, wanted] = ["use-sites", "use-columns", "use-budget"].map(read);
  const aim = AIMS[document.getElementById("use-aim").selectedIndex];
  const out = document.getElementById("use-answer");
  const [scenario] = nearestScenario(sites, columns);
  const budgets = AXES.includes("budget") ? axis("budget").values : [wanted];
  const budget = budgets.filter((b) => b <= wanted).at(-1);
  if (budget === undefined) {
    out.replaceChildren(
      element(
        "p",
        {},
        `These records begin at ${budgets[0]} uploads; with ${wanted} nothing is known from them.`,
      ),
    );
    return;
  }
  const where = { scenario: axis("scenario").values.indexOf(scenario) };
  if (AXES.includes("budget")) where.budget = budgets.indexOf(budget);
  if (AXES.includes("panel")) where.panel = Math.max(0, axis("panel").values.indexOf("upload"));
  const metric = METRICS.find((m) => m.name === aim.metric);
  const sign = metric.better === "higher" ? -1 : 1;
  const ranked = findCells(where)
    .map((cell) => ({ cell, ...summarise(valuesOf(cell, metric.name)) }))
    .filter((r) => r.n > 0)
    .sort((a, b) => sign * (a.mean - b.mean));
  // What differs by less than a thousandth, or is at the optimum, is equally good: the fewest uploads decide.
  const equal = (r) =>
    Math.abs(r.mean - ranked[0].mean) <= 1e-3 * Math.abs(ranked[0].mean) ||
    (metric.scale === "log" && r.mean <= 1e-8);
  const sent = (r) => ("upload_bytes" in COLUMN ? summarise(valuesOf(r.cell, "upload_bytes")).mean : 0);
  const tied = ranked.filter(equal);
  const named = new Set(tied.map((r) => groupName(r.cell)));
  const best = tied.reduce((a, b) => (sent(b) < sent(a) ? b : a));
  const method = axis("method").values[code(best.cell, "method")];
  const other = ranked.find((r) => word(r.cell, "method") !== method && !tied.includes(r));
  const epochs = AXES.includes("epochs") ? axis("epochs").values[code(best.cell, "epochs")] : 0;
  // Choices of the records beside the method: how a candidate is chosen, and whether the penalty is too.
  const choices = ["rule", "tuning"].filter((a) => AXES.includes(a)).map((a) => word(best.cell, a));
  const lines = ["f1", "test_mse", "relative_gap"]
    .filter((n) => n in COLUMN)
    .map((name) => {
      const values = valuesOf(best.cell, name);
      const { n, mean, se } = summarise(values);
      const label = METRICS.find((m) => m.name === name).label;
      if (!n)
        return [label, "—", "it has a penalty of its own, so there is no gap to the common one's optimum"];
      return [
        label,
        Number.isNaN(se) ? brief(mean) : `${toError(mean, 1.96 * se)} ± ${toError(1.96 * se, 1.96 * se)}`,
        spreadOf(values),
      ];
    });
  const answer = element(
    "p",
    { class: "answer" },
    "Use ",
    element("strong", {}, groupName(best.cell)),
    choices.length && !method.startsWith("goal:") && !method.startsWith("Secant")
      ? ` (${choices.join(", ")})`
      : "",
    `: ${named.size > 1 ? `of ${named.size} equally good choices the one that uploads least, with the` : "the"} best mean ${within(metric.label)} of the ${ranked.length} choices recorded for “${axis("scenario").words[where.scenario]}” at ${budget} uploads.`,
  );
  const table = element(
    "table",
    {},
    element(
      "thead",
      {},
      element(
        "tr",
        {},
        ...["Expected", "Mean ± 1.96 SE", "Single data sets"].map((t) =>
          element("th", { scope: "col", class: "text" }, t),
        ),
      ),
    ),
    element(
      "tbody",
      {},
      ...lines.map((row) => element("tr", {}, ...row.map((t) => element("td", { class: "text" }, t)))),
    ),
  );
  const parts = [
    answer,
    element("div", { class: "scroll wrap", tabindex: "0", role: "region", "aria-label": "What to expect" }, table),
  ];
  if (other) {
    const [a, b] = [valuesOf(best.cell, metric.name), valuesOf(other.cell, metric.name)];
    const { mean, se } = summarise(a.map((v, i) => v - b[i]));
    parts.push(
      element(
        "p",
        { class: "note" },
        `Next best: ${groupName(other.cell)}; difference in mean ${within(metric.label)} ${toError(mean, se)} (paired SE ${toError(se, se)}).`,
      ),
    );
  }
  const { sites: K, p, sizes, snr } = DATA.scenarios[scenario];
  parts.push(
    element(
      "p",
      { class: "note" },
      `Nearest recorded scenario: ${K} sites of ${sizes} rows, ${p} columns, signal-to-noise ratio ${snr}. Your data differ in ways that no simulation knows: hold rows back and check.`,
    ),
  );
  const code_line = element("code", { id: "use-command" }, command(method, SEVERAL_EPOCHS || FOUR.has(method) ? epochs : 0, wanted, sites));
  const press = element("button", { type: "button" }, "Copy");
  press.addEventListener("click", () => copy(code_line.textContent, press));
  parts.push(element("p", { class: "line" }, code_line, " ", press));
  out.replaceChildren(...parts);
}

function startUse() {
  const place = document.getElementById("use");
  if (!place) return;
  for (const id of ["use-sites", "use-columns", "use-budget"])
    document.getElementById(id).addEventListener("input", advise);
  const select = document.getElementById("use-aim");
  AIMS.splice(0, AIMS.length, ...AIMS.filter((aim) => aim.metric in COLUMN));
  for (const aim of AIMS) select.append(element("option", { value: aim.value }, aim.label));
  select.addEventListener("change", advise);
  advise();
}
