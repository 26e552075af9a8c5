"""Analysts' files as sites: columns matched by name, and encoded alike at every site."""

from fedlasso.tables.columns import Column as Column
from fedlasso.tables.columns import Encoded as Encoded
from fedlasso.tables.columns import Schema as Schema
from fedlasso.tables.columns import agree as agree
from fedlasso.tables.columns import encode_file as encode_file
from fedlasso.tables.columns import encode_rows as encode_rows
from fedlasso.tables.columns import kind_of as kind_of
from fedlasso.tables.columns import read_outcome as read_outcome
from fedlasso.tables.columns import to_numbers as to_numbers
from fedlasso.tables.files import File as File
from fedlasso.tables.files import columns_of as columns_of
from fedlasso.tables.formats import KINDS as KINDS
from fedlasso.tables.formats import check_file as check_file
from fedlasso.tables.formats import stem_of as stem_of
from fedlasso.tables.frames import Frame as Frame
from fedlasso.tables.frames import holds_measurements as holds_measurements
from fedlasso.tables.frames import is_frame as is_frame
from fedlasso.tables.frames import to_arrow as to_arrow
from fedlasso.tables.targets import Outcome as Outcome
from fedlasso.tables.targets import Responses as Responses
from fedlasso.tables.text_columns import MIN_LEVEL as MIN_LEVEL
from fedlasso.tables.text_columns import OTHER as OTHER
from fedlasso.tables.text_columns import agree_levels as agree_levels
from fedlasso.tables.text_columns import common_levels as common_levels
from fedlasso.tables.text_columns import count_others as count_others
from fedlasso.tables.text_columns import union_levels as union_levels
