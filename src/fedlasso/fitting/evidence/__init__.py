"""Evidence: what the server knows of the pooled objective, by second moments or by gradients."""

from fedlasso.fitting.evidence.evidence import Evidence as Evidence
from fedlasso.fitting.evidence.evidence import PathPoint as PathPoint
from fedlasso.fitting.evidence.evidence import Wanted as Wanted
from fedlasso.fitting.evidence.gradient_evidence import GradientEvidence as GradientEvidence
from fedlasso.fitting.evidence.gradient_evidence import SecantEvidence as SecantEvidence
from fedlasso.fitting.evidence.gradient_evidence import open_evidence as open_evidence
from fedlasso.fitting.evidence.moment_evidence import Folded as Folded
from fedlasso.fitting.evidence.split_evidence import SplitEvidence as SplitEvidence
