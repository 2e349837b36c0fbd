"""One trial that runs a training function of the user's own, in place of `study.training.trial.Trial`."""

import hashlib
import json
import math
import random
import re
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch

from study.errors import did_you_mean
from study.files import replace_atomically, write_atomically
from study.knobs import Section
from study.methods.own_function import RESERVED_KEYS
from study.metrics import is_percent_metric
from study.training.checkpoint import ASSUMED_FIRST_WRITE_S, ChoiceState, EpochChooser, UnusableCheckpointError
from study.training.config import TrialConfig
from study.training.device import EpochProfiler, best_available_device
from study.training.diverged import DivergedError
from study.training.function_loading import (
    ALLOWED_ARGUMENTS,
    PICKLE_PREFIX,
    FirstYieldError,
    FunctionTrialError,
    TrainingFunction,
    check_takes_fold,
    load_function,
    takes_optional_argument,
    unload_function,
)
from study.upstream.scratch import TRIAL_FOLDER_PREFIX, make_scratch_folder

CHECKPOINT_HEAD_FILE = ".study-head.json"
"""File in the archive that describes the folder; a function's own file of this name is not kept."""


class SavedValues(TypedDict):
    """What is kept beside a folder: the values of the test split, and the state of the choice of an epoch."""

    test: dict[str, float]
    choice: ChoiceState | None


class FolderCheckpoint:
    """The folder of a training function as it was after a reported epoch, in one file, to resume from.

    Args:
        path: of the file.
        scratch: the folder.
        made_from: plain values that say which trial it is.
        pause: see `study.training.checkpoint.TrialCheckpointFile`.
    """

    def __init__(self, path: Path, scratch: Path, made_from: Section, pause: float = 0.0) -> None:
        self._path, self._scratch, self._made_from, self._pause = path, scratch, made_from, pause
        self._due = time.perf_counter() + pause * ASSUMED_FIRST_WRITE_S

    def saved_state(self) -> tuple[int, SavedValues | None]:
        """Return the epoch after which the file was written, and what was kept beside the folder.

        It is 0 and None without a file. Raises UnusableCheckpointError.
        """
        if not self._path.exists():
            return 0, None
        try:
            with zipfile.ZipFile(self._path) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f"checksum of {damaged}")
                read = dict(json.loads(archive.read(CHECKPOINT_HEAD_FILE)))
            made_from, epoch, beside = read["made_from"], int(read["epoch"]), read.get("beside")
        except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile) as error:
            raise UnusableCheckpointError(
                f"{self._path}: is damaged ({' '.join(str(error).split())[:100]}); remove it"
            ) from None
        if made_from != self._made_from_digest:
            raise UnusableCheckpointError(
                f"{self._path}: is the state of a trial of another configuration or function; remove it"
            )
        return epoch, beside

    def restore_folder(self) -> tuple[int, SavedValues | None]:
        """Fill the folder; return `saved_state`."""
        epoch, beside = self.saved_state()
        if epoch:
            with zipfile.ZipFile(self._path) as archive:
                archive.extractall(self._scratch, [name for name in archive.namelist() if name != CHECKPOINT_HEAD_FILE])
        return epoch, beside

    def save_folder_if_due(self, epoch: int, beside: SavedValues) -> None:
        """Write the folder and plain values beside it, if it is time, in one step."""
        began = time.perf_counter()
        if began < self._due:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(self._path) as part, zipfile.ZipFile(part, "w", strict_timestamps=False) as archive:
            head = {"epoch": epoch, "made_from": self._made_from_digest, "beside": beside}
            archive.writestr(CHECKPOINT_HEAD_FILE, json.dumps(head))
            for file in sorted(self._scratch.rglob("*")):
                name = file.relative_to(self._scratch)
                if file.exists() and name != Path(CHECKPOINT_HEAD_FILE):  # a link may lead nowhere
                    archive.write(file, name)
        ended = time.perf_counter()
        self._due = ended + self._pause * (ended - began)

    @property
    def _made_from_digest(self) -> str:
        return hashlib.sha256(json.dumps(self._made_from, sort_keys=True).encode()).hexdigest()


METRIC_NAME_PATTERN = re.compile(r"(train|val|test)/\w+")


def seed_all_generators(seed: int) -> None:
    """Seed Python's, NumPy's and PyTorch's random numbers."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_function_with_seed(function: str, where: str) -> TrainingFunction:
    """Load a function by `function_loading.load_function`, with seeds set, since a module may draw when imported."""
    seed_all_generators(0)
    return load_function(function, where)


class FunctionTrial:
    """The trial of a function of the user's own, as `TrainingLoop` is that of a method.

    Python's, NumPy's and PyTorch's random numbers are seeded with the trial's seed before the function is called.
    Values that the function yields as `test/NAME` are not reported: they are kept with the trial, and read where the
    test split would be.

    Args:
        config: what to train: `method`'s keys are the function's configuration.
        where: as `function_import_folder` returns it.
        needed: names of metrics that each epoch must have.
        device: whose memory is reported; by default a GPU if one works. The function chooses its own: on a node it sees
            the GPUs that the trial takes, and none otherwise.
        function: if it is loaded already, see `load_function_with_seed`.
        fold: on which of `data.folds` it is validated; None: there are none.

    Raises:
        UserError: the function cannot be loaded, or is not told which fold validates.
    """

    def __init__(
        self,
        config: TrialConfig,
        where: str,
        needed: Sequence[str] = (),
        device: str | None = None,
        function: TrainingFunction | None = None,
        fold: int | None = None,
    ) -> None:
        self.config, self._needed, self._where = config, needed, where
        self.device = torch.device(device) if device else best_available_device()
        named = str(config.method["function"])
        self._function = function or load_function_with_seed(named, where)
        self._name = self._function.__name__ if named.startswith(PICKLE_PREFIX) else named
        self._fold, folds = fold, config.data.get("folds")
        self._folds = folds if isinstance(folds, int) else None
        self._takes = [name for name in ALLOWED_ARGUMENTS if takes_optional_argument(self._function, name)]
        check_takes_fold(self._name, self._takes, self._folds)
        self._test: dict[str, float] = {}

    def train_epochs(
        self, resume: Path | None = None, pause: float = 0.0, choice: EpochChooser | None = None
    ) -> Iterator[dict[str, float]]:
        """Call the function, and yield the metrics of each epoch; see `TrainingLoop.train_epochs`.

        The function is asked for `train.epochs` epochs, and for none after them. If it takes
        `checkpoint`, it is given a folder, which holds what it held after the epoch that the trial resumes from, and
        is empty at the start.

        Args:
            resume: a file that keeps that folder between two epochs.

        Raises:
            DivergedError: a metric that is needed, or the loss, is not finite.
            FunctionTrialError: the function yields too few epochs or no metrics, or wants to end the process.
            Exception: what the function raises.
        """
        epochs, seed = self.config.train.epochs, self.config.train.seed
        torch.set_num_threads(self.config.train.threads)
        seed_all_generators(seed)
        with make_scratch_folder(TRIAL_FOLDER_PREFIX) as mine:
            (scratch := mine / "checkpoint").mkdir()
            identity = self._checkpoint_identity()
            kept = FolderCheckpoint(resume, scratch, identity, pause) if resume and self._can_resume else None
            done, before = kept.restore_folder() if kept else (0, None)
            if before:
                self._test = before["test"]
                if choice and before["choice"]:
                    choice.load_state_dict(before["choice"])
            own = {key: value for key, value in self.config.method.items() if key not in RESERVED_KEYS}
            given = {"config": own, "seed": seed, "epochs": epochs, "checkpoint": scratch}
            given |= {"fold": self._fold, "folds": self._folds}
            clock = EpochProfiler(self.device)
            running = self._function(**{name: given[name] for name in self._takes})
            with closing(running):  # type: ignore[type-var]  # its own clean-up finds the folder, whatever ends the trial
                for epoch in range(done + 1, epochs + 1):
                    metrics = self._check_yield(self._next_yield(running, epoch), epoch)
                    test = {name: value for name, value in metrics.items() if name.startswith("test/")}
                    # the epoch that the trial is taken at so far
                    if choice.update(metrics) if choice else epoch == epochs:
                        self._test = test
                    cost = clock.end_epoch(images=0)
                    shown = {name: value for name, value in metrics.items() if name not in test}
                    shown |= {name: cost[name] for name in ("time/epoch", "memory/peak_mib")}
                    beside: SavedValues = {"test": self._test, "choice": choice.state_dict() if choice else None}
                    if epoch == epochs:
                        with self._turn_exit_into_failure(epoch):  # a trial that is told as complete has cleaned up
                            running.close()  # type: ignore[attr-defined]
                    yield shown
                    if kept and epoch < epochs:
                        kept.save_folder_if_due(epoch, beside)

    # `function_loading.traceback_from_function` knows this method by its name
    def _next_yield(self, running: Iterator[Any], epoch: int) -> Any:
        """Return what the function yields for an epoch; see `train_epochs`."""
        with self._turn_exit_into_failure(epoch):
            yielded = next(running, _NO_YIELD)
        if yielded is _NO_YIELD:
            epochs = self.config.train.epochs
            raise FunctionTrialError(
                f"{self._name}: ended after {epoch - 1} of {epochs} epochs (train.epochs): it yields once for each"
            )
        return yielded

    def unload_function(self) -> None:
        """Remove the function, its modules and what they hold from this process; the trial is unusable afterwards."""
        del self._function
        unload_function(str(self.config.method["function"]), self._where)

    def saved_epoch(self, path: Path) -> int:
        """Return the epoch in a file, see `TrainingLoop.saved_epoch`.

        Raises:
            UnusableCheckpointError: it is damaged, or another trial's.
        """
        return FolderCheckpoint(path, Path(), self._checkpoint_identity()).saved_state()[0] if self._can_resume else 0

    def save_model(self, path: Path) -> None:
        """Write the values of the test split, as safetensors of one number each, in one step."""
        from safetensors.numpy import save

        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, save({name: np.array(value) for name, value in self._test.items()}))

    def load_model(self, path: Path) -> None:
        """Load the values that `save_model` wrote.

        Raises:
            UnusableCheckpointError: the file is missing or damaged.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            self._test = {name: float(value) for name, value in load_file(path).items()}
        except (SafetensorError, OSError) as error:
            raise UnusableCheckpointError(
                f"{path}: is damaged or cut short ({' '.join(str(error).split())[:200]})"
            ) from None

    def evaluate(self, split: str, final: bool = False) -> dict[str, float]:
        """Return the test values, `test/NAME`, that the function yielded in the epoch at which the trial is taken.

        Raises:
            FunctionTrialError: it yielded none.
        """
        if not self._test:
            raise FunctionTrialError(f"{self._name}: yielded no test/NAME in the epoch that the trial is taken at")
        return {name: value for name, value in self._test.items() if name.startswith(f"{split}/")}

    @property
    def _can_resume(self) -> bool:
        return "checkpoint" in self._takes

    def _checkpoint_identity(self) -> Section:
        document: Section = json.loads(json.dumps(self.config.to_document()))
        return document

    @contextmanager
    def _turn_exit_into_failure(self, epoch: int) -> Iterator[None]:
        """Turn what would end the process, as `sys.exit()` does, into a failed trial.

        In the main thread, where a user's Ctrl-C comes, a KeyboardInterrupt is left alone.
        """
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise
            raise FunctionTrialError(f"{self._name}: raised {error!r} in epoch {epoch}") from error

    def _check_yield(self, yielded: Any, epoch: int) -> dict[str, float]:
        """Check what was yielded for an epoch and return it as numbers; see `train_epochs`."""
        form_error = FirstYieldError if epoch == 1 else FunctionTrialError
        if not isinstance(yielded, Mapping):
            raise form_error(
                f"{self._name}: yielded {type(yielded).__name__} in epoch {epoch}, allowed is a mapping of metrics"
            )
        metrics = {}
        for name, value in yielded.items():
            if not METRIC_NAME_PATTERN.fullmatch(str(name)):
                raise form_error(
                    f"{self._name}: yielded {name!r}, allowed are train/NAME, val/NAME and test/NAME, NAME of letters, "
                    "digits and underscores"
                )
            metrics[str(name)] = self._metric_as_number(name, value, epoch)
        if missing := [name for name in self._needed if name not in metrics]:
            there, meant = ", ".join(metrics) or "nothing", did_you_mean(missing[0], metrics)
            raise form_error(
                f"{self._name}: did not yield {', '.join(missing)} in epoch {epoch}. {meant}It yielded: {there}"
            )
        for name in (*self._needed, "train/loss"):
            if name in metrics and not math.isfinite(metrics[name]):
                raise DivergedError(f"{name} is {metrics[name]} in epoch {epoch}")
        for name, value in metrics.items():
            is_fraction = math.isnan(value) or -_METRIC_RANGE_TOLERANCE <= value <= 1 + _METRIC_RANGE_TOLERANCE
            if is_percent_metric(name) and not is_fraction:
                raise FunctionTrialError(
                    f"{self._name}: yielded {value:g} for {name!r} in epoch {epoch}, allowed is a fraction from 0 to "
                    "1, which tables print in percent"
                )
        return metrics

    def _metric_as_number(self, name: str, value: Any, epoch: int) -> float:
        try:
            if not isinstance(value, str | bytes | bytearray):
                return float(value)
            why = "allowed is a number"
        except OverflowError:
            why = "too large: allowed is a number below 1.8e308"
        except Exception:  # whatever the object does when it is to be a number
            why = "allowed is a number"
        raise FunctionTrialError(f"{self._name}: yielded {type(value).__name__} for {name!r} in epoch {epoch}, {why}")


_METRIC_RANGE_TOLERANCE = 1e-6
_NO_YIELD = object()
