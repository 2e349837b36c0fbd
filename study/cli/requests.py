"""The commands that ask something of a study that runs."""

from typing import Annotated

import typer

from study.cli.cluster import Name
from study.cli.options import Json, Where, print_json
from study.errors import UserError
from study.text import tell, typed


def stop(
    name: Name,
    trial: Annotated[
        list[int] | None,
        typer.Option("--trial", metavar="T", min=0, help="Only this trial, at its next report; may be repeated."),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Only the search: no further configuration is tried, the study goes on.")
    ] = False,
    address: Where = None,
    as_json: Json = False,
) -> None:
    """Stop a study cleanly, a trial of it, or its search. Example: study stop quickstart --trial 3"""
    from study.cluster.jobs import Jobs
    from study.commands import requests
    from study.commands import stop as stopping
    from study.home.folder import Home

    if trial and search:
        raise UserError("--trial stops trials, --search the search. Give only one of them")
    if trial or search:
        given = [word for number in trial or () for word in ("--trial", str(number))] or ["--search"]
        if address is not None:
            _show_remote(Jobs(address).ask(name, "stop", name, *given), as_json)
            return
        folder = Home.locate().find(name)
        done = requests.stopped_trials(folder, trial) if trial else [requests.ended_search(folder)]
        documents = [one.to_document() for one in done]
        print_json({"name": name, "asked": documents}) if as_json else tell("\n".join(one.words for one in done))
        return
    how = typed("resume", name, *(("--address", address) if address else ()))
    if address is None:
        stopped = stopping.stop(Home.locate(), name)
    else:
        job = Jobs(address).stop(name)
        stopped = f"job {job.id}" if job.place is None else f"job {job.id}, which waited for its turn"
        how = how if job.place is None or job.number > 1 else "study submit of the same file"
    print_json({"name": name, "stopped": stopped}) if as_json else tell(
        f"{name}: stopped, {stopped}. Go on with it: {how}"
    )


def enqueue(
    name: Name,
    assignments: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE ...", help="Searched keys and their values.")
    ] = None,
    like: Annotated[
        int | None, typer.Option("--like", metavar="T", min=0, help="Every other key as in this trial.")
    ] = None,
    address: Where = None,
    as_json: Json = False,
) -> None:
    """Have a search try a configuration next. Example: study enqueue quickstart --like 3 method.alpha=0.5"""
    from study.cluster.jobs import Jobs
    from study.commands import requests
    from study.home.folder import Home

    if not assignments and like is None:
        raise UserError(f"KEY=VALUE: is missing, as in {typed('enqueue', name, '--like', 3, 'method.alpha=0.5')}")
    if address is not None:
        given = [*(assignments or ()), *(("--like", str(like)) if like is not None else ())]
        _show_remote(Jobs(address).ask(name, "enqueue", name, *given), as_json)
        return
    done = requests.enqueued(Home.locate().find(name), assignments or (), like)
    print_json({"name": name, "asked": [done.to_document()]}) if as_json else tell(done.words)


def _show_remote(document: dict[str, object], as_json: bool) -> None:
    """Show what a cluster answered."""
    if as_json:
        print_json(document)
        return
    asked = document["asked"]
    assert isinstance(asked, list)
    tell("\n".join(one["words"] for one in asked))
