"""card.html: a model told on one page, from model.json alone."""

from __future__ import annotations

from html import escape
from typing import Any

from fedlasso.models.charts import Line, bar_chart, line_chart, number
from fedlasso.models.page import bytes_of, facts, page, table, warnings

_SHOWN = 30
_KINDS = {"scaling": "means and scales", "training": "gradients or models"}


def card(told: dict[str, Any]) -> str:
    """The card as HTML."""
    target, count = told["schema"]["target"], len(told["coefficients"])
    sites = told["sites"]
    certificate = told["certificate"]
    sent = max(sum(site["sent"].values()) for site in sites)
    body = [
        f"<h1>Model of {escape(target)}</h1>",
        f'<p class="lead">A Lasso with {count} of {told["columns"]} columns, fitted across '
        f"{len(sites)} site{'s' * (len(sites) > 1)} that shared sums, never records.</p>",
        warnings(told.get("warnings", [])),
        facts(
            [
                ("Training rows", f"{told['rows']['training']:,}"),
                ("Columns used", f"{count} of {told['columns']:,}"),
                _penalty(told),
                ("Most sent by a site", bytes_of(sent)),
            ]
        ),
        _certificate(told) if certificate else "",
        f"<p>{escape(told['why'])}.</p>" if told["why"] else "",
        _coefficients(told),
        _curve(told),
        _path(told),
        _comparison(told),
        _stability(told),
        _sent(told),
        _settings(told),
    ]
    return page(f"Model of {target}", "".join(body))


def _certificate(told: dict[str, Any]) -> str:
    certificate = told["certificate"]
    return (
        "<h2>How far from the pooled answer</h2>"
        f'<p class="lead">This model is <b>{escape(certificate["words"])}</b>.</p>'
        '<p class="soft">The bound is a duality gap computed from sums over the sites; it holds '
        "whatever the records are, for the penalties and the columns of the chosen model. "
        f"{escape(told['status_text']) if told['status'] != 'CHOSEN' else ''}</p>"
    )


def _penalty(told: dict[str, Any]) -> tuple[str, str]:
    if told["status"] == "CHOSEN" and told["curve"]:
        return "Penalty, on the path", number(told["curve"]["penalties"][told["curve"]["chosen"]])
    return "Penalty", number(told["penalty"])


def _coefficients(told: dict[str, Any]) -> str:
    rows = told["coefficients"]
    if not rows:
        return (
            "<h2>Coefficients</h2><p>No column is used: the model predicts the mean, "
            f"{told['intercept']:.6g}.</p>"
        )
    shown = rows[:_SHOWN]
    chart = bar_chart(
        [row["name"] for row in shown],
        [row["standardised"] for row in shown],
        [f"{row['value']:.4g}" for row in shown],
    )
    more = (
        f" The {len(rows) - _SHOWN} smaller ones are in coefficients.csv."
        if len(rows) > _SHOWN
        else ""
    )
    return (
        f'<h2>Coefficients</h2><p class="soft">Bars: change of {escape(told["schema"]["target"])} '
        "for one standard deviation of the column. Numbers: for one unit of it. Intercept "
        f"{told['intercept']:.6g}.{more}</p>{chart}"
    )


def _curve(told: dict[str, Any]) -> str:
    curve = told["curve"]
    if not curve:
        return ""
    chosen = curve["chosen"]
    chart = line_chart(
        [Line(curve["penalties"], curve["mse"], "held-out error", 0, curve["se"], dots=True)],
        "penalty (smaller to the right)",
        "mean squared error",
        log_x=True,
        reverse=True,
        mark=curve["penalties"][chosen],
    )
    return (
        "<h2>Held-out error</h2><p class='soft'>Pooled over the sites' held-out rows, which stayed "
        "where they are. The dashed line is the penalty chosen on this path, with "
        f"{curve['active'][chosen]:.3g} columns.</p>{chart}"
    )


def _path(told: dict[str, Any]) -> str:
    path = told["path"]
    if not path or not path["names"]:
        return ""
    lines = [
        Line(path["penalties"], values, name if i < 12 else "", i)
        for i, (name, values) in enumerate(zip(path["names"], path["coefficients"], strict=True))
    ]
    curve = told["curve"]
    mark = curve["penalties"][curve["chosen"]] if curve else None
    chart = line_chart(
        lines, "penalty (smaller to the right)", "standardised coefficient",
        log_x=True, reverse=True, mark=mark, legend=True,
    )  # fmt: skip
    return (
        f'<h2>Path</h2><p class="soft">Coefficients as the penalty falls; the largest '
        f"{len(lines)}.</p>{chart}"
    )


def _comparison(told: dict[str, Any]) -> str:
    rows = told.get("comparison")
    if not rows:
        why = told.get("not_compared")
        title = "<h2>Compared with averaging and with each site alone</h2>"
        return f"{title}<p class='soft'>Left out: {escape(why)}.</p>" if why else ""
    cells = [
        [
            row["name"],
            "–" if row["mse"] is None else f"{number(row['mse'], 4)} ± {number(row['se'], 2)}",
            str(row["active"]),
            "–" if row["above"] is None else f"{100 * row['above']:.3g}%",
            bytes_of(row["sent"]) if row["sent"] else "nothing",
        ]
        for row in rows
    ]
    head = ["", "held-out error", "columns", "objective above the pooled Lasso's", "sent by a site"]
    return (
        "<h2>Compared with averaging and with each site alone</h2><p class='soft'>All trained on "
        "the same rows and judged on the same held-out rows of all sites (± one standard error). "
        "Each site alone chose its own penalty where it could. The objective is the pooled Lasso's "
        "at the penalty of the path; an adaptive or refitted model is not its minimum.</p>"
        + table(head, cells, own=0)
    )


def _stability(told: dict[str, Any]) -> str:
    rows = told.get("stability")
    if not rows:
        return ""
    chart = bar_chart(
        [row["name"] + ("" if row["selected"] else " (not used)") for row in rows[:_SHOWN]],
        [row["share"] for row in rows[:_SHOWN]],
        [f"{row['share']:.0%}" for row in rows[:_SHOWN]],
    )
    return (
        "<h2>Would other rows select the same columns?</h2><p class='soft'>Share of random halves "
        f"of the rows, at the same penalty, that select each column.</p>{chart}"
    )


def _sent(told: dict[str, Any]) -> str:
    extra = told.get("examination_sent")
    head = ["site", "rows", *_KINDS.values(), "scalars", "in all"]
    head += ["for this card"] if extra else []
    cells = []
    for site in told["sites"]:
        whole = sum(site["sent"].values())
        vectors = [site["sent"].get(kind, 0) for kind in _KINDS]
        counts = [*vectors, whole - sum(vectors), whole]
        counts += [extra.get(site["name"], 0)] if extra else []
        cells.append([site["name"], f"{site['rows']:,}", *map(bytes_of, counts)])
    return (
        "<h2>What each site sent</h2><p class='soft'>Counted from the messages, eight bytes a "
        f"number. Comparisons and subsamples were asked for apart.</p>{table(head, cells)}"
    )


def _settings(told: dict[str, Any]) -> str:
    settings = {k: v for k, v in told["settings"].items() if v is not None}
    if "cv" in settings:
        settings.pop("validation", None)
    rows = [[name, str(value)] for name, value in settings.items()]
    rows += [["procedure", told["procedure"]], ["missing values", told["missing"]]]
    rows += [["fedlasso", told["fedlasso"]]]
    return f"<h2>Settings</h2>{table(['setting', 'value'], rows)}"
