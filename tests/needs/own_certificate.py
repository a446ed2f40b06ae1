"""A certificate of this machine's loopback address that nobody else has signed."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def own_certificate(folder: Path) -> tuple[Path, Path]:
    """Files of the certificate and of its key."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = made.add_extension(x509.SubjectAlternativeName([here]), critical=True)
    text, certificate, private = serialization.Encoding.PEM, folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(text))
    private.write_bytes(key.private_bytes(text, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return certificate, private
