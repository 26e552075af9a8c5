"""Write docs/api.md from the docstrings of every public name: python tools/write_api.py."""

import inspect
import re
from pathlib import Path

import fedlasso

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
INTRODUCTION = """# Every public name

Made by `python tools/write_api.py` from the docstrings, whose examples run in `make test`. What is
not listed here may change without notice.
"""
KINDS = {
    "Fit a model": (
        "fit", "fit_for", "FederatedLasso", "FederatedLogisticLasso", "FederatedPoissonLasso",
        "FederatedCoxLasso", "certify", "open_evidence",
    ),
    "Sites": ("Site", "InProcess", "Federation", "Ledger"),
    "What comes back": (
        "Fit", "PathPoint", "Certificate", "Status", "FedLassoError", "FedLassoWarning",
    ),
    "Procedures": ("REGISTRY", "find_procedure", "Procedure", "Problem", "State"),
    "Losses, penalties, designs": ("Loss", "Penalty", "L1", "Design"),
    "Questions": ("Request", "Reply", "Disclosure"),
}  # fmt: skip


def write_page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for title, names in KINDS.items():
        parts.append(f"## {title}\n")
        parts += [describe(name) for name in names]
    return "\n".join(parts)


def describe(name: str) -> str:
    """Return one public name with its signature and its docstring."""
    thing = getattr(fedlasso, name)
    if name == "REGISTRY":
        listed = "\n".join(
            f"| `{known}` | {summary(procedure)} |" for known, procedure in thing.items()
        )
        return (
            f"### REGISTRY\n\nProcedures by name.\n\n| name | what it is |\n|---|---|\n{listed}\n"
        )
    text = inspect.getdoc(thing) or ""
    head, *sections = re.split(r"\n(?=[A-Z]\w+\n-+\n)", text)
    told = [
        f"### {name}\n",
        f"```text\n{name}{signature(thing)}\n```\n",
        f"{head.strip().replace('``', '`')}\n",
    ]
    for section in sections:
        title, _, body = section.partition("\n")
        body = body.partition("\n")[2].strip("\n")
        shown = f"```python\n{body}\n```" if title == "Examples" else list_terms(body)
        told.append(f"**{title}**\n\n{shown}\n")
    return "\n".join(told)


def list_terms(body: str) -> str:
    """Return what is `name : text`, with more text indented below, as a list.

    Where the text below is a sentence of its own, the text beside the name is a type. Names that
    share a text may go on over several lines.
    """
    lines: list[str] = []
    body = re.sub(r",\n(?=\w)", ", ", body)
    for line in body.replace("``", "`").splitlines():
        name, colon, text = line.partition(" : ")
        more = line.strip()
        if colon and not line.startswith(" "):
            names = name.replace(", ", "`, `")
            lines.append(f"- `{names}`: {text}")
        elif line.startswith(" ") and more[:1].isupper() and lines[-1].startswith("- "):
            name, _, text = lines[-1].partition(": ")
            lines[-1:] = [f"{name} ({text}):", f"  {more}"]
        else:
            lines.append(f"  {more}" if line.startswith(" ") else line)
    return "\n".join(lines)


def signature(thing: object) -> str:
    """Return the arguments, without their types, which the docstring explains in words."""
    if isinstance(thing, type) and issubclass(thing, BaseException | fedlasso.Federation):
        return "" if inspect.isabstract(thing) or issubclass(thing, BaseException) else "(...)"
    try:
        parameters = inspect.signature(thing).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return str(inspect.Signature(plain))


def summary(thing: object) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0].replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
    print(f"wrote {PAGE}")
