"""Users' files as sites: read, matched by column name, encoded alike at every site."""

from fedlasso.tables.columns import (
    Column,
    Schema,
    agree,
    encode_file,
    encode_rows,
    kind_of,
    to_numbers,
)
from fedlasso.tables.files import File
from fedlasso.tables.levels import (
    MIN_LEVEL,
    OTHER,
    agree_levels,
    common_levels,
    has_others,
    union_levels,
)

__all__ = [
    "MIN_LEVEL",
    "OTHER",
    "Column",
    "File",
    "Schema",
    "agree",
    "agree_levels",
    "common_levels",
    "encode_file",
    "encode_rows",
    "has_others",
    "kind_of",
    "to_numbers",
    "union_levels",
]
