"""Names of columns and texts of others reach neither the terminal nor a spreadsheet as commands."""

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.nets import run

from fedlasso.cli import main, terminal
from fedlasso.cli.terminal import PlainStream, plain_terminal, plain_text
from fedlasso.csv_text import plain_frame, write_csv

pytestmark = pytest.mark.usefixtures("no_charts")
STEERING = "x\x1b[2J\x07\u202e\x9b1m"
FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-a", "@SUM(A1)", "\tx", "\r=x")


def write_table(path: Path, *names: str) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, len(names)))
    frame = pd.DataFrame(X, columns=list(names))
    frame["y"] = X[:, 0] * 3 + rng.standard_normal(60)
    frame.to_csv(path, index=False)
    return path


def test_names_of_columns_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write_table(tmp_path / "a.csv", STEERING, "z")
    given = ["fit", table, "--target", "y", "--no-compare", "--penalty", "0.1", "--out"]
    assert run(*given, tmp_path / "model") == 0
    assert run("inspect", tmp_path / "model") == 0
    assert run("fit", table, "--target", "nothing", "--out", tmp_path / "none") == 2
    said = capsys.readouterr()
    assert r"x\x1b[2J\x07\u202e\x9b1m" in said.out
    steering = "\x1b\x07\u202e\x9b"
    assert not set(steering) & set(said.out + said.err)
    # Without the stream the name reaches the terminal as it is.
    monkeypatch.setattr(terminal.PlainStream, "write", lambda self, text: self._stream.write(text))
    assert main(["inspect", str(tmp_path / "model")]) == 0
    assert "\x1b[2J" in capsys.readouterr().out


def test_a_stream_keeps_text_lines_and_our_own_progress() -> None:
    out = io.StringIO()
    stream = PlainStream(out)
    print("Größe µ naïve \u00a0 =\t1\nline", end="\r", file=stream)
    assert out.getvalue() == "Größe µ naïve \u00a0 =\t1\nline\r"
    assert plain_text("a\rb") == r"a\rb"
    before = sys.stdout
    with plain_terminal():
        assert sys.stdout is not before
    assert sys.stdout is before


def test_names_are_no_formulas_in_csv_files(tmp_path: Path) -> None:
    table = write_table(tmp_path / "a.csv", *FORMULAS[:4])
    given = ["--target", "y", "--no-compare", "--penalty", "0.01", "--out", tmp_path / "model"]
    assert run("fit", table, *given) == 0
    files = sorted((tmp_path / "model").glob("*.csv"))
    assert files
    for file in files:
        for row in csv.reader(io.StringIO(file.read_text())):
            for cell in row:
                assert not cell.startswith(("=", "@", "+"))
    text = (tmp_path / "model" / "coefficients.csv").read_text()
    names = [row[0] for row in csv.reader(io.StringIO(text))]
    assert names[2:] == [f"'{name}" for name in FORMULAS[:4]]


def test_numbers_stay_numbers_and_formulas_do_not() -> None:
    row = [-1.5, -2, "-1e-5", None, "a=b", np.float64(-0.1), *FORMULAS]
    (read,) = csv.reader(io.StringIO(write_csv([row]), newline=""))
    assert read[:6] == ["-1.5", "-2", "-1e-5", "", "a=b", "-0.1"]
    assert read[6:] == [f"'{formula}".replace("\r", " ") for formula in FORMULAS]
    frame = pd.DataFrame({"=n": [-1.0, 2.0], "t": ["=x", "-3"], "o": [None, 1.5]})
    plain = plain_frame(frame)
    assert plain.to_csv(index=False) == "'=n,t,o\n-1.0,'=x,\n2.0,-3,1.5\n"
