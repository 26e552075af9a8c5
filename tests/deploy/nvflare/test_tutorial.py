"""The operator's tutorial is followed word for word: one shell, one server, three sites."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nvflare")

from helpers.pages import blocks, words

from fedlasso.deploy.nvflare.local import reserve_port

PAGE = Path(__file__).parents[3] / "docs" / "tutorials" / "operator.md"
MARK = "--- next block ---"


def write_script(port: int) -> tuple[str, dict[int, str]]:
    """The page as one script, and what its blocks print, by their number."""
    script = ["set -e"]
    printed = {}
    count = 0
    for language, text in blocks(PAGE, "sh", "bash", "python", "text", "output"):
        # Another federation may use the port of the page.
        text = text.replace("8443", str(port))
        if language in ("text", "output"):
            printed[count] = text
            continue
        count += 1
        script.append(f"echo '{MARK}'")
        script.append(f"python - <<'PYTHON'\n{text}\nPYTHON" if language == "python" else text)
    return "\n".join(script), printed


def test_every_command_of_the_operators_tutorial_runs_as_written(tmp_path: Path) -> None:
    with reserve_port() as kept:
        script, printed = write_script(kept.getsockname()[1])
        environment = os.environ | {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        # A session of its own, so that nothing is left behind if a command fails.
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            out, errors = shell.communicate(timeout=1200)
        finally:
            if shell.poll() is None or shell.returncode:
                os.killpg(shell.pid, signal.SIGKILL)
    logs = {path.name: path.read_text()[-2000:] for path in tmp_path.glob("*.log")}
    assert shell.returncode == 0, (out[-2000:], errors[-2000:], logs)
    said = out.split(MARK)
    assert len(printed) == 2
    for number, text in printed.items():
        assert words(said[number]) == words(text)
    assert (tmp_path / "model" / "card.html").exists()
    assert "for 1 fit, 0 refused" in out
    assert "stopped after" in logs["north.log"]
