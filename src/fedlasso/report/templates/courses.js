// Charts of two outcomes: F1 against test error, the gap against uploads, published means and ours.

const hide = (section, when) => byId(section).toggleAttribute("hidden", Boolean(when));

// An arrow leads from the smallest validation error to the one-standard-error rule.
function showTradeoff() {
  const error = METRICS.find((m) => m.name === "test_mse" || m.name === "test_deviance");
  if (hide("tradeoff", !(error && "f1" in COLUMN))) return;
  const { rule: chosenRule, ...where } = chosen();
  const rows = findCells(where).map((cell) => {
    const [x, y] = [error.name, "f1"].map((name) => summarise(valuesOf(cell, name)).mean);
    const [rule, name] = AXES.includes("rule") ? [value(cell, "rule"), `, ${word(cell, "rule")}`] : ["min", ""];
    const epochs = AXES.includes("epochs") && word(cell, "epochs") !== "none" ? word(cell, "epochs") : "";
    const tip = `${groupName(cell)}${name}\n${error.label} ${brief(x)}\nF1 ${brief(y)}`;
    return { x, y, label: groupName(cell), rule, epochs, tip, method: value(cell, "method"), key: keyOf(cell) };
  });
  const all = rows.filter((row) => !Number.isNaN(row.x));
  if (!all.length) return nothing("tradeoff");
  const several = new Set(all.map((row) => row.epochs).filter(Boolean)).size > 1;
  const starts = [];
  const ends = [];
  for (const own of Map.groupBy(all, (row) => row.label).values()) {
    const start = own.find((row) => row.rule === "min") ?? own[0];
    const end = own.find((row) => row.rule === "1se");
    starts.push(start);
    if (end && (end.x !== start.x || end.y !== start.y))
      ends.push({ ...end, open: true, x1: start.x, y1: start.y, x2: end.x, y2: end.y });
  }
  const [x, y] = [error.name, "f1"].map((name) => DATA.pooled[chosenValues().scenario]?.[name]?.[0]);
  const tip = `pooled Lasso\n${error.label} ${brief(x)}\nF1 ${brief(y)}`;
  const pooled = x === undefined || y === undefined ? [] : [{ x, y, tip, words: "pooled Lasso" }];
  const domain = extent([...all, ...pooled].map((row) => row.x));
  const [width, height] = [widthOf("tradeoff"), paper ? 245 : 380];
  const [wide, high] = [width / (domain[1] - domain[0]) / 6, height / 6];
  const named = nameSpots(starts, (row) => `${Math.round(row.x * wide)},${Math.round(row.y * high)}`, several);
  const drawn = panel({
    width, height,
    x: { label: `${error.label} (left is better)`, domain },
    y: { label: "F1 (up is better)", domain: [0, 1] },
    marks: [
      mark("arrow", "mark arrow", ends, { ...ENDS, stroke: colourOf, strokeWidth: 1.2, headLength: 7 }),
      points([...pooled, ...starts, ...ends]),
      labels([...pooled, ...(width > 560 ? named : [])], [...pooled, ...starts, ...ends, ...ends.flatMap(along)]),
    ],
  });
  put("tradeoff", `F1 against ${error.label}; ${describe()}`, all, [{ drawn }]);
  kept.tradeoff = all.map(({ rule, label, x, y }) => ({ ...chosenValues(), rule, what: label, [error.name]: x, f1: y }));
  entitle("tradeoff", `F1 against test error: ${describe()}`);
}

// Choices that gaps are apart by, such as the family.
const ARMS = CONTROLS.filter((name) => name !== "scenario" && name in (DATA.gaps[0] ?? {}));

// Medians with quartiles, both axes logarithmic.
function showUploads() {
  const courseOf = (row) => ["scenario", ...ARMS, "method", "epochs"].map((name) => row[name]).join();
  const courses = [...Map.groupBy(DATA.gaps, courseOf).values()];
  // One reading per method is no course; the gap is then an outcome like the others.
  if (hide("uploads", courses.every((own) => own.length < 2))) return;
  const where = chosenValues();
  const here = courses.filter(([row]) => ["scenario", ...ARMS].every((name) => row[name] === where[name]));
  if (!here.length) return nothing("uploads");
  for (const own of here) own.sort((a, b) => a.uploads - b.uploads);
  const closest = (own) => own.reduce((a, b) => (b.at(-1).gap < a.at(-1).gap ? b : a));
  const best = [...Map.groupBy(here, ([row]) => row.method).values()].map(closest);
  const chosenCourses = state.epochs_shown === "best" ? best : here;
  const several = new Set(here.map(([row]) => row.epochs).filter(Boolean)).size > 1;
  const rows = chosenCourses.flat().map((row) => {
    const z = nameCourse([row], several);
    const half = `half of ${row.n} replicates: ${brief(row.low)} to ${brief(row.high)}`;
    const tip = `${z}\n${brief(row.uploads)} uploads: gap ${brief(row.gap)}\n${half}`;
    return { ...row, x: row.uploads, y: row.gap, z, tip };
  });
  const width = widthOf("uploads");
  const height = (gap) => Math.round(16 * Math.log10(Math.max(gap, FLOOR)));
  const last = chosenCourses.map((own) => ({ ...own.at(-1), x: own.at(-1).uploads, y: own.at(-1).gap }));
  const ends = nameSpots(last, (row) => `${row.x},${height(row.y)}`, several);
  const wide = width > 560;
  const uploads = here.flat().map((row) => row.uploads);
  const drawn = panel({
    width, height: paper ? 265 : 430, top: 18,
    right: wide ? 34 + 7.2 * Math.max(...ends.map((end) => end.words.length)) : 16,
    x: {
      kind: "log", label: "uploads per site, in vectors of p numbers",
      domain: [0.93 * Math.max(0.5, Math.min(...uploads)), 1.04 * Math.max(...uploads)],
    },
    y: {
      kind: "log", label: "median relative gap",
      domain: extent(rows.flatMap((row) => [row.low, row.high]), { scale: "log" }),
      say: (gap) => (gap <= FLOOR ? "≤ 1e−16" : brief(gap)),
    },
    marks: [
      mark("areaY", "band", rows, { x: "x", y1: "low", y2: "high", z: "z", fill: colourOf, fillOpacity: 0.13 }),
      lines(rows),
      points(rows, { size: 0.85 }),
      wide ? endLabels(ends, rows) : null,
    ],
  });
  put("uploads", `Relative gap against uploads; ${describe(["scenario"])}`, rows, [{ drawn }]);
  kept.uploads = chosenCourses.flat();
  entitle("uploads", `Gap to the pooled optimum against uploads: ${describe(["scenario"])}`);
}

function nameCourse(own, several) {
  const more = own.length > 4 ? ` and ${own.length - 3} more` : "";
  const names = own.slice(0, more ? 3 : 4).map((row) => nameMethod(row.method)).join(" = ") + more;
  return several && own[0].epochs ? `${names}, E = ${own[0].epochs}` : names;
}

// Methods on one spot share a name there: "CD = ST = P".
function nameSpots(rows, spot, several) {
  const groups = Map.groupBy(rows, (row) => `${row.epochs},${spot(row)}`).values();
  return Array.from(groups, (own) => {
    const method = own.length > 1 ? undefined : own[0].method;
    return { x: own[0].x, y: own[0].y, method, words: nameCourse(own, several) };
  });
}

// A line that goes to the end is named in the margin, any other beside its last mark.
function endLabels(ends, spots) {
  const far = 0.75 * Math.max(...ends.map((end) => end.x));
  const look = { fill: "var(--ink)", fontWeight: 600, fontSize: 11.5 };
  const place = (index, scales, values, { height }) => {
    const y = Float64Array.from(values.y);
    const order = index.toSorted((a, b) => y[a] - y[b]);
    for (const [k, i] of order.entries()) y[i] = Math.max(y[i], k ? y[order[k - 1]] + 14 : 0);
    const beyond = Math.max(0, y[order.at(-1)] - (height - 10));
    return { ...values, y: y.map((each) => each - beyond) };
  };
  const aside = { x: undefined, frameAnchor: "right", textAnchor: "start", dx: 14, place };
  const [late, early] = [true, false].map((isLate) => ends.filter(({ x }) => x > far === isLate));
  return [texts(late, { ...look, ...aside }), labels(early, spots, look)];
}

// Published means across, ours upwards; the two agree on the line.
function showAgreement() {
  if (!DATA.agreement) return;
  const { cells } = DATA.agreement;
  const metrics = [...new Set(cells.map((cell) => cell.metric))];
  const whole = widthOf("agreement");
  const across = whole < 620 ? 1 : metrics.length;
  const panels = metrics.map((name) => {
    const metric = METRICS.find((m) => m.name === name);
    const own = cells.filter((cell) => cell.metric === name && cell.our_mean !== null);
    const rows = own.map(({ mean: x, our_mean: y, low: y1, high: y2, ...cell }) => {
      return { x, x1: x, x2: x, y, y1, y2, open: Math.abs(cell.z) > 1.96, ...cell };
    });
    const seen = rows.flatMap((row) => [row.x, row.y, ...(metric.scale === "log" ? [] : [row.y1, row.y2])]);
    const [x, y] = ["published", "ours"].map((label) => axisOf(metric, seen, label));
    const [x1, x2] = x.domain;
    const identity = [{ x1, x2, y1: x1, y2: x2, colour: "var(--soft)" }];
    const marks = [
      mark("link", "identity", identity, { ...ENDS, stroke: colourOf, strokeDasharray: "4 3" }),
      bars(rows, { strokeWidth: 1.4 }),
      points(rows, { size: 0.9 }),
    ];
    return { drawn: panel({ width: whole / across, height: 270, top: 30, title: metric.label, x, y, marks }) };
  });
  put("agreement", "Published means against ours", cells, panels, across);
}
