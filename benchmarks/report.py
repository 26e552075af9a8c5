"""How long a report takes to write, and its page to draw, beside reading the same records.

The peer is pandas, which reads the same Parquet parts one after another into one frame. Both are
fresh processes of the same run, so both start from nothing. Give a results folder of yours, or let
two replicates of the whole study be computed first.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median

from helpers.browsing import open_browser

TURNS = 3
PEER = """
import sys
from pathlib import Path
import pandas as pd
pd.concat(pd.read_parquet(part) for part in sorted(Path(sys.argv[1]).glob("parts/*/*.parquet")))
"""
# Notes when the first chart is there, counted from the start of loading.
WATCH = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".chart svg")) return;
  window.firstChart = performance.now();
  watch.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
# Chooses another value, and waits until the page has been painted with it.
CHOOSE = """
([name, value]) => new Promise((done) => {
  const control = document.getElementById(name);
  control.value = value;
  const start = performance.now();
  control.dispatchEvent(new Event("change"));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})
"""


def run(*arguments: str) -> tuple[float, float]:
    """Seconds by the clock and of processors that a Python process and all of its children take."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def time_writing(folder: Path, out: Path) -> None:
    """Print the middle of some turns, and the ratio to the peer."""
    turns: dict[str, list[tuple[float, float]]] = {"report": [], "pandas reads": []}
    for _ in range(TURNS):
        turns["report"].append(run("-m", "fedlasso", "report", str(folder), "--out", str(out)))
        turns["pandas reads"].append(run("-c", PEER, str(folder)))
    middle = {
        name: [median(column) for column in zip(*times, strict=True)]
        for name, times in turns.items()
    }
    for name, (clock, processors) in middle.items():
        print(f"{name:>12}: {clock:6.2f} s by the clock, {processors:6.2f} s of processors")
    clock, processors = (
        ours / theirs for ours, theirs in zip(middle["report"], middle["pandas reads"], strict=True)
    )
    print(f"{'ratio':>12}: {clock:6.2f}   by the clock, {processors:6.2f}   of processors")


def time_page(page_file: Path) -> None:
    """Print when the first chart is there, and how long a change of a control takes."""
    with open_browser() as browser:
        first = []
        for _ in range(TURNS):
            page = browser.new_page()
            page.add_init_script(WATCH)
            page.goto(page_file.resolve().as_uri())
            page.wait_for_selector("body[data-ready]")
            first.append(page.evaluate("window.firstChart"))
        changes = []
        for control in page.locator("#controls select").all():
            name = control.get_attribute("id")
            values = control.locator("option").evaluate_all("all => all.map((o) => o.value)")
            changes += [page.evaluate(CHOOSE, [name, value]) for value in values[:TURNS]]
        print(f"{'first chart':>12}: {median(first):6.0f} ms in Chromium {browser.version}")
        print(f"{'change':>12}: {median(changes):6.0f} ms until painted, worst {max(changes):.0f}")


def main() -> None:
    """Measure one results folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="results of a study")
    given = parser.parse_args().folder
    packages = ("fedlasso", "pandas", "pyarrow", "matplotlib")
    print(", ".join(f"{name} {version(name)}" for name in packages))
    with tempfile.TemporaryDirectory() as name:
        folder = given or Path(name) / "results"
        if given is None:
            settings = ("--study", "whole", "--replicates", "2", "--out", str(folder))
            run("-m", "fedlasso", "study", "run", *settings)
        print(f"{len(list(folder.glob('parts/*/*.parquet')))} replicates")
        out = Path(name) / "report"
        time_writing(folder, out)
        time_page(out / "index.html")


if __name__ == "__main__":
    main()
