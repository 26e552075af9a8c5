"""Policies: files are checked, and questions are judged by what they say of themselves."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers.draws import draw_sites
from helpers.kinds import own_messages, own_questions

from fedlasso import FedLassoError
from fedlasso.federation import (
    Columns,
    Disclosure,
    Models,
    PerCandidate,
    Purpose,
    Reply,
    Request,
    Signed,
    Split,
    Steps,
)
from fedlasso.federation.messages import TYPES, layout, roles
from fedlasso.governance import Policy, read_policy
from fedlasso.numerics import Array
from fedlasso.sites import GradientAt, Site, View

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
P = 40


class Total(Reply):
    """One number."""

    value: float


class Foreign(Request[Total]):
    """A question from outside the package, with a field of nearly every role."""

    discloses: ClassVar[Disclosure] = Disclosure("one number", held_out=True)
    theta: Models
    speeds: PerCandidate
    chosen: Columns
    turns: Steps
    offset: Signed = 0.0
    part: Split = ""
    for_what: Purpose = "candidate"

    def answer(self, site: View) -> Total:
        return Total(float(self.theta.sum()) + site.rows)


class Secretive(Request[Total]):
    """A question from outside that no site answers unless it is told to."""

    discloses: ClassVar[Disclosure] = Disclosure("one number", allowed=False)

    def answer(self, site: View) -> Total:
        return Total(1.0)


class Roleless(Request[Total]):
    """A question with an array of which nobody says what it is."""

    discloses: ClassVar[Disclosure] = Disclosure("one number")
    values: Array

    def answer(self, site: View) -> Total:
        return Total(1.0)


class Unanswered(Request[Total]):
    """A message that no site knows how to answer, so it need not say what it discloses."""


PROPER = Foreign(np.ones((P, 2)), np.ones(2), np.array([0.0, 5.0]), 3, -1.0)


@pytest.fixture
def site() -> Site:
    return draw_sites((30,), P)[0]


def test_a_question_that_does_not_say_what_it_discloses_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Silent must state what it discloses"):

        class Silent(Request[Total]):
            def answer(self, site: View) -> Total:
                return Total(0.0)

    assert "Silent" not in TYPES


def test_a_question_may_not_hide_behind_what_another_one_discloses() -> None:
    with pytest.raises(TypeError, match="Hidden must state what it discloses"):

        class Hidden(GradientAt):
            def answer(self, site: View) -> Any:
                return Total(float(site.training.y[0]))

    assert "Hidden" not in TYPES


def test_a_question_from_outside_is_answered_when_allowed_and_refused_when_not(site: Site) -> None:
    Policy().check(PROPER, site)
    assert site.answer(PROPER).value == 2 * P + 30
    with pytest.raises(FedLassoError, match=r"does not answer Foreign; allow it in policy\.toml"):
        Policy(deny=("Foreign",)).check(PROPER, site)
    with pytest.raises(FedLassoError, match="does not answer Secretive"):
        Policy().check(Secretive(), site)
    Policy(allow=("Secretive",)).check(Secretive(), site)
    with pytest.raises(FedLassoError, match="does not answer Secretive"):
        Policy(allow=("Secretive",), deny=("Secretive",)).check(Secretive(), site)
    with pytest.raises(FedLassoError, match="does not answer Unanswered"):
        Policy().check(Unanswered(), site)


@pytest.mark.parametrize(
    ("changes", "rules", "message"),
    [
        ({"theta": np.ones((P + 1, 2))}, {}, "theta does not fit the 40 columns"),
        ({"theta": np.ones(P)}, {}, "theta does not fit"),
        ({"theta": np.ones((P, 3))}, {}, "speeds does not fit"),
        ({"speeds": np.array([1.0, -1.0])}, {}, "speeds does not fit"),
        ({"chosen": np.array([1.0, 1.0])}, {}, "chosen does not fit"),
        ({"chosen": np.array([40.0])}, {}, "chosen does not fit"),
        ({"turns": 501}, {}, "1002 steps, but the policy here allows 1000"),
        ({"turns": -1}, {}, "turns does not fit"),
        ({"part": "fold 1 of 30 0"}, {}, "1 rows held out by this split"),
        ({"part": "holdout 0.5 0"}, {}, "15 training rows in this split"),
        ({"part": "a\nb"}, {}, "part does not fit"),
        ({"for_what": "none"}, {}, "no rows to validate the none"),
        ({}, {"min_validation_rows": 13}, "12 validation rows here"),
        ({}, {"max_active_per_row": 1.0}, "40 active coefficients, but the policy allows 30"),
        ({}, {"min_rows": 31}, "30 training rows here"),
        ({"on": "none"}, {}, "of this fit is not stored"),
    ],
)
def test_a_question_from_outside_is_judged_by_its_roles_alone(
    changes: dict[str, Any], rules: dict[str, Any], message: str, site: Site
) -> None:
    with pytest.raises(FedLassoError, match=message):
        replace(Policy(), **rules).check(replace(PROPER, **changes), site)


def test_an_array_without_a_role_is_refused(site: Site) -> None:
    with pytest.raises(FedLassoError, match="Roleless: values does not fit"):
        Policy().check(Roleless(np.ones(P)), site)


def disclosure_table() -> str:
    """What questions disclose as the privacy page tells it, from their own words."""
    asked = own_questions()
    rules = {
        "model": "`max_active_per_row`",
        "steps": "`max_steps`",
        "split": "`max_splits`, `min_validation_rows`",
        "held out": "`min_validation_rows`, `max_candidates`",
        "compared": "`max_comparisons`",
        "batches": "`max_splits`",
    }
    lines = [
        "| question | what a reply reveals | rules besides `min_rows` and `max_numbers` |",
        "|---|---|---|",
    ]
    single: dict[str, list[str]] = {}
    for name, question in asked.items():
        kinds = {role.kind for role in roles(question).values()}
        said = question.discloses
        reported = kinds | {
            kind
            for kind, holds in (
                ("held out", said.held_out),
                ("compared", said.compares),
                ("batches", said.batches),
            )
            if holds
        }
        guards = ", ".join(rule for kind, rule in rules.items() if kind in reported)
        guards = ", ".join(dict.fromkeys(guards.split(", ")))
        off = "" if said.allowed else " **(off)**"
        lines.append(f"| `{name}`{off} | {said.reveals} | {guards} |")
        if said.single:
            single.setdefault(said.single, []).append(f"`{name}`")
    reasons = [f"- {', '.join(names)}: {reason}" for reason, names in single.items()]
    return "\n".join([*lines, "", "Needed from each site separately:", "", *reasons])


def test_the_privacy_page_has_the_table_that_the_questions_make() -> None:
    page = PAGE.read_text()
    table = disclosure_table()
    assert table in page, f"write this table into docs/privacy.md:\n{table}"
    assert page.count("| `Rows` |") == 1
    assert page.count("Needed from each site separately:") == 1
    asked = [name for name, cls in own_messages().items() if issubclass(cls, Request)]
    # Abstract questions and what the door itself answers have no row in the table.
    abstract = {"AboutDirections", "AboutErrors", "AboutFolds", "AboutOutcome"}
    abstract |= {"Penalised", "Request"}
    others = set(asked) - set(own_questions()) - abstract
    door = {"DescribeColumns", "FindOthers", "Introduce", "OfferKey", "Open", "SummariseAudit"}
    assert others == door
    assert not [name for name in others if f"\n| `{name}` | " not in page]


def show_default(value: object) -> str:
    """A rule's default as the privacy page writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, tuple):
        return ", ".join(f"`{name}`" for name in value) or "none"
    return str(value)


def test_the_privacy_page_has_every_rule_with_its_default() -> None:
    page = PAGE.read_text()
    reported = {
        "na_codes": "the usual ones, such as `NA`, `.`, `unknown`, `-999`",
        "max_bytes": f"{Policy().max_bytes >> 20} MB",
    }
    assert {"NA", ".", "unknown", "-999"} <= set(Policy().na_codes)
    for rule, value in vars(Policy()).items():
        row = f"\n| `{rule}` | {reported.get(rule, show_default(value))} | "
        assert page.count(row) == 1, f"write this row into docs/privacy.md:{row}"
    _, _, rest = page.partition("## The rules")
    rules, _, _ = rest.partition("\n## ")
    assert set(re.findall(r"^\| `(\w+)` \|", rules, re.MULTILINE)) == set(vars(Policy()))


def test_the_attacks_on_the_privacy_page_are_in_tests_that_exist() -> None:
    named = re.findall(r"`([\w/]+\.py)`", PAGE.read_text())
    assert len(named) > 40
    # The code that attack 1 sends is no file of ours.
    for file in set(named) - {"sitecustomize.py"}:
        known = file == "federation/messages.py" or (PAGE.parents[1] / file).exists()
        assert known or (PAGE.parents[1] / "tests" / file).exists(), f"docs/privacy.md names {file}"


def test_the_privacy_page_names_every_file_of_attacks() -> None:
    tests = PAGE.parents[1] / "tests"
    attacks = [*tests.rglob("test_attack*.py"), *tests.rglob("test_*_attacks.py")]
    assert len(attacks) >= 18
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE.read_text()))
    assert {str(file.relative_to(tests)) for file in attacks} - named == set()


def test_attacks_that_the_privacy_page_refers_to_are_in_its_table() -> None:
    page = PAGE.read_text()
    rows = set(re.findall(r"^\| ([A-Z]?\d+) ", page, re.MULTILINE))
    referred = re.findall(
        r"\b(?:attacks?|defence against) ([A-Z]?\d+)(?: and\s+([A-Z]?\d+))?", page
    )
    names = {name for pair in referred for name in pair if name}
    assert len(names) > 5
    assert names - rows == set()


def test_policy_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        'min_rows = 50\nallow = ["AllMoments"]\ncolumns = ["a", "b"]\napproval = true\n'
    )
    policy = read_policy(path)
    assert policy == Policy(min_rows=50, allow=("AllMoments",), columns=("a", "b"), approval=True)
    assert policy.answers("AllMoments")
    assert not policy.shows("c")
    path.write_text("max_active_per_row = 2")
    assert read_policy(path) == Policy(max_active_per_row=2.0)
    assert read_policy(None) == Policy()
    for text, message in {
        "min_row = 1": "no rule is called 'min_row'",
        "min_rows = -1": "policy.toml: min_rows must be a whole number, zero or more",
        'min_rows = "many"': "min_rows must be a whole number",
        "min_rows = true": "min_rows must be a whole number",
        "max_active_per_row = nan": "max_active_per_row must be a number, zero or more",
        "approval = 1": "approval must be true or false",
        "deny = [1]": "deny must be a list of names",
        'deny = ["Row"]': "policy.toml: deny: no question is called 'Row'",
        'allow = ["Introduce"]': "allow: no question is called 'Introduce'",
        "= 3": "policy.toml: ",
    }.items():
        path.write_text(text)
        with pytest.raises(FedLassoError, match=message):
            read_policy(path)
    with pytest.raises(FedLassoError, match="cannot read"):
        read_policy(tmp_path / "none.toml")


def test_what_a_site_remembers_by_rounds_is_said_by_the_question() -> None:
    for name, cls in own_questions().items():
        fields = {field for field, _ in layout(cls)}
        assert cls.remembers == ({"fit", "round"} <= fields), name
