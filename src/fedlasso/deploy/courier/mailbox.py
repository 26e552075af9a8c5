"""A site's part of a fit by files: one question in, one answer out, and nothing runs between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedlasso import __version__
from fedlasso.atomic_files import make_private, write_atomically
from fedlasso.deploy.courier import contents
from fedlasso.deploy.courier.envelope import (
    Head,
    hash_of,
    naming,
    read_head,
    read_limited,
    seal,
    unseal,
)
from fedlasso.deploy.courier.plain_words import ConfirmAnswer, Consent, Declined
from fedlasso.deploy.courier.session import SESSIONS, PostedSession
from fedlasso.deploy.kit import (
    Kit,
    check_certificate,
    identify,
    make_private_folders,
    open_audit,
    read_kit,
    read_secret,
)
from fedlasso.deploy.nvflare.project import COORDINATOR
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import FedLassoError
from fedlasso.federation import Request, decode, encode
from fedlasso.federation.codec import decode_question, is_batch, pack
from fedlasso.governance import Door, Policy, read_policy
from fedlasso.governance.audit import lock_file
from fedlasso.governance.door_messages import (
    AboutColumns,
    DescribeColumns,
    Introduce,
    Open,
    Refusal,
    SummariseAudit,
)
from fedlasso.governance.masks import OfferKey

_TO_DOOR = Introduce | OfferKey | AboutColumns


class UnfitData(FedLassoError):
    """The data file cannot answer a question; once it is corrected, it can."""


@dataclass(frozen=True)
class Answered:
    """What became of a question: the answer and its file, if there is one, and a line about it."""

    text: str
    name: str = ""
    data: bytes | None = None
    answer: Path | None = None
    ended: bool = False


@dataclass(eq=False)
class Mailbox:
    """A site that answers files: its kit, its records and its policy.

    `agree` is asked before an answer is written. Without it the policy must not require approval,
    and `show` is called with what would leave.
    """

    folder: Path
    data: Path
    policy: Path | None = None
    agree: ConfirmAnswer | None = None
    show: Callable[[str], None] = lambda _: None

    @property
    def name(self) -> str:
        """The name of the site."""
        return read_kit(self.folder).name

    def answer(self, path: Path, out: Path | None = None) -> Answered:
        """Answer the question in a file, beside it or at `out`; repeated, with the same bytes."""
        outcome = self.reply(path.name, _read(path))
        if outcome.data is None:
            return outcome
        answer = (out or path.parent) / outcome.name
        if not answer.exists() or answer.read_bytes() != outcome.data:
            write_atomically(answer, outcome.data, private=True)
        return replace(outcome, answer=answer)

    def reply(self, name: str, data: bytes) -> Answered:
        """Return the answer to the question in some bytes; an error states the file's name."""
        kit = read_kit(self.folder)
        check_certificate(self.folder, kit)
        with naming(name):
            head, inside = self._open(kit, data)
            with self._locked():
                return self._answer(kit, head, inside, data)

    def _open(self, kit: Kit, data: bytes) -> tuple[Head, contents.QuestionContents]:
        """Return a question that was signed by the coordinator for this site."""
        head = read_head(data)
        if head.kind not in ("question", "end"):
            raise FedLassoError("is an answer; give the file of a question, .flq")
        if head.project != kit.project or head.reader != kit.name:
            to = f"is for site {head.reader!r} of project {head.project!r}"
            raise FedLassoError(f"{to}, not for {kit.name!r} of {kit.project!r}")
        if head.sender != COORDINATOR:
            raise FedLassoError("was not sent by the coordinator")
        inside = unseal(data, identify(self.folder))
        return head, contents.read(inside, contents.QuestionContents)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one command at a time answer for this kit."""
        make_private_folders(self.folder)
        make_private(self.folder / SESSIONS)
        with (self.folder / SESSIONS / "lock").open("a+b") as file:
            lock_file(file)
            yield

    def _answer(
        self, kit: Kit, head: Head, question: contents.QuestionContents, data: bytes
    ) -> Answered:
        session = PostedSession(self.folder, head.fit)
        named = f"fit {contents.short(head.fit)}"
        if head.kind == "end":
            session.end()
            return Answered(f"{named} has ended: its keys are deleted here", ended=True)
        out = contents.name_file(kit.name, head.fit, head.trip, "answer")
        before = session.find(head, data)
        if before is not None:
            again = "the same answer again, computed from the records as they were then"
            text = f"question {head.trip} of {named} was answered before: {again}"
            return Answered(text, out, before)
        try:
            replies, audit, last = self._ask_door(kit, head, question, session)
        except Declined as declined:
            if declined.error is not None:
                raise declined.error from None
            return Answered("nothing was written, and nothing leaves")
        own = Head(
            "answer",
            kit.project,
            head.fit,
            head.trip,
            kit.name,
            COORDINATOR,
            about=hash_of(data),
            last=last,
        )
        inside = contents.write(contents.AnswerContents(replies, audit))
        sealed = seal(own, inside, identify(self.folder), _key_in(head))
        session.keep(head.trip, sealed)
        refused = [r for r in map(decode, contents.divide_batch(replies)) if isinstance(r, Refusal)]
        why = f"; the answer is a refusal: {refused[0].text}" if refused else ""
        text = f"question {head.trip} of {named} is answered, {len(sealed)} bytes{why}"
        return Answered(text, out, sealed)

    def _ask_door(
        self, kit: Kit, head: Head, question: contents.QuestionContents, session: PostedSession
    ) -> tuple[bytes, bytes, int]:
        """Return the replies, the audit's summary and the last number."""
        policy = read_policy(self.policy)
        if policy.approval and self.agree is None:
            raise FedLassoError("the policy here requires approval of every answer; omit --yes")
        parts = _read_parts(question.asked, policy)
        for part in parts:
            decode_question(part)
        records = self._read_records(kit, head, session)
        given = (kit.name, records, replace(policy, approval=True), open_audit(self.folder))
        memory = self.folder / "memory"
        door = Door(*given, memory, __version__, identity=identify(self.folder))
        asked = [_resolve(part, question, door) for part in parts]
        requests = [decode_question(part) for part in asked]
        self._check_columns(records, policy, requests)
        consent = Consent(self.agree, self.show, head, question, door, requests)
        own = [request for request in requests if isinstance(request, _TO_DOOR)]
        if len(own) == len(requests):
            consent.ask_before()
            door.approve = lambda _: True
        else:
            door.approve = consent.approve
        session.restore(door)
        replies = _reply_each(door, session, head.trip, asked, requests)
        with self._fitting():
            records.check_unchanged()
        summary = door.answer_bytes(encode(SummariseAudit(head.fit, question.heads)))
        if door.unwritten is not None:
            # As after a kill: once there is room, the same question is answered.
            raise door.unwritten
        packed = pack(replies) if is_batch(question.asked) else replies[0]
        return packed, summary, max(request.number for request in requests)

    def _read_records(self, kit: Kit, head: Head, session: PostedSession) -> TableRecords:
        """Return the data file, the same for all questions of a fit."""
        with self._fitting():
            records = TableRecords(self.data, read_secret(self.folder), kit.name)
            if head.trip > 1 and session.data and records.fingerprint != session.data:
                change = "is not as it was at this fit's first question"
                raise FedLassoError(f"{self.data.name} {change}; restore it")
        return records

    def _check_columns(
        self, records: TableRecords, policy: Policy, requests: Sequence[Request[Any]]
    ) -> None:
        """Refuse a data file without a column in question; the policy may hide others."""
        about = [request for request in requests if isinstance(request, AboutColumns)]
        wanted = {name for request in about for name in (*request.outcome, *request.columns)}
        lost = sorted(name for name in wanted.difference(records.columns) if policy.shows(name))
        if lost:
            with self._fitting():
                named = ", ".join(map(repr, lost))
                raise FedLassoError(f"{self.data.name} has no column {named}; correct its header")

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """Let errors of the data file be those of `UnfitData`, with what can be done."""
        try:
            yield
        except FedLassoError as error:
            later = "nothing was written, and the question can be answered later"
            raise UnfitData(f"site {self.name!r}: {error} ({later})") from None


def _read_parts(asked: bytes, policy: Policy) -> list[bytes]:
    if len(asked) > policy.max_bytes:
        raise FedLassoError(
            f"is longer than {policy.max_bytes} bytes, the limit of the policy here"
        )
    return contents.divide_batch(asked)


def _resolve(part: bytes, question: contents.QuestionContents, door: Door) -> bytes:
    """Return a question; one about all columns lists those that are shown here."""
    request = decode_question(part)
    if not isinstance(request, DescribeColumns) or request.columns:
        return part
    excluded = {*request.outcome, *question.drop}
    shown = filter(door.policy.shows, door.records.columns)
    names = tuple(name for name in shown if name not in excluded)
    return encode(replace(request, columns=names))


def _reply_each(
    door: Door,
    session: PostedSession,
    trip: int,
    asked: Sequence[bytes],
    requests: Sequence[Request[Any]],
) -> list[bytes]:
    """Return the replies to the questions of a file, until one is refused."""
    replies: list[bytes] = []
    for k, (part, request) in enumerate(zip(asked, requests, strict=True)):
        if not isinstance(request, _TO_DOOR):
            # The others are about the records: the guard answers them as one batch.
            rest = asked[k:]
            batch = door.answer_bytes(pack(rest) if len(rest) > 1 else rest[0])
            return [*replies, *contents.divide_batch(batch)]
        replies.append(_reply_one(door, session, trip, part, request))
        if isinstance(decode(replies[-1]), Refusal):
            break
    return replies


def _reply_one(
    door: Door, session: PostedSession, trip: int, part: bytes, request: Request[Any]
) -> bytes:
    """Return the door's own reply to a question, and keep what the next answers need."""
    if isinstance(request, Open) and (opened := session.find_opened(part)):
        return opened
    if isinstance(request, OfferKey) and trip > 1:
        return encode(Refusal("the key of this fit was drawn already", site=door.name))
    reply = door.answer_bytes(part)
    if isinstance(decode(reply), Refusal):
        return reply
    if isinstance(request, OfferKey):
        session.note_key(door.secret, door.records.fingerprint)
    elif isinstance(request, Open):
        session.note_opening(part, reply)
    return reply


def _key_in(head: Head) -> Any:
    """Return the public key of the coordinator's certificate, which was verified."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(head.certificate.encode()).public_key()


def _read(path: Path) -> bytes:
    with naming(path.name):
        return read_limited(path)
