"""The same results on other processors: choices alike, numbers to rounding, certificates valid."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy
from helpers.portability.data import exact
from helpers.portability.processors import FEATURES, SETS, run_child

THREADS = (1, 2)
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# Numbers of two processors differ by no larger share than this.
ROUNDING = 1e-10
# A path's gap is shown as zero once it is below the rounding of F.
SLACK = Fraction(1, 2**52)
Runs = dict[tuple[str, int], dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Every instruction set with every number of threads."""
    folder = tmp_path_factory.mktemp("portability")

    def all_threads(kind: str) -> Runs:
        return {(kind, threads): run_child(kind, threads, folder) for threads in THREADS}

    with ThreadPoolExecutor(2) as pool:
        return {key: run for part in pool.map(all_threads, SETS) for key, run in part.items()}


def honours_core(library: Any) -> bool:
    """Whether the library's BLAS is an OpenBLAS that chooses its core when it is loaded."""
    blas = library.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return "DYNAMIC_ARCH" in blas.get("openblas configuration", "")


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """The largest difference in every quantity, as a share of its scale."""
    assert one["numbers"].keys() == other["numbers"].keys()
    worst = {}
    for name, (values, scales) in one["numbers"].items():
        others = other["numbers"][name][0]
        shares = [
            abs(a - b) / scale if a != b else 0.0
            for a, b, scale in zip(values, others, scales, strict=True)
        ]
        worst[name] = max(math.inf if math.isnan(share) else share for share in shares)
    return worst


def test_every_process_ran_what_it_was_asked_to(runs: Runs) -> None:
    for (kind, threads), run in runs.items():
        wanted, reported = SETS[kind], run["in_effect"]
        assert reported["machine"]["numba_target"] == wanted.target
        assert not set(wanted.without) & set(reported["machine"]["numpy_simd"].split())
        for library in (np, scipy):
            if honours_core(library):
                blas = reported["machine"][f"{library.__name__}_blas"]
                assert wanted.core is None or blas == f"openblas {wanted.core}"
                assert reported["threads"] == [min(threads, CORES)]


def test_the_instruction_sets_are_different_code(runs: Runs) -> None:
    assert len(SETS) >= 2
    assert len({SETS[kind].target for kind in SETS}) == len(SETS)
    # Names may differ where code does not: on x86-64 width and fused operations decide.
    codes = {runs[kind, 1]["in_effect"]["code"] for kind in SETS}
    assert len(codes) >= 1 + bool(FEATURES.get("avx")) + bool(FEATURES.get("fma"))
    for kind in SETS:
        assert len({runs[kind, threads]["in_effect"]["code"] for threads in THREADS}) == 1


def test_discrete_outcomes_are_identical(runs: Runs) -> None:
    first, *others = runs.values()
    for other in others:
        assert other["discrete"] == first["discrete"]


def test_numbers_agree_to_rounding(runs: Runs) -> None:
    first, *others = runs.values()
    for other in others:
        worst = differences(first, other)
        assert {name: share for name, share in worst.items() if share > ROUNDING} == {}


def test_the_number_of_blas_threads_changes_no_bit(runs: Runs) -> None:
    for kind in SETS:
        one, two = (runs[kind, threads] for threads in THREADS)
        for part in ("discrete", "numbers", "certificates"):
            assert one[part] == two[part]


def test_certificates_are_never_below_the_true_gap(runs: Runs) -> None:
    near = {c["lam"]: c["b"] for c in runs["host", 1]["certificates"] if c["name"] == "path"}
    smallest = {lam: exact().smallest(b, lam) for lam, b in near.items()}
    seen = set()
    for run in runs.values():
        for claim in run["certificates"]:
            key = (claim["lam"], claim["gap"], *claim["b"])
            if key in seen:
                continue
            seen.add(key)
            value = exact().objective(claim["b"], claim["lam"])
            true_gap = value - smallest[claim["lam"]]
            assert true_gap >= 0
            allowed = SLACK * value if claim["name"] == "path" else 0
            assert true_gap <= Fraction(claim["gap"]) + allowed, claim["name"]


def test_the_comparison_sees_a_wrong_number(runs: Runs) -> None:
    right = runs["host", 1]
    for name, (values, scales) in right["numbers"].items():
        wrong = [values[0] + 2 * ROUNDING * scales[0], *values[1:]]
        changed = right["numbers"] | {name: (wrong, scales)}
        assert differences(right, {"numbers": changed})[name] > ROUNDING or scales[0] == 0
