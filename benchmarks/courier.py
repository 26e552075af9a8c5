"""Default fits by files: round trips, the sizes of files, and the time to a site's first answer.

    PYTHONPATH=tests python benchmarks/courier.py [--write]

Writes the table of docs/courier.md with --write. The sites' secrets are fixed, so round trips are
those of every run; sizes vary by a few bytes. A first answer is a process of its own, as a site
starts it; its seconds are of the processor.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from helpers.deploy.carried import CARRIED, KEY, Carried
from helpers.deploy.post import Post
from helpers.nets import same_files

PAGE = Path(__file__).parent.parent / "docs" / "courier.md"
BEGIN, END = "<!-- trips: begin -->\n", "<!-- trips: end -->"
HEADER = """\
| data | family | round trips | question files | answer files | first answer | one process |
|---|---|---|---|---|---|---|
"""


def carry(name: str, carried: Carried, folder: Path) -> str:
    """Fit by files; return a row of the table."""
    post = Post(folder / "post", carried.write(folder))
    post.fix_secrets(KEY)
    fit = post.ask(carried.settings, drop=(), **carried.outcome)
    seconds = first_answer(post, fit.outstanding()[0])
    questions, answers = [], []
    finished = None
    while finished is None:
        questions += [path.stat().st_size for path in fit.outstanding()]
        answers += [path.stat().st_size for path in post.carry(fit)]
        finished = post.advance(fit)
    alone = post.repeat(finished.document, folder / "alone")
    same = "same bytes" if same_files(post.folder / "model", alone) else "differs"
    cells = (
        name,
        carried.family,
        str(len(fit.trips())),
        span(questions),
        span(answers),
        f"{seconds:.1f} s",
        same,
    )
    return f"| {' | '.join(cells)} |\n"


def span(sizes: list[int]) -> str:
    return f"{min(sizes) / 1000:.1f} to {max(sizes) / 1000:.1f} kB"


def first_answer(post: Post, question: Path) -> float:
    """Seconds of the processor for a site's command."""
    words = ("courier", "answer", post.kit("a"), question, post.tables["a"], "--yes")
    command = [sys.executable, "-m", "fedlasso", *map(str, words)]
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    passed = (after.children_user - before.children_user, after.children_system)
    return sum(passed) - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to docs/courier.md")
    options = parser.parse_args()
    rows = []
    for name, carried in CARRIED.items():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(carry(name, carried, Path(folder)))
            print(rows[-1], end="", flush=True)
    if options.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}{HEADER}{''.join(rows)}{END}{after}")


if __name__ == "__main__":
    main()
