"""Masks that cancel in the total: the server learns what all sites' words come to, and no more.

Every two sites agree on a secret by X25519, with keys that are drawn for one session and signed by
their certificates. From it comes a stream of words per question; one of the two adds it, the other
subtracts it. The stream depends on everything that was asked: on the session's opening, on the
question's number and on its bytes. So words masked for different questions never cancel, and no
mask serves two payloads: a number is answered once, and asked again it has the same bytes.
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
    """A site's key for one session, as the JSON of an `Offer`."""

    offer: str


class OfferKey(Request[KeyOffered]):
    """Draw a key for the masks of one session of a fit, and sign it."""

    fit: str
    session: str


@dataclass(frozen=True)
class Offer:
    """A site's key for one session, signed; the parts are text so that anybody can pass them on."""

    name: str
    key: str
    certificate: str
    signature: str

    def write(self) -> str:
        """Return the offer as JSON."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def read(cls, text: str) -> Offer:
        """Return the offer in some JSON."""
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError):
            raise FedLassoError("a key was passed on that is none; update fedlasso") from None


def _statement(fit: str, session: str, name: str, key: bytes) -> bytes:
    """What a site signs: for which fit and session the key is, and whose it is."""
    return b"\0".join([_PURPOSE, fit.encode(), session.encode(), name.encode(), key])


@dataclass(eq=False)
class Ring:
    """One site's part in the masking of one session: its own key, drawn here and kept in memory."""

    name: str
    identity: Identity
    fit: str
    session: str
    _key: Any = field(default=None, init=False)

    def offer(self) -> Offer:
        """Return the public half of the key, signed."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        if self._key is None:
            self._key = X25519PrivateKey.generate()
        signed = _statement(self.fit, self.session, self.name, self._public)
        certificate = self.identity.certificate.read_text()
        signature = self.identity.sign(signed)
        return Offer(self.name, self._public.hex(), certificate, signature.hex())

    @property
    def _public(self) -> bytes:
        return bytes(self._key.public_key().public_bytes_raw())

    def close(self, offers: Sequence[Offer], opening: bytes) -> Masks:
        """Check what the others offer, agree with each, and return the masks of the session.

        `opening` is all that the session was opened with: sites that were told different things
        have masks that do not cancel.
        """
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        names = [offer.name for offer in offers]
        if len(set(names)) < len(names):
            raise FedLassoError("two keys were passed on for one site")
        own = [offer.key for offer in offers if offer.name == self.name]
        if self._key is None or own != [self._public.hex()]:
            raise FedLassoError("the key that was passed on for this site is not its own")
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
                raise FedLassoError(f"the key of {offer.name!r} is none") from None
            signed = _statement(self.fit, self.session, offer.name, key)
            seen[offer.name] = self.identity.check(offer.name, offer.certificate, signature, signed)
            agreed[offer.name] = self._key.exchange(public)
        self.identity.recognise(seen)
        # Nobody can open the same session again with this key.
        self._key = None
        return Masks(self.name, agreed, hashlib.sha256(opening).digest())


@dataclass(eq=False)
class Masks:
    """The masks of one site in one session."""

    name: str
    secrets: Mapping[str, bytes]
    opening: bytes
    _last: tuple[int, bytes, Any] = field(default=(0, b"", None), init=False)

    def again(self, number: int, question: bytes) -> Any:
        """Return what was kept for this very question, or nothing if it is new.

        A number that was used for another question, or an older one, is refused.
        """
        last, asked, answer = self._last
        if number == last and question == asked:
            return answer
        if number <= last:
            raise FedLassoError("this question's number was used before; begin a new session")
        return None

    def mask(self, words: Word, number: int, question: bytes) -> Word:
        """Return words that add up, over all sites, to what the clear ones add up to."""
        masked = words.copy()
        for peer, secret in self.secrets.items():
            stream = _stream(secret, self.opening, number, question, words.size)
            masked = masked + stream if self.name < peer else masked - stream
        return masked

    def keep(self, number: int, question: bytes, answer: Any) -> None:
        """Keep an answer, so that the same question has the same bytes."""
        self._last = (number, question, answer)


def _stream(secret: bytes, opening: bytes, number: int, question: bytes, count: int) -> Word:
    """Return words that two sites who share a secret both know, for one question only."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    about = number.to_bytes(8, "little") + hashlib.sha256(question).digest()
    key = HKDF(hashes.SHA256(), 32, salt=opening, info=about).derive(secret)
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None)
    data = cipher.encryptor().update(bytes(8 * count))
    return np.frombuffer(data, "<u8").astype(np.uint64)


def draw_session() -> str:
    """Return a name for a session that nobody has used before."""
    return secrets.token_hex(16)
