"""A small authority for tests: a root, and certificates of sites under it."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fedlasso.governance.identity import Identity, fingerprint_of

DAY = timedelta(days=1)


class Authority:
    """A root that signs certificates, each in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.root = self._certify("root", self._key, 30 * DAY)

    def identity(self, name: str, *, lasts: timedelta = 30 * DAY, forged: bool = False) -> Identity:
        """A site's certificate and key, made here; a forged one is another of the same name."""
        here = self.folder / f"{name}{'-forged' if forged else ''}"
        own = Identity(
            here / "own.crt",
            here / "own.key",
            here / "root.pem",
            here / "peers.json",
        )
        if here.exists():
            return own
        here.mkdir(parents=True)
        key = ec.generate_private_key(ec.SECP256R1())
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (here / "own.key").write_bytes(secret)
        (here / "own.crt").write_bytes(_pem(self._certify(name, key, lasts)))
        (here / "root.pem").write_bytes(_pem(self.root))
        return own

    def acquaint(self, names: Iterable[str]) -> dict[str, Identity]:
        """Sites that have accepted each other's keys, and no others."""
        sites = {name: self.identity(name) for name in names}
        for own in sites.values():
            accept_keys(own, sites)
        return sites

    def _certify(
        self, name: str, key: ec.EllipticCurvePrivateKey, lasts: timedelta
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "root")])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * DAY)
            .not_valid_after(now + lasts)
            .sign(self._key, hashes.SHA256())
        )


def accept_keys(own: Identity, sites: Mapping[str, Identity]) -> None:
    """Let a site accept the keys of these, and of no others."""
    certificates = {name: site.certificate.read_bytes() for name, site in sites.items()}
    keys = {
        name: fingerprint_of(x509.load_pem_x509_certificate(reported))
        for name, reported in certificates.items()
    }
    own.peers.write_text(json.dumps(keys))


def _pem(certificate: x509.Certificate) -> bytes:
    return bytes(certificate.public_bytes(serialization.Encoding.PEM))
