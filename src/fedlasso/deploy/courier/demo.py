"""Three sites in three folders on this machine: every file of a fit is made and shown."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

from fedlasso import models
from fedlasso.deploy.courier.collect import Place, PostedFit, begin, collect
from fedlasso.deploy.courier.mailbox import Mailbox
from fedlasso.deploy.courier.plain_words import ConfirmAnswer
from fedlasso.deploy.courier.post import Awaiting
from fedlasso.deploy.kit import accept, open_audit, read_secret, request
from fedlasso.deploy.nvflare.project import create_project, sign_request
from fedlasso.deploy.run import Finished, repeat_fit
from fedlasso.fitting import Settings

SITES = ("east", "north", "west")


def run_demo(keep: Path | None) -> int:
    """Fit the diabetes data of three hospitals by files, then again in this process."""
    began = time.monotonic()
    with ExitStack() as stack:
        base = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fedlasso-")))
        tables = {name: base / name / "records.csv" for name in SITES}
        data = load_diabetes()
        records = np.column_stack([data.data, data.target])
        header = ",".join([*data.feature_names, "target"])
        for k, path in enumerate(tables.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(path, records[k::3], "%.17g", ",", header=header, comments="")
        print(f"Three hospitals in {base}, each in a folder of its own; no server, no connection")
        place = Place(base / "trial")
        _enrol(place, base)
        print(f"They have exchanged keys after {time.monotonic() - began:.0f} s")
        source = models.NetworkSource("trial", "", "target")
        fit = begin(place, models.FitPlan(Settings(), source, False), base / "model")
        finished = _play(fit, base, tables)
        print(models.describe_model(finished.document))
        print(fit.describe_trips(finished.document))
        keys = {name: read_secret(base / name / "kit") for name in SITES}
        alone = base / "alone"
        models.write_model(alone, repeat_fit(finished.document, tables, keys))
        written = ("coefficients.csv", "model.json", "card.html")
        same = all((base / "model" / n).read_bytes() == (alone / n).read_bytes() for n in written)
        print(f"The same fit in one process: {'the same bytes' if same else 'DIFFERS'}")
        entries = list(open_audit(base / "north" / "kit").entries())
        sent = sum(entry.payload for entry in entries)
        print(f"The audit of 'north' has {len(entries)} lines, {sent} bytes of numbers sent")
        gone = "" if keep else ", deleted now; `--keep FOLDER` keeps it"
        print(f"The model's card: {base / 'model' / 'card.html'}{gone}")
    print(f"Finished after {time.monotonic() - began:.0f} s")
    return 0 if same else 1


def _enrol(place: Place, base: Path) -> None:
    """Make the project, and let the sites accept each other."""
    create_project(place.folder, None, SITES)
    for name in SITES:
        with tempfile.TemporaryDirectory() as scratch:
            shutil.unpack_archive(place.folder / "kits" / f"{name}.zip", scratch)
            shutil.copytree(Path(scratch) / name, base / name / "kit")
        path, _ = request(base / name / "kit")
        sign_request(place.folder, path)
    for name in SITES:
        accept(base / name / "kit", place.folder / "kits" / f"{name}.crt", lambda *_: True)


def _play(fit: PostedFit, base: Path, tables: dict[str, Path]) -> Finished:
    """Carry every file to its reader, and print it, until the model is there."""
    while True:
        try:
            finished = fit.advance()
        except Awaiting as awaiting:
            print(f"Round trip {awaiting.trip}")
            _carry(fit, base, tables)
        else:
            print("The end")
            _carry(fit, base, tables)
            return finished


def _carry(fit: PostedFit, base: Path, tables: dict[str, Path]) -> None:
    for path in fit.outstanding():
        name = path.name.rsplit("-", 2)[0]
        question = base / name / path.name
        shutil.copy(path, question)
        # What a site is shown is printed once, for the site that is called north.
        agree: ConfirmAnswer = _show if name == "north" else (lambda _: True)
        print(f"  coordinator to {name}: {question.name}, {question.stat().st_size} bytes")
        outcome = Mailbox(base / name / "kit", tables[name], None, agree).answer(question)
        if outcome.answer is not None:
            size = outcome.answer.stat().st_size
            print(f"  {name} to coordinator: {outcome.answer.name}, {size} bytes")
            collect(fit.place, outcome.answer)


def _show(text: str) -> bool:
    for line in text.splitlines():
        print(f"    | {line}")
    return True
