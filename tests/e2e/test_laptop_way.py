"""The whole way from a laptop that shares nothing with the cluster but a token, while machines are lost."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command
from ended import assert_as_alone, assert_nothing_was_lost, lost
from helpers import timeless
from laptop import Laptop, serving
from machines import Cluster, missing

from study.home.ledger import read_entries
from study.home.record import StudyRecord

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

STUDY = """\
name: whole
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1}
train:  {epochs: 60, batch_size: 128, learning_rate: 0.003}
search:
  space:
    method.alpha: {low: 0.001, high: 1.0, log: true}
  baseline: {method.alpha: 1.0}
  sampler: random
  trials: 8
  confirm: {top: 1, seeds: 2}
"""


@pytest.fixture(params=["redis", "memory"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A head whose state outlives it, or does not."""
    if trouble := missing():
        pytest.skip(trouble)
    if request.param == "redis" and not shutil.which("redis-server"):
        pytest.skip("needs Redis: apt-get install redis-server")
    with serving(tmp_path_factory.mktemp("cluster"), redis=request.param == "redis") as found:
        yield found


def done(laptop: Laptop, *arguments: str, there: bool = True) -> str:
    """What a command that has to succeed prints."""
    ended = laptop(*arguments, there=there)
    assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
    print(f"$ study {' '.join(arguments)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def by_settings(record: StudyRecord) -> dict[tuple[str, float, int], list[dict[str, float]]]:
    """What every trial reported."""
    return {
        (one.stage, one.params["method.alpha"], one.seed): timeless(map(dict, one.reports))
        for one in record.trials.values()
    }


def is_in_the_middle(record: StudyRecord) -> bool:
    """A trial is complete, others run."""
    return record.trials_by_state()["complete"] >= 1 and record.trials_by_state()["running"] >= 1


def test_the_whole_way(cluster: Cluster, tmp_path: Path) -> None:
    """Submitted, detached from; a node lost, then the head; gone on with, fetched, reported, exported, trained there,
    and the model used here. Every trial is complete once, as it is at home."""
    laptop = Laptop(cluster, cluster.machine("laptop"), tmp_path)
    there = Command(cluster.home, cluster.home, patience=900)
    nodes = [cluster.node(), cluster.node()]
    (tmp_path / "whole.yaml").write_text(STUDY)
    following = laptop.start("submit", "whole.yaml", "--follow")
    there.wait_for("whole", is_in_the_middle)
    following.send_signal(signal.SIGINT)
    out, _ = following.communicate(timeout=60)
    assert (following.returncode, "detached; whole goes on" in out) == (130, True), out

    cluster.off(nodes[0].name)
    cluster.node()
    there.wait_for("whole", lambda record: any(trial.attempt for trial in record.trials.values()))
    assert "running" in done(laptop, "status", "whole")

    cluster.off("head")
    gone = laptop("status", "whole")
    print(f"the head is off: status {gone.returncode}\n{gone.stdout}{gone.stderr}")
    assert "does not answer" in gone.stderr or "no Ray dashboard answers" in gone.stderr
    cluster.head()
    for name in [name for name in cluster.machines if name.startswith("node")]:
        cluster.off(name)
    cluster.node()
    cluster.node()
    print(f"the head is back: {laptop('status', 'whole')}")
    if cluster.state_outlives:
        refused = laptop("resume", "whole")  # Ray takes a driver that died with the head for running
        assert (refused.returncode, "Stop it first: study stop whole" in refused.stderr) == (2, True)
        done(laptop, "stop", "whole")
        done(laptop, "resume", "whole")
    else:
        done(laptop, "submit", "whole.yaml")
    done(laptop, "logs", "whole", "-f")

    record = assert_nothing_was_lost(there.folder("whole"))
    assert {trial.state for trial in record.trials.values()} == {"complete"}
    assert_as_alone(there.folder("whole"))
    assert lost(there.folder("whole"))

    done(laptop, "fetch", "whole")
    here = Command(tmp_path / "home", tmp_path, patience=900)
    assert read_entries(here.folder("whole").ledger_file) == read_entries(there.folder("whole").ledger_file)
    done(laptop, "report", "whole", "-o", "report", there=False)
    assert (tmp_path / "report" / "report.html").is_file()
    done(laptop, "export", "whole", "-o", "best.yaml", there=False)
    done(laptop, "train", "whole", "--seeds", "6", "--name", "whole-final", "--follow")
    done(laptop, "fetch", "whole-final", "--models")
    done(laptop, "data", "export", "biased_digits", "photos", there=False)
    done(laptop, "predict", "whole-final", str(tmp_path / "photos"), "-o", "classes.csv", there=False)
    there.done("predict", "whole-final", str(tmp_path / "photos"), "-o", str(tmp_path / "there.csv"))
    assert (tmp_path / "classes.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()

    home = Command(tmp_path / "at-home", tmp_path, patience=900)
    home.done("run", "whole.yaml")
    assert by_settings(home.load("whole")[1]) == by_settings(record)
