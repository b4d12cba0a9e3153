"""Certificates for servers on loopback, and what can be wrong with them."""

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import trustme

DAY = timedelta(days=1)


@cache
def authority(name: str, /) -> trustme.CA:
    """An authority of the tests; the one called `ours` is what they trust."""
    return trustme.CA(organization_name=name)


def ca_file(folder: Path, name: str = "ours") -> Path:
    """Its certificate as a file to trust."""
    path = folder / f"{name}.pem"
    authority(name).cert_pem.write_to_path(str(path))
    return path


def context(
    *names: str,
    by: str = "ours",
    alpn: tuple[str, ...] = (),
    begins: datetime | None = None,
    ends: datetime | None = None,
) -> ssl.SSLContext:
    """What a server of these names shows."""
    certificate = authority(by).issue_cert(*names, not_before=begins, not_after=ends)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(made)
    if alpn:
        made.set_alpn_protocols(list(alpn))
    return made


def expired(name: str) -> ssl.SSLContext:
    today = datetime.now(UTC)
    return context(name, begins=today - 10 * DAY, ends=today - DAY)


def too_early(name: str) -> ssl.SSLContext:
    today = datetime.now(UTC)
    return context(name, begins=today + 9 * DAY, ends=today + 20 * DAY)


def self_signed(name: str, folder: Path) -> ssl.SSLContext:
    """Nobody's word but its own."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - DAY)
        .not_valid_after(today + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path = folder / "self.pem"
    path.write_bytes(key.private_bytes(pem, *plain) + certificate.public_bytes(pem))
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path)
    return made
