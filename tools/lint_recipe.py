"""Render recipe/recipe.yaml by rattler-build's own parser: an unknown key or template is an error.

Needs ``pip install py-rattler-build``; CONTRIBUTING.md names this step of a release.
"""

import sys
from pathlib import Path

from rattler_build import RattlerBuildError, Stage0Recipe, VariantConfig

RECIPE = Path(__file__).parents[1] / "recipe" / "recipe.yaml"


def main() -> int:
    try:
        outputs = list(Stage0Recipe.from_yaml(RECIPE.read_text()).render(VariantConfig()))
    except RattlerBuildError as error:
        print(f"{RECIPE}: {error}", file=sys.stderr)
        return 1
    if not outputs:
        print(f"{RECIPE}: no package", file=sys.stderr)
        return 1
    print(f"{RECIPE.name}: {len(outputs)} package")
    return 0


if __name__ == "__main__":
    sys.exit(main())
