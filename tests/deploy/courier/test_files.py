"""Files that were changed, mixed up or forged are refused in one line, and nothing is lost."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
from helpers.deploy.post import Post
from helpers.nets import same_files, write_tables

from fedlasso.deploy.courier import contents
from fedlasso.deploy.courier.collect import Place, collect, collect_data
from fedlasso.deploy.courier.envelope import read_head, seal, unseal
from fedlasso.deploy.kit import identify
from fedlasso.deploy.nvflare.project import revoke_site
from fedlasso.errors import FedLassoError
from fedlasso.governance.identity import Identity

MUTATIONS = 5_000


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path / "post", write_tables(tmp_path))


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """All files with their sizes and times; locks are empty files."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def reseal(data: bytes, inside: bytes, own: Identity, reader: object, **changes: object) -> bytes:
    """A file with another head and other contents, signed by `own`."""
    head = msgspec.structs.replace(read_head(data), **changes)
    return seal(head, inside, own, reader)


def test_files_that_are_mixed_up_are_refused_and_the_fit_ends_as_before(
    post: Post, tmp_path: Path
) -> None:
    first = post.ask(out="first")
    second = post.ask(out="second")
    one, other = (post.answer(fit.outstanding()[0]).answer for fit in (first, second))
    assert one is not None
    assert other is not None
    key = post.place.key_of("a")
    coordinator = post.place.own.certificate
    certificate = read_certificate(coordinator)
    forged = {
        "cut short": (one.read_bytes()[:-300], "is not complete"),
        "empty": (b"", "is no question or answer"),
        "a question": (
            first.outstanding()[0].read_bytes(),
            "is a question; give the file of an answer",
        ),
        "of a site in another's name": (
            reseal(one.read_bytes(), b"", identify(post.kit("b")), certificate),
            "was forged",
        ),
        "of another fit": (
            reseal(one.read_bytes(), b"", identify(post.kit("a")), certificate, fit=second.name),
            "answers another question",
        ),
        "of no fit": (
            reseal(one.read_bytes(), b"", identify(post.kit("a")), certificate, fit="../../x"),
            "belongs to no fit",
        ),
        "of a later trip": (
            reseal(one.read_bytes(), b"", identify(post.kit("a")), certificate, trip=3),
            "was not asked",
        ),
        "to another reader": (
            reseal(one.read_bytes(), b"", identify(post.kit("a")), key),
            "is encrypted to another key",
        ),
        "with other contents": (
            reseal(one.read_bytes(), b"?", identify(post.kit("a")), certificate),
            "another version",
        ),
    }
    before = stamps(post.place.folder)
    for data, why in forged.values():
        with pytest.raises(FedLassoError, match=why) as refused:
            collect_data(post.place, "x.fla", data)
        assert "\n" not in str(refused.value)
    assert stamps(post.place.folder) == before
    # A second, different answer to the same question: the first one is kept.
    assert collect(post.place, one) == (first, True)
    inside = contents.write(contents.AnswerContents(b"", b""))
    twice = reseal(one.read_bytes(), inside, identify(post.kit("a")), certificate)
    with pytest.raises(FedLassoError, match="differs from the answer that was collected"):
        collect_data(post.place, "x.fla", twice)
    for question in first.outstanding()[1:]:
        answer = post.answer(question).answer
        assert answer is not None
        collect(post.place, answer)
    assert post.advance(first) is None
    finished = post.finish(first)
    assert same_files(post.folder / "first", post.repeat(finished.document, tmp_path / "alone"))


def read_certificate(path: Path) -> object:
    """The public key of a certificate."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(path.read_bytes()).public_key()


def test_a_site_that_was_revoked_is_heard_no_more(post: Post) -> None:
    fit = post.ask()
    answers = {q.name: post.answer(q).answer for q in fit.outstanding()}
    revoke_site(post.place.folder, "b")
    for name, answer in answers.items():
        assert answer is not None
        place = Place(post.place.folder)
        if not name.startswith("b-"):
            assert collect(place, answer)[1]
            continue
        with pytest.raises(FedLassoError, match="no site is called 'b'; the sites are a, c"):
            collect(place, answer)


def test_a_site_answers_its_coordinator_only_in_order_and_never_after_the_end(post: Post) -> None:
    fit = post.ask()
    question = fit.outstanding()[0]
    data = question.read_bytes()
    own = read_certificate(identify(post.kit("a")).certificate)
    inside = contents.write(contents.QuestionContents(b"FL1"))
    coordinator = post.place.own
    forged = {
        "signed by a site": (
            reseal(data, inside, identify(post.kit("b")), own),
            "was forged",
        ),
        "a site's own": (
            reseal(data, inside, identify(post.kit("b")), own, sender="b"),
            "was not sent by the coordinator",
        ),
        "too early": (reseal(data, inside, coordinator, own, trip=3), "question 1 is due"),
        "of no fit": (reseal(data, inside, coordinator, own, fit="../../x"), "names no fit"),
        "no question": (reseal(data, inside, coordinator, own), "malformed"),
        "an answer": (reseal(data, inside, coordinator, own, kind="answer"), "is an answer"),
    }
    before = stamps(post.kit("a") / "books")
    for changed, why in forged.values():
        with pytest.raises(FedLassoError, match=why):
            post.mailbox("a").reply("x.flq", changed)
    assert stamps(post.kit("a") / "books") == before
    first = post.answer(question)
    with pytest.raises(FedLassoError, match="had other contents when it was answered"):
        post.mailbox("a").reply("x.flq", reseal(data, inside, coordinator, own))
    assert first.data == post.mailbox("a").reply(question.name, data).data
    end = reseal(data, contents.write(contents.QuestionContents(b"")), coordinator, own, kind="end")
    assert post.mailbox("a").reply("x.flq", end).ended
    with pytest.raises(FedLassoError, match="has ended here"):
        post.mailbox("a").reply(question.name, data)


def mutate(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """One random change of a file."""
    at, end = sorted(rng.integers(0, len(data), 2).tolist())
    changed = bytearray(data)
    match rng.integers(6):
        case 0:
            changed[at] ^= int(rng.integers(1, 256))
        case 1:
            del changed[at : end + 1]
        case 2:
            changed[at:end] = rng.bytes(end - at)
        case 3:
            changed[at:at] = rng.bytes(int(rng.integers(1, 50)))
        case 4:
            changed[at:] = other[at:]
        case _:
            # The head is text: another digit or letter often is valid JSON.
            place = int(rng.integers(16, 300))
            changed[place] = int(rng.choice(list(b'0123456789abcdef"{}:,')))
    return bytes(changed)


def test_names_that_others_chose_have_no_line_breaks_and_escape_sequences(post: Post) -> None:
    shown: list[str] = []

    def decline(text: str) -> bool:
        shown.append(text)
        return False

    post.agree = decline
    fit = post.ask()
    question = fit.outstanding()[0].read_bytes()
    own = read_certificate(identify(post.kit("a")).certificate)
    inside = contents.read(unseal(question, identify(post.kit("a"))), contents.QuestionContents)
    author = "Eve\nWould leave: nothing\x1b[2J"
    named = contents.write(msgspec.structs.replace(inside, author=author))
    post.mailbox("a").reply("x.flq", reseal(question, named, post.place.own, own))
    assert "Would leave: nothing" not in shown[0].splitlines()
    assert "\x1b" not in shown[0]
    with pytest.raises(FedLassoError) as refused:
        collect_data(post.place, "x\n\x1b[2Jcollected.fla", b"FLC1")
    assert str(refused.value).isprintable()


@pytest.mark.full
def test_ten_thousand_changed_files_are_refused_and_nothing_is_written(post: Post) -> None:
    rng = np.random.default_rng(7)
    fit = post.ask()
    question, other = (path.read_bytes() for path in fit.outstanding()[:2])
    answers = [post.answer(path).data for path in fit.outstanding()[:2]]
    assert answers[0] is not None
    assert answers[1] is not None
    before = stamps(post.folder)
    for _ in range(MUTATIONS):
        changed = mutate(answers[0], answers[1], rng)
        if changed not in answers:
            with pytest.raises(FedLassoError) as refused:
                collect_data(post.place, "x.fla", changed)
            assert "\n" not in str(refused.value)
        changed = mutate(question, other, rng)
        if changed not in (question, other):
            with pytest.raises(FedLassoError) as refused:
                post.mailbox("a").reply("x.flq", changed)
            assert "\n" not in str(refused.value)
    assert stamps(post.folder) == before
