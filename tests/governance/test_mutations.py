"""Every defence has a test that fails when exactly that defence is switched off."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.governance.mutations import MUTATIONS, Mutation

TESTS = Path(__file__).parents[1]
# Replaces the defence before the test is collected; only the tests that assert may then fail.
PLUGIN = """
import inspect, os, sys, textwrap
from pkgutil import resolve_name
import msgspec
owner, _, name = {defence!r}.rpartition(".")
place = resolve_name(owner)
was = getattr(place, name)

def without(function, text):
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(text) == 1
    found = {{}}
    exec(source.replace(text, "pass"), function.__globals__, found)
    return found[name]

given = {{"was": was, "without": without, "os": os, "msgspec": msgspec}}
setattr(place, name, eval({replacement!r}, given))
"""


# What a test that notices ends with in the summary; a crash is no such end.
NOTICED = r"(assert |AssertionError|Failed: DID NOT RAISE)"


def run_test(mutation: Mutation, folder: Path, replacement: str) -> str:
    """The summary of the test of a mutation, empty if it passed."""
    plugin = PLUGIN.format(defence=mutation.defence, replacement=replacement)
    (folder / "mutant.py").write_text(plugin)
    path = os.pathsep.join([str(folder), str(TESTS), os.environ.get("PYTHONPATH", "")])
    command = ["-m", "pytest", "-q", "-x", "-p", "mutant", "-p", "no:randomly", "-n", "0"]
    ended = subprocess.run(
        [sys.executable, *command, str(TESTS / mutation.test)],
        # Lines of the summary are as long as the terminal is wide.
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "1000"}, cwd=TESTS.parent,
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    summary = re.findall(r"^(?:FAILED|ERROR) .*$", ended.stdout, re.MULTILINE)
    assert len(summary) == ended.returncode, ended.stdout + ended.stderr
    return "".join(summary)


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.defence.rpartition(".")[2])
def test_a_test_fails_without_the_defence(mutation: Mutation, tmp_path: Path) -> None:
    if ".nvflare." in mutation.defence:
        pytest.importorskip("nvflare")
    summary = run_test(mutation, tmp_path, mutation.replacement)
    _, _, test = mutation.test.partition("::")
    assert re.match(rf"FAILED \S+::{test}(\[.*\])? - {NOTICED}", summary), summary


@pytest.mark.full
def test_a_mutation_that_changes_nothing_is_noticed_by_no_test(tmp_path: Path) -> None:
    assert run_test(MUTATIONS[0], tmp_path, "was") == ""


@pytest.mark.full
def test_a_mutation_that_crashes_is_not_noticed_by_an_assertion(tmp_path: Path) -> None:
    summary = run_test(MUTATIONS[0], tmp_path, "lambda *_: 1 / 0")
    assert summary
    assert not re.search(f" - {NOTICED}", summary)


def test_the_tests_of_mutations_exist() -> None:
    for mutation in MUTATIONS:
        file, _, test = mutation.test.partition("::")
        assert f"def {test}(" in (TESTS / file).read_text(), mutation.test
