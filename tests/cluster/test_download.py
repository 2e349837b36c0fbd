"""What is brought from a cluster is whole and what the cluster says, or is not there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, write_ledger

from study.cluster.log_share import StudyLogShare
from study.cluster.mirror import (
    RECENT_LEDGER_LINES,
    FetchOptions,
    RemoteFileChangedError,
    ShareManifest,
    download_study,
)
from study.errors import UserError
from study.home.events import SearchExtended
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger

ALL = FetchOptions(lambda name: True)


class There:
    """A study on a cluster, and the folder that it is brought to."""

    def __init__(self, folder: Path) -> None:
        self.study = Home(folder / "home").create_study(quickstart("name=mine"))
        write_ledger(self.study.ledger_file, Told("baseline", [0.5] * RECENT_LEDGER_LINES))
        (folder / "logs").mkdir()
        self.share, self._told = (
            StudyLogShare(self.study, folder / "logs"),
            folder / "logs/study/mine/manifest.json",
        )
        self.here = StudyFolder(folder / "here" / "mine")
        self.asked: list[tuple[str, int]] = []
        self.share.create_share()

    def read(self, name: str, lines: int, most: int) -> Iterator[bytes]:
        self.asked.append((name, lines))
        data = (self.study.path / name).read_bytes()
        yield data if lines == -1 else b"".join(data.splitlines(keepends=True)[-lines:])

    def document(self) -> dict[str, Any]:
        self.share.renew_manifest()
        told: dict[str, Any] = json.loads(self._told.read_text())
        return told

    def download(self, wish: FetchOptions = ALL) -> list[str]:
        return download_study(self.read, ShareManifest.from_document("mine", self.document()), self.here.path, wish)

    def add(self, folder: StudyFolder, count: int = 1) -> None:
        ledger = Ledger(folder.ledger_file)
        for _ in range(count):
            ledger.append(SearchExtended(trials=100))
        ledger.close()

    @property
    def is_the_same(self) -> bool:
        return self.here.ledger_file.read_bytes() == self.study.ledger_file.read_bytes()


@pytest.fixture
def there(tmp_path: Path) -> There:
    return There(tmp_path)


def test_what_is_new_is_brought_and_nothing_twice(there: There) -> None:
    there.study.write_traceback(3, "a traceback")
    assert there.download() == ["ledger.jsonl", "study.yaml", "errors/trial-00003.txt"]
    assert there.is_the_same
    assert there.download() == []
    there.add(there.study, 3)
    there.asked.clear()
    assert there.download() == ["ledger.jsonl"]
    assert there.asked == [("ledger.jsonl", RECENT_LEDGER_LINES)]
    assert there.is_the_same


def test_of_a_ledger_that_grew_much_as_much_as_is_missing_is_asked_for(there: There) -> None:
    there.download()
    there.add(there.study, RECENT_LEDGER_LINES)
    there.asked.clear()
    assert there.download() == ["ledger.jsonl"]
    assert there.asked == [("ledger.jsonl", RECENT_LEDGER_LINES), ("ledger.jsonl", 2 * RECENT_LEDGER_LINES)]
    assert there.is_the_same


def test_a_ledger_that_is_being_written_is_read_to_its_last_whole_line(there: There) -> None:
    whole = there.study.ledger_file.read_bytes()
    with there.study.ledger_file.open("ab") as file:
        file.write(b'{"event":"extended","half')
    there.download()
    assert there.here.ledger_file.read_bytes() == whole
    with there.here.ledger_file.open("ab") as file:  # nor does a half line here stay
        file.write(b'{"event"')
    there.study.ledger_file.write_bytes(whole)
    there.add(there.study)
    there.download()
    assert there.is_the_same


def test_another_ledger_takes_the_place_of_what_was_read(there: There) -> None:
    there.download()
    there.add(there.here)
    there.add(there.study, 2)
    there.download()
    assert there.is_the_same


@pytest.mark.parametrize("name", ["ledger.jsonl", "study.yaml", "errors/trial-00003.txt"])
def test_what_is_not_as_the_cluster_says_is_not_put_in_its_place(there: There, name: str) -> None:
    there.study.write_traceback(3, "a traceback")
    document = there.document()
    file = there.study.path / name
    changed = bytearray(file.read_bytes())
    changed[5] ^= 1
    file.write_bytes(changed)
    with pytest.raises(RemoteFileChangedError, match=f"{name}: "):
        download_study(there.read, ShareManifest.from_document("mine", document), there.here.path, ALL)
    assert not (there.here.path / name).exists()
    assert not [*there.here.path.rglob(".*")]


def test_what_the_cluster_removed_goes_here_too(there: There) -> None:
    there.study.write_traceback(3, "a traceback")
    there.download()
    there.study.error_file(3).unlink()
    there.download()
    assert not there.here.error_file(3).exists()


@pytest.mark.parametrize(
    "name", ["../study.yaml", "/etc/passwd", "errors/../../x", "errors/.hidden", "errors", "function.pkl", "models//x"]
)
def test_no_name_leads_out_of_the_folder(there: There, name: str) -> None:
    document = there.document()
    document["files"][name] = {"bytes": 1, "sha256": "0"}
    with pytest.raises(UserError, match="cannot be read"):
        ShareManifest.from_document("mine", document)


def test_another_form_of_the_ledger_is_named(there: There) -> None:
    with pytest.raises(UserError, match=r"mine: is in form 9 on the cluster, whose study 7\.1 made it"):
        ShareManifest.from_document("mine", there.document() | {"format": 9, "study": "7.1"})
