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

# Days that the authority lasts, and those that what it signs lasts.
ROOT_DAYS = 3650
DAYS = 360
# Days before a certificate's end from which on everybody is warned.
EARLY = 30
ORGANISATION = "fedlasso"


def make_key(path: Path, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Make a private key that only its owner may read."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    form = serialization.PrivateFormat.TraditionalOpenSSL
    told = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    write_atomically(path, told, private=True)
    return key


def read_key(path: Path) -> rsa.RSAPrivateKey:
    """Read a private key."""
    key = serialization.load_pem_private_key(_read(path), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def read_certificate(path: Path) -> x509.Certificate:
    """Read the first certificate in a file."""
    return read_certificates(path)[0]


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Read all certificates in a file; no certificate is an error that names the file."""
    try:
        return list(x509.load_pem_x509_certificates(_read(path)))
    except ValueError:
        raise FedLassoError(f"{path} is no certificate") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from None


def write_certificates(path: Path, *signed: Any) -> None:
    """Write certificates one after another; or a request, or the list of revoked ones."""
    told = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in signed)
    write_atomically(path, told, private=True)


def spell(text: str) -> str:
    """Return a fingerprint in groups of four, as people read it to each other."""
    return " ".join(text[k : k + 4] for k in range(0, len(text), 4))


def _name(name: str, role: str = "", organisation: str = ORGANISATION) -> x509.Name:
    # The unstructured name is where the engine looks for what somebody may do.
    kinds = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.UNSTRUCTURED_NAME)
    parts = zip(kinds, (name, organisation, role), strict=True)
    return x509.Name([x509.NameAttribute(kind, part) for kind, part in parts if part])


def common_name(subject: x509.Name) -> str:
    """Return the name that a certificate or a request is for."""
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def write_request(path: Path, key: rsa.RSAPrivateKey, name: str, project: str) -> None:
    """Ask for a certificate: name, project and public key, signed with the private one."""
    asked = x509.CertificateSigningRequestBuilder().subject_name(_name(name, "", project))
    write_certificates(path, asked.sign(key, hashes.SHA256()))


def read_request(path: Path, project: str) -> tuple[str, rsa.RSAPublicKey]:
    """Return whose request a file holds, and the public key, if it is of this project."""
    try:
        request = x509.load_pem_x509_csr(_read(path))
    except ValueError:
        remedy = "the site makes one with `fedlasso site request`"
        raise FedLassoError(f"{path} is no signing request; {remedy}") from None
    key = request.public_key()
    if not request.is_signature_valid or not isinstance(key, rsa.RSAPublicKey):
        raise FedLassoError(f"{path} was changed since it was made; ask for it again")
    organisations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if [part.value for part in organisations] != [project]:
        raise FedLassoError(f"{path} is a request of another project than {project!r}")
    return common_name(request.subject), key


class Authority:
    """The key of a project, and what it has signed; a folder that only the coordinator has.

    Attributes
    ----------
    root : file of the authority's own certificate
    revoked : file of the signed list of revoked certificates
    """

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
        write_certificates(authority.root, root)
        authority._write_revoked([])
        return authority

    def issued(self, name: str) -> x509.Certificate | None:
        """Return the certificate that somebody has, if any."""
        path = self._issued(name)
        return read_certificate(path) if path.exists() else None

    def sign(self, name: str, key: rsa.RSAPublicKey, role: str = "") -> x509.Certificate:
        """Sign somebody's public key, and revoke what they had with another key."""
        before = self.issued(name)
        if before is not None and before.public_key() != key:
            self.revoke(name)
        own = read_key(self._folder / "root.key")
        certificate = _certify(key, _name(name, role), own, read_certificate(self.root))
        write_certificates(self._issued(name), certificate)
        return certificate

    def revoke(self, name: str) -> bool:
        """Put somebody's certificate on the list of revoked ones; nothing if there is none."""
        certificate = self.issued(name)
        if certificate is None:
            return False
        listed = x509.load_pem_x509_crl(self.revoked.read_bytes())
        self._write_revoked([*(entry.serial_number for entry in listed), certificate.serial_number])
        self._issued(name).unlink()
        return True

    def _write_revoked(self, serials: list[int]) -> None:
        root = read_certificate(self.root)
        now = datetime.now(UTC)
        listed = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(root.subject)
            .last_update(root.not_valid_before_utc)
            .next_update(root.not_valid_after_utc)
        )
        for serial in serials:
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
            listed = listed.add_revoked_certificate(entry.build())
        key = read_key(self._folder / "root.key")
        write_certificates(self.revoked, listed.sign(key, hashes.SHA256()))


def _certify(
    key: rsa.RSAPublicKey, subject: x509.Name, own: rsa.RSAPrivateKey, root: x509.Certificate | None
) -> x509.Certificate:
    """Sign a public key for somebody; without a root, for the authority itself."""
    now = datetime.now(UTC)
    end = now + timedelta(days=ROOT_DAYS if root is None else DAYS)
    # What is signed does not outlive who signed it.
    end = end if root is None else min(end, root.not_valid_after_utc)
    host = common_name(subject)
    try:
        called = x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        called = x509.DNSName(host)
    built = (
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
        .add_extension(x509.SubjectAlternativeName([called]), False)
    )
    if root is None:
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "encipher_only", "decipher_only"), False,
        )  # fmt: skip
        signs = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage)
        built = built.add_extension(x509.BasicConstraints(True, None), True)
        built = built.add_extension(signs, True)
    return built.sign(own, hashes.SHA256())


def check_dates(path: Path, name: str, what: str) -> list[str]:
    """Refuse a certificate that is not valid now; return a warning if it ends soon."""
    certificate = read_certificate(path)
    now = datetime.now(UTC)
    clock = f"{now:%Y-%m-%d %H:%M}"
    told = f"the certificate {path.name} of {name!r}"
    if now < (begins := certificate.not_valid_before_utc):
        remedy = f"is the clock here right? It says {clock}"
        raise FedLassoError(f"{told} is not valid before {begins:%Y-%m-%d %H:%M} UTC; {remedy}")
    ends = certificate.not_valid_after_utc
    if now > ends:
        remedy = f"{what}, or set the clock here: it says {clock}"
        raise FedLassoError(f"{told} expired on {ends:%Y-%m-%d}; {remedy}")
    left = (ends - now).days
    return [f"{told} ends on {ends:%Y-%m-%d}, in {left} days; {what}"] if left < EARLY else []
