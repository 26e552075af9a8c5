"""Kill sites and the server of a real federation at random moments, and resume to the same bits.

Run by ``make torture-federation``. Every reply that arrived must be in the site's audit, and what
was sent again must be there twice.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from helpers.deploy.nvflare.stories import Breakable
from helpers.nets import COLUMNS, SITES, in_process, same_files, share_key, write_tables

from fedlasso.deploy.kit import open_audit
from fedlasso.deploy.nvflare.line import connect
from fedlasso.deploy.nvflare.local import START
from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.errors import FedLassoError
from fedlasso.federation import Exchange
from fedlasso.fitting import Settings
from fedlasso.governance import Policy
from fedlasso.models import FitPlan, NetworkSource, make_model, read_plan, write_model
from fedlasso.tables import Column, Schema

SETTINGS = (
    Settings(procedure="ADMM", penalty=0.1, uploads=300),
    Settings(procedure="DA", penalty=0.1, uploads=100),
    Settings(procedure="CD", penalty=0.1, uploads=100),
    Settings(goal="prediction", uploads=100),
)


def attempt(local: Breakable, out: Path, rng: random.Random) -> str:
    """Go on with a fit and kill somebody meanwhile: before, during or between rounds."""
    victim = rng.choice([*SITES, "server"])
    when = rng.choice(["start", "round", "round"])
    at = rng.randint(1, 40)
    shots: list[threading.Timer] = []

    def shoot(delay: float) -> None:
        shots.append(threading.Timer(delay, local.kill, [victim]))
        shots[-1].start()

    def listen(exchange: Exchange) -> None:
        if when == "round" and exchange.number >= at and not shots:
            shoot(rng.uniform(0.0, 0.1))

    if when == "start":
        shoot(rng.uniform(0.0, 10.0))
    try:
        run_plan(out, connect, listen=listen, start=90)
        end = "finished"
    except FedLassoError as error:
        end = str(error)[:60]
    for shot in shots:
        shot.join()
    if not shots:
        local.kill(victim)
    return f"{victim} killed at {when}: {end}"


def main() -> int:
    """Torture, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    began = time.monotonic()
    kills = 0
    fits = 0
    schema = Schema("y", tuple(Column(name, "number") for name in COLUMNS))
    with tempfile.TemporaryDirectory() as base:
        tables = write_tables(Path(base))
        policy = Path(base) / "policy.toml"
        single = ("LargestEigenvalue", *Policy().single)
        # Twenty kills ask more of one data file than years of fits do.
        policy.write_text(
            f"single = {list(single)}\nmax_numbers = 1e6\n"
            "max_refusals = 10000\nmax_fit_refusals = 10000\n"
        )
        local = Breakable(Path(base) / "project", tables, policy)
        share_key(local)
        with local:
            while kills < options.kills:
                settings = SETTINGS[fits % len(SETTINGS)]
                out = Path(base) / f"model{fits}"
                # Who was killed is noticed because the server counts it no longer; a busy machine
                # may take long to answer.
                source = NetworkSource(str(local.folder), "", "y", COLUMNS, timeout=START)
                begin_plan(out, FitPlan(settings, source))
                for _ in range(rng.randint(1, 4)):
                    report = attempt(local, out, rng)
                    kills += 1
                    questions = len(list((out / "journal").glob("*.entry")))
                    print(f"kill {kills}: {report} ({questions} questions kept)", flush=True)
                    local.revive()
                    if report.endswith("finished") or kills == options.kills:
                        break
                run_plan(out, connect, start=START)
                alone = Path(base) / f"alone{fits}"
                write_model(alone, make_model(in_process(tables), settings, schema))
                assert same_files(out, alone)
                check_books(local, out)
                fits += 1
    print(f"{kills} kills, {fits} fits, the same bits; {time.monotonic() - began:.0f} s")
    return 0


def check_books(local: Breakable, out: Path) -> None:
    """Every reply that came over the line, used or not, is in the site's own books as often."""
    identity = read_plan(out, NetworkSource).source.fit
    receipts = [line.split() for line in (out / "receipts.txt").read_text().splitlines()]
    for site in SITES:
        entries = open_audit(local.kit(site)).entries(identity)
        sent = Counter(e.sha256 for e in entries if e.verdict == "sent")
        arrived = Counter(digest for name, digest in receipts if name == site)
        assert not arrived - sent, f"{site} sent what its audit does not have"


if __name__ == "__main__":
    sys.exit(main())
