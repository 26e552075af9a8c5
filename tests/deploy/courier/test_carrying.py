"""A watched folder or URL carries the files of a fit to its end."""

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.deploy.post import Post
from helpers.nets import write_tables

from fedlasso.deploy.courier import carriers
from fedlasso.deploy.courier.serve import ProjectWatch, SiteWatch
from fedlasso.errors import Interrupted


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


@pytest.mark.parametrize("url", [False, True])
def test_a_watched_folder_carries_a_fit_to_its_end(post: Post, tmp_path: Path, url: bool) -> None:
    place = f"memory://{tmp_path.name}" if url else str(tmp_path / "exchange")
    (tmp_path / "exchange").mkdir()
    carrier = carriers.open_carrier(place)
    said: list[str] = []
    fit = post.ask()
    project = ProjectWatch(post.place, carrier, said.append, lambda f: said.append(f.about.out))
    sites = [SiteWatch(post.mailbox(site), carrier, said.append) for site in post.tables]
    project.look()
    # Half of a file, as a program that synchronises may leave it, and a file of others.
    whole = carrier.read(carrier.names()[0])
    carrier.write("a-12345678-01.flq", whole[:1000])
    for _ in range(4):
        for site in sites:
            site.look()
        project.look()
    assert str(post.folder / "model") in said
    assert fit.about.finished
    assert sum("is not complete" in line for line in said) == 1
    for site in sites:
        site.look()
    assert not list(post.kit("a").glob("courier/*/session"))


def test_a_weak_connection_is_tried_again_and_a_lost_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "PAUSE", 0.0)
    carrier = carriers.Folder(tmp_path)
    failures = [2]
    place = Path.replace

    def replace(self: Path, target: Any) -> Path:
        failures[0] -= 1
        if failures[0] >= 0:
            raise OSError(5, os.strerror(5))
        return place(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    carrier.write("a-1-01.flq", b"data")
    assert carrier.read("a-1-01.flq") == b"data"
    failures[0] = 100
    with pytest.raises(Interrupted, match="tried 5 times"):
        carrier.write("a-1-02.flq", b"data")
    assert carrier.names() == ["a-1-01.flq"]
    with pytest.raises(Interrupted, match="cannot be reached"):
        carriers.Folder(tmp_path / "lost").names()
