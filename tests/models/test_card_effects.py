"""One table of effects: coefficients, estimates with intervals, evidence and frequencies."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from helpers.cards import COLUMNS, SCHEMA, cells_of, draw_sites, section_of, text_of

from fedlasso.fitting import Settings
from fedlasso.fitting.examination.comparison import ColumnStability
from fedlasso.fitting.inference.infer import FEW_CLUSTERS, REPEATED
from fedlasso.models import ModelDocument, describe_model, draw_card, make_model
from fedlasso.models.card_effects import ASSUMPTIONS
from fedlasso.models.document import Coefficient
from fedlasso.models.effects import effects_of
from fedlasso.models.inference_document import (
    ColumnEstimate,
    GroupEstimate,
    SiteEstimate,
    TrustDocument,
)

UNSURE = ColumnEstimate(
    name=COLUMNS[0],
    scale=50.0,
    value=-0.00338,
    error=0.5,
    low=-1.00338,
    high=1.00338,
    p_value=1e-39,
    adjusted=3e-39,
    heterogeneity=1e-20,
    i_squared=0.33,
    sites=(SiteEstimate("north", 0.1, -0.9, 1.1), SiteEstimate("<south>", -0.1, -1.1, 0.9)),
)


@pytest.fixture(scope="module")
def plain() -> ModelDocument:
    return make_model(draw_sites("plain"), Settings(), SCHEMA)


def test_ratios_beyond_a_thousandfold_are_bounds(plain: ModelDocument) -> None:
    pairs = [(90.0, 0.4), (-2000.0, -0.2), (800.0, 0.1), (np.log(20), 0.05)]
    rows = (
        Coefficient(name, float(value), standardised, mean=0.0, scale=standardised / value)
        for name, (value, standardised) in zip(COLUMNS, pairs, strict=True)
    )
    settings = replace(plain.settings, family="binomial")
    document = replace(plain, settings=settings, coefficients=tuple(rows))
    heads, lines = document.coefficient_table(10)
    assert heads[2:] == ["odds ratio per SD", "odds ratio per unit"]
    assert [line[2] for line in lines] == ["1.492", "0.8187", "1.105", "1.051"]
    assert [line[3] for line in lines] == [">1000", "<0.001", ">1000", "20"]
    assert "&lt;0.001" in draw_card(document)


@pytest.mark.parametrize("standardise", [True, False])
def test_coefficients_are_largest_first_on_their_scales(standardise: bool) -> None:
    settings = Settings(penalty=0.01, standardise=standardise)
    document = make_model(draw_sites("plain"), settings, SCHEMA)
    head, *lines = cells_of(draw_card(document), "Coefficients")
    scales = ["per SD", "per unit"] if standardise else ["per unit"]
    assert head == ["", *scales]
    sizes = [abs(float(line[1])) for line in lines]
    assert len(sizes) > 2
    assert sizes == sorted(sizes, reverse=True)
    values = [float(line[-1]) for line in lines]
    np.testing.assert_allclose(values, [row.value for row in document.coefficients], rtol=1e-3)


@pytest.mark.parametrize("family", ["linear", "binomial"])
def test_terminal_and_card_print_the_same_coefficients(family: str) -> None:
    settings = Settings(penalty=0.01, family=family)
    document = make_model(draw_sites("0/1", settings.loss), settings, SCHEMA)
    head, *lines = cells_of(draw_card(document), "Coefficients")
    reported = describe_model(document).splitlines()[-len(lines) - 1 :]
    assert re.split(" {2,}", reported[0].strip()) == head[1:]
    assert [line.split() for line in reported[1:]] == lines


def test_one_row_has_coefficient_estimate_evidence_and_frequency(plain: ModelDocument) -> None:
    first, *_ = plain.coefficients
    other = replace(UNSURE, name=COLUMNS[3], scale=2.0, probability=0.98, i_squared=None)
    trust = TrustDocument(level=0.9, named=(UNSURE,), selected=(other,))
    stability = (ColumnStability(COLUMNS[0], True, 0.7), ColumnStability("<b>", False, 0.6))
    settings = replace(plain.settings, family="cox")
    coefficients = (replace(first, name=COLUMNS[0]),)
    document = replace(
        plain, settings=settings, trust=trust, stability=stability, coefficients=coefficients
    )
    card = draw_card(document)
    head, one, two = cells_of(card, "Coefficients")
    assert head[3:] == [
        "hazard ratio per SD (90% interval)", "hazard ratio per unit (90% interval)",
        "adjusted p or P(effect)", "selection frequency", "I² (p of Q)",
    ]  # fmt: skip
    assert one[0] == COLUMNS[0]
    assert one[3:] == [
        "0.845 (<0.001 to >1000)", "0.997 (0.367 to 2.73)", "<0.0001", "70%", "33% (<0.0001)",
    ]  # fmt: skip
    # A column with an interval that the model does not use.
    assert two[:3] == [COLUMNS[3], "0", "0"]
    assert two[5:] == ["98.0%", "–", "–"]
    text = text_of(section_of(card, "Coefficients"))
    assert "from top to bottom north, <south>." in text
    assert "but not used: <b> (60%)." in text


def test_the_class_that_is_one_is_printed_beside_every_ratio(plain: ModelDocument) -> None:
    settings = replace(plain.settings, family="binomial")
    document = replace(plain, settings=settings, positive="Yes & no")
    card = draw_card(document)
    head, *_ = cells_of(card, "Coefficients")
    assert head[3:] == ["odds ratio of Yes & no per SD", "odds ratio of Yes & no per unit"]
    assert "odds ratio of Yes &amp; no per SD, log scale" in card
    assert "for y = Yes &amp; no, fitted" in card
    assert not re.search("odds ratio (?!of Yes)", card)


def test_a_group_is_named_on_the_card_and_on_screen(plain: ModelDocument) -> None:
    group = GroupEstimate(("<a>", "b", "c"), 0.9999, "b")
    trust = TrustDocument(level=0.95, rate=0.1, tests=9, groups=(group,))
    document = replace(plain, trust=trust)
    card = draw_card(document)
    text = describe_model(document)
    for shown in (card, text):
        assert "1 group of nearly collinear columns discovered" in shown
        assert "over 99.9%" in shown
    assert "&lt;a&gt;, b, c" in card
    assert "one or more of 3 nearly collinear columns: <a>, b, c" in text
    assert "in the model b represents them" in text


@pytest.mark.parametrize("mark", [FEW_CLUSTERS, REPEATED.format("1 of 2")])
def test_the_expected_rate_is_printed_unless_a_fit_cannot_promise_it(
    mark: str, plain: ModelDocument
) -> None:
    found = (replace(UNSURE, probability=0.98),)
    trust = TrustDocument(level=0.95, rate=0.1, tests=9, found=found, notes=("something else",))
    document = replace(plain, trust=trust)
    promise = (
        "1 column discovered at a false discovery rate of 0.1: on average at most 10% of such a "
        "list are false (Bayesian FDR, calibrated by simulation)."
    )
    for shown in (describe_model(document), draw_card(document)):
        assert shown.count(promise) == 1
    marked = replace(plain, trust=replace(trust, notes=("something else", mark)))
    first = "1 column discovered, without a promise of the intended false discovery rate of 0.1."
    lines = describe_model(marked).splitlines()
    assert lines[lines.index(first) + 1] == mark
    assert lines.count(mark) == 1
    assert lines.count("something else") == 1
    shown = unescape(text_of(draw_card(marked)))
    assert shown.index(first) < shown.index(mark) < shown.index("something else")
    for text in ("\n".join(lines), shown):
        assert "of such a list" not in text
        assert "calibrated by simulation" not in text


@pytest.mark.parametrize("kind", ["discoveries", "named", "not identified", "none"])
def test_the_card_lists_assumptions_where_it_has_inference(kind: str, plain: ModelDocument) -> None:
    trusts = {
        "discoveries": TrustDocument(level=0.95, rate=0.1),
        "named": TrustDocument(level=0.95, named=(UNSURE,)),
        "not identified": TrustDocument(level=0.95, not_identified={COLUMNS[0]: ()}),
        "none": TrustDocument(level=0.95, site_weights={"north": 1.0}),
    }
    card = draw_card(replace(plain, trust=trusts[kind]))
    if kind == "none":
        assert "Assumptions" not in card
        return
    box = text_of(section_of(card, "Assumptions"))
    for assumption in ASSUMPTIONS:
        assert assumption in box
    assert "proportional" not in box
    settings = replace(plain.settings, family="cox")
    card = draw_card(replace(plain, trust=trusts[kind], settings=settings))
    assert "proportional" in text_of(section_of(card, "Assumptions"))


@pytest.mark.parametrize("family", ["linear", "binomial"])
def test_an_interval_of_zero_alone_has_no_estimate_outside_it(
    family: str, plain: ModelDocument
) -> None:
    rows = (
        replace(UNSURE, name="likely", value=-0.2, low=-0.4, high=0.0, probability=0.9),
        replace(UNSURE, name="hardly", value=-0.2, low=0.0, high=0.0, probability=0.013),
    )
    settings = replace(plain.settings, family=family)
    trust = TrustDocument(level=0.95, selected=rows)
    document = replace(plain, settings=settings, trust=trust, coefficients=())
    text = describe_model(document)
    assert "selected: likely -0.2, 95% credible interval -0.4 to 0, probability of" in text
    zero = "selected: hardly 95% credible interval zero alone, probability of an effect 1.3%"
    assert zero in text.splitlines()
    _, one, two = cells_of(draw_card(document), "Coefficients")
    assert "alone" not in " ".join(one)
    assert two[3:6] == ["1 alone" if family == "binomial" else "0 alone"] * 2 + ["1.3%"]
    likely, hardly = effects_of(document)
    for per_sd in (True, False):
        assert hardly.interval(per_sd) == (0.0, 0.0, 0.0)
        assert (likely.interval(per_sd) or (0.0,))[0] < 0
