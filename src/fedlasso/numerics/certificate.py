"""The certificate: how far a model can be from the pooled Lasso."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """How far a model can be from the pooled Lasso, known without pooling a record.

    Attributes
    ----------
    objective : F(b), the pooled objective
    gap : pooled duality gap: F(b) is at most this much above the smallest possible value

    Examples
    --------
    >>> from fedlasso import Certificate
    >>> print(Certificate(objective=2.0, gap=0.02))
    at most 1% above the best possible objective
    """

    objective: float
    gap: float

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the best possible objective."""
        best = self.objective - self.gap
        return self.gap / best if best > 0 else (0.0 if self.gap == 0 else float("inf"))

    def __str__(self) -> str:
        return f"at most {100 * self.relative_gap:.2g}% above the best possible objective"
