"""Keys and certificates: a project's authority signs, and every participant makes its own key."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from fedlasso.atomic_files import write_atomically
from fedlasso.errors import FedLassoError

# Validity in days of the authority's certificate, and of those that it signs.
ROOT_DAYS = 3650
CERTIFICATE_DAYS = 360
# Commands warn in the last days of a certificate.
WARNING_DAYS = 30
ORGANISATION = "fedlasso"


def make_key(path: Path, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Make a private key that only its owner may read."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    write_atomically(path, pem, private=True)
    return key


def read_key(path: Path) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(_read(path), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Read all certificates in a file; an error names the file."""
    data = _read(path)
    try:
        return list(x509.load_pem_x509_certificates(data))
    except ValueError:
        raise FedLassoError(f"{path} is not a certificate") from None


def read_certificate(path: Path) -> x509.Certificate:
    return read_certificates(path)[0]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from None


def write_pem(path: Path, *signed: Any) -> None:
    """Write certificates one after another; also a signing request or a revocation list."""
    pem = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in signed)
    write_atomically(path, pem, private=True)


def format_fingerprint(text: str) -> str:
    """Return a fingerprint in groups of four, to be read aloud."""
    return " ".join(text[k : k + 4] for k in range(0, len(text), 4))


def _name(name: str, role: str = "", organisation: str = ORGANISATION) -> x509.Name:
    # The engine reads a participant's role from the unstructured name.
    kinds = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.UNSTRUCTURED_NAME)
    parts = zip(kinds, (name, organisation, role), strict=True)
    return x509.Name([x509.NameAttribute(kind, part) for kind, part in parts if part])


def common_name(subject: x509.Name) -> str:
    """Return the common name of a certificate's or a request's subject."""
    attributes = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(attributes[0].value) if attributes else ""


def write_request(path: Path, key: rsa.RSAPrivateKey, name: str, project: str) -> None:
    """Write a signing request: name, project and public key, signed with the private key."""
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(name, "", project))
    write_pem(path, request.sign(key, hashes.SHA256()))


def read_request(path: Path, project: str) -> tuple[str, rsa.RSAPublicKey]:
    """Return name and public key of a signing request, which must be for this project."""
    data = _read(path)
    try:
        request = x509.load_pem_x509_csr(data)
    except ValueError:
        raise FedLassoError(f"{path} is not a request of `fedlasso site request`") from None
    key = request.public_key()
    if not request.is_signature_valid or not isinstance(key, rsa.RSAPublicKey):
        raise FedLassoError(f"{path} was changed after it was made; ask the site to send it again")
    organisations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if [part.value for part in organisations] != [project]:
        raise FedLassoError(f"{path} is a request for another project, not {project!r}")
    return common_name(request.subject), key


class Authority:
    """A project's key, certificate `root`, issued certificates and list `revoked`, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.root = folder / "rootCA.pem"
        self.revoked = folder / "revoked.pem"

    def _issued(self, name: str) -> Path:
        return self._folder / "issued" / f"{name}.crt"

    @classmethod
    def create(cls, folder: Path, project: str) -> Authority:
        """Make the key of a new project."""
        folder.mkdir(mode=0o700)
        key = make_key(folder / "root.key", 3072)
        root = _certify(key.public_key(), _name(project, organisation=""), key, None)
        authority = cls(folder)
        write_pem(authority.root, root)
        authority._write_revoked([])
        return authority

    def issued(self, name: str) -> x509.Certificate | None:
        """Return a participant's current certificate, if any."""
        path = self._issued(name)
        return read_certificate(path) if path.exists() else None

    def sign(self, name: str, key: rsa.RSAPublicKey, role: str = "") -> x509.Certificate:
        """Sign a participant's public key, and revoke a certificate for another key."""
        before = self.issued(name)
        if before is not None and before.public_key() != key:
            self.revoke(name)
        own = read_key(self._folder / "root.key")
        certificate = _certify(key, _name(name, role), own, read_certificate(self.root))
        write_pem(self._issued(name), certificate)
        return certificate

    def revoke(self, name: str) -> None:
        """Add a participant's certificate, if there is one, to the revocation list."""
        certificate = self.issued(name)
        if certificate is None:
            return
        listed = x509.load_pem_x509_crl(self.revoked.read_bytes())
        self._write_revoked([*(entry.serial_number for entry in listed), certificate.serial_number])
        self._issued(name).unlink()

    def _write_revoked(self, serials: list[int]) -> None:
        root = read_certificate(self.root)
        now = datetime.now(UTC)
        listed = x509.CertificateRevocationListBuilder().issuer_name(root.subject)
        listed = listed.last_update(root.not_valid_before_utc)
        listed = listed.next_update(root.not_valid_after_utc)
        for serial in serials:
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
            listed = listed.add_revoked_certificate(entry.build())
        key = read_key(self._folder / "root.key")
        write_pem(self.revoked, listed.sign(key, hashes.SHA256()))


def _certify(
    key: rsa.RSAPublicKey, subject: x509.Name, own: rsa.RSAPrivateKey, root: x509.Certificate | None
) -> x509.Certificate:
    """Sign a public key; without a root, the authority's own."""
    now = datetime.now(UTC)
    end = now + timedelta(days=ROOT_DAYS if root is None else CERTIFICATE_DAYS)
    # A certificate does not outlive its authority.
    end = end if root is None else min(end, root.not_valid_after_utc)
    host = common_name(subject)
    try:
        address = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        address = x509.DNSName(host)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root is None else root.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # Clocks elsewhere may be behind.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key()), False)
        .add_extension(x509.SubjectAlternativeName([address]), False)
    )
    if root is None:
        unused = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"), False,
        )  # fmt: skip
        usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **unused)
        builder = builder.add_extension(x509.BasicConstraints(True, None), True)
        builder = builder.add_extension(usage, True)
    return builder.sign(own, hashes.SHA256())


def check_dates(path: Path, name: str, remedy: str) -> list[str]:
    """Refuse a certificate that is not valid now; return a warning if it expires soon."""
    certificate = read_certificate(path)
    now = datetime.now(UTC)
    check = f"check the clock here, which shows {now:%Y-%m-%d %H:%M} UTC"
    what = f"the certificate {path.name} of {name!r}"
    if now < (start := certificate.not_valid_before_utc):
        raise FedLassoError(f"{what} is not valid before {start:%Y-%m-%d %H:%M} UTC; {check}")
    end = certificate.not_valid_after_utc
    if now > end:
        raise FedLassoError(f"{what} expired on {end:%Y-%m-%d}; {remedy}, or {check}")
    days = (end - now).days
    soon = f"{what} expires on {end:%Y-%m-%d}, in {days} days; {remedy}"
    return [soon] if days < WARNING_DAYS else []
