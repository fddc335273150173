# SPDX-License-Identifier: GPL-2.0-only
"""Certificates made by openssl for a test's own servers on loopback."""
import ssl
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """A CA. Its certificate is the file `path`."""

    def __init__(self, folder, name="ca"):
        self.folder, self.path, self.key = folder, folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-keyout", self.key, "-out", self.path)

    def signed(self, name, days=30, host="IP:127.0.0.1"):
        """Returns the files of a certificate for a host, None: without alternative names, and of its key. With negative days
        it has expired."""
        cert, key, request, text = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr", "ext"))
        text.write_text(f"subjectAltName={host}\n" if host else "basicConstraints=CA:FALSE\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self.key, "-CAcreateserial", "-days", days,
                "-extfile", text, "-out", cert)
        key.chmod(0o644)  # nhmtap may run as another user
        return cert, key


def server_side(cert, key, client_ca=None):
    """Returns the context of a server, which with client_ca asks clients for a certificate of this CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
