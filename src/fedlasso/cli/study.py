"""``fedlasso study``: run, summarise and export Monte Carlo studies."""

import argparse
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from fedlasso import study as studies
from fedlasso.cli import common
from fedlasso.cli.common import add_action, add_group, given_options, names, notify, print_frame
from fedlasso.cli.terminal import own_stream
from fedlasso.csv_text import plain_frame
from fedlasso.errors import FedLassoError
from fedlasso.study import SCENARIOS, STUDIES, Progress, Scenario, read_scenarios, run_study
from fedlasso.study.means import contrast, format_mean, summarise
from fedlasso.study.plugins import import_plugin
from fedlasso.study.purposes import PURPOSES
from fedlasso.study.record_columns import RECORDS, axes, known
from fedlasso.study.runner import Listener


def add(commands: Any) -> None:
    actions = add_group(commands, "study", "run and summarise Monte Carlo studies")
    add_one = partial(add_action, actions, extra="study")
    run = add_one(run_command, "--scenarios baseline,ten-sites --replicates 10 --out results/two")
    run.formatter_class = argparse.RawDescriptionHelpFormatter
    run.epilog = f"{_list_studies()}\n\n{run.epilog}"
    run.add_argument("--study", default="paper", help="a study listed below; default: paper")
    run.add_argument("--scenarios", type=names, help="names, comma-separated; default: all")
    run.add_argument("--scenario-file", type=Path, help="TOML file with your own scenarios")
    run.add_argument("--replicates", type=int, default=50, help="replicates per scenario")
    run.add_argument("--methods", type=names, help="methods, e.g. CD,ST,P,DA")
    run.add_argument("--epochs", type=_numbers, help="local epoch counts, e.g. 1,5,20")
    run.add_argument("--budgets", type=_numbers, help="upload budgets, e.g. 30,100")
    run.add_argument("--families", type=names, help="e.g. binomial,cox (studies families, trust)")
    run.add_argument("--data", help="folder of CSV files for the study real")
    run.add_argument("--seed", type=int, help="study seed")
    own = "module, or file my_module.py, with your own procedures, metrics or scenarios"
    imports: dict[str, Any] = {"action": "append", "default": [], "dest": "imports"}
    run.add_argument("--import", metavar="MODULE", help=f"{own}; repeatable", **imports)
    run.add_argument("--workers", type=int, help="worker processes; default: one per core")
    engines = "processes, dask (a local cluster) or a Dask scheduler such as tcp://host:8786"
    run.add_argument("--engine", default="processes", help=engines)
    changed = "resume although the code has changed"
    run.add_argument("--allow-code-change", action="store_true", help=changed)
    run.add_argument("--out", type=Path, required=True, help="results folder, also to resume")
    status = add_one(status_command, "results/two")
    summary = add_one(summary_command, "results/two --scenario baseline --budget 30")
    export = add_one(export_command, "results/two outcomes.csv")
    for parser in (status, summary, export):
        parser.add_argument("folder", type=Path, metavar="DIR", help=common.RESULTS)
    summary.add_argument("--scenario", help="one scenario only")
    summary.add_argument("--budget", type=int, help="default: the largest")
    for name in ("panel", "rule"):
        axis = axes()[name]
        text = ", ".join(f"{value}: {words}" for value, words in axis.words.items())
        text += f"; default: {axis.usual}"
        summary.add_argument(f"--{name}", default=axis.usual, choices=list(axis.words), help=text)
    export.add_argument("file", type=Path, metavar="FILE.csv|FILE.parquet", help="file to write")
    records = f"one of {', '.join(RECORDS)}; default: outcome"
    export.add_argument("--record", default="outcome", help=records)


def _list_studies() -> str:
    width = max(map(len, PURPOSES))
    fill = partial(textwrap.fill, width=79, subsequent_indent=" " * (width + 4))
    listed = [fill(f"  {name:{width}}  {purpose}") for name, purpose in PURPOSES.items()]
    return "\n".join(["studies:", *listed])


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in names(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers") from None


def run_command(options: argparse.Namespace) -> int:
    """Run or resume a study."""
    plugins = [import_plugin(name) for name in options.imports]
    if options.study not in STUDIES:
        raise FedLassoError(f"no study is called {options.study!r}; known: {', '.join(STUDIES)}")
    kind = STUDIES[options.study]
    settable = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    given = given_options(options, ("methods", "epochs", "budgets", "families", "data", "seed"))
    settings = {name: value for name, value in given.items() if value is not None}
    for name in settings:
        if name not in settable:
            raise FedLassoError(f"study {options.study!r} takes no --{name}")
    study = kind(**settings)
    scenarios = _scenarios(study, options)
    for notice in getattr(study, "notices", ()):
        notify(notice)
    store = studies.Store(options.out)
    common.stop_on_term()
    try:
        own = f"scenarios of {options.scenario_file} in the "
        title = f"{own if options.scenario_file else ''}{options.study} study"
        with _progress_bar(title) as listen:
            how = given_options(options, ("engine", "workers", "allow_code_change"))
            progress = run_study(
                study,
                scenarios,
                options.replicates,
                store,
                plugins=plugins,
                listen=listen,
                notify=notify,
                **how,
            )
    except KeyboardInterrupt:
        print(file=sys.stderr)
        kept = f"{len(store.parts())} replicates are kept in {options.out}"
        notify(f"stopped; {kept}. Run the same command again to resume.")
        return common.INTERRUPTED
    print(store.status())
    if progress.failed:
        why = f"`fedlasso study status {options.out}` shows why"
        notify(f"{progress.failed} replicates failed; {why}. Run again to retry them.")
        return 1
    return 0


def _scenarios(study: Any, options: argparse.Namespace) -> Sequence[Scenario]:
    own = read_scenarios(options.scenario_file) if options.scenario_file else ()
    by_name = getattr(study, "scenarios", SCENARIOS) | {s.name: s for s in own}
    names = options.scenarios or ([s.name for s in own] if own else list(by_name))
    for name in names:
        if name not in by_name:
            raise FedLassoError(f"no scenario is called {name!r}; known: {', '.join(by_name)}")
    return [by_name[name] for name in names]


@contextmanager
def _progress_bar(title: str) -> Iterator[Listener]:
    """Show done, total, rate, time left and failures: a bar on a terminal, else ten lines."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(file=own_stream(sys.stderr))
    start = time.monotonic()
    already: int | None = None
    shown = -1
    texts = (TextColumn("{task.description}"), TextColumn("{task.fields[rate]}"))
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), texts[1])
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None, rate="")

        def listen(progress: Progress) -> None:
            nonlocal already, shown
            at = progress.done + progress.failed
            already = at if already is None else already
            rate = (at - already) / max(time.monotonic() - start, 1e-9)
            text = f", {rate:.1f}/s, {(progress.total - at) / rate:.0f} s left" if rate > 0 else ""
            failed = f", {progress.failed} failed" if progress.failed else ""
            bar.update(task, total=progress.total, completed=at, rate=f"{text[2:]}[red]{failed}")
            tenth = 10 * at // max(progress.total, 1)
            if not console.is_terminal and tenth != shown:
                shown = tenth
                print(f"{title}: {at}/{progress.total}{text}{failed}", file=sys.stderr, flush=True)

        yield listen


def status_command(options: argparse.Namespace) -> None:
    """Print progress, failures and checks of a study."""
    store = studies.Store(options.folder)
    print(store.status())
    for (scenario, number), error in store.failures().items():
        print(f"failed: {scenario} {number}: {error.strip().splitlines()[-1]}")


def summary_command(options: argparse.Namespace) -> None:
    """Print means, Monte Carlo standard errors and paired differences."""
    store = studies.Store(options.folder)
    rows = store.table()
    if rows.empty:
        raise FedLassoError(f"{options.folder} has no finished replicate yet")
    manifest = store.manifest()
    kind = STUDIES.get(manifest.name)
    conclude = getattr(kind, "conclude", lambda rows: ())
    for line in conclude(rows[rows["scenario"] == options.scenario] if options.scenario else rows):
        print(line)
    if getattr(kind, "summary_is_whole", False):
        return
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
    rows = rows.assign(method=rows["method"].replace(dict(axes()["method"].words)))
    title = ", ".join(f"{name} {value}" for name, value in chosen.items())
    print(f"Mean (standard error){': ' if title else ''}{title}")
    metrics = ["f1", "active", "test_mse", "gap", "relative_gap", "rounds", "upload_bytes"]
    metrics += [own.name for own in manifest.metrics]
    means = summarise(rows, [name for name in metrics if name in rows])
    pairs = zip(means["mean"], means["se"], strict=True)
    means["text"] = [format_mean(mean, error, ".4g", ".2g", "-") for mean, error in pairs]
    keys = [name for name in known("axis", rows) if axes()[name].usual is None]
    print_frame(means.set_index([*keys, "metric"])["text"].unstack(sort=False).reset_index())
    for along in [name for name in keys if name != "scenario"]:
        values = list(dict.fromkeys(rows[along].dropna()))
        for value in values[1:]:
            table = contrast(rows, along, values[0], value, ["f1", "test_mse"])
            if not table.empty:
                print(f"\nPaired difference, {table['contrast'].iloc[0]}")
                print_frame(table.drop(columns=["contrast", *chosen], errors="ignore"))


def export_command(options: argparse.Namespace) -> None:
    """Export all outcomes as one table."""
    rows = studies.Store(options.folder).table(options.record)
    if rows.empty:
        raise FedLassoError(f"{options.folder} has no {options.record} rows")
    write = {".csv": plain_frame(rows).to_csv, ".parquet": rows.to_parquet}.get(options.file.suffix)
    if write is None:
        raise FedLassoError(f"cannot export to {options.file.name}; name a .csv or .parquet")
    try:
        write(options.file, index=False)
    except OSError as error:
        raise FedLassoError(f"cannot write {options.file}: {error.strerror}") from error
    print(f"{len(rows)} rows in {options.file}")
