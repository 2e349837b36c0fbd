"""Runs a study through Ray Tune to its end, or until it is stopped."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from study import data, models
from study.data import Dataset
from study.data.group_sizes import group_sizes
from study.data.inventory import inventory
from study.errors import Stopped, UserError
from study.files.whole import parts
from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.home.ledger import Ledger, TakenOver
from study.home.provenance import owner, provenance
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep.agenda import Agenda, CannotGoOn
from study.sweep.early_stopping import early_stopping
from study.sweep.own_ray import CannotStart
from study.sweep.processes import Processes
from study.sweep.ray_session import Slots, fitting, nothing, ray_session
from study.sweep.requests import Ear
from study.sweep.shared_ray import Session
from study.sweep.signals import stopped_by_signals
from study.sweep.steps import PREPARING, STARTING
from study.sweep.watch import RayEnded, watched
from study.upstream.ray_internals import let_trials_inherit_environment


def drive(
    folder: StudyFolder,
    spec: StudySpec,
    datasets: Mapping[str, Dataset],
    ledger: Ledger,
    record: StudyRecord,
    address: str | None = None,
    tell: Callable[[str], None] = nothing,
    session: Session = ray_session,
) -> bool:
    """Run a study, or go on with one, until it is complete or stopped.

    What happens is in the ledger, and in `record`, at every moment; whatever ends this process, the next call goes
    on from there. SIGINT and SIGTERM end it within seconds, also while Ray starts; trials that ran then go on from
    their last checkpoints.

    Args:
        datasets: those of `spec.data_sections`, by `data.key`.
        record: what the ledger says; its `state` tells afterwards how the study ended: complete, interrupted or
            failed (no trial is complete, or a seed of a final training is not).
        address: of the cluster that trials run on; None: this machine.
        tell: is told each of `study.sweep.steps`, and what the user should know at once: a start of Ray that takes
            long, a signal that has come.
        session: gives Ray; by default one for this study alone.

    Returns:
        Whether Ctrl-C stopped it.

    Raises:
        UserError: the data or weights are not those that the study began with, or the cluster cannot be used.
        Stopped: there is no room on the disk, or another driver took the study over; or Ray cannot start, or has ended.
        KeyboardInterrupt: a signal came while Ray was starting, or a second one.
    """
    if record.state == "running":  # the last driver died without a word
        record.apply(ledger.append("closed", state="interrupted"))
    fingerprint = data.joint_fingerprint(datasets)
    if record.sessions and record.sessions[-1].get("data") != fingerprint:
        raise UserError(f"{spec.name}: its data have changed since it began; trials on other data do not compare")
    told: dict[str, Any] = {"data": fingerprint, "dataset": ", ".join(spec.data_titles), "spec": spec.hash}
    told["datasets"] = inventory(datasets)
    if begun := _weights(spec, record):
        told["weights"] = begun
    told |= {"groups": sizes} if (sizes := group_sizes(datasets)) else {}
    record.apply(ledger.append("opened", **provenance(), owner=record.owner or owner(), **told))
    state, enough = "interrupted", None
    remedy = f"Nothing is lost; then go on with it: study resume {spec.name}"
    _tidy(folder, record)
    tell(STARTING)
    try:
        agenda = Agenda(spec, ledger, record, early_stopping(spec))
        processes = _processes(spec) if address is None else None
        with (
            stopped_by_signals(agenda, tell),
            session(address, folder.path, processes, tell, lambda: agenda.stopping is not None) as ray,
            watched(ray, agenda, remedy),
        ):
            tell(PREPARING)
            _tune(agenda, folder, datasets, processes)
        Ear(agenda, folder.requests).obey()  # what came too late is answered, and no later driver takes it up
        state, enough = agenda.outcome, agenda.enough
        _tidy(folder, record)
    except CannotStart as trouble:
        raise Stopped(f"Ray cannot start on this machine: {trouble}\n{remedy}") from trouble
    except (CannotGoOn, RayEnded) as trouble:
        raise Stopped(f"{trouble}. {remedy}") from trouble
    finally:
        with suppress(OSError, TakenOver):  # a ledger that is not closed reads as interrupted
            record.apply(ledger.append("closed", state=state, enough=enough))
    return agenda.by_hand


def _weights(spec: StudySpec, record: StudyRecord) -> list[dict[str, str]]:
    """The weights that trials begin from: those of the study's beginning, and of an exported configuration's study.

    Raises:
        UserError: a file is not there, or has another content than then.
    """
    now = spec.weights
    earlier = record.sessions[-1] if record.sessions else (spec.origin or {}).get("code") or {}
    before = {entry["name"]: entry["sha256"] for entry in earlier.get("weights", ())}
    for entry in now:
        if before.get(entry["name"], entry["sha256"]) != entry["sha256"]:
            raise UserError(
                f"{spec.name}: {entry['file']}, from which its trials begin, has changed: sha256 is {entry['sha256']}, "
                f"was {before[entry['name']]}. Put the earlier file back, or give the new one another name"
            )
    return now


def _tidy(folder: StudyFolder, record: StudyRecord) -> None:
    """Remove checkpoints that no trial will go on from, and parts of weights; what was killed leaves some."""
    needed = {folder.checkpoint_file(trial.number) for trial in record.trials.values() if trial.state not in ENDED}
    for path in set(folder.checkpoints.glob("*")) - needed | set(parts(folder.models)):
        path.unlink(missing_ok=True)  # on a cluster a trial may have outlived its driver and moved its part


def _processes(spec: StudySpec) -> Processes:
    """One for each trial that this machine would run at the beginning."""
    trials = len(spec.final_seeds) if spec.final_seeds is not None else spec.trials
    count = min(trials, fitting(spec.resources, spec.search.concurrency))
    return Processes(count, threads=max(1, int(spec.resources.cpu)))


def _tune(agenda: Agenda, folder: StudyFolder, datasets: Mapping[str, Dataset], processes: Processes | None) -> None:
    """Have Ray Tune do what the agenda says; `processes`: of a Ray of its own, None on a cluster."""
    import ray
    from ray import tune

    from study.sweep import memory_kills
    from study.sweep.adapters import AgendaStopper, JobSearcher, NoReports, ReportingScheduler, StudyOver
    from study.sweep.worker import run_job

    spec = agenda.spec
    shared = {key: ray.put(dataset) for key, dataset in datasets.items()}
    places = models.weights_places(spec.model_sections)
    work = tune.with_parameters(run_job, datasets=shared, weights=places)
    slots = Slots(ray.cluster_resources, spec.resources, spec.search.concurrency, grows=processes is None)
    bundles = {alone: _bundle(spec, alone) for alone in (False, True)}
    tuner = tune.Tuner(
        tune.with_resources(work, lambda config: tune.PlacementGroupFactory([bundles[config["job"]["alone"]]])),
        tune_config=tune.TuneConfig(
            metric=None,
            search_alg=JobSearcher(agenda, folder, slots),
            scheduler=ReportingScheduler(agenda, folder),
            num_samples=-1,
            reuse_actors=True,
            trial_dirname_creator=lambda trial: "{kind}-{trial:05d}".format(**trial.config["job"]),
        ),
        run_config=tune.RunConfig(
            name=f"session-{len(agenda.record.sessions):03d}",
            storage_path=str(folder.scratch),
            stop=AgendaStopper(agenda),
            verbose=0,
            progress_reporter=NoReports(),
        ),
    )
    memory_kills.survive()
    if processes is not None:
        let_trials_inherit_environment()
        processes.wait(ray.cluster_resources().get("CPU", 1.0), lambda: agenda.stopping is not None)
    with suppress(StudyOver):
        tuner.fit()


def _bundle(spec: StudySpec, alone: bool) -> dict[str, float]:
    """What Ray sets aside for a job; `alone`: on its GPU."""
    return {"CPU": spec.resources.cpu, "GPU": max(1.0, spec.resources.gpu) if alone else spec.resources.gpu}
