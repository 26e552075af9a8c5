// Each section of the chosen view: its rows, its table, what can be downloaded, and its chart.

const TEXT = { text: true };
// Means are printed to their standard errors; downloads have every digit.
const SUMMARY = [...["Mean", "SE", "Low", "High"].map((name) => [name, { se: "SE" }]), ["n"]];

// A column is a name and what is in it: text, or numbers that are known to a standard error.
function fillTable(id, caption, columns, rows, { button, sort, limit = Infinity, mark } = {}) {
  const heads = columns.map(([name, { text } = {}]) => {
    const sorted = sort?.by === name ? (sort.up ? ["ascending", " ▲"] : ["descending", " ▼"]) : ["", ""];
    const inside = sort ? `<button type="button" data-sort="${escape(name)}">${escape(name)}${sorted[1]}</button>` : escape(name);
    return `<th scope="col" class="${text ? "text" : ""}"${sorted[0] && ` aria-sort="${sorted[0]}"`}>${inside}</th>`;
  });
  if (button) heads.push('<th scope="col">Rows</th>');
  const body = rows.slice(0, limit).map((row) => {
    const cells = columns.map(([name, { text, se } = {}]) => {
      const colour = name === "Method" && DATA.methods[row.method]?.colour;
      const dot = colour ? `<i class="dot" style="background:${colour}"></i>` : "";
      return `<td class="${text ? "text" : ""}">${dot}${escape(se ? toError(row[name], row[se]) : format(row[name]))}</td>`;
    });
    if (button) cells.push(`<td><button type="button" data-key="${row.key}" aria-label="Rows of ${escape(row.label)}">show</button></td>`);
    return `<tr${mark?.(row) ? ' class="marked"' : ""}>${cells.join("")}</tr>`;
  });
  const table = document.getElementById(id);
  table.innerHTML = `<caption>${escape(caption)}</caption><thead><tr>${heads.join("")}</tr></thead><tbody>${body.join("")}</tbody>`;
  for (const head of table.querySelectorAll("[data-sort]")) head.addEventListener("click", () => sort.press(head.dataset.sort));
}

// A cell with its words, and the mean of an outcome.
function summaryOf(cell, metric) {
  const numbers = summarise(valuesOf(cell, metric.name));
  return {
    key: keyOf(cell),
    label: groupName(cell),
    ...Object.fromEntries(SIDE.flatMap((name) => [[name, word(cell, name)], [axis(name).heading, word(cell, name)]])),
    scenario: value(cell, "scenario"),
    method: value(cell, "method"),
    ...forTable(numbers),
  };
}

function forTable(numbers) {
  return { ...numbers, Mean: numbers.mean, SE: numbers.se, Low: numbers.low, High: numbers.high };
}

function showMeans(cells, metric) {
  const rows = cells.map((cell) => summaryOf(cell, metric));
  const better = metric.better ? ` ${metric.better === "higher" ? "Higher" : "Lower"} is better.` : "";
  document.getElementById("metric-caption").textContent = `${metric.label}. ${metric.caption}${better}`;
  const unpaid = rows.filter((row) => row.n === 0).map((row) => row.label);
  document.getElementById("unpaid").textContent = unpaid.length
    ? `Not drawn, because nothing is recorded: ${unpaid.join("; ")}. Either the budget is too small for a first round, or the outcome does not apply.`
    : "";
  const columns = [...SIDE.map((name) => [axis(name).heading, { text: !axis(name).number }]), ...SUMMARY];
  fillTable("means-table", `${metric.label}: ${describe()}`, columns, rows, { button: true });
  keep("means", csvRows(cells, metric));
  drawMeans(rows, metric);
  entitle("means", `${tellMeans(rows, metric)}. ${describe()}`);
}

function showContrast(metric) {
  const pair = PAIRS.find((p) => p.value === state.pair);
  if (!pair) return;
  const { [pair.name]: _, ...where } = chosen();
  if (state.scope === "all") delete where.scenario;
  const rest = SIDE.filter((name) => name !== pair.name);
  const found = differences(pair, where, metric.name);
  const rows = found.map(({ cell, ...numbers }) => ({
    scenario: word(cell, "scenario"),
    method: pair.name === "method" ? axis("method").values[pair.second] : value(cell, "method"),
    what: nameOf(cell, rest),
    rest: nameOf(cell, rest.filter((name) => name !== "method")),
    ...forTable(numbers),
  }));
  const named = rows.map((row) => ({ ...row, [axis("scenario").label]: row.scenario, Of: row.what }));
  fillTable("contrast-table", `${metric.label}: ${pair.label}`, [[axis("scenario").label, TEXT], ["Of", TEXT], ...SUMMARY], named);
  keep("contrast", found.map(({ cell, ...numbers }) => {
    const { [pair.name]: _, ...others } = valuesAt(cell);
    return { difference: pair.label, ...others, metric: metric.name, ...numbers };
  }));
  drawContrast(rows, pair, metric);
  entitle("contrast", `${tellContrast(rows, pair, metric)}. ${state.scope === "all" ? `All ${KIND}s` : describe()}`);
}

function showSpread(cells, metric) {
  const rows = cells.flatMap((cell) => {
    const shared = { key: keyOf(cell), group: groupName(cell), method: value(cell, "method") };
    return valuesOf(cell, metric.name).map((x, i) => ({ ...shared, replicate: replicatesOf(cell)[i], x }));
  });
  const where = chosenValues();
  keep("spread", rows.map((row) => ({ ...where, what: row.group, replicate: row.replicate, [metric.name]: row.x })));
  drawSpread(rows, metric);
  entitle("spread", `${metric.label} of every replicate: ${describe()}`);
}

// Seconds are medians, which one slow moment of the machine does not move; counts are means.
function showLedger(cells) {
  const cost = COSTS.find((c) => c.label === state.cost);
  if (!cost) return;
  const [{ unit }] = cost.parts;
  const middle = (cell, name) => (unit === "s" ? median(valuesOf(cell, name)) : summarise(valuesOf(cell, name)).mean);
  const rows = cells.flatMap((cell) =>
    cost.parts.map((part) => ({
      group: groupName(cell),
      method: value(cell, "method"),
      fitted: METRICS.some((m) => summarise(valuesOf(cell, m.name)).n > 0),
      part: part.part,
      value: middle(cell, part.name) - (part.less in COLUMN ? middle(cell, part.less) : 0),
    })),
  );
  const known = rows.filter((row) => !Number.isNaN(row.value));
  const printed = known.map((row) => ({ Of: row.group, Part: row.part, Typical: withUnit(row.value, unit) }));
  fillTable("ledger-table", `${cost.label}: ${describe()}`, [["Of", TEXT], ["Part", TEXT], ["Typical"]], printed);
  keep("ledger", known.map((row) => ({ ...chosenValues(), what: row.group, cost: cost.label, part: row.part, value: row.value })));
  drawLedger(known, cost);
  entitle("ledger", `${tellLedger(known, cost)}. ${describe()}`);
}

function showRows() {
  const side = Object.fromEntries(SIDE.map((name) => [name, axis(name).values.findIndex((v) => String(v) === state[`row-${name}`])]));
  const [cell] = findCells({ ...chosen(), ...side });
  const values = cell && COLUMNS.map((c) => valuesOf(cell, c.name));
  const rows = (cell ? replicatesOf(cell) : []).map((replicate, i) => ({
    replicate,
    ...Object.fromEntries(COLUMNS.map((c, j) => [c.name, values[j][i]])),
  }));
  const columns = [["replicate"], ...COLUMNS.map((c) => [c.name])];
  const caption = cell ? `${groupName(cell)}; ${describe()}` : "No finished replicate for this choice";
  fillTable("rows-table", caption, columns, rows, { mark: (row) => String(row.replicate) === state.replicate });
  keep("rows", rows.map((row) => ({ ...valuesAt(cell), ...row })));
  document.getElementById("rerun").textContent =
    `python -c 'from fedlasso.study import rerun; print(rerun("${DATA.folder}", "${chosenValues().scenario}", ${state.replicate}))'`;
}
