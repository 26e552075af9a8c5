"""A site: its records, their views and splits, its memory, and the questions it answers."""

from fedlasso.sites.assessing import GroupsAt, PairsAt, RecalibrationAt, ScoreRanges, ScoresAt
from fedlasso.sites.baseline import BaselineAt, EffectAt
from fedlasso.sites.draws import FEWER_FOLDS, Draw
from fedlasso.sites.held_out import ErrorSums, HeldOutErrors, HeldOutSums, ValidationErrors
from fedlasso.sites.inference import CLEARLY, LEVELS, NoiseAbove, SiteSlopesAlong, SlopesAlong
from fedlasso.sites.memory import Memory
from fedlasso.sites.moments import FoldMoments, count_numbers
from fedlasso.sites.parts import CurvatureAt, PartAt, places
from fedlasso.sites.questions import (
    DualAt,
    ErrorAt,
    FitAt,
    GradientAt,
    GradientSum,
    LargestEigenvalue,
    LossAt,
    MeanEigenvalue,
    Penalised,
    ResponseSquares,
    Rows,
    WeightedEigenvalue,
    parts_of,
)
from fedlasso.sites.rows import check_size, check_two_rows, deal, folds, folds_in, halves, holdout
from fedlasso.sites.site import INTERCEPT, Site, View
from fedlasso.sites.subset import SubsetMoments, WeighedMoments, count_products
from fedlasso.sites.views import Scaling, Standardise, Viewed, standardise
from fedlasso.sites.worth import Weighed

__all__ = [
    "CLEARLY",
    "FEWER_FOLDS",
    "INTERCEPT",
    "LEVELS",
    "BaselineAt",
    "CurvatureAt",
    "Draw",
    "DualAt",
    "EffectAt",
    "ErrorAt",
    "ErrorSums",
    "FitAt",
    "FoldMoments",
    "GradientAt",
    "GradientSum",
    "GroupsAt",
    "HeldOutErrors",
    "HeldOutSums",
    "LargestEigenvalue",
    "LossAt",
    "MeanEigenvalue",
    "Memory",
    "NoiseAbove",
    "PairsAt",
    "PartAt",
    "Penalised",
    "RecalibrationAt",
    "ResponseSquares",
    "Rows",
    "Scaling",
    "ScoreRanges",
    "ScoresAt",
    "Site",
    "SiteSlopesAlong",
    "SlopesAlong",
    "Standardise",
    "SubsetMoments",
    "ValidationErrors",
    "View",
    "Viewed",
    "Weighed",
    "WeighedMoments",
    "WeightedEigenvalue",
    "check_size",
    "check_two_rows",
    "count_numbers",
    "count_products",
    "deal",
    "folds",
    "folds_in",
    "halves",
    "holdout",
    "parts_of",
    "places",
    "standardise",
]
