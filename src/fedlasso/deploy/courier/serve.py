"""A watched folder: a site answers what arrives there, a coordinator collects and asks."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field

from fedlasso.atomic_files import CannotWrite
from fedlasso.deploy.courier.carriers import Carrier
from fedlasso.deploy.courier.collect import LateAnswer, Place, PostedFit, collect_data
from fedlasso.deploy.courier.contents import question_pattern, short
from fedlasso.deploy.courier.envelope import hash_of
from fedlasso.deploy.courier.mailbox import Mailbox, UnfitData
from fedlasso.deploy.courier.post import Awaiting
from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation.checking import printable
from fedlasso.federation.ledger import Notify

# Called with a fit that has its model.
Finish = Callable[[PostedFit], None]


@dataclass(eq=False)
class _Watch:
    """Remembers the files that were refused, so that each is named once."""

    carrier: Carrier
    notify: Notify
    refused: set[str] = field(default_factory=set, init=False)
    # Whether no file was refused in the last look, and no fit has failed.
    well: bool = field(default=True, init=False)
    _reported: set[str] = field(default_factory=set, init=False)

    def refuse(self, data: bytes, error: FedLassoError) -> None:
        self.refused.add(hash_of(data))
        self.report(f"refused: {error}")

    def report(self, problem: str) -> None:
        """Report a problem once."""
        self.well = False
        if problem not in self._reported:
            self._reported.add(problem)
            self.notify(problem)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, unless they were refused or cannot be read now."""
        try:
            data = self.carrier.read(name)
        except Interrupted:
            raise
        except FedLassoError as error:
            # Somebody has removed it, or has it open.
            self.report(f"{printable(name)}: {error}")
            return None
        # A file that is still being copied has other bytes later.
        return None if hash_of(data) in self.refused else data


@dataclass(eq=False)
class SiteWatch(_Watch):
    """A site that answers the questions in a folder."""

    mailbox: Mailbox

    def __init__(self, mailbox: Mailbox, carrier: Carrier, notify: Notify) -> None:
        super().__init__(carrier, notify)
        self.mailbox = mailbox
        self._name = mailbox.name
        # The names of answers, by the hashes of their questions.
        self._answers: dict[str, str] = {}

    def look(self) -> int:
        """Answer what is new; return how many files were answered."""
        self.well = True
        names = self.carrier.names()
        done = 0
        for name in fnmatch.filter(names, question_pattern(self._name)):
            if name.replace(".flq", ".fla") in names:
                continue
            data = self.read(name)
            # A copy of a question may have another name.
            if data is None or self._answers.get(hash_of(data)) in names:
                continue
            try:
                outcome = self.mailbox.reply(name, data)
            except Interrupted:
                raise
            except (UnfitData, CannotWrite, OSError) as error:
                # It is answered once the data file is corrected, or the disk has room.
                self.report(str(error))
                continue
            except FedLassoError as error:
                self.refuse(data, error)
                continue
            if outcome.data is not None:
                self.carrier.write(outcome.name, outcome.data)
                self._answers[hash_of(data)] = outcome.name
                names.append(outcome.name)
            else:
                # The fit has ended, or somebody said no: the same file is not shown again.
                self.refused.add(hash_of(data))
            self.notify(outcome.text)
            done += 1
        return done


@dataclass(eq=False)
class ProjectWatch(_Watch):
    """A coordinator that collects answers in a folder, and writes the next questions there."""

    place: Place
    finish: Finish

    def __init__(self, place: Place, carrier: Carrier, notify: Notify, finish: Finish) -> None:
        super().__init__(carrier, notify)
        self.place = place
        self.finish = finish
        self._failed = False

    def look(self) -> int:
        """Collect what is new, and go on with every fit; return how many fits have not ended."""
        self.well = not self._failed
        with self.place.locked():
            for name in self.carrier.names():
                if name.endswith(".fla"):
                    self._collect(name)
            for fit in self.place.fits():
                if not fit.about.ended:
                    self._advance(fit)
            self._exchange_questions()
            return sum(not fit.about.ended for fit in self.place.fits())

    def _collect(self, name: str) -> None:
        data = self.read(name)
        if data is None:
            return
        new = False
        try:
            _, new = collect_data(self.place, name, data)
        except LateAnswer as error:
            self.notify(str(error))
        except (CannotWrite, OSError) as error:
            # It is collected once the disk has room.
            self.report(str(error))
            return
        except FedLassoError as error:
            self.refuse(data, error)
            return
        self.carrier.remove(name)
        if new:
            self.notify(f"{printable(name)}: collected, {len(data)} bytes")

    def _advance(self, fit: PostedFit) -> None:
        """Go on with a fit; an error ends it, or is met again at the next look."""
        try:
            fit.advance(notify=self.notify)
        except Awaiting:
            pass
        except (FedLassoError, OSError) as error:
            self._failed |= bool(fit.about.failed)
            state = "has failed" if fit.about.failed else "cannot go on"
            self.report(f"fit {short(fit.name)} {state}: {error}")
        else:
            self.finish(fit)

    def _exchange_questions(self) -> None:
        """Write the outstanding questions, and remove those that are answered."""
        due = {path.name: path for path in self.place.outbox.glob("*.flq")}
        there = [name for name in self.carrier.names() if name.endswith(".flq")]
        own = {short(fit.name) for fit in self.place.fits()}
        for name in there:
            if name not in due and own.intersection(name.split("-")):
                self.carrier.remove(name)
        for name, path in due.items():
            if name not in there:
                data = path.read_bytes()
                self.carrier.write(name, data)
                self.notify(f"{name}: written, {len(data)} bytes")
