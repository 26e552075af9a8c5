"""Opens a site's door to the engine's jobs, in the process that holds the records."""

import contextlib
import sys
import threading
import time
from dataclasses import astuple
from pathlib import Path

from fedlasso import __version__
from fedlasso.atomic_files import CannotWrite
from fedlasso.deploy.bridge import AnswerBytes
from fedlasso.deploy.kit import identify, open_audit, read_kit, read_secret
from fedlasso.deploy.site_data import TableRecords
from fedlasso.errors import FedLassoError
from fedlasso.federation import encode
from fedlasso.governance import Audit, Desk, Door, Entry, read_policy
from fedlasso.governance.door_messages import Refusal
from fedlasso.governance.refusals import error_text


class PrintedAudit(Audit):
    """An audit that also prints each entry."""

    def write(self, entry: Entry, payload: bytes | None = None) -> Entry:
        """Write and print an entry; a reply that cannot be recorded does not leave."""
        try:
            entry = super().write(entry, payload)
        except CannotWrite as error:
            why = f"cannot write the site's audit: {error.cause}; free disk space there"
            print(f"refused {entry.question}: {why}", flush=True)
            raise FedLassoError(why) from None
        what = f"{entry.payload} bytes" if entry.verdict == "sent" else entry.why
        print(f"{entry.time} {entry.verdict} {entry.question}: {what}", flush=True)
        return entry


class Doorkeeper:
    """Opens a door of a site for each of the engine's jobs.

    Data and policy may change between two jobs; each job uses those of its start.
    """

    def __init__(self, folder: Path, data: Path, policy: Path | None) -> None:
        self._folder = folder
        self._name = read_kit(folder).name
        self._data = data
        self._policy = policy
        self._audit = PrintedAudit(*astuple(open_audit(folder)))
        self._desk = Desk(folder / "pending")
        self._records: TableRecords | None = None
        self._prompting = False
        self.limit = 0

    def open_job(self) -> AnswerBytes:
        """Open a door for a new job; if that fails, every question is refused with the reason."""
        try:
            policy = read_policy(self._policy)
            records = self._read()
        except Exception as error:
            refusal = encode(Refusal(error_text(error), site=self._name))
            return lambda question: refusal
        self.limit = policy.max_bytes
        if policy.approval and not self._prompting:
            self._prompting = True
            threading.Thread(target=self._prompt_operator, daemon=True).start()
        memory = self._folder / "memory"
        given = (self._name, records, policy, self._audit, memory, __version__)
        return Door(*given, self._desk.approve, identify(self._folder)).answer_bytes

    def _read(self) -> TableRecords:
        """Read the data, unless the file is unchanged."""
        if self._records is not None:
            with contextlib.suppress(FedLassoError):
                self._records.check_unchanged()
                return self._records
        self._records = TableRecords(self._data, read_secret(self._folder), self._name)
        return self._records

    def _prompt_operator(self) -> None:
        while True:
            self._desk.serve(input)
            time.sleep(0.2)


def summarise_data(data: Path, policy: Path | None = None) -> str:
    """Return the number of rows and columns; refuse if nothing could be answered."""
    if read_policy(policy).approval and not sys.stdin.isatty():
        raise FedLassoError("the policy requires approval, which needs a terminal to ask at")
    records = TableRecords(data)
    return f"{records.rows} rows, {len(records.columns)} columns"


if __name__ == "__main__":
    try:
        print(summarise_data(*map(Path, sys.argv[1:])))
    except FedLassoError as error:
        sys.exit(str(error))
