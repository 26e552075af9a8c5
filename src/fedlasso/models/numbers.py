"""Numbers and lists of names for readers, without powers of ten where a few digits do."""

import math
from collections.abc import Sequence

from numpy import format_float_positional

from fedlasso.fitting.examination.assessment import Measure

NO_BREAK = "\N{NO-BREAK SPACE}"
# A larger ratio only means that the column's unit is far larger than its values.
MAX_RATIO = 1000.0
# The normal approximation is not accurate enough to distinguish smaller p-values.
MIN_P = 1e-4


def number(value: float, digits: int = 3) -> str:
    """Return a number as text, with a dash where it is not finite."""
    if not math.isfinite(value):
        return "–"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}" if digits <= 3 else f"{value:.1f}"
    return f"{value:.{digits}g}"


def with_error(value: float | None, se: float | None) -> str:
    """Return an estimate with its standard error, or a dash where there is none."""
    if value is None:
        return "–"
    return number(value, 4) + ("" if se is None else f" ± {number(se, 2)}")


def ratio_of(value: float, digits: int = 4) -> str:
    """Return an odds, rate or hazard ratio as text; beyond a thousandfold only the bound."""
    if value > MAX_RATIO:
        return f">{MAX_RATIO:.0f}"
    if value < 1 / MAX_RATIO:
        return f"<{1 / MAX_RATIO:g}"
    return number(value, digits)


def p_value(value: float) -> str:
    """Return a p-value as text; below `MIN_P` only the bound."""
    return f"<{MIN_P:.4f}" if value < MIN_P else number(value, 2)


def percent(fraction: float, digits: int = 3, least: float = 1e-5) -> str:
    """Return a fraction as a percentage; below `least` only that bound."""
    if fraction < least:
        return f"less than {percent(least, digits, least)}"
    rounded = float(f"{100 * fraction:.{digits}g}")
    return f"{format_float_positional(rounded, trim='-')}%"


def bytes_of(count: float) -> str:
    """Return a number of bytes as text, in B, kB, MB or GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def percent_of(fraction: float | None) -> str:
    """Return a fraction as a whole percentage, or a dash where there is none."""
    return "–" if fraction is None else f"{fraction:.0%}"


def interval_of(found: Measure | None, digits: int = 3) -> str:
    """Return a measure with its 95% interval, as far as these are known."""
    if found is None:
        return "–"
    text = f"{found.value:z.{digits}f}"
    if found.low is None or found.high is None:
        return text
    ends = f"{found.low:z.{digits}f}{NO_BREAK}to{NO_BREAK}{found.high:z.{digits}f}"
    return f"{text} ({ends})"


def counted(count: int, name: str) -> str:
    """Return a number of things, such as "1 site" or "1,204 rows"."""
    return f"{count:,} {name}{'s' * (count != 1)}"


def capital(text: str) -> str:
    """Return a text with a capital letter first."""
    return text[:1].upper() + text[1:]
