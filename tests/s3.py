"""An S3 server on loopback for tests: moto's, in a process of its own.

In the test's own process it would hang: some calls of deltalake wait for the server while holding the
interpreter.
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

#: what a test looks for where it must not be
CANARY = "canary-secret-7f3a91"


def environment(endpoint: str) -> dict[str, str]:
    """Environment variables under which a process finds the server."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": CANARY,
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def serve() -> Iterator[str]:
    """A running server; yields its endpoint, http://127.0.0.1:port."""
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        port = next((line.split()[1] for line in server.stdout if line.startswith("PORT ")), None)
        assert port, "moto's server did not start"
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()


def make_bucket(endpoint: str, name: str) -> None:
    """Make a bucket (moto takes an unsigned request)."""
    request = urllib.request.Request(f"{endpoint}/{name}", method="PUT")
    for attempt in range(50):
        try:
            urllib.request.urlopen(request, timeout=10).close()
            return
        except OSError:
            if attempt == 49:
                raise
            time.sleep(0.1)


_SERVER = """
import sys, time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("PORT", server.get_host_and_port()[1], flush=True)
while True:
    time.sleep(3600)
"""
