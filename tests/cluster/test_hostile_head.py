"""Whatever a head answers, nothing is written outside of its mirror, and there is one message."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from escapes import ESCAPES
from heads import NODES, job
from helpers import Told, quickstart, write_ledger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving import Silent, serving

from study.commands.remote_studies import RemoteStudies
from study.errors import UserError
from study.home.folder import HOME_FORMAT_VERSION, Home

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ESCAPES | st.just("\x1b]0;x\x07"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
PLAIN = job("mine")


def _changed(base: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A document with some of its values, or none, replaced by others."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(base, VALUES)).map(lambda other: {**base, **other})


JOBS = st.lists(
    st.builds(
        lambda told, metadata: {**told, "metadata": metadata},
        _changed({key: value for key, value in PLAIN.items() if key != "metadata"}),
        _changed(PLAIN["metadata"]),
    )
    | VALUES,
    max_size=3,
)
FILES = st.dictionaries(
    ESCAPES | st.sampled_from(["study.yaml", "ledger.jsonl", "errors/a", "errors/../../../mine/study.yaml"]),
    _changed({"bytes": 10, "sha256": "0" * 64}) | VALUES,
    max_size=4,
)
MANIFESTS = _changed(
    {"format": HOME_FORMAT_VERSION, "study": "0.1.0", "host": "h", "folder": "/f", "written": 1.0}
).flatmap(lambda told: FILES.map(lambda files: {**told, "files": files}))
RAW = st.sampled_from([b"", b"[" * 200_000, b'{"a":' * 50_000, b"\xff\xfe", b"nan", b"<html>", b"\x1b[2J"])


class Hostile:
    """What it answers to each question: status, headers, body."""

    def __init__(self, jobs: Any, manifest: Any, raw: bytes | None, status: int) -> None:
        self.jobs, self.manifest, self.raw, self.status = jobs, manifest, raw, status

    def answer(self, path: str) -> bytes:
        if self.raw is not None:
            return self.raw
        parts = urlsplit(path)
        if parts.path == "/api/jobs/":
            return json.dumps(self.jobs).encode()
        if parts.path == "/nodes":
            return json.dumps(NODES).encode()
        name = parse_qs(parts.query).get("filename", [""])[0]
        return json.dumps(self.manifest).encode() if name.endswith("manifest.json") else b"name: mine\n"


@contextmanager
def answering(hostile: list[Hostile]) -> Iterator[str]:
    class Handler(Silent):
        def answer(self) -> None:
            headers = {"Location": "file:///etc/passwd"} if hostile[0].status == 302 else {}
            self.tell(hostile[0].answer(self.path), hostile[0].status, **headers)

    with serving(Handler) as address:
        yield address


def _tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder but mirrors."""
    found: dict[str, bytes | None] = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".clusters"]
        found |= {os.path.join(place, name): (Path(place) / name).read_bytes() for name in files}
        found |= dict.fromkeys(os.path.join(place, name) for name in folders)
    return found


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "deep" / "home"))
    home = Home(tmp_path / "deep" / "home")
    study = home.create_study(quickstart("name=mine"))
    write_ledger(study.ledger_file, Told("baseline", [0.5]))
    return home


@pytest.mark.slow
def test_two_hundred_odd_answers_write_nothing_outside_and_give_one_message(home: Home, tmp_path: Path) -> None:
    hostile: list[Hostile] = []
    before = _tree(tmp_path)
    with answering(hostile) as address:

        @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(JOBS | VALUES, MANIFESTS | VALUES, st.none() | RAW, st.sampled_from([200, 200, 200, 302, 401, 404, 500]))
        def answers(jobs: Any, manifest: Any, raw: bytes | None, status: int) -> None:
            hostile[:] = [Hostile(jobs, manifest, raw, status)]
            there = RemoteStudies(address)
            for ask in (there.list_rows, lambda: there.status("mine"), lambda: there.update_home(["mine"])):
                message = ""
                try:
                    ask()
                except UserError as error:
                    message = str(error)
                assert "\x1b" not in message
            assert _tree(tmp_path) == before

        answers()


@pytest.mark.parametrize("name", ["../../mine", "/tmp/mine", "..", "", ".hidden", "a\nb", "\x1b[2J"])
def test_a_job_of_a_study_whose_name_is_a_path_is_refused(home: Home, tmp_path: Path, name: str) -> None:
    before = _tree(tmp_path)
    hostile = [Hostile([job("mine") | {"metadata": {**PLAIN["metadata"], "study": name}}], {}, None, 200)]
    with answering(hostile) as address, pytest.raises(UserError, match="cannot be a study's name"):
        RemoteStudies(address).list_rows()
    assert _tree(tmp_path) == before
