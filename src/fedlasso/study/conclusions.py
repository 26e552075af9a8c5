"""What studies conclude in sentences, by the study's name; most leave it to their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fedlasso.study.family_summary import find_promises
from fedlasso.study.trust_summary import find_promises_kept
from fedlasso.study.verdict import find_verdict

if TYPE_CHECKING:
    import pandas as pd

CONCLUSIONS: dict[str, Callable[[pd.DataFrame], list[str]]] = {
    "real": find_verdict,
    "families": find_promises,
    "trust": find_promises_kept,
}
