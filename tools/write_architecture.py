"""Write docs/architecture.md and .svg from the imports: python tools/write_architecture.py."""

import importlib
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
DRAWING = ROOT / "docs" / "architecture.svg"
# One fit of files, in the order in which the rooms take part.
FLOW = (
    ("cli", "reads the options"),
    ("tables", "reads one file per site and agrees on columns and levels"),
    ("sites", "holds the rows and answers questions about them"),
    ("governance", "checks, records and masks every answer (networks)"),
    ("federation", "encodes messages, adds totals, counts every byte"),
    ("procedures", "decides the next question of a solver"),
    ("numerics", "solves and certifies what the totals determine"),
    ("fitting", "evidence, candidates, tuning, goal: the Fit"),
    ("models", "turns the Fit into a document, a card and text"),
)
ROW = 40
LEFT = 270
BOX = 120
WIDTH = 900
INTRODUCTION = """# Architecture

Made by `python tools/write_architecture.py` from the imports of the source. A test fails when it is
out of date.

A room is a package in `src/fedlasso/`. It imports only rooms above it in the drawing. An arc leads
from a room to a room that it imports; arcs that a chain of other arcs implies are left out. The
numbers follow one `fedlasso fit` of files, from the options to the card.

![Rooms from top to bottom, arcs for imports, and the numbered steps of one fit](architecture.svg)

The federation is the only way to a site's records. The same code runs with sites in this process
and over a network, and gives the same bits.

The R package in `r/` calls the estimators through reticulate; its Python side is one file,
`r/inst/python/fedlasso_r.py`.

## Rooms

| room | contents |
|---|---|
"""


def read_rooms() -> list[str]:
    """Return the rooms, each after those it may import."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    names = [name.strip() for layer in reversed(layers) for name in layer.split("|")]
    rooms = [name.removeprefix("fedlasso.") for name in names]
    return [room for room in rooms if (ROOT / "src" / "fedlasso" / room).is_dir()]


def read_imports(rooms: list[str]) -> set[tuple[str, str]]:
    """Return pairs (importer, imported) of rooms that no chain of other imports implies."""
    graph = grimp.build_graph("fedlasso")
    pairs = Counter(
        (module.split(".")[1], imported.split(".")[1])
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if module.count(".") and imported.count(".")
    )
    direct = {pair for pair in pairs if pair[0] != pair[1] and set(pair) <= set(rooms)}
    reached = {room: {room} for room in rooms}
    for room in rooms:  # imported rooms come first
        for importer, imported in direct:
            if importer == room:
                reached[room] |= reached[imported]
    return {
        (importer, imported)
        for importer, imported in direct
        if not any(
            imported in reached[other]
            for start, other in direct
            if start == importer and other != imported
        )
    }


def draw(rooms: list[str], imports: set[tuple[str, str]]) -> str:
    """Return the drawing: rooms in a column, arcs for imports, the steps of a fit beside them."""
    height = {room: 30 + ROW * place for place, room in enumerate(rooms)}
    steps = {room: (number, text) for number, (room, text) in enumerate(FLOW, start=1)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {30 + ROW * len(rooms)}" '
        'font-family="sans-serif" font-size="15" role="img">',
        "<title>Rooms of fedlasso, their imports, and the steps of one fit</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for importer, imported in sorted(imports, key=lambda pair: (rooms.index(pair[0]), pair[1])):
        begin, end = height[importer], height[imported]
        reach = LEFT - 12 - 0.42 * (begin - end)
        parts.append(
            f'<path d="M{LEFT},{begin} C{reach:.0f},{begin} {reach:.0f},{end} {LEFT},{end}" '
            'fill="none" stroke="#8aa2b5" stroke-width="1.5"/>'
            f'<circle cx="{LEFT - 4}" cy="{end}" r="4" fill="#8aa2b5"/>'
        )
    for room in rooms:
        at = height[room]
        parts.append(
            f'<rect x="{LEFT}" y="{at - 14}" width="{BOX}" height="28" rx="4" fill="#eef3f7" '
            f'stroke="#41637d"/><text x="{LEFT + BOX / 2:.0f}" y="{at + 5}" '
            f'text-anchor="middle" fill="#12212c">{room}</text>'
        )
        if room in steps:
            number, text = steps[room]
            parts.append(
                f'<circle cx="{LEFT + BOX + 26}" cy="{at}" r="12" fill="#b3541e"/>'
                f'<text x="{LEFT + BOX + 26}" y="{at + 5}" text-anchor="middle" '
                f'fill="#ffffff">{number}</text>'
                f'<text x="{LEFT + BOX + 48}" y="{at + 5}" fill="#12212c">{escape(text)}</text>'
            )
    return "\n".join([*parts, "</svg>", ""])


def describe(room: str) -> str:
    """Return one row of the table of rooms."""
    purpose = (importlib.import_module(f"fedlasso.{room}").__doc__ or "").splitlines()[0]
    return f"| `{room}` | {purpose} |"


def write_page() -> dict[Path, str]:
    """Return the text of both files."""
    rooms = read_rooms()
    missing = [room for room, _ in FLOW if room not in rooms]
    if missing:
        raise ValueError(f"no such rooms: {missing}; correct FLOW in tools/write_architecture.py")
    table = "\n".join(map(describe, rooms))
    return {PAGE: INTRODUCTION + table + "\n", DRAWING: draw(rooms, read_imports(rooms))}


if __name__ == "__main__":
    for path, text in write_page().items():
        path.write_text(text)
