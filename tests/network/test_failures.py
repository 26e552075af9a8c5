"""What a fit does when a site or the server goes away: stop, retry or wait."""

from pathlib import Path
from typing import Any

import pytest

from fedlasso.deploy import run
from fedlasso.deploy.link import Opening
from fedlasso.errors import FedLassoError, Interrupted

PLAN = run.Plan("project", Opening("ab" * 16, "y", ()), {})


class Flaky:
    """An attempt that is broken off so many times before it succeeds, and may move on each time."""

    def __init__(
        self, failures: int, monkeypatch: pytest.MonkeyPatch, journal: Path | None = None
    ) -> None:
        self.failures, self.attempts, self.patience = failures, 0, 0.0
        self.journal = journal
        monkeypatch.setattr(run, "_attempt", self)
        monkeypatch.setattr(run, "read_plan", lambda out: PLAN)
        monkeypatch.setattr(run, "_wait_for_server", lambda project, patience: None)

    def __call__(self, *arguments: Any) -> str:
        self.attempts += 1
        self.patience = arguments[-1]
        if self.journal is not None:
            (self.journal / f"{self.attempts:06d}.entry").touch()
        if self.attempts <= self.failures:
            raise Interrupted("site 'b' did not answer")
        return "fitted"


def attempt(policy: Any, out: Path = Path("model"), **options: Any) -> Any:
    return run.run_plan(out, PLAN, lambda f: None, lambda event: None, on_failure=policy, **options)


def test_stop_says_how_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = Flaky(1, monkeypatch)
    with pytest.raises(FedLassoError, match="federation resume model"):
        attempt("stop")
    assert flaky.attempts == 1


def test_retry_tries_three_times_more_and_then_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = Flaky(run.RETRIES, monkeypatch)
    result, times = attempt("retry")
    assert result == "fitted"
    assert (flaky.attempts, len(times.failures)) == (run.RETRIES + 1, run.RETRIES)
    tireless = Flaky(run.RETRIES + 1, monkeypatch)
    with pytest.raises(FedLassoError, match="federation resume model"):
        attempt("retry")
    assert tireless.attempts == run.RETRIES + 1


def test_retry_counts_anew_once_the_fit_has_moved_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    journal.mkdir()
    Flaky(2 * run.RETRIES, monkeypatch, journal)
    said: list[str] = []
    _, times = attempt("retry", tmp_path, say=said.append)
    assert times.attempts == 2 * run.RETRIES + 1
    assert set(said) == {"site 'b' did not answer (trying again, 1 of 3)"}


def test_wait_goes_on_and_gives_sites_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    flaky = Flaky(10, monkeypatch)
    assert attempt("wait")[0] == "fitted"
    assert flaky.attempts == 11
    assert flaky.patience == run.DAY


def test_what_is_no_interruption_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def refuse(*arguments: Any) -> Any:
        calls.append(arguments)
        raise FedLassoError("site 'b': the policy here does not answer AllMoments")

    monkeypatch.setattr(run, "_attempt", refuse)
    with pytest.raises(FedLassoError, match="does not answer AllMoments"):
        attempt("retry")
    assert len(calls) == 1
