"""What `study init` does: ask a few questions and write a study file."""

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from study import data, methods
from study.commands import draft, pretrained_choice
from study.commands.init_answers import AnswerCheck, AnswerSource, one_of_check, split_names, with_data_assignments
from study.data import cells, label_files, table_findings, table_format, user_data
from study.data.image_files import IMAGE_SUFFIXES, MIN_SIDE_PIXELS
from study.data.label_files import is_hidden_path
from study.data.positive_class import guess_positive_class_name, positive_class_name
from study.data.sets import image_folder
from study.data.table_findings import LEFT_OUT_KEY, WORD_COLUMNS_KEY, ColumnFinding
from study.data.table_format import TABLE_SUFFIXES
from study.errors import NAMES_COMMAND, UserError, did_you_mean_path, suggest_or_list
from study.files import check_output_path, write_output
from study.knobs import Knob, Section, Value, text_list, to_options
from study.spec import yaml_document
from study.spec.json_schema import SCHEMA_FILE_NAME
from study.spec.key_errors import fault_of_value, names_with_fair_kl
from study.spec.load import check_and_complete_document, check_study_name
from study.text import is_utf8, list_few_names, quoted

if TYPE_CHECKING:
    import pandas as pd

USER_DATA_SETS = ("image_folder", "table")


def likely_label_table_name(folder: Path) -> str | None:
    """Return the default answer to which table of a folder has the labels; None: there is no likely one.

    `labels.csv`, else the only table in it, else `folders` where it has folders alone; a text file is taken for a note.
    """
    in_folder = [name for name in _list_tables(folder) if not name.lower().endswith(".txt")]
    if not in_folder and any(path.is_dir() and not is_hidden_path(path.name) for path in folder.iterdir()):
        return image_folder.CLASS_FROM_FOLDERS
    return "labels.csv" if "labels.csv" in in_folder or len(in_folder) != 1 else in_folder[0]


def _list_tables(folder: Path) -> list[str]:
    names = (path.name for path in folder.iterdir() if path.suffix.lower() in TABLE_SUFFIXES)
    return sorted(name for name in names if not is_hidden_path(name))


def table_name_check(folder: Path) -> AnswerCheck:
    """Return a check that the folder has a table of this name."""

    def check(name: str) -> None:
        if not is_utf8(name):
            raise UserError(f"{name}: its name is not in UTF-8, as a study file is. Rename it")
        if name == image_folder.CLASS_FROM_FOLDERS:
            image_folder.list_images_with_folder_class(folder)
        elif not os.path.isfile(place := image_folder.labels_table_path(folder, name)):
            tables_there = _list_tables(folder)
            raise UserError(f"{place}: not found. Tables there: {', '.join(tables_there) or 'none'}")

    return check


def check_data_answer(answer: str) -> None:
    """Check that this is a data set, a folder or a table, and that a study file can have its name."""
    data_sets = data.dataset_names()
    if not is_utf8(answer):
        raise UserError(f"{answer}: its name is not in UTF-8, as a study file is. Rename it, or make a link to it")
    if answer in data_sets:
        data.find_dataset_module(answer)
        if answer in USER_DATA_SETS:
            raise UserError(f"{answer!r} is for files of your own: give the path of the folder or of the table")
        return
    place = label_files.find_user_path_or_none(answer) if answer else None
    if place is None:
        near = did_you_mean_path(Path(answer)) if answer else ""
        sets = near + suggest_or_list(answer, data_sets, "Data sets", "study data list")
        raise UserError(f"{answer!r}: neither a data set nor the path of a folder or table. {sets}")
    if place.is_file() and place.suffix.lower() not in TABLE_SUFFIXES:
        raise UserError(f"{answer}: is not a table; allowed are {list_few_names(TABLE_SUFFIXES)}")


def knob_value_check(knob: Knob) -> AnswerCheck:
    """Return a check that a key of a data set can have this value."""

    def check(value: str) -> None:
        if why := fault_of_value(knob, value):
            raise UserError(f"data.{knob.key}: {why}")

    return check


def check_methods_answer(answer: str) -> None:
    """Check that these methods exist, one or several."""
    allowed = methods.method_names()
    if not split_names(answer):
        raise UserError(f"no method given. Allowed: {', '.join(allowed)}")
    for named in split_names(answer):
        name = named.removesuffix(draft.FAIR_KL_SUFFIX)
        if name not in allowed:
            known = [*allowed, *names_with_fair_kl()]
            raise UserError(f"{named!r}: no such method. {suggest_or_list(named, known, command=NAMES_COMMAND)}")
        if name != named and "regulariser" not in methods.method_knobs({"name": name}):
            raise UserError(f"{named}: {name} has no regulariser: give {name}")
        if why := methods.CATALOGUE.why_unusable(name):
            raise UserError(why)


def check_trials_answer(answer: str) -> None:
    """Check that this is a number of trials."""
    if not answer.isdecimal() or int(answer) < 1:
        raise UserError(f"{answer!r} given, allowed is a whole number from 1 on")


def apply_keys_outside_data(text: str, assignments: Sequence[str], file: str) -> str:
    """Return the text of a study file with the assignments outside `data` set in it, checked; its comments are kept.

    Args:
        file: its future name, for messages.

    Raises:
        UserError: the file would not be a study.
    """
    others = [text for text in assignments if not text.startswith("data.")]
    if not others:
        return text
    with yaml_document.edit_yaml(text) as (tree, written):
        yaml_document.apply_overrides(yaml_document.YamlDocument(file, tree), others)
    document = yaml_document.parse_study_yaml(written.getvalue(), file)
    document.values.pop("profiles", None)
    check_and_complete_document(document)
    return written.getvalue()


BiasSituation = Literal["labels", "some_labels", "colour", "texture", "unknown"]
"""What is known of the bias: labels of all samples or of some; without labels, what a model may learn instead."""

METHOD_REASON_BY_SITUATION: Mapping[BiasSituation, str] = {
    "labels": "the bias of every sample is known: FairKL makes samples of a class as alike across biases as within one",
    "some_labels": "the bias of some samples is known: a network guesses that of the others, then FairKL is used as if "
    "all were known",
    "colour": "colour may betray the class: strong colour changes take it away, and need no bias labels",
    "texture": "a small pattern may betray the class: a network that sees nothing larger stands for the bias labels",
    "unknown": "nothing is known of the bias: learning_from_failure gives weight to what a network that follows easy "
    "signs gets wrong, and cross entropy shows whether that is needed",
}
"""The reason for the methods of each situation, as the guide's page on own data gives it."""


TABLE_REASON_SUFFIX = "; weights let small classes and groups count as large ones, in a logistic regression first"
"""Added to the reason where the data are a table."""


def method_advice(bias: draft.BiasKnowledge, chosen: Sequence[str], is_table: bool, pretrained: bool = False) -> str:
    """Return one line: the methods of a drafted file, and why.

    Args:
        chosen: the file's methods.
        pretrained: whether its network is a frozen pretrained one.
    """
    if pretrained:
        return f"method: {_method_names_in_words(chosen)}, trained on the features of a frozen pretrained network"
    default = draft.default_methods(bias, is_table)
    situation: BiasSituation = bias.guess if bias.known_labels == "none" else bias.known_labels
    why = f"{METHOD_REASON_BY_SITUATION[situation]}{TABLE_REASON_SUFFIX if is_table else ''}"
    reason = f"{_method_names_in_words(default)}, as {why}"
    if set(chosen) == set(default):
        return f"method: {reason}"
    return f"method: {_method_names_in_words(chosen)}, as you said; without --method it would be {reason}"


def _method_names_in_words(names: Sequence[str]) -> str:
    """Return names of methods in words, with their regularisers."""
    return " and ".join(name.replace("+", " with ") for name in names)


DEFAULT_TRIALS, DEFAULT_TABLE_TRIALS, TRIALS_WITH_FEW_CONFLICTING = 24, 16, 8
"""Number of trials: by default; for a table, whose space is narrow; and where papers' configurations are tried first
and few validation samples are conflicting: more trials chose worse ones there (`tests/benchmarks/draft_space.py`)."""

MAX_FEW_CONFLICTING_SAMPLES = 100
"""Conflicting validation samples below which they are few; measured with 3 to 16."""

USUAL_FILE_COLUMNS = ("file", "filename", "file_name", "image", "image_path", "img_filename", "path")
"""Usual names of the column with the images' files, the likeliest first."""

N_SAMPLED_ROWS = 100
"""Number of a table's first rows in which a column of files is looked for."""

ATTRIBUTE_CHOICE_KEYS = ("target", "sensitive")
"""Keys of some data sets that choose which attribute is the class and which the bias."""


@dataclass(frozen=True)
class InitOptions:
    """Options of the command line; None: the user is asked, or the default is taken.

    Attributes:
        data: name of a data set, or path of a folder of images, or of a table.
        labels, file: for a folder of images, the table in it and that table's column with the files.
        target, bias: columns, or attributes of a data set that lets one choose them.
        methods: one or several.
        guess: what a model may learn instead of the class where there are no bias labels.
        missing: what happens to rows of a table with missing values.
        without: columns of a table that are no inputs, or `none`.
        assignments: keys of the file, `train.epochs=10`.
        pretrained: whether its network is a frozen pretrained one; None: for photographs where its weights are there.
        weights: a file with the weights of such a network.
    """

    name: str | None = None
    data: str | None = None
    labels: str | None = None
    file: str | None = None
    target: str | None = None
    bias: str | None = None
    methods: Sequence[str] | None = None
    gpu: bool | None = None
    trials: int | None = None
    guess: str | None = None
    missing: str | None = None
    without: Sequence[str] | None = None
    assignments: Sequence[str] = ()
    pretrained: bool | None = None
    weights: str | None = None


def write_study_file(flags: InitOptions, out: Path | None, force: bool, asker: AnswerSource) -> Path:
    """Write a study file and return its path.

    Args:
        out: its path; None: NAME.yaml in the current folder.
        force: replace an existing file.

    Raises:
        UserError: the file exists, an answer is missing or cannot be used, or the answers contradict each other.
    """
    if flags.data is None and flags.name is not None and os.path.exists(flags.name):
        raise UserError(f"{flags.name} is a file or folder; a study needs a name: study init NAME --data {flags.name}")
    name = asker("NAME", flags.name, "Name of the study", None, check_study_name)
    path = out or Path(f"{name}.yaml")
    if path.exists() and not force:
        raise UserError(f"{path}: is there already. Another name: -o FILE; to replace it: --force")
    if path.suffix not in yaml_document.STUDY_FILE_SUFFIXES or not str(path).isprintable():
        raise UserError(f"{path}: cannot be a study file: its name must end in .yaml")
    check_output_path(path)
    section: Section = with_data_assignments(ask_data_section(flags, asker), flags.assignments)
    section = ask_columns(section, flags.without, asker)
    section, note = ask_missing_values(section, flags.missing, asker)
    section = _with_validation_split(section)
    section = _with_positive_class(section, asker)
    network = pretrained_choice.choose_network(section, flags.pretrained, flags.weights, flags.assignments, asker)
    if network and section["name"] == "image_folder" and "size" not in section:
        section = {**section, "size": pretrained_choice.DRAFTED_PHOTOGRAPH_SIDE}
    bias = _find_bias_knowledge(section, replace(flags, guess=flags.guess or "unknown") if network else flags, asker)
    is_table = data.describe(section).is_table
    methods_flag = ",".join(flags.methods) if flags.methods else None
    usual_methods = ",".join(draft.default_methods(bias, is_table, network is not None))
    question = "Methods, a,b for several; see study spaces"
    methods_answer = asker("--method", methods_flag, question, usual_methods, check_methods_answer)
    compute = None if flags.gpu is None else "gpu" if flags.gpu else "cpu"
    where = one_of_check("cpu", "gpu")
    gpu = asker("--gpu", compute, "Where its trials run, cpu or gpu", "cpu", where) == "gpu"
    count = None if flags.trials is None else str(flags.trials)
    methods_wished = tuple(split_names(methods_answer))
    counted = cells.count_cells_of_dataset(section).splits
    conflicting = counted["val"].conflicting if counted else None  # None: not counted
    rows = counted["train"].samples if counted and is_table else None
    few = conflicting is not None and conflicting < MAX_FEW_CONFLICTING_SAMPLES
    few &= methods_wished == draft.METHODS_WITH_BIAS_LABELS
    few |= methods_wished == (draft.FROZEN_FEATURES_METHOD,)  # one number is searched
    usual = DEFAULT_TABLE_TRIALS if is_table else TRIALS_WITH_FEW_CONFLICTING if few else DEFAULT_TRIALS
    trials = int(asker("--trials", count, "Trials", str(usual), check_trials_answer))
    try:
        answers = draft.DraftAnswers(
            name, section, methods_wished, gpu, trials, bias, n_training_rows=rows, data_comment=note
        )
        answers = _with_image_size_and_count(replace(answers, model_section=network))
        text = _study_file_text(answers, flags.assignments, path)
    except UserError as error:
        raise UserError(f"{error}\nNothing was written: the answers do not go together") from None
    write_output(path, text)
    findings = table_findings.findings_with_heading(data.column_findings(answers.data_section))
    document = yaml_document.parse_study_yaml(text, str(path))
    written = yaml_document.mapping_or_empty(document.values["data"])  # with folds, where it has some
    counted_as_planned = cells.count_cells_of_dataset(written)
    warnings = cells.warnings_from_counts(counted_as_planned, has_folds=bool(written.get("folds")))
    told = [*data.describe_column_reading(answers.data_section), *findings]
    told += [text] if (text := cells.aligned_pairs_text(written, counted_as_planned)) else []
    told += [f"warning: {warning}" for warning in (*data.user_file_notes(answers.data_section), *warnings)]
    for line in (*told, method_advice(bias, methods_wished, is_table, network is not None)):
        asker.print_line(line)
    return path


def ask_data_section(flags: InitOptions, asker: AnswerSource) -> Section:
    """Return the `data` section: a data set by name with its choices, or the user's own files with their columns.

    Raises:
        UserError: no such data set, file or column; says which there are.
    """
    question = "Data: the name of a data set (study data list), a folder of images, or a table (.csv, .parquet, .xlsx)"
    answer = asker("--data", flags.data, question, None, check_data_answer)
    if answer not in data.dataset_names():
        return _own_data_section(answer, flags, asker)
    knobs = {knob.key: knob for knob in data.data_knobs(answer)}
    section = {"name": answer}
    for key, flag, value in zip(ATTRIBUTE_CHOICE_KEYS, ("--target", "--bias"), (flags.target, flags.bias), strict=True):
        if key in knobs:
            question_of_key = f"data.{key}: {knobs[key].description}"
            section[key] = asker(flag, value, question_of_key, str(knobs[key].default), knob_value_check(knobs[key]))
        elif value is not None:
            raise UserError(f"{flag} {value}: the data set {answer} does not let one choose it")
    return section


def _own_data_section(path_text: str, flags: InitOptions, asker: AnswerSource) -> Section:
    place = label_files.find_user_path(path_text)
    section: dict[str, str] = {"name": "image_folder" if place.is_dir() else "table", "path": path_text}
    table = place
    if place.is_dir():
        labels = asker(
            "--labels", flags.labels, "The table in it", likely_label_table_name(place), table_name_check(place)
        )
        table = place / labels
        section |= {"labels": labels} if labels != "labels.csv" else {}
        if labels == image_folder.CLASS_FROM_FOLDERS:
            given = {"--file": flags.file, "--target": flags.target, "--bias": flags.bias}
            if wrong := [f"{flag} {value}" for flag, value in given.items() if value not in (None, "", "none")]:
                raise UserError(f"{wrong[0]}: names a column, but {place} has no table: its folders are the classes")
            asker.print_line(f"labels: {labels}: the class of an image is its folder's name, the bias is not known")
            return section
    said = with_data_assignments(section, flags.assignments)
    known = table_format.format_from_keys(said)
    rows = label_files.read_label_table(table, (), text_list(said, "missing_marks"), known)
    columns = [str(name) for name in rows.columns]

    def check_column(column: str) -> None:
        user_data.parse_column_names(column, columns, table)

    listing = f"({list_few_names(columns)})"
    if place.is_dir():
        naming = _columns_naming_files(rows, place)
        if flags.file is None and len(naming) == 1:
            file = naming[0]
            asker.print_line(f"file: the column {quoted(file)}, the only one that names files")
        else:
            default = next((name for name in USUAL_FILE_COLUMNS if name in (naming or columns)), None)
            file = asker("--file", flags.file, f"Column with the files {listing}", default, check_column)
        section |= {"file": file} if file != "file" else {}
    section["target"] = asker("--target", flags.target, f"Column with the class {listing}", None, check_column)

    def check_optional_column(column: str) -> None:
        if column not in ("", "none"):
            user_data.check_target_and_bias_differ(section["target"], column, columns, table)

    for column in columns:
        if column != section["target"] and label_files.is_split_column(column, rows[column].unique().tolist()):
            section["split"] = column
            asker.print_line(f"split: as the column {quoted(column)} says")
            break
    question = "Column with the bias or sensitive attribute; several: a+b; none"
    bias = asker("--bias", flags.bias, question, "none", check_optional_column)
    if bias in ("", "none"):
        return section
    section["bias"] = bias
    if without := int((rows[user_data.parse_column_names(bias, columns, table)] == "").any(axis=1).sum()):
        section["bias_gaps"] = "unknown"
        gaps = f"{without} of {len(rows)} rows have no bias label"
        asker.print_line(f"bias_gaps: unknown: {gaps}; they stay, it is guessed")
    mark = str(table_format.detect_format(table, known).decimal)
    if "bias_bins" not in said and bias in columns and user_data.is_measured_number(rows[bias], mark):
        question = f"Groups of the numbers in {quoted(bias)}: quartiles, or none (each number is a group)"
        kind = asker("--set data.bias_bins", None, question, "quartiles", one_of_check("quartiles", "none"))
        section |= {"bias_bins": kind} if kind != "none" else {}
        asker.print_line(f"bias_bins: {kind}. Other groups: --set data.bias_bins=[25, 40]")
    return section


def _columns_naming_files(rows: "pd.DataFrame", folder: Path) -> list[str]:
    """Return the columns most of whose first texts name images, or files of a folder."""

    def names_file(text: str) -> bool:
        file = label_files.path_as_spelled_on_disk(folder, text)
        return file.suffix.lower() in IMAGE_SUFFIXES or os.path.isfile(file)

    first = rows.head(N_SAMPLED_ROWS)
    return [str(name) for name in rows.columns if first[name].map(names_file).mean() > 0.5]


def _with_validation_split(section: Section) -> Section:
    """Return the section of the user's own files with their validation split, `given` or else `biased`."""
    if section["name"] not in USER_DATA_SETS or "val" in section:
        return section
    try:
        data.describe({**section, "val": "given"})
    except UserError:
        return {**section, "val": "biased"}
    return {**section, "val": "given"}


def _with_positive_class(section: Section, asker: AnswerSource) -> Section:
    """Return the section of the user's own files with the positive class, and say which it is.

    The user is asked where the classes' names suggest that it is not the second.
    """
    if section["name"] not in USER_DATA_SETS:
        return section
    names = data.describe(section).class_names
    likely, given = guess_positive_class_name(names), section.get("positive")
    if names and given is None and likely is not None and likely != positive_class_name(names):
        question = f"Positive class, which equal opportunity and auc are of, {' or '.join(names)}"
        answer = asker("--set data.positive", None, question, likely, one_of_check(*names))
        section = {**section, "positive": answer}
    if positive := positive_class_name(data.describe(section).class_names):
        other = "data.positive in the file, or --set data.positive=NAME"
        asker.print_line(f"positive class: {positive}. The other one: {other}")
    return section


def _find_bias_knowledge(section: Section, flags: InitOptions, asker: AnswerSource) -> draft.BiasKnowledge:
    """Return what is known of the bias: labels, or else a guess at what it is."""
    facts = data.describe(dict(section)).facts_of_split("train")
    if facts.bias_names and len(facts.bias_names) == 1:
        problem = f"is {quoted(facts.bias_names[0])} in every row: no bias. Name another column, or none"
        raise UserError(f"--bias: the column {quoted(str(section['bias']))} {problem}")
    known: draft.BiasLabelCoverage = (
        "none" if not facts.bias_classes else "some_labels" if facts.some_bias else "labels"
    )
    guesses = one_of_check(*get_args(draft.BiasGuess))
    if facts.is_table:
        if flags.guess is not None:
            raise UserError(f"--guess {flags.guess}: is for images, the data are a table")
        return draft.BiasKnowledge(known)
    if facts.bias_classes:
        guess = "unknown" if flags.guess is None else asker("--guess", flags.guess, "", None, guesses)
        return draft.BiasKnowledge(known, cast(draft.BiasGuess, guess))
    question = "Nothing says the bias. What may betray the class: colour, texture (or another small pattern), unknown"
    guess = asker("--guess", flags.guess, question, "unknown", guesses)
    return draft.BiasKnowledge("none", cast(draft.BiasGuess, guess))


def _study_file_text(answers: draft.DraftAnswers, assignments: Sequence[str], path: Path) -> str:
    """Return the text of the file with the user's keys.

    The papers' configurations are left out where these keys make the space too narrow for them.

    Raises:
        UserError: the keys do not make a study without those, either.
    """

    def drafted(answers: draft.DraftAnswers) -> str:
        text = draft.draft_study_file(answers, str(path), _schema_path(path))
        return apply_keys_outside_data(text, assignments, str(path))

    try:
        return drafted(answers)
    except UserError as problem:
        try:
            return drafted(replace(answers, tries_papers_first=False))
        except UserError:
            raise problem from None


def _with_image_size_and_count(answers: draft.DraftAnswers) -> draft.DraftAnswers:
    """Return answers that suit the user's images.

    Images smaller than the network's usual size keep theirs: to enlarge them takes time and teaches nothing. Their
    number goes along, as a large batch would leave few steps.
    """
    if (section := answers.data_section)["name"] != "image_folder":
        return answers
    chosen = to_options(image_folder.Options, section)
    images, size = image_folder.training_image_count_and_side(chosen)
    sized = {} if size is None or size >= chosen.size or "size" in section else {"size": max(size, MIN_SIDE_PIXELS)}
    return replace(answers, data_section={**section, **sized}, n_training_images=images)


def _schema_path(file: Path) -> str | None:
    """Return the schema's path for an editor: relative to the file if both are in one project, else absolute."""
    schema = (yaml_document.shipped_studies_folder() / SCHEMA_FILE_NAME).resolve()
    if not schema.is_file():
        return None
    folder = file.absolute().parent.resolve()
    return os.path.relpath(schema, folder) if folder.is_relative_to(schema.parents[1]) else str(schema)


def ask_columns(section: Section, flag: Sequence[str] | None, asker: AnswerSource) -> Section:
    """Return the section of a table with what the user decides about its columns.

    The user decides about columns that cannot be inputs and those that alone tell the class, all at once. Columns with
    the same value in every row are left out; where nobody can be asked, those of dates and names are, too.

    Args:
        flag: columns that are left out; `none`: none of those that tell the class.

    Raises:
        UserError: some are to be decided and nobody can be asked; names all of them. Or the flag is for other data.
    """
    if section["name"] != "table":
        if flag is not None:
            raise UserError(f"--without {','.join(flag)}: is for tables")
        return dict(section)
    path, decided = label_files.find_user_path(str(section["path"])), dict(section)
    given = _split_column_texts(flag or (), label_files.read_column_names(path, table_format.format_from_keys(section)))
    if given:
        decided["without"] = [*text_list(decided, "without"), *given]
    found, answered = data.findings_before_study_file(decided), set[ColumnFinding]()
    decisive = ("refused", "no input") if flag is not None and not given else ("refused", "no input", "telling")
    while asked := [one for one in found if one.kind in decisive and one not in answered]:
        if asker.ask_question is not None:
            for line in table_findings.format_findings(asked):
                asker.print_line(line)
            for key, values in table_findings.remedy_values_by_key(asked).items():
                decided = _ask_key(decided, key, values, asker, path)
        else:
            words = text_list(decided, "words")
            no_inputs = [one for one in asked if one.kind == "no input" and one.column not in words]
            if not no_inputs:
                raise UserError(f"{table_findings.findings_message(path, asked)}\n{_options_to_add(asked)}")
            asked = no_inputs
            decided["without"] = [*text_list(decided, "without"), *(one.column for one in asked)]
            for one in asked:
                to_have = one.remedy.partition(", or ")[2]
                asker.print_line(f"without: {one.column}: it {one.problem}. To have it: {to_have}")
        answered.update(asked)
        found = data.findings_before_study_file(decided)  # an answer may bring others to light
    if same := [one.column for one in found if one.kind == "constant"]:
        decided["without"] = list(dict.fromkeys([*text_list(decided, "without"), *same]))
        asker.print_line(f"without: {list_few_names(same)}: the same in every row")
    return decided


def _split_column_texts(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that texts name, each one column or several with commas; none for `none`."""
    parts = [part for text in texts for part in ([text] if text in names else split_names(text))]
    return [] if parts == ["none"] else parts


def _options_to_add(asked: Sequence[ColumnFinding]) -> str:
    """Return the options that decide what was asked, to be added to the command."""
    keys = table_findings.remedy_values_by_key(asked)
    without = keys.pop(LEFT_OUT_KEY, ())
    together = [",".join(plain)] if (plain := [name for name in without if "," not in name]) else []
    texts = [f"--without {shlex.quote(text)}" for text in [*together, *(name for name in without if "," in name)]]
    texts += [_option_for_key(key, values) for key, values in keys.items()]
    keep = "; --without none keeps those that tell the class" if any(one.kind == "telling" for one in asked) else ""
    lines = [f"As options of study init: {' '.join(texts)}{keep}" if texts else "Mend them first"]
    if words := [one.column for one in asked if one.may_be_words]:
        hold = f"{list_few_names(words)} {'hold' if len(words) > 1 else 'holds'} words that you want"
        lines.append(f"Or, if {hold}: {_option_for_key(WORD_COLUMNS_KEY, words)}")
    return "\n".join(lines)


def _option_for_key(key: str, values: Sequence[str]) -> str:
    """Return the option that gives a key of the study file these values."""
    return f"--set {shlex.quote(table_findings.key_with_values(key, values).replace(': ', '=', 1))}"


def _ask_key(section: Section, key: str, values: Sequence[str], asker: AnswerSource, path: Path) -> dict[str, Value]:
    name = key.removeprefix("data.")
    before = [] if key in table_findings.SINGLE_VALUE_KEYS else text_list(section, name)
    others = {own: value for own, value in section.items() if own != name}
    default = table_findings.key_with_values(key, [*before, *values]).partition(": ")[2]

    def check(answer: str) -> None:
        if answer not in ("", "none"):
            given = with_data_assignments(others, [f"{key}={answer}"])
            there = label_files.read_column_names(path, table_format.format_from_keys(section))
            label_files.check_columns_exist(there, text_list(given, name) if key == LEFT_OUT_KEY else (), path)

    answer = asker(key, None, f"{key}, or none", default, check)
    return dict(section) if answer in ("", "none") else with_data_assignments(others, [f"{key}={answer}"])


def ask_missing_values(section: Section, flag: str | None, asker: AnswerSource) -> tuple[Section, str | None]:
    """Return the section with what happens to rows of a table with missing values, and a note on them for the file.

    Both stay as they are where the section says it, there are no such rows, or the data are no table.

    Raises:
        UserError: the flag is for another kind of data, or cannot be used.
    """
    if section["name"] != "table" or "missing" in section:
        if flag is not None:
            raise UserError(f"--missing {flag}: is for tables, and not beside --set data.missing")
        return dict(section), None
    path = label_files.find_user_path(str(section["path"]))
    rows = label_files.read_user_table(path, section)
    named = section.get("bias")
    bias = user_data.parse_column_names(named if isinstance(named, str) else None, rows.columns, path)
    target = user_data.parse_column_names(str(section["target"]), rows.columns, path)
    inputs = rows.drop(columns={*bias, *text_list(section, "without")} - {*target})
    gaps = inputs.isna() | inputs.isin([math.inf, -math.inf])
    incomplete = int(gaps.any(axis=1).sum())
    unlabelled = int(gaps[target].any(axis=1).sum())
    if not incomplete and flag is None:
        return dict(section), None
    columns = [f"{quoted(str(name))} ({count})" for name in gaps if (count := int(gaps[name].sum()))]
    counted = f"{incomplete} of {len(rows)} rows have missing values"
    counted += f": {list_few_names(columns, 6)}" if columns else ""
    counted += f"; {unlabelled} of them have no class" if unlabelled else ""
    counted += _uneven_gaps_warning(gaps.any(axis=1), rows[target])
    allowed = ("drop",) if unlabelled else ("fill", "drop")
    question = f"{counted}. What happens to them, {' or '.join(allowed)}"
    answer = asker("--missing", flag, question, allowed[0], one_of_check(*allowed))
    filled = "a missing number becomes the mean of the training rows, a missing word a word of its own"
    note = f"{counted}. missing: {answer}: {'the rows are left out' if answer == 'drop' else filled}."
    asker.print_line(note)
    return {**section, "missing": answer}, note


MIN_UNEVEN_GAPS_DIFFERENCE = 0.2
"""Difference of two classes' shares of rows with missing values from which the user is warned: dropping these rows
changes how frequent the classes are."""


def _uneven_gaps_warning(gaps: "pd.Series[bool]", classes: "pd.DataFrame") -> str:
    """Return a warning with the shares of incomplete rows of two classes where these differ much, else nothing."""
    shares = gaps.groupby([classes[name] for name in classes]).mean().sort_values()
    are_few = 2 <= len(shares) <= user_data.MAX_DISTINCT_CODES
    if not are_few or shares.iloc[-1] - shares.iloc[0] < MIN_UNEVEN_GAPS_DIFFERENCE:
        return ""
    least, most = (f"{100 * share:.0f}% of {name}" for name, share in shares.iloc[[0, -1]].items())
    return f" ({most}, {least}: without them the classes are others)"
