"""Who holds a site's door open for the engine's jobs, in the process that has the records."""

import contextlib
import sys
import threading
import time
from dataclasses import astuple
from pathlib import Path

from fedlasso import __version__
from fedlasso.deploy.bridge import AnswerBytes
from fedlasso.deploy.kit import identify, open_audit, read_key, read_kit
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import FedLassoError
from fedlasso.federation import encode
from fedlasso.governance import Audit, Desk, Door, Entry, read_policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.refusals import error_text


class SpokenAudit(Audit):
    """An audit that says each entry at the terminal too."""

    def write(self, entry: Entry, payload: bytes | None = None) -> Entry:
        """Write an entry down, then say it; what cannot be written down does not leave."""
        try:
            entry = super().write(entry, payload)
        except OSError as error:
            why = f"cannot write the site's books: {error.strerror}; make room there"
            print(f"refused {entry.question}: {why}", flush=True)
            raise FedLassoError(why) from None
        what = f"{entry.payload} bytes" if entry.verdict == "sent" else entry.why
        print(f"{entry.time} {entry.verdict} {entry.question}: {what}", flush=True)
        return entry


class Doorkeeper:
    """Opens a door of the site with a kit for each of the engine's jobs.

    Data and policy may change between two jobs: the next job finds them as they are then.
    """

    def __init__(self, folder: Path, data: Path, policy: Path | None) -> None:
        self._folder = folder
        self._name = read_kit(folder).name
        self._data = data
        self._rules = policy
        self._audit = SpokenAudit(*astuple(open_audit(folder)))
        self._desk = Desk(folder / "pending")
        self._records: TableRecords | None = None
        self._asking = False
        self.limit = 0

    def greet(self) -> AnswerBytes:
        """Open a door for another job; if that fails the job is told why, whatever it asks."""
        try:
            policy = read_policy(self._rules)
            records = self._read()
        except Exception as error:
            refusal = encode(Refusal(error_text(error), site=self._name))
            return lambda question: refusal
        self.limit = policy.max_bytes
        if policy.approval and not self._asking:
            self._asking = True
            threading.Thread(target=self._ask_operator, daemon=True).start()
        memory = self._folder / "memory"
        given = (self._name, records, policy, self._audit, memory, __version__)
        return Door(*given, self._desk.approve, identify(self._folder)).answer_bytes

    def _read(self) -> TableRecords:
        """Read the data, unless they are as they were read before."""
        if self._records is not None:
            with contextlib.suppress(FedLassoError):
                self._records.check_unchanged()
                return self._records
        self._records = TableRecords(self._data, read_key(self._folder), self._name)
        return self._records

    def _ask_operator(self) -> None:
        """Show what waits for approval, while the door waits for it."""
        while True:
            self._desk.serve(input)
            time.sleep(0.2)


def look(data: Path, policy: Path | None = None) -> str:
    """Say what there is to answer from, or why nothing can be answered."""
    if read_policy(policy).approval and not sys.stdin.isatty():
        raise FedLassoError("the policy asks for approval, and nobody is here to ask: no terminal")
    records = TableRecords(data)
    return f"{records.rows} rows, {len(records.columns)} columns"


if __name__ == "__main__":
    try:
        print(look(*map(Path, sys.argv[1:])))
    except FedLassoError as error:
        sys.exit(str(error))
