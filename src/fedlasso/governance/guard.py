"""A site under its policy: it answers a fit, or refuses, and its audit says which beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, decode, encode
from fedlasso.federation.codec import decode_question, size
from fedlasso.federation.messages import layout
from fedlasso.federation.words import OFFSET, Words, from_words, grid_of, reaching
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.lifetime import Charge, Lifetime
from fedlasso.governance.masks import Masks
from fedlasso.governance.policy import Policy, values_of
from fedlasso.sites import Memory, Site, folds_in
from fedlasso.sites.rows import count_parts, name_draw
from fedlasso.sites.views import CentredSquares, Standardise

Approve = Callable[[Entry, Reply], bool]
# Characters of a refusal: it may quote the question.
LONGEST = 1000
# All that is said where the reason would tell of the records.
SILENCE = "the site does not answer this question; its audit says why"
# How many times the size of a column, up to a power of two, the means of a view may be: records
# about larger ones would be rounded, and sums over rounded records count rows.
FARTHEST = 64.0


class Withheld(Exception):
    """A reason for refusing that depends on the records: for the audit only."""


class Mendable(FedLassoError):
    """A refusal that names columns and counts, which whoever asks needs in order to mend it."""


def tell(error: Exception, what: str = "the site") -> str:
    """Return an error in our own words, and of any other only its type."""
    ours = isinstance(error, FedLassoError | Withheld)
    return (str(error) if ours else f"{what} failed with {type(error).__name__}")[:LONGEST]


def read_question(data: bytes, max_bytes: int) -> Request[Any]:
    """Return the question in some bytes; too many bytes are not even read."""
    if len(data) > max_bytes:
        raise FedLassoError(f"the question is longer than {max_bytes} bytes")
    return decode_question(data)


@dataclass(eq=False)
class GuardedSite:
    """A site that answers a fit as `Site` does, or refuses, and writes down which before it does.

    Parameters
    ----------
    site, policy, audit : the records, the rules and the book of what left
    fit : identity of the fit
    approve : is asked before a reply leaves, if the policy wants it
    data : fingerprint of the data file, whose lifetime budgets are used
    scope : what the answers depend on beside the data file and the question: columns, target, codes
    about : the same in words
    lifetime : the ledger of those budgets; by default the one beside the audit
    masks : what is added to words before they leave; none sends them in the clear
    strict : whether sums leave as words only, on a grid that hides how rows are rounded
    """

    site: Site
    policy: Policy
    audit: Audit
    fit: str
    approve: Approve | None = None
    data: str = ""
    scope: str = ""
    about: str = ""
    lifetime: Lifetime | None = None
    masks: Masks | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        self.name = self.site.name
        self.columns = self.site.columns
        self.loss = self.site.loss
        self.scope = self.scope or short_hash(*self.columns)
        self._ledger = self.lifetime or Lifetime.of(self.audit, self.data)
        self._limits = self.policy.limits(self.site.table.n)
        # The last question, asked again, has the same answer.
        self._last: tuple[str, Reply] | None = None

    def answer_bytes(self, data: bytes, request: Request[Any] | None = None) -> bytes:
        """Return the reply in bytes; a refusal or a failure is an error that carries no data.

        `request` is what the bytes say, where they have been read already.
        """
        entry = Entry(self.fit, "unreadable", "refused", about=self.about, data=self.data)
        entry = replace(entry, asked=hashlib.sha256(data).hexdigest())
        try:
            check_open(self._ledger, self.policy)
            request = request or read_question(data, self.policy.max_bytes)
            # The same question has another number in another session.
            plainly = encode(replace(request, number=0))
            asked = hashlib.sha256(plainly).hexdigest()
            entry = _describe(replace(entry, asked=asked), request)
            self._check_alone(request)
            # What the site remembers of rounds before is part of what is asked.
            bound = plainly + self._history(request)
            reply, clear, charges = self._weigh(request, asked)
            answer = self._mask(request, bound, reply, clear)
            entry = _complete(entry, reply, answer, clear)
            self._ask_leave(entry, self._read(request, reply))
            spent = self._ledger.charge(charges, self._limits)
        except Exception as error:
            raise FedLassoError(self._refuse(entry, error)) from None
        if isinstance(request, Standardise):
            self.site.keep_view(request.name, request)
        entry = replace(entry, spent=spent)
        # What is kept here is what the bytes that leave mean.
        self.audit.write(entry, clear if self.policy.keep_payloads else None)
        if self.masks is not None and request.reach:
            self.masks.keep(request.number, bound, answer)
        self._remember_history(request, bound)
        return answer

    def _history(self, request: Request[Any]) -> bytes:
        """Return a hash of all that a question's answer depends on from rounds before.

        Sites that were asked different things before have different ones, and masks that do not
        cancel; sites that were asked the same have the same, also after a restart.
        """
        asked: Any = request
        if not asked.remembers or asked.round == 0:
            return b""
        kept = self._memory(request).recall(_chain(asked.fit), asked.round)
        return bytes(kept["hash"].tobytes())

    def _remember_history(self, request: Request[Any], bound: bytes) -> None:
        asked: Any = request
        if asked.remembers:
            digest = np.frombuffer(hashlib.sha256(bound).digest(), np.uint8)
            memory = self._memory(request)
            memory.store(_chain(asked.fit), asked.round + 1, {"hash": digest})

    def _memory(self, request: Request[Any]) -> Memory:
        return (self.site.view(request.on) if request.on else self.site).memory

    def _check_alone(self, request: Request[Any]) -> None:
        """Refuse to answer in any other way than by words, but for what the policy names."""
        name = type(request).__name__
        if self.strict and not request.reach and name not in self.policy.single:
            raise FedLassoError(
                f"the policy here answers {name} only as part of a sum; list it under `single` in "
                "policy.toml to answer it alone"
            )

    def _mask(self, request: Request[Any], question: bytes, reply: Reply, clear: bytes) -> bytes:
        """Return the bytes that leave: words are masked."""
        if self.masks is None or not isinstance(reply, Words):
            return clear
        kept = self.masks.again(request.number, question)
        if kept is not None:
            return bytes(kept)
        words = self.masks.mask(reply.words, request.number, question)
        return encode(replace(reply, words=words))

    def _weigh(self, request: Request[Any], asked: str) -> tuple[Reply, bytes, list[Charge]]:
        """Judge a question, work the answer out, and say what it would use up."""
        self.policy.check(request, self.site)
        charges = self._charges(request)
        self._ledger.check(charges, self._limits)
        if isinstance(request, Standardise | CentredSquares):
            self._check_means(request)
        if isinstance(request, Standardise) and request.powers:
            self._check_powers(request)
        if request.reach and request.on:
            self._check_reach(request)
        try:
            if self._last is None or self._last[0] != asked:
                self._last = (asked, self._answer(request))
            reply = self._last[1]
            answer = encode(reply)
        except Exception as error:
            raise Withheld(tell(error, type(request).__name__)) from None
        (split,) = values_of(request, "split") or [""]
        # Sums over folds are about other rows each.
        numbers = -(-size(reply)[0] // 8 // folds_in(split))
        charges.append(Charge("vectors", self._key(asked, answer), numbers / len(self.columns)))
        self._ledger.check(charges, self._limits)
        return reply, answer, charges

    def _key(self, asked: str, answer: bytes) -> str:
        """Name what left: the same question and answer about the same columns are nothing new."""
        return short_hash(self.scope, asked, answer)

    def _charges(self, request: Request[Any]) -> list[Charge]:
        """Return what a question uses up by being answered at all: draws, and held-out rows."""
        charges = []
        for split in filter(None, values_of(request, "split")):
            draw = self._name_draw(split)
            charges.append(Charge("splits", draw, 1))
            charges.append(Charge("parts", draw, count_parts(split)))
        if request.discloses.held_out:
            split = self._split_of(request.on)
            (purpose,) = values_of(request, "purpose") or ["penalty"]
            within = f"{self._name_draw(split) if split else 'given'} {purpose}"
            # A question without models searches for one by itself.
            models = [model.T for model in values_of(request, "model")] or [np.zeros((1, 0))]
            for model in np.vstack(models):
                key = short_hash(self.scope, request.on, type(request).__name__, model.tobytes())
                charges.append(Charge("candidates", key, 1, within))
        return charges

    def _name_draw(self, split: str) -> str:
        """Name the rows that a split draws here; a draw that was put back is another one."""
        return f"{name_draw(split)} #{self.site.draw.again(split, self.site.table.n)}"

    def _split_of(self, view: str) -> str:
        if not view:
            return ""
        kept: Any = decode(self.site.memory.recall(f"view {view}", 1)["request"].tobytes())
        return str(kept.split)

    def _answer(self, request: Request[Any]) -> Reply:
        """Answer; a view is kept only once its reply leaves."""
        reply: Reply
        if not isinstance(request, Standardise):
            reply = self.site.answer(request)
            return reply
        memory = self.site.memory
        self.site.memory = Memory()
        try:
            return self.site.answer(request)
        finally:
            self.site.memory = memory
            self.site.forget_view(request.name)

    def _check_powers(self, request: Standardise) -> None:
        """Refuse a view that says its numbers are smaller than they are here."""
        said = request.magnitudes
        if said.columns.size != self.site.table.p:
            raise FedLassoError("a view must say how large the numbers of all columns are")
        table = self.site.table
        weights = request.share * self.site.weights(request.split)
        factors = np.abs(request.factors)
        rows = np.sqrt(weights.sum())
        y = self.site.told - request.y_mean
        slopes = self.site.training.loss.slope_size(rows**2, float(np.sqrt(weights @ (y * y))))
        # Means of missing values stand in for them.
        about_zero = np.sqrt(table.squares(np.zeros(table.p), weights))
        pairs = (
            (np.sqrt(table.squares(request.means, weights)) * factors, said.columns),
            ((about_zero + np.abs(request.means) * rows) * factors, said.terms),
            (np.array([rows]), np.array([said.rows])),
            (np.array([slopes]), np.array([said.response])),
        )
        for sizes, powers in pairs:
            if (sizes > np.ldexp(1.0, powers)).any():
                raise Withheld("a view that says its numbers are smaller than they are")

    def _check_reach(self, request: Request[Any]) -> None:
        """Refuse a grid finer than the coefficients in a question allow.

        Rows are rounded by large coefficients, and a fine grid would show how.
        """
        least = reaching(self.site.view(request.on).magnitudes, request).reach
        if request.reach - OFFSET < least:
            raise FedLassoError(
                f"{type(request).__name__}: the reach is too small for the numbers in the question"
            )

    def _check_means(self, request: Standardise | CentredSquares) -> None:
        """Refuse means so far from the records that these would be rounded."""
        table = self.site.table
        largest = np.append(table.largest, np.abs(self.site.told).max())
        given = np.append(request.means, getattr(request, "y_mean", 0.0))
        factors = getattr(request, "factors", np.zeros(table.p))
        limit = FARTHEST * np.exp2(np.ceil(np.log2(np.maximum(largest, 1e-300))))
        # A column of zeros here may have any mean elsewhere, in units of its own spread.
        spread = np.divide(FARTHEST, factors, out=np.zeros(table.p), where=factors != 0)
        limit = np.maximum(limit, np.append(np.abs(spread), 0.0))
        constant = np.append(largest[:-1] == 0, False) & (not isinstance(request, Standardise))
        if (np.abs(given) > np.where(constant, np.inf, limit)).any():
            raise Withheld("means of a view that are far from all records here")

    def _read(self, request: Request[Any], reply: Reply) -> Reply:
        """Return a reply as numbers that a person can read."""
        if not isinstance(reply, Words):
            return reply
        view = self.site.view(request.on).magnitudes if request.on else None
        grid = grid_of(request, view, self.site.table.p)
        return reply if grid is None else cast(Reply, from_words(reply, request, grid))

    def _ask_leave(self, entry: Entry, reply: Reply) -> None:
        if self.policy.dry_run:
            raise Withheld(f"dry run: {entry.numbers} numbers would have left")
        if self.policy.approval and (self.approve is None or not self.approve(entry, reply)):
            raise Withheld("the transfer was not approved here")

    def _refuse(self, entry: Entry, error: Exception) -> str:
        """Write a refusal down, count it where it depends on the records, and say what may be."""
        told = say_refusal(error, self.policy)
        spent: dict[str, float] = {}
        if depends_on_records(error) and not self.policy.dry_run:
            charge = Charge("refusals", short_hash(self.scope, entry.asked), 1)
            spent = self._ledger.charge([charge], {})
        why = tell(error, entry.question)
        # What would have left is told by its size and hash; nothing did.
        self.audit.write(replace(entry, verdict="refused", why=why, spent=spent, sha256=""))
        return told


def _chain(fit: str) -> str:
    """How the hashes of a procedure's rounds are called in a site's memory."""
    return f"history of {fit}"


def depends_on_records(error: Exception) -> bool:
    """Whether a refusal for this reason tells something of the records by itself."""
    return isinstance(error, Mendable) or not isinstance(error, FedLassoError)


def say_refusal(error: Exception, policy: Policy) -> str:
    """Return what is said to whoever asked."""
    return tell(error) if isinstance(error, FedLassoError) and not policy.dry_run else SILENCE


def check_open(lifetime: Lifetime, policy: Policy) -> None:
    """Refuse everything about a data file that was refused too often."""
    used = lifetime.used("refusals")
    if used and used >= policy.max_refusals:
        lifetime.check([Charge("refusals", "", 1)], {"refusals": policy.max_refusals})


def _describe(entry: Entry, request: Request[Any]) -> Entry:
    """Return an entry with what the question says, in words."""
    (split,) = values_of(request, "split") or [""]
    words = []
    for name, kind in layout(type(request)):
        value = getattr(request, name)
        if "array" in kind and value is not None:
            ends = f" from {value.min():.3g} to {value.max():.3g}" if value.size else ""
            shape = " x ".join(map(str, value.shape)) or "1"
            words.append(f"{name}: {shape} numbers{ends}, {np.count_nonzero(value)} not zero")
        elif kind in ("float", "int", "text") and name not in ("on", "split") and value != "":
            words.append(f"{name}: {value if kind != 'float' else format(value, '.6g')}")
    return replace(
        entry,
        question=type(request).__name__,
        split=split[:200] if split.isprintable() else "",
        view=request.on[:64] if request.on.isprintable() else "",
        parameters="".join(c for c in "; ".join(words) if c.isprintable())[:LONGEST],
    )


def _complete(entry: Entry, reply: Reply, answer: bytes, clear: bytes) -> Entry:
    """Return an entry with what leaves."""
    names = [name for name, kind in layout(type(reply)) if "array" in kind or kind == "words"]
    arrays = {name: array for name in names if (array := getattr(reply, name)) is not None}
    payload, _ = size(reply)
    return replace(
        entry,
        verdict="sent",
        shapes={name: list(array.shape) for name, array in arrays.items()},
        numbers=payload // 8,
        payload=payload,
        size=len(answer),
        sha256=hashlib.sha256(answer).hexdigest(),
        clear=hashlib.sha256(clear).hexdigest() if clear != answer else "",
    )


def short_hash(*parts: str | bytes) -> str:
    """Return a short hash of some parts, none of which runs into the next."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:32]
