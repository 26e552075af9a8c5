"""Users' files as sites: read, matched by column name, encoded alike at every site."""

from fedlasso.tables.columns import (
    Column,
    Encoded,
    Schema,
    agree,
    encode_file,
    encode_rows,
    kind_of,
    read_outcome,
    to_numbers,
)
from fedlasso.tables.files import File, columns_of
from fedlasso.tables.formats import KINDS, check_file, stem_of
from fedlasso.tables.levels import (
    MIN_LEVEL,
    OTHER,
    agree_levels,
    common_levels,
    has_others,
    union_levels,
)
from fedlasso.tables.outcomes import Outcome, Responses

__all__ = [
    "KINDS",
    "MIN_LEVEL",
    "OTHER",
    "Column",
    "Encoded",
    "File",
    "Outcome",
    "Responses",
    "Schema",
    "agree",
    "agree_levels",
    "check_file",
    "columns_of",
    "common_levels",
    "encode_file",
    "encode_rows",
    "has_others",
    "kind_of",
    "read_outcome",
    "stem_of",
    "to_numbers",
    "union_levels",
]
