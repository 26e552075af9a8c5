"""The errors that users see."""


class FedLassoError(ValueError):
    """Something a user can put right; the message says which site, which column, what to do.

    Examples
    --------
    >>> from fedlasso import FedLassoError, find_procedure
    >>> try:
    ...     find_procedure("Sekant")
    ... except FedLassoError as error:
    ...     print(error)
    no procedure is called 'Sekant'; did you mean 'Secant'?
    """


class Stopped(FedLassoError):
    """The fit stands still, and it is no refusal: to ask something else instead would not help."""


class Interrupted(Stopped):
    """Sites or server are away; what was answered is kept, and the fit can go on later."""
