"""Users' files as sites: read, matched by column name, encoded alike at every site."""

from fedlasso.tables.encode import Encoded, encode_file, encode_rows, refuse_missing, to_numbers
from fedlasso.tables.files import File
from fedlasso.tables.schema import Column, Description, Schema, agree, describe, kind_of

__all__ = [
    "Column",
    "Description",
    "Encoded",
    "File",
    "Schema",
    "agree",
    "describe",
    "encode_file",
    "encode_rows",
    "kind_of",
    "refuse_missing",
    "to_numbers",
]
