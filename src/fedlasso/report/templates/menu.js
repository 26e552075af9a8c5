// What can be taken away from a chart: the picture, its numbers, its address and how to cite it.

// Tables by the name of their section, with exact values, for downloads.
const kept = {};

function keepTable(name, caption, { columns, rows }) {
  kept[name] = { caption, columns, rows };
}

function chosenValues() {
  return Object.fromEntries(CONTROLS.map((a) => [a, axis(a).values[code0(a)]]));
}

// One row per cell with the value of every axis, so that the file says what it holds.
function csvRows(cells, metric) {
  const columns = [...AXES, "metric", "mean", "se", "low", "high", "n"];
  const rows = cells.map((cell) => ({
    ...Object.fromEntries(AXES.map((a) => [a, axis(a).values[code(cell, a)]])),
    metric: metric.name,
    ...summarise(valuesOf(cell, metric.name)),
  }));
  return { columns, rows };
}

function toCsv({ columns, rows }) {
  const quote = (v) => {
    if (v === undefined || v === null || Number.isNaN(v)) return "";
    return /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
  };
  return (
    [columns, ...rows.map((row) => columns.map((n) => row[n]))]
      .map((r) => r.map(quote).join(","))
      .join("\n") + "\n"
  );
}

function fileName(name, kind) {
  const where = CONTROLS.map((a) => axis(a).values[code0(a)]);
  return (
    [DATA.study, name, METRICS[0] && state.metric, ...where].join("-").replaceAll(/[^\w.-]+/g, "_") +
    `.${kind}`
  );
}

function save(name, kind, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  element("a", { href: address, download: fileName(name, kind) }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// The legend of a chart as it stands in the picture: what every mark is, in rows, and how high they are.
function pictureLegend(name, width) {
  let [x, y] = [10, 0];
  const parts = [];
  for (const entry of document.getElementById(`${name}-chart-legend`).children) {
    const words = entry.textContent;
    const wide = 24 + widthOfWords(words, 12.5);
    if (x > 10 && x + wide > width) [x, y] = [10, y + 20];
    const part = entry.querySelector(".swatch");
    parts.push(
      part
        ? tag("rect", { x, y: y + 2, width: 12, height: 12, fill: part.style.background })
        : point(x + 6, y + 8, entry.dataset.only),
      text(x + 17, y + 12.5, words, { size: 12.5 }),
    );
    x += wide + 8;
  }
  return { drawn: parts.join(""), height: parts.length ? y + 24 : 0 };
}

// The picture by itself: light colours, its title and legend above it, where it comes from below it.
function picture(name) {
  const drawn = document.querySelector(`#${name}-chart svg`);
  const [width, height] = ["width", "height"].map((a) => Number(drawn.getAttribute(a)));
  const words = document.getElementById(`${name}-chart-title`).textContent;
  const lines = breakWords(words, (width - 20) / 1.22, 13.5); // bold is wider
  const key = pictureLegend(name, width);
  const above = 14 + 18 * lines.length;
  const top = above + key.height;
  const body = [
    tag("rect", { width, height: height + top + 24, fill: "#ffffff" }),
    ...lines.map((t, i) => text(10, 18 + 18 * i, t, { size: 13.5, weight: 600 })),
    tag("g", { transform: `translate(0,${above})` }, key.drawn),
    tag("g", { transform: `translate(0,${top})` }, drawn.innerHTML),
    text(
      10,
      height + top + 14,
      `fedlasso, ${DATA.study} study, seed ${DATA.cite.seed}, code ${DATA.cite.code}; ${describe()}`,
      { size: 10, colour: "var(--soft)" },
    ),
  ];
  const light = { back: "#ffffff", card: "#f6f7f9", ink: "#1d2127", soft: "#555d68", line: "#d5dae1" };
  return svg(width, height + top + 24, words, body.join("")).replace(/var\(--(\w+)\)/g, (_, v) => light[v]);
}

async function savePng(name) {
  const source = picture(name);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source)}`;
  await image.decode();
  const canvas = element("canvas", { width: image.width * 2, height: image.height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, "png", blob));
}

function bibtex(name) {
  const { seed, code: hash, version, started } = DATA.cite;
  return (
    `@misc{fedlasso-${DATA.study}-${name}-${hash},\n  title = {fedlasso: the ${DATA.study} study, ${document.getElementById(`${name}-chart-title`).textContent.replaceAll(/[{}]/g, "")}},\n` +
    `  year = {${started.slice(0, 4)}},\n  note = {fedlasso ${version}, study seed ${seed}, code ${hash}, first run ${started}; ${describe()}}\n}\n`
  );
}

async function copy(words, press) {
  const before = press.textContent;
  try {
    await navigator.clipboard.writeText(words);
    press.textContent = "Copied";
  } catch {
    prompt("Copy this:", words);
  }
  setTimeout(() => {
    press.textContent = before;
  }, 1500);
}

const TAKE = {
  svg: (name) => save(name, "svg", picture(name), "image/svg+xml"),
  png: (name) => savePng(name),
  csv: (name) => save(name, "csv", toCsv(kept[name]), "text/csv"),
  link: (name, press) => copy(`${location.href.split("#")[0]}#${address(name)}`, press),
  bib: (name) => save(name, "bib", bibtex(name), "text/plain"),
};

function startMenus() {
  document.addEventListener("click", (event) => {
    const press = event.target.closest("[data-take]");
    if (press) TAKE[press.dataset.take](press.dataset.of, press);
    for (const menu of document.querySelectorAll(".menu[open]"))
      if (!menu.contains(event.target) || press) menu.open = false;
  });
}
