"""What the scheduler makes of Tune's news, where a real cluster would have to break to tell."""

import copy
import json
import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from course import Course, payload, spec_of
from groups import killed
from ray import cloudpickle, exceptions, tune
from ray.tune.experiment import Experiment
from ray.tune.search import SearchGenerator

from study.home.folder import Home, StudyFolder
from study.home.ledger import read_entries
from study.home.provenance import device_text, used_devices
from study.spec.schema import TrialResources
from study.sweep.agenda import StudyCannotContinueError, TrialJob
from study.sweep.failures import NodeUnusableError
from study.sweep.nodes import TrialNodes, placement_group_of_config
from study.sweep.tune_adapters import JobSearcher, ReportingScheduler


@pytest.fixture
def course(tmp_path: Path) -> Iterator[Course]:
    found = Course(tmp_path / "ledger.jsonl", spec_of("search.sampler=random"))
    yield found
    found.ledger.close()


@pytest.fixture
def folder(course: Course, tmp_path: Path) -> StudyFolder:
    return Home(tmp_path / "home").create_study(course.spec)


def of_tune(name: str = "trial", error: str | None = None, **told: Any) -> Any:
    """A trial of Tune's with this job, and the file with the error that ended its run."""
    actor = SimpleNamespace(ray_actor=b"one")
    config, files = {"job": payload(**told)}, {"pickled_error_file": error, "error_file": None}
    return SimpleNamespace(trial_id=name, config=config, temporary_state=actor, **files)


def test_a_process_that_is_given_back_is_no_loss(course: Course, folder: StudyFolder) -> None:
    assert isinstance(course.agenda.next_job(), TrialJob)
    before = list(read_entries(course.ledger.path))
    ReportingScheduler(course.agenda, folder).on_trial_error(None, of_tune(kind="release"))
    assert list(read_entries(course.ledger.path)) == before
    assert not folder.error_file(0).exists()


@pytest.mark.parametrize(("listens", "kind"), [(True, "HUNG"), (False, "PREEMPTED")])
def test_a_trial_that_fell_silent_was_lost_with_its_node_where_that_is_out_of_reach(
    course: Course, folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, listens: bool, kind: str
) -> None:
    """As behind a link that was cut: no fault of the trial's. Ray still takes the node for alive."""
    assert isinstance(course.agenda.next_job(), TrialJob)
    scheduler, trial = ReportingScheduler(course.agenda, folder), of_tune()
    scheduler.on_trial_result(None, trial, {"node": "there:1", "machine": "far", "behind": 0})
    scheduler._hung.add("trial")
    with socket.create_server(("127.0.0.1", 0)) as server:
        node = {"NodeID": "far", "Alive": True, "NodeManagerAddress": "127.0.0.1"}
        node["NodeManagerPort"] = server.getsockname()[1]
        monkeypatch.setattr(ray, "nodes", lambda: [node])
        if not listens:
            server.close()
        scheduler.on_trial_error(None, trial)
    (lost,) = (event for event in read_entries(course.ledger.path) if event["event"] == "lost")
    assert (lost["kind"], lost.get("node_died", False)) == (kind, not listens)


def test_a_process_that_the_kernel_ended_for_memory_ran_out_of_it(
    course: Course, folder: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trial runs once more, as others may have taken the memory, and not as often as one whose process died."""
    monkeypatch.setattr(ray, "nodes", list)
    file, counter = tmp_path / "error.pkl", tmp_path / "memory.events"
    file.write_bytes(cloudpickle.dumps(exceptions.ActorDiedError()))
    for run in range(2):
        assert isinstance(course.agenda.next_job(), TrialJob)
        scheduler, trial = ReportingScheduler(course.agenda, folder), of_tune(error=str(file), n_earlier_starts=run)
        killed(counter, run)
        memory = json.dumps({"limit_bytes": 4 * 2**30, "oom_counter_file": str(counter), "oom_kills_at_start": run})
        told = {"node": f"{socket.gethostname()}:1", "machine": "near", "behind": 0, "memory": memory}
        scheduler.on_trial_result(None, trial, told)
        killed(counter, run + 1)
        scheduler.on_trial_error(None, trial)
    first = course.record.trials[0]
    assert (first.state, first.failure_kind, first.attempt) == ("failed", "OOM", 1)
    assert first.reason is not None
    assert "4.0 GiB" in first.reason
    assert "train.batch_size" in first.reason


def test_a_trial_that_is_suggested_once_a_node_is_excluded_is_not_placed_there(
    course: Course, folder: StudyFolder, tmp_path: Path
) -> None:
    """Tune works with a copy of what says where: the copy learnt of no node."""
    nodes = TrialNodes(TrialResources(gpu=0.25), list)
    searcher = JobSearcher(course.agenda, folder, nodes, lambda: 9)
    algorithm, places = SearchGenerator(searcher), list[Any]()
    work = tune.with_resources(lambda config: None, placement_group_of_config)
    algorithm.add_configurations([Experiment("session", work, num_samples=9, storage_path=str(tmp_path))])
    for excluded in ("", "", "far"):
        if excluded:
            nodes.exclude_node(excluded, "host", "its driver is too old")
        trial = algorithm.next_trial()
        assert trial is not None
        trial.create_placement_group_factory()
        places.append(trial.placement_group_factory)
    bundle = [{"CPU": 1.0, "GPU": 0.25}]
    labels = [{"ray.io/node-id": "!in(far)"}]
    assert places[0] is places[1], "Tune compares them many times for each trial"
    assert places[1:] == [
        tune.PlacementGroupFactory(bundle),
        tune.PlacementGroupFactory(bundle, bundle_label_selector=labels),
    ]
    assert places[1] != places[2]


def test_a_node_whose_gpu_fails_is_named_and_its_trial_runs_elsewhere(
    course: Course, folder: StudyFolder, tmp_path: Path
) -> None:
    """The trial is at no fault; where no other node is left the study ends, and the trial is there to go on with."""
    file = tmp_path / "error.pkl"
    assert isinstance(course.agenda.next_job(), TrialJob)
    there = [{"NodeID": name, "Alive": True, "Resources": {"CPU": 4, "GPU": 1}} for name in ("near", "far")]
    told, nodes = list[str](), TrialNodes(TrialResources(gpu=0.25), lambda: there)
    scheduler = ReportingScheduler(course.agenda, folder, nodes, told.append)
    file.write_bytes(cloudpickle.dumps(NodeUnusableError("far", "host", "its driver is too old. Remedy: another")))
    scheduler.on_trial_error(None, of_tune(error=str(file)))
    assert told == ["host is not used: its driver is too old. Remedy: another"]
    assert course.record.unusable_nodes == {"host": "its driver is too old. Remedy: another"}
    (lost,) = (event for event in read_entries(course.ledger.path) if event["event"] == "lost")
    assert (lost["kind"], lost["node_died"]) == ("PREEMPTED", True)
    assert course.record.trials[0].n_retries_used == 0
    again = course.agenda.next_job()
    assert isinstance(again, TrialJob)
    assert again.trial.number == 0
    file.write_bytes(cloudpickle.dumps(NodeUnusableError("near", "other", "no kernel")))
    with pytest.raises(
        StudyCannotContinueError, match=r"no node is left that trials can run on: host: its .*; other: no kernel"
    ):
        scheduler.on_trial_error(None, of_tune(error=str(file), n_earlier_starts=1))
    assert course.record.trials[0].state == "waiting"


def test_a_trial_is_told_with_its_device(course: Course, folder: StudyFolder) -> None:
    """Each trial of a process, though the process tells it once."""
    scheduler = ReportingScheduler(course.agenda, folder)
    facts = {"name": "NVIDIA H100", "driver": "580.65.06", "cuda": "13.2", "capability": "9.0"}
    for number in range(2):
        assert isinstance(course.agenda.next_job(), TrialJob)
        began = {"node": "there:1", "machine": "far", "behind": 0, "device": json.dumps(facts)}
        trial = of_tune(f"trial{number}", trial=number)
        scheduler.on_trial_result(None, trial, {"epoch": 1, "metrics": '{"val/accuracy": 0.5}'} if number else began)
    assert [trial.device for trial in course.record.trials.values()] == [facts, facts]
    assert used_devices(course.record) == [(facts, 2)]
    assert device_text(facts) == "NVIDIA H100 (driver 580.65.06, CUDA 13.2, compute capability 9.0)"
    assert device_text({"name": "cpu"}) == "CPU"


def test_an_infinite_metric_that_nothing_needs_is_null_and_said_to_be(course: Course, folder: StudyFolder) -> None:
    """On the trial's report, where `study logs` shows it, and once while the study runs."""
    told = list[str]()
    assert isinstance(course.agenda.next_job(), TrialJob)
    scheduler, trial = ReportingScheduler(course.agenda, folder, tell=told.append), of_tune()
    scheduler.on_trial_result(None, trial, {"node": "there:1", "machine": "far", "behind": 0})
    for epoch in (1, 2, 3):
        value = ("Infinity", "-Infinity", "0.5")[epoch - 1]
        metrics = f'{{"val/accuracy": 0.5, "val/ratio": {value}, "val/gap": NaN}}'
        scheduler.on_trial_result(None, trial, {"epoch": epoch, "metrics": metrics})
    reports = [event for event in read_entries(course.ledger.path) if event["event"] == "report"]
    assert [event["metrics"]["val/ratio"] for event in reports] == [None, None, 0.5]
    notes = [event.get("note") for event in reports]
    assert notes == ["val/ratio is inf: kept as null", "val/ratio is -inf: kept as null", None]
    assert told == ["warning: trial 0: val/ratio is inf: kept as null"]


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"diverged": "the features of 2 samples"}, "diverged: the features of 2 samples"),
        ({"untested": "mine: yielded no test/NAME"}, "mine: yielded no test/NAME"),
    ],
)
def test_a_trial_that_has_no_metrics_of_the_test_split_is_untested(
    tmp_path: Path, result: dict[str, str], told: str
) -> None:
    """A model that diverged in its last step, in a way that validation did not show; a function that yielded none."""
    course = Course(tmp_path / "ledger.jsonl", spec_of("search.trials=1", "search.confirm={top: 1, seeds: 2}"))
    while isinstance(job := course.agenda.next_job(), TrialJob) and job.kind == "train":
        course.agenda.record_trial_start(job.trial.number, "here")
        for epoch in range(1, 5):
            course.agenda.record_epoch(job.trial.number, epoch, {"val/accuracy": 0.5})
    assert isinstance(job, TrialJob)
    scheduler = ReportingScheduler(course.agenda, Home(tmp_path / "home").create_study(course.spec))
    trial = of_tune(kind=job.kind, trial=job.trial.number, n_earlier_starts=job.trial.attempt, n_reported_epochs=4)
    scheduler.on_trial_result(None, trial, result)
    course.ledger.close()
    assert (job.trial.test_metrics, job.trial.test_failure) == ({}, told)
    assert job.trial.state == "complete"


def test_what_a_worker_is_told_is_one_thing_to_tune() -> None:
    work = payload(trial=3)
    assert copy.deepcopy(work) is work
    assert pickle.loads(pickle.dumps(work)) == work
    assert str(work) == "JobPayload(trial 3)"
