"""The table of numbers per fit on the privacy page is what fits send.

How many steps a fit takes depends on the sites' secrets, which cut the rows, and a little on the
processor. The page has the smallest and largest of several secrets.
"""

import re
from pathlib import Path

import pytest
from helpers.deploy.default_data import STUDIES, fit_by_default
from helpers.deploy.doors import make_doors
from helpers.governance.authority import Authority

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
# Another processor may take a few steps more or fewer than the page's extremes.
SLACK = 0.15


def read_table() -> dict[str, list[str]]:
    """Rows and columns, and fractions of a fit and of a fit and its card, by study."""
    row = r"^\| ([^|]+) \| (\d+, \d+) \| ([\d. to]+) \| ([\d. to]+) \|$"
    return {name: rest for name, *rest in re.findall(row, PAGE.read_text(), re.MULTILINE)}


def test_the_page_has_a_row_for_every_study() -> None:
    assert read_table().keys() == STUDIES.keys()


@pytest.mark.full
@pytest.mark.parametrize("compare", [False, True])
@pytest.mark.parametrize("name", STUDIES)
def test_the_page_has_the_numbers_of_fits(
    name: str, compare: bool, tmp_path: Path, no_charts: None
) -> None:
    size, *cells = read_table()[name]
    study = STUDIES[name]()
    doors = make_doors(study.write(tmp_path / "tables"), None, Authority(tmp_path / "authority"))
    fit_by_default(study, doors, compare=compare)
    (opened,) = {
        (len(study.frame), e.encoded) for e in doors["a"].audit.entries() if e.question == "Open"
    }
    assert size == "{}, {}".format(*opened)
    low, _, high = cells[compare].partition(" to ")
    sent = max(door.lifetime.used("numbers") for door in doors.values())
    assert float(low) * (1 - SLACK) <= sent <= float(high or low) * (1 + SLACK)
