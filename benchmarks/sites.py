"""The real documentation sites, under several host names each, served by one nginx on loopback.

Copies make the web large enough to measure: `python1.test`, `python2.test`, … serve the same files, each is a
domain of its own. There is no robots.txt (404: everything is allowed).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Sites", "serving"]

#: name, Debian package, folder
_SITES: Final = (
    ("python", "python3-doc", "/usr/share/doc/python3.11/html"),
    ("handbook", "debian-handbook", "/usr/share/doc/debian-handbook/html/en-US"),
    ("bind", "bind9-doc", "/usr/share/doc/bind9-doc/arm"),
    ("git", "git-doc", "/usr/share/doc/git/html"),
    ("policy", "debian-policy", "/usr/share/doc/debian-policy"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """What is served."""

    hosts: tuple[str, ...]
    port: int

    @property
    def homes(self) -> tuple[str, ...]:
        """The home page of each host."""
        return tuple(f"http://{host}:{self.port}/" for host in self.hosts)


@contextmanager
def serving(folder: Path, copies: int) -> Iterator[Sites]:
    """Serve `copies` of every site until the end of the block; `folder` holds the server's files.

    Raises SystemExit where nginx or the sites are missing and cannot be installed.
    """
    nginx = _install()
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    config = folder / "nginx.conf"
    config.write_text(_config(folder, port, copies), encoding="utf-8")
    server = subprocess.Popen([nginx, "-c", str(config), "-g", "daemon off;"], stderr=subprocess.DEVNULL)
    try:
        _await(port)
        hosts = tuple(f"{name}{n}.test" for n in range(1, copies + 1) for name, _, _ in _SITES)
        yield Sites(hosts=hosts, port=port)
    finally:
        server.terminate()
        server.wait()


def _install() -> str:
    """Path of nginx; what is missing is installed from Debian where we may."""
    missing = [package for _, package, root in _SITES if not Path(root).is_dir()]
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        missing.append("nginx")
    if missing:
        if os.geteuid() or shutil.which("apt-get") is None:
            raise SystemExit(
                f"the benchmark serves these Debian packages: apt-get install {' '.join(missing)}"
            )
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing]
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    assert nginx is not None
    return nginx


def _config(folder: Path, port: int, copies: int) -> str:
    servers = "\n".join(
        f"  server {{ listen 127.0.0.1:{port}; server_name"
        f" {' '.join(f'{name}{n}.test' for n in range(1, copies + 1))}; root {root}; }}"
        for name, _, root in _SITES
    )
    return f"""\
worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  include /etc/nginx/mime.types; index index.html; etag on; gzip on; keepalive_requests 10000;
  server_names_hash_bucket_size 128; access_log off; autoindex on;
{servers}
}}
"""


def _await(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise SystemExit(f"nginx does not answer on port {port}")
