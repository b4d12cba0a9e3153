import ssl
from pathlib import Path

import pytest

from crawl.errors import SettingsError
from crawl.net.trust import Trust, fault
from tests.crawl.certificates import authority, ca_file


def test_without_a_file_the_systems_authorities_are_trusted() -> None:
    trust = Trust()
    assert trust.path == ssl.get_default_verify_paths().cafile
    trust.close()


def test_a_file_adds_to_the_systems_and_what_was_written_goes(tmp_path: Path) -> None:
    own = ca_file(tmp_path)
    trust = Trust(str(own))
    assert trust.path is not None
    both = Path(trust.path)
    assert authority("ours").cert_pem.bytes() in both.read_bytes()
    system = ssl.get_default_verify_paths().cafile
    if system is not None:
        assert Path(system).read_bytes() in both.read_bytes()
    trust.close()
    trust.close()
    assert not both.exists()


def test_a_file_that_holds_no_certificates_is_refused_with_what_to_do(tmp_path: Path) -> None:
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    key = tmp_path / "key.pem"
    authority("ours").private_key_pem.write_to_path(str(key))
    for path in (text, key):
        with pytest.raises(SettingsError, match=r"^tls\.ca_file = .* holds no certificates: write them"):
            Trust(str(path))
    assert "cannot be read: No such file" in (fault(str(tmp_path / "none.pem")) or "")
    assert "cannot be read" in (fault(str(tmp_path)) or "")
    assert "absolute path" in (fault("ca.pem") or "")
    assert fault(str(ca_file(tmp_path))) is None
