"""Every defence has a test that fails when exactly that defence is switched off."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.governance.mutations import MUTATIONS, Mutation

TESTS = Path(__file__).parents[1]
# Replaces the defence before the test is collected; only the tests that assert may then fail.
PLUGIN = """
import os, sys
from pkgutil import resolve_name
import msgspec
owner, _, name = {defence!r}.rpartition(".")
place = resolve_name(owner)
was = getattr(place, name)
setattr(place, name, eval({replacement!r}, {{"was": was, "os": os, "msgspec": msgspec}}))
"""


def run_test(mutation: Mutation, folder: Path, replacement: str) -> int:
    """The exit code of the test of a mutation."""
    plugin = PLUGIN.format(defence=mutation.defence, replacement=replacement)
    (folder / "mutant.py").write_text(plugin)
    path = os.pathsep.join([str(folder), str(TESTS), os.environ.get("PYTHONPATH", "")])
    command = ["-m", "pytest", "-q", "-x", "-p", "mutant", "-p", "no:randomly", "-n", "0"]
    ended = subprocess.run(
        [sys.executable, *command, str(TESTS / mutation.test)],
        env=os.environ | {"PYTHONPATH": path}, cwd=TESTS.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.returncode


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.defence.rpartition(".")[2])
def test_a_test_fails_without_the_defence(mutation: Mutation, tmp_path: Path) -> None:
    if ".nvflare." in mutation.defence:
        pytest.importorskip("nvflare")
    assert run_test(mutation, tmp_path, mutation.replacement) == 1


@pytest.mark.full
def test_a_mutation_that_changes_nothing_is_noticed_by_no_test(tmp_path: Path) -> None:
    assert run_test(MUTATIONS[0], tmp_path, "was") == 0


def test_the_tests_of_mutations_exist() -> None:
    for mutation in MUTATIONS:
        file, _, test = mutation.test.partition("::")
        assert f"def {test}(" in (TESTS / file).read_text(), mutation.test
