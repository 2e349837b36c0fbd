"""Downloads and archives, from a server in this process."""

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from data_files import write_tar
from serving import Silent, serving

from study.data import download
from study.data.source import Source
from study.errors import UserError

CONTENT = bytes(range(256)) * 4000
SHA = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT).hexdigest()


@dataclass
class Server:
    """Serves CONTENT at every path; `requests` are the Range headers that came; breaks off after `breaks` bytes."""

    url: str = ""
    requests: list[str | None] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    ranges: bool = True


class Handler(Silent):
    told: Server

    def answer(self) -> None:
        wanted = self.headers["Range"]
        self.told.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.told.ranges else 0
        if self.path == "/missing":
            self.send_error(404, "Not Found")
            return
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.told.breaks.pop(0)] if self.told.breaks else body)


@pytest.fixture
def server() -> Iterator[Server]:
    Handler.told = Server()
    with serving(Handler) as address:
        Handler.told.url = f"{address}/file"
        yield Handler.told


def test_a_file_is_fetched_and_checked_and_then_found(root: Path, server: Server) -> None:
    told: list[tuple[str, int, int | None]] = []
    source = Source("deep/file", server.url, SHA, md5=MD5)
    for _ in range(2):
        assert download.find_or_download(source, lambda *one: told.append(one)) == root / "deep/file"
    assert (root / "deep/file").read_bytes() == CONTENT
    assert server.requests == [None]
    assert told[-1] == ("file", len(CONTENT), len(CONTENT))
    assert [path.name for path in (root / "deep").iterdir()] == ["file"]


def test_a_broken_connection_goes_on_where_it_was(root: Path, server: Server) -> None:
    server.breaks = [1000, 500_000]
    download.find_or_download(Source("file", server.url, SHA))
    assert server.requests == [None, "bytes=1000-", "bytes=501000-"]
    assert (root / "file").read_bytes() == CONTENT


def test_a_server_that_cannot_resume_sends_it_all(root: Path, server: Server) -> None:
    server.ranges = False
    (root / "file.part").write_bytes(b"other")
    download.find_or_download(Source("file", server.url, SHA))
    assert (root / "file").read_bytes() == CONTENT


def test_a_part_as_long_as_the_file_begins_again(root: Path, server: Server) -> None:
    (root / "file.part").write_bytes(bytes(len(CONTENT)))
    download.find_or_download(Source("file", server.url, SHA))
    assert (root / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("sums", [{"sha256": "0" * 64}, {"md5": "0" * 32}])
def test_another_file_is_refused_and_removed(root: Path, server: Server, sums: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"file.part: (sha256|md5) is .* 0+ was published"):
        download.find_or_download(Source("file", server.url, **sums))
    assert list(root.iterdir()) == []


def test_a_file_put_there_by_hand_is_checked(root: Path) -> None:
    (root / "file").write_bytes(b"cut short")
    with pytest.raises(UserError, match=f"{root}/file: sha256 is .*Remove it"):
        download.find_or_download(Source("file", None, SHA))


def test_no_network_says_what_to_put_where(root: Path) -> None:
    source = Source("folder", "http://127.0.0.1:9/a.tar.gz", note="See the paper.", archive="a.tar.gz")
    with pytest.raises(UserError, match=rf"cannot be downloaded.*put that file at {root}/a.tar.gz.*See the paper"):
        download.find_or_download(source)


def test_a_missing_page_is_named(root: Path, server: Server) -> None:
    with pytest.raises(UserError, match=r"/missing: cannot be downloaded.*404 Not Found"):
        download.find_or_download(Source("file", server.url.replace("/file", "/missing")))
    assert len(server.requests) == 1


def test_an_archive_becomes_its_folder(root: Path) -> None:
    write_tar(root / "a.tar.gz", {"folder/x": b"1", "folder/deep/y": b"2"})
    with zipfile.ZipFile(root / "b.zip", "w") as packed:
        packed.writestr("other/x..1", "3")
    assert download.find_or_download(Source("folder", archive="a.tar.gz")) == root / "folder"
    assert download.find_or_download(Source("deep/other", archive="b.zip")) == root / "deep/other"
    assert (root / "folder/deep/y").read_bytes() == b"2"
    assert (root / "deep/other/x..1").read_bytes() == b"3"
    assert not list(root.rglob("*.part"))


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil-of-a-test", "folder/../../evil"])
def test_an_archive_cannot_write_elsewhere(root: Path, name: str) -> None:
    write_tar(root / "a.tar.gz", {"folder/x": b"1", name: b"evil"})
    with zipfile.ZipFile(root / "b.zip", "w") as packed:
        packed.writestr("folder/x", "1")
        packed.writestr(name, "evil")
    for archive in ("a.tar.gz", "b.zip"):
        try:
            download.find_or_download(Source("folder", archive=archive))
        except UserError as error:
            assert archive in str(error)  # noqa: PT017
    assert not list(root.parent.glob("evil*"))
    assert not Path("/tmp/evil-of-a-test").exists()


def test_a_link_out_of_an_archive_is_refused(root: Path) -> None:
    with tarfile.open(root / "a.tar.gz", "w:gz") as packed:
        link = tarfile.TarInfo("folder/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        packed.addfile(link, io.BytesIO())
    with pytest.raises(UserError, match=r"a.tar.gz: cannot be unpacked"):
        download.find_or_download(Source("folder", archive="a.tar.gz"))
    assert not (root / "folder").exists()


def test_an_archive_cut_short_is_named(root: Path) -> None:
    write_tar(root / "a.tar.gz", {"folder/x": CONTENT})
    (root / "a.tar.gz").write_bytes((root / "a.tar.gz").read_bytes()[:-300])
    with pytest.raises(UserError, match=r"a.tar.gz: cannot be unpacked.*get it again"):
        download.find_or_download(Source("folder", archive="a.tar.gz"))
    assert [path.name for path in root.iterdir()] == ["a.tar.gz"]


def test_an_archive_of_something_else_is_named(root: Path) -> None:
    write_tar(root / "a.tar.gz", {"elsewhere/x": b"1"})
    with pytest.raises(UserError, match=re.escape("holds elsewhere, folder is needed")):
        download.find_or_download(Source("folder", archive="a.tar.gz"))
