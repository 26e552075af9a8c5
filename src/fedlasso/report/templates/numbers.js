// Numbers as people read them.
function escape(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(text).replace(/[&<>"]/g, (c) => names[c]);
}

// Three digits, and powers of ten where a reader would have to count zeros.
function brief(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6))
    return value.toExponential(1).replace(".0e", "e").replace("e+", "e").replaceAll("-", "−");
  const digits = size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
  return digits.replace("-", "−");
}

// Six digits, for tables.
function format(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return Math.abs(value) < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(6)));
}

function withUnit(value, unit) {
  if (Number.isNaN(value) || !unit) return brief(value);
  if (unit !== "bytes") return `${brief(value)} ${unit}`;
  const place = Math.min(3, Math.max(0, Math.floor(Math.log2(Math.abs(value) || 1) / 10)));
  return `${Number((value / 1024 ** place).toPrecision(3))} ${["B", "KiB", "MiB", "GiB"][place]}`;
}

// As many decimals as give the standard error two digits.
function toError(value, se) {
  if (!Number.isFinite(value) || !(se > 0)) return brief(value);
  const decimals = Math.max(0, 1 - Math.floor(Math.log10(se)));
  if (decimals > 6 || Math.abs(value) >= 1e6) return brief(value);
  const digits = value.toFixed(decimals);
  return (Number(digits) === 0 ? digits.replace("-", "") : digits).replace("-", "−");
}
