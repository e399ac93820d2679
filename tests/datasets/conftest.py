"""Where the official files are, if they are at hand, and a download site on loopback that can misbehave."""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipeline import io
from pipeline.workflow import availability, plugins
from tests.datasets.builders import ROOT
from tests.files import packed


def _places(name: str) -> list[Path]:
    """Where files of a dataset may be at hand."""
    return [folder for folder in availability.folders(ROOT / "data" / "raw" / name) if folder.is_dir()]


@pytest.fixture(scope="session")
def official() -> Callable[..., Path]:
    """The folder that holds all official files of a dataset, or one of them; skips the test where there is none."""

    def find(name: str, *filenames: str) -> Path:
        wanted = filenames or [source.filename for source in plugins.load("dataset", name).SOURCES]
        for folder in _places(name):
            if all((folder / filename).is_file() for filename in wanted):
                return folder
        pytest.skip(f"the official {name} files are neither in data/raw/{name} nor in a DATA_MIRROR folder")

    return find


@pytest.fixture(scope="session")
def at_hand() -> Callable[[str], Path]:
    """The official archive of images, or a copy that is recognised; skips the test where there is none."""

    def find(name: str) -> Path:
        module = plugins.load("dataset", name)
        archives = [folder / module.SOURCES[0].filename for folder in _places(name)]
        copies = availability.copies(name, module, ROOT / "data" / "raw" / name)
        for path in (*archives, *copies):
            if path.exists() and module.recognised(path) is not None:
                return path
        pytest.skip(f"the images of {name} are neither in data/raw/{name} nor in a DATA_MIRROR folder")

    return find


@pytest.fixture(scope="session")
def rows_of() -> Callable[[str], pd.DataFrame]:
    """The rows of a twin, which are as ``parse`` returns them, but for columns that ``filtered`` leaves out."""

    @functools.cache
    def shipped(name: str) -> pd.DataFrame:
        files = (ROOT / "data" / "twins").glob(f"{name}.parquet" if name != "ssl" else "ssl_*.parquet")
        return pd.concat(map(io.load_rows, sorted(files)), ignore_index=True)

    return shipped


@pytest.fixture
def archive(tmp_path: Path) -> Callable[..., Path]:
    """``archive(files, name)``: the archive, or the folder, of that name below ``tmp_path`` with these files."""
    return lambda files, name="a.tar": packed(tmp_path / name, files)


@dataclass
class Page:
    """How the site answers for one path.

    ``body`` is sent, and the first ``cuts`` answers break off after ``cut`` bytes. A ``status`` other than 200 answers
    an error. ``silence`` seconds pass before the answer, ``stall`` seconds after half of it, ``drip`` seconds between
    pieces of 64 bytes. ``encoding`` is declared as the compression of the body.
    """

    body: bytes
    status: int = 200
    cut: int | None = None
    cuts: int = 1_000
    silence: float = 0.0
    stall: float = 0.0
    drip: float = 0.0
    encoding: str | None = None


@dataclass
class Site:
    """A download site on loopback: pages by path, and the path of every request it saw."""

    address: str
    pages: dict[str, Page] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(self, path: str, body: bytes, **behaviour: Any) -> None:
        """Answer for ``path`` from now on; ``behaviour`` are fields of :class:`Page`."""
        self.pages[path] = Page(body, **behaviour)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


@pytest.fixture
def site() -> Iterator[Site]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.site = Site(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server.site  # type: ignore[attr-defined]
    server.shutdown()
    thread.join()
    server.socket.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        site: Site = self.server.site  # type: ignore[attr-defined]
        path = self.path.lstrip("/")
        site.requests.append(path)
        page = site.pages.get(path)
        self.close_connection = True
        if page is None or page.status != 200:
            self._head(404 if page is None else page.status, {"Content-Length": "0"})
            return
        time.sleep(page.silence)
        body, headers = page.body, {"Content-Length": str(len(page.body))}
        if page.encoding:
            headers["Content-Encoding"] = page.encoding
        if page.cut is not None and page.cuts > 0:
            page.cuts -= 1
            body = body[: page.cut]
        self._head(200, headers)
        self._send(body, page)

    def _send(self, body: bytes, page: Page) -> None:
        size, pause = (64, page.drip) if page.drip else (len(body) // 2 + 1, page.stall)
        # The client gives up, which is what such a page is for.
        with suppress(BrokenPipeError, ConnectionResetError):
            for start in range(0, len(body), size):
                self.wfile.write(body[start : start + size])
                time.sleep(pause)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test run's output clean."""
