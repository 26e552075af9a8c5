"""Masks: they cancel in the total of all sites, and nowhere else."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from helpers.governance.authority import Authority
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlasso import FedLassoError
from fedlasso.federation.messages import Word
from fedlasso.governance.identity import Identity, read_peers
from fedlasso.governance.masks import Masks, Offer, Ring, _stream

SITES = ("east", "north", "south", "west")
FIT = "ab" * 16
WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20)


def rings(folder: Path, names: tuple[str, ...] = SITES, session: str = "one") -> list[Ring]:
    sites = Authority(folder).acquaint(names)
    return [Ring(name, own, FIT, session) for name, own in sites.items()]


def agree(members: list[Ring], opening: bytes = b"opening") -> list[Masks]:
    offers = [Offer.read(ring.offer().write()) for ring in members]
    return [ring.close(offers, opening) for ring in members]


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> list[Masks]:
    return agree(rings(tmp_path_factory.mktemp("ca")))


def total(parts: list[Word]) -> Word:
    return reduce(np.add, parts)


@settings(deadline=None)
@given(WORDS, st.integers(1, 2**40), st.binary(max_size=50))
def test_masks_cancel_in_the_total_of_all_sites_and_in_no_part_of_it(
    masks: list[Masks], values: list[int], number: int, question: bytes
) -> None:
    clear = [np.array(values, np.uint64) + np.uint64(k) for k in range(len(masks))]
    sent = [m.mask(words, number, question) for m, words in zip(masks, clear, strict=True)]
    assert (total(sent) == total(clear)).all()
    for left_out in range(len(masks)):
        some = [k for k in range(len(masks)) if k != left_out]
        # Even all but one tell nothing: a match by chance has odds of one in 2^64 per word.
        part = total([sent[k] for k in some])
        assert (part != total([clear[k] for k in some])).any()


def test_other_questions_numbers_or_openings_do_not_cancel(
    masks: list[Masks], tmp_path: Path
) -> None:
    clear = [np.arange(5, dtype=np.uint64) for _ in masks]
    others = agree(rings(tmp_path))
    askings = [(masks, 1, b"question")] * 3
    for who, number, question in (
        (masks, 2, b"question"),
        (masks, 1, b"another"),
        (others, 1, b"question"),
    ):
        one = [m[0][k].mask(clear[k], *m[1:]) for k, m in enumerate(askings)]
        odd = who[3].mask(clear[3], number, question)
        assert (total([*one, odd]) != total(clear)).any()


def test_sites_that_were_opened_differently_do_not_cancel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = rings(tmp_path)
    offers = [ring.offer() for ring in members]
    closed = [ring.close(offers, b"columns a, b") for ring in members[:3]]
    closed.append(members[3].close(offers, b"column a"))
    clear = [np.arange(5, dtype=np.uint64) for _ in closed]
    sent = [m.mask(words, 1, b"q") for m, words in zip(closed, clear, strict=True)]
    assert (total(sent) != total(clear)).any()
    bound = _stream

    def unbound(secret: bytes, opening: bytes, number: int, question: bytes, count: int) -> Word:
        return bound(secret, b"", number, question, count)

    # With masks that do not depend on the opening, sums over other columns would be told.
    monkeypatch.setattr("fedlasso.governance.masks._stream", unbound)
    sent = [m.mask(words, 1, b"q") for m, words in zip(closed, clear, strict=True)]
    assert (total(sent) == total(clear)).all()


def test_no_session_can_be_opened_twice_with_one_key(tmp_path: Path) -> None:
    members = rings(tmp_path)
    offers = [ring.offer() for ring in members]
    members[0].close(offers, b"opening")
    with pytest.raises(FedLassoError, match="not its own"):
        members[0].close(offers, b"another opening")
    # A key offered again is a new one, so old offers are of no use.
    assert members[0].offer().key != offers[0].key


class Sent:
    """What leaves a site that is asked, killed, asked again, by anybody who wishes it ill."""

    def __init__(self) -> None:
        self.payloads: dict[bytes, bytes] = {}

    def note(self, mask: bytes, payload: bytes) -> None:
        assert self.payloads.setdefault(mask, payload) == payload


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ask", "again", "older", "kill"]), st.integers(1, 3)),
        min_size=1,
        max_size=25,
    )
)
def test_no_mask_ever_serves_two_payloads(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    members = rings(tmp_path_factory.mktemp("ca"), SITES[:2])
    mine = agree(members)[0]
    seen = Sent()
    number = 0
    question = b""
    for step, value in steps:
        if step == "kill":
            # A restarted site offers new keys; the numbers begin anew.
            mine = agree(members)[0]
            number = 0
            continue
        asked = question
        if step == "ask" or not number:
            number += 1
            asked = question = bytes([value])
        elif step == "older":
            asked = question + b"other"
        words = np.frombuffer((asked * 8)[:8], np.uint64)
        try:
            kept = mine.again(number, asked)
        except FedLassoError:
            assert step == "older"
            continue
        masked = mine.mask(words, number, asked) if kept is None else kept
        mine.keep(number, asked, masked)
        seen.note((masked - words).tobytes(), words.tobytes())


def test_a_number_is_answered_once_and_asked_again_it_has_the_same_answer(
    masks: list[Masks],
) -> None:
    one = replace(masks[0])
    assert one.again(1, b"q") is None
    one.keep(1, b"q", b"bytes")
    assert one.again(1, b"q") == b"bytes"
    for number, question in ((1, b"other"), (0, b"q")):
        with pytest.raises(FedLassoError, match="number was used before"):
            one.again(number, question)
    assert one.again(2, b"q") is None


def test_the_answers_of_the_last_batch_are_kept_until_the_next_number(masks: list[Masks]) -> None:
    one = replace(masks[0])
    for _ in range(2):
        # The batch, which was cut short, again.
        one.start()
        for number in (1, 2):
            assert one.again(number, b"q") in (None, bytes([number]))
            one.keep(number, b"q", bytes([number]))
    one.keep(3, b"q", b"3")
    assert [one.again(number, b"q") for number in (1, 2, 3)] == [b"\1", b"\2", b"3"]
    with pytest.raises(FedLassoError, match="number was used before"):
        one.again(2, b"other")
    one.start()
    one.keep(4, b"q", b"4")
    for number in (1, 2, 3):
        with pytest.raises(FedLassoError, match="number was used before"):
            one.again(number, b"q")


def with_own_key(offer: Offer, ring: Ring) -> Offer:
    return replace(offer, key=ring.offer().key)


def test_whoever_passes_keys_on_cannot_put_its_own_in_their_place(tmp_path: Path) -> None:
    members = rings(tmp_path / "ours")
    offers = [ring.offer() for ring in members]
    stranger = Ring("north", Authority(tmp_path / "theirs").identity("north"), FIT, "one")
    other_session = Ring("north", members[1].identity, FIT, "two")
    neighbour = Ring("north", members[2].identity, FIT, "one")
    for wrong, words in (
        (with_own_key(offers[1], stranger), "not signed by that site"),
        (stranger.offer(), "not signed by that site"),
        (other_session.offer(), "not signed by that site"),
        (neighbour.offer(), "has another name"),
        (replace(offers[1], key="00"), "is malformed"),
        (replace(offers[1], certificate="none"), "not signed by that site"),
        (replace(offers[1], name="east"), "two keys"),
    ):
        given = [offers[0], wrong, *offers[2:]]
        with pytest.raises(FedLassoError, match=words):
            members[0].close(given, b"opening")
    with pytest.raises(FedLassoError, match="not its own"):
        members[0].close([with_own_key(offers[0], members[1]), *offers[1:]], b"opening")
    with pytest.raises(FedLassoError, match="not its own"):
        members[0].close(offers[1:], b"opening")
    with pytest.raises(FedLassoError, match="is malformed; update"):
        Offer.read("{}")


def read_own_words(members: list[Ring], forge: Callable[[Offer, Ring], Offer]) -> tuple[Word, Word]:
    """A site's words, and what somebody makes of them who has drawn all other sites' keys."""
    mine = members[0]
    true = [ring.offer() for ring in members]
    drawn = {ring.name: Ring(ring.name, members[2].identity, FIT, "one") for ring in members[1:]}
    forged = [forge(offer, drawn[offer.name]) for offer in true[1:]]
    public = X25519PublicKey.from_public_bytes(bytes.fromhex(true[0].key))
    masks = mine.close([true[0], *forged], b"opening")
    words = np.arange(1, 9, dtype=np.uint64)
    found = masks.mask(words, 1, b"question")
    for name, ring in drawn.items():
        secret = {mine.name: ring._key.exchange(public)}
        theirs = Masks(name, secret, masks.opening)
        found = found + theirs.mask(np.zeros(8, np.uint64), 1, b"question")
    return words, found


@pytest.mark.parametrize(
    ("forge", "refusal"),
    [
        (lambda offer, ring: with_own_key(offer, ring), "'north' is not signed by that site"),
        (lambda offer, ring: ring.offer(), "for 'north' has another name"),
    ],
    ids=["keys under true signatures", "a neighbour's certificate in all names"],
)
def test_forged_keys_would_tell_a_sites_own_words(
    forge: Callable[[Offer, Ring], Offer],
    refusal: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    members = rings(tmp_path)
    with pytest.raises(FedLassoError, match=refusal):
        read_own_words(members, forge)

    def believe(self: Identity, name: str, *_: object) -> str:
        return read_peers(self.peers)[name]

    # As if nobody looked at signatures and at the names in certificates.
    monkeypatch.setattr(Identity, "check", believe)
    words, found = read_own_words(rings(tmp_path / "believing"), forge)
    assert (words == found).all()


def test_a_certificate_that_is_over_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    mine = Ring("east", authority.identity("east"), FIT, "one")
    old = Ring("north", authority.identity("north", lasts=-timedelta(days=3)), FIT, "one")
    authority.acquaint(("east", "north"))
    with pytest.raises(FedLassoError, match="'north' is not valid now"):
        mine.close([mine.offer(), old.offer()], b"opening")


def test_a_key_that_was_not_accepted_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    sites = authority.acquaint(("east", "north"))
    mine = sites["east"]
    agree([Ring(name, own, FIT, "one") for name, own in sites.items()])
    # The coordinator owns the authority, so it can certify itself under any name.
    forged = authority.identity("north", forged=True)
    with pytest.raises(FedLassoError, match="'north' has another key than the one accepted here"):
        agree([Ring("east", mine, FIT, "two"), Ring("north", forged, FIT, "two")])
    # Nor does it begin with anybody whom it does not know.
    mine.peers.unlink()
    with pytest.raises(FedLassoError, match="'north' has a key that was not accepted here"):
        agree([Ring(name, own, FIT, "two") for name, own in sites.items()])
    mine.peers.write_text("not JSON")
    with pytest.raises(FedLassoError, match=r"peers.json is damaged"):
        read_peers(mine.peers)
