"""A fitted model as a document: made, told, compared, written and read."""

from fedlasso.models.card import card
from fedlasso.models.compare import examine
from fedlasso.models.diagnosis import diagnose, diagnosis_page
from fedlasso.models.fitted import Model, Settings, fit_model
from fedlasso.models.folder import ModelFolder, predict_file, tell, write_model
from fedlasso.models.sources import Source, open_sites

__all__ = [
    "Model",
    "ModelFolder",
    "Settings",
    "Source",
    "card",
    "diagnose",
    "diagnosis_page",
    "examine",
    "fit_model",
    "open_sites",
    "predict_file",
    "tell",
    "write_model",
]
