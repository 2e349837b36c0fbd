"""The commands that run trials."""

from typing import Annotated

import typer

from study.cli import cluster
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

More = Annotated[str | None, typer.Option("--trials", metavar="+N", help="Search on, with so many more trials.")]


def run(
    spec: Spec,
    name: Rename = None,
    assignments: Set = None,
    profile: Profile = None,
    address: Address = None,
    or_resume: Annotated[bool, typer.Option("--or-resume", help="Resume the study if it already exists.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run a study here, or on a cluster. Example: study run quickstart --set search.trials=50"""
    from study.commands import run as running
    from study.home.folder import Home
    from study.spec import load_study

    begin = running.start_or_resume if or_resume else running.start
    show(begin(Home.locate(), load_study(spec, assignments or (), profile, name), view(quiet), address))


def resume(name: Name, trials: More = None, address: AnyAddress = None, quiet: Quiet = False) -> None:
    """Go on with a study after a stop or a crash, or extend it. Example: study resume quickstart --trials +50"""
    from study.commands import run as running
    from study.home.folder import Home

    if address and address.startswith("http"):
        cluster.resume(name, trials, address)
        return

    show(running.resume(Home.locate(), name, view(quiet), trials, address))


def confirm(
    name: Name,
    top: Annotated[int | None, typer.Option("--top", min=1, help="How many of the best; default: 5.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=2, help="On how many fresh seeds, counting those that already ran; default: 5."),
    ] = None,
    rules: Annotated[
        bool,
        typer.Option("--rules", help="Also what each selection rule would have picked; --top, --seeds stay as before."),
    ] = False,
    address: Address = None,
    quiet: Quiet = False,
) -> None:
    """Run a study's best configurations again on fresh seeds. Example: study confirm quickstart --top 5 --seeds 5"""
    from study.commands import run as running
    from study.home.folder import Home

    show(running.confirm(Home.locate(), name, view(quiet), top, seeds, rules, address))


def ablate(
    name: Name,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=2, help="On how many seeds, counting those that already ran; default: as confirm."),
    ] = None,
    knobs: Annotated[
        str | None, typer.Option("--knobs", metavar="KEY,KEY", help="Measure these; the others move in one last step.")
    ] = None,
    order: Annotated[
        str | None, typer.Option("--order", metavar="KEY,KEY", help="Of the steps; default: importance in the search.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would run, and start nothing.")] = False,
    address: Address = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure the way from the baseline to the best, knob by knob. Example: study ablate quickstart --seeds 5"""
    from study.commands import ablation
    from study.commands import run as running
    from study.home.folder import Home

    home, request = Home.locate(), ablation.Request(seeds, _keys(knobs), _keys(order))
    plan = ablation.plan_of(home.find(name), request)
    if dry_run:
        print_json(plan) if as_json else print("\n".join(ablation.lines(plan)))
        return
    if not as_json:
        print("\n".join(ablation.lines(plan)), flush=True)
    outcome = running.ablate(home, name, view(quiet or as_json), request, address)
    result = ablation.result(home.find(name))
    print_json(result) if as_json else print(f"\n{ablation.table(result)}")
    if outcome is not None:
        end(outcome) if as_json else show(outcome)


def _keys(text: str | None) -> tuple[str, ...]:
    """The keys of `KEY,KEY`."""
    return tuple(key.strip() for key in (text or "").split(",") if key.strip())


def trial(spec: Spec, assignments: Set = None, profile: Profile = None, as_json: Json = False) -> None:
    """Run one trial in this process, without Ray. Example: study trial quickstart --set method.lambda=1"""
    from study.commands import trial as one_trial
    from study.spec import load_study

    study = load_study(spec, assignments or (), profile, one_trial=True)
    epochs = []
    for metrics in one_trial.run(study):
        epochs.append(metrics)
        if not as_json:
            print("  ".join(f"{name} {value:.6g}" for name, value in metrics.items()), flush=True)
    if as_json:
        print_json({"name": study.name, "config": study.trial_config({}).to_document(), "epochs": epochs})


def reproduce(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A paper's table, as fairkl-table12.")],
    name: Rename = None,
    profile: Profile = None,
    seeds: Annotated[str | None, typer.Option("--seeds", metavar="S,S", help="Training seeds, as 0,1,2.")] = None,
    assignments: Set = None,
    only_report: Annotated[bool, typer.Option("--report", help="Run nothing; print the table so far.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a paper's table and print it beside the paper's. Example: study reproduce fairkl-table12 --profile cpu"""
    from study import reproduce as reproducing
    from study.home.folder import Home

    home, request = Home.locate(), reproducing.Request(name, profile, tuple(assignments or ()), seeds)
    outcome = None if only_report else reproducing.reproduce(home, table, request, view(quiet or as_json))
    current = reproducing.current_table(home, table, request)
    print_json(reproducing.document(current)) if as_json else print(reproducing.markdown(current))
    if outcome is not None and not as_json:
        show(outcome)
