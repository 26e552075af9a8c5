"""Masks that cancel in the total: the server learns the sum of all sites' words, and no more.

Every two sites agree on a secret by X25519, with keys that are drawn for one session and signed
with their certificates. From it they derive a stream of words per question, which one of them adds
and the other subtracts. The stream depends on the session's opening, the question's number and its
bytes. So words masked for different questions never cancel, and no mask is used for two payloads: a
number is answered once, and repeated it has the same bytes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from fedlasso.errors import FedLassoError
from fedlasso.federation.messages import Reply, Request, Word
from fedlasso.governance.identity import Identity

_PURPOSE = b"fedlasso key for masked sums"


class KeyOffered(Reply):
    offer: str  # the JSON of an `Offer`


class OfferKey(Request[KeyOffered]):
    """Draw a key for the masks of one session of a fit, and sign it."""

    fit: str
    session: str


@dataclass(frozen=True)
class Offer:
    """A site's signed key for one session, and its number of rows, as text."""

    name: str
    key: str
    certificate: str
    signature: str
    rows: int = 0

    def write(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> Offer:
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError):
            raise FedLassoError("the offer of a key is malformed; update fedlasso") from None


def _statement(fit: str, session: str, name: str, rows: int, key: bytes) -> bytes:
    """Return what a site signs: its key, with the fit, the session, its name and its rows."""
    texts = (fit, session, name, str(rows))
    return b"\0".join([_PURPOSE, *(text.encode() for text in texts), key])


@dataclass(eq=False)
class Ring:
    """A site's own key for the masks of one session, which is kept in memory only.

    A site that does not run between two questions keeps the bytes `secret`, and gives them again.
    """

    name: str
    identity: Identity
    fit: str
    session: str
    secret: bytes = field(default=b"", repr=False)
    rows: int = 0
    _key: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        if self.secret:
            self._key = X25519PrivateKey.from_private_bytes(self.secret)

    def offer(self) -> Offer:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        if self._key is None:
            self._key = X25519PrivateKey.generate()
            self.secret = self._key.private_bytes_raw()
        signed = _statement(self.fit, self.session, self.name, self.rows, self._public)
        certificate = self.identity.certificate.read_text()
        signature = self.identity.sign(signed)
        return Offer(self.name, self._public.hex(), certificate, signature.hex(), self.rows)

    @property
    def _public(self) -> bytes:
        return bytes(self._key.public_key().public_bytes_raw())

    def close(self, offers: Sequence[Offer], opening: bytes) -> Masks:
        """Verify the sites' offers; return masks that cancel only where `opening` is the same."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        names = [offer.name for offer in offers]
        if len(set(names)) < len(names):
            raise FedLassoError("two keys were received for one site")
        own = [offer.key for offer in offers if offer.name == self.name]
        if self._key is None or own != [self._public.hex()]:
            raise FedLassoError("the key received for this site is not its own")
        agreed = {}
        seen = {}
        for offer in offers:
            if offer.name == self.name:
                continue
            try:
                key = bytes.fromhex(offer.key)
                signature = bytes.fromhex(offer.signature)
                public = X25519PublicKey.from_public_bytes(key)
            except ValueError:
                raise FedLassoError(f"the key of {offer.name!r} is malformed") from None
            signed = _statement(self.fit, self.session, offer.name, offer.rows, key)
            seen[offer.name] = self.identity.check(offer.name, offer.certificate, signature, signed)
            agreed[offer.name] = self._key.exchange(public)
        self.identity.recognise(seen)
        # The session cannot be opened again with this key.
        self._key = None
        self.secret = b""
        seen[self.name] = self.identity.fingerprint()
        others = tuple(max(offer.rows, 0) for offer in offers if offer.name != self.name)
        return Masks(self.name, agreed, hashlib.sha256(opening).digest(), seen, others)


@dataclass(eq=False)
class Masks:
    """The masks of one site in one session; `members` are all sites' keys by fingerprint."""

    name: str
    secrets: Mapping[str, bytes]
    opening: bytes
    members: dict[str, str] = field(default_factory=dict)
    other_rows: tuple[int, ...] = ()
    _last: int = field(default=0, init=False)
    _kept: dict[int, tuple[bytes, Any]] = field(default_factory=dict, init=False)
    _started: bool = field(default=True, init=False)

    def go_on(self, last: int) -> None:
        """Go on after the question with this number, which was answered before a restart."""
        self._last = max(last, self._last)

    def start(self) -> None:
        """Start a question or batch: the next answer with a new number replaces those kept."""
        self._started = True

    def again(self, number: int, question: bytes) -> Any:
        """Return the answer kept for this very question, or None; refuse any other used number."""
        previous, answer = self._kept.get(number, (b"", None))
        if answer is not None and question == previous:
            return answer
        if number <= self._last:
            raise FedLassoError("this question's number was used before; start a new session")
        return None

    def mask(self, words: Word, number: int, question: bytes) -> Word:
        """Return masked words, which have the same total over all sites as the clear ones."""
        masked = words.copy()
        for peer, secret in self.secrets.items():
            stream = _stream(secret, self.opening, number, question, words.size)
            masked = masked + stream if self.name < peer else masked - stream
        return masked

    def keep(self, number: int, question: bytes, answer: Any) -> None:
        """Keep an answer, so that the repeated question or batch has the same bytes."""
        if self._started and number > self._last:
            self._kept.clear()
        self._started = False
        self._kept[number] = (question, answer)
        self._last = max(number, self._last)


def _stream(secret: bytes, opening: bytes, number: int, question: bytes, count: int) -> Word:
    """Return the pseudorandom words that two sites share for one question."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    about = number.to_bytes(8, "little") + hashlib.sha256(question).digest()
    key = HKDF(hashes.SHA256(), 32, salt=opening, info=about).derive(secret)
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None)
    data = cipher.encryptor().update(bytes(8 * count))
    return np.frombuffer(data, "<u8").astype(np.uint64)


def draw_session() -> str:
    return secrets.token_hex(16)
