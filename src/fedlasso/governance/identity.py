"""Who a site is to the others: a certificate under the project's root, and signatures by its key.

The coordinator passes keys on between sites. A signature under a certificate keeps it from putting
its own in their place. It signs the certificates too, so a list of the keys that people at the site
have compared keeps it from inventing sites.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fedlasso.errors import FedLassoError

# How far a clock may be off before the dates of certificates count.
SKEW = timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    """A site's own certificate and key, and the root that all certificates of a project are under.

    They are files in PEM; `peers` is one with the keys of other sites that were accepted here.
    """

    certificate: Path
    key: Path
    root: Path
    peers: Path

    def sign(self, data: bytes) -> bytes:
        """Sign with the site's own key."""
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

        key = serialization.load_pem_private_key(self.key.read_bytes(), None)
        if isinstance(key, rsa.RSAPrivateKey):
            return bytes(key.sign(data, padding.PKCS1v15(), hashes.SHA256()))
        if isinstance(key, ec.EllipticCurvePrivateKey):
            return bytes(key.sign(data, ec.ECDSA(hashes.SHA256())))
        raise FedLassoError(f"{self.key.name} is of a kind that signs nothing here")

    def check(self, name: str, certificate: str, signature: bytes, data: bytes) -> str:
        """Refuse what another site of that name, in this project, has not signed.

        What is returned is the fingerprint of its key.
        """
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
            raise FedLassoError(f"the certificate shown for {name!r} is of somebody else")
        now = datetime.now(UTC)
        if not theirs.not_valid_before_utc - SKEW <= now <= theirs.not_valid_after_utc + SKEW:
            raise FedLassoError(f"the certificate of {name!r} is not valid now")
        return fingerprint_of(theirs)

    def recognise(self, others: Mapping[str, str]) -> None:
        """Refuse sites whose keys were not accepted here, from the first session on.

        Whoever signs certificates could otherwise be all other sites by itself.
        """
        accepted = read_peers(self.peers)
        for name, fingerprint in others.items():
            if accepted.get(name) != fingerprint:
                other = "another key than the one" if name in accepted else "a key that was not"
                raise FedLassoError(
                    f"site {name!r} has {other} accepted here; compare it with that site by "
                    "telephone, then `fedlasso site accept` the file that lists it"
                )


def read_peers(path: Path) -> dict[str, str]:
    """Return the fingerprints of the keys that were accepted, by the names of the sites."""
    if not path.exists():
        return {}
    try:
        accepted = json.loads(path.read_bytes())
        return {str(name): str(fingerprint) for name, fingerprint in accepted.items()}
    except (ValueError, AttributeError):
        raise FedLassoError(
            f"{path.name} is damaged; move it away, and accept the keys of the sites anew"
        ) from None


def fingerprint_of(certificate: Any) -> str:
    """Return the SHA-256 of a certificate's public key, which people compare by phone."""
    from cryptography.hazmat.primitives import serialization

    key = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return hashlib.sha256(key).hexdigest()
