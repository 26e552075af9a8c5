"""Our command and the engine's programs with the defences off, for attacks that shall succeed.

As a command it runs fedlasso, whose engine then is this file too: the engine's own programs with
all of their powers. `open_up` gives a kit the engine's own settings.
"""

import json
import runpy
import sys
from pathlib import Path

PROGRAMS = {
    "site": "nvflare.private.fed.app.client.client_train",
    "server": "nvflare.private.fed.app.server.server_train",
}


def open_up(kit: Path, role: str) -> None:
    """Let everybody do everything, and the engine's processes talk in the clear."""
    from fedlasso.deploy.kit import read_kit, seal_kit

    reported = read_kit(kit, role)
    local = kit / "local"
    rights = {"format_version": "1.0", "permissions": {"project_admin": "any"}}
    (local / "authorization.json").write_text(json.dumps(rights))
    (local / "comm_config.json").unlink()
    resources = (local / "resources.json").read_text()
    launcher = "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher"
    ours = "fedlasso.deploy.nvflare.program.SiteLauncher"
    (local / "resources.json").write_text(resources.replace(ours, launcher))
    seal_kit(kit, reported)


if __name__ == "__main__":
    if sys.argv[1] in PROGRAMS and sys.argv[2] == "-m":
        runpy.run_module(PROGRAMS[sys.argv.pop(1)], run_name="__main__")
    else:
        from fedlasso.cli import main
        from fedlasso.deploy.nvflare import engine

        engine.PROGRAM = "helpers.deploy.nvflare.unguarded"
        sys.exit(main())
