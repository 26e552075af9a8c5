r"""Averaged DANE: every site solves the shifted problem, and the solutions are averaged.

Shamir, Srebro and Zhang (2014), with the l1 penalty inside the local problems:

.. math::
    x_j = \arg\min_b f_j(b) + \langle \nabla f(b_t) - \nabla f_j(b_t), b \rangle
      + \lambda |b|_1 + \tfrac{\tau}{2} |b - b_t|^2, \qquad
    b_{t+1} = \sum_j w_j x_j.

Rounds alternate between a pooled gradient and the solves: an iteration uploads 2p numbers from
every site. Dampings and the safeguard against a rising objective are those of
`fedlasso.procedures.csl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedlasso.procedures.csl import CSL
from fedlasso.procedures.procedure import Problem


@dataclass(frozen=True)
class DANE(CSL):
    """Averaged surrogate fits of all sites; ``epochs`` is not used."""

    name: ClassVar[str] = "DANE"

    def solvers(self, problem: Problem) -> tuple[str, ...]:
        return problem.sites
