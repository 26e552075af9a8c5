"""The parts of pages: texts are escaped, and tables have a cell for every column."""

import pytest

from fedlasso import html

NASTY = "<b>&\"'"
ESCAPED = "&lt;b&gt;&amp;&quot;&#x27;"


@pytest.mark.parametrize("style", ["audit", "card"])
def test_a_page_is_one_file_whose_title_is_escaped(style: str) -> None:
    page = html.page(NASTY, style, "<p>body</p>")
    assert f"<title>{ESCAPED}</title>" in page
    assert page.endswith("<main><p>body</p></main></body></html>\n")
    assert "http" not in page
    assert "url(" not in page


def test_texts_of_lists_tables_and_reasons_are_escaped() -> None:
    for drawn in (
        html.bullets([NASTY]),
        html.text_table([NASTY], [["x"]]),
        html.text_table(["x"], [[NASTY]]),
        html.left_out("x", NASTY),
        html.name_cells(["", NASTY])[1],
    ):
        assert ESCAPED in drawn
        assert NASTY not in drawn
    assert html.left_out("x", None) == ""


def test_a_table_names_the_cells_of_many_columns_and_marks_its_own_row() -> None:
    narrow = html.text_table(["", "b"], [["a_b", "1"], ["c", "2"]], own=1)
    assert narrow == (
        '<div class="scroll"><table><tr><th></th><th>b</th></tr><tr><td>a_<wbr/>b</td><td>1</td>'
        '</tr><tr class="own"><td>c</td><td>2</td></tr></table></div>'
    )
    wide = html.text_table(list("abcde"), [list("12345")])
    assert '<table class="wide">' in wide
    assert '<td>1</td><td data-head="b">2</td>' in wide
    with pytest.raises(ValueError, match="zip"):
        html.text_table(list("abcde"), [["1"]])
