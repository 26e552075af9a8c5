// How the gap falls with what is uploaded.

// Choices that gaps are apart by, such as the family.
const ARMS = CONTROLS.filter((name) => name !== "scenario" && name in (DATA.gaps[0] ?? {}));

// The gap against uploads, both logarithmic; medians with quartiles.
function drawUploads() {
  // One reading per method is no course; the gap is then an outcome like the others.
  const courses = groupBy(DATA.gaps, (r) => [r.scenario, r.method, r.epochs, ...ARMS.map((a) => r[a])].join("~"));
  document.getElementById("uploads").hidden = ![...courses.values()].some((own) => own.length > 1);
  if (document.getElementById("uploads").hidden) return;
  const scenario = axis("scenario").values[code0("scenario")];
  const rows = DATA.gaps.filter(
    (r) => r.scenario === scenario && ARMS.every((a) => r[a] === axis(a).values[code0(a)]),
  );
  if (!rows.length) return nothing("uploads-chart");
  const byLine = groupBy(rows, (r) => `${r.method}~${r.epochs}`);
  let lines = [...byLine.values()].map((own) => own.sort((a, b) => a.uploads - b.uploads));
  if (state.epochs_shown === "best") {
    const best = new Map();
    for (const own of lines) {
      const last = own.at(-1).gap;
      if (!best.has(own[0].method) || last < best.get(own[0].method).at(-1).gap) best.set(own[0].method, own);
    }
    lines = [...best.values()];
  }
  const methods = METHOD_NAMES.filter((m) => lines.some((own) => own[0].method === m));
  legend("uploads-chart", methods);
  const height = paper ? 265 : 430;
  const told = new Set(rows.map((r) => r.epochs).filter(Boolean)).size > 1;
  const name = (own) => (told && own[0].epochs ? `${own[0].method}, E = ${own[0].epochs}` : own[0].method);
  const wide = widthOf("uploads-chart") > 560;
  put(
    "uploads-chart",
    height,
    `Relative gap against uploads; ${axis("scenario").words[code0("scenario")]}`,
    panel({
      width: widthOf("uploads-chart"),
      height,
      right: wide ? 34 + 7.2 * Math.max(...lines.map((own) => name(own).length)) : 16,
      top: wide ? 18 : 10,
      x: {
        kind: "log",
        label: "uploads per site, in vectors of p numbers",
        domain: [
          0.93 * Math.max(0.5, Math.min(...rows.map((r) => r.uploads))),
          1.04 * Math.max(...rows.map((r) => r.uploads)),
        ],
        say: brief,
      },
      y: {
        kind: "log",
        label: "median relative gap",
        domain: extent(
          lines.flat().flatMap((r) => [r.low, r.high]),
          { scale: "log" },
        ),
        say: (v) => (v <= FLOOR ? "≤ 1e−16" : brief(v)),
      },
      marks: (X, Y, box) => {
        const parts = lines.flatMap((own) => {
          const { method } = own[0];
          const band = [
            ...own.map((r) => [X(r.uploads), Y(r.high)]),
            ...own.toReversed().map((r) => [X(r.uploads), Y(r.low)]),
          ];
          return [
            tag("polygon", {
              points: band.map((p) => p.map((v) => v.toFixed(1)).join()).join(" "),
              fill: look(method).colour,
              opacity: 0.13,
              "data-method": method,
              class: "band",
            }),
            line(
              own.map((r) => [X(r.uploads), Y(r.gap)]),
              method,
            ),
            ...own.map((r) =>
              point(X(r.uploads), Y(r.gap), method, {
                size: 0.85,
                tip: `${name(own)}\n${brief(r.uploads)} uploads: gap ${brief(r.gap)}\nhalf of ${r.n} replicates: ${brief(r.low)} to ${brief(r.high)}`,
              }),
            ),
          ];
        });
        if (wide) {
          // A line that goes to the end is named there, any other beside its last mark.
          const long = lines.filter((own) => X(own.at(-1).uploads) > box.right - 60);
          const places = spread(
            long.map((own) => Y(own.at(-1).gap)),
            14,
            [box.top - 8, box.bottom + 30],
          );
          const early = lines
            .filter((own) => !long.includes(own))
            .map((own) => ({
              x: X(own.at(-1).uploads),
              y: Y(own.at(-1).gap),
              words: name(own),
              method: own[0].method,
            }));
          const spots = lines.flatMap((own) => along(own.map((r) => [X(r.uploads), Y(r.gap)])));
          parts.push(...nameMarks(early, spots, box, { size: 11.5, weight: 600, colour: "var(--ink)" }));
          long.forEach((own, i) =>
            parts.push(
              rule(X(own.at(-1).uploads) + 6, Y(own.at(-1).gap), box.right + 14, places[i], {
                method: own[0].method,
                width: 0.6,
                dash: "2 2",
              }).replace("mark rule", "leader"),
              text(box.right + 17, places[i] + 4, name(own), {
                size: 11.5,
                weight: 600,
                method: own[0].method,
              }),
            ),
          );
        }
        return parts;
      },
    }),
  );
  keepTable("uploads", "Gap against uploads", {
    columns: ["scenario", ...ARMS, "method", "epochs", "uploads", "gap", "low", "high", "n"],
    rows: lines.flat(),
  });
}

function groupBy(rows, name) {
  const groups = new Map();
  for (const row of rows) groups.set(name(row), [...(groups.get(name(row)) ?? []), row]);
  return groups;
}
