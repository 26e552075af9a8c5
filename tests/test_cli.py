"""The command line: help with examples, one-line errors, tables."""

import argparse
import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from helpers.study.small import TOML

from fedlasso.cli import COMMANDS, main, make_parser
from fedlasso.fitting import GOALS, RULES
from fedlasso.procedures import REGISTRY
from fedlasso.study import STUDIES
from fedlasso.study.purposes import PURPOSES


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("cli")
    (base / "own.toml").write_text(TOML)
    out = base / "results"
    code = run(
        "study", "run", "--scenario-file", base / "own.toml", "--scenarios", "small",
        "--replicates", 3, "--epochs", "1,20", "--budgets", 30, "--workers", 1, "--out", out,
    )  # fmt: skip
    assert code == 0
    return out


# Prints which large packages a command has imported.
TELL_IMPORTS = """
import sys
from fedlasso.cli import main
large = {"numpy", "scipy", "scipy.stats", "numba", "sklearn", "pyarrow", "pandas"}
try:
    main(sys.argv[1:])
finally:
    print(sorted(large & set(sys.modules)))
"""


def tell_imports(*command: str) -> list[str]:
    """Return which large packages a command of fedlasso imports."""
    asked = [sys.executable, "-c", TELL_IMPORTS, *command]
    reported = subprocess.run(asked, capture_output=True, text=True, check=True)
    found: list[str] = ast.literal_eval(reported.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_nobody_waits_for_packages_that_are_not_used(option: str) -> None:
    assert tell_imports(option) == []


@pytest.mark.parametrize("command", ["study", "report"])
def test_studies_and_reports_do_not_wait_for_all_of_scipys_statistics(command: str) -> None:
    assert "scipy.stats" not in tell_imports(command, "--help")


@pytest.mark.full
def test_a_report_does_not_wait_for_what_computes_a_study(folder: Path, tmp_path: Path) -> None:
    imported = tell_imports("report", str(folder), "--out", str(tmp_path))
    assert imported == ["numpy", "pandas", "pyarrow"]


@pytest.mark.parametrize("module", COMMANDS)
def test_the_list_of_commands_says_what_the_commands_say(module: str) -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    import_module(f"fedlasso.cli.{module}").add(commands)
    listed = {action.dest: action.help for action in commands._choices_actions}
    assert listed == COMMANDS[module]


@pytest.mark.parametrize("action", ["run", "status", "summary", "export"])
def test_every_command_has_help_with_an_example(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run("study", action, "--help")
    assert stopped.value.code == 0
    assert f"Example: fedlasso study {action}" in capsys.readouterr().out


def walk_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parser of a command, and those of its actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices.values():
                yield from walk_parsers(own)


@pytest.mark.parametrize("command", [name for listed in COMMANDS.values() for name in listed])
def test_every_command_and_every_option_says_what_it_is_for(command: str) -> None:
    (group,) = make_parser([command])._subparsers._group_actions  # type: ignore[union-attr]
    assert isinstance(group, argparse._SubParsersAction)
    for parser in walk_parsers(group.choices[command]):
        assert parser.description, parser.prog
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{parser.prog} {action.option_strings or action.dest}"


def read_help(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """The help of a command, as one line."""
    with pytest.raises(SystemExit):
        run(*command, "--help")
    return " ".join(capsys.readouterr().out.split())


def test_help_says_what_each_study_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(PURPOSES) == list(STUDIES)
    reported = read_help(capsys, "study", "run").partition("studies:")[2]
    for name, kind in STUDIES.items():
        purpose = (kind.__doc__ or "").partition("\n")[0]
        assert purpose.endswith((".", "?")), f"{name}: {purpose}"
        assert f" {name} {purpose}" in reported


@pytest.mark.parametrize("command", [["fit"], ["federation", "fit"]])
def test_help_says_what_each_goal_and_each_rule_is_for(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    reported = read_help(capsys, *command)
    goals = {name: goal.help for name, goal in GOALS.items()}
    for name, purpose in (goals | RULES).items():
        assert f"{name}: {purpose}" in reported.replace(" (default)", "")
    procedures = reported.replace("- ", "-")
    assert all(procedure in procedures for procedure in REGISTRY)


@pytest.mark.parametrize("command", ["fit", "predict", "inspect", "diagnose"])
def test_commands_for_own_data_have_help_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(command, "--help")
    assert stopped.value.code == 0
    assert f"Example: fedlasso {command} " in capsys.readouterr().out


def test_another_kind_of_processor_is_told_on_the_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["runs"][-1]["machine"]["numba_target"] = "abacus"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    capsys.readouterr()
    code = run(
        "study", "run", "--scenario-file", folder.parent / "own.toml", "--scenarios", "small",
        "--replicates", 3, "--epochs", "1,20", "--budgets", 30, "--workers", 1, "--out", folder,
    )  # fmt: skip
    assert code == 0
    reported = capsys.readouterr()
    (line,) = [line for line in reported.err.splitlines() if "processor" in line]
    assert line.startswith(f"fedlasso: {folder} was computed on another kind of processor: ")
    assert "numba_target was 'abacus'" in line
    assert "3 of 3 finished" in reported.out


def test_status_says_how_far_and_how_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("study", "status", folder) == 0
    text = capsys.readouterr().out
    assert "3 of 3 finished" in text
    assert "exact pooled Lasso fits (stationarity <= 1e-9): 3 of 3" in text
    assert "exact penalty paths of sites (gap <= 1e-10): 9 of 9" in text


def test_summary_shows_means_and_paired_differences(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("study", "summary", folder) == 0
    text = capsys.readouterr().out
    assert "Mean (standard error): budget 30, panel joint, rule min" in text
    assert "Paired difference, epochs 20 minus 1" in text
    assert "Paired difference, method DA minus CD" in text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_export_writes_one_flat_table(folder: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"table.{kind}"
    assert run("study", "export", folder, file) == 0
    table = pd.read_csv(file) if kind == "csv" else pd.read_parquet(file)
    assert len(table) == 3 * 4 * 2 * 1 * 2 * 2
    assert set(table["method"]) == {"CD", "ST", "P", "DA"}
    assert set(table["panel"]) == {"upload", "joint"}
    assert set(table["rule"]) == {"min", "1se"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--study", "none", "--out", "x"], "no study is called 'none'"),
        (["run", "--scenarios", "none", "--out", "x"], "no scenario is called 'none'"),
        (["run", "--methods", "CDD", "--replicates", "1", "--out", "x"], "did you mean 'CD'?"),
        (["run", "--scenario-file", "none.toml", "--out", "x"], "cannot read none.toml"),
        (["status", "x"], "x holds no study"),
        (["summary", "x"], "x holds no study"),
        (["export", "x", "y.csv"], "x holds no study"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("study", *arguments) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1
    assert "Traceback" not in errors


def test_export_refuses_other_formats(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("study", "export", folder, tmp_path / "table.xlsx") == 2
    assert "name a .csv or .parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "own.csv", "--target", "y", "--out", 300 * "m"],
        ["fit", f"{300 * 'a'}.csv", "--target", "y", "--out", "m"],
        ["fit", "--resume", 300 * "m"],
        ["inspect", 300 * "m"],
        ["predict", 300 * "m", "own.csv"],
    ],
)
def test_what_the_system_refuses_is_one_line(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": [1, 2, 3, 4], "y": [1, 3, 2, 4]}).to_csv("own.csv", index=False)
    assert run(*arguments) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("fedlasso: ")
    assert "File name too long" in line
