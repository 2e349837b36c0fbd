"""Go on with a study: after a stop or a crash, with more trials, on fresh seeds, or with an ablation."""

from collections.abc import Sequence
from contextlib import closing

from study.cluster.log_share import share_study_while_running
from study.commands import ablate_study, extend_study
from study.commands.ablate_study import AblationRequest
from study.commands.changes_on_resume import placement_on_resume
from study.commands.fetch import check_not_running_at_origin
from study.commands.report import lead_sentences_by_title
from study.driver.interrupt_messages import (
    STOPPED_RESUMABLE_MESSAGE,
    explain_resume_on_disk_error,
    message_on_interrupt,
)
from study.driver.preflight import check_trial_fits
from study.driver.session import (
    RunEnd,
    StudyView,
    load_study_datasets,
    register_model,
    run_session,
    write_study_outputs,
)
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec
from study.sweep.ray_runtime import SharedRay
from study.tracking import MlflowTracker


def resume_study(
    home: Home,
    name: str,
    view: StudyView,
    trials: str | None = None,
    address: str | None = None,
    shared: SharedRay | None = None,
    assignments: Sequence[str] = (),
    failed: bool = False,
) -> RunEnd:
    """Go on with a study that was stopped or whose driver died; for a complete one, bring MLflow up to date.

    Args:
        trials: how many more configurations the search tries, as `+50`, also if it was complete.
        address: as for `run_new_study`; it need not be where the study ran before.
        shared: as for `run_new_study`.
        assignments: `key=value` of what may change from here on, see `study.commands.changes_on_resume`.
        failed: let all that failed run again, also if the study was complete.

    Raises:
        UserError: there is no such study, it is complete and all in MLflow, or has failed and nothing else is left, or
            it runs; it cannot be extended, has nothing that failed, or what is assigned cannot change.
        StudyStoppedError, StartInterruptedError: as for `run_new_study`.
    """
    with message_on_interrupt(STOPPED_RESUMABLE_MESSAGE.format(name)):
        folder = home.find_study(name)
        check_not_running_at_origin(folder)
        spec, record = folder.load_checked_spec(), StudyRecord.load(folder.ledger_file)
        told = placement_on_resume(folder, record, assignments)
        if record.state != "complete" or trials is not None or failed:
            check_trial_fits(home, spec.replace_placement(told), address)
        with explain_resume_on_disk_error(folder):
            if trials is not None:
                record = extend_study.add_search_trials(folder, spec, trials)
            if failed:
                record = extend_study.retry_failed_trials(folder, spec)
        if record.state != "complete" or trials is not None:
            if extend_study.has_only_failures_left(Results(spec, record)):
                remedy = extend_study.RETRY_REMEDY.format(name)
                raise UserError(f"{name}: has failed, and all that is left is what failed. {remedy}")
            return run_session(home, folder, load_study_datasets(spec, view), view, address, shared, told)
        tracker = MlflowTracker(home, folder, spec)
        is_cut_off = spec.final_seeds is not None and not spec.training_function and not folder.model_card_file.exists()
        datasets = load_study_datasets(spec, view) if is_cut_off else None
        is_told = shared is not None or folder.report_page.exists()  # a study of a suite has no report of its own
        with (
            share_study_while_running(folder),
            explain_resume_on_disk_error(folder),
            closing(Ledger(folder.ledger_file)),
        ):
            if not is_cut_off and not tracker.is_behind and not tracker.has_lost_runs() and is_told:
                again = (
                    f". {extend_study.RETRY_REMEDY.format(name)}" if extend_study.failed_trial_numbers(record) else ""
                )
                further = "" if spec.final_seeds else f". To search on: study resume {name} --trials +10"
                raise UserError(
                    f"{name}: complete, there is nothing to go on with. Its results: study report {name}{further}. A "
                    f"file that was changed since is another study: study run FILE --name NEW{again}"
                )
            tracker.start_following()
            results = Results(spec, record)
            untracked = tracker.finish_writing()
            if not untracked:
                files = write_study_outputs(folder, results, datasets)
                untracked = tracker.log_artifacts(files, lead_sentences_by_title(results))
            untracked = untracked or register_model(home, folder, results)
        return RunEnd(folder, spec, record, untracked, tracker.notes, has_run_trials=False)


def confirm_study(
    home: Home,
    name: str,
    view: StudyView,
    top: int | None = None,
    seeds: int | None = None,
    rules: bool = False,
    address: str | None = None,
) -> RunEnd:
    """Run the best configurations of a study whose search is over again, on fresh seeds, and the baseline with them.

    Args:
        top, seeds, rules: see `study.commands.extend_study.add_fresh_seeds`.

    Raises:
        UserError: see `resume_study`; or nothing would be run, see `study.commands.extend_study.add_fresh_seeds`.
    """
    folder, spec = _load_study_to_continue(home, name, address)
    datasets = load_study_datasets(spec, view)
    with explain_resume_on_disk_error(folder):
        extend_study.add_fresh_seeds(folder, spec, top, seeds, rules)
    return run_session(home, folder, datasets, view, address)


def _load_study_to_continue(home: Home, name: str, address: str | None) -> tuple[StudyFolder, StudySpec]:
    """Return a study of this home that is to run more trials, and its file; raise as `resume_study`."""
    folder = home.find_study(name)
    check_not_running_at_origin(folder)
    spec = folder.load_checked_spec()
    check_trial_fits(home, spec.replace_placement(StudyRecord.load(folder.ledger_file).placement), address)
    return folder, spec


def run_ablation(
    home: Home, name: str, view: StudyView, request: AblationRequest, address: str | None = None
) -> RunEnd | None:
    """Run the steps from a study's baseline to its best configuration, each on the same fresh seeds.

    Returns:
        The end of the run; None: all that is asked for had run.

    Raises:
        UserError: see `resume_study`; or there is nothing to ablate, see `study.commands.ablate_study.plan_ablation`.
    """
    folder, spec = _load_study_to_continue(home, name, address)
    datasets = load_study_datasets(spec, view)
    with explain_resume_on_disk_error(folder):
        is_measured = not ablate_study.request_ablation(folder, spec, request)
    return None if is_measured else run_session(home, folder, datasets, view, address)
