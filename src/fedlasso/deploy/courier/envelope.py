"""A file on its way: signed by its sender, encrypted to its reader.

A file is ``FLC1``, the lengths of its head and its contents, these two, and a signature. The head
is JSON in clear: who sends what to whom, and the key of the contents, encrypted to the reader's
certificate (RSA-OAEP). The contents are encrypted with that key (ChaCha20-Poly1305), which no other
file has. The sender's certificate is in the head, and its key signs all that precedes the
signature.
"""

from __future__ import annotations

import hashlib
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from fedlasso.errors import FedLassoError, Interrupted
from fedlasso.federation.checking import printable
from fedlasso.governance.identity import Identity

_MAGIC = b"FLC1"
_LENGTHS = struct.Struct("<4sIQ")
_LARGEST_HEAD = 1 << 16
_LONGEST_SIGNATURE = 1 << 10
# No honest question or answer is longer.
LARGEST = 1 << 30
Kind = Literal["question", "answer", "end"]


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What anybody may read of a file.

    Attributes
    ----------
    kind : a question, an answer, or the end of a fit
    project, fit : names of the project and the fit
    trip : number of the round trip, from one on
    sender, reader : who signed the file, and who can read it
    about : SHA-256 of the question file that is answered
    last : number of the last masked question that is answered
    certificate : the sender's, as PEM
    key : the encrypted key of the contents, in base64
    """

    kind: Kind
    project: str
    fit: str
    trip: int
    sender: str
    reader: str
    about: str = ""
    last: int = 0
    certificate: str = ""
    key: str = ""


def hash_of(data: bytes) -> str:
    """Return the SHA-256 of a file, by which an answer names its question."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Let errors begin with the name of the file that they are about."""
    try:
        yield
    except FedLassoError as error:
        if not isinstance(error, Interrupted):
            # Others may have named the file.
            error.args = (f"{printable(name)}: {error}", *error.args[1:])
        raise


def read_limited(path: Path) -> bytes:
    """Return the bytes of a file that may be a question or an answer."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise FedLassoError(f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise FedLassoError("is longer than any question or answer")
    return data


def seal(head: Head, contents: bytes, own: Identity, reader: Any) -> bytes:
    """Return a file with some contents; `reader` is the public key of who may read it."""
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    key = ChaCha20Poly1305.generate_key()
    certificate = own.certificate.read_text()
    wrapped = b64encode(reader.encrypt(key, _padding())).decode()
    written = msgspec.json.encode(
        msgspec.structs.replace(head, certificate=certificate, key=wrapped)
    )
    # The key is used once, so the nonce may be constant.
    body = ChaCha20Poly1305(key).encrypt(bytes(12), contents, written)
    signed = _LENGTHS.pack(_MAGIC, len(written), len(body)) + written + body
    return b"".join((signed, own.sign(signed)))


def _divide(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the head, the encrypted contents and the signature of a file."""
    try:
        magic, head, body = _LENGTHS.unpack_from(data)
    except struct.error:
        raise FedLassoError("is no question or answer of fedlasso") from None
    if magic != _MAGIC or head > _LARGEST_HEAD:
        raise FedLassoError("is no question or answer of fedlasso")
    at = _LENGTHS.size + head
    if not at + body < len(data) <= at + body + _LONGEST_SIGNATURE:
        raise FedLassoError("is not complete; have it sent again")
    return data[_LENGTHS.size : at], data[at : at + body], data[at + body :]


def read_head(data: bytes) -> Head:
    """Return the head of a file, which is not verified yet."""
    written, _, _ = _divide(data)
    try:
        return msgspec.json.decode(written, type=Head)
    except (ValueError, RecursionError):
        raise FedLassoError("was changed on its way; have it sent again") from None


def unseal(data: bytes, own: Identity, known: str = "") -> bytes:
    """Return the contents of a file whose sender signed it, encrypted to this participant.

    The fingerprint of the sender's key must be `known`, if given.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    head = read_head(data)
    written, body, signature = _divide(data)
    try:
        signed = data[: len(data) - len(signature)]
        fingerprint = own.check(head.sender, head.certificate, signature, signed)
    except FedLassoError as error:
        remedy = "have it sent again, packed as a .zip if a mail program changes it"
        raise FedLassoError(f"was forged, or changed on its way ({error}); {remedy}") from None
    if known and fingerprint != known:
        raise FedLassoError(
            f"is signed with another key of {head.sender!r} than the one known here"
        )
    try:
        private: Any = serialization.load_pem_private_key(own.key.read_bytes(), None)
        key = private.decrypt(b64decode(head.key, validate=True), _padding())
        return bytes(ChaCha20Poly1305(key).decrypt(bytes(12), body, written))
    except (ValueError, InvalidTag):
        raise FedLassoError("is encrypted to another key than the one here") from None


def _padding() -> Any:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
