// "What should I use?": the recorded scenario nearest to the reader's own, and who does best there.

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
  const byGoal = `--goal ${method.replace("goal:", "")} --uploads ${budget}`;
  const how = method.startsWith("goal:") ? byGoal : `--procedure ${method}${epochs ? ` --epochs ${epochs}` : ""}`;
  const files = sites > 5 ? "site*.csv" : Array.from({ length: sites }, (_, i) => `site${i + 1}.csv`).join(" ");
  return `fedlasso fit ${files} --target y ${how} --out model`;
}

function advise() {
  const read = (id) => Math.max(1, Number(document.getElementById(id).value) || 1);
  const [sites, columns, wanted] = ["use-sites", "use-columns", "use-budget"].map(read);
  const [aim] = document.getElementById("use-aim").selectedOptions;
  const out = document.getElementById("use-answer");
  const [scenario, settings] = nearestScenario(sites, columns);
  const budgets = axis("budget").values;
  const budget = budgets.filter((b) => b <= wanted).at(-1);
  if (budget === undefined) {
    out.textContent = `These records begin at ${budgets[0]} uploads, so they do not show what ${wanted} can do.`;
    return;
  }
  const where = { scenario: axis("scenario").values.indexOf(scenario), budget: budgets.indexOf(budget) };
  if (AXES.includes("panel")) where.panel = Math.max(0, axis("panel").values.indexOf("upload"));
  const metric = METRICS.find((m) => m.name === aim.dataset.metric);
  const { ranked, tied, best, other } = rank(findCells(where), metric);
  const method = value(best.cell, "method");
  const named = new Set(tied.map((row) => groupName(row.cell)));
  const least = named.size > 1 ? `of ${named.size} equally good choices the one with the fewest uploads, with the` : "the";
  // Choices of the records beside the method: how a candidate is chosen, and whether the penalty is too.
  const choices = ["rule", "tuning"].filter((name) => AXES.includes(name)).map((name) => word(best.cell, name));
  const plain = !choices.length || method.startsWith("goal:") || method.startsWith("Secant");
  const uses = `${plain ? "" : ` (${choices.join(", ")})`}: ${least} best mean ${within(metric.label)} of the ${ranked.length} choices recorded for “${axis("scenario").words[where.scenario]}” at ${budget} uploads.`;
  const lines = ["f1", "test_mse", "relative_gap"].filter((name) => name in COLUMN).map((name) => expected(best.cell, name));
  const epochs = AXES.includes("epochs") && (SEVERAL_EPOCHS || FOUR.has(method)) ? value(best.cell, "epochs") : 0;
  out.innerHTML = `
    <p class="answer">Use <strong>${escape(groupName(best.cell))}</strong>${escape(uses)}</p>
    <div class="scroll wrap" tabindex="0" role="region" aria-label="What to expect"><table>
      <thead><tr>${["Expected", "Mean ± 1.96 SE", "Single data sets"].map((head) => `<th scope="col" class="text">${head}</th>`).join("")}</tr></thead>
      <tbody>${lines.map((line) => `<tr>${line.map((text) => `<td class="text">${escape(text)}</td>`).join("")}</tr>`).join("")}</tbody>
    </table></div>
    <p class="note">${other ? escape(nextBest(best, other, metric)) : ""}</p>
    <p class="note">Nearest recorded scenario: ${settings.sites} sites of ${settings.sizes} rows, ${settings.p} columns, signal-to-noise ratio ${settings.snr}.
      Your data differ in ways that no simulation knows, so check the fit on held-out rows.</p>
    <p class="line"><code id="use-command">${escape(command(method, epochs, wanted, sites))}</code> <button type="button" data-copy="use-command">Copy</button></p>`;
}

// The best cell; of means that differ by a thousandth at most, or are at the optimum, the fewest uploads decide.
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
  const { label } = METRICS.find((m) => m.name === name);
  if (!n) return [label, "—", "it has a penalty of its own, so there is no gap to the optimum at the common penalty"];
  const interval = `${toError(mean, 1.96 * se)} ± ${toError(1.96 * se, 1.96 * se)}`;
  return [label, Number.isNaN(se) ? brief(mean) : interval, spreadOf(values)];
}

function nextBest(best, other, metric) {
  const [a, b] = [best, other].map((row) => valuesOf(row.cell, metric.name));
  const { mean, se } = summarise(a.map((v, i) => v - b[i]));
  return `Next best: ${groupName(other.cell)}; difference in mean ${within(metric.label)} ${toError(mean, se)} (paired SE ${toError(se, se)}).`;
}

function startUse() {
  if (!document.getElementById("use")) return;
  for (const input of document.querySelectorAll("#use input, #use select")) input.addEventListener("input", advise);
  advise();
}
