"""The one place where a model is made, whether its sites are files or far away.

What its card says beside the model (comparisons, stability, warnings) is asked through the
federation as well, and told apart from the fit's own cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from fedlasso.errors import FedLassoError, Stopped
from fedlasso.federation import Around, Federation, Ledger, Reply, Request, metered
from fedlasso.fitting.by_moments import nested_error
from fedlasso.models.assessment import assess
from fedlasso.models.comparing import (
    ask_site_errors,
    compare_models,
    measure_stability,
    walk_to_penalty,
)
from fedlasso.models.document import NESTED, Missing, ModelDocument, Revealed
from fedlasso.models.fitted import fit_model
from fedlasso.models.inferring import weigh
from fedlasso.models.model import Model
from fedlasso.models.settings import SELECTED, Settings
from fedlasso.models.telling import tell_error, tell_model
from fedlasso.models.warning import (
    warn_of_comparison,
    warn_of_fit,
    warn_of_selection,
    warn_of_sites,
)
from fedlasso.tables import Schema

# Sites' own fits and averaging work on columns: beyond this many numbers they are left out.
LARGEST = 40_000_000
# Folds of a nested cross-validation: without one of them there must be two to choose by.
FEWEST_FOLDS = 3
# Folds times columns beyond which choosing once more without each fold takes minutes.
LARGEST_NESTED = 8000
R = TypeVar("R", bound=Reply)


class _Noted(Around):
    """A federation that notes what the questions which it passes on reveal."""

    def __init__(self, inner: Federation) -> None:
        super().__init__(inner)
        self.revealed: dict[str, None] = {}

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        self.revealed[request.discloses.reveals] = None
        return self.inner.replies(request)


def make_model(
    federation: Federation,
    settings: Settings,
    schema: Schema,
    *,
    missing: Missing = "refuse",
    compare: bool = False,
    tolerant: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> ModelDocument:
    """Fit a model across the sites of a federation, and tell all that there is to know about it.

    Parameters
    ----------
    federation : the sites
    settings : what to fit
    schema : what the columns are
    missing : how missing values were dealt with
    compare : compare the model with others afterwards, which costs messages of their own
    tolerant : a site's refusal of a question for the comparison is told, and the model stands
    say : called when a stage is over
    """
    noted = _Noted(federation)
    bounds = {
        own: ends for name, ends in settings.bounds.items() for own in schema.encode_names([name])
    }
    settings = replace(
        settings,
        keep=schema.encode_names(settings.keep),
        intervals=(
            *schema.encode_names(settings.named),
            *(name for name in settings.intervals if name == SELECTED),
        ),
        bounds=bounds,
    )
    model = fit_model(noted, settings, say)
    document = tell_model(model, schema, missing)
    revealed = Revealed(tuple(noted.revealed))
    say("fitted")
    document = _expect_error(model, document)
    document = replace(document, warnings=tuple(warn_of_fit(model, schema.target)))
    if compare:
        noted = _Noted(federation)
        ledger = metered(noted)
        before = ledger.costs
        if model.trust is not None and model.trust.worth is not None:
            ledger = weigh(ledger, model.trust.worth)
        document = _Examination(ledger, model, document, tolerant).run()
        costs = ledger.costs - before
        sent = {site: costs.total(None, site).upload for site in costs.sites}
        document = replace(document, examination_sent=sent)
        revealed = replace(revealed, card=tuple(noted.revealed))
        say("examined for its card")
    return replace(document, revealed=revealed)


def _expect_error(model: Model, document: ModelDocument) -> ModelDocument:
    """The document with the error of the whole way of choosing, where the server can tell it."""
    if model.folded is None or model.discovers:
        return document
    folds = len(model.folded.folds)
    if folds < FEWEST_FOLDS or folds * len(model.columns) > LARGEST_NESTED:
        return document
    settings = model.settings
    nested = nested_error(model.folded, settings.aim, settings.rule_in_force)
    error = tell_error(model, float(nested.error[0]), float(nested.se[0]), NESTED)
    return replace(document, error=error)


class _Examination:
    """A document that is added to, question by question; a refusal may leave the rest standing."""

    def __init__(self, ledger: Ledger, model: Model, document: ModelDocument, tolerant: bool):
        self.ledger = ledger
        self.model = model
        self.document = document
        self.tolerant = tolerant

    def run(self) -> ModelDocument:
        """Return the document with path, errors per site, comparison, stability and warnings."""
        model = self.model
        if model.curve is None and model.penalty > 0 and model.settings.plain:
            self._attempt(self._walk)
        refusal = self._attempt(self._ask_sites)
        self.document = replace(self.document, no_site_errors=refusal)
        if not model.settings.plain:
            # Where rows are too few to judge by, the model stands all the same.
            refused = self._attempt(self._assess, tolerant=True)
            self.document = replace(self.document, not_assessed=refused)
            if model.penalty > 0 and model.scaling.rows * len(model.columns) <= LARGEST:
                self._attempt(self._measure_stability, tolerant=True)
            why: str | None = (
                "only linear models with one penalty for all columns, and without bounds, are "
                "compared with averaging and with sites alone"
            )
        elif model.penalty == 0:
            why = "the penalty is zero"
        elif model.scaling.rows * len(model.columns) > LARGEST:
            why = "sites' own fits on so many numbers take too long"
        else:
            why = self._attempt(self._compare)
        self.document = replace(self.document, not_compared=why)
        return self.document

    def _attempt(self, step: Callable[[], None], tolerant: bool = False) -> str | None:
        """Take a step; return why a site refused it, where that is tolerated."""
        try:
            step()
        except Stopped:
            raise
        except FedLassoError as error:
            if not (self.tolerant or tolerant):
                raise
            return str(error)
        return None

    def _warn(self, warnings: list[str]) -> None:
        known = self.document.warnings or ()
        self.document = replace(self.document, warnings=(*known, *warnings))

    def _walk(self) -> None:
        self.document = replace(self.document, path=walk_to_penalty(self.ledger, self.model))

    def _ask_sites(self) -> None:
        errors = ask_site_errors(self.ledger, self.model)
        self.document = replace(self.document, site_errors=errors)
        self._warn(warn_of_sites(errors))

    def _assess(self) -> None:
        self.document = replace(self.document, assessment=assess(self.ledger, self.model))

    def _compare(self) -> None:
        comparison, alone = compare_models(self.ledger, self.model)
        self.document = replace(self.document, comparison=comparison)
        self._warn(warn_of_comparison(self.model, comparison, alone))
        self._measure_stability()

    def _measure_stability(self) -> None:
        stability = measure_stability(self.ledger, self.model)
        self.document = replace(self.document, stability=stability)
        self._warn(warn_of_selection(stability))
