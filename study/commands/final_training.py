"""Final training of a configuration on several seeds, and how a user names one of its models."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from study.catalogue import FITTED
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.spec.configuration import FORMAT, configuration_digest
from study.spec.load import check_name
from study.spec.schema import AIM, Origin, Search
from study.spec.study_spec import PLACEMENT
from study.text import typed
from study.trained.model_files import best_model
from study.training.config import bound

if TYPE_CHECKING:
    import pandas as pd


def parse_seeds(text: str) -> list[int]:
    """Read seeds as given on the command line, `0,1,2`.

    Raises:
        UserError: see `check_seeds`.
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise UserError(SEEDS_NEEDED.format(text))
    return check_seeds([int(part) for part in parts])


def check_seeds(seeds: Sequence[int]) -> list[int]:
    """Return the seeds, if trials can have them.

    Raises:
        UserError: these are not distinct whole numbers >= 0.
    """
    if not seeds or min(seeds) < 0 or max(seeds) >= 2**32 or len(set(seeds)) < len(seeds):
        raise UserError(SEEDS_NEEDED.format(",".join(map(str, seeds))))
    return list(seeds)


SEEDS_NEEDED = "--seeds {}: different whole numbers from 0 on, below 2**32, are needed, as in 0,1,2"

SEEDS = 3
"""Number of seeds where none are named."""

WITH_VAL = "--data train+val"
"""What `origin` says of a final training on the validation split, too, that was asked for."""


def default_seeds(home: Home, spec: StudySpec, name: str | None = None, with_val: bool = False) -> list[int]:
    """Return the seeds of a final training where none are named.

    Those of the same training, which goes on; else those of another final training of the study, so that the two
    compare; else three. The study itself has used none of the last two kinds. A model that is fitted at once knows no
    seed, or hardly: one of these is enough.
    """
    final, is_fitted = final_study(spec, range(SEEDS), name, with_val), _is_fitted(spec)
    if (folder := _study_called(home, final.name)) is not None:
        with suppress(UserError):  # another configuration, which is refused later
            return list(trained_seeds(folder.spec(), final, folder.name))
    first = _unused_seed(home, spec.origin or {})
    for _, other in _of_same_study(home, final):
        if other.final_seeds and min(other.final_seeds) >= first and is_fitted >= _is_fitted(other):
            return list(other.final_seeds[:1] if is_fitted else other.final_seeds)
    return list(range(first, first + (1 if is_fitted else SEEDS)))


def _is_fitted(spec: StudySpec) -> bool:
    return spec.base["method"]["name"] == FITTED


def _unused_seed(home: Home, origin: Origin) -> int:
    """Return the first seed that a study did not use.

    It is read from the exported file, and from the study itself if the home has it; 0 where neither tells.
    """
    unused = [origin.get("unused_seed", 0)]
    if (folder := _study_called(home, str(origin.get("study")))) is not None:
        with suppress(UserError):  # damaged, or of another version
            record = StudyRecord.load(folder.ledger_file)
            if origin.get("study_id") in (None, record.id):
                unused.append(Results(folder.spec(), record).unused_seed)
    return max(unused)


def baseline_of(home: Home, name: str, changes: Sequence[str] = ()) -> StudySpec:
    """Return the baseline of a study, or else of a study file, as a file of one trial, like an exported one.

    Args:
        name: of a study in this home, or of a file as in `study.spec.load_study`.
        changes: `--set` overrides.

    Raises:
        UserError: there is none, or the study has no baseline.
    """
    folder = _study_called(home, name)
    file = name if folder is None else str(folder.spec_file)
    spec = load_study(file, changes, name=folder.name if folder else None, one_trial=True)
    if spec.search.baseline is None:
        found_by = (spec.origin or {}).get("study")
        hint = f", as {typed('train', found_by, '--baseline')}" if found_by else ""
        raise UserError(
            f"{name}: has no search.baseline. --baseline takes the name or file of a study that has one{hint}"
        )
    origin: Origin = {"format": FORMAT, "study": spec.name, "baseline": True}
    if (ran := folder or _study_called(home, spec.name)) is not None:
        record = StudyRecord.load(ran.ledger_file)
        origin["unused_seed"] = Results(spec, record).unused_seed
        if folder is not None:
            origin |= {"study_id": record.id, "study_hash": spec.hash, "test_readings": record.test_readings}
    if changes:
        origin["changed"] = list(changes)
    base = spec.trial_document(spec.search.baseline)
    search = Search(trials=1, **spec.search.model_dump(include=AIM))
    origin["digest"] = configuration_digest(base)
    return replace(spec, name=f"{spec.name[:91]}-baseline", base=base, search=search, origin=origin)


def _study_called(home: Home, name: str) -> StudyFolder | None:
    return next((folder for folder in home.studies() if folder.name == name), None)


def beside_baseline(folder: StudyFolder, results: Results) -> "pd.DataFrame | None":
    """Return the final trainings of a study's best configuration and of its baseline side by side.

    None where the home has no other one of the same data, epochs and objective that shares a seed.

    Args:
        results: of one of the two.
    """
    other = _counterpart(Home(folder.path.parent), results.spec)
    if other is None or not results.final_trials:
        return None
    from study.analysis.statistics.compare_studies import compare, printed_comparison  # pandas takes a while

    pair = [other, results] if other.spec.origin and other.spec.origin.get("baseline") else [results, other]
    with suppress(UserError):  # the files of the data were changed between the two
        return printed_comparison(compare(pair))
    return None


def _counterpart(home: Home, spec: StudySpec) -> Results | None:
    """Return the final training to compare with: of the baseline for the best configuration, and the other way round.

    It is the newest that shares a seed and has a complete trial.
    """
    origin = spec.origin or {}
    for folder, other in _of_same_study(home, spec):
        theirs = other.origin or {}
        is_other = bool(theirs.get("baseline")) != bool(origin.get("baseline"))
        is_as_found = _changed_trials(theirs) == _changed_trials(origin) and not _is_same(spec, other)
        if is_other and is_as_found and set(other.final_seeds or ()) & set(spec.final_seeds or ()):
            found = Results(other, StudyRecord.load(folder.ledger_file))
            if found.final_trials:
                return found
    return None


def _of_same_study(home: Home, spec: StudySpec) -> Iterator[tuple[StudyFolder, StudySpec]]:
    """Yield the final trainings from the same study that can be compared with this one, the newest first."""
    origin = spec.origin or {}
    if spec.final_seeds is None or "study" not in origin:
        return
    for folder in reversed(home.studies()):
        with suppress(UserError):  # of another version
            other = folder.spec()
            theirs = other.origin or {}
            ids = {one["study_id"] for one in (theirs, origin) if "study_id" in one}
            is_same = other.final_seeds is not None and theirs.get("study") == origin["study"] and len(ids) < 2
            if is_same and other.name != spec.name and _measured_by(other) == _measured_by(spec):
                yield folder, other


def trained_as_the_other(home: Home, spec: StudySpec) -> StudySpec | None:
    """Return the counterpart that has trained this very configuration; None where there is none.

    Where the search found nothing better than the baseline, the best configuration and the baseline are the same.
    """
    is_baseline = bool((spec.origin or {}).get("baseline"))
    others = (other for _, other in _of_same_study(home, spec) if _is_same(spec, other))
    return next((other for other in others if bool((other.origin or {}).get("baseline")) != is_baseline), None)


def is_of_baseline(home: Home, spec: StudySpec) -> bool:
    """Return whether a final training is of its study's baseline, which may be the best that the study found."""
    with suppress(UserError):  # the study is not here, has no baseline, or is of another version
        return _is_same(spec, baseline_of(home, str((spec.origin or {})["study"])))
    return False


def _is_same(one: StudySpec, other: StudySpec) -> bool:
    """Return whether two files are of one configuration, whatever the seed of their trial: exports differ in it."""
    bases = [{**spec.base, "train": {**spec.base["train"], "seed": 0}} for spec in (one, other)]
    return bases[0] == bases[1]


def _changed_trials(origin: Origin) -> list[str]:
    """Return the overrides of an exported configuration that change what its trials compute, its splits aside."""
    placed = {*PLACEMENT, WITH_VAL}
    return [change for change in origin.get("changed", ()) if change.partition("=")[0] not in placed]


def _measured_by(spec: StudySpec) -> tuple[object, ...]:
    return spec.base["data"], spec.epochs, spec.train.with_val, spec.objective


def final_study(spec: StudySpec, seeds: Sequence[int], name: str | None = None, with_val: bool = False) -> StudySpec:
    """Return the final training of a file's configuration: one full trial per seed, each read on the test split.

    It notifies nobody of its end.

    Args:
        with_val: train on the validation split as well, as data with folds always do: on all samples outside test. No
            epoch can be chosen then: it is the median of those that the confirm stage chose, where nothing ties a trial
            to its number of epochs, else the last.

    Raises:
        UserError: a seed is negative, too large or given twice, the name cannot be a study's, or what is fitted to the
            validation split would have none.
    """
    check_seeds(seeds)
    with_val = with_val or spec.folds is not None
    if with_val and spec.train.thresholds == "fitted":
        why = "with data.folds a final training" if spec.folds else "--data train+val"
        other = "" if spec.folds else "--data train, or "
        raise UserError(
            f"{why} leaves no validation split, to which train.thresholds is fitted. Allowed: {other}"
            "--set train.thresholds=none"
        )
    origin: Origin = spec.origin or {}
    ending = "-baseline-final" if origin.get("baseline") else "-final"
    name = name or f"{origin.get('study', spec.name)[: 100 - len(ending)]}{ending}"
    check_name(name)
    search = Search(trials=1, **spec.search.model_dump(include=AIM) | ({"epoch": "last"} if with_val else {}))
    train = {**spec.base["train"], "with_val": with_val}
    if spec.folds is not None and spec.objective.window is not None and bound(spec.base) is None:
        asked = any(change.startswith("train.epochs=") for change in origin.get("changed", ()))
        train["epochs"] = train["epochs"] if asked else origin.get("epoch", train["epochs"])
    base = {**spec.base, "train": train}
    if with_val and origin:  # the configuration is no longer the exported one
        origin = origin.copy()
        if spec.folds is None:
            origin["changed"] = [*origin.get("changed", []), WITH_VAL]
            origin.pop("digest", None)
        elif "digest" in origin:  # nobody asked for it
            origin["digest"] = configuration_digest(base)
    return replace(spec, name=name, base=base, search=search, final_seeds=tuple(seeds), origin=origin or None)


def extend(home: Home, spec: StudySpec, function: bytes | None = None) -> StudyFolder:
    """Return the folder of a final training: a new one, or this configuration's existing one with these seeds added.

    Args:
        function: the pickled training function that a new one's folder gets.

    Raises:
        UserError: the name is taken by another configuration; or the baseline is the best, and trained as such.
    """
    folder = _study_called(home, spec.name)
    if folder is None and (other := trained_as_the_other(home, spec)) is not None:
        raise UserError(
            f"{spec.name}: would train what {other.name} has trained: the best of {(spec.origin or {})['study']} is "
            f"its baseline, so there is nothing to compare it with. To use it: {typed('predict', other.name)} INPUTS"
        )
    if folder is None:
        return home.create(spec, function)
    existing = folder.checked_spec()
    before = trained_seeds(existing, spec, str(home.path))
    seeds = [*before, *(seed for seed in spec.final_seeds or () if seed not in before)]
    Ledger(folder.ledger_file).close()  # refuses while another process trains it
    folder.write_spec(replace(spec, final_seeds=tuple(seeds)))
    return folder


def trained_seeds(existing: StudySpec, spec: StudySpec, place: str) -> tuple[int, ...]:
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
def find_model(home: Home, model: str, seed: int | None = None) -> Iterator[Path]:
    """Yield the file of a model's description, with the weights beside it.

    Args:
        model: such a file, the weights beside it, the name of a final training of this home (the model that its card is
            about, or that of `seed`), or one that MLflow registered: `models:/NAME@candidate`, `models:/NAME/2`.

    Raises:
        UserError: there is no such model.
    """
    if not model.startswith("models:/"):
        yield _find(home, model, seed)
        return
    from study.tracking.registry import download

    if seed is not None:
        raise UserError(f"--seed {seed}: goes with a final training's name, {model} is one model")
    with tempfile.TemporaryDirectory(prefix="study-model-") as folder:
        yield download(home, model, Path(folder))


def _find(home: Home, model: str, seed: int | None) -> Path:
    path = Path(model)
    if path.suffix in (".json", ".safetensors") or len(path.parts) > 1:
        if seed is not None:
            raise UserError(f"--seed {seed}: goes with a final training's name, {model} is one file")
        path = path.with_suffix(".json")
        if not path.is_file():
            raise UserError(f"{path}: no such file. A model: its .json file, or a final training's name")
        return path
    folder = home.find(model)
    results = Results.load(folder)
    spec = results.spec
    if spec.final_seeds is None:
        raise UserError(f"{model}: is a search, models come from final trainings: {typed('train', folder.best_file)}")
    if spec.function:
        raise UserError(f"{model}: trains a function of one's own, whose models are where the function left them")
    if seed is None:
        if (best := best_model(folder, results)) is None:
            raise UserError(f"{model}: has no complete model yet: study resume {model}")
        return best.description
    numbers = {trial.seed: trial.number for trial in results.final_trials}
    if seed not in numbers:
        raise UserError(f"--seed {seed}: {model} has models of seeds {', '.join(map(str, numbers)) or 'none'}")
    return folder.description_file(numbers[seed])
