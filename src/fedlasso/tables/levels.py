"""Text columns: which levels count, and texts that stand among numbers by mistake.

A site tells the levels that it has often enough; all that any site tells are agreed on, and rows at
another level are pooled in one more. Files and sites across a network follow the same rule.
"""

from collections.abc import Sequence
from typing import Any

from fedlasso.errors import FedLassoError

# The level of rows whose own level is rare everywhere.
OTHER = "(other)"
# A level with fewer rows at every site is rare, unless the analyst says otherwise.
MIN_LEVEL = 10
# A text column with more levels is a name of rows rather than a measurement.
MOST_LEVELS = 200


def common_levels(values: Any, min_level: int = MIN_LEVEL) -> tuple[str, ...]:
    """Levels that one site may tell: those with at least `min_level` of its rows, sorted."""
    counts = values.drop_null().value_counts().to_pylist()
    return tuple(sorted(str(c["values"]) for c in counts if c["counts"] >= min_level))


def count_others(values: Any, levels: Sequence[str]) -> int:
    """Rows at none of these levels; a missing value is at no level."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = values.drop_null().cast(pa.string())
    known = pc.is_in(texts, value_set=pa.array(levels, pa.string()))
    return len(texts) - (pc.sum(known).as_py() or 0)


def has_others(values: Any, levels: Sequence[str]) -> bool:
    """Whether one site has rows at none of these levels."""
    return count_others(values, levels) > 0


def union_levels(per_site: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Levels that any site has often enough, sorted; each site is then asked for others."""
    return tuple(sorted({level for levels in per_site for level in levels}))


def agree_levels(
    name: str, per_site: Sequence[Sequence[str]], others: bool, min_level: int = MIN_LEVEL
) -> tuple[str, ...]:
    """Levels of a text column at every site: all that were told, sorted, and the others last.

    `per_site` has the `common_levels` of each site, in any order; `others` is whether any site
    `has_others` beside the `union_levels` of them.
    """
    levels = tuple(level for level in union_levels(per_site) if level != OTHER)
    if others and not levels:
        raise FedLassoError(
            f"text column {name!r}: no level has {min_level} rows or more at any site; group the "
            "levels, lower --min-level, or --drop it if it names rows"
        )
    if len(levels) > MOST_LEVELS:
        raise FedLassoError(
            f"text column {name!r} has {len(levels)} levels; group them, raise --min-level, or "
            "--drop it if it names rows"
        )
    if others or any(OTHER in told for told in per_site):
        return (*levels, OTHER)
    return levels
