"""A site under its policy: it answers a fit or refuses, and audits which beforehand."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.federation.codec import decode_question, seal, size, unpack
from fedlasso.federation.fixed_point import Words, from_words, grid_of
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.consent import (
    Approve,
    Transfer,
    describe_question,
    describe_reply,
    require_approval,
)
from fedlasso.governance.counting import count_rows, fraction_of
from fedlasso.governance.cuts import name_cut
from fedlasso.governance.lifetime import Charge, Lifetime, short_hash
from fedlasso.governance.masks import Masks
from fedlasso.governance.policy import Policy, values_of
from fedlasso.governance.record_checks import (
    check_effective_rows,
    check_means,
    check_powers,
    check_reach,
    check_steepness,
    judge_own_models,
)
from fedlasso.governance.refusals import Withheld, check_open, error_text, refuse
from fedlasso.numerics import Array
from fedlasso.sites import Site
from fedlasso.sites.atoms import ROWS_PER_COLUMN, halve, merge, smallest
from fedlasso.sites.moment_rules import moment_columns, smallest_part
from fedlasso.sites.views import Standardise

# A model that ranks rows counts as so many: a search for where two rows change places takes 50.
RANKED = 5


def read_question(data: bytes, max_bytes: int) -> Request[Any]:
    """Return the question in some bytes; more than `max_bytes` are not decoded."""
    _check_length(data, max_bytes)
    return decode_question(data)


def read_batch(data: bytes, max_bytes: int) -> list[bytes]:
    """Return the questions of a batch, still encoded; more than `max_bytes` are not decoded."""
    _check_length(data, max_bytes)
    return unpack(data)


def _check_length(data: bytes, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise FedLassoError(f"the question is longer than {max_bytes} bytes")


@dataclass(eq=False)
class GuardedSite:
    """A site that answers a fit as `Site` does, or refuses, and audits which before it does.

    `data` is the fingerprint of the data file, whose budgets are in the ledger `lifetime`, by
    default the one beside the audit. `scope` is a hash of the columns, target and codes on which
    answers depend, `about` the same as text, `opening` a hash
    of all that the fit was opened with. Without `masks` words leave in the clear; if `strict`,
    sums leave as words only, on a grid that hides the rounding of rows.
    """

    site: Site
    policy: Policy
    audit: Audit
    fit: str
    approve: Approve = None
    data: str = ""
    scope: str = ""
    about: str = ""
    lifetime: Lifetime | None = None
    masks: Masks | None = None
    opening: str = ""
    strict: bool = False

    def __post_init__(self) -> None:
        self.site.draw.cell_rows = self.policy.min_cell_rows
        self.name = self.site.name
        self.columns = self.site.columns
        self.loss = self.site.loss
        self.atoms = self.site.atoms
        self.scope = self.scope or short_hash(*self.columns)
        self._ledger = self.lifetime or Lifetime.of(self.audit, self.data)
        self._limits = self.policy.limits()
        # What the replies in hand would be charged, for the operator who decides on them.
        self.pending: list[Charge] = []
        # The last question, repeated, has the same answer.
        self._last: tuple[str, Reply] | None = None

    def answer_bytes(self, data: bytes, request: Request[Any] | None = None) -> bytes:
        """Return the encoded reply, or raise an error without data; `request` is decoded data."""
        if self.masks is not None:
            self.masks.start()
        return self._answer_one(data, self.approve, request)

    def answer_each(self, asked: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the replies to a batch of questions, until one is refused.

        Each is checked, charged and audited as if it were asked alone, before the next is read. If
        the policy requires approval, the operator decides once on all of them.
        """
        if self.masks is not None:
            self.masks.start()
        approve = self.approve
        if approve is not None and self.policy.approval and not self.policy.dry_run:
            approve = self._approve_once(asked, approve)
        for data in asked:
            yield self._answer_one(data, approve)

    def _approve_once(self, asked: Sequence[bytes], approve: Callable[..., bool]) -> Approve:
        """Show all replies of a batch, and return the operator's decision for each of these."""
        shown = list(self._show_each(asked))
        self._last = None
        approved = {entry.sha256 for entry, _ in shown} if shown and approve(shown) else set()
        return lambda transfers: all((e.clear or e.sha256) in approved for e, _ in transfers)

    def _show_each(self, asked: Sequence[bytes]) -> Iterator[Transfer]:
        """Yield what would leave for each question, without masks, up to the first refusal."""
        self.pending = []
        with suppress(Exception), self.site.draft():
            for data in asked:
                request, entry, _ = self._read_question(data, self._blank(data))
                reply, clear, charges = self._prepare(request, entry.asked)
                self.pending += charges
                if isinstance(request, Standardise):
                    self.site.keep_view(request.name, request)
                yield describe_reply(entry, reply, clear, clear), self._read(request, reply)

    def _blank(self, data: bytes) -> Entry:
        entry = Entry(self.fit, "unreadable", "refused", about=self.about, data=self.data)
        return replace(entry, asked=hashlib.sha256(data).hexdigest(), opening=self.opening)

    def _read_question(
        self, data: bytes, entry: Entry, request: Request[Any] | None = None
    ) -> tuple[Request[Any], Entry, bytes]:
        """Return a question, the entry that describes it, and its bytes without a number."""
        request = request or read_question(data, self.policy.max_bytes)
        # The same question has another number in another session.
        unnumbered = encode(seal(request, number=0))
        entry = replace(entry, asked=hashlib.sha256(unnumbered).hexdigest())
        return request, describe_question(entry, request), unnumbered

    def _answer_one(
        self, data: bytes, approve: Approve, request: Request[Any] | None = None
    ) -> bytes:
        entry = self._blank(data)
        try:
            check_open(self._ledger, self.policy, self.fit)
            request, entry, unnumbered = self._read_question(data, entry, request)
            # The state from earlier rounds is part of the question.
            bound = unnumbered + self._history(request)
            reply, clear, charges = self._prepare(request, entry.asked)
            self.pending = charges
            answer = self._mask(request, bound, reply, clear)
            entry = describe_reply(entry, reply, answer, clear)
            what = f"{entry.numbers} numbers"
            readable = self._read(request, reply)
            require_approval(self.policy, approve, entry, readable, what)
            spent = self._ledger.charge(charges, self._limits)
        except Exception as error:
            key = short_hash(self.scope, entry.asked)
            raise refuse(
                error, entry, self.policy, self.audit, key, lambda: self._ledger, self.fit
            ) from None
        if isinstance(request, Standardise):
            self.site.keep_view(request.name, request)
        entry = replace(entry, spent=spent)
        # The copy kept here is not masked.
        self.audit.write(entry, clear if self.policy.keep_payloads else None)
        if self.masks is not None and request.reach:
            self.masks.keep(request.number, bound, answer)
        self._remember_history(request, bound)
        return answer

    def _history(self, request: Request[Any]) -> bytes:
        """Return a hash of the earlier rounds that the answer depends on.

        Sites with different earlier rounds have different hashes, so that their masks do not
        cancel; with the same rounds they have the same, also after a restart.
        """
        question: Any = request
        if not question.remembers or question.round == 0:
            return b""
        memory = self.site.view(request.on).memory
        return memory.recall(f"history of {question.fit}", question.round)["hash"].tobytes()

    def _remember_history(self, request: Request[Any], bound: bytes) -> None:
        question: Any = request
        if question.remembers:
            digest = np.frombuffer(hashlib.sha256(bound).digest(), np.uint8)
            memory = self.site.view(request.on).memory
            memory.store(f"history of {question.fit}", question.round + 1, {"hash": digest})

    def _check_alone(self, request: Request[Any]) -> None:
        """Refuse to reply other than in words, except to questions listed in the policy."""
        name = type(request).__name__
        if self.strict and not request.reach and name not in self.policy.single:
            remedy = "list it under `single` in policy.toml to answer it alone"
            raise FedLassoError(f"the policy here answers {name} only as part of a sum; {remedy}")

    def _check_site_weights(self, request: Request[Any]) -> None:
        """Refuse site weights where sums are masked.

        With tiny weights for the other sites, or with two sets of weights, totals would disclose
        one site's sum.
        """
        if self.masks is not None and getattr(request, "site_weights", None):
            reason = "sums are masked here, so all sites must have the same weight"
            raise FedLassoError(f"{reason}; use --site-weights equal")

    def _mask(self, request: Request[Any], question: bytes, reply: Reply, clear: bytes) -> bytes:
        """Return the bytes that leave, with words masked."""
        if self.masks is None or not isinstance(reply, Words):
            return clear
        kept = self.masks.again(request.number, question)
        if kept is not None:
            return bytes(kept)
        words = self.masks.mask(reply.words, request.number, question)
        return encode(replace(reply, words=words))

    def _prepare(self, request: Request[Any], digest: str) -> tuple[Reply, bytes, list[Charge]]:
        """Check a question, compute the answer, and return it with its charges."""
        self._check_alone(request)
        self._check_site_weights(request)
        self.policy.check(request, self.site)
        check_steepness(self.site, request, self._total_rows)
        charges = self._charges(request, digest)
        self._ledger.check(charges, self._limits)
        check_means(self.site, request)
        if isinstance(request, Standardise) and request.powers:
            check_powers(self.site, request)
        if request.reach and request.on:
            check_reach(self.site, request)
        check_effective_rows(self.site, request, self.policy.min_effective_rows)
        try:
            if self._last is None or self._last[0] != digest:
                with judge_own_models(self.site, request, self.policy.min_effective_rows):
                    answer = self._answer(request)
                self._last = (digest, seal(answer))
            reply = self._last[1]
            encoded = encode(reply)
        except Exception as error:
            raise Withheld(error_text(error, type(request).__name__)) from None
        charges.append(Charge("numbers", self._key(digest, encoded), self._count(reply)))
        self._ledger.check(charges, self._limits)
        return reply, encoded, charges

    @property
    def _total_rows(self) -> float:
        """The rows of all sites whose sums are masked together; infinite if sums are clear."""
        return self.site.table.n + sum(self.masks.other_rows) if self.masks else np.inf

    def _count(self, reply: Reply) -> float:
        """Return the numbers of a reply as a fraction of the entries that they are about."""
        masked = self.masks is not None and isinstance(reply, Words)
        others = self.masks.other_rows if self.masks is not None and masked else ()
        rows = count_rows(self.site.table.n, others)
        return fraction_of(size(reply)[0] / 8, rows, len(self.columns))

    def _key(self, digest: str, answer: bytes) -> str:
        """Identify what left: the same question and answer on the same columns are charged once."""
        return short_hash(self.scope, digest, answer)

    def _charges(self, request: Request[Any], digest: str) -> list[Charge]:
        """Return the charges of a question that do not depend on the answer."""
        charges = []
        (split,) = values_of(request, "split") or [""]
        if split or request.discloses.batches:
            charges.append(Charge("splits", name_cut(self.site, split), 1))
        charges += self._charge_moments(request)
        if request.discloses.held_out:
            rows = _rows_about(self.site, request)
            # Where two rows change places is the same whichever rows are asked about.
            ranks = request.discloses.ranks
            within, amount = ("ranks", RANKED) if ranks else (rows, 1)
            about = (self.scope, request.on, type(request).__name__, rows, _numbers_of(request))
            for model in _models_of(request):
                key = short_hash(*about, model.tobytes())
                charges.append(Charge("candidates", key, amount, within))
        if request.discloses.compares:
            charges.append(Charge("comparisons", short_hash(self.scope, digest), 1))
        return charges

    def _charge_moments(self, request: Request[Any]) -> list[Charge]:
        """Charge every column whose second moments leave, and of parts of the rows once more."""
        if not self.site.draw.secret:
            return []
        draw = self.site.draw
        rows = {"all rows": self.site.table.n}
        if smallest_part(request, self.site) < self.site.table.n:
            # Sums over fine parts are sums over coarser ones too.
            levels = halve(int(draw.atoms.max()) + 1)
            rows |= {f"{k} atoms": smallest(merge(draw.atoms, k)) for k in levels}
        names = [self.columns[k] for k in moment_columns(request, self.site)]
        return [
            Charge("moments", short_hash(name), ROWS_PER_COLUMN / count, within)
            for name in names
            for within, count in rows.items()
        ]

    def _answer(self, request: Request[Any]) -> Reply:
        """Answer; a view is stored only once its reply leaves."""
        if not isinstance(request, Standardise):
            return cast(Reply, self.site.answer(request))
        with self.site.draft():
            return self.site.answer(request)

    def _read(self, request: Request[Any], reply: Reply) -> Reply:
        """Return a reply with words converted to numbers."""
        if not isinstance(reply, Words):
            return reply
        grid = grid_of(request, self.site.view(request.on).magnitudes, self.site.table.p)
        return reply if grid is None else cast(Reply, from_words(reply, request, grid))


def _rows_about(site: Site, request: Request[Any]) -> str:
    """Return which rows a question evaluates models on, as the same text for the same rows."""
    on = site.recall_view(request.on).split if request.on else ""
    split = next(filter(None, values_of(request, "split")), on)
    (purpose,) = values_of(request, "purpose") or ["penalty"]
    return f"{site.draw.name_rows(split) if split else 'given'} {purpose}"


def _models_of(request: Request[Any]) -> Array:
    """Return the models of a question (rows), each with its shift; none count as one."""
    models = [model.T for model in values_of(request, "model")] or [np.zeros((1, 0))]
    shifts = values_of(request, "shifts")
    return np.column_stack([np.vstack(models), *shifts])


def _numbers_of(request: Request[Any]) -> bytes:
    """Return the other numbers of a question: its answer depends on them as on its models."""
    fields = [field for field, kind in layout(type(request)) if kind in ("int", "float")]
    return np.array([getattr(request, field) for field in fields], np.float64).tobytes()
