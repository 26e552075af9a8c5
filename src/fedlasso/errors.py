"""The one error that users see."""


class FedLassoError(ValueError):
    """Something a user can put right; the message says which site, which column, what to do."""
