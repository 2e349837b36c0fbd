"""The `study` command. Each command reads its arguments and makes one call into a module; imports are made there,
so that `study --help` is instant.

Exit status: 0 done; 1 the study failed or had to stop; 2 something given cannot be used; 130 stopped by Ctrl-C.
"""

import errno
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from study import __version__, cli_cluster
from study.errors import Stopped, UserError

if TYPE_CHECKING:
    from study.outcome import Outcome

app = typer.Typer(
    name="study",
    help="Hyperparameter studies for debiased and fair contrastive learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

data_app = typer.Typer(help="The data sets: what there is, and getting one onto disk.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A shipped study file's name, or the path of a YAML file.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A study of this home; see study list.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")]
Profile = Annotated[str | None, typer.Option("--profile", metavar="P", help="Apply a block of the file's `profiles`.")]
Rename = Annotated[str | None, typer.Option("--name", metavar="N", help="Run under another name.")]
More = Annotated[str | None, typer.Option("--trials", metavar="+N", help="Search on: so many more trials.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="ADDR", help="Ray cluster, from within its network: auto, HOST:PORT.")
]
AnyAddress = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDR", help="A cluster's: http://HEAD:8265 from outside."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def main() -> None:
    """Entry point: what the user can mend is one message and exit status 2; Ctrl-C is 130; a full disk is 1."""
    try:
        app(standalone_mode=True)
    except (UserError, Stopped) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1 if isinstance(error, Stopped) else 2) from None
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if not full and error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        print(f"error: {error.filename or 'disk'}: {error.strerror}", file=sys.stderr)
        raise SystemExit(1 if full else 2) from None


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit()


@app.command()
def run(
    spec: Spec,
    name: Rename = None,
    assignments: Set = None,
    profile: Profile = None,
    address: Address = None,
    or_resume: Annotated[bool, typer.Option("--or-resume", help="Go on with it where it is there already.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run a study here, or on a cluster. Example: study run quickstart --set search.trials=50"""
    from study import run as running
    from study.home import Home
    from study.spec import load_study

    begin = running.start_or_resume if or_resume else running.start
    _show(begin(Home.locate(), load_study(spec, assignments or (), profile, name), _view(quiet), address))


@app.command()
def resume(name: Name, trials: More = None, address: AnyAddress = None, quiet: Quiet = False) -> None:
    """Go on with a study after a stop or a crash, or extend it. Example: study resume quickstart --trials +50"""
    from study import run as running
    from study.home import Home

    if address and address.startswith("http"):
        cli_cluster.resume(name, trials, address)
        return

    _show(running.resume(Home.locate(), name, _view(quiet), trials, address))


@app.command()
def delete(
    name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False, as_json: Json = False
) -> None:
    """Remove a study whole: its folder, its MLflow runs and their artifacts. Example: study delete quickstart --yes"""
    from study import delete as deleting
    from study.home import Home

    home = Home.locate()
    if not yes:
        typer.confirm(f"{deleting.told(home, name)} Remove all of it?", abort=True, err=True)
    deleting.delete(home, name)
    _print_json({"name": name, "deleted": True}) if as_json else print(f"{name}: removed")


@app.command()
def trial(spec: Spec, assignments: Set = None, profile: Profile = None, as_json: Json = False) -> None:
    """Run one trial in this process, without Ray. Example: study trial quickstart --set method.lambda=1"""
    from study import one_trial
    from study.spec import load_study

    study = load_study(spec, assignments or (), profile)
    epochs = []
    for metrics in one_trial.run(study):
        epochs.append(metrics)
        if not as_json:
            print("  ".join(f"{name} {value:.6g}" for name, value in metrics.items()), flush=True)
    if as_json:
        _print_json({"name": study.name, "config": study.trial_config({}).to_document(), "epochs": epochs})


@app.command()
def plan(spec: Spec, assignments: Set = None, profile: Profile = None, as_json: Json = False) -> None:
    """Show what a study would run; starts nothing. Example: study plan quickstart --set search.trials=50"""
    from study import plan as planning
    from study.spec import load_study

    document = planning.plan(load_study(spec, assignments or (), profile))
    _print_json(document) if as_json else print(planning.text(document))


@app.command("list")
def list_studies(as_json: Json = False) -> None:
    """List the studies of this home. Example: study list --json"""
    from study import status
    from study.home import Home

    home = Home.locate()
    rows = status.overview(home)
    _print_json(rows) if as_json else print(status.table(home, rows))


@app.command("status")
def show_status(name: Name, address: AnyAddress = None, as_json: Json = False) -> None:
    """Show a study's state, trials and best so far. Example: study status quickstart"""
    from study import status, summary
    from study.home import Home
    from study.record import StudyRecord

    if address:
        cli_cluster.status(name, address, as_json)
        return
    folder = Home.locate().find(name)
    if as_json:
        _print_json(status.document(folder))
    else:
        print("\n".join(summary.lines(folder.spec(), StudyRecord.load(folder.ledger_file))))


@app.command()
def report(
    name: Name,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Where; the study's folder else.")
    ] = None,
    models: Annotated[bool, typer.Option("--models", help="Also what its models learned: takes its data.")] = False,
    as_json: Json = False,
) -> None:
    """Write tables, figures and an HTML page of a study. Example: study report quickstart -o report"""
    from study import run as running
    from study.home import Home

    page, untracked = running.report(Home.locate(), name, out, models)
    _print_json({"name": name, "page": str(page)}) if as_json else print(page)
    if untracked:
        print(f"the report in MLflow is the old one: {untracked}", file=sys.stderr)


@app.command()
def compare(
    names: Annotated[list[str], typer.Argument(metavar="NAME NAME ...", help="Studies of this home; see study list.")],
    as_json: Json = False,
) -> None:
    """Show studies of the same data and metric side by side. Example: study compare quickstart mine"""
    from study.analysis import studies
    from study.analysis.page import markdown_table
    from study.home import Home
    from study.record import StudyRecord

    folders = [Home.locate().find(name) for name in names]
    found = studies.compare([(folder.spec(), StudyRecord.load(folder.ledger_file)) for folder in folders])
    _print_json(found) if as_json else print(markdown_table(studies.printed(found)))


@app.command()
def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A paper's table, as fairkl-table12.")],
    name: Rename = None,
    profile: Profile = None,
    seeds: Annotated[str | None, typer.Option("--seeds", metavar="S,S", help="Training seeds, as 0,1,2.")] = None,
    assignments: Set = None,
    only_report: Annotated[bool, typer.Option("--report", help="Run nothing: the table as far as it is.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a paper's table and print it beside the paper's. Example: study reproduce fairkl-table12 --profile cpu"""
    from study import reproduce as reproducing
    from study.home import Home

    home, given = Home.locate(), reproducing.Given(name, profile, tuple(assignments or ()), seeds)
    outcome = None if only_report else reproducing.reproduce(home, table, given, _view(quiet or as_json))
    found = reproducing.look(home, table, given)
    _print_json(reproducing.document(found)) if as_json else print(reproducing.markdown(found))
    if outcome is not None and not as_json:
        _show(outcome)


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The file to write.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many; above 1, FILE-1, FILE-2 ... are written.")] = 1,
    as_json: Json = False,
) -> None:
    """Write a study's best configurations as files. Example: study export quickstart --top 3 -o best.yaml"""
    from study import export as exporting
    from study.home import Home
    from study.record import StudyRecord

    folder = Home.locate().find(name)
    paths = exporting.export(folder, folder.spec(), StudyRecord.load(folder.ledger_file), out, top)
    _print_json({"name": name, "files": [str(path) for path in paths]}) if as_json else print(*paths, sep="\n")


@app.command()
def train(
    spec: Spec,
    seeds: Annotated[str, typer.Option("--seeds", metavar="S,S", help="Training seeds.")] = "0,1,2",
    name: Rename = None,
    assignments: Set = None,
    address: Address = None,
    quiet: Quiet = False,
) -> None:
    """Train an exported configuration on several seeds. Example: study train best.yaml --seeds 0,1,2"""
    from study import final
    from study import run as running
    from study.home import Home
    from study.spec import load_study

    parsed = final.parse_seeds(seeds)
    _show(running.train(Home.locate(), load_study(spec, assignments or ()), parsed, name, _view(quiet), address))


@data_app.command("list")
def list_data(as_json: Json = False) -> None:
    """List the data sets and whether their files are there. Example: study data list --json"""
    from study import data_commands

    rows = data_commands.overview()
    _print_json(rows) if as_json else print(data_commands.table(rows))


@data_app.command("prepare")
def prepare_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set; see study data list.")],
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Download, check and build a data set. Example: study data prepare biased_mnist --set rho=0.997"""
    from study import data_commands

    with data_commands.download_bars() as progress:
        document = data_commands.prepare(name, assignments or (), progress)
    _print_json(document) if as_json else print(data_commands.text(document))


@app.command()
def ui(port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 5000) -> None:
    """Start the MLflow UI on this home, on loopback. Example: study ui --port 5001"""
    from study import mlflow_ui
    from study.home import Home

    mlflow_ui.serve(Home.locate(), port)


cli_cluster.add_to(app)


def _view(quiet: bool) -> Any:
    from rich.console import Console

    from study.progress import ProgressView

    return ProgressView(Console(), quiet)


def _show(outcome: "Outcome") -> None:
    """The end of a run: what came out, where it is, what to type next."""
    from study.outcome import farewell

    print("\n".join(farewell(outcome)))
    state = outcome.record.state
    if state != "complete":
        raise typer.Exit(1 if state == "failed" else 130)


def _print_json(document: Any) -> None:
    print(json.dumps(document, indent=2, allow_nan=False))
