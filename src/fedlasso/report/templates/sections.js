// Each section of the chosen view: its rows, its table, what can be downloaded, and its chart.

const WORDS = { words: true };
// Means and what goes with them are printed to their standard errors; downloads have every digit.
const SUMMARY = [...["Mean", "SE", "Low", "High"].map((name) => [name, { se: "SE" }]), ["n"]];

// Columns are a name and what is in them: words, or numbers that are known to a standard error.

function fillTable(id, caption, columns, rows, { button, sort, limit = Infinity, mark } = {}) {
  const head = columns.map(([name, { words } = {}]) => {
    const sorted = sort?.by === name;
    const inside = sort
      ? `<button type="button" data-sort="${escape(name)}">${escape(name)}${sorted ? (sort.up ? " ▲" : " ▼") : ""}</button>`
      : escape(name);
    return `<th scope="col" class="${words ? "text" : ""}"${sorted ? ` aria-sort="${sort.up ? "ascending" : "descending"}"` : ""}>${inside}</th>`;
  });
  if (button) head.push('<th scope="col">Rows</th>');
  const body = rows.slice(0, limit).map((row) => {
    const cells = columns.map(([name, { words, se } = {}]) => {
      const colour = name === "Method" && DATA.methods[row[name]]?.colour;
      const told = se ? toError(row[name], row[se]) : format(row[name]);
      return `<td class="${words ? "text" : ""}">${colour ? `<i class="dot" style="background:${colour}"></i>` : ""}${escape(told)}</td>`;
    });
    if (button)
      cells.push(
        `<td><button type="button" data-key="${row.key}" aria-label="Rows of ${escape(row.label)}">show</button></td>`,
      );
    return `<tr${mark?.(row) ? ' class="marked"' : ""}>${cells.join("")}</tr>`;
  });
  const table = document.getElementById(id);
  table.innerHTML = `<caption>${escape(caption)}</caption><thead><tr>${head.join("")}</tr></thead><tbody>${body.join("")}</tbody>`;
  if (sort)
    for (const press of table.querySelectorAll("[data-sort]"))
      press.addEventListener("click", () => sort.press(press.dataset.sort));
}

function showMeans(cells, metric) {
  const rows = cells.map((cell) => ({
    key: keyOf(cell),
    label: groupName(cell),
    ...Object.fromEntries(
      SIDE.flatMap((a) => [
        [a, word(cell, a)],
        [axis(a).heading, word(cell, a)],
      ]),
    ),
    ...summarise(valuesOf(cell, metric.name)),
  }));
  const better = metric.better ? ` ${metric.better === "higher" ? "Higher" : "Lower"} is better.` : "";
  document.getElementById("metric-caption").textContent = `${metric.label}. ${metric.caption}${better}`;
  const unpaid = rows.filter((r) => r.n === 0).map((r) => r.label);
  document.getElementById("unpaid").textContent = unpaid.length
    ? `Not drawn, since nothing is recorded: ${unpaid.join("; ")}. Either the budget does not pay for a first round, or the outcome does not apply.`
    : "";
  fillTable(
    "means-table",
    `${metric.label}: ${describe()}`,
    [...SIDE.map((a) => [axis(a).heading, { words: !axis(a).number }]), ...SUMMARY],
    rows.map((r) => ({ ...r, Mean: r.mean, SE: r.se, Low: r.low, High: r.high })),
    { button: true },
  );
  keepTable("means", `Mean ${within(metric.label)}`, csvRows(cells, metric));
  drawMeans(rows, metric);
  entitle("means", `${tellMeans(rows, metric)}. ${describe()}`);
}

function showContrast(metric) {
  const pair = PAIRS.find((p) => p.value === state.pair);
  if (!pair) return;
  const where = chosen();
  delete where[pair.name];
  if (state.scope === "all") delete where.scenario;
  const rest = SIDE.filter((a) => a !== pair.name);
  const found = differences(pair, where, metric.name);
  const rows = found.map(({ cell, ...numbers }) => ({
    scenario: word(cell, "scenario"),
    method: pair.name === "method" ? axis("method").values[pair.second] : word(cell, "method"),
    what: nameOf(cell, rest),
    rest: nameOf(
      cell,
      rest.filter((a) => a !== "method"),
    ),
    ...numbers,
  }));
  fillTable(
    "contrast-table",
    `${metric.label}: ${pair.label}`,
    [["Scenario", WORDS], ["Of", WORDS], ...SUMMARY],
    rows.map((r) => ({
      Scenario: r.scenario,
      Of: r.what,
      Mean: r.mean,
      SE: r.se,
      Low: r.low,
      High: r.high,
      n: r.n,
    })),
  );
  keepTable("contrast", pair.label, {
    columns: [
      "difference",
      ...AXES.filter((a) => a !== pair.name),
      "metric",
      "mean",
      "se",
      "low",
      "high",
      "n",
    ],
    rows: found.map(({ cell, ...numbers }) => ({
      difference: pair.label,
      ...Object.fromEntries(AXES.map((a) => [a, axis(a).values[code(cell, a)]])),
      metric: metric.name,
      ...numbers,
    })),
  });
  drawContrast(rows, pair, metric);
  entitle(
    "contrast",
    `${tellContrast(rows, pair, metric)}. ${state.scope === "all" ? `All ${KIND}s` : describe()}`,
  );
}

function showSpread(cells, metric) {
  const rows = cells.flatMap((cell) => {
    const shared = { key: keyOf(cell), group: groupName(cell), method: word(cell, "method") };
    return valuesOf(cell, metric.name).map((value, i) => ({
      ...shared,
      replicate: replicatesOf(cell)[i],
      value,
    }));
  });
  const where = chosenValues();
  keepTable("spread", `${metric.label} of every replicate`, {
    columns: [...CONTROLS, "what", "replicate", metric.name],
    rows: rows.map((r) => ({
      ...where,
      what: r.group,
      replicate: r.replicate,
      [metric.name]: r.value,
    })),
  });
  drawSpread(rows, metric);
  entitle("spread", `${metric.label} of every replicate: ${describe()}`);
}

// Seconds are medians, which one slow moment of the machine does not move; counts are means.
function showLedger(cells) {
  const cost = COSTS.find((c) => c.label === state.cost);
  if (!cost) return;
  const middle = (cell, { unit }, name) =>
    unit === "s" ? median(valuesOf(cell, name)) : summarise(valuesOf(cell, name)).mean;
  const rows = cells
    .flatMap((cell) =>
      cost.parts.map((part) => ({
        group: groupName(cell),
        method: word(cell, "method"),
        fitted: METRICS.some((m) => summarise(valuesOf(cell, m.name)).n > 0),
        part: part.part,
        value:
          middle(cell, part, part.name) -
          (part.less && part.less in COLUMN ? middle(cell, part, part.less) : 0),
      })),
    )
    .filter((row) => !Number.isNaN(row.value));
  fillTable(
    "ledger-table",
    `${cost.label}: ${describe()}`,
    [["Of", WORDS], ["Part", WORDS], ["Typical"]],
    rows.map((r) => ({ Of: r.group, Part: r.part, Typical: withUnit(r.value, cost.parts[0].unit) })),
  );
  keepTable("ledger", cost.label, {
    columns: [...CONTROLS, "what", "cost", "part", "value"],
    rows: rows.map((r) => ({
      ...chosenValues(),
      what: r.group,
      cost: cost.label,
      part: r.part,
      value: r.value,
    })),
  });
  drawLedger(rows, cost);
  entitle("ledger", `${tellLedger(rows, cost)}. ${describe()}`);
}

function showRows() {
  const side = Object.fromEntries(
    SIDE.map((a) => [a, axis(a).values.findIndex((v) => String(v) === state[`row-${a}`])]),
  );
  const [cell] = findCells({ ...chosen(), ...side });
  const columns = [["replicate"], ...COLUMNS.map((c) => [c.name])];
  const values = cell && COLUMNS.map((c) => valuesOf(cell, c.name));
  const rows = cell
    ? replicatesOf(cell).map((replicate, i) => ({
        replicate,
        ...Object.fromEntries(COLUMNS.map((c, j) => [c.name, values[j][i]])),
      }))
    : [];
  fillTable(
    "rows-table",
    cell ? `${groupName(cell)}; ${describe()}` : "No finished replicate for this choice",
    columns,
    rows,
    { mark: (row) => String(row.replicate) === state.replicate },
  );
  const names = columns.map(([name]) => name);
  keepTable("rows", "Rows", {
    columns: [...AXES, ...names],
    rows: cell
      ? rows.map((row) => ({
          ...Object.fromEntries(AXES.map((a) => [a, axis(a).values[code(cell, a)]])),
          ...row,
        }))
      : [],
  });
  document.getElementById("rerun").textContent =
    `python -c 'from fedlasso.study import rerun; print(rerun("${DATA.folder}", "${axis("scenario").values[code0("scenario")]}", ${state.replicate}))'`;
}
