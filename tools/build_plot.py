"""Rebuild the drawing library of the report's page: ``python tools/build_plot.py``.

The library is Observable Plot with the parts of D3 that the page uses, minified in one file. It is
written to ``src/fedlasso/report/templates/vendor/`` together with the licences of every package in
it. Versions are pinned by ``tools/plot/package.json`` and ``package-lock.json``. This script needs
Node.js and a network; the report needs neither.
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "src" / "fedlasso" / "report" / "templates" / "vendor"
# What the page's scripts call as ``Plot.NAME``; esbuild leaves out what these do not need.
USED = {
    "@observablehq/plot": (
        "areaY", "arrow", "axisX", "axisY", "dot", "gridX", "gridY", "line", "link", "plot", "rect",
        "ruleX", "ruleY", "text",
    ),
    "d3-array": ("median", "quantile"),
    "d3-scale": ("scaleLog",),
    "d3-shape": (
        "symbol", "symbolCircle", "symbolCross", "symbolDiamond", "symbolSquare", "symbolStar",
        "symbolTriangle", "symbolWye",
    ),
}  # fmt: skip
LINE = "-" * 72


def read_licences(folder: Path, bundle: dict[str, dict[str, int]]) -> str:
    """Name, version and licence text of every package that has bytes in the bundle."""
    names = set()
    for file, part in bundle.items():
        if part["bytesInOutput"] and file.startswith("node_modules/"):
            first, second, *_ = file.removeprefix("node_modules/").split("/")
            names.add(f"{first}/{second}" if first.startswith("@") else first)
    texts = []
    for name in sorted(names):
        package = json.loads((folder / name / "package.json").read_text())
        text = (folder / name / "LICENSE").read_text().strip()
        texts.append(f"{name} {package['version']} ({package['license']})\n\n{text}\n")
    return f"\n{LINE}\n\n".join(texts)


def main() -> None:
    """Install the pinned packages into a folder of their own, bundle them and write the files."""
    OUT.mkdir(exist_ok=True)
    version = json.loads((HERE / "plot" / "package.json").read_text())["dependencies"]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(HERE / "plot" / file, work)
        exports = [f"export {{ {', '.join(names)} }} from '{p}';" for p, names in USED.items()]
        (work / "entry.js").write_text("\n".join(exports))
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=work, check=True)
        banner = (
            f"/* Observable Plot {version['@observablehq/plot']} with parts of D3; licences in "
            "LICENCES.txt; rebuilt by tools/build_plot.py */"
        )
        command = [
            "npx", "esbuild", "entry.js", "--bundle", "--minify", "--format=iife",
            "--global-name=Plot", "--target=es2022", "--charset=utf8", "--legal-comments=none",
            "--metafile=meta.json", f"--outfile={OUT / 'plot.min.js'}", f"--banner:js={banner}",
        ]  # fmt: skip
        subprocess.run(command, cwd=work, check=True)
        (bundle,) = json.loads((work / "meta.json").read_text())["outputs"].values()
        licences = read_licences(work / "node_modules", bundle["inputs"])
        (OUT / "LICENCES.txt").write_text(licences)


if __name__ == "__main__":
    main()
