"""What left a site, in plain words for a data protection officer."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from fedlasso.federation.messages import questions, roles
from fedlasso.governance.audit import Entry
from fedlasso.governance.membership import ACCEPTED, OPENED

# Roles of numbers that make a question one about a model of the coordinator's choice.
_MODEL = {"model", "points", "accumulated"}
# Answers of one kind at chosen models that stand out in one fit: a number, and some per column,
# since usual fits of more columns take more steps, but at most OFTEN_IN_ALL; answers about ranges;
# and the percentage of the values that as many numbers left. In all fits of a file FITS times as
# many stand out.
OFTEN = 100
OFTEN_PER_COLUMN = 3
OFTEN_IN_ALL = 400
OFTEN_RANGES = 20
FITS = 2
MANY_PERCENT = 90.0
RANGES = ("BaselineAt", "GroupsAt", "ScoreRanges")
_ABOUT_SITE = ("Introduce", "DescribeColumns", "FindOthers", "OfferKey", OPENED, "SummariseAudit")
_SINGLE_COLUMNS = (
    "CentredSquares", "ColumnSizes", "ColumnSums", "MeanEigenvalue", "ResponseSquares",
    "ResponseSums", "Rows", "Standardise", "SummariseTable",
)  # fmt: skip
_PAIRS = (
    "AllMoments", "FoldMoments", "LargestEigenvalue", "MomentsOf", "SubsetMoments",
    "WeightedEigenvalue",
)  # fmt: skip
_OWN_MODELS = ("ChoosePenalty", "DebiasedFit", "LocalFit", "LocalVotes", "OwnFit")


@dataclass
class FileSummary:
    """What left of one data file: records, columns, fits, and how many numbers.

    `percent` is how many numbers left per value that they are about, as the limit `max_numbers`
    counts them: `compared` has the rows and columns of every fit. Numbers in `again` had left
    before.
    """

    data: str
    rows: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    fits: dict[str, None] = field(default_factory=dict)
    compared: dict[tuple[int, int], None] = field(default_factory=dict)
    numbers: int = 0
    again: int = 0
    percent: float = 0.0


def at_chosen_model(question: str) -> bool:
    """Return whether the coordinator chooses the model that a question is about."""
    known = questions().get(question)
    return known is not None and any(role.kind in _MODEL for role in roles(known).values())


def kind_of_answer(question: str) -> str:
    """Return what an answer holds, in plain words."""
    if question in _ABOUT_SITE:
        return "column names, number of records and technical data of the connection"
    if question == ACCEPTED:
        return "nothing: the operator accepted other sites"
    if question in _SINGLE_COLUMNS:
        return "counts of records, and sums and averages of single columns"
    if question in _PAIRS:
        return "sums that show how columns go together, two at a time"
    if question in _OWN_MODELS:
        return "a statistical model computed from this site's records"
    if question in RANGES:
        return "counts and sums in ranges of records"
    known = questions().get(question)
    if known is not None and known.discloses.held_out:
        return "how well a model predicts, as sums over records"
    if at_chosen_model(question):
        return "sums over records that depend on a model which the coordinator chose"
    return "other sums over records"


def summarise_files(entries: Iterable[Entry]) -> list[FileSummary]:
    """Return what left of each data file, in the order of first use."""
    files: dict[str, FileSummary] = {}
    for entry in entries:
        if not entry.data or entry.verdict != "sent":
            continue
        summary = files.setdefault(entry.data, FileSummary(entry.data))
        summary.rows = entry.rows or summary.rows
        summary.columns |= dict.fromkeys(entry.columns)
        if entry.total_rows:
            summary.compared[entry.total_rows, entry.encoded] = None
        if entry.fit:
            summary.fits[entry.fit] = None
        if "numbers" in entry.spent:
            summary.numbers += entry.numbers
            summary.percent += 100 * entry.spent["numbers"]
        else:
            summary.again += entry.numbers
    return list(files.values())


def participants(entries: Iterable[Entry]) -> dict[tuple[str, str], set[str]]:
    """Return the fits of every site, by its name and the fingerprint of its key."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in entries:
        if entry.question == OPENED and entry.verdict == "sent":
            for site, key in entry.sites.items():
                found[site, key].add(_fit_of(entry))
    return dict(sorted(found.items()))


def _fit_of(entry: Entry) -> str:
    # The door's own entries have the fit in their text.
    return entry.fit or entry.about.partition(":")[0].removeprefix("fit ")


def find_unusual(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield sentences about what an officer should ask the coordinator about."""
    asked: Counter[tuple[str, int, str, str]] = Counter()
    opened: set[str] = set()
    changed = 0
    for entry in entries:
        # The same answer again reveals nothing new.
        if entry.data and entry.verdict == "sent" and "numbers" in entry.spent:
            asked[f"fit {entry.fit[:8]}", 1, entry.data, entry.question] += 1
            asked[f"data file {entry.data[:8]}", FITS, entry.data, entry.question] += 1
        if entry.question == OPENED and entry.sites:
            opened.add(" ".join(sorted(entry.sites)))
            changed += entry.verdict == "refused"
    files = {summary.data: summary for summary in summarise_files(entries)}
    for (where, fits, data, question), times in asked.items():
        columns = max((columns for _, columns in files[data].compared), default=0)
        usual = min(OFTEN + OFTEN_PER_COLUMN * columns, OFTEN_IN_ALL)
        if at_chosen_model(question) and times > fits * usual:
            kind = "answers at models that the coordinator chose"
            yield f"{where} got {times:,} {kind} ({question}); usual fits need fewer"
        if question in RANGES and times > fits * OFTEN_RANGES:
            yield f"{where} got {times:,} answers about ranges of records ({question})"
    if len(opened) > 1:
        yield f"fits named {len(opened)} different sets of sites; {changed} openings were refused"
    for summary in files.values():
        if summary.percent > MANY_PERCENT:
            many = f"{summary.percent:.0f}% as many numbers as values were sent"
            yield f"of data file {summary.data[:8]}, {many}"
