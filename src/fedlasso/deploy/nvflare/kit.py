"""A kit: the folder with which one participant takes part, and what a site keeps in it."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from fedlasso import __version__
from fedlasso.deploy.records import TableRecords
from fedlasso.errors import FedLassoError
from fedlasso.federation import encode
from fedlasso.files import write_atomically
from fedlasso.governance import Audit, Desk, Door, read_policy
from fedlasso.governance.door import Refusal
from fedlasso.governance.guard import tell


@dataclass(frozen=True)
class Kit:
    """Who a kit is for, and the hashes of the files that must not change."""

    project: str
    name: str
    role: str
    host: str
    port: int
    files: dict[str, str]


def seal(folder: Path, kit: Kit) -> None:
    """Write a kit's identity with the hashes of its files; only its owner may read it."""
    sealed = replace(kit, files=_hashes(folder))
    write_atomically(folder / "kit.json", json.dumps(asdict(sealed), indent=1).encode())
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() or path.suffix == ".sh" else 0o600)


def _hashes(folder: Path) -> dict[str, str]:
    paths = sorted([*folder.glob("startup/*"), *folder.glob("local/*")])
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in paths}


def read_kit(folder: Path, role: str = "site") -> Kit:
    """Return who a kit is for, once its seal is checked."""
    try:
        kit = msgspec.json.decode((folder / "kit.json").read_bytes(), type=Kit)
    except (OSError, ValueError):
        raise FedLassoError(f"{folder} is no kit; unpack the one you were sent") from None
    if kit.role != role:
        raise FedLassoError(f"{folder} is a kit for a {kit.role}, not for a {role}")
    if _hashes(folder) != kit.files:
        raise FedLassoError(f"{folder}: the seal is broken, files were changed; ask for a new kit")
    return kit


def open_audit(folder: Path) -> Audit:
    """Open the books of a site."""
    return Audit(folder / "books" / "audit.jsonl")


def read_key(folder: Path) -> bytes:
    """Return the site's secret for fingerprints, which is drawn once."""
    path = folder / "books" / "key"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600, exist_ok=False)
        path.write_bytes(secrets.token_bytes(32))
    return path.read_bytes()


def configure_site(folder: Path, data: Path, policy: Path | None) -> None:
    """Say which data and which rules the engine's jobs will use here."""
    start = {"data": str(data.resolve()), "policy": str(policy.resolve()) if policy else None}
    write_atomically(folder / "site.json", json.dumps(start).encode())


def open_door(folder: Path) -> Door:
    """Open the door of the site whose engine was started from this kit."""
    kit = read_kit(folder)
    start = json.loads((folder / "site.json").read_bytes())
    policy = read_policy(Path(start["policy"]) if start["policy"] else None)
    records = TableRecords(Path(start["data"]), read_key(folder), kit.name)
    desk = Desk(folder / "pending")
    return Door(
        kit.name, records, policy, open_audit(folder), folder / "memory", __version__, desk.approve
    )


def refuse(error: Exception) -> bytes:
    """Return a refusal for when there is not even a door."""
    return encode(Refusal(tell(error)))
