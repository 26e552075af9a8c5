"""How the command line shows progress and tables."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar
from rich.text import Text

from fedlasso.study import Progress
from fedlasso.study.runner import Listener


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Replicates per second."""
        return Text(f"{task.speed:.1f}/s" if task.speed else "")


@contextmanager
def progress_bar(title: str) -> Iterator[Listener]:
    """Done, total, rate, time left and failures: a bar on a terminal, a line now and then else."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(title)
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failures]}"),
    )  # fmt: skip
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, failures="")

        def listen(progress: Progress) -> None:
            failures = f"{progress.failed} failed" if progress.failed else ""
            bar.update(
                task, total=progress.total, completed=progress.done + progress.failed,
                failures=failures,
            )  # fmt: skip

        yield listen


def _lines(title: str) -> Listener:
    start = time.monotonic()
    shown = -1
    already: int | None = None

    def listen(progress: Progress) -> None:
        nonlocal shown, already
        at = progress.done + progress.failed
        already = at if already is None else already
        tenth = 10 * at // max(progress.total, 1)
        if tenth == shown:
            return
        shown = tenth
        rate = (at - already) / max(time.monotonic() - start, 1e-9)
        left = f", {rate:.1f}/s, {(progress.total - at) / rate:.0f} s left" if rate > 0 else ""
        failed = f", {progress.failed} failed" if progress.failed else ""
        print(f"{title}: {at}/{progress.total}{left}{failed}", file=sys.stderr, flush=True)

    return listen


def print_frame(frame: pd.DataFrame) -> None:
    """A table in plain text; what is missing is a dash."""
    print(frame.to_string(index=False, float_format=lambda v: f"{v:.4g}", na_rep="-"))


def show(mean: float, se: float) -> str:
    """Mean and standard error; one replicate has no standard error."""
    if math.isnan(mean):
        return "-"
    return f"{mean:.4g} ({'-' if math.isnan(se) else f'{se:.2g}'})"
