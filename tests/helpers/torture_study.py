"""Kill -9 a study run at random moments, again and again, and resume to the same table.

Run by ``make torture``. Checks that the export is identical to an undisturbed run's, that no
finished part is lost or computed again, and says how often and when it killed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from fedlasso.study import Store

TOML = "[small]\nsizes = [60, 40, 30]\np = 150\nnonzeros = 8\nvalidation = 26\ntest = 100\n"


def start(folder: Path, file: Path, replicates: int) -> subprocess.Popen[bytes]:
    """A run in a process group of its own."""
    command = ["study", "run", "--scenario-file", file, "--scenarios", "small,baseline"]
    command += ["--replicates", replicates, "--workers", 2, "--out", folder]
    return subprocess.Popen(
        [sys.executable, "-m", "fedlasso", *map(str, command)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def export(folder: Path) -> str:
    """The table without its seconds."""
    frame: pd.DataFrame = Store(folder).table()
    text: str = frame[[c for c in frame if not c.startswith("seconds")]].to_csv()
    return text


def parts(folder: Path) -> dict[Path, int]:
    """Finished parts and when they were written."""
    return {path: path.stat().st_mtime_ns for path in Store(folder).parts().values()}


def main() -> int:
    """Torture, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as base:
        file = Path(base) / "own.toml"
        file.write_text(TOML)
        calm, folder = Path(base) / "calm", Path(base) / "tortured"
        began = time.monotonic()
        assert start(calm, file, options.replicates).wait() == 0
        undisturbed = time.monotonic() - began
        kills = 0
        while kills < options.kills:
            before = parts(folder)
            run = start(folder, file, options.replicates)
            try:
                run.wait(timeout=rng.uniform(0.5, 2.5 + 1.5 * undisturbed / options.kills))
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                kills += 1
            after = parts(folder)
            assert before.items() <= after.items(), "a finished part was lost or computed again"
            print(f"kill {kills}: {len(after)} parts kept", flush=True)
            if run.returncode == 0:
                # All finished before the last kill: take some parts away and go on.
                for path in rng.sample(sorted(after), k=len(after) // 2):
                    path.unlink()
        assert start(folder, file, options.replicates).wait() == 0
        assert export(folder) == export(calm), "the resumed table differs"
        leftovers = [p for p in folder.rglob(".*") if p.is_file()]
        print(f"{kills} kills, table identical, {len(leftovers)} temporary files left over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
