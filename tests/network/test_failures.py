"""What a fit does when a site or the server goes away: stop, retry or wait."""

from pathlib import Path
from typing import Any

import pytest

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.nvflare import run
from fedlasso.nvflare.link import Opening

PLAN = run.Plan("project", Opening("ab" * 16, "y", ()), {})


class Flaky:
    """An attempt that is broken off so many times before it succeeds."""

    def __init__(self, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures, self.attempts, self.patience = failures, 0, 0.0
        monkeypatch.setattr(run, "_attempt", self)
        monkeypatch.setattr(run, "read_plan", lambda out: PLAN)
        monkeypatch.setattr(run, "_wait_for_server", lambda project, patience: None)

    def __call__(self, *arguments: Any) -> str:
        self.attempts += 1
        self.patience = arguments[-1]
        if self.attempts <= self.failures:
            raise Interrupted("site 'b' did not answer")
        return "fitted"


def attempt(policy: Any, **options: Any) -> Any:
    return run.run_plan(
        Path("model"), PLAN, lambda f: None, lambda event: None, on_failure=policy, **options
    )


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
