"""A certificate authority for tests, and the certificates that it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Signed(NamedTuple):
    certificate: Path
    key: Path


class Signer:
    """A certificate authority that uses openssl."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self.certificate, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        may = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # required by Python 3.13
        self._run("req", "-x509", *NEW_KEY, "-subj", f"/CN={name}", *may, "-keyout", self.key, "-out", self.certificate)

    def sign(
        self, name: str, subject: str, *, use: str = "clientAuth", hosts: str = "", is_expired: bool = False
    ) -> Signed:
        """Signs a certificate of a client, or of a server with these hosts, written DNS:NAME,IP:ADDRESS."""
        made = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        request, more = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        names = f"subjectAltName={hosts}\n" if hosts else ""
        more.write_text(f"extendedKeyUsage={use}\nauthorityKeyIdentifier=keyid\n{names}")
        self._run("req", *NEW_KEY, "-utf8", "-multivalue-rdn", "-subj", subject, "-keyout", made.key, "-out", request)
        files = ("-in", request, "-extfile", more, "-out", made.certificate)
        if is_expired:  # x509 of OpenSSL 3.6 refuses a day in the past
            self._run("ca", *self._authority(), "-startdate", "200101000000Z", "-enddate", "200102000000Z", *files)
        else:
            signer = ("-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial")
            self._run("x509", "-req", *signer, "-days", 1, *files)
        return made

    def revoke(self, *revoked: Signed, between: tuple[str, str] = ("", "")) -> Path:
        """Returns a revocation list, valid between two times, or for a day from now."""
        made = self._folder / f"{self.certificate.stem}.crl"
        for one in revoked:
            self._run("ca", *self._authority(), "-revoke", one.certificate)
        times = ("-crl_lastupdate", between[0], "-crl_nextupdate", between[1]) if any(between) else ("-crldays", 1)
        self._run("ca", *self._authority(), "-gencrl", *times, "-out", made)
        return made

    def _authority(self) -> tuple[object, ...]:
        """Arguments of `openssl ca`, whose configuration and index are written first."""
        (self._folder / "index.txt").touch()
        more = self._folder / "ca.cnf"
        more.write_text(
            "[ca]\ndefault_ca = one\n[one]\ndatabase = index.txt\ndefault_md = sha256\nnew_certs_dir = .\n"
            "rand_serial = yes\npolicy = any\n[any]\ncommonName = supplied\n"
        )
        return "-batch", "-notext", "-config", more, "-keyfile", self.key, "-cert", self.certificate

    def _run(self, *words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self._folder)
