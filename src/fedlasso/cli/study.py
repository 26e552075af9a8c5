"""``fedlasso study``: run, look at, summarise and export Monte Carlo studies."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlasso.cli.common import add_action, need, stop_on_term
from fedlasso.errors import FedLassoError
from fedlasso.study import (
    SCENARIOS,
    STUDIES,
    Scenario,
    contrast,
    read_scenarios,
    run_study,
    summarise,
)
from fedlasso.study.columns import RECORDS, axes, known
from fedlasso.study.summary import diagnose

if TYPE_CHECKING:
    from fedlasso.study import Store


def add(commands: Any) -> None:
    """Add the command group."""
    study = commands.add_parser("study", help="run and read Monte Carlo studies")
    actions = study.add_subparsers(dest="action", required=True, metavar="ACTION")

    run = add_action(
        actions, "run", run_command, "run a study, or go on with it",
        "fedlasso study run --scenarios baseline,ten-sites --replicates 10 --out results/two",
    )  # fmt: skip
    run.add_argument("--study", default="paper", help=f"one of {', '.join(STUDIES)}")
    run.add_argument("--scenarios", type=_names, help="names, comma-separated; default: all")
    run.add_argument("--scenario-file", type=Path, help="TOML file with scenarios of your own")
    run.add_argument("--replicates", type=int, default=50, help="replicates per scenario")
    run.add_argument("--methods", type=_names, help="e.g. CD,ST,P,DA")
    run.add_argument("--epochs", type=_numbers, help="local epoch counts, e.g. 1,5,20")
    run.add_argument("--budgets", type=_numbers, help="upload budgets, e.g. 30,100")
    run.add_argument("--seed", type=int, help="study seed")
    run.add_argument("--workers", type=int, help="worker processes; default: one per core")
    run.add_argument(
        "--engine", default="processes",
        help="processes, dask (a local cluster) or a Dask scheduler such as tcp://host:8786",
    )  # fmt: skip
    run.add_argument(
        "--allow-code-change", action="store_true", help="resume although the code has changed"
    )
    run.add_argument("--out", type=Path, required=True, help="results folder; again to resume")

    status = add_action(
        actions, "status", status_command, "how far a study is, and whether its numbers hold",
        "fedlasso study status results/two",
    )  # fmt: skip
    summary = add_action(
        actions, "summary", summary_command, "means, Monte Carlo errors and paired contrasts",
        "fedlasso study summary results/two --scenario baseline --budget 30",
    )  # fmt: skip
    export = add_action(
        actions, "export", export_command, "write all outcomes as one table",
        "fedlasso study export results/two outcomes.csv",
    )  # fmt: skip
    for parser in (status, summary, export):
        parser.add_argument("folder", type=Path, metavar="DIR")
    summary.add_argument("--scenario", help="one scenario only")
    summary.add_argument("--budget", type=int, help="default: the largest")
    for name in ("panel", "rule"):
        axis = axes()[name]
        summary.add_argument(f"--{name}", default=axis.usual, choices=list(axis.words))
    export.add_argument("file", type=Path, metavar="FILE.csv|FILE.parquet")
    export.add_argument(
        "--record", default="outcome",
        help=f"one of {', '.join(RECORDS)}; default: outcome",
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in _names(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers") from None


def run_command(options: argparse.Namespace) -> int:
    """Run or resume."""
    if options.study not in STUDIES:
        raise FedLassoError(f"no study is called {options.study!r}; known: {', '.join(STUDIES)}")
    kind = STUDIES[options.study]
    settable = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    given = {n: getattr(options, n) for n in ("methods", "epochs", "budgets", "seed")}
    settings = {name: value for name, value in given.items() if value is not None}
    for name in settings:
        if name not in settable:
            raise FedLassoError(f"study {options.study!r} takes no --{name}")
    study = kind(**settings)
    scenarios = _scenarios(kind, options)
    store = _store(options.out)
    from fedlasso.cli.formats import progress_bar

    stop_on_term()
    try:
        with progress_bar(f"{options.study} study") as listen:
            progress = run_study(
                study, scenarios, options.replicates, store,
                engine=options.engine, workers=options.workers,
                allow_code_change=options.allow_code_change, listen=listen, tell=_tell,
            )  # fmt: skip
    except KeyboardInterrupt:
        print(
            f"\nfedlasso: stopped; {len(store.parts())} replicates are kept in {options.out}. "
            "Run the same command again to go on.",
            file=sys.stderr,
        )
        return 130
    print(diagnose(store))
    if progress.failed:
        print(
            f"fedlasso: {progress.failed} replicates failed; `fedlasso study status {options.out}` "
            "shows why, and running again retries them",
            file=sys.stderr,
        )
        return 1
    return 0


def _tell(notice: str) -> None:
    print(f"fedlasso: {notice}", file=sys.stderr)


def _scenarios(kind: Any, options: argparse.Namespace) -> Sequence[Scenario]:
    own = read_scenarios(options.scenario_file) if options.scenario_file else ()
    by_name = getattr(kind, "scenarios", SCENARIOS) | {s.name: s for s in own}
    names = options.scenarios or ([s.name for s in own] if own else list(by_name))
    for name in names:
        if name not in by_name:
            raise FedLassoError(f"no scenario is called {name!r}; known: {', '.join(by_name)}")
    return [by_name[name] for name in names]


def _store(folder: Path) -> Store:
    need("study")
    from fedlasso.study import Store

    return Store(folder)


def status_command(options: argparse.Namespace) -> int:
    """How far, and how well."""
    store = _store(options.folder)
    print(diagnose(store))
    for (scenario, number), error in store.failures().items():
        print(f"failed: {scenario} {number}: {error.strip().splitlines()[-1]}")
    return 0


def summary_command(options: argparse.Namespace) -> int:
    """Means and contrasts, at one budget, panel and rule where the study has such axes."""
    store = _store(options.folder)
    from fedlasso.cli.formats import print_frame, show

    rows = store.table()
    if rows.empty:
        raise FedLassoError(f"{options.folder} has no finished replicate yet")
    conclude = getattr(STUDIES.get(store.manifest().name), "conclude", lambda rows: ())
    for line in conclude(rows[rows["scenario"] == options.scenario] if options.scenario else rows):
        print(line)
    chosen: dict[str, object] = {}
    if "budget" in rows:
        budget = options.budget or int(rows["budget"].max())
        panels = list(dict.fromkeys(rows["panel"]))
        panel = options.panel if options.panel in panels else panels[0]
        chosen = {"budget": budget, "panel": panel, "rule": options.rule}
    if options.scenario:
        chosen["scenario"] = options.scenario
    for name, value in chosen.items():
        rows = rows[rows[name] == value]
    if rows.empty:
        raise FedLassoError("no finished replicate matches; see `fedlasso study status`")
    title = ", ".join(f"{name} {value}" for name, value in chosen.items())
    print(f"Mean (standard error){': ' if title else ''}{title}")
    metrics = ["f1", "active", "test_mse", "gap", "relative_gap", "rounds", "upload_bytes"]
    means = summarise(rows, [name for name in metrics if name in rows])
    means["text"] = [show(m, s) for m, s in zip(means["mean"], means["se"], strict=True)]
    keys = [name for name in known("axis", rows) if axes()[name].usual is None]
    print_frame(means.set_index([*keys, "metric"])["text"].unstack(sort=False).reset_index())
    for along in [name for name in keys if name != "scenario"]:
        values = list(dict.fromkeys(rows[along].dropna()))
        for value in values[1:]:
            table = contrast(rows, along, values[0], value, ["f1", "test_mse"])
            if not table.empty:
                print(f"\nPaired difference, {table['contrast'].iloc[0]}")
                print_frame(table.drop(columns=["contrast", *chosen], errors="ignore"))
    return 0


def export_command(options: argparse.Namespace) -> int:
    """One flat table."""
    rows = _store(options.folder).table(options.record)
    if rows.empty:
        raise FedLassoError(f"{options.folder} has no {options.record} rows")
    try:
        if options.file.suffix == ".csv":
            rows.to_csv(options.file, index=False)
        elif options.file.suffix == ".parquet":
            rows.to_parquet(options.file, index=False)
        else:
            raise FedLassoError(f"cannot export to {options.file.name}; name a .csv or .parquet")
    except OSError as error:
        raise FedLassoError(f"cannot write {options.file}: {error.strerror}") from error
    print(f"{len(rows)} rows in {options.file}")
    return 0
