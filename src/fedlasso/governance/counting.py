"""How many numbers were sent, against how many there are.

Numbers of eight bytes are counted as a fraction of the entries that they are about: rows times
columns. Fewer numbers than entries do not determine the entries.
"""

from collections.abc import Iterable

# Other sites' rows count up to this multiple of a site's own, each: if the others collude with the
# coordinator, a total is about the site's own rows only.
MOST_OF_OTHERS = 1.0


def count_rows(own: int, others: Iterable[int] = ()) -> float:
    """Return the rows that a total is about, other sites' rows up to a multiple of one's own."""
    return own + sum(min(rows, MOST_OF_OTHERS * own) for rows in others)


def fraction_of(numbers: float, rows: float, columns: int) -> float:
    """Return numbers as a fraction of entries, rows times columns."""
    return numbers / max(rows * columns, 1)


def fraction_text(fraction: float) -> str:
    return f"{fraction:.0%}" if fraction >= 0.01 else f"{fraction:.2g}"
