"""A site under its policy: it answers a fit, or refuses, and its audit says which beforehand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fedlasso.errors import FedLassoError
from fedlasso.federation import Reply, Request, encode
from fedlasso.federation.codec import decode_question, size
from fedlasso.federation.messages import layout
from fedlasso.governance.audit import Audit, Entry
from fedlasso.governance.policy import Policy, values_of
from fedlasso.sites import Site, folds_in

Approve = Callable[[Entry, Reply], bool]
# Characters of a refusal: it may quote the question.
LONGEST = 1000


def tell(error: Exception, what: str = "the site") -> str:
    """Return what may leave of an error: our own words, and of any other only its type."""
    ours = isinstance(error, FedLassoError)
    return (str(error) if ours else f"{what} failed with {type(error).__name__}")[:LONGEST]


def read_question(data: bytes, max_bytes: int) -> Request[Any]:
    """Return the question in some bytes; too many bytes are not even read."""
    if len(data) > max_bytes:
        raise FedLassoError(f"the question is longer than {max_bytes} bytes")
    return decode_question(data)


@dataclass(eq=False)
class GuardedSite:
    """A site that answers a fit as `Site` does, or refuses, and writes down which before it does.

    `approve` is asked before a reply leaves, if the policy wants it.
    """

    site: Site
    policy: Policy
    audit: Audit
    fit: str
    approve: Approve | None = None

    def __post_init__(self) -> None:
        self.name = self.site.name
        self.columns = self.site.columns
        self.loss = self.site.loss
        # Numbers already sent for this fit, by question: asking again gives nothing new.
        sent = [e for e in self.audit.entries(self.fit) if e.verdict == "sent"]
        self._sent = {e.asked: _per_row(e) for e in sent}
        self._splits = {e.split for e in sent if e.split}
        # The last question, asked again, has the same answer.
        self._last: tuple[str, Reply] | None = None

    def answer_bytes(self, data: bytes, request: Request[Any] | None = None) -> bytes:
        """Return the reply in bytes; a refusal or a failure is an error that carries no data.

        `request` is what the bytes say, where they have been read already.
        """
        asked = hashlib.sha256(data).hexdigest()
        question = "unreadable"
        try:
            request = request or read_question(data, self.policy.max_bytes)
            question = type(request).__name__
            self.policy.check(request, self.site)
            (split,) = values_of(request, "split") or [""]
            self._check_budget(asked, split, 1)
            if self._last is None or self._last[0] != asked:
                self._last = (asked, self.site.answer(request))
            reply = self._last[1]
            answer = encode(reply)
            entry = self._entry(question, asked, split, reply, answer)
            self._check_budget(asked, split, _per_row(entry))
            if self.policy.dry_run:
                raise FedLassoError(f"dry run: {entry.numbers} numbers would have left")
            if self.policy.approval and (self.approve is None or not self.approve(entry, reply)):
                raise FedLassoError("the transfer was not approved here")
        except Exception as error:
            why = tell(error, question)
            self.audit.write(Entry(self.fit, question, "refused", why, asked=asked))
            raise FedLassoError(why) from None
        self.audit.write(entry, answer if self.policy.keep_payloads else None)
        self._sent[asked] = _per_row(entry)
        self._splits |= {split} - {""}
        return answer

    def _entry(self, question: str, asked: str, split: str, reply: Reply, answer: bytes) -> Entry:
        names = [name for name, kind in layout(type(reply)) if "array" in kind]
        arrays = {name: array for name in names if (array := getattr(reply, name)) is not None}
        payload, _ = size(reply)
        return Entry(
            self.fit,
            question,
            "sent",
            shapes={name: list(array.shape) for name, array in arrays.items()},
            numbers=payload // 8,
            payload=payload,
            size=len(answer),
            sha256=hashlib.sha256(answer).hexdigest(),
            asked=asked,
            split=split,
        )

    def _check_budget(self, asked: str, split: str, numbers: int) -> None:
        allowed = self.policy.max_vectors * len(self.columns)
        if asked not in self._sent and sum(self._sent.values()) + numbers > allowed:
            raise FedLassoError(
                f"this fit has had {self.policy.max_vectors} vectors from here, and the policy "
                "allows no more; enough of them would determine all second moments"
            )
        if split and len(self._splits | {split}) > self.policy.max_splits:
            raise FedLassoError(
                f"this fit has asked about {self.policy.max_splits} splits of the rows, and the "
                "policy allows no more; sums over enough of them would tell single rows"
            )


def _per_row(entry: Entry) -> int:
    """Numbers that one row takes part in: sums over folds are about other rows each."""
    return -(-entry.numbers // folds_in(entry.split))
