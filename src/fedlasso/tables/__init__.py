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

__all__ = [
    "Column",
    "File",
    "Schema",
    "agree",
    "encode_file",
    "encode_rows",
    "kind_of",
    "to_numbers",
]
