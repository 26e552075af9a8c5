"""Faults of a real federation that a fit outlives: it tries again, or waits."""

import threading
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.deploy.nvflare.stories import Act, Breakable, Story, fit
from helpers.deploy.nvflare.wires import Wire
from helpers.nets import same_files

# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_retry_outlives_the_loss_of_an_engine_and_a_long_cut(
    local: Breakable, wire: Wire, story: Story, alone: Path, tmp_path: Path, hurry: Act
) -> None:
    def kill_engine() -> None:
        # It comes back by itself: the site's command starts it again.
        for process in local.family("b")[1:]:
            process.kill()
        hurry()

    def cut() -> None:
        # So long that the server counts the site no longer.
        story.gone = {"b": wire.restore}
        wire.cut()

    out = tmp_path / "model"
    story.at = {4: kill_engine, 8: cut}
    assert fit(local, out, "--on-failure", "retry") == 0
    assert (story.at, story.gone) == ({}, {})
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'b' ")
    assert story.said[0].endswith("(retrying, 1 of 3)")
    assert same_files(out, alone)


def test_wait_outlives_the_loss_of_a_site_and_of_the_server(
    local: Breakable, wire: Wire, story: Story, alone: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], hurry: Act,
) -> None:  # fmt: skip
    def lose_site() -> None:
        local.kill("a")
        hurry()

    def lose_server() -> None:
        local.kill("server")
        story.then = [threading.Thread(target=local.start_server).start]

    out = tmp_path / "model"
    story.at = {4: lose_site, 8: lose_server}
    story.then = [lambda: local.start_site("a")]
    assert fit(local, out, "--on-failure", "wait") == 0
    assert len(story.said) >= 2
    assert story.said[0].startswith("site 'a' ")
    assert {"(waiting for 0:" in line for line in story.said} == {True}
    assert f"{len(story.said) + 1} attempts" in capsys.readouterr().out
    assert same_files(out, alone)
