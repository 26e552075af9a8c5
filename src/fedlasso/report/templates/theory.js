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
  const steps = iterate(pair, 12);
  const [limit, pooled] = [limitOf(pair), pooledOf(pair)];
  const epochs = Array.from({ length: 10 }, (_, i) => i + 1);
  const gaps = epochs.map((E) => gapOf({ ...pair, E }));
  const best = epochs[gaps.indexOf(Math.min(...gaps))];
  document.getElementById("theory-words").textContent =
    `With r = ${pair.r}, a = ${pair.a}, d = ${pair.d} and E = ${pair.E}, averaging ends at (${limit.map(brief).join(", ")}) and the pooled Lasso is at (${pooled.map(brief).join(", ")}): ` +
    `the objective stays ${brief(gapOf(pair))} above its minimum, however many rounds are made. Each round shrinks the distance to that end to ` +
    `${brief(pair.r ** (2 * pair.E) / 2)} of what it was. The smallest gap of all whole E is at E = ${best}.`;
  const whole = widthOf("theory-chart");
  const across = whole < 620 ? 1 : 2;
  const width = whole / across;
  const height = 320;
  // Both axes show where the last rounds happen; the way there from zero is cut off.
  const seen = [limit, pooled, [pair.a, pair.a], ...steps.slice(1).flatMap((s) => [s.next, s.site])];
  const iterates = panel({
    width,
    height,
    top: 30,
    title: "Where the iterates go",
    x: {
      label: "first coefficient",
      domain: extent(
        seen.map((p) => p[0]),
        { pad: 0.12 },
      ),
    },
    y: {
      label: "second coefficient",
      domain: extent(
        seen.map((p) => p[1]),
        { pad: 0.12 },
      ),
    },
    marks: (X, Y, box) => {
      const inside = ([x, y]) => X(x) >= box.left - 1 && Y(y) <= box.bottom + 1;
      const at = ([x, y]) => [X(x), Y(y)];
      const parts = [];
      for (const step of steps)
        if (inside(step.from) && inside(step.site)) {
          parts.push(
            rule(...at(step.from), ...at(step.site), { colour: "var(--soft)", width: 0.8, dash: "3 3" }),
          );
          parts.push(
            tag("circle", {
              class: "mark",
              cx: X(step.site[0]),
              cy: Y(step.site[1]),
              r: 2.5,
              fill: "var(--soft)",
              "data-tip": "what site 2 sends back",
            }),
          );
        }
      parts.push(
        tag("polyline", {
          points: steps
            .filter((s) => inside(s.next))
            .map((s) =>
              at(s.next)
                .map((v) => v.toFixed(1))
                .join(),
            )
            .join(" "),
          fill: "none",
          stroke: "#4477aa",
          "stroke-width": 1.6,
        }),
      );
      steps.forEach(
        (s, i) =>
          inside(s.next) &&
          parts.push(
            tag("circle", {
              class: "mark iterate",
              cx: X(s.next[0]),
              cy: Y(s.next[1]),
              r: 3.6,
              fill: "#4477aa",
              "data-tip": `average after round ${i + 1}\n(${s.next.map(brief).join(", ")})`,
            }),
          ),
      );
      const marked = [
        [[pair.a, pair.a], "var(--soft)", "square", "site 1, always"],
        [limit, "#4477aa", "circle", "averaging ends here"],
        [pooled, "#dd7700", "diamond", "pooled Lasso"],
      ];
      for (const [place, colour, shape] of marked)
        parts.push(
          tag("path", {
            class: "mark",
            d: SHAPES[shape],
            transform: `translate(${at(place).map((v) => v.toFixed(1))}) scale(1.6)`,
            fill: colour,
          }),
        );
      const named = [...marked.map(([place, , , words]) => [place, words]), [steps.at(-1).site, "site 2 sends back"]];
      parts.push(
        ...nameMarks(
          named.map(([place, words]) => ({ x: X(place[0]), y: Y(place[1]), words })),
          [...marked.map(([place]) => at(place)), ...steps.flatMap((s) => [at(s.site), at(s.next)])],
          box,
          { size: 11.5, colour: "var(--ink)" },
        ),
      );
      return parts;
    },
  });
  const curve = panel({
    width,
    height,
    top: 30,
    title: "How far it ends above the minimum",
    x: { kind: "band", values: epochs, label: "local epochs E" },
    y: { label: "objective gap", domain: [0, 1.1 * Math.max(...gaps)] },
    marks: (X, Y, box) => {
      const least = (pair.d ** 2 * pair.r ** 4) / (32 * (4 - pair.r ** 2));
      return [
        rule(box.left, Y(least), box.right, Y(least), {
          colour: "var(--soft)",
          width: 1,
          dash: "4 3",
          tip: `no E goes below ${brief(least)}`,
        }),
        text(box.right, Y(least) + 14, "no E goes below this", {
          anchor: "end",
          size: 11,
          colour: "var(--soft)",
        }),
        ...epochs.map((E, i) =>
          tag("circle", {
            class: "mark",
            cx: X(E),
            cy: Y(gaps[i]),
            r: E === pair.E ? 6 : 4,
            fill: E === pair.E ? "#4477aa" : "var(--back)",
            stroke: "#4477aa",
            "stroke-width": 1.6,
            "data-tip": `E = ${E}: gap ${brief(gaps[i])}`,
          }),
        ),
      ];
    },
  });
  put(
    "theory-chart",
    across === 1 ? 2 * height : height,
    "The two-site example",
    iterates +
      tag("g", { transform: across === 1 ? `translate(0,${height})` : `translate(${width},0)` }, curve),
  );
  keepTable("theory", "Limiting gap by epochs", {
    columns: ["r", "a", "d", "E", "gap"],
    rows: epochs.map((E, i) => ({ ...pair, E, gap: gaps[i] })),
  });
}

function startTheory() {
  for (const slider of document.querySelectorAll("#theory input"))
    slider.addEventListener("input", drawTheory);
  drawTheory();
}
