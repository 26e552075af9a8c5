"""What a fit does when a site or the server goes away: stop, retry or wait, to the same model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers.deploy.doors import Project
from helpers.governance.authority import Authority
from helpers.nets import COLUMNS, fit_files, in_process, numbers, opening, same_files, write_tables

from fedlasso.deploy.run import (
    DAY,
    RETRIES,
    Finished,
    begin_plan,
    describe_finished,
    plan_without,
    run_plan,
)
from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange
from fedlasso.fitting import Settings
from fedlasso.governance import Policy
from fedlasso.models import FitPlan, NetworkSource, make_model, read_plan, write_model

SETTINGS = Settings(procedure="ADMM", penalty=0.1, uploads=12)
# Joining takes four questions: who the sites are, what columns hold, whether they take part, and
# what their audits say; a fit that goes on knows what the columns hold.
JOINED = 4
AGAIN = 3


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def alone(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone")
    write_model(out, make_model(in_process(tables), SETTINGS, numbers()))
    return out


@pytest.fixture
def project(tables: dict[str, Path]) -> Project:
    return Project(tables)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return begin(tmp_path / "model", SETTINGS)


def begin(out: Path, settings: Settings) -> Path:
    begin_plan(out, FitPlan(settings, NetworkSource("project", "", "y", COLUMNS)))
    return out


def attempt(out: Path, project: Project, policy: Any, **options: Any) -> Finished:
    return run_plan(out, project.connect, on_failure=policy, **options)


def test_stop_says_how_to_resume_and_the_fit_resumes_to_the_same_bits(
    project: Project, out: Path, alone: Path
) -> None:
    project.cuts = [JOINED + 4, AGAIN, 0]
    for kept in (4, 4, 4):
        with pytest.raises(FedLassoError, match=r"did not answer \(`fedlasso federation resume"):
            attempt(out, project, "stop")
        assert len(list((out / "journal").glob("*.entry"))) == kept
        assert not (out / "model.json").exists()
    reported: list[Exchange] = []
    finished = attempt(out, project, "stop", listen=reported.append)
    assert same_files(out, alone)
    trips = len(list((out / "journal").glob("*.entry")))
    assert [exchange.number for exchange in reported] == list(range(1, trips + 1))
    questions = sum(len(exchange.requests) for exchange in reported)
    for site in finished.document.sites:
        assert reported[-1].costs.total(site=site.name).upload == sum(site.sent.values())
    assert json.loads((out / "audit.json").read_bytes()).keys() == project.doors.keys()
    for books in finished.reconciled.values():
        assert (books.used, books.arrived, books.sent) == (questions, questions, questions)
    assert "its audit has the same hashes" in describe_finished(out, finished)


@pytest.mark.parametrize("masked", [False, True])
def test_a_fit_resumes_between_batches_to_the_same_bits(
    masked: bool, tables: dict[str, Path], tmp_path: Path
) -> None:
    write_model(tmp_path / "alone", make_model(in_process(tables), Settings(), numbers()))
    out = begin(tmp_path / "model", Settings())
    project = Project(tables, None, Authority(tmp_path / "authority") if masked else None)
    # Masks take one more question to join, for the sites' keys.
    project.cuts = [JOINED + masked + 1, *[AGAIN + masked + 1] * 2]
    for kept in (1, 2, 3):
        with pytest.raises(FedLassoError, match="did not answer"):
            attempt(out, project, "stop")
        assert len(list((out / "journal").glob("*.entry"))) == kept
    finished = attempt(out, project, "stop")
    assert same_files(out, tmp_path / "alone")
    for books in finished.reconciled.values():
        assert (books.used, books.arrived, books.sent) == (5, 5, 5)


def test_a_fit_is_bound_to_the_data_it_began_with(
    project: Project, out: Path, tables: dict[str, Path]
) -> None:
    project.cuts = [JOINED + 1]
    with pytest.raises(FedLassoError, match="did not answer"):
        attempt(out, project, "stop")
    source = read_plan(out, NetworkSource).source
    assert source.sites == tuple(tables)
    assert source.fingerprints is not None
    with pytest.raises(FedLassoError, match="contains a fit; run"):
        begin(out, SETTINGS)
    data = tables["b"].read_text()
    tables["b"].write_text(data.replace("0.1", "0.2"))
    try:
        with pytest.raises(FedLassoError, match="site 'b': the data file has changed since"):
            attempt(out, Project(tables), "retry")
    finally:
        tables["b"].write_text(data)


def test_a_reply_that_no_audit_knows_is_an_error(project: Project, out: Path) -> None:
    attempt(out, project, "stop")
    receipts = out / "receipts.txt"
    receipts.write_text(receipts.read_text() + f"b {'0' * 64}\n")
    with pytest.raises(FedLassoError, match="1 replies arrived that are not in its audit"):
        attempt(out, project, "stop")


def test_retry_tries_three_times_more_and_then_stops(project: Project, out: Path) -> None:
    project.cuts = [0] * (RETRIES + 1)
    with pytest.raises(FedLassoError, match="federation resume"):
        attempt(out, project, "retry", start=7.0)
    # Only a server that was there before may take its time.
    assert project.patience == [(7.0, 0.0)] + [(7.0, 7.0)] * RETRIES
    project.cuts = [0] * RETRIES
    assert attempt(out, project, "retry").times.attempts == RETRIES + 1


def test_retry_counts_anew_once_the_fit_has_moved_on(project: Project, out: Path) -> None:
    project.cuts = [JOINED + 1] + [AGAIN + 1] * (2 * RETRIES - 1)
    said: list[str] = []
    finished = attempt(out, project, "retry", notify=said.append)
    assert finished.times.attempts == 2 * RETRIES + 1
    assert set(said) == {"site 'b' did not answer (retrying, 1 of 3)"}


class Clock:
    """Seconds that pass only when the fit sleeps, a quarter of an hour at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("fedlasso.deploy.run.time.monotonic", lambda: self.now)
        monkeypatch.setattr("fedlasso.deploy.run.time.sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += 900.0


def test_wait_goes_on_and_says_for_whom_how_long_and_what_to_do(
    project: Project, out: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch)
    project.cuts = [0] * 10
    said: list[str] = []
    assert attempt(out, project, "wait", notify=said.append).times.attempts == 11
    ends = "at most 1 day, 0:00:00; Ctrl-C stops, and can be resumed)"
    waited = ("0:00:00", "0:15:00", "0:45:00", "1:45:00")
    assert said == [f"site 'b' did not answer (waiting for {each}, {ends}" for each in waited]
    assert same_files(out, alone)


def test_wait_ends_after_a_day(
    project: Project, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    project.cuts = [0] * 200
    with pytest.raises(FedLassoError, match=r"did not answer \(`fedlasso federation resume"):
        attempt(out, project, "wait")
    assert clock.now == DAY


def test_a_fit_without_a_site_is_a_new_one(
    project: Project, out: Path, tables: dict[str, Path], tmp_path: Path
) -> None:
    project.cuts = [JOINED + 2]
    with pytest.raises(FedLassoError, match="did not answer"):
        attempt(out, project, "stop")
    before = read_plan(out, NetworkSource)
    plan = plan_without(out, tmp_path / "project", tuple(tables), ("b",))
    assert plan.source.sites == ("a", "c")
    assert (plan.settings, plan.source.columns) == (before.settings, before.source.columns)
    assert (plan.source.schema, plan.source.fingerprints, plan.source.audits) == (None, None, {})
    again = tmp_path / "again"
    begin_plan(again, plan)
    fit = read_plan(again, NetworkSource).source.fit
    assert fit != before.source.fit
    assert not (again / "journal").exists()


def test_what_is_no_interruption_is_not_tried_again(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    project = Project(tables, Policy(deny=("Rows",)))
    out = begin(tmp_path / "model", Settings(procedure="OneShotGram", penalty=0.1))
    with pytest.raises(FedLassoError, match="site 'a': the policy here does not answer"):
        attempt(out, project, "retry")
    assert len(project.patience) == 1


def fit_mixed(out: Path, project: Project, settings: Settings | None = None) -> Finished:
    source = NetworkSource("project", "", "y", drop=("note",), missing="mean")
    begin_plan(out, FitPlan(settings or Settings(), source))
    return attempt(out, project, "stop")


def fit_together(mixed: dict[str, Path], model: Path, out: Path) -> Path:
    """The model that the same sites give in this process, with what was agreed on."""
    schema = read_plan(model, NetworkSource).source.schema
    assert schema is not None
    sites = in_process(mixed, opening(schema, missing="mean"))
    write_model(out, make_model(sites, Settings(), schema, missing="mean"))
    return out


def test_text_and_gaps_give_the_bytes_of_fit_on_the_files(tmp_path: Path) -> None:
    mixed = write_tables(tmp_path, mixed=True)
    # At a penalty no rows are split; a site that pools no level encodes as files are.
    policy = Policy(pool_rare_levels=False, min_cell_rows=0)
    settings = Settings(penalty=0.1)
    finished = fit_mixed(tmp_path / "model", Project(mixed, policy), settings)
    alone = fit_files(mixed, tmp_path / "alone", "--missing", "mean", "--penalty", 0.1)
    assert same_files(tmp_path / "model", alone)
    names = finished.document.schema.encoded
    assert {"ward=north", "ward=south", "ward=west", "ward=(other)", "weight"} <= set(names)


def test_sites_with_their_own_secrets_give_the_bytes_of_one_process(tmp_path: Path) -> None:
    mixed = write_tables(tmp_path, mixed=True)
    finished = fit_mixed(tmp_path / "model", Project(mixed))
    assert same_files(
        tmp_path / "model", fit_together(mixed, tmp_path / "model", tmp_path / "alone")
    )
    # Atoms have none or two of the rows where a value is missing.
    assert finished.document.plan.startswith("second moments of")


def test_a_fit_goes_on_with_the_levels_it_began_with(tmp_path: Path) -> None:
    mixed = write_tables(tmp_path, mixed=True)
    project = Project(mixed)
    # With text one more question asks for rows at other levels.
    project.cuts = [JOINED + 1 + 2]
    with pytest.raises(FedLassoError, match="did not answer"):
        fit_mixed(tmp_path / "model", project)
    source = read_plan(tmp_path / "model", NetworkSource).source
    assert source.schema is not None
    assert source.missing == "mean"
    project.cuts = [AGAIN + 1]
    with pytest.raises(FedLassoError, match="did not answer"):
        attempt(tmp_path / "model", project, "stop")
    attempt(tmp_path / "model", project, "stop")
    alone = fit_together(mixed, tmp_path / "model", tmp_path / "alone")
    assert same_files(tmp_path / "model", alone)


def test_a_site_that_denies_moments_is_fitted_by_another_plan(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    # Copies have ledgers of their own: fits of other tests use up no budget.
    tables = {name: Path(shutil.copy(path, tmp_path)) for name, path in tables.items()}
    out = begin(tmp_path / "model", Settings())
    # Gradients of few rows in clear are more numbers than the default policy sends.
    project = Project(tables, Policy(max_numbers=9.0))
    project.doors["b"].policy = Policy(deny=("FoldMoments",), max_numbers=9.0)
    finished = attempt(out, project, "stop")
    assert finished.document.plan.startswith("gradients")
    assert "site 'b': the policy here does not answer FoldMoments" in finished.document.plan
    # What the sites had sent before it was refused is in their books, and told.
    for site, again in (("a", 2), ("b", 1), ("c", 2)):
        books = finished.reconciled[site]
        assert (books.sent - books.used, books.arrived) == (again, books.sent)
