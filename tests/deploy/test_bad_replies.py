"""Replies that cannot be true: refused with the site's name, before the journal has them."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.deploy.doors import DoorLine, Project, make_doors
from helpers.nets import COLUMNS, FIT, in_process, numbers, same_files, write_tables

from fedlasso import FedLassoError
from fedlasso.deploy.network import Network
from fedlasso.deploy.run import begin_plan, run_plan
from fedlasso.federation import Message, encode
from fedlasso.federation.checking import BadReply, max_reply_bytes, printable
from fedlasso.federation.ledger import read_journal
from fedlasso.fitting import Settings
from fedlasso.governance.door_messages import Introduce, Refusal
from fedlasso.models import FitPlan, NetworkSource, make_model, write_model
from fedlasso.sites import GradientAt, Rows
from fedlasso.sites.questions import RowCount

ADMM = Settings(procedure="ADMM", penalty=0.1, uploads=6)
GOAL = Settings()
Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def alone(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folders = {}
    for name, settings in (("ADMM", ADMM), ("GOAL", GOAL)):
        folders[name] = tmp_path_factory.mktemp(name)
        write_model(folders[name], make_model(in_process(tables), settings, numbers()))
    return folders


def begin(out: Path, settings: Settings) -> Path:
    begin_plan(out, FitPlan(settings, NetworkSource("project", "", "y", COLUMNS)))
    return out


def times(field: str, factor: float) -> Change:
    return lambda reply: replace(reply, **{field: getattr(reply, field) * factor})


def fewer(field: str) -> Change:
    return lambda reply: replace(reply, **{field: getattr(reply, field)[:-1]})


def given(**values: Any) -> Change:
    return lambda reply: replace(reply, **values)


def off_diagonal(reply: Any) -> Any:
    """Sums of the columns that their squares do not allow."""
    moments = reply.moments.copy()
    moments[:, 1:5] = 4 * moments[:, :1]
    return replace(reply, moments=moments)


def longer(reply: Any) -> Any:
    """Far more numbers than were asked for."""
    return replace(reply, values=np.zeros((10_000, reply.values.shape[1])))


BAD: dict[str, tuple[Settings, str, Change, str]] = {
    "negative sums of squares": (
        ADMM, "CentredSquares", times("squares", -1), "squares of -.*, which cannot be negative"),
    "negative amount": (
        ADMM, "MeanEigenvalue", times("value", -1), "value of -.*, which cannot be negative"),
    "2^40 rows": (
        ADMM, "Standardise", given(rows=2**40), "rows of 1099511627776 at a site of 130 rows"),
    "more rows in a sum": (ADMM, "ColumnSums", given(rows=400), "rows of 400 at"),
    "-1 rows": (ADMM, "ColumnSums", given(rows=-1), "rows of -1 at a site of 130 rows"),
    "vectors times 1e300": (ADMM, "DualProximal", times("values", 1e300), "values is beyond"),
    "gradients times 1e300": (ADMM, "FitAt", times("gradient", 1e300), "gradient is beyond"),
    "negative error": (ADMM, "FitAt", times("residual_ss", -1), "residual_ss of -"),
    "against Cauchy and Schwarz": (ADMM, "FitAt", times("residual_y", 10), "residual_y of .*more"),
    "negative errors": (ADMM, "HeldOutErrors", times("errors", -1), "errors of -.*negative"),
    "half a row": (ADMM, "HeldOutErrors", times("counts", 0.01), "counts of 0.*rows"),
    "moments of nobody": (GOAL, "FoldMoments", off_diagonal, "moments that no records have"),
    "negative moments": (GOAL, "FoldMoments", times("moments", -1), "rows of -130 at"),
    "wrong shape": (ADMM, "DualProximal", fewer("values"), r"\(66,\) words .* instead of 72"),
    "wrong shape of moments": (GOAL, "FoldMoments", fewer("moments"), "words of a FoldSums"),
    "wrong type": (
        ADMM, "Standardise", lambda reply: RowCount(5, site="b"), "a RowCount instead of a Sizes"),
    "an array that nobody asked for": (
        ADMM, "ColumnSums", given(missing=np.zeros(12)), "words of a Totals instead of"),
    "too long": (
        ADMM, "DualProximal", longer, "more than the 66[0-9]* bytes that the reply can have"),
    "steps without end": (ADMM, "DualProximal", given(steps=10**400), "steps beyond"),
}  # fmt: skip


def journal_has(out: Path, data: bytes) -> bool:
    return any(data in kept.replies for kept in read_journal(out / "journal"))


@pytest.mark.parametrize("case", BAD)
def test_a_bad_reply_is_refused_unwritten_and_the_fit_goes_on_once_the_site_is_mended(
    case: str, tables: dict[str, Path], alone: dict[str, Path], tmp_path: Path
) -> None:
    settings, question, change, text = BAD[case]
    out = begin(tmp_path / "model", settings)
    project = Project(tables)
    sent = project.tampered
    project.tampering = {question: change}
    with pytest.raises(
        BadReply, match=f"site 'b' sent an impossible reply to {question}: .*{text}.* resume"
    ):
        run_plan(out, project.connect)
    assert len(sent) == 1
    assert not journal_has(out, sent[0])
    assert not (out / "model.json").exists()
    project.tampering = {}
    run_plan(out, project.connect)
    assert same_files(out, alone["ADMM" if settings is ADMM else "GOAL"])


@pytest.mark.parametrize("case", BAD)
def test_without_the_check_the_same_reply_is_written_down_and_used(
    case: str, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedlasso.federation.checking.check_reply", lambda *given: given[3])
    monkeypatch.setattr("fedlasso.federation.checking.max_reply_bytes", lambda *given: 1 << 30)
    settings, question, change, _ = BAD[case]
    out = begin(tmp_path / "model", settings)
    project = Project(tables)
    sent = project.tampered
    project.tampering = {question: change}
    # Some end in a traceback after that, others in a model that only the sites' books contradict.
    with suppress(Exception):
        run_plan(out, project.connect)
    assert journal_has(out, sent[0])


def test_without_the_check_a_wrong_shape_keeps_a_fit_from_ever_going_on(
    tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedlasso.federation.checking.check_reply", lambda *given: given[3])
    monkeypatch.setattr("fedlasso.deploy.run.reconcile", lambda *given: {})
    out = begin(tmp_path / "model", ADMM)
    project = Project(tables)
    change = fewer("values")
    project.tampering = {"DualProximal": change}
    with pytest.raises(ValueError, match="broadcast"):
        run_plan(out, project.connect)
    project.tampering = {}
    with pytest.raises(ValueError, match="broadcast"):
        run_plan(out, project.connect)


def open_network(tables: dict[str, Path], **tampering: Callable[[Any], bytes]) -> Network:
    network = Network(DoorLine(make_doors(tables), tampering=tampering), list(tables), 1.0)
    network.open(NetworkSource("project", FIT, "y", COLUMNS))
    return network


def test_a_reply_in_anothers_name_is_refused(tables: dict[str, Path]) -> None:
    network = open_network(tables, Rows=lambda reply: encode(replace(reply, site="c")))
    with pytest.raises(FedLassoError, match="site 'b' answered in another's name"):
        network.ask(Rows())


def test_rows_that_no_machine_holds_are_refused_at_the_introduction(
    tables: dict[str, Path],
) -> None:
    def many(reply: Any) -> bytes:
        return encode(replace(reply, rows=2**40))

    with pytest.raises(
        BadReply, match=r"site 'b' sent an impossible reply to Introduce: 1099511627776 rows"
    ):
        open_network(tables, Introduce=many)


def test_bytes_in_another_form_than_sites_write_are_refused(tables: dict[str, Path]) -> None:
    """What is journalled is written anew, so the same message must have the same bytes."""

    def respaced(reply: Any) -> bytes:
        data = encode(reply)
        length = int.from_bytes(data[3:7], "little")
        head = data[7 : 7 + length].replace(b":", b": ")
        return data[:3] + len(head).to_bytes(4, "little") + head + data[7 + length :]

    network = open_network(tables, Rows=respaced)
    with pytest.raises(BadReply, match="bytes in another encoding"):
        network.ask(Rows())


# Bytes that a reply to `Rows` can have.
MOST_OF_ROWS = 65_544


def test_too_many_bytes_are_not_even_read(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = open_network(tables, Rows=lambda reply: bytes(MOST_OF_ROWS + 1))

    def never(data: bytes) -> Message:
        raise AssertionError(f"{len(data)} bytes were read")

    monkeypatch.setattr("fedlasso.federation.checking.decode", never)
    with pytest.raises(BadReply, match="more than the 65544 bytes that the reply can have"):
        network.ask(Rows(to=("b",)))
    with pytest.raises(AssertionError, match="were read"):
        network.ask(Rows(to=("a",)))


def test_the_cap_follows_from_the_question() -> None:
    few = max_reply_bytes(GradientAt(np.zeros(12)), 12)
    assert max_reply_bytes(GradientAt(np.zeros((12, 5))), 12) - few == 8 * 12 * 4
    # Texts have no length that a question knows.
    assert max_reply_bytes(Introduce(), 12) > few


ESCAPES = "no\x1b[2J\x1b[31m such\n\x1b]0;title\x07column\x9b1m\x00\u202e \x1bcx"


def test_escape_sequences_in_a_refusal_reach_nobody(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = encode(Refusal(ESCAPES * 500, site="b"))
    network = open_network(tables, Rows=lambda reply: refusal)
    with pytest.raises(FedLassoError) as refused:
        network.ask(Rows())
    assert str(refused.value).startswith("site 'b': no such column x")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1100
    monkeypatch.setattr("fedlasso.deploy.network.printable", lambda text: text)
    with pytest.raises(FedLassoError, match="\x1b"):
        network.ask(Rows())


def test_escape_sequences_in_what_a_site_says_of_itself_reach_nobody(
    tables: dict[str, Path],
) -> None:
    def colourful(reply: Any) -> bytes:
        return encode(replace(reply, version=f"0\x1b[2J{reply.version}", columns=(ESCAPES,)))

    network = Network(DoorLine(make_doors(tables), tampering={"Introduce": colourful}), "abc", 1.0)
    network.introduce()
    reported = network.introductions[1]
    assert (reported.version[:3], reported.columns) == ("00.", ("no such column x",))


def test_levels_that_would_steer_a_terminal_are_refused(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    for path in tables.values():
        path.write_text(path.read_text().replace("patient", "\x1b[2Jpatient"))
    network = Network(DoorLine(make_doors(tables)), list(tables), 1.0)
    with pytest.raises(FedLassoError, match="site 'a': column 'note': remove control characters"):
        network.open(NetworkSource("project", FIT, "y", ("note", "x00")))


@pytest.mark.parametrize("text", ["Größe 3 µm", "a\u00a0b", "日本", "x^2 [m]"])
def test_honest_texts_stay_as_they_are(text: str) -> None:
    assert printable(text) == text
