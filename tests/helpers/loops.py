"""Loops inside one test: a property over many draws counts as one test, not as hundreds."""

import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path

Test = Callable[..., None]


def loop(name: str, values: Iterable[object]) -> Callable[[Test], Test]:
    """Call a test once for every value of one argument, each time with a `tmp_path` of its own.

    A failure names the value.
    """
    listed = list(values)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def looped(**given: object) -> None:
            for place, value in enumerate(listed):
                arguments = given | {name: value}
                if isinstance(folder := given.get("tmp_path"), Path):
                    arguments["tmp_path"] = folder / str(place)
                    (folder / str(place)).mkdir()
                try:
                    test(**arguments)
                except Exception as error:
                    error.add_note(f"{name} = {value!r}")
                    raise

        signature = inspect.signature(test)
        rest = [each for each in signature.parameters.values() if each.name != name]
        looped.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return looped

    return decorate
