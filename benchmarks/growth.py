"""How seconds and bytes grow with sites, rows and columns, with fitted exponents.

Every run is 10 rounds in process, one thread; data are independent Gaussians with ten effects.
Prints one table an axis; growth is the exponent from the row above, for first fit, again, bytes.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from fedlasso import InProcess, Site, fit

AXES: dict[str, tuple[int, ...]] = {
    "K": (2, 10, 50, 200),
    "m": (800, 4_000, 20_000, 80_000),
    "p": (300, 1_000, 4_000, 10_000, 20_000),
}
QUICK = {"K": (2, 10), "m": (800, 4_000), "p": (300, 1_000)}
FIXED = {"K": 4, "m": 2_000, "p": 600}
ROUNDS, EPOCHS = 10, 5


def federation(K: int, m: int, p: int) -> InProcess:
    """K equal sites with m rows in all."""
    rng = np.random.default_rng(0)
    truth = np.zeros(p)
    truth[:10] = 1.0
    sites = []
    for j in range(K):
        X = rng.standard_normal((p, m // K)).T
        sites.append(Site(f"{j:05d}", X, X @ truth + rng.standard_normal(m // K)))
    return InProcess(sites)


def measure(procedure: str, K: int, m: int, p: int) -> tuple[float, float, int]:
    """Seconds of the first fit and of a second one on the same sites, and bytes up."""
    sites = federation(K, m, p)
    seconds = []
    for lam in (0.2, 0.19):
        start = time.perf_counter()
        result = fit(sites, procedure, penalty=lam, rounds=ROUNDS, certified=False, epochs=EPOCHS)
        seconds.append(time.perf_counter() - start)
    return seconds[0], seconds[1], result.costs.total().upload


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--procedure", default="CD", help="a procedure with one candidate")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    with threadpool_limits(1):
        measure(options.procedure, 2, 100, 50)  # compiles
        for axis, values in (QUICK if options.quick else AXES).items():
            fixed = ", ".join(f"{k} = {v}" for k, v in FIXED.items() if k != axis)
            print(f"\n{options.procedure}, {ROUNDS} rounds, E = {EPOCHS}, {fixed}")
            print(f"{axis:>7} {'first fit s':>12} {'again s':>12} {'upload MB':>10}   growth")
            before: tuple[float, ...] = ()
            for value in values:
                row = measure(options.procedure, **(FIXED | {axis: value}))
                here = (value, *row)
                exponents = [
                    float(np.log(b / a) / np.log(here[0] / before[0]))
                    for a, b in zip(before[1:], here[1:], strict=False)
                ]
                text = "  ".join(f"{e:5.2f}" for e in exponents)
                print(f"{value:7d} {row[0]:12.4f} {row[1]:12.4f} {row[2] / 1e6:10.3f}   {text}")
                before = here


if __name__ == "__main__":
    main()
