// "What should I use?": the recorded scenario nearest to the reader's own, and who does best there.

// What single data sets show: the middle 80% of many, or all of a few.
function spreadOf(values) {
  const { length } = knownOf(values);
  const part = length < 10 ? 0 : 0.1;
  const ends = [part, 1 - part].map((at) => brief(Plot.quantile(values, at))).join(" to ");
  return `${part ? "80% of " : ""}${length} data sets: ${ends}`;
}

function nearestScenario(sites, columns) {
  const away = ([, s]) => Math.abs(Math.log(s.sites / sites)) + Math.abs(Math.log(s.p / columns));
  // On a tie the first one, which is the baseline.
  return Object.entries(DATA.scenarios)
    .filter(([name]) => axis("scenario").values.includes(name))
    .reduce((best, each) => (away(each) < away(best) ? each : best));
}

function command(method, epochs, budget, sites) {
  const byGoal = `--goal ${method.replace("goal:", "")} --uploads ${budget}`;
  const how = method.startsWith("goal:") ? byGoal : `--procedure ${method}${epochs ? ` --epochs ${epochs}` : ""}`;
  const files = sites > 5 ? "site*.csv" : Array.from({ length: sites }, (_, i) => `site${i + 1}.csv`).join(" ");
  return `fedlasso fit ${files} --target y ${how} --out model`;
}

function advise() {
  const read = (id) => Math.max(1, Number(byId(id).value) || 1);
  const [sites, columns, wanted] = ["use-sites", "use-columns", "use-budget"].map(read);
  const [scenario, settings] = nearestScenario(sites, columns);
  const budgets = axis("budget").values;
  const budget = budgets.filter((b) => b <= wanted).at(-1);
  byId("use-known").hidden = budget === undefined;
  const unknown = `These records begin at ${budgets[0]} uploads, so they do not show what ${wanted} can do.`;
  byId("use-unknown").textContent = budget === undefined ? unknown : "";
  if (budget === undefined) return;
  const where = { scenario: axis("scenario").values.indexOf(scenario), budget: budgets.indexOf(budget) };
  if (AXES.includes("panel")) where.panel = Math.max(0, axis("panel").values.indexOf("upload"));
  const metric = METRICS.find((m) => m.name === byId("use-aim").selectedOptions[0].dataset.metric);
  // A user's model is fitted to all rows, so fits by goal to the training rows only are left out.
  const usable = (cell) => !value(cell, "method").endsWith(":training");
  const { ranked, tied, best, other } = rank(findCells(where).filter(usable), metric);
  const method = value(best.cell, "method");
  // Choices of the records beside the method: how a candidate is chosen, and whether the penalty is too.
  const choices = ["rule", "tuning"].filter((name) => AXES.includes(name)).map((name) => word(best.cell, name));
  const plain = !choices.length || method.startsWith("goal:") || method.startsWith("Secant");
  const equal = new Set(tied.map((row) => groupName(row.cell))).size;
  const least = equal > 1 ? `of ${equal} equally good choices the one with the fewest uploads, with the` : "the";
  const among = `${ranked.length} choices recorded for “${axis("scenario").words[where.scenario]}” at ${budget} uploads`;
  const epochs = AXES.includes("epochs") && (SEVERAL_EPOCHS || "CD ST P DA".split(" ").includes(method)) ? value(best.cell, "epochs") : 0;
  byId("use-best").textContent = groupName(best.cell);
  byId("use-why").textContent =
    `${plain ? "" : ` (${choices.join(", ")})`}: ${least} best mean ${within(metric.label)} of the ${among}.`;
  byId("use-next").textContent = other ? nextBest(best, other, metric) : "";
  byId("use-nearest").textContent =
    `Nearest recorded scenario: ${settings.sites} sites of ${settings.sizes} rows, ${settings.p} columns, ` +
    `signal-to-noise ratio ${settings.snr}.`;
  byId("use-command").textContent = command(method, epochs, wanted, sites);
  const rows = ["f1", "test_mse", "relative_gap"].filter((name) => name in COLUMN).map((name) => expected(best.cell, name));
  fillTable("use-table", "What to expect", ["Expected", "Mean ± 1.96 SE", "Single data sets"].map((name) => [name, TEXT]), rows);
}

// The best cell: of means that are alike, the one with the fewest uploads.
function rank(cells, metric) {
  const sign = metric.better === "higher" ? -1 : 1;
  const means = cells.map((cell) => ({ cell, ...summarise(valuesOf(cell, metric.name)) }));
  const ranked = means.filter((row) => row.n > 0).sort((a, b) => sign * (a.mean - b.mean));
  const tied = ranked.filter((row) => alike(row.mean, ranked[0].mean, metric));
  const sent = (row) => ("upload_bytes" in COLUMN ? summarise(valuesOf(row.cell, "upload_bytes")).mean : 0);
  const best = tied.reduce((a, b) => (sent(b) < sent(a) ? b : a));
  const other = ranked.find((row) => code(row.cell, "method") !== code(best.cell, "method") && !tied.includes(row));
  return { ranked, tied, best, other };
}

function expected(cell, name) {
  const values = valuesOf(cell, name);
  const { n, mean, se } = summarise(values);
  const why = "it has a penalty of its own, so there is no gap to the optimum at the common penalty";
  const interval = Number.isNaN(se) ? brief(mean) : `${toError(mean, 1.96 * se)} ± ${toError(1.96 * se, 1.96 * se)}`;
  return { Expected: METRICS.find((m) => m.name === name).label, "Mean ± 1.96 SE": interval, "Single data sets": n ? spreadOf(values) : why };
}

function nextBest(best, other, metric) {
  const [a, b] = [best, other].map((row) => valuesOf(row.cell, metric.name));
  const { mean, se } = summarise(a.map((v, i) => v - b[i]));
  const difference = `difference in mean ${within(metric.label)} ${toError(mean, se)} (paired SE ${toError(se, se)})`;
  return `Next best: ${groupName(other.cell)}; ${difference}.`;
}

function startUse() {
  if (!byId("use")) return;
  for (const input of document.querySelectorAll("#use input, #use select")) input.addEventListener("input", advise);
  advise();
}
