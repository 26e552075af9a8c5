"""Figures in processes of their own, which draw and write them beside what is done meanwhile."""

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

# Seconds after which a process that draws a figure is given up.
PATIENCE = 60

DrawFigure = Callable[[Results], Figure | None]


class Drawing:
    """One figure in the making.

    Where a process cannot be forked, or fails, the figure is drawn and written here.
    """

    def __init__(self, draw: DrawFigure, results: Results, folder: Path) -> None:
        self._draw = draw
        self._results = results
        self._folder = folder
        self._process: Any = None
        if sys.platform == "linux":
            # A machine without room for another process does it here.
            with suppress(OSError):
                self._fork()

    def _fork(self) -> None:
        fork = multiprocessing.get_context("fork")
        self._heard, telling = fork.Pipe(duplex=False)
        work = (self._draw, self._results, self._folder, telling)
        process = fork.Process(target=_work, args=work)
        with telling, warnings.catch_warnings():
            # Python warns of threads, which a fork stops: those of BLAS and Arrow, idle now.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        self._process = process

    def words(self) -> FigureText | None:
        """Wait until a TeX can read the figure; nothing where the records cannot fill it."""
        if self._process is not None and self._heard.poll(PATIENCE):
            with suppress(EOFError):
                words: FigureText | None = self._heard.recv()
                return words
        return self._draw_here()

    def finish(self) -> None:
        """Wait until every format is written."""
        if self._process is not None:
            self._process.join(PATIENCE)
            if self._process.exitcode != 0:
                self._draw_here()

    def stop(self) -> None:
        """End the process, whatever it is at."""
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
    """Begin to draw every figure, for as long as the block lasts."""
    lighten_fonts()  # once, for all of them
    drawings = [Drawing(draw, results, folder) for draw in draws]
    try:
        yield drawings
    finally:
        for drawing in drawings:
            drawing.stop()


def _work(draw: DrawFigure, results: Results, folder: Path, telling: Connection) -> None:
    """Draw one figure, and tell its words as soon as a TeX can read it."""
    # Who waits for figures, or reads them, goes before who draws them.
    os.nice(5)
    try:
        if (figure := draw(results)) is None:
            telling.send(None)
            return
        figure.write(folder, FIRST)
        telling.send(FigureText(figure.name, figure.title, figure.caption))
        os.nice(5)
        figure.write(folder, REST)
    except Exception:
        # What is wrong is said by the process that draws the figure again.
        sys.exit(1)
