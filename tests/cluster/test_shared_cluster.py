"""Several studies at once on a real cluster: each begins at once, and a small one beside a large one ends soon."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command
from submissions import Submissions

from study.home import driver_requests
from study.home.driver_requests import DriverRequest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submissions]:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_USERNAME"):
        monkeypatch.setenv(name, "to be replaced, and put back")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "")
    command = Command(tmp_path / "home", tmp_path, patience=600)
    command.done("cluster", "up", "--nodes", "1", "--cpus-per-node", "2", MLFLOW_TRACKING_URI="")
    found = Submissions(command.home, tmp_path)
    yield found
    found.local.stop_cluster()


def test_studies_share_the_cluster(there: Submissions) -> None:
    there.submit("large", trials=2000)
    there.until(lambda: there.ended("large") > 2)
    there.submit("small", trials=6, owner="bob")
    there.until(lambda: there.is_complete("small"))
    assert there.record("large").state == "running"
    driver_requests.submit_request(there.folder("large").requests_folder, DriverRequest("end"))
    there.until(lambda: all(job.has_ended for job in there.jobs.all_driver_jobs()))
    assert {job.study: job.study_owner for job in there.jobs.all_driver_jobs()} == {"large": "ann", "small": "bob"}
    for name in ("large", "small"):
        assert there.record(name).state == "complete"
        ends = [trial for _, _, trial in there.events(name, "ended")]
        assert sorted(ends) == sorted(set(ends)) == sorted(there.record(name).trials)
        assert not there.events(name, "lost")
    assert_took_turns(there, "small", "large")


def assert_took_turns(there: Submissions, small: str, large: str) -> None:
    """While the small study had trials to run, the large one, which has both slots else, began about as many."""
    begun = [time for time, _, _ in there.events(small, "started")]
    meanwhile = [time for time, _, _ in there.events(large, "started") if begun[0] < time < begun[-1]]
    assert len(meanwhile) <= 3 * len(begun), (begun, meanwhile)
