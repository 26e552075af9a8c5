"""Draw and write figures in separate processes, while the report is written."""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from fedlasso.report.figures import FIRST, REST, Figure, FigureText, lighten_fonts
from fedlasso.report.records import Results

# Seconds to wait for a process that draws a figure.
PATIENCE = 60

DrawFigure = Callable[[Results], Figure | None]


class Drawing:
    """One figure that is being drawn.

    If a process cannot be forked, or fails, the figure is drawn and written in this one.
    """

    def __init__(self, draw: DrawFigure, results: Results, folder: Path) -> None:
        self._draw = draw
        self._results = results
        self._folder = folder
        self._process: Any = None
        if sys.platform == "linux":
            # Without memory for another process, the figure is drawn in this one.
            with suppress(OSError):
                self._fork()

    def _fork(self) -> None:
        fork = multiprocessing.get_context("fork")
        self._receiver, sender = fork.Pipe(duplex=False)
        work = (self._draw, self._results, self._folder, sender)
        process = fork.Process(target=_work, args=work)
        with sender, warnings.catch_warnings():
            # Python warns that a fork stops threads: those of BLAS and Arrow, which are idle.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        self._process = process

    def words(self) -> FigureText | None:
        """Wait until TeX can read the figure; None if the records cannot fill it."""
        if self._process is not None and self._receiver.poll(PATIENCE):
            with suppress(EOFError):
                words: FigureText | None = self._receiver.recv()
                return words
        return self._draw_here()

    def finish(self) -> None:
        """Wait until every format is written."""
        if self._process is not None:
            self._process.join(PATIENCE)
            if self._process.exitcode != 0:
                self._draw_here()

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _draw_here(self) -> FigureText | None:
        self.stop()
        figure = self._draw(self._results)
        if figure is not None:
            figure.write(self._folder)
            plt.close(figure.canvas)
        return figure


@contextmanager
def draw_beside(
    draws: Sequence[DrawFigure], results: Results, folder: Path
) -> Iterator[list[Drawing]]:
    """Start to draw every figure; stop when the block ends."""
    lighten_fonts()  # once, for all of them
    drawings = [Drawing(draw, results, folder) for draw in draws]
    try:
        yield drawings
    finally:
        for drawing in drawings:
            drawing.stop()


def _work(draw: DrawFigure, results: Results, folder: Path, sender: Connection) -> None:
    """Draw one figure, and send its title and caption as soon as TeX can read it."""
    # Drawing yields to the processes that wait for figures.
    os.nice(5)
    try:
        if (figure := draw(results)) is None:
            sender.send(None)
            return
        figure.write(folder, FIRST)
        sender.send(FigureText(figure.name, figure.title, figure.caption))
        os.nice(5)
        figure.write(folder, REST)
    except Exception:
        # The parent draws the figure again and reports the error.
        sys.exit(1)
