"""A fitted model as a document: made, told, compared, written and read."""

from fedlasso.models.card import draw_card
from fedlasso.models.describing import describe_model
from fedlasso.models.diagnosis import diagnose, draw_diagnosis
from fedlasso.models.document import ModelDocument, read_document
from fedlasso.models.estimates import ColumnEstimate, SiteEstimate, TrustDocument, tell_trust
from fedlasso.models.fitted import fit_model
from fedlasso.models.folder import FitPlan, ModelFolder, read_plan, write_model, write_plan
from fedlasso.models.making import make_model
from fedlasso.models.model import Model
from fedlasso.models.predicting import Predictions, predict_file
from fedlasso.models.settings import Range, Settings
from fedlasso.models.sources import FileSource, NetworkSource, open_sites

__all__ = [
    "ColumnEstimate",
    "FileSource",
    "FitPlan",
    "Model",
    "ModelDocument",
    "ModelFolder",
    "NetworkSource",
    "Predictions",
    "Range",
    "Settings",
    "SiteEstimate",
    "TrustDocument",
    "describe_model",
    "diagnose",
    "draw_card",
    "draw_diagnosis",
    "fit_model",
    "make_model",
    "open_sites",
    "predict_file",
    "read_document",
    "read_plan",
    "tell_trust",
    "write_model",
    "write_plan",
]
