"""A file that the head gives is whole, or said not to be there, whatever Ray's answer looks like."""

import json
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import parse_qsl, urlsplit

import pytest
from serving import Silent, serving

from study.cluster.dashboard import ClusterDashboard, RemoteFileNotFoundError
from study.upstream import ray_internals

HELD = {"empty": b"", "whole": b"a file"}
"""What there is; the answer is empty of what there is not, as Ray's is now and then."""


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterDashboard]:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)

    class Dashboard(Silent):
        def answer(self) -> None:
            asked = urlsplit(self.path)
            query = dict(parse_qsl(asked.query))
            if asked.path == ray_internals.DASHBOARD_LOG_LIST_PATH:
                body = json.dumps({"data": {"result": {"internal": [*HELD.keys() & {query["glob"]}]}}}).encode()
            else:
                body = HELD.get(query["filename"], b"")
            self.tell(body)

    with serving(Dashboard) as address:
        yield ClusterDashboard(address)


@pytest.mark.slow
def test_of_an_empty_answer_the_list_of_files_is_asked(head: ClusterDashboard) -> None:
    with pytest.raises(RemoteFileNotFoundError), closing(head.read_log_file("node", "missing")) as blocks:
        next(blocks)
    assert b"".join(head.read_log_file("node", "empty")) == b""
    assert b"".join(head.read_log_file("node", "whole")) == b"a file"
