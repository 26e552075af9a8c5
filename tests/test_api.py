"""The public interface: every name has a docstring with an example that runs, and a page."""

import doctest
import inspect
import runpy
from pathlib import Path

import pytest

import fedlasso

ROOT = Path(__file__).parent.parent
NAMES = [name for name in fedlasso.__all__ if name != "REGISTRY"]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example_that_runs(name: str) -> None:
    thing = getattr(fedlasso, name)
    text = inspect.getdoc(thing) or ""
    examples = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert examples.examples, f"{name} has no example"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(examples, out=said.append)
    assert not runner.summarize(verbose=False).failed, "".join(said)


def test_the_page_is_what_the_docstrings_say() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "write_api.py"))
    listed = [name for names in tool["KINDS"].values() for name in names]
    assert sorted(listed) == sorted(fedlasso.__all__)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == tool["write_page"](), "run python tools/write_api.py"


def test_every_public_name_is_there_though_it_is_imported_when_used() -> None:
    for name in fedlasso.__all__:
        assert hasattr(fedlasso, name)
        assert name in dir(fedlasso)
    with pytest.raises(AttributeError, match="module 'fedlasso' has no attribute 'Lasso'"):
        fedlasso.Lasso  # noqa: B018
