"""Loops inside one test: a property over many draws counts as one test, not as hundreds."""

import functools
import inspect
from collections.abc import Callable, Iterable

Test = Callable[..., None]


def loop(name: str, values: Iterable[object]) -> Callable[[Test], Test]:
    """Call a test once for every value of one of its arguments; a failure names the value."""
    listed = list(values)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def looped(*args: object, **kwargs: object) -> None:
            for value in listed:
                try:
                    test(*args, **kwargs, **{name: value})
                except Exception as error:
                    error.add_note(f"{name} = {value!r}")
                    raise

        signature = inspect.signature(test)
        rest = [each for each in signature.parameters.values() if each.name != name]
        looped.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return looped

    return decorate
