"""An interrupted fit goes on from its journal, with the same bits and nothing asked twice."""

from pathlib import Path
from typing import TypeVar

import pytest
from helpers.draws import draw_federation, draw_sites

from fedlasso import REGISTRY, FedLassoError, InProcess, fit
from fedlasso.federation import Around, Journal, Reply, Request
from fedlasso.sites import Memory

R = TypeVar("R", bound=Reply)


class Failing(Around):
    """A federation that fails after so many questions."""

    def __init__(self, inner: InProcess, questions: int) -> None:
        super().__init__(inner)
        self.left = questions
        self.count = 0

    def replies(self, request: Request[R]) -> tuple[R, ...]:
        if self.left == 0:
            raise FedLassoError("site 'b' did not answer")
        self.left -= 1
        self.count += 1
        return self.inner.replies(request)


def remembering(folder: Path) -> InProcess:
    """Sites whose memory outlives them."""
    sites = draw_sites()
    for site in sites:
        site.memory = Memory(folder / site.name)
    return InProcess(sites)


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_an_interrupted_fit_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    whole = fit(draw_federation(), name, penalty=0.15, rounds=6)
    questions = 0
    for attempt in range(20):
        federation = Failing(remembering(tmp_path), 3 if attempt else 2)
        try:
            resumed = fit(Journal(federation, tmp_path / "journal"), name, penalty=0.15, rounds=6)
        except FedLassoError:
            questions += federation.count
            continue
        questions += federation.count
        break
    assert resumed.coefficients.tobytes() == whole.coefficients.tobytes()
    assert resumed.costs.entries == whole.costs.entries
    assert questions == len(list((tmp_path / "journal").glob("*.entry")))


def test_a_journal_of_another_fit_is_refused(tmp_path: Path) -> None:
    fit(Journal(draw_federation(), tmp_path), "CD", penalty=0.1, rounds=2)
    with pytest.raises(FedLassoError, match="belongs to another fit"):
        fit(Journal(draw_federation(), tmp_path), "CD", penalty=0.2, rounds=2)


def test_a_damaged_entry_is_refused(tmp_path: Path) -> None:
    fit(Journal(draw_federation(), tmp_path), "CD", penalty=0.1, rounds=2)
    entry = sorted(tmp_path.glob("*.entry"))[1]
    data = bytearray(entry.read_bytes())
    data[len(data) // 2] ^= 1
    entry.write_bytes(bytes(data))
    with pytest.raises(FedLassoError, match="is damaged"):
        fit(Journal(draw_federation(), tmp_path), "CD", penalty=0.1, rounds=2)
