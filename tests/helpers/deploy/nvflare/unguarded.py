"""Our command and the engine's programs with the defences off, for attacks that shall succeed.

As a command it runs fedlasso, whose engine then is this file too: the engine's own programs with
all of their powers. `open_up` gives a kit the engine's own settings.
"""

import json
import runpy
import shutil
import sys
from pathlib import Path
from typing import Any

PROGRAMS = {
    "site": "nvflare.private.fed.app.client.client_train",
    "server": "nvflare.private.fed.app.server.server_train",
}


def open_up(kit: Path) -> None:
    """Let everybody do everything, and the engine's processes talk in the clear."""
    local = kit / "local"
    rights = {"format_version": "1.0", "permissions": {"project_admin": "any"}}
    (local / "authorization.json").write_text(json.dumps(rights))
    (local / "comm_config.json").unlink()
    resources = (local / "resources.json").read_text()
    launcher = "nvflare.app_common.job_launcher.client_process_launcher.ClientProcessJobLauncher"
    ours = "fedlasso.deploy.nvflare.program.SiteLauncher"
    (local / "resources.json").write_text(resources.replace(ours, launcher))


if __name__ == "__main__":
    if sys.argv[1] in PROGRAMS and sys.argv[2] == "-m":
        runpy.run_module(PROGRAMS[sys.argv.pop(1)], run_name="__main__")
    else:
        from fedlasso.cli import main
        from fedlasso.deploy.nvflare import engine, project

        write = project.write_settings

        def write_open(folder: Path, kit: Any) -> None:
            write(folder, kit)
            # As it was once: with whatever settings came with the kit.
            shutil.copytree(folder.parent / "local", folder / "local", dirs_exist_ok=True)
            open_up(folder)

        engine.PROGRAM = "helpers.deploy.nvflare.unguarded"
        engine.write_settings = write_open  # type: ignore[attr-defined]
        engine.Engine._check_restricted = lambda self: None  # type: ignore[method-assign]
        sys.exit(main())
