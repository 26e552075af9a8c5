// The two-site construction of the paper, to be played with: exact formulas, no records.

// Where averaging goes from zero, and what site 2 sends back in every round.
function iterate({ r, a, d, E }, rounds) {
  let b = [0, 0];
  const steps = [];
  for (let round = 0; round < rounds; round++) {
    const site = [...b];
    for (let sweep = 0; sweep < E; sweep++) {
      site[0] = a + r * (a + d - site[1]);
      site[1] = a + d - r * (site[0] - a);
    }
    const next = [(a + site[0]) / 2, (a + site[1]) / 2];
    steps.push({ from: b, site, next });
    b = next;
  }
  return steps;
}

function limitOf({ r, a, d, E }) {
  const s = r ** (2 * E);
  return [a + ((s / r) * d) / (2 * (2 - s)), a + ((1 - s) * d) / (2 - s)];
}

function pooledOf({ r, a, d }) {
  return [a + (r * d) / (4 - r * r), a + ((2 - r * r) * d) / (4 - r * r)];
}

function gapOf({ r, d, E }) {
  const s = r ** (2 * E);
  const t = s / (2 - s);
  return (d * d * r ** 4) / (32 * (4 - r * r)) + ((d * d) / (8 * r * r)) * (t - (r * r) / 2) ** 2;
}

function readTheory() {
  const pair = {};
  for (const name of ["r", "a", "d", "E"]) {
    pair[name] = Number(document.getElementById(`theory-${name}`).value);
    document.getElementById(`theory-${name}-value`).textContent = pair[name];
  }
  return pair;
}

function drawTheory() {
  // Studies that do not vary the epochs have no such section.
  if (!document.getElementById("theory")) return;
  const pair = readTheory();
  const [limit, pooled] = [limitOf(pair), pooledOf(pair)];
  const gaps = Array.from({ length: 10 }, (_, i) => gapOf({ ...pair, E: i + 1 }));
  const best = 1 + gaps.indexOf(Math.min(...gaps));
  document.getElementById("theory-words").textContent =
    `With r = ${pair.r}, a = ${pair.a}, d = ${pair.d} and E = ${pair.E}, averaging ends at (${limit.map(brief).join(", ")}) and the pooled Lasso is at (${pooled.map(brief).join(", ")}): ` +
    `the objective stays ${brief(gapOf(pair))} above its minimum, however many rounds are made. Each round shrinks the distance to that end to ` +
    `${brief(pair.r ** (2 * pair.E) / 2)} of what it was. The smallest gap of all whole E is at E = ${best}.`;
  const whole = widthOf("theory-chart");
  const across = whole < 620 ? 1 : 2;
  const size = { width: whole / across, height: 320, top: 30 };
  const panels = [drawIterates(pair, iterate(pair, 12), size), drawGaps(pair, gaps, size)];
  put("theory-chart", "The two-site example", panels.map((drawn) => ({ drawn })), across);
  keep("theory", gaps.map((gap, i) => ({ ...pair, E: i + 1, gap })));
}

function drawIterates(pair, steps, size) {
  const marked = [
    { place: [pair.a, pair.a], colour: "var(--soft)", shape: "square", words: "site 1, always" },
    { place: limitOf(pair), colour: "#4477aa", shape: "circle", words: "averaging ends here" },
    { place: pooledOf(pair), colour: "#dd7700", shape: "narrow", words: "pooled Lasso" },
  ].map(({ place: [x, y], ...rest }) => ({ x, y, ...rest }));
  // Both axes show where the last rounds happen; the way there from zero is cut off.
  const seen = [...marked.map(({ x, y }) => [x, y]), ...steps.slice(1).flatMap((s) => [s.next, s.site])];
  const [across, up] = [0, 1].map((i) => extent(seen.map((p) => p[i]), { pad: 0.12 }));
  const inside = ([x, y]) => x >= across[0] && x <= across[1] && y >= up[0] && y <= up[1];
  const sent = steps.filter((step) => inside(step.from) && inside(step.site)).map(({ from, site }) => ({ x1: from[0], y1: from[1], x2: site[0], y2: site[1], x: site[0], y: site[1], colour: "var(--soft)", shape: "circle", tip: "what site 2 sends back" }));
  const averages = steps.map(({ next }, i) => ({ x: next[0], y: next[1], colour: "#4477aa", shape: "circle", tip: `average after round ${i + 1}\n(${next.map(brief).join(", ")})` })).filter(({ x, y }) => inside([x, y]));
  const [x, y] = steps.at(-1).site;
  const courses = [...marked, ...sent, ...averages].map((row) => [[row.x, row.y]]);
  return panel({
    ...size,
    title: "Where the iterates go",
    x: { label: "first coefficient", domain: across },
    y: { label: "second coefficient", domain: up },
    marks: [
      bars(sent, { strokeWidth: 0.8, strokeDasharray: "3 3" }),
      points(sent, { size: 0.6, place: null }),
      lines(averages, { z: null }),
      points(averages, { size: 0.9, place: null }),
      points(marked, { size: 1.5, place: null }),
      labels([...marked, { x, y, words: "site 2 sends back" }], courses, { fontSize: 11.5, fill: "var(--ink)" }),
    ],
  });
}

function drawGaps(pair, gaps, size) {
  const least = (pair.d ** 2 * pair.r ** 4) / (32 * (4 - pair.r ** 2));
  const rows = gaps.map((y, i) => ({ x: i, y, colour: "#4477aa", shape: "circle", open: i + 1 !== pair.E, tip: `E = ${i + 1}: gap ${brief(y)}` }));
  return panel({
    ...size,
    title: "How far it ends above the minimum",
    x: { values: gaps.map((_, i) => i + 1), label: "local epochs E" },
    y: { label: "objective gap", domain: [0, 1.1 * Math.max(...gaps)] },
    marks: [
      level("y", least, "mark rule", `no E goes below ${brief(least)}`, { strokeDasharray: "4 3" }),
      texts([{ y: least, words: "no E goes below this" }], { x: undefined, frameAnchor: "right", dy: 10 }),
      points(rows, { size: 1.1 }),
    ],
  });
}

function startTheory() {
  for (const slider of document.querySelectorAll("#theory input"))
    slider.addEventListener("input", drawTheory);
  drawTheory();
}
