// Charts of two outcomes: F1 against test error, the gap against uploads, published means and ours.

// An arrow leads from the smallest validation error to the one-standard-error rule.
function drawTradeoff() {
  const error = METRICS.find((m) => m.name === "test_mse" || m.name === "test_deviance");
  const shown = error && "f1" in COLUMN;
  document.getElementById("tradeoff").hidden = !shown;
  if (!shown) return;
  const { rule: _, ...where } = chosen();
  const rows = findCells(where).map((cell) => {
    const [x, y] = [error.name, "f1"].map((name) => summarise(valuesOf(cell, name)).mean);
    const label = groupName(cell);
    const rule = AXES.includes("rule") ? value(cell, "rule") : "min";
    const what = AXES.includes("rule") ? `${label}, ${word(cell, "rule")}` : label;
    const epochs = AXES.includes("epochs") && word(cell, "epochs") !== "none" ? word(cell, "epochs") : "";
    const tip = `${what}\n${error.label} ${brief(x)}\nF1 ${brief(y)}`;
    return { x, y, label, rule, epochs, tip, method: value(cell, "method"), key: keyOf(cell) };
  });
  const all = rows.filter((row) => !Number.isNaN(row.x));
  if (!all.length) return nothing("tradeoff-chart");
  const reference = DATA.pooled[axis("scenario").values[code0("scenario")]];
  const [x, y] = [reference?.[error.name]?.[0], reference?.f1?.[0]];
  const pooled = { x, y, label: "pooled Lasso", tip: `pooled Lasso\n${error.label} ${brief(x)}\nF1 ${brief(y)}` };
  const several = new Set(all.map((row) => row.epochs).filter(Boolean)).size > 1;
  const [arrows, starts] = [[], x === undefined || y === undefined ? [] : [pooled]];
  for (const own of Map.groupBy(all, (row) => row.label).values()) {
    const start = own.find((row) => row.rule === "min") ?? own[0];
    const end = own.find((row) => row.rule === "1se");
    starts.push({ ...start, name: several ? start.epochs : nameMethod(start.method) });
    if (end && (end.x !== start.x || end.y !== start.y))
      arrows.push({ ...end, open: true, x1: start.x, y1: start.y, x2: end.x, y2: end.y });
  }
  const domain = extent([...all, ...starts].map((row) => row.x));
  const [width, height] = [widthOf("tradeoff-chart"), paper ? 245 : 380];
  const unit = [(domain[1] - domain[0]) / width, 1 / height];
  const near = (a) => (b) => Math.abs(a.x - b.x) < 14 * unit[0] && Math.abs(a.y - b.y) < 9 * unit[1];
  // Marks on one spot share their words.
  const named = [];
  for (const start of starts.filter((row) => row.name ?? row.label === pooled.label)) {
    const other = start.name && named.find((label) => label.names && near(start)(label));
    if (other) other.names.add(start.name);
    else named.push({ x: start.x, y: start.y, names: start.name && new Set([start.name]) });
  }
  for (const label of named) {
    const names = [...(label.names ?? [pooled.label])];
    const more = names.length > 4 ? ` and ${names.length - 3} more` : "";
    const joined = (more ? names.slice(0, 3) : names).join(several || more ? ", " : " = ");
    label.words = `${several && label.names ? "E = " : ""}${joined}${more}`;
  }
  const spots = [...starts.map((row) => [[row.x, row.y]]), ...arrows.map((row) => [[row.x1, row.y1], [row.x2, row.y2]])];
  const drawn = panel({
    width,
    height,
    x: { label: `${error.label} (left is better)`, domain },
    y: { label: "F1 (up is better)", domain: [0, 1] },
    marks: [
      mark("arrow", "mark arrow", arrows, { x1: "x1", x2: "x2", y1: "y1", y2: "y2", stroke: colourOf, strokeWidth: 1.2, headLength: 7 }),
      points([...starts, ...arrows]),
      labels(named.filter((label) => label.words.trim() !== "E ="), spots),
    ],
  });
  legend("tradeoff-chart", methodsOf(all));
  put("tradeoff-chart", `F1 against ${error.label}; ${describe()}`, [{ drawn }]);
  keep("tradeoff", all.map((row) => ({ ...chosenValues(), rule: row.rule, what: row.label, [error.name]: row.x, f1: row.y })));
}

// Choices that gaps are apart by, such as the family.
const ARMS = CONTROLS.filter((name) => name !== "scenario" && name in (DATA.gaps[0] ?? {}));

function courseName([first], several) {
  return several && first.epochs ? `${nameMethod(first.method)}, E = ${first.epochs}` : nameMethod(first.method);
}

// Medians with quartiles, both axes logarithmic.
function drawUploads() {
  // One reading per method is no course; the gap is then an outcome like the others.
  const courses = Map.groupBy(DATA.gaps, (row) => [row.scenario, row.method, row.epochs, ...ARMS.map((arm) => row[arm])].join());
  document.getElementById("uploads").hidden = [...courses.values()].every((own) => own.length < 2);
  if (document.getElementById("uploads").hidden) return;
  const here = (row) => ["scenario", ...ARMS].every((name) => row[name] === axis(name).values[code0(name)]);
  const rows = DATA.gaps.filter(here);
  if (!rows.length) return nothing("uploads-chart");
  const several = new Set(rows.map((row) => row.epochs).filter(Boolean)).size > 1;
  const last = (own) => own.at(-1).gap;
  let drawnLines = [...Map.groupBy(rows, (row) => `${row.method},${row.epochs}`).values()].map((own) => own.toSorted((a, b) => a.uploads - b.uploads));
  if (state.epochs_shown === "best")
    drawnLines = [...Map.groupBy(drawnLines, (own) => own[0].method).values()].map((own) => own.reduce((a, b) => (last(b) < last(a) ? b : a)));
  const placed = drawnLines.flatMap((own) =>
    own.map((row) => {
      const gaps = `gap ${brief(row.gap)}\nhalf of ${row.n} replicates: ${brief(row.low)} to ${brief(row.high)}`;
      const name = courseName(own, several);
      return { ...row, x: row.uploads, y: row.gap, z: name, tip: `${name}\n${brief(row.uploads)} uploads: ${gaps}` };
    }),
  );
  const width = widthOf("uploads-chart");
  const ends = endNames(drawnLines, several);
  const wide = width > 560;
  const uploads = rows.map((row) => row.uploads);
  const drawn = panel({
    width,
    height: paper ? 265 : 430,
    right: wide ? 34 + 7.2 * Math.max(...ends.map((end) => end.words.length)) : 16,
    top: 18,
    x: {
      kind: "log",
      label: "uploads per site, in vectors of p numbers",
      domain: [0.93 * Math.max(0.5, Math.min(...uploads)), 1.04 * Math.max(...uploads)],
    },
    y: {
      kind: "log",
      label: "median relative gap",
      domain: extent(placed.flatMap((row) => [row.low, row.high]), { scale: "log" }),
      say: (gap) => (gap <= FLOOR ? "≤ 1e−16" : brief(gap)),
    },
    marks: [
      mark("areaY", "band", placed, { x: "x", y1: "low", y2: "high", z: "z", fill: colourOf, fillOpacity: 0.13 }),
      lines(placed),
      points(placed, { size: 0.85 }),
      wide ? nameEnds(ends, drawnLines) : null,
    ],
  });
  legend("uploads-chart", methodsOf(placed));
  put("uploads-chart", `Relative gap against uploads; ${axis("scenario").words[code0("scenario")]}`, [{ drawn }]);
  keep("uploads", drawnLines.flat());
}

// Lines that end at one place share a name there: "CD = ST = P".
function endNames(courses, several) {
  const place = ({ uploads, gap }) => `${uploads},${Math.round(16 * Math.log10(Math.max(gap, FLOOR)))}`;
  return [...Map.groupBy(courses, (own) => place(own.at(-1))).values()].map((group) => {
    const epochs = new Set(group.map((own) => own[0].epochs));
    const names = group.map((own) => courseName(own, several && epochs.size > 1));
    const tail = several && epochs.size === 1 && group[0][0].epochs ? `, E = ${group[0][0].epochs}` : "";
    const { uploads: x, gap: y } = group[0].at(-1);
    return { x, y, words: names.join(" = ") + tail, method: group.length > 1 ? undefined : group[0][0].method };
  });
}

// A line that goes to the end is named in the margin, any other beside its last mark.
function nameEnds(ends, courses) {
  const far = Math.max(...ends.map((end) => end.x));
  const look = { fill: "var(--ink)", fontWeight: 600, fontSize: 11.5 };
  const inMargin = (index, scales, values, { height }) => {
    const y = Float64Array.from(values.y);
    index.toSorted((a, b) => y[a] - y[b]).forEach((i, k, order) => {
      y[i] = Math.max(y[i], k ? y[order[k - 1]] + 14 : 0);
    });
    const beyond = Math.max(0, Math.max(...y) - (height - 10));
    return { ...values, y: y.map((each) => each - beyond) };
  };
  const [late, early] = [true, false].map((ends_late) => ends.filter((end) => end.x > 0.75 * far === ends_late));
  const spots = courses.map((own) => own.map((row) => [row.uploads, row.gap]));
  return [
    texts(late, { ...look, x: undefined, frameAnchor: "right", textAnchor: "start", dx: 14, place: inMargin }),
    labels(early, spots, look),
  ];
}

// Published means across, ours upwards; the two agree on the line.
function drawAgreement() {
  if (!DATA.agreement) return;
  const { cells } = DATA.agreement;
  const metrics = [...new Set(cells.map((cell) => cell.metric))];
  const whole = widthOf("agreement-chart");
  const across = whole < 620 ? 1 : metrics.length;
  const panels = metrics.map((name) => {
    const { label, scale } = METRICS.find((m) => m.name === name);
    const placed = cells
      .filter((cell) => cell.metric === name && cell.our_mean !== null)
      .map((cell) => {
        const ours = [cell.our_mean - 1.96 * cell.our_se, cell.our_mean + 1.96 * cell.our_se];
        const [y1, y2] = scale === "share" ? [Math.max(0, ours[0]), Math.min(1, ours[1])] : ours;
        const tip = `${cell.scenario_words}: ${nameMethod(cell.method)}, E = ${cell.epochs}\npublished ${brief(cell.mean)} (SE ${brief(cell.se)})\nours ${brief(cell.our_mean)} (SE ${brief(cell.our_se)})\nz = ${brief(cell.z)}`;
        return { method: cell.method, x: cell.mean, x1: cell.mean, x2: cell.mean, y: cell.our_mean, y1, y2, tip, open: Math.abs(cell.z) > 1.96 };
      });
    const seen = placed.flatMap((row) => [row.x, row.y, ...(scale === "log" ? [] : [row.y1, row.y2])]);
    const common = { kind: scale === "log" ? "log" : "linear", domain: extent(seen, { scale }) };
    const [x1, x2] = common.domain;
    const drawn = panel({
      width: whole / across,
      height: 270,
      top: 30,
      title: label,
      x: { ...common, label: "published" },
      y: { ...common, label: "ours" },
      marks: [
        mark("link", "identity", [{ x1, x2, y1: x1, y2: x2, colour: "var(--soft)" }], { x1: "x1", x2: "x2", y1: "y1", y2: "y2", stroke: colourOf, strokeDasharray: "4 3" }),
        bars(placed, { strokeWidth: 1.4 }),
        points(placed, { size: 0.9 }),
      ],
    });
    return { drawn };
  });
  legend("agreement-chart", methodsOf(cells));
  put("agreement-chart", "Published means against ours", panels, across);
}
