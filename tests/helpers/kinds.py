"""The package's own messages, whatever other tests have defined in the same process."""

from typing import Any

import fedlasso.deploy.site_data
import fedlasso.study.earlier  # noqa: F401  (has two questions of its own)
from fedlasso.federation import Message, Request
from fedlasso.federation.messages import TYPES, questions


def own_messages() -> dict[str, type[Message]]:
    """Every message that the package itself defines, sorted by name."""
    own = {name: cls for name, cls in TYPES.items() if cls.__module__.startswith("fedlasso.")}
    return dict(sorted(own.items()))


def own_questions() -> dict[str, type[Request[Any]]]:
    """Every question that the package's own sites answer, sorted by name."""
    own = {n: cls for n, cls in questions().items() if cls.__module__.startswith("fedlasso.")}
    return dict(sorted(own.items()))
