"""A fit by files in this process: a project, its sites' kits, and files carried between them."""

import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedlasso.atomic_files import write_atomically
from fedlasso.deploy.courier.collect import Place, PostedFit, begin, collect
from fedlasso.deploy.courier.mailbox import Answered, Mailbox
from fedlasso.deploy.courier.plain_words import ConfirmAnswer
from fedlasso.deploy.courier.post import Awaiting
from fedlasso.deploy.kit import accept, read_secret, request
from fedlasso.deploy.nvflare.project import create_project, sign_request
from fedlasso.deploy.run import Finished, repeat_fit
from fedlasso.fitting import Settings
from fedlasso.models import FitPlan, ModelDocument, NetworkSource, write_model


@functools.cache
def _enrolled(sites: tuple[str, ...]) -> Path:
    """A project whose sites have accepted each other; its keys take seconds to make."""
    base = Path(tempfile.mkdtemp(prefix="fedlasso-post-"))
    create_project(base / "trial", None, sites)
    for site in sites:
        shutil.unpack_archive(base / "trial" / "kits" / f"{site}.zip", base / "sites")
        signed, _ = request(base / "sites" / site)
        sign_request(base / "trial", signed)
    for site in sites:
        accept(base / "sites" / site, base / "trial" / "kits" / f"{site}.crt", lambda *_: True)
    return base


class Post:
    """A project and its sites in a new folder; `tables` are the sites' data."""

    def __init__(
        self,
        folder: Path,
        tables: Mapping[str, Path],
        policy: Path | None = None,
        agree: ConfirmAnswer | None = None,
    ) -> None:
        shutil.copytree(_enrolled(tuple(sorted(tables))), folder)
        self.folder = folder
        self.place = Place(folder / "trial")
        self.tables = tables
        self.policy = policy
        self.agree = agree

    def fix_secrets(self, key: bytes) -> None:
        """Give every site the same secret, on which its folds depend."""
        for site in self.tables:
            write_atomically(self.kit(site) / "books" / "key", key, private=True)

    def kit(self, site: str) -> Path:
        return self.folder / "sites" / site

    def ask(self, settings: Settings | None = None, out: str = "model", **source: Any) -> PostedFit:
        """Begin a fit; its first questions are in the outbox."""
        given = NetworkSource("trial", "", **{"target": "y", "drop": ("note",), **source})
        plan = FitPlan(settings or Settings(), given, False)
        fit = begin(self.place, plan, self.folder / out)
        assert self.advance(fit) is None
        return fit

    def advance(self, fit: PostedFit) -> Finished | None:
        """The finished fit, or None if answers are missing."""
        try:
            return fit.advance()
        except Awaiting:
            return None

    def mailbox(self, site: str) -> Mailbox:
        return Mailbox(self.kit(site), self.tables[site], self.policy, self.agree)

    def answer(self, question: Path) -> Answered:
        """The answer of the site that a question file names."""
        return self.mailbox(question.name.rsplit("-", 2)[0]).answer(question)

    def carry(self, fit: PostedFit) -> list[Path]:
        """Carry all questions to the sites, and their answers back; return the answers' files."""
        outcomes = [self.answer(question) for question in fit.outstanding()]
        answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
        for path in answers:
            assert collect(self.place, path) == (fit, True)
        return answers

    def carry_again(self, fit: PostedFit) -> None:
        """Carry all questions and answers, also those that were carried before."""
        for question in fit.outstanding():
            answer = self.answer(question).answer
            assert answer is not None
            collect(self.place, answer)

    def finish(self, fit: PostedFit) -> Finished:
        """Carry files until the model is there."""
        while True:
            self.carry(fit)
            finished = self.advance(fit)
            if finished is not None:
                return finished

    def repeat(self, document: ModelDocument, out: Path) -> Path:
        """The same fit in one process, with the sites' secrets."""
        keys = {site: read_secret(self.kit(site)) for site in self.tables}
        write_model(out, repeat_fit(document, self.tables, keys))
        return out
