"""Commands about trained models."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from study.cli import options
from study.cli.cluster import FollowOption, is_remote_address, show_submitted_driver, to_option_words
from study.errors import UserError
from study.metrics import STANDARD_ERROR_NOTE, is_standard_error
from study.metrics.group_names import group_size_text
from study.metrics.metric_format import format_metric
from study.text import list_few_names, pluralise, print_text, quoted, study_command

ModelArgument = Annotated[
    str, Argument(metavar="MODEL", help="A final training's name, a model's .json file, or models:/NAME@ALIAS.")
]
DeviceOption = Annotated[str, Option("--device", help="auto, cpu, cuda or cuda:N; auto: a GPU if one works here.")]
StrictOption = Annotated[bool, Option("--strict", help="Refuse input that cannot be read instead of leaving it out.")]
SeedOption = Annotated[int | None, Option("--seed", metavar="S", help="Which seed of a final training to use.")]


def list_models(as_json: options.JsonOption = False) -> None:
    """List networks with published weights and whether their files are there. Example: study models list --json"""
    from study.commands import network_weights

    options.show_answer(network_weights.list_weights(), as_json, network_weights.weights_table)


def prepare_model(
    network: Annotated[str, Argument(metavar="NETWORK", help="As torchvision names it: study models list.")],
    weights: Annotated[
        str, Option("--weights", metavar="NAME", help="Their name in torchvision; imagenet: its default ones.")
    ] = "imagenet",
    quiet: options.QuietOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Download and check published weights. Example: study models prepare resnet50"""
    from study.commands import network_weights
    from study.commands.data import download_progress_bars

    with download_progress_bars(quiet) as progress:
        document = network_weights.prepare_weights(network, weights, progress)
    options.show_answer(document, as_json, network_weights.prepared_weights_text)


def train(
    spec: Annotated[
        str, Argument(metavar="SPEC", help="A study's name, or the path of its best.yaml or of another study file.")
    ],
    seeds: Annotated[
        str | None,
        Option(
            "--seeds",
            metavar="S,S",
            help="Training seeds; default: those of the study's earlier final training, if there is one, else three "
            "new ones (one for a model of scikit-learn).",
        ),
    ] = None,
    epochs: Annotated[
        int | None, Option("--epochs", min=1, help="Number of epochs; default: as in the search.")
    ] = None,
    baseline: Annotated[
        bool, Option("--baseline", help="Train the baseline of SPEC, a study's name or file, to compare with.")
    ] = False,
    data: Annotated[
        Literal["train", "train+val"],
        Option(
            "--data",
            help="Splits to train on: train, or train+val, as with folds, which leaves nothing to validate on.",
        ),
    ] = "train",
    whole: Annotated[
        bool, Option("--whole", help="Keep the weights of a frozen network with the models, and register them.")
    ] = False,
    name: options.NameOption = None,
    assignments: options.SetOption = None,
    address: options.AnyAddressOption = None,
    follow: FollowOption = False,
    quiet: options.QuietOption = False,
) -> None:
    """Train what a study chose on several seeds, and keep the models. Example: study train mine --epochs 40"""
    from study.commands.final_training import (
        check_has_result,
        default_final_seeds,
        export_baseline_spec,
        final_training_spec,
        find_exported_file,
        parse_seeds,
        study_of_searched_file,
    )
    from study.home.folder import Home

    changes = [*(assignments or ()), *([f"train.epochs={epochs}"] if epochs else [])]
    home, with_val, asked = Home.locate(), data == "train+val", None if seeds is None else parse_seeds(seeds)
    best = None if baseline else find_exported_file(home, spec)
    if is_remote_address(address, follow):
        from study.cluster.job_client import JobClient, submit_final_training
        from study.commands import remote_studies
        from study.home.provenance import study_owner
        from study.spec.load import load_for_cluster

        remote = JobClient(address)
        is_name = len(Path(spec).parts) == 1 and not Path(spec).suffix and not Path(spec).exists()
        if best is None and not baseline and is_name and remote.jobs_of_study(spec):
            best = remote_studies.export_from_cluster(remote.address, spec)
        spec = _best_file_or_given(spec, best)
        given = export_baseline_spec(home, spec, changes) if baseline else load_for_cluster(spec, changes)
        chosen = asked or remote_studies.final_training_seeds(remote, given, name, with_val)
        final = final_training_spec(given, chosen, name, with_val)
        words = to_option_words(seeds=",".join(map(str, chosen)), data=data, whole=whole, quiet=quiet)
        remote_studies.check_final_training(remote, final)
        done = submit_final_training(remote, given, final, words, {"STUDY_OWNER": study_owner()})
        show_submitted_driver(remote, final.name, done, follow)
        return
    from study.driver import run as running
    from study.spec import load_study

    if not baseline:
        check_has_result(home, spec)
    spec = _best_file_or_given(spec, best)
    given = export_baseline_spec(home, spec, changes) if baseline else load_study(spec, changes, one_trial=True)
    if chosen_by := study_of_searched_file(home, given):
        at_name = f"what the study {chosen_by} chose: {study_command('train', chosen_by)}"
        print_text(f"{spec}: trains the file's own configuration, before any search; {at_name}", sys.stderr)
    study = final_training_spec(given, asked or default_final_seeds(home, given, name, with_val), name, with_val)
    if study.folds:
        how_long = "fitted once" if study.is_scikit_learn_reference else pluralise(study.epochs, "epoch")
        print_text(f"{study.name} trains on all samples outside test (data.folds), {how_long}", sys.stderr)
    options.show_run_end(running.train_final(home, study, options.create_progress_view(quiet), address, whole))


def _best_file_or_given(spec: str, best: Path | None) -> str:
    """Return the file to train: what a study chose, which is told, or else what was given."""
    if best is not None:
        print_text(f"{spec}: the study's best, {best}", sys.stderr)
    return spec if best is None else str(best)


def predict(
    model: ModelArgument,
    inputs: Annotated[
        list[Path],
        Argument(metavar="INPUTS ...", help="Images, folders of them, CSV lists of them; or a table of rows."),
    ],
    out: Annotated[
        Path | None, Option("-o", "--out", metavar="FILE", help="A CSV file; default: standard output.")
    ] = None,
    file: Annotated[
        str | None, Option("--file", metavar="COLUMN", help="Column of the files in a list of images.")
    ] = None,
    id_column: Annotated[
        str | None, Option("--id", metavar="COLUMN", help="Column of the table or list that names the samples.")
    ] = None,
    seed: SeedOption = None,
    device: DeviceOption = "auto",
    strict: StrictOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Classify images or rows with a trained model. Example: study predict mine-final photos/ -o classes.csv

    Files or rows that cannot be read are named on standard error, the others are classified; the exit status is 1 then.
    With --strict nothing is written.
    """
    from study.commands.final_training import find_model_files
    from study.files import check_output_path, write_output
    from study.home.folder import Home
    from study.trained import TrainedClassifier
    from study.trained.prediction import predict_inputs
    from study.trained.prediction_table import predictions_csv, unreadable_lines

    if out is not None:
        check_output_path(out)
    with find_model_files(Home.locate(), model, seed) as description:
        classifier = TrainedClassifier.load_from_description(description, device)
        predictions = predict_inputs(classifier, inputs, file, id_column)
    if strict and predictions.unreadable:
        raise UserError("\n".join(["--strict: not everything can be read", *unreadable_lines(predictions)]))
    if out is not None:
        write_output(out, predictions_csv(predictions).encode("utf-8", "surrogateescape"))
    if as_json:
        options.print_json(predictions.to_document())
    else:
        print_text(str(out) if out is not None else predictions_csv(predictions).rstrip("\n"))
    if predictions.warning:
        print_text(f"warning: {predictions.warning}", sys.stderr)
    if predictions.unreadable:
        print_text("\n".join(unreadable_lines(predictions)), sys.stderr)
        raise typer.Exit(1)


def evaluate(
    model: ModelArgument,
    data_argument: Annotated[
        str | None, Argument(metavar="[DATA]", show_default=False, help="The same as --data.")
    ] = None,
    split: Annotated[
        str | None, Option("--split", help="val, test, train or all; default: val; of a table or folder given: all.")
    ] = None,
    data: Annotated[
        str | None,
        Option("--data", metavar="DATA", help="A table, a folder, or a study file's data; default: the model's own."),
    ] = None,
    assignments: options.SetOption = None,
    seed: SeedOption = None,
    device: DeviceOption = "auto",
    strict: StrictOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Measure a trained model on a split, or on other data. Example: study evaluate mine-final new.csv"""
    from study.commands.final_training import find_model_files
    from study.data import table_columns
    from study.home.folder import Home
    from study.trained import evaluate as evaluating

    if data_argument is not None and data is not None:
        raise UserError(f"--data {data}: {data_argument} is given, too; give the data once")
    home, data = Home.locate(), data if data is not None else data_argument
    is_own = data is not None and evaluating.is_path_of_user_data(data)
    split = split or (evaluating.ALL_SAMPLES_SPLIT if is_own else "val")
    with find_model_files(home, model, seed) as description:
        found = evaluating.evaluate_model(home, description, split, data, assignments or (), device, strict)
    groups = found.groups_in_words
    worst, left_out, foreign = found.worst_group, len(found.left_out), list(found.unknown_bias_classes)
    for line in table_columns.summarise_faults(found.left_out):
        print_text(f"left out: {line}", sys.stderr)
    if as_json:
        named: dict[str, Any] = {"groups": groups} if groups else {}
        named |= {"worst_group": worst.to_document()} if worst else {}
        named |= {"left_out": left_out} if left_out else {}
        named |= {"foreign_bias": foreign} if foreign else {}
        named |= {"classes": list(found.class_sentences)} if found.class_sentences else {}
        options.print_json({**found.metrics, "samples": found.samples, **named})
        return
    is_new = data is not None or any(assignment.startswith("data.path") for assignment in assignments or ())
    part = f", the {split} split of these data; --split all takes every sample" if is_new and split != "all" else ""
    note = f"; {pluralise(left_out, 'row')} of the table left out, which the model cannot take"
    print_text(f"{found.samples} samples{part}{note if left_out else ''}")
    if foreign:
        names = f"bias class{'es' * (len(foreign) > 1)} {list_few_names(list(map(quoted, foreign)))}"
        print_text(f"{names}: not among the model's, so these samples count in what is measured by class alone")
    undefined = [name for name, value in found.metrics.items() if value is None and not is_standard_error(name)]
    for name, value in found.metrics.items():
        if value is None or is_standard_error(name):
            continue
        error = found.metrics.get(f"{name}_standard_error")
        line = f"{name:<32} {format_metric(name, value, error)}{group_size_text(found.group_sizes.get(name))}"
        print_text(f"{line:<50} {groups[name]}" if name in groups else line)
    if not any(found.group_sizes.values()) and not foreign:
        way = "; --set data.bias=COLUMN takes a column of the table as bias" if is_own else ""
        print_text(f"no groups: the data have no bias labels{way}")
    if undefined:
        print_text(f"not defined on these samples: {list_few_names([name.partition('/')[2] for name in undefined])}")
    if any(map(is_standard_error, found.metrics)):
        print_text(STANDARD_ERROR_NOTE)
    for sentences in (worst.sentences() if worst else [], found.class_sentences):
        if sentences:
            print_text(" ".join(sentences))
