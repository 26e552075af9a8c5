"""What a data protection officer reads: lines of the audit, and the page "What left my site"."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.browsing import open_browser
from helpers.governance.victims import Victim, draw_records
from helpers.nets import FIT
from helpers.programs import needs

from fedlasso.federation.messages import questions
from fedlasso.governance import Policy
from fedlasso.governance.audit_report import check_ledgers, entry_text, write_audit_page
from fedlasso.governance.officer_summary import (
    OFTEN,
    OFTEN_PER_COLUMN,
    OFTEN_RANGES,
    at_chosen_model,
    find_unusual,
    kind_of_answer,
)
from fedlasso.governance.refusals import SILENCE
from fedlasso.sites import GradientAt, HeldOutErrors
from fedlasso.sites.views import ColumnSums, Standardise

P = 4
UNUSUAL = (
    "fit abababab got 113 answers at models that the coordinator chose",
    "fit abababab got 21 answers about ranges of records",
    "named 2 different sets of sites",
    "as many numbers as values were sent",
)


@pytest.fixture
def victim(tmp_path: Path) -> Victim:
    """A site that has answered and refused a little."""
    victim = Victim(tmp_path, *draw_records(120, P, 1)).opened()
    view = victim.view("holdout 0.2 0")
    victim.ask(ColumnSums())
    victim.ask(GradientAt(np.ones(P), on=view))
    victim.ask(HeldOutErrors(np.eye(P), on=view))
    assert victim.ask(Standardise(np.full(P, 1e9), np.ones(P), 0.0)).text == SILENCE
    return victim


def test_a_line_says_what_left_of_which_columns_rows_and_fit(victim: Victim) -> None:
    reported = [entry_text(entry) for entry in victim.door.audit.entries()]
    assert len(reported) == 6
    assert "no fit Open; left: that the site joined a fit" in reported[0]
    gradient = reported[3]
    for words in (
        f"fit {FIT[:8]} GradientAt; left: one combination of second moments per vector",
        "4 numbers, 32 bytes gradient[4]",
        "columns 'x0', 'x1', 'x2', 'x3', target 'y'",
        "b: 4 numbers from 1 to 1, 4 not zero",
    ):
        assert words in gradient
    assert "split holdout 0.2 0" in reported[1]
    assert "refused: means of a view that are far from all records here" in reported[5]


def test_the_page_tells_all_of_it_and_needs_nothing_else(victim: Victim) -> None:
    page = write_audit_page("a", "trial <1>", victim.door.audit, Policy())
    for words in (
        "What left my site: a",
        "trial &lt;1&gt;",
        "6 lines, hash chain valid",
        "sent <b>4</b> answers",
        "<b>1</b> question was refused",
        "Nothing unusual was asked",
        "<b>120</b> records, <b>5</b> columns used",
        "this site alone: 120 records in 4 columns, which are 480 values",
        "x0, x1, x2, x3, y",
        "sums over records that depend on a model which the coordinator chose",
        "errors of models on held-out rows",
        "means of a view that are far from all records here",
        "Splits of the rows: holdout 0.2 0",
    ):
        assert words in page
    assert "http" not in page.replace("http-equiv", "")
    lifetime = victim.door.lifetime
    assert f"{lifetime.used('numbers'):,.3g}" in page


def test_what_is_unusual_stands_out(victim: Victim) -> None:
    audit = victim.door.audit
    assert list(find_unusual(list(audit.entries()))) == []
    entry = next(e for e in audit.entries() if e.question == "GradientAt")
    many = [entry] * (OFTEN + P * OFTEN_PER_COLUMN + 1) + [
        replace(entry, question="ScoreRanges")
    ] * (OFTEN_RANGES + 1)
    sites = [dict.fromkeys("abc", "k"), dict.fromkeys("ab", "k")]
    many += [
        replace(entry, question="Open", sites=each, rows=9, columns=["x"], spent={})
        for each in sites
    ]
    said = list(find_unusual(many))
    assert len(said) == len(UNUSUAL)
    assert [words in line for words, line in zip(UNUSUAL, said, strict=True)] == [True] * 4
    page = write_audit_page("a", "trial", audit, Policy())
    assert "Unusual" not in page


def test_every_question_has_plain_words() -> None:
    for name in questions():
        assert not set(kind_of_answer(name).split()) & {"fold", "vector", "gradient", "view"}
    assert at_chosen_model("GradientAt")
    assert not at_chosen_model("ColumnSums")


def test_a_broken_audit_is_shown_as_broken_and_a_short_ledger_is_named(victim: Victim) -> None:
    audit = victim.door.audit
    path = victim.door.lifetime.path
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    assert "has less of" in check_ledgers(audit)
    assert "has less of" in write_audit_page("a", "trial", audit, Policy())
    path.write_bytes(whole)
    assert check_ledgers(audit) == ""
    lines = audit.path.read_bytes().splitlines(keepends=True)
    audit.path.write_bytes(b"".join(lines[:-1]))
    page = write_audit_page("a", "trial", audit, Policy())
    assert "lines were removed or rewritten" in page
    assert "<table>" not in page


@pytest.mark.standard
@needs("browser")
def test_the_page_fits_telephones_and_wide_screens(victim: Victim, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(write_audit_page("a", "trial", victim.door.audit, Policy()))
    with open_browser() as browser:
        for width in (360, 1400):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(path.as_uri())
            assert page.title() == "What left a"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
