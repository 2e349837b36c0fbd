"""Drivers that share a cluster learn of each other by files; here several in one process, each trial a number."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from course import Course, spec_of

from study.home.folder import Home
from study.spec.schema import Resources
from study.sweep import share as sharing_of_trials
from study.sweep.adapters import JobSearcher, ReportingScheduler
from study.sweep.nodes import Nodes
from study.sweep.share import Share, new_peer

CPUS = 4


@dataclass
class Driver:
    """A study that has so many jobs left, and runs what it may."""

    share: Share
    left: int
    under_way: int = 0

    def turn(self) -> None:
        """Begin what it may, and tell as the searcher does."""
        while self.under_way < self.share.limit(self.under_way):
            self.share.wants(self.left > 0)
            if not self.left:
                break
            self.left, self.under_way = self.left - 1, self.under_way + 1
        self.share.runs(self.under_way)

    def end_one(self) -> None:
        """One of its trials ends; then it takes its turn, which may begin another."""
        self.under_way -= 1
        self.turn()


class Cluster:
    """Several drivers on four CPUs."""

    def __init__(self, home: Path) -> None:
        self.home, self.drivers = home, list[Driver]()

    def join(self, jobs: int, owner: str = "ann", cluster: str = "here:1", most: int = CPUS, **of: bool) -> Driver:
        mine = new_peer(owner, cluster, Resources(cpu=1), 1.0, most)
        there = {"CPU": float(CPUS)}
        share = Share(self.home, mine, lambda: most, lambda: there, self.idle, **of)
        self.drivers.append(Driver(share, jobs))
        return self.drivers[-1]

    def idle(self) -> dict[str, float]:
        return {"CPU": float(CPUS - sum(driver.under_way for driver in self.drivers))}

    def settle(self) -> list[int]:
        """Each looks and takes its turn, until they know of each other; gives what each has under way."""
        for _ in range(3):
            for driver in self.drivers:
                driver.turn()
        return [driver.under_way for driver in self.drivers]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setattr(sharing_of_trials, "POLL_INTERVAL_S", 0.0)
    found = Cluster(tmp_path)
    yield found
    for driver in found.drivers:
        driver.share.close()


def test_a_slot_is_given_over_when_a_trial_ends_and_no_sooner(cluster: Cluster) -> None:
    large = cluster.join(10_000)
    cluster.settle()
    small = cluster.join(6)
    small.share.limit(0)
    large.turn()
    assert large.under_way == 4
    large.end_one()
    large.end_one()
    assert large.under_way == 2
    assert large.share.gives_way
    small.turn()
    assert cluster.settle() == [2, 2]
    large.end_one()
    assert cluster.settle() == [2, 2]


def test_what_a_study_does_not_want_the_others_have(cluster: Cluster) -> None:
    large, small = cluster.join(10_000), cluster.join(3)
    assert cluster.settle() == [2, 2]
    small.end_one()
    small.end_one()
    assert small.share.gives_way
    assert cluster.settle() == [3, 1]
    small.end_one()
    assert cluster.settle() == [4, 0]
    assert not large.share.gives_way


def test_who_leaves_leaves_its_share(cluster: Cluster) -> None:
    cluster.join(10_000)
    small = cluster.join(100)
    assert cluster.settle() == [2, 2]
    small.under_way, small.left = 0, 0
    small.share.close()
    cluster.drivers.remove(small)
    assert cluster.settle() == [4]


def test_who_gives_no_sign_of_life_is_dead_and_what_cannot_be_read_says_nothing(cluster: Cluster) -> None:
    cluster.join(10_000)
    killed = cluster.join(100)
    assert cluster.settle() == [2, 2]
    cluster.drivers.remove(killed)
    for name, text in (("odd", "[]"), ("other", killed.share._file.read_text())):
        (killed.share._file.with_name(f"{name}.json")).write_text(text)
    assert cluster.settle() == [2]
    past = time.time() - 2 * sharing_of_trials.EXPIRY
    os.utime(killed.share._file, (past, past))
    assert cluster.settle() == [4]
    assert not killed.share._file.exists()
    cluster.drivers.append(killed)  # it was asleep, and looks again
    killed.share.limit(0)
    assert killed.share._file.exists()


def test_other_clusters_of_the_home_are_none_of_its_business(cluster: Cluster) -> None:
    cluster.join(100)
    cluster.join(100, cluster="there:1")
    assert cluster.settle() == [4, 4]


def test_a_dead_drivers_file_that_cannot_be_removed_hides_no_other_driver(cluster: Cluster) -> None:
    stale = cluster.home / sharing_of_trials.FOLDER / "0.json"
    stale.mkdir(parents=True)
    (past := time.time() - 2 * sharing_of_trials.EXPIRY)
    os.utime(stale, (past, past))
    cluster.join(100)
    cluster.join(100)
    for driver in cluster.drivers[:1] * 4:
        driver.end_one()
    assert cluster.settle() == [2, 2]


def test_room_that_nobody_takes_is_taken_after_a_while(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one wants it, and may not fit there."""
    large, stuck = cluster.join(10_000), cluster.join(100)
    stuck.turn = lambda: stuck.share.limit(0)  # type: ignore[method-assign, assignment]
    assert cluster.settle() == [2, 0]
    monkeypatch.setattr(sharing_of_trials, "UNUSED", 0.0)
    assert cluster.settle()[0] > 2
    large.turn()
    assert cluster.settle() == [4, 0]


def test_a_study_that_asks_for_more_than_there_is_still_asks(cluster: Cluster) -> None:
    """One trial of it waits for room, so that a cluster that grows by itself hears of it; the others keep theirs."""
    cluster.join(10_000, most=50, grows=True)
    cluster.join(100)
    cluster.drivers[1].turn()
    assert cluster.settle() == [3, 2]
    assert cluster.settle() == [3, 2]


def test_where_no_node_is_there_each_waits_for_one(cluster: Cluster) -> None:
    for driver in (cluster.join(100), cluster.join(100)):
        driver.share._there = lambda: {}
    assert cluster.settle() == [1, 1]


def test_with_one_slot_for_two_studies_they_take_turns(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had no trial yet is next, then who has had less: what each has had is told in the home."""
    first, second = cluster.join(100, most=1), cluster.join(100, most=1)
    for driver in (first, second):
        driver.share._there = lambda: {"CPU": 1.0}
    first.turn()
    second.turn()
    assert (first.under_way, second.under_way) == (1, 0)
    first.end_one()
    second.turn()
    assert (first.under_way, second.under_way) == (0, 1)
    second.share._mine = sharing_of_trials.replace(second.share._mine, served=1000.0)
    second.turn()
    second.end_one()
    assert (second.under_way, second.share.gives_way) == (0, True)
    first.turn()
    assert (first.under_way, second.under_way) == (1, 0)


class Tune:
    """As far as the scheduler asks it: one free process, and these trials."""

    def __init__(self, *trials: str) -> None:
        self._trials = [SimpleNamespace(trial_id=status, status=status) for status in trials]
        self._actor_cache, self.ended = SimpleNamespace(num_cached_objects=1), 0

    def get_live_trials(self) -> list[SimpleNamespace]:
        return self._trials

    def _cleanup_cached_actors(self, force_all: bool) -> None:
        self.ended += force_all


@pytest.mark.parametrize(("wanted", "ended"), [(True, 1), (False, 0)])
def test_a_free_process_is_ended_where_another_study_waits(
    cluster: Cluster, tmp_path: Path, wanted: bool, ended: int
) -> None:
    """And no further trial is begun; one alone keeps its processes, and begins the next."""
    course = Course(tmp_path / "ledger.jsonl", spec_of("search.sampler=random"))
    folder, mine = Home(tmp_path / "home").create(course.spec), cluster.join(100, most=1)
    searcher = JobSearcher(course.agenda, folder, Nodes(course.spec.resources, list), lambda: 1, mine.share)
    if wanted:
        cluster.join(100)
        for driver in cluster.drivers:
            driver.share._there = lambda: {"CPU": 1.0}
        cluster.drivers[1].share.limit(0)
        mine.share.runs(1)  # it has had a trial, which is over
        mine.share.runs(0)
    assert (searcher.suggest("one") is None) == wanted
    tune = Tune()
    ReportingScheduler(course.agenda, folder, share=mine.share).choose_trial_to_run(tune)
    assert tune.ended == ended
    course.ledger.close()
