"""Masked sums over a network: the same model bit for bit, and no site's numbers on the line."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.deploy.doors import DoorLine, Project, make_door, make_doors, parts_of
from helpers.deploy.isolating import Isolating, ask, be_all_others, keep_as_it_is, offers_of
from helpers.governance.authority import Authority, accept_keys
from helpers.nets import COLUMNS, FIT, SITES, in_process, numbers, opening, same_files, write_tables

from fedlasso import FedLassoError
from fedlasso.deploy.network import Answer, Network
from fedlasso.deploy.reconcile import RECEIPTS
from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.federation import decode, encode
from fedlasso.federation.codec import is_batch, pack
from fedlasso.federation.fixed_point import OFFSET, Words, from_words, grid_of
from fedlasso.federation.messages import add_up
from fedlasso.fitting import Settings, fit_model
from fedlasso.fitting.inference.infer import find_noise_inflation
from fedlasso.governance import Door, GuardedSite, Policy, door, masks
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.identity import Identity
from fedlasso.models import FitPlan, NetworkSource, make_model, write_model
from fedlasso.sites import ErrorAt, GradientAt, NoiseAbove, SiteWeighted, Viewed, standardise

SETTINGS = {
    "goal": Settings(),
    "gradients": Settings(penalty=0.1, procedure="Secant"),
    "local steps": Settings(penalty=0.1, procedure="CD", uploads=8),
}


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    return write_tables(tmp_path)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


class Tapped(DoorLine):
    """A line whose owner keeps what every site says."""

    def __init__(self, doors: dict[str, Door]) -> None:
        super().__init__(doors)
        self.seen: list[tuple[Any, list[Any]]] = []

    def exchange(self, sites: Sequence[str], question: bytes, seconds: float) -> list[Answer]:
        answers = super().exchange(sites, question, seconds)
        replies = zip(*(parts_of(a.data) for a in sorted(answers)), strict=True)
        # A refusal ends a batch.
        for asked, part in zip(parts_of(question), replies, strict=False):
            self.seen.append((decode(asked), list(map(decode, part))))
        return answers


def joined(doors: dict[str, Door]) -> tuple[Network, Tapped]:
    line = Tapped(doors)
    network = Network(line, list(doors), 1.0)
    network.open(NetworkSource("project", FIT, "y", COLUMNS))
    return network, line


@pytest.mark.parametrize("how", SETTINGS)
def test_in_process_clear_and_masked_runs_give_the_same_bits(
    how: str, tables: dict[str, Path], authority: Authority, tmp_path: Path
) -> None:
    write_model(tmp_path / "alone", make_model(in_process(tables), SETTINGS[how], numbers()))
    for name, policy in (("masked", Policy()), ("clear", Policy(sums="clear"))):
        out = tmp_path / name
        begin_plan(out, FitPlan(SETTINGS[how], NetworkSource("project", "", "y", COLUMNS)))
        project = Project(tables, policy, authority)
        # Sites of other minor versions take part, as long as they speak the same protocol.
        project.doors["b"].version = "0.9.0"
        finished = run_plan(out, project.connect)
        assert same_files(out, tmp_path / "alone")
        assert all(books.used == books.arrived for books in finished.reconciled.values())


def test_the_line_sees_words_of_no_site_but_of_all_together(
    tables: dict[str, Path], authority: Authority
) -> None:
    masked, tap = joined(make_doors(tables, None, authority))
    view, _ = standardise(masked)
    tap.seen.clear()
    b = np.linspace(-1, 1, len(COLUMNS))
    total = view.total(GradientAt(b)).gradient
    ((request, replies),) = tap.seen
    clear = add_up(in_process_view(tables, view).replies(GradientAt(b))).gradient
    np.testing.assert_allclose(total, clear, rtol=1e-11)
    grid = grid_of(request, view.view.magnitudes, len(COLUMNS))
    assert grid is not None
    # Random words are as large as the grid reaches; half of twelve are not small by chance.
    for reply, own in zip(
        replies, in_process_view(tables, view).replies(GradientAt(b)), strict=True
    ):
        shown = from_words(reply, request, grid).gradient
        assert np.median(np.abs(shown - own.gradient)) > 10 * np.abs(own.gradient).max()
    assert {type(reply) for reply in replies} == {Words}


def test_masked_sites_are_counted_by_their_noise_and_none_is_named(
    tables: dict[str, Path], authority: Authority
) -> None:
    masked, tap = joined(make_doors(tables, None, authority))
    view, scaling = standardise(masked)
    alone = in_process_view(tables, view)
    b = np.linspace(-1, 1, len(COLUMNS))
    asked = NoiseAbove(b, 0.1 * view.total(ErrorAt(b)).value / scaling.rows)
    total = view.total(asked).above
    own = np.array([reply.above for reply in alone.replies(asked)])
    np.testing.assert_array_equal(total, own.sum(axis=0))
    assert set(total.tolist()) & {1.0, 2.0}
    assert {type(reply) for reply in tap.seen[-1][1]} == {Words}
    assert find_noise_inflation(view, scaling, b) == find_noise_inflation(alone, scaling, b)


def in_process_view(tables: dict[str, Path], view: Viewed) -> Viewed:
    """The same view of the same records, in this process."""
    federation = in_process(tables)
    federation.ask(view.view)
    return Viewed(federation, view.view)


def test_what_is_not_a_sum_is_answered_only_where_the_policy_names_it(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    for policy, words in (
        (Policy(), "answers ErrorAt only as part of a sum"),
        (Policy(single=("ColumnSizes", "ErrorAt", "Rows", "Standardise")), ""),
    ):
        network, _ = joined(make_doors(tables, policy, authority))
        view, _ = standardise(network)
        if words:
            with pytest.raises(FedLassoError, match=words):
                view.ask(ErrorAt(np.zeros(len(COLUMNS))))
            # Nor is a gradient in the clear, whose total a coordinator could take.
            with pytest.raises(FedLassoError, match="answers GradientAt only as part"):
                network.total(GradientAt(np.zeros(len(COLUMNS))))
        else:
            assert len(view.ask(ErrorAt(np.zeros(len(COLUMNS))))) == 3
    # Without the rule each site's own gradient comes in the clear.
    monkeypatch.setattr(GuardedSite, "_check_alone", lambda self, request: None)
    network, _ = joined(make_doors(tables, None, authority))
    asked = GradientAt(np.zeros(len(COLUMNS)))
    for reported, own in zip(
        network.replies(asked), in_process(tables).replies(asked), strict=True
    ):
        np.testing.assert_array_equal(reported.gradient, own.gradient)


def test_the_number_of_sites_is_what_they_sign_and_not_what_the_coordinator_says(
    tables: dict[str, Path], authority: Authority
) -> None:
    doors = make_doors(tables, None, authority)
    offers = offers_of(doors)
    first = doors["a"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"offers": ()}, "requires masked sums"),
        ({"offers": offers[:2]}, "not those of the sites named"),
        ({"offers": offers[:2], "sites": ("a", "b")}, "the fit has 2 sites"),
        ({"offers": offers, "session": "two"}, "no key was drawn here"),
    ]
    for changes, words in cases:
        offers_of({"a": first})
        refused = ask(first, opening(**({"session": "one"} | changes)))
        assert isinstance(refused, Refusal)
        assert words in refused.text


def test_sites_that_are_named_and_have_not_signed_do_not_count(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Site b works with the coordinator, and site c is only named: a would be alone with b."""
    doors = make_doors(tables, None, authority)
    given = (doors["a"], {"b": doors["b"]}, tables, SITES)
    with pytest.raises(FedLassoError, match="not those of the sites named"):
        be_all_others(*given)
    # As it was: how many sites there are was the coordinator's word.
    monkeypatch.setattr(door, "check_named", lambda offered, sites: None)
    assert be_all_others(*given) < 1e-11


def test_a_policy_may_name_fewer_sites_than_were_accepted(
    tables: dict[str, Path], authority: Authority
) -> None:
    doors = make_doors(tables, Policy(peers=("b",)), authority)
    refused = ask(doors["a"], opening(session="one", offers=offers_of(doors)))
    assert isinstance(refused, Refusal)
    assert "allows fits with b only, and not with c" in refused.text


def isolate(doors: dict[str, Door], tables: dict[str, Path]) -> float:
    """How far the coordinator's guess at site a's gradient is off, relative to its size.

    It knows totals at two models, so it knows the total at any combination: asking a about one and
    the others about the other leaves a's own part.
    """
    coordinator = Isolating(doors)
    coordinator.open()
    p = len(COLUMNS)
    view = keep_as_it_is()
    coordinator.keep(view)
    zero = GradientAt(np.zeros(p), on=view.name, reach=20 + OFFSET)
    other = GradientAt(np.eye(p)[0], on=view.name, reach=20 + OFFSET)
    grid = grid_of(zero, view.magnitudes, p)
    assert grid is not None
    names = list(doors)
    at_zero = from_words(coordinator.sum(dict.fromkeys(names, zero)), zero, grid).gradient
    mixed = coordinator.sum({name: other if name == "a" else zero for name in names})
    guess = from_words(mixed, zero, grid).gradient - at_zero
    records = in_process({"a": tables["a"]})
    records.ask(view)
    shown = Viewed(records, view)
    asked = [shown.replies(replace(each, reach=0))[0].gradient for each in (other, zero)]
    own = asked[0] - asked[1]
    return float(np.median(np.abs(guess - own)) / np.abs(own).max())


def test_sites_that_are_asked_different_things_do_not_cancel(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = make_doors(tables, Policy(), authority)
    assert isolate(doors, tables) > 1e3
    bound = masks._stream

    def unbound(secret: bytes, opening: bytes, number: int, question: bytes, count: int) -> Any:
        return bound(secret, opening, number, b"", count)

    # With masks that do not depend on the question, the attack gives site a's own product.
    monkeypatch.setattr(masks, "_stream", unbound)
    assert isolate(doors, tables) < 1e-9


def weigh_down_the_others(doors: dict[str, Door], tables: dict[str, Path]) -> float:
    """Let rows of all sites but a be worth next to nothing; how far is the total from a's own?"""
    network, _ = joined(doors)
    worth = {site: 1.0 if site == "a" else 1e-12 for site in network.sites}
    view, _ = standardise(SiteWeighted(network, worth))
    b = np.linspace(-1, 1, len(COLUMNS))
    guess = view.total(GradientAt(b)).gradient
    own = in_process_view(tables, view).replies(GradientAt(b))[0].gradient
    return float(np.abs(guess - own).max() / np.abs(own).max())


def test_no_site_is_taken_out_of_a_total_by_what_rows_are_worth(
    tables: dict[str, Path], authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = make_doors(tables, Policy(), authority)
    with pytest.raises(FedLassoError, match="all sites must have the same weight"):
        weigh_down_the_others(doors, tables)
    # Without the rule, the total is site a's own.
    monkeypatch.setattr(GuardedSite, "_check_site_weights", lambda self, request: None)
    assert weigh_down_the_others(doors, tables) < 1e-6


@pytest.mark.parametrize(
    ("names", "forged", "words"),
    [
        (("d", "e"), False, "site 'd' has a key that was not accepted here"),
        (("b", "c"), True, "site 'b' has another key than the one accepted here"),
    ],
)
def test_a_coordinator_who_certifies_sites_of_its_own_is_refused_in_the_first_session(
    names: tuple[str, str], forged: bool, words: str, tables: dict[str, Path],
    authority: Authority, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """It owns the authority, so it can be all other sites of a fit: then totals are one site's.

    Site a has accepted the keys of the true sites b and c, and never took part in anything.
    """
    real = make_doors(tables, None, authority)["a"]
    invented = {name: authority.identity(name, forged=forged) for name in names}
    for own in invented.values():
        accept_keys(own, {"a": authority.identity("a")} | invented)
    records = {"a": tables["a"]} | dict(zip(names, (tables["b"], tables["c"]), strict=True))
    shams = {name: make_door(records[name], name, identity=invented[name]) for name in names}
    with pytest.raises(FedLassoError, match=words):
        be_all_others(real, shams, records)
    # Without the list of accepted keys, the total minus its own part is site a's gradient.
    monkeypatch.setattr(Identity, "recognise", lambda self, others: None)
    assert be_all_others(real, shams, records) < 1e-11


def test_a_number_that_was_used_is_not_used_again(
    tables: dict[str, Path], authority: Authority
) -> None:
    doors = make_doors(tables, None, authority)
    coordinator = Isolating(doors)
    coordinator.open()
    p = len(COLUMNS)
    view = keep_as_it_is()
    coordinator.keep(view)
    question = GradientAt(np.zeros(p), on=view.name, reach=20 + OFFSET, number=1)
    door = doors["a"]
    first = door.answer_bytes(encode(question))
    assert door.answer_bytes(encode(question)) == first
    other = GradientAt(np.ones(p), on=view.name, reach=20 + OFFSET, number=1)
    refused = ask(door, other)
    assert isinstance(refused, Refusal)
    assert "number was used before" in refused.text
    # The audit has the hash of what left, and the hash of what it meant.
    sent = [e for e in door.audit.entries() if e.question == "GradientAt" and e.verdict == "sent"]
    assert len({e.sha256 for e in sent}) == 1
    assert all(e.clear and e.clear != e.sha256 for e in sent)


def test_a_sum_of_some_sites_is_refused_where_only_the_total_can_be_read(
    tables: dict[str, Path], authority: Authority
) -> None:
    network, _ = joined(make_doors(tables, None, authority))
    with pytest.raises(FedLassoError, match=r"SurrogateFit needs the own sum of \w"):
        fit_model(network, Settings(penalty=0.1, procedure="CSL", uploads=10))


def beyond_all(data: bytes) -> bytes:
    """Masked words that no site has sent, whose total is impossible."""
    parts = []
    for part in parts_of(data):
        reply = decode(part)
        if isinstance(reply, Words):
            part = encode(replace(reply, words=reply.words + np.uint64(2**62)))
        parts.append(part)
    return pack(parts) if is_batch(data) else parts[0]


def test_a_fit_resumes_after_an_impossible_total_once_the_site_is_mended(
    tables: dict[str, Path],
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "model"
    settings = Settings(penalty=0.1, procedure="ADMM", uploads=8)
    begin_plan(out, FitPlan(settings, NetworkSource("project", "", "y", COLUMNS)))
    project = Project(tables, None, authority)
    faulty = project.doors["b"]
    answer = faulty.answer_bytes
    monkeypatch.setattr(faulty, "answer_bytes", lambda data: beyond_all(answer(data)))
    with pytest.raises(FedLassoError, match=r"is impossible: .*find the faulty site, and resume"):
        run_plan(out, project.connect)
    monkeypatch.undo()
    # What was discarded has no receipt, which site b's audit would contradict.
    sent = {entry.sha256 for door in project.doors.values() for entry in door.audit.entries()}
    assert {line.split()[1] for line in (out / RECEIPTS).read_text().splitlines()} <= sent
    run_plan(out, project.connect)
    write_model(tmp_path / "alone", make_model(in_process(tables), settings, numbers()))
    assert same_files(out, tmp_path / "alone")
