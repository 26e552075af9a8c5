"""A fitted model as a document: its inputs, model.json, text and card."""

from fedlasso.models.about import About as About
from fedlasso.models.build import make_document as make_document
from fedlasso.models.build import make_model as make_model
from fedlasso.models.build import with_nested_error as with_nested_error
from fedlasso.models.card import draw_card as draw_card
from fedlasso.models.diagnosis import describe_diagnosis as describe_diagnosis
from fedlasso.models.diagnosis import draw_diagnosis as draw_diagnosis
from fedlasso.models.document import ModelDocument as ModelDocument
from fedlasso.models.document import read_document as read_document
from fedlasso.models.folder import FitPlan as FitPlan
from fedlasso.models.folder import ModelFolder as ModelFolder
from fedlasso.models.folder import read_plan as read_plan
from fedlasso.models.folder import write_model as write_model
from fedlasso.models.folder import write_plan as write_plan
from fedlasso.models.inference_document import to_trust_document as to_trust_document
from fedlasso.models.inputs import FileSource as FileSource
from fedlasso.models.inputs import NetworkSource as NetworkSource
from fedlasso.models.inputs import open_sites as open_sites
from fedlasso.models.predicting import predict_file as predict_file
from fedlasso.models.text import describe_model as describe_model
