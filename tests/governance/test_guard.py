"""Policy and audit in process: what is refused, what is written down, and that nothing leaks."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.draws import draw_sites

from fedlasso import REGISTRY, FedLassoError, InProcess, Site, fit, fit_for
from fedlasso.errors import QuotesRecords
from fedlasso.federation import Disclosure, Reply, Request, decode, encode
from fedlasso.fitting import ChoosePenalty
from fedlasso.governance import Audit, Entry, GuardedSite, Policy
from fedlasso.governance.consent import Transfer
from fedlasso.governance.refusals import SILENCE, public_refusal
from fedlasso.procedures.averaging import LocalSweeps
from fedlasso.procedures.dual_averaging import DualSteps
from fedlasso.procedures.one_shot import AllMoments
from fedlasso.procedures.working_set_gram import GradientOutside, MomentsOf
from fedlasso.procedures.working_set_secant import ProductsAt
from fedlasso.sites import (
    FitAt,
    GradientAt,
    HeldOutErrors,
    Memory,
    Rows,
    SubsetMoments,
    ValidationErrors,
    WeightedMoments,
)
from fedlasso.sites.views import CentredSquares, ColumnSums, Standardise

P = 40
SAFE = Policy()
# Thirty rows at a site whose sums are clear are few for a fit by gradients.
ROOMY = Policy(max_numbers=9.0)


def guard(folder: Path, policy: Policy = SAFE, rows: int = 30, **more: Any) -> GuardedSite:
    return GuardedSite(
        draw_sites((rows,), P)[0], policy, Audit(folder / "audit.jsonl"), "f1", **more
    )


def entries(folder: Path) -> list[Entry]:
    return list(Audit(folder / "audit.jsonl").entries())


@pytest.mark.parametrize(
    ("request_", "policy", "message"),
    [
        (AllMoments(), SAFE, "does not answer AllMoments"),
        (MomentsOf(np.arange(2), np.arange(0)), SAFE, "does not answer MomentsOf"),
        (ValidationErrors(np.zeros((P, 1))), SAFE, "does not answer ValidationErrors"),
        (Rows(), replace(SAFE, deny=("Rows",)), "does not answer Rows"),
        (Rows(), replace(SAFE, min_rows=31), "30 training rows here, but the policy requires"),
        (
            HeldOutErrors(np.zeros((P, 1))),
            replace(SAFE, min_validation_rows=13),
            "12 validation rows here",
        ),
        (
            SubsetMoments(np.arange(2)),
            replace(SAFE, min_validation_rows=13),
            "12 validation rows here",
        ),
        (WeightedMoments(np.arange(2), np.ones(P), 1.0), SAFE, "does not answer WeightedMoments"),
        (FitAt(np.ones(P)), replace(SAFE, max_active_per_row=1.0), "40 active coefficients"),
        (GradientAt(np.ones(P + 1)), SAFE, "b does not fit the 40 columns"),
        (
            LocalSweeps(np.ones((P, 2)), 0.1, 501),
            SAFE,
            "1002 steps, but the policy here allows 1000",
        ),
        (ChoosePenalty(count=1001), SAFE, "1001 steps, but the policy here allows 1000"),
        (FitAt(np.ones((P, 1))), SAFE, "b does not fit"),
        (LocalSweeps(np.ones(P), 0.1, 1), SAFE, "start does not fit"),
        (DualSteps(0.1, np.ones((P, 3)), np.ones(2), 0, 1), SAFE, "rates does not fit"),
        (
            DualSteps(0.1, np.ones((P, 1)), np.ones(1), 0, 1, weights=np.full(P, -1.0)),
            SAFE,
            "weights does not fit",
        ),
        (GradientOutside(np.ones(P), np.array(1.0)), SAFE, "known does not fit"),
        (ColumnSums("half 1 0\n"), SAFE, "split does not fit"),
        (ColumnSums("x" * 70_000), SAFE, "split does not fit"),
        (HeldOutErrors(np.zeros((P, 1)), "x" * 2_000), SAFE, "no rows to validate the xxx"),
        (LocalSweeps(np.ones((P, 1)), -0.1, 1), SAFE, "lam does not fit"),
        (
            MomentsOf(np.array([40]), np.arange(0)),
            replace(SAFE, allow=("MomentsOf",)),
            "new does not fit",
        ),
        (GradientAt(np.full(P, 1e-141)), SAFE, "b does not fit"),
        (GradientAt(np.full(P, 1e51)), SAFE, "b does not fit"),
        (
            GradientAt(np.ones(P)),
            replace(SAFE, max_numbers=0.0),
            "would exceed 0 of its rows",
        ),
        (GradientAt(np.ones(P)), replace(SAFE, max_bytes=100), "longer than 100 bytes"),
    ],
)
def test_a_rule_refuses_in_its_own_words_and_writes_it_down(
    request_: Request[Any], policy: Policy, message: str, tmp_path: Path
) -> None:
    with pytest.raises(FedLassoError, match=message) as refused:
        guard(tmp_path, policy).answer_bytes(encode(request_))
    (entry,) = entries(tmp_path)
    assert (entry.verdict, entry.why, entry.sha256) == ("refused", str(refused.value), "")
    assert len(entry.why) <= 1000


@pytest.mark.parametrize(
    ("request_", "policy", "why", "counted"),
    [
        (Rows(), replace(SAFE, dry_run=True), "dry run: 1 numbers would have left", 0),
        (AllMoments(), replace(SAFE, dry_run=True), "does not answer AllMoments", 0),
        (Rows(), replace(SAFE, approval=True), "the transfer was not approved here", 1),
        (GradientAt(np.full(P, 1e49)), SAFE, "GradientSum: gradient is not finite", 1),
    ],
)
def test_what_depends_on_the_records_is_refused_in_one_sentence(
    request_: Request[Any], policy: Policy, why: str, counted: int, tmp_path: Path
) -> None:
    (site,) = draw_sites((30,), P)
    site = Site("a", 1e140 * site.training.X, 1e140 * site.training.y)
    guarded = GuardedSite(site, policy, Audit(tmp_path / "audit.jsonl"), "f1")
    for _ in range(2):
        with pytest.raises(FedLassoError) as refused:
            guarded.answer_bytes(encode(request_))
        assert str(refused.value) == SILENCE
    first, again = entries(tmp_path)
    assert why in first.why
    assert first.spent.get("refusals", 0) == counted
    # The same question is refused in the same words, so it tells nothing more.
    assert again.spent == {}


def test_a_guarded_site_answers_with_the_same_bytes(tmp_path: Path) -> None:
    data = encode(GradientAt(np.ones(P)))
    assert guard(tmp_path).answer_bytes(data) == draw_sites((30,), P)[0].answer_bytes(data)
    (entry,) = entries(tmp_path)
    assert (entry.question, entry.payload, entry.shapes) == ("GradientAt", 8 * P, {"gradient": [P]})


def test_the_last_question_asked_again_is_not_worked_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worked: list[Request[Any]] = []
    answer = Site.answer

    def count(self: Site, request: Request[Any]) -> Any:
        worked.append(request)
        return answer(self, request)

    monkeypatch.setattr(Site, "answer", count)
    site = guard(tmp_path)
    data = encode(GradientAt(np.ones(P)))
    assert site.answer_bytes(data) == site.answer_bytes(data)
    assert len(worked) == 1
    assert [e.verdict for e in entries(tmp_path)] == ["sent", "sent"]
    site.answer_bytes(encode(Rows()))
    site.answer_bytes(data)
    assert len(worked) == 3


@pytest.mark.parametrize(
    "run",
    [
        lambda f: fit(f, exact=False),
        lambda f: fit(f, "DA", exact=False),
        lambda f: fit_for(f, "prediction", exact=False),
    ],
)
def test_default_fits_pass_the_default_policy(run: Callable[..., Any], tmp_path: Path) -> None:
    guarded = [
        GuardedSite(site, ROOMY, Audit(tmp_path / site.name), "f1") for site in draw_sites(p=P)
    ]
    one = run(InProcess(guarded))
    other = run(InProcess(draw_sites(p=P)))
    assert one.coefficients.tobytes() == other.coefficients.tobytes()
    assert one.costs.entries == other.costs.entries
    assert one.costs.total(site="a").messages == len(list(Audit(tmp_path / "a").entries()))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_procedure_asks_what_the_rules_understand(name: str, tmp_path: Path) -> None:
    policy = replace(ROOMY, allow=("AllMoments", "MomentsOf", "ProductsAt"))
    guarded = [GuardedSite(s, policy, Audit(tmp_path / s.name), "f1") for s in draw_sites(p=P)]
    one = fit(InProcess(guarded), name, penalty=0.15, rounds=4, exact=False)
    other = fit(InProcess(draw_sites(p=P)), name, penalty=0.15, rounds=4, exact=False)
    assert one.coefficients.tobytes() == other.coefficients.tobytes()


def test_vectors_are_counted_over_all_fits_and_outlive_the_process(tmp_path: Path) -> None:
    policy = replace(SAFE, max_numbers=2 / 30)
    questions = [encode(GradientAt(np.full(P, float(k)))) for k in range(3)]
    for data in questions[:2]:
        guard(tmp_path, policy).answer_bytes(data)
    again = guard(tmp_path, policy)
    again.fit = "f2"
    again.answer_bytes(questions[0])
    with pytest.raises(FedLassoError, match="enough numbers"):
        again.answer_bytes(questions[2])


def test_pieces_of_vectors_count_as_well(tmp_path: Path) -> None:
    policy = replace(SAFE, max_numbers=1 / 30, allow=("ProductsAt",))
    site, one = guard(tmp_path, policy), np.ones((1, 1))
    places = [np.array([float(k)]) for k in range(P)]
    for k in range(P):
        site.answer_bytes(encode(ProductsAt(one, places[0], places[k])))
    with pytest.raises(FedLassoError, match="enough numbers"):
        site.answer_bytes(encode(ProductsAt(one, places[1], places[1])))


def test_approval_sees_the_payload(tmp_path: Path) -> None:
    seen: list[tuple[Entry, Reply]] = []

    def approve(transfers: Sequence[Transfer]) -> bool:
        seen.extend(transfers)
        return len(seen) == 1

    site = guard(tmp_path, replace(SAFE, approval=True, keep_payloads=True), approve=approve)
    answer = site.answer_bytes(encode(Rows()))
    assert seen[0][1].rows == 30  # type: ignore[attr-defined]
    with pytest.raises(FedLassoError, match=SILENCE):
        site.answer_bytes(encode(Rows()))
    (kept,) = (tmp_path / "payloads").iterdir()
    assert kept.read_bytes() == answer


class Quoting(Request[Reply]):
    """A faulty question that quotes records in its exception."""

    discloses: ClassVar[Disclosure] = Disclosure("nothing but a failure")

    def answer(self, site: Site) -> Reply:
        raise ValueError(f"bad record {site.training.y[0]!r}")


def test_an_exception_carries_no_data(tmp_path: Path) -> None:
    secret = 4711.0815
    y = np.full(30, secret)
    site = Site("a", np.random.default_rng(0).standard_normal((30, 3)), y)
    with pytest.raises(FedLassoError) as failed:
        GuardedSite(site, SAFE, Audit(tmp_path / "audit.jsonl"), "f").answer_bytes(
            encode(Quoting())
        )
    assert str(failed.value) == SILENCE
    assert failed.value.__cause__ is None
    assert entries(tmp_path)[0].why == "Quoting failed with ValueError"
    assert str(secret) not in (tmp_path / "audit.jsonl").read_text()


def raw_guard(folder: Path, rows: int = 100) -> GuardedSite:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((rows, P)), rng.standard_normal(rows)
    site = Site("a", X, y, raw=True, memory=Memory(folder / "memory"))
    return GuardedSite(site, SAFE, Audit(folder / "audit.jsonl"), "f1")


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("fold 1 of 100 0", "1 rows held out by this split"),
        ("holdout 0.95 0", "5 training rows in this split"),
        ("holdout 0.05 0", "5 rows held out by this split"),
        ("holdout inf 0", "no split is called"),
        ("fold 1 of 0 0", "no split is called"),
    ],
)
def test_no_split_singles_out_rows(split: str, message: str, tmp_path: Path) -> None:
    site = raw_guard(tmp_path)
    ones = np.ones(P)
    for request in (ColumnSums(split), CentredSquares(ones, split)):
        with pytest.raises(FedLassoError, match=message):
            site.answer_bytes(encode(request))
    with pytest.raises(FedLassoError, match=message):
        site.answer_bytes(encode(Standardise(ones, ones, 0.0, split)))


def test_views_are_guarded_and_outlive_a_restart(tmp_path: Path) -> None:
    ones = np.ones(P)
    keep = Standardise(ones, ones, 0.0, "holdout 0.2 0")
    raw_guard(tmp_path).answer_bytes(encode(keep))
    errors = HeldOutErrors(np.zeros((P, 1)), on=keep.name)
    again = raw_guard(tmp_path)
    assert isinstance(decode(again.answer_bytes(encode(errors))), Reply)
    few = Standardise(ones, ones, 0.0, "holdout 0.16 0")
    again.answer_bytes(encode(few))
    with pytest.raises(FedLassoError, match="8 validation rows here"):
        again.answer_bytes(encode(replace(errors, on=few.name)))
    with pytest.raises(FedLassoError, match="of this fit is not stored"):
        again.answer_bytes(encode(replace(errors, on="none")))


def test_splits_are_counted_over_all_fits_and_outlive_the_process(tmp_path: Path) -> None:
    """Sums over many random splits would be equations for single rows."""
    policy = replace(SAFE, max_splits=2, min_rows=5, min_validation_rows=2)
    questions = [encode(ColumnSums(f"holdout 0.3 {seed}")) for seed in range(3)]
    for data in questions[:2]:
        guard(tmp_path, policy).answer_bytes(data)
    again = guard(tmp_path, policy)
    again.answer_bytes(questions[0])
    with pytest.raises(FedLassoError, match="have been cut in 2 ways over all fits"):
        again.answer_bytes(questions[2])


def test_a_refusal_leaves_without_the_record_that_it_quotes() -> None:
    error = QuotesRecords("a value of size 4711, too large", "a value, too large")
    assert str(error) == "a value of size 4711, too large"
    assert str(public_refusal(error, SAFE)) == "a value, too large"
