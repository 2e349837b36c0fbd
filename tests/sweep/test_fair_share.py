"""Drivers that share a cluster learn of each other by files; here several in one process, each trial a number."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from course import Course, spec_of
from ray.tune.search import Searcher

from study.home.folder import Home
from study.spec.schema import TrialResources
from study.sweep import fair_share
from study.sweep.fair_share import ClusterShare, new_peer
from study.sweep.nodes import TrialNodes
from study.sweep.tune_adapters import JobSearcher, ReportingScheduler

CPUS = 4


@dataclass
class Driver:
    """A study that has so many jobs left, and runs what it may."""

    share: ClusterShare
    left: int
    under_way: int = 0

    def turn(self) -> None:
        """Begin what it may, and tell as the searcher does."""
        while self.under_way < self.share.trial_limit(self.under_way):
            self.share.note_wants_more(self.left > 0)
            if not self.left:
                break
            self.left, self.under_way = self.left - 1, self.under_way + 1
        self.share.note_running_trials(self.under_way)

    def end_one(self) -> None:
        """One of its trials ends; then it takes its turn, which may begin another."""
        self.under_way -= 1
        self.turn()


class Cluster:
    """Several drivers on four CPUs."""

    def __init__(self, home: Path) -> None:
        self.home, self.drivers = home, list[Driver]()

    def join(self, jobs: int, owner: str = "ann", cluster: str = "here:1", most: int = CPUS, **of: bool) -> Driver:
        mine = new_peer(owner, cluster, TrialResources(cpu=1), most)
        there = {"CPU": float(CPUS)}
        share = ClusterShare(self.home, mine, lambda: most, lambda: there, self.idle, **of)
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
    monkeypatch.setattr(fair_share, "PEERS_POLL_INTERVAL_S", 0.0)
    found = Cluster(tmp_path)
    yield found
    for driver in found.drivers:
        driver.share.close()


def test_a_slot_is_given_over_when_a_trial_ends_and_no_sooner(cluster: Cluster) -> None:
    large = cluster.join(10_000)
    cluster.settle()
    small = cluster.join(6)
    small.share.trial_limit(0)
    large.turn()
    assert large.under_way == 4
    large.end_one()
    large.end_one()
    assert large.under_way == 2
    assert large.share.has_to_give_way
    small.turn()
    assert cluster.settle() == [2, 2]
    large.end_one()
    assert cluster.settle() == [2, 2]


def test_what_a_study_does_not_want_the_others_have(cluster: Cluster) -> None:
    large, small = cluster.join(10_000), cluster.join(3)
    assert cluster.settle() == [2, 2]
    small.end_one()
    small.end_one()
    assert small.share.has_to_give_way
    assert cluster.settle() == [3, 1]
    small.end_one()
    assert cluster.settle() == [4, 0]
    assert not large.share.has_to_give_way


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
    past = time.time() - 2 * fair_share.PEER_EXPIRY_S
    os.utime(killed.share._file, (past, past))
    assert cluster.settle() == [4]
    assert not killed.share._file.exists()
    cluster.drivers.append(killed)  # it was asleep, and looks again
    killed.share.trial_limit(0)
    assert killed.share._file.exists()


def test_other_clusters_of_the_home_are_none_of_its_business(cluster: Cluster) -> None:
    cluster.join(100)
    cluster.join(100, cluster="there:1")
    assert cluster.settle() == [4, 4]


def test_a_dead_drivers_file_that_cannot_be_removed_hides_no_other_driver(cluster: Cluster) -> None:
    stale = cluster.home / fair_share.PEERS_FOLDER / "0.json"
    stale.mkdir(parents=True)
    (past := time.time() - 2 * fair_share.PEER_EXPIRY_S)
    os.utime(stale, (past, past))
    cluster.join(100)
    cluster.join(100)
    for driver in cluster.drivers[:1] * 4:
        driver.end_one()
    assert cluster.settle() == [2, 2]


def test_room_that_nobody_takes_is_taken_after_a_while(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one wants it, and may not fit there."""
    large, stuck = cluster.join(10_000), cluster.join(100)
    stuck.turn = lambda: stuck.share.trial_limit(0)  # type: ignore[method-assign, assignment]
    assert cluster.settle() == [2, 0]
    monkeypatch.setattr(fair_share, "UNUSED_SLOT_DELAY_S", 0.0)
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
        driver.share._capacity = lambda: {}
    assert cluster.settle() == [1, 1]


def test_with_one_slot_for_two_studies_they_take_turns(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had no trial yet is next, then who has had less: what each has had is told in the home."""
    first, second = cluster.join(100, most=1), cluster.join(100, most=1)
    for driver in (first, second):
        driver.share._capacity = lambda: {"CPU": 1.0}
    first.turn()
    second.turn()
    assert (first.under_way, second.under_way) == (1, 0)
    first.end_one()
    second.turn()
    assert (first.under_way, second.under_way) == (0, 1)
    second.share._mine = fair_share.replace(second.share._mine, served=1000.0)
    second.turn()
    second.end_one()
    assert (second.under_way, second.share.has_to_give_way) == (0, True)
    first.turn()
    assert (first.under_way, second.under_way) == (1, 0)


def test_a_free_process_is_given_back_where_another_study_waits(cluster: Cluster, tmp_path: Path) -> None:
    """By a trial that takes it and fails; one alone keeps its processes, and so does one whose trial waits for one."""
    course = Course(tmp_path / "ledger.jsonl", spec_of("search.sampler=random"))
    folder, mine = Home(tmp_path / "home").create_study(course.spec), cluster.join(100, most=2).share
    searcher = JobSearcher(course.agenda, folder, TrialNodes(course.spec.resources, list), lambda: 2, mine)
    mine._capacity = lambda: {"CPU": 2.0}
    first, second = searcher.suggest("first"), searcher.suggest("second")
    mine.note_running_trials(2)
    assert searcher.suggest("none") is None
    other = cluster.join(100, most=1).share
    other._capacity = lambda: {"CPU": 2.0}
    other.trial_limit(0)
    other.note_wants_more(True)
    other.trial_limit(0)
    searcher.on_trial_complete("first", {})
    mine.note_running_trials(1, waiting=True)
    assert searcher.suggest("none") is None
    mine.note_running_trials(1)
    given = searcher.suggest("leaves")
    assert (given["job"].kind, given["place"]) == ("release", first["place"])
    assert searcher.suggest("none") is None, "one process is free, not two"
    searcher.on_trial_complete("leaves", error=True)
    searcher.on_trial_complete("second", error=True)
    assert second["job"].kind == "train"
    assert searcher.suggest("third")["job"].kind == "train", "the process of a failed trial is gone already"
    course.ledger.close()


def test_a_study_whose_turn_it_is_not_leaves_tunes_loop(cluster: Cluster, tmp_path: Path) -> None:
    """Tune would ask for ten minutes on end, and end no process meanwhile."""
    course = Course(tmp_path / "ledger.jsonl", spec_of("search.sampler=random"))
    folder, mine = Home(tmp_path / "home").create_study(course.spec), cluster.join(100, most=1)
    searcher = JobSearcher(course.agenda, folder, TrialNodes(course.spec.resources, list), lambda: 1, mine.share)
    cluster.join(100)
    for driver in cluster.drivers:
        driver.share._capacity = lambda: {"CPU": 1.0}
    cluster.drivers[1].share.trial_limit(0)
    mine.share.note_running_trials(1)  # it has had a trial, which is over
    mine.share.note_running_trials(0)
    assert searcher.suggest("one") == Searcher.FINISHED
    assert not searcher.has_room_for_trial()
    mine.share.note_running_trials(1)
    ReportingScheduler(course.agenda, folder, share=mine.share).wait_for_turn()
    assert mine.share._running == 0, "of what it has nothing counts meanwhile"
    cluster.drivers[1].share.close()
    assert searcher.has_room_for_trial()
    assert searcher.suggest("one")["job"].kind == "train"
    course.ledger.close()
