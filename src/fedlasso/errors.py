"""The errors that users see; code handles them by their type, never by their text."""

from enum import StrEnum


class FedLassoError(ValueError):
    """An error that a user can correct; the message names the site, the column and the remedy.

    Examples
    --------
    >>> from fedlasso import FedLassoError, find_procedure
    >>> try:
    ...     find_procedure("Sekant")
    ... except FedLassoError as error:
    ...     print(error)
    no procedure is called 'Sekant'; did you mean 'Secant'?
    """

    @property
    def unquoted(self) -> str:
        """The message without values or counts of records; only this leaves a site."""
        return str(self)


class FedLassoWarning(UserWarning):
    """A doubt about a fit that Python code can act on; the command line prints the same text.

    Examples
    --------
    >>> import warnings
    >>> from fedlasso import FedLassoWarning
    >>> warnings.simplefilter("ignore", FedLassoWarning)
    """


class RefusalCode(StrEnum):
    """The reason of a refusal, if the coordinator can act on it; it is sent with the refusal."""

    OTHER = ""
    FEWER_FOLDS = "fewer folds"
    NO_MOMENTS = "no second moments"

    @classmethod
    def read(cls, text: str) -> "RefusalCode":
        """Return the code of a refusal; unknown codes of other versions become `OTHER`."""
        return cls(text) if text in list(cls) else cls.OTHER


class Refused(FedLassoError):
    """The `sites` refuse to answer a question, for the reason `code`; they may answer another."""

    def __init__(
        self, text: str, sites: tuple[str, ...] = (), code: RefusalCode = RefusalCode.OTHER
    ) -> None:
        super().__init__(text)
        self.sites = sites
        self.code = code


class QuotesRecords(FedLassoError):
    """An error whose message has a value or a count of records, for the owner of the file."""

    def __init__(self, text: str, unquoted: str) -> None:
        super().__init__(text, unquoted)

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def unquoted(self) -> str:
        return str(self.args[1])


class CannotFit(FedLassoError):
    """The rows do not allow this fit: too few, all alike, or the procedure diverges."""


class SameResponse(CannotFit):
    """All rows have the same response."""


class Stopped(FedLassoError):
    """The fit cannot continue; another question would not help."""


class Interrupted(Stopped):
    """Sites or server are unavailable; answers so far are kept, and the fit can be resumed."""


def code_of(error: BaseException) -> RefusalCode:
    """Return the code of a refusal, or `OTHER` for any other error."""
    return error.code if isinstance(error, Refused) else RefusalCode.OTHER
