"""What studies conclude in sentences, by the study's name; most leave it to their tables."""

from fedlasso.study.family_summary import find_promises
from fedlasso.study.real_summary import find_verdict
from fedlasso.study.trust_summary import find_promises_kept

CONCLUSIONS = {"real": find_verdict, "families": find_promises, "trust": find_promises_kept}
