"""Figures that are drawn in processes of their own."""

import os
from collections.abc import Collection
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

from fedlasso.errors import FedLassoError
from fedlasso.report.drawing import draw_beside
from fedlasso.report.figures import FORMATS, Figure, look
from fedlasso.report.records import Results


def draw_one(results: Results) -> Figure:
    with look():
        canvas, _ = plt.subplots()
    return Figure("one", "One", "A figure.", canvas)


def draw_none(results: Results) -> None:
    """A figure that these records cannot fill."""


def written(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_figure_tells_its_words_once_a_tex_can_read_it(results: Results, tmp_path: Path) -> None:
    with draw_beside([draw_none, draw_one], results, tmp_path) as (none, one):
        assert none.words() is None
        words = one.words()
        assert words is not None
        assert (words.name, words.title, words.caption) == ("one", "One", "A figure.")
        assert "one.pdf" in written(tmp_path)
        one.finish()
        assert written(tmp_path) == ["one.pdf", "one.png", "one.svg"]


@pytest.mark.parametrize("kind", ["pdf", "png"])
def test_a_figure_that_its_own_process_cannot_write_is_written_here(
    kind: str, results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.getpid()
    write = Figure.write

    def write_here(figure: Figure, folder: Path, kinds: Collection[str] = tuple(FORMATS)) -> None:
        if os.getpid() != here and kind in kinds:
            os._exit(1)
        write(figure, folder, kinds)

    monkeypatch.setattr(Figure, "write", write_here)
    with draw_beside([draw_one], results, tmp_path) as (one,):
        words = one.words()
        assert words is not None
        assert words.name == "one"
        one.finish()
    assert written(tmp_path) == ["one.pdf", "one.png", "one.svg"]


def test_a_machine_without_room_for_a_process_draws_here(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with draw_beside([draw_one], results, tmp_path) as (one,):
        words = one.words()
        one.finish()
    assert words is not None
    assert words.name == "one"
    assert written(tmp_path) == ["one.pdf", "one.png", "one.svg"]


def test_an_error_in_a_figure_is_told_once_by_the_report(
    results: Results, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(results: Results) -> Figure:
        raise FedLassoError("no such figure")

    with (
        draw_beside([fail], results, tmp_path) as (one,),
        pytest.raises(FedLassoError, match="no such figure"),
    ):
        one.words()
    assert capfd.readouterr().err == ""
