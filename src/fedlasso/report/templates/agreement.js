// Published means beside ours.

// Published means across, ours upwards; the two agree on the line.
function drawAgreement() {
  if (!DATA.agreement) return;
  const metrics = [...new Set(DATA.agreement.cells.map((c) => c.metric))];
  const whole = widthOf("agreement-chart");
  const across = whole < 620 ? 1 : metrics.length;
  const width = whole / across;
  const height = 270;
  legend(
    "agreement-chart",
    METHOD_NAMES.filter((m) => DATA.agreement.cells.some((c) => c.method === m)),
  );
  const parts = metrics.map((metric, i) => {
    const own = DATA.agreement.cells.filter((c) => c.metric === metric && c.our_mean !== null);
    const { label, scale } = METRICS.find((m) => m.name === metric);
    const ends = (c) => [c.our_mean - 1.96 * c.our_se, c.our_mean + 1.96 * c.our_se];
    const domain = extent(
      own.flatMap((c) => [c.mean, c.our_mean, ...(scale === "log" ? [] : ends(c))]),
      { scale },
    );
    const kind = scale === "log" ? "log" : "linear";
    return tag(
      "g",
      { transform: `translate(${(i % across) * width},${Math.floor(i / across) * height})` },
      panel({
        width,
        height,
        top: 30,
        title: label,
        x: { kind, domain, label: "published" },
        y: { kind, domain, label: "ours" },
        marks: (X, Y, box) => [
          rule(X(domain[0]), Y(domain[0]), X(domain[1]), Y(domain[1]), {
            colour: "var(--soft)",
            width: 1,
            dash: "4 3",
          }).replace("mark rule", "identity"),
          ...own.flatMap((c) => {
            const tip = `${c.scenario_words}: ${c.method}, E = ${c.epochs}\npublished ${brief(c.mean)} (SE ${brief(c.se)})\nours ${brief(c.our_mean)} (SE ${brief(c.our_se)})\nz = ${brief(c.z)}`;
            const [low, high] =
              scale === "share" ? [Math.max(0, ends(c)[0]), Math.min(1, ends(c)[1])] : ends(c);
            return [
              rule(X(c.mean), Y(low), X(c.mean), Y(high), { method: c.method, width: 1.4 }),
              point(X(c.mean), Y(c.our_mean), c.method, { tip, open: Math.abs(c.z) > 1.96, size: 0.9 }),
            ];
          }),
        ],
      }),
    );
  });
  put(
    "agreement-chart",
    height * Math.ceil(metrics.length / across),
    "Published means against ours",
    parts.join(""),
  );
}
