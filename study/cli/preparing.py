"""Commands that prepare a study: its file, and its data."""

import sys
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from study.cli import cluster
from study.cli.cluster import PythonOption, ShellVariablesOption
from study.cli.options import JsonOption, OptionalDashboardOption, QuietOption, SetOption, show_answer
from study.text import escape_control, print_text


def spaces(as_json: JsonOption = False) -> None:
    """List the shipped study files, and all names for use in a file. Example: study spaces --json"""
    from study.commands import spaces as shipped

    show_answer(shipped.list_spaces(), as_json, shipped.spaces_text)


def schema(
    out: Annotated[
        Path | None, Option("-o", "--out", metavar="FILE", help="The file to write; default: print it.")
    ] = None,
) -> None:
    """Print or write the JSON Schema of study files, for editors. Example: study schema -o study.schema.json"""
    from study.files import write_output
    from study.spec.json_schema import study_file_schema_text

    text = study_file_schema_text()
    print_text(text, end="") if out is None else write_output(out, text)


def init(
    name: Annotated[str | None, Argument(metavar="NAME", help="The study's name.")] = None,
    data: Annotated[
        str | None,
        Option(
            "--data",
            metavar="DATA",
            help="A data set's name, a folder of images, or a table (.csv, .parquet, .xlsx ...).",
        ),
    ] = None,
    target: Annotated[str | None, Option("--target", metavar="COLUMN", help="The column of the class.")] = None,
    bias: Annotated[
        str | None,
        Option("--bias", metavar="COLUMN", help="The column of the bias or sensitive attribute; default: none."),
    ] = None,
    labels: Annotated[
        str | None, Option("--labels", metavar="FILE", help="The table of labels in a folder of images.")
    ] = None,
    file: Annotated[
        str | None, Option("--file", metavar="COLUMN", help="That table's column with the file names.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        Option("--method", metavar="METHOD", help="A loss or method; with FairKL: METHOD+fair_kl. May be repeated."),
    ] = None,
    gpu: Annotated[bool | None, Option("--gpu/--cpu", help="Where its trials run.")] = None,
    trials: Annotated[int | None, Option("--trials", min=1, help="Number of configurations to try.")] = None,
    guess: Annotated[
        str | None,
        Option("--guess", metavar="G", help="What may be learned instead of the class: colour, texture or unknown."),
    ] = None,
    missing: Annotated[
        str | None, Option("--missing", metavar="M", help="What to do with rows that have gaps: fill or drop.")
    ] = None,
    pretrained: Annotated[
        bool | None,
        Option(
            "--pretrained/--no-pretrained",
            help="Train on the features of a frozen pretrained network; default: for photographs, if one is here.",
        ),
    ] = None,
    weights: Annotated[
        str | None, Option("--weights", metavar="FILE", help="Weights of such a network: .safetensors or .pth.")
    ] = None,
    without: Annotated[
        list[str] | None,
        Option("--without", metavar="COLUMNS", help="Columns of a table to leave out, as a,b; or none."),
    ] = None,
    assignments: Annotated[
        list[str] | None, Option("--set", metavar="KEY=VALUE", help="A key of the file; may be repeated.")
    ] = None,
    out: Annotated[Path | None, Option("-o", "--out", metavar="FILE", help="The file; default: NAME.yaml.")] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a study file; asks for what is not given. Example: study init mine --data birds/ --bias place"""
    given = locals()
    from study.commands import init as beginning
    from study.commands.init_answers import AnswerSource
    from study.knobs import to_options
    from study.text import study_command

    def ask(question: str, default: str | None) -> str:
        return str(typer.prompt(escape_control(question), default=default, err=True))

    answers = ask if sys.stdin.isatty() and not as_json else None
    asker = AnswerSource(answers, lambda sentence: print_text(sentence, sys.stderr))
    flags = to_options(beginning.InitOptions, {**given, "assignments": assignments or ()})
    path = beginning.write_study_file(flags, out, force, asker)
    show_answer({"file": str(path)}, as_json, lambda _: f"{path}: what would run: {study_command('plan', path)}")


def list_data(as_json: JsonOption = False) -> None:
    """List the data sets and whether their files are there. Example: study data list --json"""
    from study.commands import data as data_commands

    show_answer(data_commands.list_data_sets(), as_json, data_commands.data_sets_table)


def prepare_data(
    name: Annotated[str, Argument(metavar="NAME", help="A data set; see study data list.")],
    assignments: SetOption = None,
    address: OptionalDashboardOption = None,
    env: ShellVariablesOption = None,
    python: PythonOption = "python",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Download, check and build a data set, here or on a cluster's head. Example: study data prepare biased_mnist"""
    from study.commands import data as data_commands

    if address is not None:
        command = ["data", "prepare", name, *cluster.to_option_words(set=assignments), "--quiet"]
        cluster.run_study_command_on_head(address, command, python, env or (), as_json)
        return
    with data_commands.download_progress_bars(quiet) as progress:
        document = data_commands.prepare_data_set(name, assignments or (), progress)
    show_answer(document, as_json, data_commands.prepared_data_text)


def export_data(
    name: Annotated[str, Argument(metavar="NAME", help="A data set of images; see study data list.")],
    folder: Annotated[Path, Argument(metavar="FOLDER", help="A new folder.")],
    assignments: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a data set's images as PNG, with a table of labels. Example: study data export biased_digits photos"""
    from study.commands.data import export_images

    show_answer({"labels": str(export_images(name, folder, assignments or ()))}, as_json, itemgetter("labels"))
