"""The card's section on how well a model predicts rows that had no part in it."""

from fedlasso import html
from fedlasso.fitting.examination.assessment import Assessment, Calibration
from fedlasso.models.charts import ChartLine, line_chart


def draw_assessment(found: Assessment | None, refused: str | None = None) -> str:
    """Return the section, or why there is none; nothing where nobody asked."""
    title = "How well it predicts"
    if found is None:
        return html.left_out(title, refused)
    note = (
        f"On {found.rows} rows that had no part in choosing or fitting: a model was chosen and "
        "fitted once more, in the same way, without them and without as many rows that chose its "
        "penalty. What this model itself does with new rows will be a little better."
    )
    return html.section(title, note, _facts(found) + _charts(found) + _sites(found))


def _facts(found: Assessment) -> str:
    values = (found.explained, found.auroc, found.concordance)
    measured = zip(("Deviance explained", "AUROC", "Concordance"), values, strict=True)
    facts = {name: f"{value:.3f}" for name, value in measured if value is not None}
    if found.calibration is not None:
        titles = ("Calibration intercept (0 is right)", "Calibration slope (1 is right)")
        facts |= zip(titles, _calibration(found.calibration), strict=True)
    return html.facts(facts.items())


def _charts(found: Assessment) -> str:
    parts = []
    if len(found.groups) > 1:
        expected = [group.expected for group in found.groups]
        observed = [group.observed for group in found.groups]
        ends = [min(expected + observed), max(expected + observed)]
        lines = [
            ChartLine(expected, observed, "groups of rows", 0, dots=True),
            ChartLine(ends, ends, "as predicted", 7),
        ]
        parts.append("<p>What was predicted, and what happened, in groups of like predictions:</p>")
        parts.append(line_chart(lines, "mean prediction", "mean response", log=False, legend=True))
    if found.curves:
        lines = [ChartLine(c.times, c.shares, c.name, k) for k, c in enumerate(found.curves)]
        parts.append("<p>Share of rows without an event (Kaplan and Meier), by predicted risk:</p>")
        parts.append(line_chart(lines, "time", "share without an event", log=False, legend=True))
    return "".join(parts)


def _sites(found: Assessment) -> str:
    if not found.sites:
        return ""
    if found.concordance is not None:
        cells = [
            [s.name, "–" if s.pairs is None else f"{s.pairs:,}", _number(s.concordance)]
            for s in found.sites
        ]
        return html.text_table(["site", "pairs that can be compared", "concordance"], cells)
    cells = [
        [site.name, _number(site.auroc), *_calibration(site.calibration)] for site in found.sites
    ]
    return html.text_table(["site", "AUROC", "calibration intercept", "calibration slope"], cells)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _calibration(found: Calibration | None) -> list[str]:
    if found is None:
        return ["–", "–"]
    return [f"{found.intercept:.2f}", f"{found.slope:.2f}"]
