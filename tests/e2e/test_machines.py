"""A laptop, and a cluster of machines on other addresses, that lose their power and their links."""

import shutil
import sys
import time
from collections.abc import Iterator

import pytest
from command import Command
from ended import assert_as_alone, assert_nothing_was_lost, lost
from laptop import Laptop, serving
from machines import Cluster, Machine, missing

from study.home.ledger import read_entries
from study.home.record import StudyRecord

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A head, and MLflow with a password."""
    if trouble := missing():
        pytest.skip(trouble)
    with serving(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def laptop(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Laptop:
    return Laptop(cluster, cluster.machine("laptop"), tmp_path_factory.mktemp("laptop"))


@pytest.fixture(autouse=True)
def nodes(cluster: Cluster) -> Iterator[list[Machine]]:
    """Two of one core each, fresh ones for each test; those that a test adds end with it, too."""
    before = set(cluster.machines)
    found = [cluster.node(), cluster.node()]
    yield found
    cluster.off(*set(cluster.machines) - before, wait=True)


@pytest.fixture
def there(cluster: Cluster) -> Command:
    """To look at the cluster's home."""
    return Command(cluster.home, cluster.home, patience=900)


def assert_whole(there: Command, name: str, trials: int) -> StudyRecord:
    """Every trial ran to its end, once, and those that were lost as they would have by themselves."""
    record = assert_nothing_was_lost(there.folder(name))
    assert [trial.state for trial in record.trials.values()] == ["complete"] * trials
    assert_as_alone(there.folder(name))
    return record


def assert_went_on_from_checkpoints(there: Command, name: str) -> None:
    """At least one of the trials that were lost far enough from their start."""
    begun = [event for event in read_entries(there.folder(name).ledger_file) if event["event"] == "started"]
    assert any(event["epoch"] > 0 for event in begun)


def running_on(record: StudyRecord) -> dict[str, int]:
    """How far the trials are that run, by machine."""
    running = [trial for trial in record.trials.values() if trial.state == "running"]
    return {(trial.node or "").partition(":")[0]: trial.n_epochs for trial in running}


def test_a_link_is_cut(laptop: Laptop, there: Command, nodes: list[Machine]) -> None:
    """The trial behind it goes on elsewhere, also when the link is mended while the old one may still report."""
    laptop.submit("cut", trials=4, epochs=300)
    there.wait_for("cut", lambda record: running_on(record).get(nodes[0].name, 0) > 60)
    nodes[0].cut()
    there.wait_for("cut", lambda record: any(trial.attempt for trial in record.trials.values()))
    nodes[0].mend()
    assert laptop("logs", "cut", "-f").returncode == 0
    assert_whole(there, "cut", trials=4)
    (event,) = lost(there.folder("cut"))
    assert (event["kind"], event.get("node_died")) == ("PREEMPTED", True)
    assert_went_on_from_checkpoints(there, "cut")


@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs Redis: apt-get install redis-server")
def test_the_head_restarts(cluster: Cluster, laptop: Laptop, there: Command, nodes: list[Machine]) -> None:
    """With its state in Redis, a study whose driver is on another node rides through."""
    laptop.write("ride", trials=6, epochs=200)
    log = cluster.folder / "ride.log"
    study = [sys.executable, "-m", "study", "run", str(laptop.folder / "ride.yaml"), "--address", cluster.address]
    driver = nodes[0].start(*study, log=log, **cluster.environment)
    there.wait_for("ride", lambda record: min(running_on(record).values(), default=0) > 3)
    cluster.off("head")
    time.sleep(20)
    cluster.head()
    assert driver.wait(900) == 0, log.read_text()
    record = assert_whole(there, "ride", trials=6)
    print(f"{sum(trial.attempt for trial in record.trials.values())} runs of trials were lost")
