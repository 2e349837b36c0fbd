"""The driver: runs a study through Ray Tune until it is complete or stopped."""

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study import data
from study.data import Dataset, summarise_datasets
from study.data.cells import group_sizes
from study.data.dataset import DatasetSummary
from study.data.folds import select_fold
from study.errors import StudyStoppedError, UnusableFunctionError, UserError
from study.files import FileDigest, unfinished_files
from study.home.events import ENDED_STATES, SessionClosed, SessionOpened, StudyOutcome
from study.home.folder import StudyFolder
from study.home.ledger import LeaseLostError, Ledger
from study.home.provenance import collect_provenance, study_owner
from study.home.record import StudyRecord
from study.knobs import Section
from study.models.initial_weights import locate_weights
from study.spec import StudySpec
from study.sweep import SLOW_FIRST_TRIALS_NOTE, STARTING_RAY_STEP, STARTING_TRIALS_STEP
from study.sweep.agenda import Agenda, FoldJoinFunction, StudyCannotContinueError
from study.sweep.early_stopping import EarlyStopping
from study.sweep.fair_share import ClusterShare, new_peer
from study.sweep.own_ray import RayProcesses, RayStartError
from study.sweep.ray_runtime import JoinedCluster, RayStarter, TrialSlots, count_gpus, ignore_text, start_or_join_ray
from study.sweep.reference_process import ReferenceFitter
from study.sweep.stop_on_signals import stop_study_on_signals
from study.sweep.tune_adapters import RequestInbox
from study.text import list_few_names, print_text, study_command
from study.training import function_loading
from study.upstream.ray_internals import count_memory_kills_as_deaths, end_process_at_once, is_ray_job

if TYPE_CHECKING:
    from study.sweep.nodes import TrialNodes

MAX_NAMED_FILES = 3
"""Number of changed files that a message names; it counts the rest."""


def check_data_unchanged(spec: StudySpec, datasets: Mapping[str, Dataset], record: StudyRecord) -> None:
    """Raise a UserError, with the data sets and files that changed, if the data are not those of the last session.

    Args:
        datasets: those of `spec.trial_data_sections`, by `data.section_key`.
    """
    last = record.sessions[-1] if record.sessions else None
    if last is None or data.is_data_unchanged(last.data, last.data_fingerprints, datasets):
        return
    found = " ".join(_data_differences(spec, datasets, last))
    raise UserError(
        f"{spec.name}: its data have changed since it began; trials on other data do not compare. {found}".rstrip()
        + " Put the earlier files back, or begin a study of another name"
    )


def _data_differences(spec: StudySpec, datasets: Mapping[str, Dataset], last: SessionOpened) -> Iterator[str]:
    """Yield a sentence on each data set that differs from those of the last session, and one on its files."""
    summaries = list((last.datasets or {}).values())
    known: Sequence[DatasetSummary | None] = summaries if len(summaries) == len(datasets) else [None] * len(datasets)
    for section, dataset, before in zip(spec.trial_data_sections, datasets.values(), known, strict=True):
        if before and before["digest"] != dataset.fingerprint:
            places = [place for place in before["sources"] if place != before["title"]]
            place = f" ({', '.join(places)})" if places else ""
            yield f"{before['title']}{place}: fingerprint {dataset.fingerprint}, was {before['digest']}."
            written = _files_written_since(data.user_files(section), last.time)
            if written:
                yield f"Written since then: {list_few_names(list(map(str, written)), MAX_NAMED_FILES)}."


def _files_written_since(files: Sequence[Path], seconds: float) -> list[Path]:
    """Return the files that were written or put there after a time, by their ctime, which copying does not keep."""
    return [file for file in files if os.path.exists(file) and os.stat(file).st_ctime > seconds]


MAX_CAUSE_CHARACTERS = 300
"""Characters of a failed task's error that a message shows."""

RAY_POLL_INTERVAL_S = 0.25
"""Seconds between two looks whether Ray's processes live."""


class RayEndedError(Exception):
    """One of Ray's processes has ended under a running study; the message says which, and how."""


def hide_ray_destructor_errors() -> None:
    """Hide the errors of Ray's destructors that fail because Ray has ended: what they would free is gone."""
    before = sys.unraisablehook

    def show(unraisable: "sys.UnraisableHookArgs") -> None:
        trace = unraisable.exc_traceback
        ran = trace.tb_frame.f_globals if trace else {}  # Python 3.14 names no object
        if not any(
            str(name).startswith("ray.") for name in (getattr(unraisable.object, "__module__", ""), ran.get("__name__"))
        ):
            before(unraisable)

    sys.unraisablehook = show


def _make_fold_joiner(spec: StudySpec, datasets: Mapping[str, Dataset]) -> FoldJoinFunction | None:
    """Return the function that joins the folds of the study's data; None: there are no folds."""
    (dataset, *others) = datasets.values() or (None,)
    if dataset is None or dataset.folds is None or others:
        return None
    from study.sweep.joined_folds import FoldJoiner  # imports PyTorch

    return FoldJoiner(spec, dataset).join_new_configurations


def _measure_ensemble(folder: StudyFolder, datasets: Mapping[str, Dataset], agenda: Agenda) -> None:
    """Write what the networks of a final training are worth as one model, where that is new.

    Args:
        datasets: as they were trained on.
    """
    from study.sweep.ensemble_metrics import measure_ensemble  # imports PyTorch

    (dataset,) = datasets.values()
    if measured := measure_ensemble(folder, agenda.spec, dataset, agenda.record):
        agenda.append_event(measured)


@contextmanager
def stop_when_ray_ends(ray: RayProcesses | JoinedCluster, agenda: Agenda, remedy: str) -> Iterator[None]:
    """Make the agenda stop soon after one of Ray's processes has ended.

    Ray itself would notice within a minute, print, and end this process.

    Args:
        ray: its `grace` is what the block gets to end by itself; a call into Ray may wait for ever for an answer.
        remedy: what the user can do. Printed here only where the block does not end and this process is ended instead.

    Raises:
        RayEndedError: one has ended.
    """
    over, lost = threading.Event(), list[str]()

    def watch() -> None:
        while not over.wait(RAY_POLL_INTERVAL_S):
            if ended := ray.describe_ended_process():
                hide_ray_destructor_errors()
                lost.append(ended)
                agenda.stopping = agenda.stopping or "interrupted"
                if not over.wait(ray.grace_s):
                    ray.kill_processes()
                    print_text(f"error: {ended}. {remedy}", sys.stderr)
                    end_process_at_once()
                return

    thread = threading.Thread(target=watch, name="ray's processes", daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        if ended := ray.describe_missing_process():  # whatever error Ray, and Tune after it, raised because of that
            raise RayEndedError(ended) from None
        raise
    finally:
        over.set()
        thread.join()
    if lost:
        raise RayEndedError(lost[0])


def drive_study(
    folder: StudyFolder,
    spec: StudySpec,
    datasets: Mapping[str, Dataset],
    ledger: Ledger,
    record: StudyRecord,
    address: str | None = None,
    tell: Callable[[str], None] = ignore_text,
    start_ray: RayStarter = start_or_join_ray,
) -> None:
    """Run a study, or resume one, until it is complete or stopped.

    What happens is in the ledger, and in `record`, at every moment; whatever ends this process, the next call goes
    on from there. SIGINT and SIGTERM end it within seconds, also while Ray starts; trials that ran then go on from
    their last checkpoints.

    Args:
        datasets: those of `spec.trial_data_sections`, by `data.section_key`.
        record: what the ledger says; its `state` tells afterwards how the study ended: complete, interrupted or
            failed (no trial is complete, or a seed of a final training is not).
        address: of the cluster that trials run on; None: this machine.
        tell: is told each of `study.sweep.DRIVER_STEPS`, and what the user should know at once: a start of Ray that
            takes long, a signal that has come.
        start_ray: starts or joins Ray; by default one Ray for this study alone.

    Raises:
        UserError: the data or weights are not those that the study began with, or the cluster cannot be used.
        UnusableFunctionError: what the user's function yields first cannot be used, and no trial has reported an epoch.
        StudyStoppedError: the disk is full, another driver took the study over, or Ray cannot start, or has ended.
        KeyboardInterrupt: a signal came while Ray was starting, or a second one.
    """
    record.close_dead_session(ledger)
    trained = datasets if spec.final_seeds is None else {key: select_fold(of, None) for key, of in datasets.items()}
    check_data_unchanged(spec, trained, record)
    function: list[FileDigest] = []
    if spec.training_function:
        where = function_loading.function_import_folder(spec.training_function, folder.path)
        function = function_loading.function_source_files(spec.training_function, where)
    changed = any((before.function or function) != function for before in record.sessions[-1:])
    opened = SessionOpened(
        **collect_provenance(),
        owner=record.owner or study_owner(),
        data=data.joint_fingerprint(trained),
        dataset=", ".join(spec.dataset_titles),
        spec=spec.hash,
        datasets=summarise_datasets(trained),
        weights=check_initial_weights(spec, record) or None,
        function=function or None,
        placement=spec.placement_overrides or None,
        groups=group_sizes(datasets),
    )
    record.apply(ledger.append(opened))
    state: StudyOutcome = "interrupted"
    enough, is_told = None, False
    remedy = f"Nothing is lost; go on with it: study resume {spec.name}"
    without_ray = remedy if address is None else _cluster_ended_remedy(spec.name, address)
    _remove_stale_checkpoints(folder, record)
    tell(STARTING_RAY_STEP)
    if function and changed:
        tell(
            f"warning: {function[0]['file']} has changed since this study last ran; trials from here on run it as it is"
        )
    try:
        agenda = Agenda(spec, ledger, record, EarlyStopping(spec), _make_fold_joiner(spec, datasets))
        cards = count_gpus() if spec.resources.gpu and address is None else None
        with (
            stop_study_on_signals(agenda, tell),
            start_ray(address, folder.path, cards, tell, lambda: agenda.stopping is not None) as ray,
            stop_when_ray_ends(ray, agenda, without_ray),
        ):
            tell(STARTING_TRIALS_STEP)
            tell(SLOW_FIRST_TRIALS_NOTE)
            inbox = RequestInbox(agenda, folder.requests_folder)
            inbox.obey_pending_requests()  # what users asked for while no driver ran comes before what the search draws
            with closing(ReferenceFitter(agenda, folder)) as references:
                _run_tune(agenda, folder, datasets, address is None, tell, references)
                references.wait_until_fitted(tell)
        if agenda.refusal:
            raise UnusableFunctionError(
                f"{agenda.refusal}. Every trial would fail like this: mend the function, or the metric's name"
            )
        inbox.obey_pending_requests()  # requests that came too late are answered, so that no later driver obeys them
        if spec.makes_ensemble:
            _measure_ensemble(folder, trained, agenda)
        state, enough = agenda.outcome, agenda.reached_limit
        _remove_stale_checkpoints(folder, record)
        agenda.append_event(SessionClosed(state, enough))
        is_told = True
    except RayStartError as trouble:
        raise StudyStoppedError(f"Ray cannot start on this machine: {trouble}\n{remedy}") from trouble
    except RayEndedError as trouble:
        hide_ray_destructor_errors()  # those that the error's frames still hold
        raise StudyStoppedError(f"{trouble}. {without_ray}") from trouble
    except StudyCannotContinueError as trouble:
        gone = f"{folder.path} was moved or removed while the study ran"
        raise StudyStoppedError(f"{trouble}. {remedy if folder.ledger_file.exists() else gone}") from trouble
    finally:
        if not is_told:
            with suppress(OSError, LeaseLostError):  # a ledger that is not closed reads as interrupted
                record.apply(ledger.append(SessionClosed(state, enough)))


def _cluster_ended_remedy(name: str, address: str) -> str:
    """Return what to do once a cluster has ended under a study; a restarted cluster has forgotten its jobs."""
    lost = "Nothing is lost; once the cluster is up again, go on with it:"
    if is_ray_job():
        return f"{lost} study resume {name} --address URL, or where it has forgotten the study, study submit again"
    return f"{lost} {study_command('resume', name, '--address', address)}"


def check_initial_weights(spec: StudySpec, record: StudyRecord) -> list[FileDigest]:
    """Return the weights that trials begin from, checked against the study's last session or the study of its export.

    Raises:
        UserError: a file is missing, or its content has changed.
    """
    now = spec.initial_weight_files
    code = record.sessions[-1].environment_fields if record.sessions else (spec.origin or {}).get("code", {})
    earlier = code.get("weights")
    before = {entry["name"]: entry["sha256"] for entry in earlier} if isinstance(earlier, list) else {}
    for entry in now:
        if before.get(entry["name"], entry["sha256"]) != entry["sha256"]:
            raise UserError(
                f"{spec.name}: {entry['file']}, from which its trials begin, has changed: sha256 is {entry['sha256']}, "
                f"was {before[entry['name']]}. Put the earlier file back, or give the new one another name"
            )
    return now


def _remove_stale_checkpoints(folder: StudyFolder, record: StudyRecord) -> None:
    """Remove checkpoints that no trial will go on from, and partly written weights; killed processes leave some."""
    open_trials = (trial for trial in record.trials.values() if trial.state not in ENDED_STATES)
    needed = {folder.checkpoint_file(trial.number) for trial in open_trials}
    for path in {*folder.checkpoints_folder.glob("*"), *unfinished_files(folder.models_folder)} - needed:
        path.unlink(missing_ok=True)


def _run_tune(
    agenda: Agenda,
    folder: StudyFolder,
    datasets: Mapping[str, Dataset],
    is_own: bool,
    tell: Callable[[str], None],
    references: ReferenceFitter,
) -> None:
    """Make Ray Tune do what the agenda says.

    Args:
        is_own: whether Ray is the driver's own, not a cluster.
        references: polled meanwhile.

    Raises:
        UserError: the cluster has no node that a trial fits on.
        StudyCannotContinueError: no node is left.
    """
    import ray
    from ray import tune

    from study.sweep import tune_adapters
    from study.sweep.nodes import TrialNodes, placement_group_of_config
    from study.sweep.own_ray import run_job_in_ray_worker

    spec = agenda.spec
    places = locate_weights(spec.model_sections)
    taken = spec.resources.model_copy(update={"accelerator": None}) if is_own else spec.resources
    nodes = TrialNodes(taken, ray.nodes)
    given = datasets
    if not is_own:
        nodes.wait_for_fitting_node(spec.search.concurrency is not None, tell, lambda: agenda.stopping is not None)
        with suppress(tune_adapters.StudyOverSignal):
            given = replace_inputs_with_features(spec, datasets, places, tell, lambda: agenda.stopping is not None)
    shared = {key: ray.put(dataset) for key, dataset in given.items()}
    work = tune.with_parameters(run_job_in_ray_worker, datasets=shared, weights=places)
    slots = TrialSlots(nodes.available_resources, spec.resources, spec.search.concurrency, grows=not is_own)

    share = None if is_own else _join_cluster_sharing(agenda, folder, nodes, slots)
    searcher = tune_adapters.JobSearcher(agenda, folder, nodes, slots, share)
    scheduler = tune_adapters.ReportingScheduler(agenda, folder, nodes, tell, share, references)
    count_memory_kills_as_deaths()
    with closing(share) if share else nullcontext(), suppress(tune_adapters.StudyOverSignal), freeze_old_objects():
        sessions = (f"session-{len(agenda.record.sessions):03d}-{turn}" for turn in count(1))
        while not agenda.is_over:
            if not searcher.has_room_for_trial():
                scheduler.wait_for_turn()
                continue
            tune.Tuner(
                tune.with_resources(work, placement_group_of_config),
                tune_config=tune.TuneConfig(
                    metric=None,
                    search_alg=searcher,
                    scheduler=scheduler,
                    num_samples=-1,
                    reuse_actors=True,
                    trial_dirname_creator=lambda trial: "{0.kind}-{0.trial:05d}".format(trial.config["job"]),
                ),
                run_config=tune.RunConfig(
                    name=next(sessions),
                    storage_path=str(folder.tune_folder),
                    stop=tune_adapters.AgendaStopper(agenda),
                    verbose=0,
                ),
            ).fit()


def replace_inputs_with_features(
    spec: StudySpec,
    datasets: Mapping[str, Dataset],
    places: Mapping[str, tuple[str, str]],
    tell: Callable[[str], None],
    stopping: Callable[[], bool],
) -> Mapping[str, Dataset]:
    """Return the data for trials on other machines, with the features of frozen networks.

    Their keys are those of `features.data_key_with_features`. Features that this machine does not keep are computed by
    one task that takes what a trial takes. The images are left out where no other network sees them.

    Raises:
        UserError: the weights are not there or do not fit.
        StudyStoppedError: the task failed otherwise, or no node could run it.
        StudyOverSignal: the study is to stop.
    """
    frozen = [model for model in spec.model_sections if model.get("frozen")]
    if not frozen:
        return datasets
    import ray
    import torch

    from study.sweep.own_ray import compute_features_in_ray_task
    from study.sweep.tune_adapters import StudyOverSignal
    from study.training import features

    compute: Any = ray.remote(num_cpus=spec.resources.cpu, num_gpus=spec.resources.gpu)(compute_features_in_ray_task)

    def by_a_task(model: Section, dataset: Dataset) -> features.FeaturesBySplit:
        tell("features of the pictures, computed once and kept: by one task of the cluster")
        task = compute.remote(model, dataset, places)
        while not stopping():
            if ray.wait([task], timeout=0.2)[0]:
                break
        else:
            ray.cancel(task, force=True)
            raise StudyOverSignal
        try:
            inputs: features.FeaturesBySplit = ray.get(task)
        except ray.exceptions.RayError as error:  # of the task, or because no node can run it
            if isinstance(cause := getattr(error, "cause", None), UserError):
                raise cause from None
            why = " ".join(f"{type(cause or error).__name__}: {cause or error}".split())[:MAX_CAUSE_CHARACTERS]
            on = study_command("resume", spec.name)
            raise StudyStoppedError(
                f"the features of the pictures could not be computed by a task of the cluster: {why}. "
                f"Nothing is lost; go on with it: {on} --address ADDRESS"
            ) from error
        return inputs

    found = {} if len(frozen) == len(spec.model_sections) else dict(datasets)
    replace_inputs = partial(features.replace_inputs_with_frozen_features, device=torch.device("cpu"))
    for model, (key, dataset) in product(frozen, datasets.items()):
        replaced = replace_inputs(model, dataset, compute_elsewhere=partial(by_a_task, model))
        found[features.data_key_with_features(model, key)] = replaced
    return found


@contextmanager
def freeze_old_objects() -> Iterator[None]:
    """Make Python's garbage collection look only at what the block makes: most older objects are libraries', and stay.

    A collection of all of them keeps the driver from hearing reports for a third of a second.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _join_cluster_sharing(
    agenda: Agenda, folder: StudyFolder, nodes: "TrialNodes", slots: TrialSlots
) -> ClusterShare | None:
    """Return the study's share of the cluster; None where the home cannot be written, as then nobody learns of it."""
    import ray

    spec = agenda.spec
    cluster, of = ray.get_runtime_context().gcs_address, agenda.record.owner or study_owner()
    mine, grows = new_peer(of, cluster, spec.resources, slots()), spec.search.concurrency is not None
    resources = nodes.available_resources, ray.available_resources
    with suppress(OSError):
        return ClusterShare(folder.path.parent, mine, slots, *resources, grows=grows)
    return None
