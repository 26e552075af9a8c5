"""Rounds over the network against the engine's own bare round trip, and a whole fit's seconds.

A server and three sites run as real processes on loopback with mutual TLS. Bare round trips and
rounds of a fit alternate in one run, so that both see the same machine. Prints ratios of medians,
masked sums against clear ones in time and bytes, and where the seconds of a Secant fit go.
"""

import argparse
import secrets
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fedlasso.deploy.nvflare.line import JobLine, connect
from fedlasso.deploy.nvflare.local import LocalFederation
from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.federation import Exchange, encode
from fedlasso.fitting import Settings
from fedlasso.models import FitPlan, NetworkSource
from fedlasso.sites import GradientAt, standardise


def write_tables(folder: Path, p: int, rows: int) -> dict[str, Path]:
    """Three Gaussian sites with ten effects."""
    rng = np.random.default_rng(0)
    paths = {}
    for site in ("a", "b", "c"):
        X = rng.standard_normal((rows, p))
        frame = pd.DataFrame(X, columns=[f"x{k:05d}" for k in range(p)])
        frame["y"] = X[:, :10].sum(axis=1) + rng.standard_normal(rows)
        paths[site] = folder / f"{site}.parquet"
        frame.to_parquet(paths[site], index=False)
    return paths


def compare(local: LocalFederation, p: int, rounds: int) -> tuple[float, float]:
    """Median seconds of a bare round trip and of one gradient round, taken in turn."""
    bare, ours = [], []
    with connect(local.folder) as network:
        network.open(NetworkSource("", secrets.token_hex(16), "y"))
        view, _ = standardise(network)
        assert isinstance(network.line, JobLine)
        for k in range(rounds + 3):
            b = np.full(p, 1.0 + k)
            data = encode(GradientAt(b))
            start = time.perf_counter()
            network.line.exchange(network.sites, data, network.timeout, echo=True)
            middle = time.perf_counter()
            view.total(GradientAt(b))
            end = time.perf_counter()
            if k >= 3:
                bare.append(middle - start)
                ours.append(end - middle)
    return statistics.median(bare), statistics.median(ours)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=500)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        tables = write_tables(Path(base), options.columns, options.rows)
        began = time.perf_counter()
        policy = Path(base) / "policy.toml"
        policy.touch()
        with LocalFederation(Path(base) / "project", tables, policy) as local:
            up = time.perf_counter()
            shares: dict[str, list[float]] = {"clear": [], "masked": []}
            sent = {}
            # A site reads its rules anew for every job; kinds of sums take turns.
            for kind in ("clear", "masked", "clear", "masked"):
                policy.write_text(f'sums = "{kind}"\nmax_numbers = 1e5\n')
                bare, ours = compare(local, options.columns, options.rounds)
                shares[kind].append(ours / bare)
                print(f"{kind} sums: bare round {1e3 * bare:.1f} ms, ours {1e3 * ours:.1f} ms")
                print(f"{1 / ours:.1f} rounds a second, {ours / bare:.2f} times the bare one")
                settings = Settings(goal="prediction", uploads=100)
                out = Path(base) / f"model-{kind}-{len(shares[kind])}"
                begin_plan(out, FitPlan(settings, NetworkSource(str(local.folder), "", "y")))
                questions: list[Exchange] = []
                start = time.perf_counter()
                times = run_plan(out, connect, listen=questions.append).times
                whole = time.perf_counter() - start
                cost = questions[-1].costs.total()
                sent[kind] = cost.upload + cost.framing
            stop = time.perf_counter()
            means = {kind: statistics.mean(found) for kind, found in shares.items()}
            print(
                f"masked against clear: {means['masked'] / means['clear']:.2f} times the time per "
                f"round, {sent['masked'] / sent['clear']:.3f} times the bytes of a fit"
            )
        down = time.perf_counter()
    print(f"Secant fit, goal prediction: {len(questions)} questions in {times.fit:.1f} s")
    print(f"job start {times.start:.1f} s, job stop {whole - times.start - times.fit:.1f} s")
    print(f"server and sites up {up - began:.1f} s, down {down - stop:.1f} s")


if __name__ == "__main__":
    main()
