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

const pooledOf = ({ r, a, d }) => [a + (r * d) / (4 - r * r), a + ((2 - r * r) * d) / (4 - r * r)];

function gapOf({ r, d, E }) {
  const s = r ** (2 * E);
  const t = s / (2 - s);
  return (d * d * r ** 4) / (32 * (4 - r * r)) + ((d * d) / (8 * r * r)) * (t - (r * r) / 2) ** 2;
}

function readTheory() {
  const pair = {};
  for (const name of ["r", "a", "d", "E"]) {
    pair[name] = Number(byId(`theory-${name}`).value);
    byId(`theory-${name}-value`).textContent = pair[name];
  }
  return pair;
}

function showTheory() {
  if (!byId("theory")) return; // studies that do not vary the epochs
  const pair = readTheory();
  const [limit, pooled] = [limitOf(pair), pooledOf(pair)].map((place) => place.map(brief).join(", "));
  const gaps = Array.from({ length: 10 }, (_, i) => gapOf({ ...pair, E: i + 1 }));
  const best = 1 + gaps.indexOf(Math.min(...gaps));
  byId("theory-words").textContent =
    `With r = ${pair.r}, a = ${pair.a}, d = ${pair.d} and E = ${pair.E}, averaging converges to (${limit}); the pooled ` +
    `Lasso is at (${pooled}). However many rounds are made, the objective stays ${brief(gapOf(pair))} above its minimum. ` +
    `Each round multiplies the distance to the limit by ${brief(pair.r ** (2 * pair.E) / 2)}. ` +
    `The smallest gap of all whole E is at E = ${best}.`;
  const whole = widthOf("theory");
  const across = whole < 620 ? 1 : 2;
  const size = { width: whole / across, height: 320, top: 30 };
  const panels = [drawIterates(pair, size), drawGaps(pair, gaps, size)].map((drawn) => ({ drawn }));
  put("theory", "The two-site example", [], panels, across);
  kept.theory = gaps.map((gap, i) => ({ ...pair, E: i + 1, gap }));
}

const BLUE = { colour: "#4477aa", shape: "circle" };
const GREY = { colour: "var(--soft)", shape: "circle" };

function drawIterates(pair, size) {
  const at = ([x, y], rest) => ({ x, y, ...rest });
  const marked = [
    at([pair.a, pair.a], { ...GREY, shape: "square", words: "site 1, always" }),
    at(limitOf(pair), { ...BLUE, words: "limit of averaging" }),
    at(pooledOf(pair), { colour: "#dd7700", shape: "narrow", words: "pooled Lasso" }),
  ];
  const steps = iterate(pair, 12);
  const averages = steps.map(({ next }, i) =>
    at(next, { ...BLUE, tip: `average after round ${i + 1}\n(${next.map(brief).join(", ")})` }),
  );
  // The first round starts at zero, far away, and is cut off.
  const sent = steps.slice(1).map(({ from: [x1, y1], site }) =>
    at(site, { ...GREY, x1, y1, x2: site[0], y2: site[1], tip: "what site 2 sends back" }),
  );
  const seen = [...marked, ...sent, ...averages];
  const [x, y] = ["x", "y"].map((side) => extent(seen.map((row) => row[side]), { pad: 0.12 }));
  const named = [...marked, { ...sent.at(-1), words: "site 2 sends back" }];
  return panel({
    ...size, title: "Where the iterates go",
    x: { label: "first coefficient", domain: x },
    y: { label: "second coefficient", domain: y },
    marks: [
      bars(sent, { strokeWidth: 0.8, strokeDasharray: "3 3" }),
      lines(averages, { z: null }),
      points([...sent, ...averages], { size: 0.75, place: null }),
      points(marked, { size: 1.5, place: null }),
      labels(named, [...seen, ...sent.flatMap(along)], { fontSize: 11.5, fill: "var(--ink)" }),
    ],
  });
}

function drawGaps(pair, gaps, size) {
  const least = (pair.d ** 2 * pair.r ** 4) / (32 * (4 - pair.r ** 2));
  const level = [{ y: least, words: "no E goes below this", tip: `no E goes below ${brief(least)}` }];
  const rows = gaps.map((y, i) => ({ ...BLUE, x: i, y, open: i + 1 !== pair.E, tip: `E = ${i + 1}: gap ${brief(y)}` }));
  return panel({
    ...size, title: "Objective gap at the limit",
    x: { values: gaps.map((_, i) => i + 1), label: "local epochs E" },
    y: { label: "objective gap", domain: [0, 1.1 * Math.max(...gaps)] },
    marks: [
      levels(level, "mark rule", { strokeDasharray: "4 3" }),
      texts(level, { x: undefined, frameAnchor: "right", textAnchor: "end", dy: 10 }),
      points(rows, { size: 1.1 }),
    ],
  });
}

function startTheory() {
  for (const slider of document.querySelectorAll("#theory input")) slider.addEventListener("input", showTheory);
  showTheory();
}
