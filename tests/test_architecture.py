"""What the layout promises: a family, goal or refusal is told by its type, in one place."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fedlasso
from fedlasso.families import FAMILIES
from fedlasso.fitting import GOALS
from fedlasso.numerics import LOSSES
from fedlasso.study import record_columns

ROOT = Path(fedlasso.__file__).parent
SOURCES = sorted(ROOT.rglob("*.py"))
# Where the names of families and losses, and of goals, may decide something.
FAMILY_FILES = ("families", "numerics/losses")
GOAL_FILES = ("fitting/goals",)


def nodes() -> Iterator[tuple[str, ast.AST]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            yield path.relative_to(ROOT).as_posix(), node


def strings_in(node: ast.AST) -> set[str]:
    found = ast.walk(node)
    return {n.value for n in found if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def find_branches(names: set[str], own: tuple[str, ...]) -> list[str]:
    """Comparisons and patterns with one of these names, outside of their own files."""
    return [
        f"{file}:{node.lineno}"
        for file, node in nodes()
        if isinstance(node, ast.Compare | ast.MatchValue)
        and strings_in(node) & names
        and not file.startswith(own)
    ]


def test_no_family_or_loss_is_told_by_its_name() -> None:
    assert find_branches({*FAMILIES, *LOSSES}, FAMILY_FILES) == []


def test_no_goal_is_told_by_its_name() -> None:
    assert find_branches(set(GOALS), GOAL_FILES) == []


def test_the_search_for_branches_finds_them() -> None:
    assert find_branches(set(GOALS) | {"1se"}, GOAL_FILES) != []


def test_no_penalty_is_told_by_its_class() -> None:
    for file, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            kinds = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            assert not kinds & {"L1", "ElasticNet"}, f"{file}:{node.lineno}"


def test_no_error_is_told_by_its_text() -> None:
    """Neither by searching it, nor by setting aside what is no refusal."""
    for file, node in nodes():
        if not isinstance(node, ast.ExceptHandler):
            continue
        assert node.type is None or "Stopped" not in ast.unparse(node.type), file
        text = f"str({node.name})"
        for inner in ast.walk(node):
            if isinstance(inner, ast.Compare):
                assert text not in ast.unparse(inner), f"{file}:{inner.lineno}"


def test_what_is_gone_stays_gone() -> None:
    gone = {"Session", "CurvedSession", "Splits", "GoalFit", "PenaltyForm", "parts_of"}
    defined = {node.name for _, node in nodes() if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assert not gone & defined


def test_models_decide_nothing() -> None:
    """The documents of a model ask no site: they import neither questions nor procedures."""
    for path in (ROOT / "models").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith("fedlasso.procedures"), path.name


def test_reports_call_goals_as_they_are_called() -> None:
    named = {
        record_columns.PREDICTION,
        record_columns.SELECTION,
        record_columns.OBJECTIVE,
        record_columns.DISCOVERIES,
    }
    assert named == set(GOALS)
