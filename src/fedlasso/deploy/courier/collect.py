"""The coordinator of a fit by files: ask, collect, and go on until answers are missing."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from fedlasso import models
from fedlasso.atomic_files import CannotWrite, make_private, write_atomically
from fedlasso.deploy.authority import Authority
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
from fedlasso.deploy.courier.post import (
    AskedOtherwise,
    Awaiting,
    PostedLine,
    PostedNetwork,
    answer_path,
    trip_folder,
)
from fedlasso.deploy.kit import identify
from fedlasso.deploy.nvflare.project import COORDINATOR, Project, check_site, read_project
from fedlasso.deploy.run import Finished, Timeline, fit_opened, write_finished
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation import Listen
from fedlasso.federation.ledger import Notify
from fedlasso.governance.audit import lock_file
from fedlasso.governance.identity import Identity, fingerprint_of
from fedlasso.models import FitPlan, ModelDocument, NetworkSource

FITS = "fits"
OUTBOX = "outbox"
ABOUT = "about.json"
# A fit's folder until it is complete.
_BEGUN = "begun"
_IDENTITY = re.compile(r"[0-9a-f]{32}")


class LateAnswer(FedLassoError):
    """An answer whose fit has ended."""


class FitState(msgspec.Struct, frozen=True):
    """What the coordinator keeps about a fit besides its plan; `failed` is why it has no model."""

    out: str
    finished: bool = False
    failed: str = ""

    @property
    def ended(self) -> bool:
        return self.finished or bool(self.failed)


@dataclass(frozen=True)
class Place:
    """A project's folder, its participants and keys."""

    folder: Path

    @cached_property
    def project(self) -> Project:
        return read_project(self.folder, "courier")

    @cached_property
    def own(self) -> Identity:
        return identify(self.folder / "coordinator")

    @cached_property
    def _authority(self) -> Authority:
        return Authority(self.folder / "authority")

    def key_of(self, site: str) -> Any:
        """Return the public key of a site's certificate."""
        check_site(self.project, site)
        certificate = self._authority.issued(site)
        if certificate is None:
            sign = f"`fedlasso courier sign {self.folder} {site}.csr`"
            raise FedLassoError(f"site {site!r} has no certificate yet; run {sign}")
        return certificate.public_key()

    def fingerprint_of(self, site: str) -> str:
        self.key_of(site)
        return fingerprint_of(self._authority.issued(site))

    @property
    def outbox(self) -> Path:
        return self.folder / OUTBOX

    def fits(self) -> list[PostedFit]:
        """Return all fits, the oldest first."""
        abouts = list(self.folder.glob(f"{FITS}/*/{ABOUT}"))
        ordered = sorted(abouts, key=lambda path: (path.stat().st_mtime_ns, path.parent.name))
        names = [path.parent.name for path in ordered]
        return [PostedFit(self, name) for name in names if _IDENTITY.fullmatch(name)]

    def find_fit(self, beginning: str) -> PostedFit:
        """Return the fit whose identity begins so."""
        fits = self.fits()
        found = [fit for fit in fits if beginning and fit.name.startswith(beginning)]
        if len(found) != 1:
            known = ", ".join(contents.short(fit.name) for fit in fits) or "none yet"
            raise FedLassoError(f"no one fit is called {beginning!r}; the fits are: {known}")
        return found[0]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one command at a time change the fits of this project, which must exist."""
        self.project  # noqa: B018
        make_private(self.folder / FITS)
        with (self.folder / FITS / "lock").open("a+b") as file:
            lock_file(file)
            yield


@dataclass(frozen=True)
class PostedFit:
    """A fit by files; all that it depends on is in its folder."""

    place: Place
    name: str

    @property
    def folder(self) -> Path:
        return self.place.folder / FITS / self.name

    @cached_property
    def plan(self) -> FitPlan[NetworkSource]:
        return models.read_plan(self.folder, NetworkSource)

    @property
    def about(self) -> FitState:
        return msgspec.json.decode((self.folder / ABOUT).read_bytes(), type=FitState)

    def keep(self, about: FitState) -> None:
        write_atomically(self.folder / ABOUT, msgspec.json.encode(about), private=True)

    @property
    def sites(self) -> tuple[str, ...]:
        return self.plan.source.sites

    def trips(self) -> list[Path]:
        """Return the folders of the round trips that were asked, in order."""
        return sorted(path for path in self.folder.glob("[0-9]" * 3) if path.is_dir())

    def awaited(self) -> tuple[int, list[str]]:
        """Return the number of the last round trip, and the sites that have not answered it."""
        trips = self.trips()
        asked = sorted(path.stem for path in trips[-1].glob("*.flq")) if trips else []
        return len(trips), [s for s in asked if not answer_path(trips[-1], s).exists()]

    def write_question(self, trip: int, site: str, asked: bytes, heads: tuple[str, ...]) -> None:
        """Write a site's question file, the same whenever it is repeated."""
        path = trip_folder(self.folder, trip) / f"{site}.flq"
        if not path.exists():
            about = self.plan.about
            named = {"title": about.title or "", "author": about.author or ""}
            question = contents.QuestionContents(asked, heads, self.plan.source.drop, **named)
            self._seal("question", trip, site, contents.write(question), path)
        self._put(path.read_bytes(), site, trip, "question")

    def _seal(self, kind: Any, trip: int, site: str, inside: bytes, path: Path) -> None:
        head = Head(kind, self.place.project.name, self.name, trip, COORDINATOR, site)
        data = seal(head, inside, self.place.own, self.place.key_of(site))
        write_atomically(path, data, private=True)

    def _put(self, data: bytes, site: str, trip: int, kind: str) -> None:
        path = self.place.outbox / contents.name_file(site, self.name, trip, kind)
        if not path.exists() or path.read_bytes() != data:
            write_atomically(path, data, private=True)

    def outstanding(self) -> list[Path]:
        """Return the question files of this fit that are to be sent."""
        return sorted(self.place.outbox.glob(f"*-{contents.short(self.name)}-*.flq"))

    def _tidy(self, trip: int, sites: Sequence[str]) -> None:
        """Remove the questions that are answered from the outbox."""
        wanted = {contents.name_file(site, self.name, trip, "question") for site in sites}
        for path in self.outstanding():
            if path.name not in wanted:
                path.unlink(missing_ok=True)

    def advance(self, listen: Listen | None = None, notify: Notify = lambda _: None) -> Finished:
        """Fit with the answers that are there; raises `Awaiting` where some are missing.

        An error that follows from the answers ends the fit, and is kept as its reason.
        """
        if self.about.finished:
            raise FedLassoError(f"this fit is finished; its model is in {self.about.out}")
        if self.about.failed:
            raise FedLassoError(f"this fit has failed: {self.about.failed}")
        plan = self.plan
        try:
            self._check_members()
            finished = self._fit(plan, listen, notify)
        except Awaiting as awaiting:
            self._tidy(awaiting.trip, awaiting.sites)
            raise
        except (Interrupted, CannotWrite, AskedOtherwise):
            raise
        except FedLassoError as error:
            self.fail(str(error))
            raise
        out = Path(self.about.out)
        make_private(out)
        shutil.copytree(self._work, out, dirs_exist_ok=True)
        self._end()
        self.keep(replace(self.about, finished=True))
        return finished

    def _check_members(self) -> None:
        gone = [site for site in self.sites if site not in self.place.project.sites]
        if gone:
            raise FedLassoError(f"{', '.join(gone)} was revoked; ask again without it")

    def fail(self, reason: str) -> None:
        """End the fit without a model, also at its sites."""
        self._end()
        self.keep(replace(self.about, failed=reason))

    @property
    def _work(self) -> Path:
        return self.folder / "work"

    def _fit(self, plan: FitPlan[NetworkSource], listen: Listen | None, notify: Notify) -> Finished:
        """Run the fit from its start: the answers are in files, so it takes seconds."""
        shutil.rmtree(self._work, ignore_errors=True)
        make_private(self._work)
        models.write_plan(self._work, plan)
        network = PostedNetwork(PostedLine(self.folder, self.write_question), self.sites)
        source = network.open(plan.source, plan.settings)
        document, reconciled = fit_opened(network, source, plan, self._work, listen, notify)
        finished = Finished(document, reconciled, Timeline())
        write_finished(self._work, finished)
        return finished

    def _end(self) -> None:
        """Write the files that let the sites delete the fit's keys."""
        trip = len(self.trips()) + 1
        self._tidy(trip, ())
        # A site that was revoked has no key to encrypt to.
        for site in filter(self.place.project.sites.__contains__, self.sites):
            path = self.folder / f"{site}.end"
            if not path.exists():
                self._seal("end", trip, site, contents.write(contents.QuestionContents(b"")), path)
            self._put(path.read_bytes(), site, trip, "end")

    def describe_trips(self, document: ModelDocument) -> str:
        """Return how often files went back and forth, which is more often than the fit asked."""
        own = (document.round_trips or 0) + (document.examination_trips or 0)
        trips = len(self.trips())
        before = "of them before the fit, for keys and what the columns hold"
        return f"by files: {trips} round trips, {trips - own} {before}"

    def accept(self, head: Head, data: bytes) -> bool:
        """Keep a site's answer; return whether it is new."""
        site = head.sender
        if site not in self.sites:
            raise FedLassoError(f"is from {site!r}, which takes no part in this fit")
        folder = trip_folder(self.folder, head.trip)
        asked = folder / f"{site}.flq"
        if not asked.exists():
            raise FedLassoError(f"answers round trip {head.trip}, which was not asked")
        if head.about != hash_of(asked.read_bytes()):
            raise FedLassoError("answers another question than was asked")
        inside = unseal(data, self.place.own, self.place.fingerprint_of(site))
        contents.read(inside, contents.AnswerContents)
        path = answer_path(folder, site)
        if self.about.ended and not path.exists():
            raise LateAnswer("is late: its fit has ended, and needs no more answers")
        if path.exists():
            if path.read_bytes() != inside:
                raise FedLassoError("differs from the answer that was collected, which is kept")
            return False
        write_atomically(path, inside, private=True)
        return True


def begin(place: Place, plan: FitPlan[NetworkSource], out: Path) -> PostedFit:
    """Draw a fit's identity and keep its plan; return the same fit if it is asked again."""
    sites = tuple(sorted(plan.source.sites or place.project.sites))
    for site in sites:
        check_site(place.project, site)
        place.key_of(site)
    if (out / "model.json").exists():
        raise FedLassoError(f"{out} contains a model; choose another folder with --out")
    about = FitState(str(out.resolve()))
    for fit in place.fits():
        if fit.about != about:
            continue
        if fit.plan == replace(plan, source=replace(plan.source, fit=fit.name, sites=sites)):
            # The same command, after it was killed.
            return fit
        busy = f"fit {contents.short(fit.name)} will write its model to {out}"
        raise FedLassoError(f"{busy}; choose another folder with --out, or abandon that fit")
    name = secrets.token_hex(16)
    fit = PostedFit(place, name)
    source = replace(plan.source, fit=name, sites=sites)
    # The folder appears with all that it needs, so a kill leaves a whole fit or none.
    begun = fit.folder.with_name(_BEGUN)
    shutil.rmtree(begun, ignore_errors=True)
    models.write_plan(begun, replace(plan, source=source))
    write_atomically(begun / ABOUT, msgspec.json.encode(about), private=True)
    begun.replace(fit.folder)
    return fit


def collect(place: Place, path: Path) -> tuple[PostedFit, bool]:
    """Keep the answer in a file; return its fit, and whether the answer is new."""
    with naming(path.name):
        data = read_limited(path)
    return collect_data(place, path.name, data)


def collect_data(place: Place, name: str, data: bytes) -> tuple[PostedFit, bool]:
    """Keep the answer in some bytes, of the file with this name."""
    with naming(name):
        head = read_head(data)
        if head.kind != "answer":
            raise FedLassoError("is a question; give the file of an answer, .fla")
        if head.reader != COORDINATOR:
            raise FedLassoError("is not an answer to this coordinator")
        known = _IDENTITY.fullmatch(head.fit) and (place.folder / FITS / head.fit).exists()
        if head.project != place.project.name or not known:
            raise FedLassoError("belongs to no fit of this project")
        fit = PostedFit(place, head.fit)
        return fit, fit.accept(head, data)
