// Titles of charts, for views that no finding is about.
// A label within a sentence begins with a small letter, unless it is an abbreviation.
const within = (label) => (/^.[a-z]/.test(label) ? label[0].toLowerCase() + label.slice(1) : label);

// Means that are the same for a reader: alike to a thousandth, or both at the optimum.
function alike(a, b, metric) {
  if (metric.scale === "log" && a <= 1e-8 && b <= 1e-8) return true;
  return Math.abs(a - b) <= 1e-3 * Math.max(Math.abs(a), Math.abs(b));
}

function listed(names) {
  const few = names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
  return names.length > 3 ? `${names.length} alike, such as ${names[0]}` : few;
}

// Who is best, and who comes next; outcomes without a better side have a range.
function tellMeans(rows, metric) {
  const known = measured(rows);
  if (known.length < 2) return `Mean ${within(metric.label)}`;
  const sign = metric.better === "higher" ? -1 : 1;
  const order = [...known].sort((a, b) => sign * (a.mean - b.mean));
  // Two means that are compared have the same decimals.
  const error = (r, other) => Math.max(r.se, other?.se ?? 0) || r.se;
  const shown = (r, other) => `(${metric.scale === "log" ? brief(r.mean) : toError(r.mean, error(r, other))})`;
  const [low, high] = [order[0], order.at(-1)].map((r) => `${r.label} ${shown(r)}`);
  if (!metric.better) return `Mean ${within(metric.label)}: smallest ${low}, largest ${high}`;
  const best = order.filter((r) => alike(r.mean, order[0].mean, metric));
  const next = order.find((r) => !best.includes(r));
  const side = metric.better === "higher" ? "Highest" : "Lowest";
  const first = `${side} mean ${within(metric.label)}: ${listed(best.map((r) => r.label))} ${shown(best[0], next)}`;
  return next ? `${first}; next ${next.label} ${shown(next, best[0])}` : first;
}

// How many differences the simulation distinguishes from zero, to each side. One replicate has no intervals.
function tellContrast(rows, pair, metric) {
  const known = measured(rows);
  if (!known.length) return `${metric.label}, ${pair.label}: no data set has both`;
  const single = known.every((row) => Number.isNaN(row.se));
  const above = known.filter((row) => (single ? row.mean : row.low) > 0).length;
  const below = known.filter((row) => (single ? row.mean : row.high) < 0).length;
  const what = `${metric.label}, ${pair.label}${single ? ", of one replicate:" : ": interval"}`;
  return `${what} above zero in ${above} and below zero in ${below} of ${known.length}`;
}

function tellLedger(rows, cost) {
  const totals = new Map();
  // What no budget paid for has cost next to nothing, and is no bargain.
  for (const r of rows) if (r.fitted) totals.set(r.group, (totals.get(r.group) ?? 0) + r.value);
  const what = cost.label.replace(" (bytes)", "");
  if (totals.size < 2) return what;
  const order = [...totals].sort((a, b) => a[1] - b[1]);
  const [least, most] = [order[0], order.at(-1)].map(([, value]) => withUnit(value, cost.parts[0].unit));
  return least === most ? `${what}: ${least}, all alike` : `${what}: from ${least} (${order[0][0]}) to ${most}`;
}
