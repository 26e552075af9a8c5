"""A class that a coordinator's kit names, and that leaves a mark where it runs."""

import os
from pathlib import Path

from nvflare.apis.fl_component import FLComponent


class Planted(FLComponent):  # type: ignore[misc]
    """Leaves a file called as the site whose engine has loaded it."""

    def __init__(self) -> None:
        super().__init__()
        # An engine's folder is in the site's kit.
        site = Path(os.environ["HOME"]).parent.name
        Path(os.environ["PLANTED"]).with_suffix(f".{site}").touch()
