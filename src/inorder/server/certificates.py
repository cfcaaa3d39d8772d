"""Makes a self-signed certificate with openssl, and checks the files of certificates and keys."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import NamedTuple

from ..errors import CallerError

DAYS = 30
BEGIN, END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Certificate(NamedTuple):
    """Files in PEM, and the SHA-256 of the certificate, which people can compare."""

    certificate: Path
    key: Path
    fingerprint: str


def make(folder: Path, hosts: list[str]) -> Certificate:
    """Makes a key and a certificate for these hosts in a folder that only its owner can read.

    Raises: CallerError, if openssl is missing or fails.
    """
    program = shutil.which("openssl")
    if program is None:
        raise CallerError("--self-signed needs the program openssl: install it, or give --certificate and --key")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    names = ",".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in hosts)
    made = subprocess.run(
        [
            *(program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", str(DAYS), "-subj", "/CN=inorder", "-addext", f"subjectAltName={names}"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise CallerError(f"openssl could not make a certificate: {made.stderr.strip() or made.returncode}")
    key.chmod(0o600)
    return Certificate(certificate, key, fingerprint(certificate))


def check(certificate: Path, key: Path) -> None:
    """Raises: CallerError, if the files are not a certificate and its key in PEM."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        text = (
            f"--certificate {certificate} and --key {key} must be a certificate and its key in PEM, without a password"
        )
        raise CallerError(f"{text}: {error}") from None


def check_authorities(path: Path) -> None:
    """Raises: CallerError, if the file does not have certificates of authorities in PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CallerError(f"--client-ca {path} has no certificates in PEM: {error}") from None
    if not context.get_ca_certs():
        raise CallerError(f"--client-ca {path} must have a certificate that can sign others (basicConstraints CA:TRUE)")


def fingerprint(certificate: Path) -> str:
    """The SHA-256 of the first certificate in a file, in pairs of digits."""
    pem = certificate.read_text(encoding="ascii", errors="replace")
    first = pem[pem.index(BEGIN) : pem.index(END) + len(END)]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest().hex(":").upper()


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()
