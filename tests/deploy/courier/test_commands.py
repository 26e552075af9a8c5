"""Commands of coordinator and sites: fits that fail, slips at a site, and what is printed."""

import shutil
from pathlib import Path

import pytest
from helpers.deploy.post import Post
from helpers.nets import COLUMNS, write_tables

from fedlasso.cli import main
from fedlasso.deploy.courier import carriers
from fedlasso.deploy.courier.collect import PostedFit
from fedlasso.deploy.courier.serve import ProjectWatch, SiteWatch
from fedlasso.errors import FedLassoError
from fedlasso.fitting import Settings


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


def ask_in_vain(post: Post, folder: Path) -> PostedFit:
    """A fit whose sites have refused its first question."""
    fit = post.ask(out="vain")
    post.policy = folder / "policy.toml"
    post.policy.write_text("min_rows = 1000\n")
    post.carry(fit)
    post.policy = None
    return fit


def run(*words: object) -> int:
    return main(["courier", *map(str, words)])


def test_a_failed_fit_ends_at_its_sites_and_the_other_fits_go_on(
    post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vain = ask_in_vain(post, tmp_path)
    other = post.ask(out="other")
    post.carry(other)
    trial = post.place.folder
    assert run("collect", trial) == 2
    assert len(other.trips()) == 2
    assert "the policy requires at least 1000" in vain.about.failed
    reason = f"Fit {vain.name[:8]} failed: {vain.about.failed}"
    assert reason in capsys.readouterr().out
    ends = vain.outstanding()
    assert [path.name for path in ends] == [f"{site}-{vain.name[:8]}-end.flq" for site in "abc"]
    for path in ends:
        assert post.answer(path).ended
    assert run("status", trial) == 1
    assert f"failed in round trip 1: {vain.about.failed}" in capsys.readouterr().out
    with pytest.raises(FedLassoError, match="this fit has failed"):
        vain.advance()
    # The failed fit is not met again.
    assert run("collect", trial) == 0
    post.finish(other)
    assert run("status", trial) == 0


def test_a_watched_folder_goes_on_after_a_fit_has_failed(post: Post, tmp_path: Path) -> None:
    said: list[str] = []
    vain = ask_in_vain(post, tmp_path)
    other = post.ask(out="other")
    post.carry(other)
    (tmp_path / "exchange").mkdir()
    carrier = carriers.open_carrier(str(tmp_path / "exchange"))
    watch = ProjectWatch(post.place, carrier, said.append, lambda _: None)
    for _ in range(2):
        assert watch.look() == 1
        assert not watch.well
    reason = f"fit {vain.name[:8]} has failed: {vain.about.failed}"
    assert [line for line in said if "has failed" in line] == [reason]
    assert f"a-{vain.name[:8]}-end.flq" in carrier.names()
    assert f"a-{other.name[:8]}-02.flq" in carrier.names()


def test_what_another_version_would_ask_ends_no_fit(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = post.ask()
    (fit.folder / "001" / "question").write_bytes(b"of another version")
    assert run("collect", post.place.folder) == 2
    assert not fit.about.ended
    assert "would ask something else than before" in capsys.readouterr().err


def test_a_fit_is_abandoned(post: Post, capsys: pytest.CaptureFixture[str]) -> None:
    trial = post.place.folder
    fit = post.ask()
    assert run("abandon", trial, "xyz") == 2
    assert f"the fits are: {fit.name[:8]}" in capsys.readouterr().err
    assert run("abandon", trial, fit.name[:8]) == 0
    assert len(fit.outstanding()) == 3
    assert run("status", trial) == 0
    assert "abandoned by the coordinator" in capsys.readouterr().out
    assert run("abandon", trial, fit.name[:8]) == 2
    # Its folder is free again.
    assert post.ask() != fit


def test_fits_with_a_revoked_site_end(post: Post) -> None:
    fit, other = post.ask(), post.ask(out="other", sites=("a", "c"))
    assert run("revoke", post.place.folder, "b") == 0
    assert fit.about.failed == "b was revoked; ask again without it"
    assert [path.name[0] for path in fit.outstanding()] == ["a", "c"]
    assert not other.about.ended


def test_one_folder_is_the_model_of_one_fit(post: Post) -> None:
    fit = post.ask()
    assert post.ask() == fit
    with pytest.raises(FedLassoError, match=f"fit {fit.name[:8]} will write its model to"):
        post.ask(Settings(seed=7))
    assert post.place.fits() == [fit]


def test_a_slip_at_a_site_is_corrected_and_the_question_answered(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    data = post.tables["a"]
    records = data.read_text()
    header, _, rows = records.partition("\n")
    fit = post.ask()
    renamed = records.replace(header, header.replace("y", "why"))
    ragged = f"{records}1,2\n"
    shorter = f"{header}\n{rows.partition(chr(10))[2]}"
    changed = "a.csv is not as it was at this fit's first question; restore it"
    slips = {
        1: {
            renamed: "a.csv has no column 'y'; correct its header",
            ragged: "a.csv is not a CSV table: row 121 has 2 cells, but the header has 14",
        },
        2: {shorter: changed, renamed: changed},
    }
    for trip, found in slips.items():
        (question,) = [path for path in fit.outstanding() if path.name.startswith("a-")]
        assert question.name.endswith(f"-0{trip}.flq")
        words = ("answer", post.kit("a"), question, data, "--yes")
        for slip, reason in found.items():
            data.write_text(slip)
            assert run(*words) == 2
            assert f"site 'a': {reason}" in capsys.readouterr().err
            assert not question.with_suffix(".fla").exists()
        data.write_text(records)
        assert run(*words) == 0
        post.carry_again(fit)
        assert post.advance(fit) is None
    assert len(fit.trips()) == 3


def test_a_watching_site_answers_once_its_file_is_corrected(post: Post, tmp_path: Path) -> None:
    data = post.tables["a"]
    records = data.read_text()
    fit = post.ask()
    shutil.copy(fit.outstanding()[0], tmp_path)
    said: list[str] = []
    watch = SiteWatch(post.mailbox("a"), carriers.Folder(tmp_path), said.append)
    data.write_text(records.replace("y", "why", 1))
    for _ in range(2):
        assert watch.look() == 0
        assert not watch.well
    assert len(said) == 1
    data.write_text(records)
    assert watch.look() == 1
    assert watch.well


def test_no_and_a_lost_terminal_cost_nothing_and_are_not_answered(
    post: Post, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = post.ask()
    for _ in range(2):
        post.carry(fit)
        assert post.advance(fit) is None
    question = fit.outstanding()[0]
    before = {path: path.read_bytes() for path in (post.kit("a") / "books").iterdir()}
    words = ("answer", post.kit("a"), question, post.tables["a"])
    monkeypatch.setattr("builtins.input", lambda _: "n")
    assert run(*words) == 1
    monkeypatch.setattr("builtins.input", lose_terminal)
    assert run(*words) == 2
    assert "no terminal to say yes at" in capsys.readouterr().err
    assert not question.with_suffix(".fla").exists()
    assert before == {path: path.read_bytes() for path in (post.kit("a") / "books").iterdir()}


def lose_terminal(_: str) -> str:
    raise EOFError


def test_a_bad_file_in_a_folder_does_not_stop_the_others(
    post: Post, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit = post.ask()
    question = fit.outstanding()[0]
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    shutil.copy(question, inbox)
    bad = inbox / "a-00000000-01.flq"
    bad.write_bytes(question.read_bytes()[:500])
    words = ("answer", post.kit("a"), inbox, post.tables["a"], "--yes")
    assert run(*words) == 2
    assert f"not answered: {bad.name}: is not complete" in capsys.readouterr().err
    assert (inbox / question.name).with_suffix(".fla").exists()
    bad.unlink()
    # Questions of a fit that has ended may stay in the folder.
    fit.fail("no longer needed")
    shutil.copy(fit.outstanding()[0], inbox)
    assert run(*words) == 0
    assert run(*words) == 0
    assert run(*words[:2], inbox / question.name, *words[3:]) == 2


def test_serving_once_ends_with_the_code_of_a_refusal(post: Post, tmp_path: Path) -> None:
    words = ("serve", post.kit("a"), post.tables["a"], "--folder", tmp_path, "--yes", "--once")
    assert run(*words) == 0
    (tmp_path / "a-00000000-01.flq").write_bytes(b"FLC1")
    assert run(*words) == 2
    project = ("serve", post.place.folder, "--folder", tmp_path, "--once")
    assert run(*project) == 0
    (tmp_path / "a-00000000-01.fla").write_bytes(b"FLC1")
    assert run(*project) == 2


def test_every_column_and_what_is_left_after_the_answer_is_shown(
    post: Post, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in post.tables.values():
        header, _, rows = path.read_text().partition("\n")
        shown = header.replace("x11", "a column with a long name and hiv_status")
        path.write_text(f"{shown}\n{rows}")
    fit = post.ask()
    expected: list[str] = []
    while post.advance(fit) is None:
        question = fit.outstanding()[0]
        assert run("answer", post.kit("a"), question, post.tables["a"], "--yes") == 0
        text = capsys.readouterr().out
        assert "Write the answer?" not in text
        if len(fit.trips()) < 3:
            for name in (*COLUMNS[:-1], "a column with a long name and hiv_status"):
                assert f" {name!r}" in text
        lines = text.splitlines()
        start = lines.index("Left of this data file's budgets after this answer (before it):")
        budgets = [line.rpartition(": ")[2] for line in lines[start + 1 : start + 8]]
        assert all(" of " in line for line in budgets)
        before = [line.partition("(")[2].partition(")")[0] for line in budgets]
        assert before == (expected or before)
        expected = [line.partition(" (")[0] for line in budgets]
        post.carry_again(fit)
    # The moments of the last question have used the most.
    assert len(fit.trips()) == 4
    assert expected[0] != before[0]


def test_projects_that_are_not_there_or_too_small_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("collect", tmp_path / "typo") == 2
    assert not (tmp_path / "typo").exists()
    assert run("ask", tmp_path / "typo", "--target", "y") == 2
    said = capsys.readouterr().err
    assert said.count("`fedlasso courier init") == 2
    assert run("init", tmp_path / "two", "--site", "a", "--site", "b") == 0
    assert "sites refuse fits with fewer than 3 sites by default" in capsys.readouterr().err
