"""The tutorials can be followed: their commands and their Python run, and say what is shown.

Blocks marked `sh` and `python` are run in order, in one empty folder; a block marked `text` that
follows is what they print. Blocks marked `bash` take long or start processes: these, and those of
all other pages, are only read by the command line's own parser. The whole tutorial of operators is
run in tests/deploy/nvflare/test_tutorial.py, where a block marked `output` is what `bash` prints.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.pages import blocks, check_output

from fedlasso.cli import main, make_parser

ROOT = Path(__file__).parent.parent
TUTORIALS = [ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
READ = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in ("fit", "howto", "secant"))]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run_line(line: str) -> None:
    """Run a line as a shell would."""
    program, *arguments = shlex.split(line, comments=True)
    if program == "fedlasso":
        assert main(arguments) == 0, line
    else:
        assert program == "python", line
        subprocess.run([sys.executable, *arguments], check=True)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    said = ""
    for language, text in blocks(page, "sh", "python", "text"):
        if language == "text":
            check_output(said, text)
        elif language == "python":
            exec(compile(text, page.name, "exec"), names)
        else:
            for line in text.splitlines():
                run_line(line)
        said = capsys.readouterr().out


@pytest.mark.parametrize("page", READ, ids=lambda page: page.stem)
def test_python_on_a_page_prints_what_is_shown(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ""
    for language, text in blocks(page, "python", "text", "sh", "bash"):
        if language == "text" and said:
            check_output(said, text)
        said = ""
        if language == "python":
            exec(compile(text, page.name, "exec"), {})
            said = capsys.readouterr().out
            assert said
            assert "np." not in said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_on_a_page_are_commands(page: Path) -> None:
    for _, text in blocks(page, "sh", "bash"):
        for line in text.splitlines():
            # Redirections and job control belong to the shell.
            own = re.split(r" \d?>| &$", line)[0]
            program, *arguments = shlex.split(own, comments=True) or [""]
            if program == "fedlasso":
                make_parser(arguments).parse_args(arguments)
