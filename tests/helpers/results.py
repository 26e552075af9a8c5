"""Parts of a fit that not every fit has, for tests of fits that do."""

from fedlasso.fitting import Fit
from fedlasso.fitting.validation import Curve, Validation
from fedlasso.numerics import Certificate


def certificate_of(fit: Fit) -> Certificate:
    """The certificate of a fit that was certified."""
    assert fit.certificate is not None
    return fit.certificate


def validation_of(fit: Fit) -> Validation:
    """Errors of the candidates, where held-out rows have chosen."""
    assert fit.validation is not None
    return fit.validation


def curve_of(fit: Fit) -> Curve:
    """Held-out errors along the penalties, where one was chosen."""
    assert fit.curve is not None
    return fit.curve
