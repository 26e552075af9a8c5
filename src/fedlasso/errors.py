"""The errors that users see."""


class FedLassoError(ValueError):
    """Something a user can put right; the message says which site, which column, what to do."""


class Interrupted(FedLassoError):
    """Sites or server are away; what was answered is kept, and the fit can go on later."""
