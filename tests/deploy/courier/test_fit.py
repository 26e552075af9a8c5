"""A fit by files has the bytes of the same fit in one process, in few round trips."""

from pathlib import Path

import pytest
from helpers.deploy.post import Post
from helpers.nets import same_files, write_tables

from fedlasso.deploy.courier.collect import collect
from fedlasso.errors import FedLassoError


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


def test_a_linear_fit_takes_four_round_trips_and_has_the_bytes_of_one_process(
    post: Post, tmp_path: Path
) -> None:
    fit = post.ask()
    finished = post.finish(fit)
    assert len(fit.trips()) == 4
    assert same_files(
        tmp_path / "post" / "model", post.repeat(finished.document, tmp_path / "alone")
    )
    for entry in finished.reconciled.values():
        assert entry.used == entry.arrived == entry.sent > 0
    # The last files let the sites delete the keys of the fit.
    for question in fit.outstanding():
        outcome = post.answer(question)
        assert outcome.ended
        assert outcome.answer is None
    for site in post.tables:
        kept = post.kit(site) / "courier" / fit.name
        assert [path.name for path in kept.iterdir()] == ["ended"]


def test_the_same_question_has_the_same_answer_and_no_other_is_taken(post: Post) -> None:
    fit = post.ask()
    question, *others = fit.outstanding()
    first = post.answer(question).answer
    assert first is not None
    data = first.read_bytes()
    first.unlink()
    again = post.answer(question)
    assert again.answer == first
    assert first.read_bytes() == data
    assert "same answer" in again.text
    assert collect(post.place, first) == (fit, True)
    assert collect(post.place, first) == (fit, False)
    with pytest.raises(FedLassoError, match="is for site 'b' of project 'trial', not for 'a'"):
        post.mailbox("a").answer(others[0])


def test_nothing_is_written_without_a_yes(post: Post, tmp_path: Path) -> None:
    shown: list[str] = []

    def decline(text: str) -> bool:
        shown.append(text)
        return False

    post.agree = decline
    fit = post.ask()
    for _ in range(3):
        for question in fit.outstanding():
            assert post.answer(question).answer is None
            assert not question.with_suffix(".fla").exists()
        post.agree = None
        post.carry(fit)
        assert post.advance(fit) is None
        post.agree = decline
    assert "Would leave: 120 rows as a count" in shown[0]
    assert "All sites of the fit: a, b, c" in shown[3]
    assert "masked: only the total of all sites can be read" in shown[6]
