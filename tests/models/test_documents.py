"""Documents on disk: what was edited or damaged is one clear error."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.models.files import write_sites
from msgspec.structs import replace

from fedlasso import FedLassoError
from fedlasso.cli import main
from fedlasso.fitting import Settings
from fedlasso.models import (
    FileSource,
    FitPlan,
    NetworkSource,
    make_model,
    open_sites,
    read_document,
    read_plan,
    write_model,
    write_plan,
)

NETWORK = FitPlan(
    Settings(cv=3, rule="1se"),
    NetworkSource("project", "ab12", "y", ("a", "b"), fingerprints={"north": "00"}, timeout=9.5),
    compare=True,
)
FILES = FitPlan(Settings(), FileSource(("a.csv",), "y", drop=("z",), stamps=((12, 34),)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("model")
    files = tuple(map(str, write_sites(base)))
    sites, schema = open_sites(FileSource(files, "y", missing="mean"))
    document = make_model(sites, Settings(penalty=0.1), schema, missing="mean")
    write_model(base / "model", document)
    return base / "model"


EDITS: dict[str, tuple[list[Any], Any, str]] = {
    "a word": (["intercept"], "none", "got `str` - at `$.intercept`"),
    "a setting": (["settings", "uploads"], 0, "--uploads is 0"),
    "a goal": (["settings", "goal"], "speed", "no goal is called 'speed'"),
    "a coefficient": (["coefficients", 0, "name"], "height", "'height' belongs to no column"),
    "a value": (["coefficients", 0, "value"], None, "at `$.coefficients[0].value`"),
    "means": (["means"], [1.0], "means has 1 values for 8 columns"),
    "sites": (["sites"], {"north": 1}, "at `$.sites`"),
    "the format": (["format"], "cake", "at `$.format`"),
    "the version": (["version"], 2, "was written by a newer version of fedlasso; update fedlasso"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_model_is_one_clear_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], edit: tuple[Any, Any, str]
) -> None:
    place, value, message = edit
    values = json.loads((folder / "model.json").read_text())
    at = values
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    (tmp_path / "model.json").write_text(json.dumps(values))
    assert main(["inspect", str(tmp_path)]) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert errors.count("\n") == 1


def write_edited(folder: Path, out: Path, layout: dict[str, Any], **edits: object) -> None:
    values = json.loads((folder / "model.json").read_text()) | edits
    out.mkdir()
    (out / "model.json").write_text(json.dumps(values, **layout))


@pytest.mark.parametrize("command", ["inspect", "predict"])
def test_a_model_that_says_something_else_than_the_fit_wrote_is_refused(
    command: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [str(next(folder.parent.glob("*.csv")))] if command == "predict" else []
    write_edited(folder, tmp_path / "edited", {"indent": 1}, intercept=123.0)
    assert main([command, str(tmp_path / "edited"), *rows]) == 2
    errors = capsys.readouterr().err
    assert "was changed after the fit; restore the file that the fit wrote" in errors
    assert errors.count("\n") == 1
    # Another layout of the same is no edit, and without the digest the edit would pass.
    write_edited(folder, tmp_path / "respaced", {"indent": 7, "sort_keys": True})
    assert main([command, str(tmp_path / "respaced"), *rows]) == 0
    edited = json.loads((tmp_path / "edited" / "model.json").read_text())
    monkeypatch.setattr("fedlasso.models.document._digest", lambda values: edited["digest"])
    assert main([command, str(tmp_path / "edited"), *rows]) == 0


def test_a_model_without_a_digest_is_refused(folder: Path, tmp_path: Path) -> None:
    values = json.loads((folder / "model.json").read_text())
    del values["digest"]
    (tmp_path / "model.json").write_text(json.dumps(values))
    with pytest.raises(FedLassoError, match="was changed after the fit"):
        read_document(tmp_path / "model.json")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_model_cut_short_is_one_clear_error(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], share: float
) -> None:
    data = (folder / "model.json").read_bytes()
    (tmp_path / "model.json").write_bytes(data[: int(share * len(data))])
    assert main(["inspect", str(tmp_path)]) == 2
    assert "it is damaged" in capsys.readouterr().err


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_plan(tmp_path, NETWORK)
    assert read_plan(tmp_path, NetworkSource) == NETWORK
    write_plan(tmp_path, FILES)
    assert read_plan(tmp_path, FileSource) == FILES


def test_a_plan_of_another_kind_names_the_command_that_goes_on(tmp_path: Path) -> None:
    write_plan(tmp_path, NETWORK)
    with pytest.raises(
        FedLassoError, match=f"resume it with: fedlasso federation resume {tmp_path}"
    ):
        read_plan(tmp_path, FileSource)
    write_plan(tmp_path, FILES)
    with pytest.raises(FedLassoError, match=f"resume it with: fedlasso fit --resume {tmp_path}"):
        read_plan(tmp_path, NetworkSource)


def test_a_plan_that_cannot_be_gone_on_with_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FedLassoError, match="contains no fit to resume"):
        read_plan(tmp_path, FileSource)
    write_plan(tmp_path, replace(FILES, version="0.0.1"))
    with pytest.raises(FedLassoError, match=r"was started by fedlasso 0\.0\.1"):
        read_plan(tmp_path, FileSource)
    write_plan(tmp_path, FILES)
    text = (tmp_path / "plan.json").read_text()
    unlike = text.replace('"uploads": null', '"uploads": "many"')
    assert unlike != text
    for damaged in (text[:-5], unlike, "[]", ""):
        (tmp_path / "plan.json").write_text(damaged)
        with pytest.raises(FedLassoError, match=r"plan\.json cannot be read"):
            read_plan(tmp_path, FileSource)
