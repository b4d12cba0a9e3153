"""Which authorities are believed on https: the system's, and those of the operator's `[tls] ca_file`.

The file adds to the system's: who crawls a web of their own beside the public one means "these too", and a
file that replaced them would turn every public host into a TLS failure. Both together are one file, since
OpenSSL's parsed store is kept by libcurl only for a file, not for a folder or a blob: parsing costs
milliseconds, and would be paid by every connection.

What always holds: there is no way to trust everybody. It speaks to no host.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from crawl.errors import SettingsError

__all__ = ["Trust", "fault"]


def fault(ca_file: str) -> str | None:
    """What is wrong with `tls.ca_file`, in words that say what to do; None where nothing is."""
    path = Path(ca_file)
    if not path.is_absolute():
        return f" = {ca_file!r} must be an absolute path: it is read wherever requests are made"
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except ssl.SSLError:
        return f" = {ca_file!r} holds no certificates: write them there in PEM (-----BEGIN CERTIFICATE-----)"
    except OSError as error:
        return f" = {ca_file!r} cannot be read: {error.strerror or error}"
    return None


class Trust:
    """A file of certificates to trust, as long as it is not closed."""

    def __init__(self, ca_file: str = "") -> None:
        """`ca_file`: empty for the system's alone. Raises SettingsError where it holds no certificates."""
        #: for libcurl; None: it knows by itself
        self.path = ssl.get_default_verify_paths().cafile
        self._both: tempfile._TemporaryFileWrapper[bytes] | None = None
        if not ca_file:
            return
        wrong = fault(ca_file)
        if wrong is not None:
            raise SettingsError(f"tls.ca_file{wrong}")
        self._both = tempfile.NamedTemporaryFile(prefix="crawl-trust-", suffix=".pem")  # noqa: SIM115 - closed by `close`
        for source in (self.path, ca_file):
            if source is not None:
                self._both.write(Path(source).read_bytes() + b"\n")
        self._both.flush()
        self.path = self._both.name

    def close(self) -> None:
        """Removes what was written."""
        if self._both is not None:
            self._both.close()
            self._both = None
