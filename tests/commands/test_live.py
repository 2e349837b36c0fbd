"""The live page: what it shows, that it reads each line once, and who may ask through it."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from helpers import Told, quickstart, write_ledger

from study.commands.live import server as serving
from study.commands.live import state as states
from study.commands.live.server import LiveServer, live_server
from study.commands.live.state import LiveState
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger, read
from study.home.requests import waiting
from study.ranking import best

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request sees what is new."""
    monkeypatch.setattr(states, "REST", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    folder = Home(tmp_path / "home").create(quickstart("name=mine", "train.epochs=3", "search.early_stopping={}"))
    write_ledger(
        folder.ledger_file,
        Told("baseline", [0.2, 0.3, 0.3], params={**PARAMS, "method.lambda": 0.0}),
        Told("search", [0.4, 0.5, 0.7], params=PARAMS),
        Told("search", [0.1, 0.2], "pruned", params={**PARAMS, "method.alpha": 0.1}),
        Told("search", [None], "failed", params={**PARAMS, "method.alpha": 0.01}),
        Told("search", [0.3], "running", params={**PARAMS, "method.alpha": 0.2}),
    )
    return folder


def test_it_shows_the_study_as_its_ledger_tells_it(folder: StudyFolder) -> None:
    held = Ledger(folder.ledger_file)
    state = LiveState(folder)
    document = state.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert (document["state"], document["running"], document["over"]) == ("running", True, False)
    assert document["counts"] == {"running": 1, "complete": 2, "pruned": 1, "failed": 1}
    found = best(state.record(), state.spec)
    assert found is not None
    assert document["best"] == {"trial": 1, "value": found.value, "params": PARAMS, "confirmed": None}
    assert document["baseline"]["value"] == 0.3
    assert document["marks"]["trial"] == [0, 1, 2]
    assert document["marks"]["value"] == [0.3, 0.7, 0.2]
    assert document["marks"]["state"] == ["baseline", "complete", "pruned"]
    assert document["marks"]["method.alpha"] == [0.5, 0.5, 0.1]
    assert document["steps"] == {"trial": [1], "value": [0.7]}
    assert [(one["trial"], one["epoch"], one["stoppable"]) for one in document["now"]] == [(4, 1, True)]
    curves = {curve["trial"]: (curve["kind"], curve["value"]) for curve in document["curves"]}
    assert curves[1] == ("best", [0.4, 0.5, 0.7])
    assert curves[4] == ("running", [0.3])
    held.close()


def test_a_driver_that_died_is_not_shown_as_running(folder: StudyFolder) -> None:
    document = LiveState(folder).document()
    assert (document["state"], document["running"], document["now"]) == ("interrupted", False, [])


def test_each_line_is_read_once(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    state = LiveState(folder)
    first = state.document()
    assert state.document() is first  # nothing new, nothing made anew
    ledger, read = Ledger(folder.ledger_file), 0
    ledger.append("report", trial=4, epoch=2, metrics={"val/accuracy": 0.8})
    ledger.append("report", trial=4, epoch=3, metrics={"val/accuracy": 0.9})
    ledger.append("ended", trial=4, state="complete")
    apply = states.StudyRecord.apply

    def counted(record: Any, event: Any) -> None:
        nonlocal read
        read += 1
        apply(record, event)

    monkeypatch.setattr(states.StudyRecord, "apply", counted)
    second = state.document()
    assert (read, second["best"]["trial"], second["version"] > first["version"]) == (3, 4, True)
    assert second["steps"] == {"trial": [1, 4], "value": [0.7, 0.9]}
    ledger.close()


def test_a_document_that_took_long_is_given_again_for_a_while(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "REST", 1e9)
    state = LiveState(folder)
    first, ledger = state.document(), Ledger(folder.ledger_file)
    ledger.append("report", trial=4, epoch=2, metrics={"val/accuracy": 0.8})
    assert state.document() is first
    assert state.record().trials[4].epochs == 2  # what is asked is checked against what is known
    ledger.close()


def test_a_long_ledger_is_read_in_slices(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "SLICE", -1.0)
    state, shares = LiveState(folder), []
    while "reading" in (document := state.document()):
        shares.append(document["reading"])
    assert shares == sorted(set(shares))
    assert len(shares) == len(read(folder.ledger_file)), "after any event, be it one of a trial's many reports"
    assert 0 < shares[0] < shares[-1] == 1
    monkeypatch.undo()
    assert document == LiveState(folder).document()


def test_many_trials_are_thinned_but_not_the_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "MOST_MARKS", 110)
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    folder = Home(tmp_path / "home").create(quickstart("name=mine", "train.epochs=1", "search.early_stopping={}"))
    values = [place / 1000 for place in range(300)]
    write_ledger(folder.ledger_file, *(Told("search", [value], params=PARAMS) for value in values))
    document = LiveState(folder).document()
    assert document["marks"]["value"][-100:] == values[-100:]
    assert 100 < len(document["marks"]["trial"]) <= 110
    assert len(document["curves"]) == states.MOST_CURVES + 1


def test_a_damaged_ledger_is_told(folder: StudyFolder) -> None:
    state = LiveState(folder)
    state.document()
    with open(folder.ledger_file, "ab") as file:
        file.write(b'{"event":"made up"}\n')
    with pytest.raises(UserError, match="damaged at byte"):
        state.document()


@pytest.fixture
def server(folder: StudyFolder) -> Iterator[LiveServer]:
    server = live_server(folder, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


Answer = tuple[int, Mapping[str, str], bytes]


@pytest.fixture
def ask(server: LiveServer) -> Callable[..., Answer]:
    """Ask the server as a browser would on its page, but for what is given otherwise; a header that is None is left
    out."""
    port = server.server_address[1]

    def ask(method: str, path: str, body: Any = None, secret: str | None = None, **headers: str | None) -> Answer:
        connection = HTTPConnection("127.0.0.1", port, timeout=10)
        usual: dict[str, str | None] = {"Host": f"127.0.0.1:{port}"}
        if method == "POST":
            usual |= {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        connection.putrequest(method, f"/{server.secret if secret is None else secret}/{path}", skip_host=True)
        usual |= {"Content-Length": str(len(data))} if method == "POST" else {}
        for name, value in (usual | {name.replace("_", "-"): value for name, value in headers.items()}).items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(data if method == "POST" else None)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), content

    return ask


def test_the_page_and_its_parts(ask: Callable[..., Answer]) -> None:
    for path, kind in (("", "text/html"), ("live.js", "text/javascript"), ("live.css", "text/css")):
        status, headers, content = ask("GET", path)
        assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert b"http://" not in content.replace(b"http://www.w3.org", b"")
        assert b"https://" not in content
    status, headers, content = ask("GET", "plotly.js")
    assert (status, "max-age" in headers["Cache-Control"]) == (200, True)
    assert b"plotly.js v" in content[:200]
    status, _, content = ask("GET", "state.json")
    assert (status, json.loads(content)["name"]) == (200, "mine")
    assert ask("GET", "../ledger.jsonl")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "changed", "status"),
    [
        ("GET", "state.json", {"secret": ""}, 404),
        ("GET", "state.json", {"secret": "x" * 32}, 404),
        ("POST", "end", {"secret": "x" * 32}, 404),
        ("GET", "state.json", {"Host": "evil.example:8420"}, 421),  # a name that was bound to this machine
        ("GET", "state.json", {"Host": "127.0.0.1.evil.example"}, 421),
        ("POST", "end", {"Host": "evil.example:8420", "Origin": "http://evil.example:8420"}, 421),
        ("GET", "state.json", {"Host": None}, 421),
        ("POST", "end", {"Origin": "https://evil.example"}, 403),
        ("POST", "end", {"Origin": "null"}, 403),
        ("POST", "end", {"Origin": None}, 403),
        ("POST", "end", {"Origin": "http://127.0.0.1:1"}, 403),  # another server of this machine
        ("POST", "end", {"Content_Type": "text/plain"}, 400),  # what a form may send without being asked
        ("POST", "end", {"body": b"[]"}, 400),
        ("POST", "end", {"body": b"{"}, 400),
        ("POST", "end", {"Content_Length": "-1"}, 400),
        ("POST", "end", {"Content_Length": str(serving.MOST_BYTES + 1)}, 413),
        ("POST", "delete", {}, 404),
        ("PUT", "end", {}, 501),
    ],
    ids=str,
)
def test_nobody_else_may_ask(
    ask: Callable[..., Answer], folder: StudyFolder, method: str, path: str, changed: dict[str, Any], status: int
) -> None:
    held = Ledger(folder.ledger_file)
    answer, headers, _ = ask(method, path, **changed)
    assert answer == status
    assert "Access-Control-Allow-Origin" not in headers
    assert not waiting(folder.requests)
    held.close()


def test_the_page_asks(ask: Callable[..., Answer], folder: StudyFolder) -> None:
    held = Ledger(folder.ledger_file)
    assignments = ["method.alpha=0.25", "method.lambda=1.5", "method.epsilon=0.1"]
    bodies = {"stop": {"trial": 4}, "enqueue": {"assignments": assignments}, "end": {}}
    told = {path: ask("POST", path, body) for path, body in bodies.items()}
    assert [status for status, _, _ in told.values()] == [200, 200, 200]
    asked = [request for _, request in waiting(folder.requests) if request]
    assert [request.kind for request in asked] == ["stop", "enqueue", "end"]
    assert [json.loads(content)["request"] for _, _, content in told.values()] == [request.id for request in asked]
    status, _, content = ask("POST", "enqueue", {"assignments": ["method.alpha=7"]})
    assert status == 409
    assert "method.alpha: 7 given, allowed is from 0.001 to 1.0" in json.loads(content)["error"]
    assert ask("POST", "stop", {"trial": "4"})[0] == ask("POST", "enqueue", {"assignments": "a=1"})[0] == 409
    held.close()


def test_a_connection_is_kept_after_a_post_and_closed_after_a_refused_one(server: LiveServer) -> None:
    host = f"127.0.0.1:{server.server_address[1]}"
    connection, headers = HTTPConnection(host, timeout=10), {"Origin": f"http://{host}"}
    for kind, told in (("application/json", None), ("application/json", None), ("text/plain", "close")):
        connection.request("POST", f"/{server.secret}/end", "{}", headers | {"Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
        assert answer.getheader("Connection") == told
    connection.close()


def test_a_study_that_does_not_run_says_so(ask: Callable[..., Answer]) -> None:
    status, _, content = ask("POST", "stop", {"trial": 4})
    assert (status, json.loads(content)["error"]) == (409, "mine: is not running. Its state: study status mine")


def test_a_port_that_is_taken_is_told(server: LiveServer, folder: StudyFolder) -> None:
    port = server.server_address[1]
    with pytest.raises(UserError, match=f"--port {port}: .*Another one: --port {port + 1}"):
        live_server(folder, port)
