"""What the layout promises: families, goals and refusals are types, and a name means one thing."""

import ast
import functools
import runpy
from collections import defaultdict
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


@functools.cache
def nodes() -> list[tuple[str, ast.AST]]:
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
    ]


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


def test_the_architecture_page_shows_the_imports_of_today() -> None:
    tool = runpy.run_path(str(Path(__file__).parent.parent / "tools" / "write_architecture.py"))
    for path, text in tool["write_page"]().items():
        assert path.read_text() == text, f"run python tools/write_architecture.py for {path.name}"


# Rooms that mirror each other on purpose: a command and its room, a family, its loss and estimator.
MIRRORED = {
    "__init__",
    "federation",
    "site",
    "report",
    "study",
    "fit",
    "linear",
    "binomial",
    "poisson",
    "cox",
}


def test_a_file_name_occurs_in_one_room() -> None:
    places = defaultdict(list)
    for path in SOURCES:
        places[path.stem].append(path.relative_to(ROOT).as_posix())
    assert {k: v for k, v in places.items() if len(v) > 1 and k not in MIRRORED} == {}


def test_a_public_class_or_type_has_one_meaning() -> None:
    places = defaultdict(set)
    for path in SOURCES:
        for node in ast.parse(path.read_text()).body:
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.Assign):
                names = [each.id for each in node.targets if isinstance(each, ast.Name)]
            for name in names:
                if name[0].isupper() and not name.isupper():
                    places[name].add(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
