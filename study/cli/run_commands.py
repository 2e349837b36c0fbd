"""Commands that run trials, of one study or of many."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from study.cli.cluster import Follow, go_on, is_elsewhere, options
from study.cli.options import (
    Address,
    AnyAddress,
    Json,
    Name,
    Profile,
    Quiet,
    Rename,
    Set,
    Spec,
    end,
    print_json,
    show,
    view,
)
from study.errors import UserError
from study.text import tell, typed

if TYPE_CHECKING:
    from study.driver.run_suite import SuiteEnd
    from study.driver.session import RunEnd
    from study.home.folder import Home, StudyFolder

Detach = Annotated[bool, typer.Option("--detach", help="Run it in the background; return once its first trials begin.")]
More = Annotated[str | None, typer.Option("--trials", metavar="+N", help="Add N trials to the search.")]


def run(
    spec: Spec,
    name: Rename = None,
    assignments: Set = None,
    profile: Profile = None,
    address: Address = None,
    or_resume: Annotated[bool, typer.Option("--or-resume", help="Resume the study if it already exists.")] = False,
    quiet: Quiet = False,
    detach: Detach = False,
) -> None:
    """Run a study here, or on a cluster. Example: study run quickstart --set search.trials=50"""
    from study.driver.run import File, begin
    from study.home.folder import Home

    home, given = Home.locate(), File(spec, tuple(assignments or ()), profile, name)
    if detach:
        _detached(home, quiet, begin, given, address=address, or_resume=or_resume)
        return
    show(begin(home, given, view(quiet), address, or_resume=or_resume))


def _detached(home: "Home", quiet: bool, task: "Callable[..., RunEnd]", *given: Any, **named: Any) -> None:
    """Have a separate driver do something, and say where to look at it."""
    from study.driver.driver_process import LOG, start_detached

    folder, pid = start_detached(view(quiet), home, task, *given, **named)
    if pid is None:
        tell(f"{folder.name}: no trial was left to run. Its state: {typed('status', folder.name)}")
        return
    tell(f"{folder.name} runs in process {pid}, which goes on by itself and prints into {folder.path / LOG}")
    tell(f"look at it: {typed('attach', folder.name)}\nstop it:    {typed('stop', folder.name)}")


def attach(name: Name, quiet: Quiet = False) -> None:
    """Follow a running study until it ends; Ctrl-C leaves it running. Example: study attach quickstart"""
    from study.driver.driver_process import follow_running
    from study.home.folder import Home

    show(follow_running(view(quiet), Home.locate().find(name)))


def resume(
    name: Name,
    trials: More = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="From here on: a key of resources, or search.concurrency."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Run failed trials again, once you fixed the cause.")
    ] = False,
    address: AnyAddress = None,
    follow: Follow = False,
    quiet: Quiet = False,
    detach: Detach = False,
) -> None:
    """Resume a study after a stop or crash, or add trials to it. Example: study resume quickstart --trials +50"""
    if is_elsewhere(address, follow):
        from study.commands import extend_study, placement
        from study.home.record import StudyRecord

        def check(folder: "StudyFolder") -> None:
            if trials is not None:
                extend_study.check_trials(folder.spec(), trials)
            if assignments:
                placement.placement(folder, StudyRecord.load(folder.ledger_file), assignments)
            if failed:
                extend_study.failures(folder)

        command = ["resume", *options(trials=trials, failed=failed, quiet=quiet, set=assignments)]
        is_changed = trials is not None or assignments or failed
        go_on(address, command, name, follow, check=check if is_changed else None)
        return
    from study.driver import run as running
    from study.home.folder import Home

    home, asked = Home.locate(), {"trials": trials, "address": address, "failed": failed}
    if detach:
        _detached(home, quiet, running.resume, name, **asked, assignments=assignments or ())
        return
    show(running.resume(home, name, view(quiet), trials, address, assignments=assignments or (), failed=failed))


def extend(
    name: Name,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Train up to this epoch.")],
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Number of the best configurations; default: 5.")
    ] = None,
    trials: Annotated[
        str | None, typer.Option("--trials", metavar="N,N", help="Numbers of the trials, complete or stopped.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and start nothing.")] = False,
    address: AnyAddress = None,
    follow: Follow = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Let trials go on beyond their last epoch. Example: study extend quickstart --epochs 40 --top 5"""
    from study.commands import extend_study

    request = extend_study.ExtensionRequest(epochs, top, _numbers(trials))

    def show_plan(plan: extend_study.ExtensionPlan) -> None:
        print_json(plan) if as_json else tell("\n".join(extend_study.lines(plan)))

    if is_elsewhere(address, follow):
        from study.cluster.job_client import Jobs

        asked = options(epochs=epochs, top=top, trials=trials)
        if dry_run:  # asked there: only its home knows which trials' states were kept
            show_plan(extend_study.plan_from_document(Jobs(address).ask(name, "extend", name, *asked, "--dry-run")))
            return
        command = ["extend", *asked, *options(quiet=quiet)]
        go_on(address, command, name, follow, as_json, lambda folder: extend_study.plan_of(folder, request))
        return
    from study.driver import run as running
    from study.home.folder import Home

    home = Home.locate()
    plan = extend_study.plan_of(home.find(name), request)
    show_plan(plan)
    if dry_run:
        return
    outcome = running.extend(home, name, view(quiet or as_json), request, address)
    end(outcome) if as_json else show(outcome)


def _numbers(text: str | None) -> tuple[int, ...]:
    """Read the numbers of trials from `N,N`.

    Raises:
        UserError: it is no such list.
    """
    parts = [part.strip() for part in text.split(",")] if text is not None else []
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise UserError(f"--trials {text}: numbers of trials are needed, as in --trials 3,7")
    return tuple(map(int, parts))


def confirm(
    name: Name,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Number of the best configurations; default: 5.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=2, help="Number of fresh seeds, those that ran included; default: 5.")
    ] = None,
    rules: Annotated[
        bool, typer.Option("--rules", help="Also run what each selection rule would have picked.")
    ] = False,
    address: AnyAddress = None,
    follow: Follow = False,
    quiet: Quiet = False,
) -> None:
    """Run a study's best configurations again on fresh seeds. Example: study confirm quickstart --top 5 --seeds 5"""
    if is_elsewhere(address, follow):
        from study.commands import extend_study
        from study.ranking import Results

        def check(folder: "StudyFolder") -> None:
            extend_study.confirm_event(Results.load(folder), top, seeds, rules)

        command = ["confirm", *options(top=top, seeds=seeds, rules=rules, quiet=quiet)]
        go_on(address, command, name, follow, check=check)
        return
    from study.driver import run as running
    from study.home.folder import Home

    show(running.confirm(Home.locate(), name, view(quiet), top, seeds, rules, address))


def ablate(
    name: Name,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=2, help="Number of seeds, those that ran included; default: as confirm."),
    ] = None,
    knobs: Annotated[
        str | None,
        typer.Option("--knobs", metavar="KEY,KEY", help="Knobs to measure; the others change together last."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option("--order", metavar="KEY,KEY", help="Order of steps; default: importance in the search."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and start nothing.")] = False,
    address: AnyAddress = None,
    follow: Follow = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure what each knob adds between baseline and best. Example: study ablate quickstart --seeds 5"""
    from study.commands import ablate_study

    request = ablate_study.AblationRequest(seeds, _keys(knobs), _keys(order))

    def show_plan(plan: ablate_study.AblationSummary) -> None:
        print_json(plan) if as_json else tell("\n".join(ablate_study.lines(plan)))

    if is_elsewhere(address, follow):
        from study.cluster.job_client import Jobs
        from study.commands import on_cluster

        if dry_run:
            show_plan(ablate_study.plan_of(on_cluster.folder_there(Jobs(address), name), request))
            return
        command = ["ablate", *options(seeds=seeds, knobs=knobs, order=order, quiet=quiet)]
        go_on(address, command, name, follow, as_json, lambda folder: ablate_study.plan_of(folder, request))
        return
    from study.driver import run as running
    from study.home.folder import Home

    home = Home.locate()
    plan = ablate_study.plan_of(home.find(name), request)
    if dry_run:
        show_plan(plan)
        return
    if not as_json:
        show_plan(plan)
    outcome = running.ablate(home, name, view(quiet or as_json), request, address)
    result = ablate_study.result(home.find(name))
    print_json(result) if as_json else tell(f"\n{ablate_study.table(result)}")
    if outcome is not None:
        end(outcome) if as_json else show(outcome)


def _keys(text: str | None) -> tuple[str, ...]:
    """Read the keys from `KEY,KEY`."""
    return tuple(key.strip() for key in (text or "").split(",") if key.strip())


def trial(
    spec: Spec,
    assignments: Set = None,
    profile: Profile = None,
    fold: Annotated[
        int | None, typer.Option("--fold", metavar="K", help="Validate on this fold of data.folds, from 0 on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run one trial in this process, without Ray. Example: study trial quickstart --set method.lambda=1"""
    from study.commands import single_trial as one_trial
    from study.home.provenance import in_words
    from study.spec import load_study

    study = load_study(spec, assignments or (), profile, one_trial=True)
    epochs, device = [], dict[str, str]()

    def hear(found: Mapping[str, str]) -> None:
        device.update(found)
        if not as_json:
            tell(f"device  {in_words(found)}")

    for metrics in one_trial.run(study, tell=hear, fold=fold):
        epochs.append(metrics)
        if not as_json:
            tell(one_trial.line(study, metrics))
    if not as_json and epochs:
        tell("\n".join([f"\nall metrics after epoch {len(epochs)}:", *one_trial.table(epochs[-1])]))
    if as_json:
        print_json(
            {"name": study.name, "config": study.trial_config({}).to_document(), "device": device, "epochs": epochs}
        )


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A paper's table, as fairkl-table12.")],
    name: Rename = None,
    profile: Profile = None,
    seeds: Annotated[str | None, typer.Option("--seeds", metavar="S,S", help="Training seeds, as 0,1,2.")] = None,
    assignments: Set = None,
    readings: Annotated[
        str | None,
        typer.Option("--readings", metavar="R,R", help="Compare readings of the paper's protocol; all: each."),
    ] = None,
    only_report: Annotated[bool, typer.Option("--report", help="Run nothing; print the table so far.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a paper's table and print it beside the paper's. Example: study reproduce fairkl-table12 --profile cpu"""
    from study import reproduce as reproducing
    from study.home.folder import Home

    home, request = Home.locate(), reproducing.Request(name, profile, tuple(assignments or ()), seeds)
    shown = view(quiet or as_json)
    if readings is not None:
        from study.reproduce import reading_tables as comparing

        ends = [] if only_report else list(reproducing.reproduce_readings(home, table, request, readings, shown))
        compared = reproducing.compared_readings(home, table, request, readings)
        print_json(comparing.document(compared)) if as_json else tell(comparing.markdown(compared))
        if ends:
            end(next((one for one in ends if one.record.state != "complete"), ends[-1]))
        return
    outcome = None if only_report else reproducing.reproduce(home, table, request, shown)
    current = reproducing.current_table(home, table, request)
    print_json(reproducing.document(current)) if as_json else tell(reproducing.markdown(current))
    if outcome is not None and not as_json:
        show(outcome)


def suite(
    file: Annotated[str, typer.Argument(metavar="SUITE", help="A shipped suite's name, or the path of a YAML file.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show what has run and what is left; start nothing.")] = False,
    only_report: Annotated[bool, typer.Option("--report", help="Run nothing; print the tables so far.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Also write the tables: .md, .tex or .csv, by its ending."),
    ] = None,
    address: Address = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run methods x data sets x searches, and print the table. Example: study suite quickstart_suite --plan"""
    from study.analysis.tables import suite_tables
    from study.driver import run_suite as suites
    from study.driver.run_suite import plan_suite, plan_text
    from study.home.folder import Home
    from study.spec.suite import load_suite

    if plan and only_report:
        raise UserError("--plan, --report: give one of them")
    suites.check_out(out)
    home, wanted = Home.locate(), load_suite(file)
    if plan:
        planned = plan_suite(home, wanted)
        print_json(planned) if as_json else tell(plan_text(planned))
        return
    silent = quiet or as_json
    end = None
    if only_report:
        suites.check_same(home, wanted)
    else:
        end = suites.run(home, wanted, file, view(silent), (lambda _: None) if silent else tell, address)
    found = suites.tables(home, wanted)
    if out is not None:
        suites.write_out(found, out)
    print_json(suite_tables.to_json(found)) if as_json else tell(suite_tables.markdown(found), end="")
    if end is not None:
        if not silent:
            tell(f"\nwritten: table.md, table.tex and table.csv in {suites.folder(home, wanted)}")
        _show(end, file)


def _show(end: "SuiteEnd", file: str) -> None:
    """Show what came of a suite's run besides its tables.

    Raises:
        Exit: 1 if a study failed or lacks something in MLflow, 130 if it was stopped.
    """
    for name in end.failed:
        tell(f"{name}: failed, no trial is complete; why: study status {name}", sys.stderr)
    for name in end.untracked:
        tell(f"{name}: not everything is in MLflow; once it answers again: {typed('suite', file)}", sys.stderr)
    if end.stopped:
        tell(f"stopped. Nothing is lost; go on with it: {typed('suite', file)}", sys.stderr)
        raise typer.Exit(130)
    if end.failed or end.untracked:
        raise typer.Exit(1)


def drive(number: Annotated[int, typer.Argument(help="Of the pipe's end.")]) -> None:
    """Do the task that another process sends through a pipe; see `study.driver.driver_process`."""
    from study.driver import driver_process

    raise typer.Exit(driver_process.drive(number))
