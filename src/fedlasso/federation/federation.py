"""A federation: the only access to the sites' records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from fedlasso.atomic_files import CannotWrite
from fedlasso.errors import FedLassoError, Refused, code_of
from fedlasso.federation.codec import decode, encode
from fedlasso.federation.messages import Message, R, Reply, Request, add_up


class Federation(ABC):
    """Sites that answer questions, in this process or over a network.

    Attributes
    ----------
    sites : names of the sites, sorted
    columns : names of the columns, the same at every site
    loss : name of the loss, the same at every site
    site_weights : weights of each site's rows in views, as `SiteWeighted` writes them; empty where
        all are equal
    site_effects : whether every site has an intercept of its own in views
    atoms : into how many parts each site's rows are cut, where splits are unions of such parts

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> from fedlasso.sites import GradientAt, Rows
    >>> federation = InProcess([Site(name, np.eye(2), [1, 2]) for name in ("a", "b")])
    >>> federation.total(GradientAt(np.zeros(2))).gradient
    array([-2., -4.])
    >>> [reply.rows for reply in federation.ask(Rows())]
    [2, 2]
    """

    sites: tuple[str, ...]
    columns: tuple[str, ...]
    loss: str
    site_weights: tuple[str, ...] = ()
    site_effects: bool = False
    atoms: tuple[int, ...] = ()

    @abstractmethod
    def replies(self, request: Request[R]) -> tuple[R, ...]:
        """Send one question to every site (or those in ``request.to``); sorted by site name.

        A site that declines raises `Refused`; one that does not answer, an error that names it.
        """

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        """Send several questions in one round trip; every site answers them in this order.

        A question may be asked on a view that an earlier one defines.
        """
        return tuple(self.replies(request) for request in requests)

    def prepare(self, request: Request[Any], own: bool = False) -> Prepared:
        """Return a question for `ask_together`, answered by a total, or by each site's own reply.

        A wrapper that only changes questions and reads their replies changes them here.
        """
        if own:
            _check_single(request)
        return Prepared(self, request, tuple if own else add_up)

    def total(self, request: Request[R]) -> R:
        """Ask one question and return the total of the sites' replies."""
        question = self.prepare(request)
        return cast(R, question.read(question.federation.replies(question.request)))

    def ask(self, request: Request[R]) -> tuple[R, ...]:
        """Return every site's own reply to a question that states why a total does not suffice."""
        _check_single(request)
        return self.replies(request)


def _check_single(request: Request[Any]) -> None:
    if not request.discloses.single:
        raise TypeError(f"{type(request).__name__} is answered by a total; use total()")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A question as it is sent, the federation that sends it, and how its replies are read."""

    federation: Federation
    request: Request[Any]
    read: Callable[[tuple[Any, ...]], Any]


def exchange(questions: Sequence[Prepared]) -> list[tuple[Reply, ...]]:
    """Return the sites' replies to questions, in one round trip per federation that sends them."""
    replies: dict[int, tuple[Reply, ...]] = {}
    for sender in {id(q.federation): q.federation for q in questions}.values():
        own = [k for k, q in enumerate(questions) if q.federation is sender]
        answered = sender.replies_together([questions[k].request for k in own])
        replies.update(zip(own, answered, strict=True))
    return [replies[k] for k in range(len(questions))]


def ask_together(questions: Sequence[Prepared]) -> tuple[Any, ...]:
    """Ask prepared questions in one round trip, and return the answer to each."""
    return tuple(q.read(r) for q, r in zip(questions, exchange(questions), strict=True))


def total_together(questions: Sequence[tuple[Federation, Request[Any]]]) -> tuple[Any, ...]:
    """Ask several questions, on any views, in one round trip, and return the total of each.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> from fedlasso.federation import total_together
    >>> from fedlasso.sites import GradientAt
    >>> federation = InProcess([Site(name, np.eye(2), [1, 2]) for name in ("a", "b")])
    >>> points = [np.zeros(2), np.ones(2)]
    >>> totals = total_together([(federation, GradientAt(b)) for b in points])
    >>> [total.gradient.tolist() for total in totals]
    [[-2.0, -4.0], [0.0, -2.0]]
    """
    return ask_together([federation.prepare(request) for federation, request in questions])


class Around(Federation):
    """A wrapper around a federation: it does something more with every question."""

    def __init__(self, inner: Federation) -> None:
        self.inner = inner
        self.sites = inner.sites
        self.columns = inner.columns
        self.loss = inner.loss
        self.site_weights = inner.site_weights
        self.site_effects = inner.site_effects

    @property
    def atoms(self) -> tuple[int, ...]:  # type: ignore[override]
        """The parts of the federation inside, which learns them when the sites join."""
        return self.inner.atoms


class Forwarding(Around):
    """A wrapper that forwards every question to the federation inside, totals too."""

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        return self.inner.replies(request)

    def replies_together(self, requests: Sequence[Request[Any]]) -> tuple[tuple[Reply, ...], ...]:
        return self.inner.replies_together(requests)

    def prepare(self, request: Request[Any], own: bool = False) -> Prepared:
        return self.inner.prepare(request, own)


class Member(Protocol):
    """A site, guarded or not, as a federation in this process uses it."""

    name: str
    columns: tuple[str, ...]
    loss: str

    def answer_bytes(self, data: bytes) -> bytes:
        """Answer one question."""


class InProcess(Federation):
    """Sites in this process. Every message still passes through the codec.

    Examples
    --------
    >>> import numpy as np
    >>> from fedlasso import InProcess, Site
    >>> federation = InProcess([Site("b", np.eye(2), [1, 2]), Site("a", np.eye(2), [3, 4])])
    >>> federation.sites
    ('a', 'b')
    """

    def __init__(self, sites: Iterable[Member]) -> None:
        members = sorted(sites, key=lambda site: site.name)
        check_members([(site.name, site.columns) for site in members])
        for site in members:
            if site.loss != members[0].loss:
                raise FedLassoError(
                    f"site {site.name!r} has the {site.loss} loss but site {members[0].name!r} the "
                    f"{members[0].loss} loss; give every site the same"
                )
        self._members = {site.name: site for site in members}
        self._last: dict[str, tuple[bytes, Message]] = {}
        self.sites = tuple(self._members)
        self.columns = members[0].columns
        self.loss = members[0].loss
        atoms = tuple(getattr(site, "atoms", 0) for site in members)
        self.atoms = atoms if all(atoms) else ()

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        data = encode(request)
        return tuple(cast(R, self._ask(name, data)) for name in recipients(self.sites, request))

    @property
    def members(self) -> tuple[Member, ...]:
        """The sites themselves."""
        return tuple(self._members.values())

    def _ask(self, name: str, data: bytes) -> Message:
        try:
            reply = self._members[name].answer_bytes(data)
            # A repeated question has the very same bytes as its reply, which are decoded once.
            if name not in self._last or self._last[name][0] is not reply:
                self._last[name] = (reply, decode(reply))
            return self._last[name][1]
        except CannotWrite:
            raise
        except FedLassoError as error:
            raise Refused(name_site(name, str(error)), (name,), code_of(error)) from error
        except Exception as error:
            raise Refused(f"site {name!r} failed with {type(error).__name__}", (name,)) from error


def name_site(name: str, text: str) -> str:
    """Return a site's text prefixed with its name, unless it names itself."""
    own = f"site {name!r}: "
    return own + text.removeprefix(own)


def recipients(sites: Sequence[str], request: Request[Any]) -> tuple[str, ...]:
    for name in request.to:
        if name not in sites:
            raise FedLassoError(f"no site is called {name!r}; the sites are {', '.join(sites)}")
    return tuple(sorted(request.to)) if request.to else tuple(sites)


def check_members(members: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    """Reject sites with repeated names or different columns."""
    if not members:
        raise FedLassoError("a federation needs at least one site")
    for name, count in Counter(name for name, _ in members).items():
        if count > 1:
            raise FedLassoError(f"two sites are called {name!r}; give each its own name")
    first, columns = members[0]
    for name, other in members[1:]:
        if len(other) != len(columns):
            found = f"site {name!r} has {len(other)} columns but site {first!r} has {len(columns)}"
            raise FedLassoError(f"{found}; give every site the same columns")
        for k, (a, b) in enumerate(zip(columns, other, strict=True)):
            if a != b:
                found = f"site {name!r}: column {k + 1} is {b!r} but site {first!r} has {a!r}"
                raise FedLassoError(f"{found}; give every site the same columns in the same order")


def check_replies(sites: Sequence[str], replies: Iterable[R]) -> tuple[R, ...]:
    """Return replies sorted by site name, one from every site that was asked."""
    by_site = {reply.site: reply for reply in replies}
    for name in sites:
        if name not in by_site:
            remedy = "bring it back and resume, or fit without it"
            raise FedLassoError(f"site {name!r} did not answer; {remedy}")
    for name in by_site.keys() - set(sites):
        raise FedLassoError(f"site {name!r} answered without being asked")
    return tuple(by_site[name] for name in sorted(sites))
