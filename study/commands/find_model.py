"""Finding the model that a user names."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.text import typed
from study.trained.model_files import best_model


@contextmanager
def find_model(home: Home, model: str, seed: int | None = None) -> Iterator[Path]:
    """The file of a model's description, with the weights beside it.

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
    spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    if spec.final_seeds is None:
        raise UserError(f"{model}: is a search, models come from final trainings: {typed('train', folder.best_file)}")
    if spec.function:
        raise UserError(f"{model}: trains a function of one's own, whose models are where the function left them")
    if seed is None:
        if (best := best_model(folder, spec, record)) is None:
            raise UserError(f"{model}: has no complete model yet: study resume {model}")
        return best.description
    numbers = {trial.seed: trial.number for trial in record.by_stage("final") if trial.state == "complete"}
    if seed not in numbers:
        raise UserError(f"--seed {seed}: {model} has models of seeds {', '.join(map(str, numbers)) or 'none'}")
    return folder.description_file(numbers[seed])
