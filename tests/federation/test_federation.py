"""The seam: order, names, failures, and what the ledger sees."""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

import numpy as np
import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import FedLassoError, InProcess, Ledger
from fedlasso.federation import Around, Cost, Costs, Disclosure, Reply, Request, encode
from fedlasso.federation.federation import check_replies
from fedlasso.sites import FitAt, LargestEigenvalue, Rows, Site
from fedlasso.sites.questions import RowCount

R = TypeVar("R", bound=Reply)
ROWS = Disclosure("the number of rows", single="so that each site can fail by itself")


class Breaks(Request[RowCount]):
    """Fails at one site with an exception that carries data."""

    discloses: ClassVar[Disclosure] = ROWS

    def answer(self, site: Site) -> RowCount:
        if site.name == "b":
            raise RuntimeError(f"secret {site.training.y[0]}")
        return RowCount(site.rows)


class Lossy(Around):
    """A federation that loses some replies and reorders the rest."""

    def __init__(self, inner: InProcess, lost: Sequence[str]) -> None:
        super().__init__(inner)
        self.lost = lost

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        return tuple(r for r in self.inner.replies(request)[::-1] if r.site not in self.lost)


def test_replies_come_sorted_by_site_name() -> None:
    federation = InProcess(draw_sites()[::-1])
    assert [r.site for r in federation.ask(Rows())] == ["a", "b", "c"]
    assert [r.rows for r in federation.ask(Rows())] == [30, 25, 20]


def test_one_site_can_be_asked_alone() -> None:
    assert [r.site for r in draw_federation().ask(Rows(to=("b",)))] == ["b"]
    with pytest.raises(FedLassoError, match="no site is called 'z'"):
        draw_federation().ask(Rows(to=("z",)))


def test_a_failing_site_is_named_and_leaks_nothing() -> None:
    with pytest.raises(FedLassoError, match="site 'b' failed with RuntimeError") as caught:
        draw_federation().ask(Breaks())
    assert "secret" not in str(caught.value)


class Refuses(Request[RowCount]):
    """Refused by every site, in words that hold the names of sites by chance."""

    discloses: ClassVar[Disclosure] = ROWS
    named: int = 0

    def answer(self, site: Site) -> RowCount:
        said = f"site {site.name!r}: " if self.named else ""
        raise FedLassoError(f"{said}a site has no such data")


@pytest.mark.parametrize("name", ["a", "site", "s", "data", "it's"])
@pytest.mark.parametrize("named", [0, 1])
def test_a_site_that_refuses_is_named_once_whatever_it_is_called(name: str, named: int) -> None:
    federation = InProcess([Site(name, np.eye(2), [1.0, 2.0])])
    with pytest.raises(FedLassoError) as refused:
        federation.ask(Refuses(named))
    assert str(refused.value) == f"site {name!r}: a site has no such data"


def test_a_missing_site_is_named() -> None:
    with pytest.raises(FedLassoError, match="site 'b' did not answer"):
        Ledger(Lossy(draw_federation(), ["b"])).ask(Rows())


def test_a_site_that_was_not_asked_is_named() -> None:
    replies = draw_federation().ask(Rows())
    with pytest.raises(FedLassoError, match="site 'c' answered without being asked"):
        check_replies(("a", "b"), replies)


def test_the_ledger_restores_the_order() -> None:
    replies = Ledger(Lossy(draw_federation(), [])).ask(Rows())
    assert [r.site for r in replies] == ["a", "b", "c"]


def test_the_ledger_counts_each_site_apart() -> None:
    ledger = Ledger(draw_federation())
    ledger.total(FitAt(np.zeros(40)))
    ledger.ask(Rows(to=("b",)))
    assert ledger.costs.total("certificate", "a").upload == 8 * 43
    assert ledger.costs.total("certificate").download == 3 * 8 * 40
    assert ledger.costs.total("penalty") == ledger.costs.total("penalty", "b")
    assert ledger.costs.total("penalty").upload == 8
    assert ledger.costs.total("certificate", "b").operations == 4 * 25 * 40
    assert ledger.costs.total().messages == 4
    assert set(ledger.costs.seconds) == {"certificate", "penalty"}
    assert ledger.costs.total("nothing") == Cost()


def test_costs_add_and_subtract() -> None:
    ledger = Ledger(draw_federation())
    ledger.ask(Rows())
    first = ledger.costs
    ledger.total(FitAt(np.zeros(40)))
    second = ledger.costs - first
    assert second.kinds == ("certificate",)
    assert (first + second).entries == ledger.costs.entries
    assert (Costs() + first).entries == first.entries


def test_a_total_is_the_pooled_sum() -> None:
    sites = draw_sites()
    b = np.linspace(-1, 1, 40)
    total = InProcess(sites).total(FitAt(b))
    X = np.vstack([s.training.X for s in sites])
    y = np.concatenate([s.training.y for s in sites])
    np.testing.assert_allclose(total.gradient, X.T @ (X @ b - y), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(total.residual_ss, ((y - X @ b) ** 2).sum())
    assert total.site == ""


def test_a_total_may_be_the_largest_reply() -> None:
    sites = draw_sites()
    largest = max(site.training.largest_curvature for site in sites)
    assert InProcess(sites).total(LargestEigenvalue()).value == largest


def test_a_total_is_the_same_whatever_the_order_of_the_sites() -> None:
    b = np.linspace(-1, 1, 40)
    totals = [InProcess(sites).total(FitAt(b)) for sites in (draw_sites(), draw_sites()[::-1])]
    assert encode(totals[0]) == encode(totals[1])


def test_only_a_question_that_says_why_is_answered_one_by_one() -> None:
    with pytest.raises(TypeError, match="FitAt is answered by a total"):
        draw_federation().ask(FitAt(np.zeros(40)))
    assert len(draw_federation().ask(Rows())) == 3


def test_sites_with_different_losses_do_not_federate() -> None:
    (site,) = draw_sites((30,), 3)

    class Other:
        name = "b"
        columns = site.columns
        loss = "huber"
        answer_bytes = site.answer_bytes

    with pytest.raises(FedLassoError, match="site 'b' has the huber loss but site 'a'"):
        InProcess([site, Other()])
