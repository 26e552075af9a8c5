"""Small sites whose cards tests draw, and the cells of a card's tables."""

import re

import numpy as np

from fedlasso import InProcess, Site
from fedlasso.tables import Schema
from fedlasso.tables.columns import Column

COLUMNS = tuple(f"a_rather_long_name_of_a_column_{k}" for k in range(4))
SCHEMA = Schema("y", tuple(Column(name, "number") for name in COLUMNS))


def draw_sites(kind: str, loss: str = "quadratic") -> InProcess:
    rng = np.random.default_rng(0)
    sites = []
    for j in range(3):
        X = rng.standard_normal((30, 4)) if kind != "constant columns" else np.ones((30, 4))
        y = X[:, 0] + 0.5 * rng.standard_normal(30)
        if kind == "constant target":
            y = np.full(30, 2.5)
        if kind == "0/1":
            y = (y > 0).astype(np.float64)
        sites.append(Site(f"s{j}", X, y, columns=COLUMNS, raw=True, loss=loss))
    return InProcess(sites)


def section_of(card: str, title: str) -> str:
    """The HTML under a heading."""
    return card.split(f"<h2>{title}</h2>")[1].split("<h2>")[0]


def tables_of(section: str) -> list[list[list[str]]]:
    """The cells of the tables of a section as texts, heads included."""
    tables = []
    for table in re.findall("<table.*?</table>", section):
        lines = re.findall("<tr.*?</tr>", table)
        cells = [re.findall("<t[hd].*?</t[hd]>", line) for line in lines]
        tables.append([[text_of(cell) for cell in line] for line in cells])
    return tables


def cells_of(card: str, title: str) -> list[list[str]]:
    """The cells of the first table under a heading."""
    return tables_of(section_of(card, title))[0]


def text_of(cell: str) -> str:
    """The text of some HTML."""
    plain = re.sub("<[^>]*>", "", cell).replace("\N{NO-BREAK SPACE}", " ")
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
