"""A site's identity: a certificate under the project's root, and signatures by its key.

The coordinator forwards keys between sites. Signatures under certificates keep it from replacing
them by its own. It also signs the certificates, so a list of keys that people at the site have
compared keeps it from inventing sites.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fedlasso.errors import FedLassoError

# Tolerance of a certificate's dates for wrong clocks.
SKEW = timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """Files of a site's certificate and key, the project's root, and keys accepted of `peers`."""

    certificate: Path
    key: Path
    root: Path
    peers: Path

    def fingerprint(self) -> str:
        """Return the fingerprint of the site's own key."""
        from cryptography import x509

        return fingerprint_of(x509.load_pem_x509_certificate(self.certificate.read_bytes()))

    def sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

        key = serialization.load_pem_private_key(self.key.read_bytes(), None)
        if isinstance(key, rsa.RSAPrivateKey):
            return bytes(key.sign(data, padding.PKCS1v15(), hashes.SHA256()))
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return bytes(key.sign(data, ec.ECDSA(hashes.SHA256())))
        raise FedLassoError(f"{self.key.name} is not an RSA or elliptic-curve key")

    def check(self, name: str, certificate: str, signature: bytes, data: bytes) -> str:
        """Verify that the site of that name signed `data`; return the fingerprint of its key."""
        from cryptography import x509
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

        try:
            theirs = x509.load_pem_x509_certificate(certificate.encode())
            root = x509.load_pem_x509_certificate(self.root.read_bytes())
            theirs.verify_directly_issued_by(root)
            key = theirs.public_key()
            if isinstance(key, rsa.RSAPublicKey):
                key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
            elif isinstance(key, ec.EllipticCurvePublicKey):
                key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
            else:
                raise ValueError("another kind of key")
        except (ValueError, TypeError, InvalidSignature):
            raise FedLassoError(f"the key of {name!r} is not signed by that site") from None
        names = theirs.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        if [attribute.value for attribute in names] != [name]:
            raise FedLassoError(f"the certificate for {name!r} has another name")
        now = datetime.now(UTC)
        if not theirs.not_valid_before_utc - SKEW <= now <= theirs.not_valid_after_utc + SKEW:
            raise FedLassoError(f"the certificate of {name!r} is not valid now")
        return fingerprint_of(theirs)

    def recognise(self, others: Mapping[str, str]) -> None:
        """Refuse keys not accepted here: the signer of certificates could impersonate all sites."""
        accepted = read_peers(self.peers)
        for name, fingerprint in others.items():
            if accepted.get(name) != fingerprint:
                other = "another key than the one" if name in accepted else "a key that was not"
                remedy = "`fedlasso site accept` the file that lists it"
                compare = f"compare it with that site by telephone, then {remedy}"
                raise FedLassoError(f"site {name!r} has {other} accepted here; {compare}")


def read_peers(path: Path) -> dict[str, str]:
    """Return the fingerprints of accepted keys by site."""
    if not path.exists():
        return {}
    try:
        accepted = json.loads(path.read_bytes())
        return {str(name): str(fingerprint) for name, fingerprint in accepted.items()}
    except (ValueError, AttributeError):
        remedy = "move it away, and accept the keys of the sites again"
        raise FedLassoError(f"{path.name} is damaged; {remedy}") from None


def fingerprint_of(certificate: Any) -> str:
    """Return the SHA-256 of a certificate's public key, which people compare by phone."""
    from cryptography.hazmat.primitives import serialization

    key = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(key).hexdigest()
