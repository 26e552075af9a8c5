"""Keys and certificates: a project's authority signs, and every participant makes its own key."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from fedlasso.errors import FedLassoError
from fedlasso.files import write_atomically

# Days that the authority lasts, and those that what it signs lasts.
ROOT_DAYS = 3650
DAYS = 360
# Days before a certificate's end from which on everybody is warned.
EARLY = 30
ORGANISATION = "fedlasso"


def make_key(path: Path, bits: int = 2048) -> rsa.RSAPrivateKey:
    """Make a private key that only its owner may read."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    told = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    write_atomically(path, told, private=True)
    return key


def read_key(path: Path) -> rsa.RSAPrivateKey:
    """Read a private key."""
    key = serialization.load_pem_private_key(_read(path), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def read_certificate(path: Path) -> x509.Certificate:
    """Read a certificate; anything else is an error that names the file."""
    try:
        return x509.load_pem_x509_certificate(_read(path))
    except ValueError:
        raise FedLassoError(f"{path} is no certificate") from None


def read_certificates(path: Path) -> list[x509.Certificate]:
    """Read all certificates in a file, of which there is one at least."""
    try:
        return list(x509.load_pem_x509_certificates(_read(path)))
    except ValueError:
        raise FedLassoError(f"{path} is no certificate") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FedLassoError(f"cannot read {path}: {error.strerror}") from None


def write_certificates(path: Path, *certificates: x509.Certificate) -> None:
    """Write certificates one after another."""
    told = b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)
    write_atomically(path, told, private=True)


def fingerprint(key: rsa.RSAPublicKey) -> str:
    """Return the SHA-256 of a public key, spelled to be compared by telephone."""
    told = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashes.Hash(hashes.SHA256())
    digest.update(told)
    return spell(digest.finalize().hex())


def spell(text: str) -> str:
    """Return a fingerprint in groups of four, as people read it to each other."""
    return " ".join(text[k : k + 4] for k in range(0, len(text), 4))


def _name(name: str, role: str = "", organisation: str = ORGANISATION) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
    if organisation:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    if role:
        # Where the engine looks for what somebody may do.
        parts.append(x509.NameAttribute(NameOID.UNSTRUCTURED_NAME, role))
    return x509.Name(parts)


def common_name(subject: x509.Name) -> str:
    """Return the name that a certificate or a request is for."""
    found = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else ""


def write_request(path: Path, key: rsa.RSAPrivateKey, name: str, project: str) -> None:
    """Ask for a certificate: name, project and public key, signed with the private one."""
    asked = x509.CertificateSigningRequestBuilder().subject_name(_name(name, "", project))
    signed = asked.sign(key, hashes.SHA256())
    write_atomically(path, signed.public_bytes(serialization.Encoding.PEM), private=True)


def read_request(path: Path, project: str) -> tuple[str, rsa.RSAPublicKey]:
    """Return whose request a file holds, and the public key, if it is of this project."""
    try:
        request = x509.load_pem_x509_csr(_read(path))
    except ValueError:
        raise FedLassoError(
            f"{path} is no signing request; the site makes one with `fedlasso site request`"
        ) from None
    key = request.public_key()
    if not request.is_signature_valid or not isinstance(key, rsa.RSAPublicKey):
        raise FedLassoError(f"{path} was changed since it was made; ask for it again")
    told = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if [part.value for part in told] != [project]:
        raise FedLassoError(f"{path} is a request of another project than {project!r}")
    return common_name(request.subject), key


class Authority:
    """The key of a project, and what it has signed; a folder that only the coordinator has."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def create(cls, folder: Path, project: str) -> Authority:
        """Make the key of a new project."""
        folder.mkdir(mode=0o700)
        key = make_key(folder / "root.key", 3072)
        root = _certify(key.public_key(), _name(project, "", ""), None, key, ROOT_DAYS, project)
        write_certificates(folder / "rootCA.pem", root)
        authority = cls(folder)
        authority._write_revoked([])
        return authority

    @property
    def root(self) -> Path:
        """The authority's own certificate."""
        return self._folder / "rootCA.pem"

    @property
    def revoked(self) -> Path:
        """The list of revoked certificates, signed."""
        return self._folder / "revoked.pem"

    def issued(self, name: str) -> x509.Certificate | None:
        """Return the certificate that somebody has, if any."""
        path = self._folder / "issued" / f"{name}.crt"
        return read_certificate(path) if path.exists() else None

    def sign(self, name: str, key: rsa.RSAPublicKey, role: str = "") -> x509.Certificate:
        """Sign somebody's public key, and revoke what they had with another key."""
        before = self.issued(name)
        if before is not None and before.public_key() != key:
            self.revoke(name)
        own = read_key(self._folder / "root.key")
        root = read_certificate(self.root)
        certificate = _certify(key, _name(name, role), root, own, DAYS, name)
        place = self._folder / "issued"
        place.mkdir(mode=0o700, exist_ok=True)
        write_certificates(place / f"{name}.crt", certificate)
        return certificate

    def revoke(self, name: str) -> bool:
        """Put somebody's certificate on the list of revoked ones; nothing if there is none."""
        certificate = self.issued(name)
        if certificate is None:
            return False
        listed = x509.load_pem_x509_crl(self.revoked.read_bytes())
        self._write_revoked([*(entry.serial_number for entry in listed), certificate.serial_number])
        (self._folder / "issued" / f"{name}.crt").unlink()
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
        signed = listed.sign(read_key(self._folder / "root.key"), hashes.SHA256())
        told = signed.public_bytes(serialization.Encoding.PEM)
        write_atomically(self.revoked, told, private=True)


def _certify(
    key: rsa.RSAPublicKey,
    subject: x509.Name,
    root: x509.Certificate | None,
    own: rsa.RSAPrivateKey,
    days: int,
    host: str,
) -> x509.Certificate:
    now = datetime.now(UTC)
    # Clocks elsewhere may be behind.
    begin = now - timedelta(days=1)
    end = now + timedelta(days=days)
    # What is signed does not outlive who signed it.
    end = end if root is None else min(end, root.not_valid_after_utc)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root is None else root.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key()), False)
        .add_extension(x509.SubjectAlternativeName([_host(host)]), False)
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


def _host(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def is_signed_by(certificate: x509.Certificate, root: x509.Certificate) -> bool:
    """Whether an authority has signed a certificate."""
    key = root.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    assert certificate.signature_hash_algorithm is not None
    try:
        key.verify(
            certificate.signature,
            certificate.tbs_certificate_bytes,
            padding.PKCS1v15(),
            certificate.signature_hash_algorithm,
        )
    except InvalidSignature:
        return False
    return bool(certificate.issuer == root.subject)


def check_dates(path: Path, name: str, what: str) -> str:
    """Refuse a certificate that is not valid now; return a warning if it ends soon."""
    certificate = read_certificate(path)
    now = datetime.now(UTC)
    told = f"the certificate {path.name} of {name!r}"
    if now < (begins := certificate.not_valid_before_utc):
        raise FedLassoError(
            f"{told} is not valid before {begins:%Y-%m-%d %H:%M} UTC; is the clock here right? "
            f"It says {now:%Y-%m-%d %H:%M}"
        )
    ends = certificate.not_valid_after_utc
    if now > ends:
        raise FedLassoError(
            f"{told} expired on {ends:%Y-%m-%d}; {what}, or set the clock here: it says "
            f"{now:%Y-%m-%d %H:%M}"
        )
    left = (ends - now).days
    return f"{told} ends on {ends:%Y-%m-%d}, in {left} days; {what}" if left < EARLY else ""
