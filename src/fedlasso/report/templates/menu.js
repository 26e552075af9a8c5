// What can be taken away from a chart: the picture, its numbers, its address and how to cite it.

// Rows by the name of their section, with exact values, for downloads.
const kept = {};

// One row per cell with the value of every axis, so that the file says what it holds.
const csvRows = (cells, metric) =>
  cells.map((cell) => ({ ...valuesAt(cell), metric: metric.name, ...summarise(valuesOf(cell, metric.name)) }));

function toCsv(rows) {
  const quote = (v) => {
    if (v === undefined || v === null || Number.isNaN(v)) return "";
    return /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : String(v);
  };
  const columns = Object.keys(rows[0] ?? {});
  const all = [columns, ...rows.map((row) => columns.map((name) => row[name]))];
  return all.map((row) => `${row.map(quote).join(",")}\n`).join("");
}

function save(name, kind, content, type) {
  const parts = [DATA.study, name, state.metric, ...Object.values(chosenValues())];
  const file = `${parts.join("-").replaceAll(/[^\w.-]+/g, "_")}.${kind}`;
  const link = URL.createObjectURL(new Blob([content], { type }));
  element("a", { href: link, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(link), 1000);
}

// Words in as many lines as the room needs.
function breakWords(words, room, size) {
  const lines = [""];
  for (const word of words.split(" "))
    if (widthOfWords(`${lines.at(-1)} ${word}`, size) > room) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  return lines;
}

// The picture by itself: light colours, its title and legend above it, where it comes from below it.
function picture(name) {
  const drawn = document.querySelector(`#${name}-chart > svg`).cloneNode(true);
  const [width, height] = ["width", "height"].map((side) => Number(drawn.getAttribute(side)));
  const write = (words, x, y, size, more) =>
    svgElement("text", { x, y, "font-size": size, "text-anchor": "start", ...more }, words);
  const title = breakWords(byId(`${name}-chart-title`).textContent, (width - 20) / 1.22, 13.5);
  const parts = title.map((line, i) => write(line, 10, 18 + 18 * i, 13.5, { "font-weight": 600 }));
  let [x, y] = [10, 18 * title.length + 22];
  for (const entry of byId(`${name}-chart-legend`).children) {
    const wide = 32 + widthOfWords(entry.textContent, 12.5);
    if (x > 10 && x + wide > width) [x, y] = [10, y + 20];
    const grey = entry.querySelector(".swatch")?.style.background;
    const symbol = grey ? svgElement("rect", { x: -6, y: -6, width: 12, height: 12, fill: grey }) : symbolPath(entry.dataset.only);
    parts.push(svgElement("g", { transform: `translate(${x + 6},${y})` }, symbol, write(entry.textContent, 11, 4.5, 12.5)));
    x += wide;
  }
  const top = y + (x > 10 ? 16 : -8);
  const whole = height + top + 24;
  const source = `fedlasso, ${DATA.study} study, seed ${DATA.cite.seed}, code ${DATA.cite.code}; ${describe()}`;
  const ground = svgElement("rect", { width, height: whole, fill: "var(--back)" });
  const chart = svgElement("g", { transform: `translate(0,${top})` }, ...drawn.children);
  drawn.append(ground, ...parts, chart, write(source, 10, whole - 10, 10, { fill: "var(--soft)" }));
  drawn.setAttribute("height", whole);
  drawn.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  const light = { back: "#ffffff", card: "#f6f7f9", ink: "#1d2127", soft: "#555d68", line: "#d5dae1" };
  return new XMLSerializer().serializeToString(drawn).replaceAll(/var\(--(\w+)\)/g, (_, name) => light[name]);
}

async function savePng(name) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture(name))}`;
  await image.decode();
  const canvas = element("canvas", { width: image.width * 2, height: image.height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(name, "png", blob));
}

function bibtex(name) {
  const { seed, code: hash, version, started } = DATA.cite;
  const title = byId(`${name}-chart-title`).textContent.replaceAll(/[{}]/g, "");
  return `@misc{fedlasso-${DATA.study}-${name}-${hash},
  title = {fedlasso: the ${DATA.study} study, ${title}},
  year = {${started.slice(0, 4)}},
  note = {fedlasso ${version}, study seed ${seed}, code ${hash}, first run ${started}; ${describe()}}
}
`;
}

async function copy(words, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(words);
    button.textContent = "Copied";
  } catch {
    prompt("Copy this:", words);
  }
  setTimeout(() => button.replaceChildren(before), 1500);
}

const TAKE = {
  svg: (name) => save(name, "svg", picture(name), "image/svg+xml"),
  png: (name) => savePng(name),
  csv: (name) => save(name, "csv", toCsv(kept[name]), "text/csv"),
  link: (name, button) => copy(`${location.href.split("#")[0]}#${address(name)}`, button),
  bib: (name) => save(name, "bib", bibtex(name), "text/plain"),
};
