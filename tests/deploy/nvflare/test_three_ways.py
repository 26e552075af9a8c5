"""The same default fit in one process, over the network and by files has the same bytes."""

from pathlib import Path

import pytest
from helpers.deploy.post import Post
from helpers.nets import KEY, fit_alike, run, same_files, share_key, write_tables

from fedlasso.atomic_files import write_atomically

pytest.importorskip("nvflare")
# The engine and its libraries warn of things that are not ours to mend.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_model_is_the_same_in_all_three_ways(tmp_path: Path) -> None:
    from fedlasso.deploy.nvflare.local import LocalFederation

    tables = write_tables(tmp_path, mixed=True)
    given = ("--target", "y", "--drop", "note", "--missing", "mean", "--start", 120)
    federation = LocalFederation(tmp_path / "net", tables)
    share_key(federation)
    with federation:
        out = tmp_path / "network"
        assert run("federation", "fit", federation.folder, *given, "--out", out) == 0
    post = Post(tmp_path / "post", tables)
    for site in tables:
        write_atomically(post.kit(site) / "books" / "key", KEY, private=True)
    post.finish(post.ask(missing="mean"))
    alone = fit_alike(tables, tmp_path / "alone", "--missing", "mean")
    assert same_files(out, alone)
    assert same_files(tmp_path / "post" / "model", alone)
