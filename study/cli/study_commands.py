"""Commands that show, export and remove studies, and ask something of one that runs."""

import sys
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from study.cli import cluster, options
from study.errors import UserError
from study.text import print_text, study_command

if TYPE_CHECKING:
    from study.home.folder import Home


def _home_to_read(address: str | None, *names: str) -> "Home":
    """Return the home that a command reads: this one, or the copy of a cluster's, with these studies up to date."""
    from study.home.folder import Home

    if address is None:
        return Home.locate()
    from study.commands.remote_studies import RemoteStudies

    return RemoteStudies(address).update_home(names)


def plan(
    spec: options.SpecArgument,
    assignments: options.SetOption = None,
    profile: options.ProfileOption = None,
    fast: Annotated[bool, Option("--fast", help="Run no epoch here to estimate the time.")] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Show what a study would run and how long; start nothing. Example: study plan quickstart"""
    from study.commands import plan as plans
    from study.commands.cost import CostEstimate, cost_estimate_text, estimate_cost
    from study.ranking.json_documents import to_plain_dict
    from study.spec import load_study

    study = load_study(spec, assignments or (), profile)
    planned = plans.plan_study(study)
    if not as_json:
        print_text(plans.plan_text(planned))

    def announce_measuring() -> None:
        if not as_json:
            print_text("measuring some epochs (--fast: without) ...", sys.stderr)

    estimated = CostEstimate(None, "--fast") if fast else estimate_cost(study, planned, announce_measuring)
    if as_json:
        options.print_json(to_plain_dict(planned) | to_plain_dict(estimated))
    else:
        print_text(cost_estimate_text(estimated))


def list_studies(address: options.OptionalDashboardOption = None, as_json: options.JsonOption = False) -> None:
    """List the studies of this home, or of a cluster. Example: study list --json"""
    from study.commands import status
    from study.home.folder import Home

    if address is not None:
        from study.commands.remote_studies import RemoteStudies

        there = RemoteStudies(address)
        options.show_answer(there.list_rows(), as_json, there.studies_table)
        return
    home = Home.locate()
    options.show_answer(status.list_study_rows(home), as_json, partial(status.studies_table, home))


def show_status(
    name: options.StudyArgument, address: options.OptionalDashboardOption = None, as_json: options.JsonOption = False
) -> None:
    """Show a study's state, trials, best so far and pace. Example: study status quickstart"""
    from study.commands import status
    from study.home.folder import Home

    if address:
        from study.commands import remote_studies

        options.show_answer(
            remote_studies.RemoteStudies(address).status(name), as_json, remote_studies.remote_status_text
        )
    else:
        options.show_answer(status.study_status(Home.locate().find_study(name)), as_json, status.study_status_lines)


def report(
    name: options.StudyArgument,
    out: Annotated[
        Path | None, Option("-o", "--out", metavar="DIR", help="The folder to write to; default: the study's.")
    ] = None,
    pdf: Annotated[bool, Option("--pdf", help="Also write each figure as a PDF.")] = False,
    watch: Annotated[
        bool, Option("--watch", help="Keep it up to date while the study runs; the page reloads itself.")
    ] = False,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write tables, figures and an HTML page of a study. Example: study report quickstart -o report"""
    from study.commands import report as reporting
    from study.home.folder import Home

    if watch:
        if pdf or as_json or address is not None:
            raise UserError("--watch: writes the report of a study of this home: without --pdf, --json and --address")
        reporting.watch_report(Home.locate(), name, out, print_text)
        return
    home = _home_to_read(address, name)
    page, untracked = reporting.write_study_report(home, name, out, pdf)
    rules = reporting.rule_pick_rows(home, name) if as_json else ()
    options.show_answer({"name": name, "page": str(page), "rules": rules}, as_json, itemgetter("page"))
    if untracked:
        print_text(f"the report in MLflow is the old one: {untracked}", sys.stderr)


def compare(
    names: Annotated[list[str], Argument(metavar="NAME NAME ...", help="Studies; see study list.")],
    metric: Annotated[
        str | None, Option("--metric", metavar="METRIC", help="One that all have; default: the studies' own.")
    ] = None,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show studies of the same data and metric side by side. Example: study compare quickstart mine"""
    from study.analysis.report.page_formats import frame_to_markdown
    from study.analysis.statistics import compare_studies
    from study.ranking import Results

    home = _home_to_read(address, *names)
    folders = [home.find_study(name) for name in names]
    studies = [Results.load(folder) for folder in folders]
    comparison = compare_studies.compare_studies(studies, metric)
    if as_json:
        options.print_json(comparison)
        return
    print_text(frame_to_markdown(compare_studies.comparison_table(comparison, metric)))
    for line in compare_studies.missing_comparison_notes(studies, metric):
        print_text(line, sys.stderr)


def export(
    name: options.StudyArgument,
    out: Annotated[
        Path | None,
        Option(
            "-o",
            "--out",
            metavar="FILE",
            help="The file, NAME-best.yaml by default; of several configurations, FILE-1, FILE-2 ...",
        ),
    ] = None,
    top: Annotated[int | None, Option("--top", min=1, help="How many; default: 1, or a whole front.")] = None,
    where: Annotated[
        list[str] | None,
        Option("--where", metavar="LIMIT", help="A limit to keep, as val/equalized_odds<=0.05; may be repeated."),
    ] = None,
    by: Annotated[
        str | None, Option("--by", metavar="METRIC", help="The metric to rank by; default: the study's.")
    ] = None,
    pareto: Annotated[
        str | None, Option("--pareto", metavar="M,M", help="The front of these metrics: what no other beats.")
    ] = None,
    trial: Annotated[int | None, Option("--trial", min=0, help="The configuration of this trial.")] = None,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write a study's best configurations as files. Example: study export quickstart --top 3 -o best.yaml"""
    from study.commands import export_configurations as exporting
    from study.ranking import Results
    from study.ranking.candidate_selection import CandidateSelection

    metrics = [metric.strip() for metric in pareto.split(",")] if pareto else ()
    choice = CandidateSelection(top, trial, where or (), by, metrics)
    folder = _home_to_read(address, name).find_study(name)
    written = exporting.export_best(folder, Results.load(folder), out or Path(f"{name}-best.yaml"), choice)
    document = {"name": name, "files": [file.to_document() for file in written]}
    options.show_answer(document, as_json, lambda _: [str(file.path) for file in written])
    if single := [file for file in written if file.rests_on_one_seed]:
        print_text(f"{len(single)} of {len(written)} rest on one seed. Fresh seeds: study confirm {name}", sys.stderr)


def delete(
    name: options.StudyArgument,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Remove a study: its folder, MLflow runs and their artifacts. Example: study delete quickstart --yes"""
    from study.home.folder import Home

    def ask(what: str) -> None:
        if not yes:
            typer.confirm(f"{what} Remove all of it?", abort=True, err=True)

    if address is not None:
        from study.cluster.job_client import JobClient
        from study.commands import remote_studies

        jobs = JobClient(address)
        ask(remote_studies.remote_deletion_sentence(jobs, name))
        remote_studies.delete_remote_study(jobs, name)
    else:
        from study.commands import delete as deleting

        home = Home.locate()
        ask(deleting.deletion_sentence(home, name))
        deleting.delete_study(home, name)
    options.show_answer({"name": name, "deleted": True}, as_json, lambda _: f"{name}: removed")


def ui(
    port: Annotated[int, Option("--port", min=1, max=65535)] = 5000,
    optuna: Annotated[
        str | None, Option("--optuna", metavar="NAME", help="Show this study in Optuna's dashboard instead.")
    ] = None,
) -> None:
    """Start the MLflow UI on this home, on loopback. Example: study ui --port 5001"""
    from study.home.folder import Home

    if optuna is not None:
        from study.commands import optuna_exchange

        optuna_exchange.serve_dashboard(Home.locate().find_study(optuna), port)
        return
    from study.commands import mlflow_ui

    mlflow_ui.serve_ui(Home.locate(), port)


def import_trials(
    storage: Annotated[
        str, Argument(metavar="STORAGE", help="A database's URL, or a journal's or an SQLite file's path.")
    ],
    name: Annotated[str, Argument(metavar="NAME", help="The Optuna study in it.")],
    file: Annotated[str, Argument(metavar="SPEC", help="A study file that searches the same parameters.")],
    out: Annotated[Path, Option("-o", "--out", metavar="FILE", help="The file to write.")],
    top: Annotated[int, Option("--top", min=1, help="Most configurations to take.")] = 10,
    renamed: Annotated[
        list[str] | None,
        Option(
            "--rename",
            metavar="NAME=KEY",
            help="The key that a parameter stands for; `NAME=` leaves it out; may be repeated.",
        ),
    ] = None,
) -> None:
    """Begin a study file with the best of an Optuna study. Example: study import my.db mine quickstart -o q.yaml"""
    from study.commands import optuna_exchange

    print_text("\n".join(optuna_exchange.import_best_trials(storage, name, file, out, top, renamed or ())))


def stop(
    name: cluster.RemoteStudyArgument,
    trial: Annotated[
        list[int] | None,
        Option("--trial", metavar="T", min=0, help="Only this trial, at its next report; may be repeated."),
    ] = None,
    search: Annotated[
        bool, Option("--search", help="Only the search: try no further configuration; the study goes on.")
    ] = False,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Stop a study in good order, or only its search, or one trial. Example: study stop quickstart --trial 3"""
    from study.cluster.job_client import JobClient
    from study.driver import ask_driver
    from study.home.folder import Home

    if trial and search:
        raise UserError("--trial stops trials, --search the search. Give only one of them")
    if trial or search:
        given = [word for number in trial or () for word in ("--trial", str(number))] or ["--search"]
        if address is not None:
            options.show_answer(
                JobClient(address).run_short_command(name, "stop", name, *given), as_json, _request_lines
            )
            return
        folder = Home.locate().find_study(name)
        done = ask_driver.request_trials_end(folder, trial) if trial else [ask_driver.request_search_end(folder)]
        options.show_answer({"name": name, "asked": [one.to_document() for one in done]}, as_json, _request_lines)
        return
    how = study_command("resume", name, *(("--address", address) if address else ()))
    if address is None:
        stopped = ask_driver.stop_driver(Home.locate(), name)
    else:
        stopped = f"job {JobClient(address).stop_study(name).id}"
    text = f"{name}: stopped, {stopped}. Go on with it: {how}"
    options.show_answer({"name": name, "stopped": stopped}, as_json, lambda _: text)


def enqueue(
    name: cluster.RemoteStudyArgument,
    assignments: Annotated[
        list[str] | None, Argument(metavar="KEY=VALUE ...", help="Searched keys and their values.")
    ] = None,
    like: Annotated[
        int | None, Option("--like", metavar="T", min=0, help="Take every other key from this trial.")
    ] = None,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Have a running search try a configuration next. Example: study enqueue quickstart --like 3 method.alpha=0.5"""
    from study.cluster.job_client import JobClient
    from study.driver import ask_driver
    from study.home.folder import Home

    if not assignments and like is None:
        example = study_command("enqueue", name, "--like", 3, "method.alpha=0.5")
        raise UserError(f"KEY=VALUE: is missing, as in {example}")
    if address is not None:
        given = [*(assignments or ()), *(("--like", str(like)) if like is not None else ())]
        answer = JobClient(address).run_short_command(name, "enqueue", name, *given)
    else:
        done = ask_driver.request_configuration(Home.locate().find_study(name), assignments or (), like)
        answer = {"name": name, "asked": [done.to_document()]}
    options.show_answer(answer, as_json, _request_lines)


def _request_lines(document: dict[str, Any]) -> list[str]:
    """Return what was asked of a driver, here or by a job of its cluster, a line each."""
    return [one["words"] for one in document["asked"]]
