"""Commands that run trials, of one study or of many."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from study.cli import options
from study.cli.cluster import FollowOption, is_remote_address, resume_on_cluster, to_option_words
from study.errors import UserError
from study.text import print_text, study_command

if TYPE_CHECKING:
    from study.driver.run_suite import SuiteEnd
    from study.driver.session import RunEnd
    from study.home.folder import Home, StudyFolder

DetachOption = Annotated[bool, Option("--detach", help="Run it in the background; return once its first trials begin.")]
MoreTrialsOption = Annotated[str | None, Option("--trials", metavar="+N", help="Add N trials to the search.")]


def run(
    spec: options.SpecArgument,
    name: options.NameOption = None,
    assignments: options.SetOption = None,
    profile: options.ProfileOption = None,
    address: options.RayAddressOption = None,
    or_resume: Annotated[bool, Option("--or-resume", help="Resume the study if it already exists.")] = False,
    quiet: options.QuietOption = False,
    detach: DetachOption = False,
) -> None:
    """Run a study here, or on a cluster. Example: study run quickstart --set search.trials=50"""
    from study.driver.run import StudyFileRequest, run_from_file
    from study.home.folder import Home

    home, given = Home.locate(), StudyFileRequest(spec, tuple(assignments or ()), profile, name)
    if detach:
        _run_detached(home, quiet, run_from_file, given, address=address, or_resume=or_resume)
        return
    options.show_run_end(run_from_file(home, given, options.create_progress_view(quiet), address, or_resume=or_resume))


def _run_detached(home: "Home", quiet: bool, task: "Callable[..., RunEnd]", *given: Any, **named: Any) -> None:
    """Have a separate driver do something, and say where to look at it."""
    from study.driver.driver_process import DETACHED_DRIVER_LOG, start_detached_driver

    folder, pid = start_detached_driver(options.create_progress_view(quiet), home, task, *given, **named)
    if pid is None:
        print_text(f"{folder.name}: no trial was left to run. Its state: {study_command('status', folder.name)}")
        return
    log = folder.path / DETACHED_DRIVER_LOG
    print_text(f"{folder.name} runs in process {pid}, which goes on by itself and prints into {log}")
    print_text(f"look at it: {study_command('attach', folder.name)}\nstop it:    {study_command('stop', folder.name)}")


def attach(name: options.StudyArgument, quiet: options.QuietOption = False) -> None:
    """Follow a running study until it ends; Ctrl-C leaves it running. Example: study attach quickstart"""
    from study.driver.driver_process import follow_running_study
    from study.home.folder import Home

    options.show_run_end(follow_running_study(options.create_progress_view(quiet), Home.locate().find_study(name)))


def resume(
    name: options.StudyArgument,
    trials: MoreTrialsOption = None,
    assignments: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="Change a key of resources, or search.concurrency, from here on."),
    ] = None,
    failed: Annotated[bool, Option("--failed", help="Run failed trials again, once you fixed the cause.")] = False,
    address: options.AnyAddressOption = None,
    follow: FollowOption = False,
    quiet: options.QuietOption = False,
    detach: DetachOption = False,
) -> None:
    """Resume a study after a stop or crash, or add trials to it. Example: study resume quickstart --trials +50"""
    if is_remote_address(address, follow):
        from study.commands import changes_on_resume, extend_study
        from study.home.record import StudyRecord
        from study.ranking import Results

        def check(folder: "StudyFolder") -> None:
            if trials is not None:
                extend_study.check_additional_trials(folder.load_spec(), trials)
            if assignments:
                changes_on_resume.placement_on_resume(folder, StudyRecord.load(folder.ledger_file), assignments)
            if failed:
                extend_study.trial_numbers_to_retry(Results.load(folder))

        command = ["resume", *to_option_words(trials=trials, failed=failed, quiet=quiet, set=assignments)]
        is_changed = trials is not None or assignments or failed
        resume_on_cluster(address, command, name, follow, check=check if is_changed else None)
        return
    from study.driver import resume as resuming
    from study.home.folder import Home

    home, asked = Home.locate(), {"trials": trials, "address": address, "failed": failed}
    if detach:
        _run_detached(home, quiet, resuming.resume_study, name, **asked, assignments=assignments or ())
        return
    view, changes = options.create_progress_view(quiet), assignments or ()
    options.show_run_end(resuming.resume_study(home, name, view, trials, address, assignments=changes, failed=failed))


def confirm(
    name: options.StudyArgument,
    top: Annotated[int | None, Option("--top", min=1, help="How many of the best configurations; default: 5.")] = None,
    seeds: Annotated[
        int | None, Option("--seeds", min=2, help="Number of fresh seeds, those that ran included; default: 5.")
    ] = None,
    rules: Annotated[bool, Option("--rules", help="Also run what each selection rule would have picked.")] = False,
    address: options.AnyAddressOption = None,
    follow: FollowOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Run a study's best configurations again on fresh seeds. Example: study confirm quickstart --top 5 --seeds 5"""
    if is_remote_address(address, follow):
        from study.commands import extend_study
        from study.ranking import Results

        def check(folder: "StudyFolder") -> None:
            extend_study.make_confirm_event(Results.load(folder), top, seeds, rules)

        command = ["confirm", *to_option_words(top=top, seeds=seeds, rules=rules, quiet=quiet)]
        resume_on_cluster(address, command, name, follow, check=check)
        return
    from study.driver import resume as resuming
    from study.home.folder import Home

    view = options.create_progress_view(quiet)
    options.show_run_end(resuming.confirm_study(Home.locate(), name, view, top, seeds, rules, address))


def ablate(
    name: options.StudyArgument,
    seeds: Annotated[
        int | None,
        Option("--seeds", min=2, help="Number of seeds, those that ran included; default: as search.confirm."),
    ] = None,
    knobs: Annotated[
        str | None,
        Option("--knobs", metavar="KEY,KEY", help="Knobs to measure one by one; the others change together, last."),
    ] = None,
    order: Annotated[
        str | None, Option("--order", metavar="KEY,KEY", help="Order of steps; default: importance in the search.")
    ] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would run, and start nothing.")] = False,
    address: options.AnyAddressOption = None,
    follow: FollowOption = False,
    quiet: options.QuietOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Measure what each knob adds between baseline and best. Example: study ablate quickstart --seeds 5"""
    from study.commands import ablate_study

    request = ablate_study.AblationRequest(seeds, _split_keys(knobs), _split_keys(order))

    def show_plan(plan: ablate_study.AblationSummary) -> None:
        options.show_answer(plan, as_json, ablate_study.ablation_plan_lines)

    if is_remote_address(address, follow):
        from study.cluster.job_client import JobClient
        from study.commands import remote_studies

        if dry_run:
            folder = remote_studies.fetch_local_copy(JobClient(address), name)
            show_plan(ablate_study.summarise_ablation_plan(folder, request))
            return
        command = ["ablate", *to_option_words(seeds=seeds, knobs=knobs, order=order, quiet=quiet)]
        check = partial(ablate_study.summarise_ablation_plan, request=request)
        resume_on_cluster(address, command, name, follow, as_json, check)
        return
    from study.driver import resume as resuming
    from study.home.folder import Home

    home = Home.locate()
    plan = ablate_study.summarise_ablation_plan(home.find_study(name), request)
    if dry_run:
        show_plan(plan)
        return
    if not as_json:
        show_plan(plan)
    outcome = resuming.run_ablation(home, name, options.create_progress_view(quiet or as_json), request, address)
    result = ablate_study.ablation_result(home.find_study(name))
    options.show_answer(result, as_json, lambda found: f"\n{ablate_study.effects_as_markdown(found)}")
    if outcome is not None:
        options.exit_unless_complete(outcome) if as_json else options.show_run_end(outcome)


def _split_keys(text: str | None) -> tuple[str, ...]:
    """Read the keys from `KEY,KEY`."""
    return tuple(key.strip() for key in (text or "").split(",") if key.strip())


def trial(
    spec: options.SpecArgument,
    assignments: options.SetOption = None,
    profile: options.ProfileOption = None,
    fold: Annotated[
        int | None, Option("--fold", metavar="K", help="Validate on this fold of data.folds, from 0 on.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Run one trial in this process, without Ray. Example: study trial quickstart --set method.lambda=1"""
    from study.commands import single_trial
    from study.home.provenance import device_text
    from study.spec import load_study

    study = load_study(spec, assignments or (), profile, one_trial=True)
    begun, config = single_trial.SingleTrial(study, fold=fold), study.trial_config({}).to_document()
    if as_json:
        epochs = list(begun.epochs())
        options.print_json({"name": study.name, "config": config, "device": begun.device, "epochs": epochs})
        return
    print_text(f"device  {device_text(begun.device)}")
    metrics = None
    for metrics in begun.epochs():
        print_text(single_trial.epoch_line(study, metrics))
    if metrics is not None:
        facts = study.facts_of_data(study.trial_document({})["data"])
        names = facts.class_names, facts.bias_names
        rows = single_trial.metrics_table(metrics, *names, facts.is_table, begun.group_sizes)
        print_text("\n".join([f"\nall metrics after epoch {metrics['epoch']:.0f}:", *rows]))


def reproduce(
    table: Annotated[str, Argument(metavar="TABLE", help="A paper's table, as fairkl-table12.")],
    name: options.NameOption = None,
    profile: options.ProfileOption = None,
    seeds: Annotated[str | None, Option("--seeds", metavar="S,S", help="Training seeds, as 0,1,2.")] = None,
    assignments: options.SetOption = None,
    readings: Annotated[
        str | None,
        Option("--readings", metavar="R,R", help="Readings of the paper's protocol to compare; all: every one."),
    ] = None,
    only_report: Annotated[bool, Option("--report", help="Run nothing; print the table so far.")] = False,
    quiet: options.QuietOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Run a paper's table and print it beside the paper's. Example: study reproduce fairkl-table12 --profile cpu"""
    from study import reproduce as reproducing
    from study.home.folder import Home

    home, request = Home.locate(), reproducing.ReproductionRequest(name, profile, tuple(assignments or ()), seeds)
    shown = options.create_progress_view(quiet or as_json)
    if readings is not None:
        from study.reproduce import reading_comparison as comparing

        ends = [] if only_report else list(reproducing.run_readings(home, table, request, readings, shown))
        compared = reproducing.compare_requested_readings(home, table, request, readings)
        options.show_answer(
            compared, as_json, comparing.reading_comparison_to_markdown, comparing.reading_comparison_to_dict
        )
        if ends:
            options.exit_unless_complete(next((one for one in ends if one.record.state != "complete"), ends[-1]))
        return
    outcome = None if only_report else reproducing.run_reproduction(home, table, request, shown)
    current = reproducing.current_reproduction(home, table, request)
    options.show_answer(current, as_json, reproducing.reproduction_to_markdown, reproducing.reproduction_to_dict)
    if outcome is not None and not as_json:
        options.show_run_end(outcome)


def suite(
    file: Annotated[str, Argument(metavar="SUITE", help="A shipped suite's name, or the path of a YAML file.")],
    plan: Annotated[bool, Option("--plan", help="Show what has run and what is left; start nothing.")] = False,
    only_report: Annotated[bool, Option("--report", help="Run nothing; print the tables so far.")] = False,
    out: Annotated[
        Path | None,
        Option("-o", "--out", metavar="FILE", help="Also write the tables: .md, .tex or .csv, by its ending."),
    ] = None,
    address: options.RayAddressOption = None,
    quiet: options.QuietOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Run methods x data sets x searches, and print the table. Example: study suite quickstart_suite --plan"""
    from study.analysis.tables import suite_tables
    from study.driver import run_suite as suites
    from study.home.folder import Home
    from study.spec.suite import load_suite

    if plan and only_report:
        raise UserError("--plan, --report: give one of them")
    suites.check_tables_output_file(out)
    home, wanted = Home.locate(), load_suite(file)
    if plan:
        options.show_answer(suites.plan_suite(home, wanted), as_json, suites.suite_plan_text)
        return
    silent, end = quiet or as_json, None
    if only_report:
        suites.check_suite_unchanged(home, wanted)
    else:
        tell = (lambda _: None) if silent else print_text
        end = suites.run_suite(home, wanted, file, options.create_progress_view(silent), tell, address)
    found = suites.suite_tables_so_far(home, wanted)
    if out is not None:
        suites.write_tables_to_file(found, out)
    if as_json:
        options.print_json(suite_tables.suite_to_dict(found))
    else:
        print_text(suite_tables.suite_to_markdown(found), end="")
    if end is not None:
        if not silent:
            print_text(f"\nwritten: table.md, table.tex and table.csv in {suites.suite_folder(home, wanted)}")
        _show_suite_end(end, file)


def _show_suite_end(end: "SuiteEnd", file: str) -> None:
    """Show what came of a suite's run besides its tables.

    Raises:
        Exit: 1 if a study failed or lacks something in MLflow, 130 if it was stopped.
    """
    for name in end.failed_studies:
        print_text(f"{name}: failed, no trial is complete; why: study status {name}", sys.stderr)
    again = study_command("suite", file)
    for name in end.untracked_studies:
        print_text(f"{name}: not everything is in MLflow; once it answers again: {again}", sys.stderr)
    if end.was_stopped:
        print_text(f"stopped. Nothing is lost; go on with it: {again}", sys.stderr)
        raise typer.Exit(130)
    if end.failed_studies or end.untracked_studies:
        raise typer.Exit(1)


def drive_piped_task(number: Annotated[int, Argument(help="Of the pipe's end.")]) -> None:
    """Do the task that another process sends through a pipe; see `study.driver.driver_process`."""
    from study.driver import driver_process

    raise typer.Exit(driver_process.run_piped_task(number))
