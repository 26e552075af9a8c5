"""The errors that users see; what to do about one is decided by its type, never by its text."""

from enum import StrEnum


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

    @property
    def unquoted(self) -> str:
        """The message without what it quotes of the records, which is what a site sends."""
        return str(self)


class RefusalCode(StrEnum):
    """Why a site declines, as far as whoever asked can act on it; it travels with the refusal."""

    OTHER = ""
    FEWER_FOLDS = "fewer folds"

    @classmethod
    def read(cls, text: str) -> "RefusalCode":
        """Return the code that came with a refusal; one of another version is as good as none."""
        return cls(text) if text in list(cls) else cls.OTHER


class Refused(FedLassoError):
    """A site declines to answer a question; it may answer another one.

    Attributes
    ----------
    sites : names of the sites that decline
    code : why, as far as it helps to choose another question
    """

    def __init__(
        self, text: str, sites: tuple[str, ...] = (), code: RefusalCode = RefusalCode.OTHER
    ) -> None:
        super().__init__(text)
        self.sites = sites
        self.code = code


class QuotesRecords(FedLassoError):
    """An error whose message quotes a record, for whoever has the file."""

    def __init__(self, text: str, unquoted: str) -> None:
        super().__init__(text, unquoted)

    def __str__(self) -> str:
        return str(self.args[0])

    @property
    def unquoted(self) -> str:
        """The message without the record."""
        return str(self.args[1])


class CannotFit(FedLassoError):
    """The rows do not allow this fit: too few, all alike, or a procedure that diverges on them."""


class Stopped(FedLassoError):
    """The fit cannot continue; asking something else instead would not help."""


class Interrupted(Stopped):
    """Sites or server are away; what was answered is kept, and the fit can go on later."""


def code_of(error: BaseException) -> RefusalCode:
    """Return the code of a refusal; any other error has none of its own."""
    return error.code if isinstance(error, Refused) else RefusalCode.OTHER
