"""A site answers without what only Linux and macOS have."""

import subprocess
import sys
from pathlib import Path

from helpers.deploy.post import Post
from helpers.nets import write_tables

# Hides modules and functions that Windows lacks, and locks files as Windows does.
_HIDDEN = """
import os, socket, subprocess, sys, types
import cryptography.x509, msgspec, scipy.optimize
locked = []
windows = types.ModuleType("msvcrt")
windows.LK_LOCK = 1
windows.locking = lambda descriptor, mode, count: locked.append(count)
sys.modules["msvcrt"] = windows
for name in (
    "fcntl", "pwd", "grp", "resource", "nvflare", "psutil", "pandas", "numba", "pyarrow", "sklearn",
):
    sys.modules[name] = None
for name in ("fork", "fchmod", "pread", "getuid", "geteuid", "chown", "fchown", "mkfifo"):
    delattr(os, name)
del socket.AF_UNIX
from fedlasso.cli import main
code = main(sys.argv[1:])
assert locked
sys.exit(code)
"""


def test_a_site_answers_where_posix_is_hidden(tmp_path: Path) -> None:
    post = Post(tmp_path / "post", write_tables(tmp_path))
    fit = post.ask()
    question = fit.outstanding()[0]
    answer = ("answer", post.kit("a"), question, post.tables["a"], "--yes")
    serve = (
        "serve",
        post.kit("b"),
        post.tables["b"],
        "--folder",
        question.parent,
        "--yes",
        "--once",
    )
    for words in (answer, serve):
        command = [sys.executable, "-c", _HIDDEN, "courier", *map(str, words)]
        ended = subprocess.run(command, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
        assert "question 1 of fit" in ended.stdout
    post.carry(fit)
    assert post.advance(fit) is None
