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
from dataclasses import asdict
from pathlib import Path

from nets import COLUMNS, SITES, in_process, write_tables

from fedlasso.cli.federation import fitting
from fedlasso.deploy.link import Opening
from fedlasso.deploy.nvflare.kit import site_audit
from fedlasso.deploy.nvflare.local import LocalFederation
from fedlasso.deploy.run import Event, Plan, begin_plan, read_plan, run_plan
from fedlasso.errors import FedLassoError
from fedlasso.models import Settings, fit_model

SETTINGS = (
    Settings(procedure="ADMM", penalty=0.1, uploads=300),
    Settings(procedure="DA", penalty=0.1, uploads=100),
    Settings(procedure="CD", penalty=0.1, uploads=100),
    Settings(goal="prediction", uploads=100),
)


def attempt(local: LocalFederation, out: Path, rng: random.Random) -> str:
    """Go on with a fit and kill somebody meanwhile: before, during or between rounds."""
    victim = rng.choice([*SITES, "server"])
    when = rng.choice(["start", "round", "round"])
    at = rng.randint(1, 40)
    shots: list[threading.Timer] = []

    def shoot(delay: float) -> None:
        shots.append(threading.Timer(delay, local.kill, [victim]))
        shots[-1].start()

    def listen(event: Event) -> None:
        if when == "round" and event.number >= at and not shots:
            shoot(rng.uniform(0.0, 0.1))

    if when == "start":
        shoot(rng.uniform(0.0, 10.0))
    try:
        plan = read_plan(out)
        run_plan(out, plan, fitting(plan), listen, start=90)
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
    began, kills, fits = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as base:
        tables = write_tables(Path(base))
        with LocalFederation(Path(base) / "project", tables) as local:
            while kills < options.kills:
                settings = SETTINGS[fits % len(SETTINGS)]
                out = Path(base) / f"model{fits}"
                opening, plain = Opening("", "y", COLUMNS), asdict(settings)
                begin_plan(out, Plan(str(local.folder), opening, plain, timeout=12))
                for _ in range(rng.randint(1, 4)):
                    report = attempt(local, out, rng)
                    kills += 1
                    questions = len(list((out / "journal").glob("*.entry")))
                    print(f"kill {kills}: {report} ({questions} questions kept)", flush=True)
                    local.revive()
                    if report.endswith("finished") or kills == options.kills:
                        break
                plan = read_plan(out)
                (result, _), _ = run_plan(out, plan, fitting(plan), lambda event: None, start=90)
                alone = fit_model(in_process(tables), settings)
                assert result.coefficients.tobytes() == alone.coefficients.tobytes()
                assert result.costs.entries == alone.costs.entries
                check_books(local, out)
                fits += 1
    print(f"{kills} kills, {fits} fits, the same bits; {time.monotonic() - began:.0f} s")
    return 0


def check_books(local: LocalFederation, out: Path) -> None:
    """Every reply that came over the line, used or not, is in the site's own books as often."""
    identity = read_plan(out).opening.fit
    receipts = [line.split() for line in (out / "receipts.txt").read_text().splitlines()]
    for site in SITES:
        entries = site_audit(local.kit(site)).entries(identity)
        sent = Counter(e.sha256 for e in entries if e.verdict == "sent")
        arrived = Counter(digest for name, digest in receipts if name == site)
        assert not arrived - sent, f"{site} sent what its audit does not have"


if __name__ == "__main__":
    sys.exit(main())
