"""Final training of a configuration on several seeds, and how a user names one of its models."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING

from study.errors import UserError, did_you_mean_path
from study.home.folder import Home, StudyFolder, read_fetch_origin
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.spec.configuration import EXPORT_FORMAT_VERSION, configuration_digest
from study.spec.load import check_study_name
from study.spec.schema import OBJECTIVE_KEYS, ExportOrigin, SearchOptions
from study.spec.stage_seeds import N_FINAL_SEEDS, final_seeds
from study.spec.study_spec import PLACEMENT_KEYS
from study.text import study_command
from study.trained.model_files import find_model
from study.training.config import MAX_SEED, depends_on_epoch_count

if TYPE_CHECKING:
    from study.analysis.statistics.compare_studies import ComparedStudy


def parse_seeds(text: str) -> list[int]:
    """Read seeds as given on the command line, `0,1,2`.

    Raises:
        UserError: see `check_seeds`.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise UserError(INVALID_SEEDS_MESSAGE.format(text))
    return check_seeds([int(part) for part in parts])


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds, if trials can have them.

    Raises:
        UserError: these are not distinct whole numbers >= 0.
    """
    are_whole = all(isinstance(seed, Integral) and not isinstance(seed, bool) for seed in seeds)
    if not seeds or not are_whole or not all(0 <= seed <= MAX_SEED for seed in seeds) or len(set(seeds)) < len(seeds):
        raise UserError(INVALID_SEEDS_MESSAGE.format(",".join(map(str, seeds))))
    return [int(seed) for seed in seeds]  # NumPy's are written as numbers, too


INVALID_SEEDS_MESSAGE = "--seeds {}: different whole numbers from 0 on, below 2**32, are needed, as in 0,1,2"

WITH_VAL_OPTION = "--data train+val"
"""What `origin` says of a final training on the validation split, too, that was asked for."""


def default_final_seeds(home: Home, spec: StudySpec, name: str | None = None, with_val: bool = False) -> list[int]:
    """Return the seeds of a final training where none are named.

    Those of the same training, which goes on; else those of another final training of the study, so that the two
    compare; else three. The study itself has used none of the last two kinds. A model that is fitted at once knows no
    seed, or hardly: one of these is enough.
    """
    final, fitted = final_training_spec(spec, range(N_FINAL_SEEDS), name, with_val), spec.is_scikit_learn_reference
    if (folder := home.study_or_none(final.name)) is not None:
        with suppress(UserError):  # another configuration, which is refused later
            return list(seeds_of_training(folder.load_spec(), final, folder.name))
    first = _first_seed_unused_by_study(home, spec.origin or {})
    for _, other in _trainings_of_same_study(home, final):
        if other.final_seeds and min(other.final_seeds) >= first and fitted >= other.is_scikit_learn_reference:
            return list(other.final_seeds[:1] if fitted else other.final_seeds)
    return list(final_seeds(first, fitted))


def _first_seed_unused_by_study(home: Home, origin: ExportOrigin) -> int:
    """Return the first seed that a study did not use.

    It is read from the exported file, and from the study itself if the home has it; 0 where neither tells.
    """
    unused = [origin.get("unused_seed", 0)]
    if (folder := home.study_or_none(origin.get("study"))) is not None:
        with suppress(UserError):  # damaged, or of another version
            record = StudyRecord.load(folder.ledger_file)
            if origin.get("study_id") in (None, record.id):
                unused.append(Results(folder.load_spec(), record).first_unused_seed)
    return max(unused)


def find_exported_file(home: Home, name: str) -> Path | None:
    """Return the file of what a study of this home chose, by the study's name; None: there is none."""
    folder = home.study_or_none(name)
    return folder.best_file if folder and folder.best_file.is_file() else None


def study_of_searched_file(home: Home, given: StudySpec) -> str | None:
    """Return the name of the study of this home that searched a study file, and chose; None: there is none."""
    is_searched = given.origin is None and bool(given.search.space)
    return given.name if is_searched and find_exported_file(home, given.name) else None


def check_has_result(home: Home, name: str) -> None:
    """Refuse the name of a study of this home that has not chosen anything yet, or is a final training itself.

    Raises:
        UserError: says how it gets a result.
    """
    if (folder := home.study_or_none(name)) is None or folder.best_file.is_file():
        return
    if folder.load_spec().final_seeds is not None:
        what = "is a final training itself. study train takes the study, or the file, that it was trained from"
        raise UserError(f"{name}: {what}")
    remedies = {
        "new": ("has not begun", ("resume", name)),
        "running": ("is running", ("attach", name)),
        "interrupted": ("is interrupted", ("resume", name)),
        "failed": ("has failed", ("resume", name, "--failed")),
    }
    if found := remedies.get(StudyRecord.load(folder.ledger_file).state):
        state, command = found
        raise UserError(f"{name}: {state} and has no result yet: {study_command(*command)}")


def export_baseline_spec(home: Home, name: str, changes: Sequence[str] = ()) -> StudySpec:
    """Return the baseline of a study, or else of a study file, as a file of one trial, like an exported one.

    Args:
        name: of a study in this home, or of a file as in `study.spec.load_study`.
        changes: `--set` overrides.

    Raises:
        UserError: there is none, or the study has no baseline.
    """
    folder = home.study_or_none(name)
    file = name if folder is None else str(folder.spec_file)
    spec = load_study(file, changes, name=folder.name if folder else None, one_trial=True)
    if spec.search.baseline is None:
        found_by = (spec.origin or {}).get("study")
        hint = f", as {study_command('train', found_by, '--baseline')}" if found_by else ""
        raise UserError(f"{name}: has no search.baseline. --baseline takes the name or file of a study with one{hint}")
    origin: ExportOrigin = {"format": EXPORT_FORMAT_VERSION, "study": spec.name, "baseline": True}
    if labels := spec.labels_of_params(spec.search.baseline):
        origin["labels"] = labels
    if (ran := folder or home.study_or_none(spec.name)) is not None:
        record = StudyRecord.load(ran.ledger_file)
        origin["unused_seed"] = Results(spec, record).first_unused_seed
        if folder is not None:
            origin |= {"study_id": record.id, "study_hash": spec.hash, "test_readings": record.n_test_readings}
    if changes:
        origin["changed"] = list(changes)
    base = spec.trial_document(spec.search.baseline)
    search = SearchOptions(trials=1, **spec.search.model_dump(include=OBJECTIVE_KEYS))
    origin["digest"] = configuration_digest(base)
    return replace(spec, name=f"{spec.name[:91]}-baseline", base=base, search=search, origin=origin)


def compare_with_baseline_training(folder: StudyFolder, results: Results) -> "list[ComparedStudy] | None":
    """Return the final trainings of a study's baseline and of its best configuration, in this order, compared.

    None where the home has no other one of the same data, epochs and objective that shares a seed.

    Args:
        results: of one of the two.
    """
    other = _counterpart_training(Home(folder.path.parent), results.spec)
    if other is None or not results.final_training_trials:
        return None
    from study.analysis.statistics.compare_studies import compare_studies  # pandas takes a while

    pair = [other, results] if other.spec.origin and other.spec.origin.get("baseline") else [results, other]
    with suppress(UserError):  # the files of the data were changed between the two
        return compare_studies(pair)
    return None


def _counterpart_training(home: Home, spec: StudySpec) -> Results | None:
    """Return the final training to compare with: of the baseline for the best configuration, and the other way round.

    It is the newest that shares a seed and has a complete trial.
    """
    origin = spec.origin or {}
    for folder, other in _trainings_of_same_study(home, spec):
        theirs = other.origin or {}
        is_other = bool(theirs.get("baseline")) != bool(origin.get("baseline"))
        is_as_changed = _overrides_that_change_trials(theirs) == _overrides_that_change_trials(origin)
        has_common_seed = set(other.final_seeds or ()) & set(spec.final_seeds or ())
        if is_other and is_as_changed and has_common_seed and not _is_same_configuration(spec, other):
            found = Results(other, StudyRecord.load(folder.ledger_file))
            if found.final_training_trials:
                return found
    return None


def _trainings_of_same_study(home: Home, spec: StudySpec) -> Iterator[tuple[StudyFolder, StudySpec]]:
    """Yield the final trainings from the same study that can be compared with this one, the newest first."""
    origin = spec.origin or {}
    if spec.final_seeds is None or "study" not in origin:
        return
    for folder in reversed(home.list_studies()):
        with suppress(UserError):  # of another version
            other = folder.load_spec()
            theirs = other.origin or {}
            ids = {one["study_id"] for one in (theirs, origin) if "study_id" in one}
            is_same = other.final_seeds is not None and theirs.get("study") == origin["study"] and len(ids) < 2
            if is_same and other.name != spec.name and _comparison_key(other) == _comparison_key(spec):
                yield folder, other


def counterpart_with_equal_configuration(home: Home, spec: StudySpec) -> StudySpec | None:
    """Return the counterpart that has trained this very configuration; None where there is none.

    Where the search found nothing better than the baseline, the best configuration and the baseline are the same.
    """
    is_baseline = bool((spec.origin or {}).get("baseline"))
    others = (other for _, other in _trainings_of_same_study(home, spec) if _is_same_configuration(spec, other))
    return next((other for other in others if bool((other.origin or {}).get("baseline")) != is_baseline), None)


def is_baseline_training(home: Home, spec: StudySpec) -> bool:
    """Return whether a final training is of its study's baseline, which may be the best that the study found."""
    with suppress(UserError):  # the study is not here, has no baseline, or is of another version
        return _is_same_configuration(spec, export_baseline_spec(home, str((spec.origin or {})["study"])))
    return False


def _is_same_configuration(one: StudySpec, other: StudySpec) -> bool:
    """Return whether two files are of one configuration, whatever the seed of their trial: exports differ in it."""
    bases = [{**spec.base, "train": {**spec.base["train"], "seed": 0}} for spec in (one, other)]
    return bases[0] == bases[1]


def _overrides_that_change_trials(origin: ExportOrigin) -> list[str]:
    """Return the overrides of an exported configuration that change what its trials compute, its splits aside."""
    placed = {*PLACEMENT_KEYS, WITH_VAL_OPTION}
    return [change for change in origin.get("changed", ()) if change.partition("=")[0] not in placed]


def _comparison_key(spec: StudySpec) -> tuple[object, ...]:
    return spec.base["data"], spec.epochs, spec.train.with_val, spec.objective


def final_training_spec(
    spec: StudySpec, seeds: Sequence[int], name: str | None = None, with_val: bool = False
) -> StudySpec:
    """Return the final training of a file's configuration: one full trial per seed, each read on the test split.

    It notifies nobody of its end.

    Args:
        with_val: train on the validation split as well, as data with folds always do: on all samples outside test. No
            epoch can be chosen then: it is the median of those that the confirm stage chose, where a trial does not
            depend on its number of epochs, else the last.

    Raises:
        UserError: a seed is negative, too large or given twice, or the name cannot be a study's.
    """
    seeds = check_seeds(seeds)
    with_val = with_val or spec.folds is not None
    origin: ExportOrigin = spec.origin or {}
    ending = "-baseline-final" if origin.get("baseline") else "-final"
    name = name or f"{origin.get('study', spec.name)[: 100 - len(ending)]}{ending}"
    check_study_name(name)
    goal = spec.search.model_dump(include=OBJECTIVE_KEYS) | ({"epoch": "last"} if with_val else {})
    search = SearchOptions(trials=1, **goal)
    if spec.folds is not None:  # as it is once its file is read: else the same training again would seem another one
        of_folds = {"folds": "one", "confirm": search.confirm.model_copy(update={"folds": "all"})}
        search = search.model_copy(update=of_folds)
    train = {**spec.base["train"], "with_val": with_val}
    if spec.folds is not None and spec.objective.epoch_window is not None and not depends_on_epoch_count(spec.base):
        asked = any(change.startswith("train.epochs=") for change in origin.get("changed", ()))
        train["epochs"] = train["epochs"] if asked else origin.get("epoch", train["epochs"])
    base = {**spec.base, "train": train}
    if with_val and origin:  # the configuration is no longer the exported one
        origin = origin.copy()
        if spec.folds is None:
            origin["changed"] = [*origin.get("changed", []), WITH_VAL_OPTION]
            origin.pop("digest", None)
        elif "digest" in origin:  # nobody asked for it
            origin["digest"] = configuration_digest(base)
    return replace(spec, name=name, base=base, search=search, final_seeds=tuple(seeds), origin=origin or None)


def create_or_extend_training(home: Home, spec: StudySpec, function: bytes | None = None) -> StudyFolder:
    """Return the folder of a final training: a new one, or this configuration's existing one with these seeds added.

    Args:
        function: the pickled training function that a new one's folder gets.

    Raises:
        UserError: the name is taken by another configuration; or the baseline is the best, and trained as such.
    """
    folder = home.study_or_none(spec.name)
    if folder is None and (other := counterpart_with_equal_configuration(home, spec)) is not None:
        use = f". To use it: {study_command('predict', other.name)} INPUTS" if other.has_models_that_predict else ""
        raise UserError(
            f"{spec.name}: would train what {other.name} has trained: the best of {(spec.origin or {})['study']} is "
            f"its baseline, so there is nothing to compare it with{use}"
        )
    if folder is None:
        return home.create_study(spec, function)
    existing = folder.load_checked_spec()
    before = seeds_of_training(existing, spec, str(home.path))
    seeds = [*before, *(seed for seed in spec.final_seeds or () if seed not in before)]
    Ledger(folder.ledger_file).close()  # refuses while another process trains it
    folder.write_spec(replace(spec, final_seeds=tuple(seeds)))
    return folder


def seeds_of_training(existing: StudySpec, spec: StudySpec, place: str) -> tuple[int, ...]:
    """Return the seeds that an existing training of the same configuration has.

    Args:
        place: where the existing one is, for the message.

    Raises:
        UserError: it is of another configuration.
    """
    if existing.final_seeds is None or replace(existing, final_seeds=spec.final_seeds).hash != spec.hash:
        raise UserError(f"{spec.name}: exists already in {place} with another configuration. Give a --name")
    return existing.final_seeds


@contextmanager
def find_model_files(home: Home, model: str, seed: int | None = None) -> Iterator[Path]:
    """Yield the file of a model's description, with the weights beside it.

    Args:
        model: such a file, the weights beside it, the name of a final training of this home (the model that its card is
            about, or that of `seed`), or one that MLflow registered: `models:/NAME@candidate`, `models:/NAME/2`.

    Raises:
        UserError: there is no such model.
    """
    if not model.startswith("models:/"):
        yield _find_description(home, model, seed)
        return
    from study.tracking.registry import download_registered_model

    if seed is not None:
        raise UserError(f"--seed {seed}: goes with a final training's name, {model} is one model")
    with tempfile.TemporaryDirectory(prefix="study-model-") as folder:
        yield download_registered_model(home, model, Path(folder))


def fetch_models_command(folder: StudyFolder, results: Results) -> str | None:
    """Return the command that brings the models of a final training that was fetched without them; None: none lacks."""
    source = read_fetch_origin(folder)
    if source is None or results.spec.final_seeds is None or results.spec.training_function:
        return None
    ended = [trial for trial in results.final_training_trials if trial.state == "complete"]
    are_here = all(folder.model_file(trial.number).exists() for trial in ended)
    return None if are_here else f"{source.fetch_command(folder.name)} --models"


def _find_description(home: Home, model: str, seed: int | None) -> Path:
    path = Path(model)
    if path.suffix in (".json", ".safetensors") or len(path.parts) > 1:
        if seed is not None:
            raise UserError(f"--seed {seed}: goes with a final training's name, {model} is one file")
        path = path.with_suffix(".json")
        if not path.is_file():
            near = did_you_mean_path(path, (".json",))
            raise UserError(f"{path}: no such file. {near}A model: its .json file, or a final training's name")
        return path
    folder = home.find_study(model)
    results = Results.load(folder)
    spec = results.spec
    if spec.final_seeds is None:
        raise UserError(
            f"{model}: is a search, models come from final trainings: {study_command('train', folder.name)}. The "
            "weights in its folder are of trials on fresh seeds, for the study itself to measure the test split with"
        )
    if spec.training_function:
        raise UserError(f"{model}: trains a function of one's own, whose models are where the function left them")
    numbers = {trial.seed: trial.number for trial in results.final_training_trials}
    if seed is not None and seed not in numbers:
        raise UserError(f"--seed {seed}: {model} has models of seeds {', '.join(map(str, numbers)) or 'none'}")
    if seed is None:
        found = find_model(folder, results)
        description = found.description if found else None
    else:
        description = folder.model_description_file(numbers[seed])
    if (description is None or not description.is_file()) and (how := fetch_models_command(folder, results)):
        raise UserError(f"{model}: its models are on the cluster that it was fetched from. To fetch them: {how}")
    if description is None:
        raise UserError(f"{model}: has no complete model yet: study resume {model}")
    return description
