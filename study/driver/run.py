"""Run a study from its file to its report: check what it needs, then run one session; or run several in turn."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from study.cluster.log_share import share_study_while_running
from study.commands import check_metrics, extend_study, final_training
from study.commands.changes_on_resume import check_study_is_new, study_file_changes_text
from study.commands.delete import delete_study
from study.commands.training_functions import check_and_pickle_function
from study.driver.interrupt_messages import explain_resume_on_disk_error, message_on_interrupt
from study.driver.preflight import check_environment, check_trial_fits
from study.driver.resume import resume_study
from study.driver.session import RunEnd, StudyView, load_study_datasets, run_session
from study.errors import StartInterruptedError, StudyStoppedError, UnusableFunctionError, UserError
from study.files import as_user_error_if_unwritable, write_atomically
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.sweep.ray_runtime import SharedRay
from study.text import flatten_mapping, print_text
from study.tracking import MlflowTracker
from study.trained.model_files import copy_frozen_weights


@dataclass(frozen=True)
class StudyFileRequest:
    """Study file, as it is given: see `study.spec.load_study`."""

    spec_name_or_path: str
    assignments: tuple[str, ...] = ()
    profile: str | None = None
    study_name: str | None = None


def run_from_file(
    home: Home,
    given: StudySpec | StudyFileRequest,
    view: StudyView,
    address: str | None = None,
    function: bytes | None = None,
    or_resume: bool = False,
) -> RunEnd:
    """Run a new study; with `or_resume`, continue it where it exists. Other arguments are those of `run_new_study`.

    Raises:
        UserError: see `run_new_study`; or the file cannot be used.
    """
    with message_on_interrupt():
        check_environment(home, address)
        home.check_writable()
        if isinstance(given, StudyFileRequest):
            given = load_study(given.spec_name_or_path, given.assignments, given.profile, given.study_name)
            for warning in check_metrics.misspelt_metric_warnings(given):
                print_text(f"warning: {warning}", sys.stderr)
    return (start_or_resume if or_resume else run_new_study)(home, given, view, address, function=function)


def run_new_study(
    home: Home,
    spec: StudySpec,
    view: StudyView,
    address: str | None = None,
    shared: SharedRay | None = None,
    function: bytes | None = None,
) -> RunEnd:
    """Run a new study.

    Args:
        function: the pickled training function of the user's own that the study names, where this process made it.
        address: of the Ray cluster that its trials run on, see `study.cluster_addresses`; None: this machine.
        shared: the Ray of several studies, of which this is one; its report is left to `study report` then. None: it
            has a Ray of its own, and its report is written.

    Raises:
        UserError: its name is taken, a trial does not fit the machine or its data cannot be loaded or have no
            metric that it looks at, a function's first yield cannot be used, or the cluster cannot be reached; nothing
            is left behind.
        StudyStoppedError: see `study.sweep.driver.drive_study`; `study resume` tries again.
        StartInterruptedError: a signal came before the driver had the study.
    """
    with message_on_interrupt():
        check_study_is_new(home, spec)
        check_trial_fits(home, spec, address)
        check_metrics.check_study_metrics(spec)
        datasets = load_study_datasets(spec, view)
        check_metrics.check_metrics_of_loaded_data(spec, datasets)
        with message_on_interrupt(made=home.path / spec.name):  # no other study's: the name was free
            folder = home.create_study(spec, check_and_pickle_function(home, spec, function))
            with _remove_study_if_refused(home, folder):
                return run_session(home, folder, datasets, view, address, shared)


@contextmanager
def _remove_study_if_refused(home: Home, folder: StudyFolder) -> Iterator[None]:
    """Remove a new study that is refused before its first report: the same command works once that is mended."""
    try:
        yield
    except (StudyStoppedError, StartInterruptedError):
        raise
    except Exception as error:
        with suppress(UserError, OSError):  # the error that refused it is raised below
            if isinstance(error, UnusableFunctionError) or not StudyRecord.load(folder.ledger_file).trials:
                delete_study(home, folder.name)
        raise


def start_or_resume(
    home: Home,
    spec: StudySpec,
    view: StudyView,
    address: str | None = None,
    shared: SharedRay | None = None,
    function: bytes | None = None,
) -> RunEnd:
    """Run a new study, or continue an existing one unless it is complete: for a job that its queue may start again.

    Args:
        address, shared, function: see `run_new_study`.

    Raises:
        UserError: see `run_new_study`; or another study has its name.
    """
    existing = home.study_or_none(spec.name)
    if existing is None:
        return run_new_study(home, spec, view, address, shared, function)
    if existing.load_checked_spec().hash != spec.hash:
        changed = study_file_changes_text(existing, spec)
        raise UserError(
            f"{spec.name}: another study of that name is in {home.path}. Run this under another: --name. What is given "
            f"now differs from what {spec.name} began with: {changed}"
        )
    record = StudyRecord.load(existing.ledger_file)
    if extend_study.has_only_failures_left(Results(spec, record)) or (
        record.state == "complete" and not MlflowTracker(home, existing, spec).is_behind
    ):
        with share_study_while_running(existing):  # readable for others, as a study that runs
            return RunEnd(existing, spec, record, None, has_run_trials=False)
    return resume_study(home, spec.name, view, address=address, shared=shared)


def train_final(
    home: Home, spec: StudySpec, view: StudyView, address: str | None = None, whole: bool = False
) -> RunEnd:
    """Train a configuration on several seeds; seeds that were trained before are kept.

    Args:
        spec: a final training, see `study.commands.final_training.final_training_spec`.
        whole: whether a frozen network's weights are kept among the models' files.

    Raises:
        UserError: see `run_new_study`; or the name belongs to another configuration.
    """
    if not whole and (trained := _finished_training(home, spec)) is not None:
        return trained
    with message_on_interrupt():
        check_trial_fits(home, spec, address)
        datasets = load_study_datasets(spec, view)
        is_new = not (home.path / spec.name).exists()
        with message_on_interrupt(made=home.path / spec.name):
            folder = final_training.create_or_extend_training(home, spec, check_and_pickle_function(home, spec))
            with _remove_study_if_refused(home, folder) if is_new else nullcontext():
                if whole:
                    with explain_resume_on_disk_error(folder):
                        copy_frozen_weights(folder, spec)
                return run_session(home, folder, datasets, view, address)


def _finished_training(home: Home, spec: StudySpec) -> RunEnd | None:
    """Return the end of a final training that has run on all of its seeds; None: there is something left to do."""
    if not is_study_complete(home, spec):
        return None
    folder = StudyFolder(home.path / spec.name)
    existing, record = folder.load_checked_spec(), StudyRecord.load(folder.ledger_file)
    seeds = {*final_training.seeds_of_training(existing, spec, str(home.path)), *(spec.final_seeds or ())}
    missing = seeds - {trial.seed for trial in record.trials_of_stages("final") if trial.state == "complete"}
    has_card = spec.training_function or folder.model_card_file.exists()
    is_cut_off = missing or not folder.report_page.exists() or not has_card
    return None if is_cut_off else RunEnd(folder, existing, record, None, has_run_trials=False)


def run_remaining_studies(
    home: Home,
    specs: Sequence[StudySpec],
    view: StudyView,
    tell: Callable[[int], None] = lambda _: None,
    address: str | None = None,
    shared: SharedRay | None = None,
) -> Iterator[RunEnd]:
    """Run studies in their order, each from where it is, and yield their ends; end after one that was stopped.

    Args:
        tell: is given the place of each that is not over, from 1.
        address, shared: see `study.driver.run.run_new_study`.
    """
    for number, spec in enumerate(specs, 1):
        if is_study_complete(home, spec):
            continue
        tell(number)
        end = start_or_resume(home, spec, view, address, shared)
        yield end
        if end.record.state not in ("complete", "failed"):
            return


def is_study_complete(home: Home, spec: StudySpec) -> bool:
    """Return whether a study is complete and all of it is in MLflow."""
    folder = StudyFolder(home.path / spec.name)
    if not folder.ledger_file.is_file() or StudyRecord.load(folder.ledger_file).state != "complete":
        return False
    return not MlflowTracker(home, folder, spec).is_behind


def changed_keys_of_studies(home: Home, specs: Iterable[StudySpec]) -> Iterator[str]:
    """Yield the keys in which studies differ from what they began with, each with the first study that does."""
    seen = set()
    for spec in specs:
        folder = StudyFolder(home.path / spec.name)
        if not folder.spec_file.is_file() or (there := folder.load_spec()).hash == spec.hash:
            continue
        before, given = flatten_mapping(there.to_document()), flatten_mapping(spec.to_document())
        for key in sorted(before.keys() | given.keys()):
            if key not in seen and before.get(key) != given.get(key) and not key.startswith("resources."):
                seen.add(key)
                yield f"{key}: {before.get(key)!r} before, {given.get(key)!r} given ({spec.name})"


MAX_SHOWN_CHANGED_KEYS = 20
"""Keys that a refusal names at most."""


def format_changed_keys(differing: Sequence[str]) -> str:
    """Return changed keys as the lines of a message."""
    more = [f"and {len(differing) - MAX_SHOWN_CHANGED_KEYS} more"] if len(differing) > MAX_SHOWN_CHANGED_KEYS else []
    return "\n".join([*differing[:MAX_SHOWN_CHANGED_KEYS], *more])


def write_table_files(folder: Path, name: str, forms: Mapping[str, str]) -> None:
    """Write a table into a folder, in a file for each ending.

    Raises:
        UserError: they cannot be written.
    """
    with as_user_error_if_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for ending, text in forms.items():
            write_atomically(folder / f"{name}.{ending}", text)
