"""Users' files as sites: read, matched by column name, encoded alike at every site."""

from fedlasso.tables.columns import (
    Column,
    Encoded,
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
    "Encoded",
    "File",
    "Schema",
    "agree",
    "encode_file",
    "encode_rows",
    "kind_of",
    "to_numbers",
]
