"""Numbers for people: no powers of ten where a few digits do."""

import math

from numpy import format_float_positional

# A larger ratio says only that the unit of a column is far wider than its values.
MOST_RATIO = 1000.0
# No reader tells smaller p-values apart, and no approximation is as good as that.
LEAST_P = 1e-4


def bytes_of(count: float) -> str:
    """Bytes for people."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def ratio_of(value: float, digits: int = 4) -> str:
    """A ratio of odds, rates or hazards for people: beyond a thousandfold only the bound."""
    if value > MOST_RATIO:
        return f">{MOST_RATIO:.0f}"
    if value < 1 / MOST_RATIO:
        return f"<{1 / MOST_RATIO:g}"
    return number(value, digits)


def p_value(value: float) -> str:
    """A p-value for people: of very small ones only the bound."""
    return f"<{LEAST_P:.4f}" if value < LEAST_P else number(value, 2)


def percent(share: float, digits: int = 3, least: float = 1e-5) -> str:
    """A share in per cent for people: no powers of ten, and of shares below `least` that bound."""
    if share < least:
        return f"less than {percent(least, digits, least)}"
    rounded = float(f"{100 * share:.{digits}g}")
    return f"{format_float_positional(rounded, trim='-')}%"


def number(value: float, digits: int = 3) -> str:
    """A number for people: no powers of ten where a few digits do."""
    if not math.isfinite(value):
        return "–"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}" if digits <= 3 else f"{value:.1f}"
    return f"{value:.{digits}g}"
