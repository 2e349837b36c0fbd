"""Run one trial of a study in this process, without Ray: for debugging."""

import traceback
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import torch

from study import data
from study.commands import check_metrics
from study.commands.training_functions import build_function_trial
from study.data.cells import count_cells_of_split
from study.data.folds import select_fold
from study.errors import UserError
from study.home.folder import Home
from study.metrics import STANDARD_ERROR_NOTE
from study.metrics.group_names import OptionalClassNames, group_metric_in_words, group_size_text, group_sizes_by_metric
from study.metrics.metric_format import format_metric
from study.ranking.chosen_epoch import BestEpochTracker
from study.spec import StudySpec
from study.training.device import describe_device, resolve_device
from study.training.diverged import DivergedError
from study.training.function_loading import function_error_location, traceback_from_function
from study.training.function_trial import FunctionTrial
from study.training.gpu_errors import NoDeviceError
from study.training.trial import Trial

COLUMN_GAP = "  "


def epoch_line(spec: StudySpec, metrics: Mapping[str, float]) -> str:
    """Return an epoch as a line: the training loss, the metrics that the study needs, and the time it took."""
    names = ("train/loss", *spec.objective.needed_metrics, "time/epoch")
    shown = [f"{name} {format_metric(name, metrics[name])}" for name in names if name in metrics]
    return COLUMN_GAP.join([f"epoch {metrics['epoch']:.0f} of {spec.epochs}", *shown])


TABLE_SPLITS = ("val", "test")
STANDARD_ERROR_SUFFIX = "_standard_error"


def metrics_table(
    metrics: Mapping[str, float],
    classes: OptionalClassNames = None,
    biases: OptionalClassNames = None,
    is_table: bool = False,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Return the lines of a table of every metric of an epoch.

    Those of validation and test stand side by side, with their standard errors where they have any and the names of
    groups behind them, then come the others.

    Args:
        classes, biases: names in the order of their numbers.
        is_table: whether the samples are rows, not images.
        sizes: of each group, by its metric's reported name; empty: not known.
    """
    names = dict.fromkeys(name.partition("/")[2] for name in metrics if name.startswith(("val/", "test/")))
    rows = [
        [name, *(_metric_cell(metrics, f"{split}/{name}", sizes) for split in TABLE_SPLITS)]
        for name in names
        if STANDARD_ERROR_SUFFIX not in name
    ]
    shown = [split for place, split in enumerate(TABLE_SPLITS, 1) if any(row[place] for row in rows)]
    others = {
        "speed/rows_per_second" if is_table and name == "speed/images_per_second" else name: value
        for name, value in metrics.items()
        if "/" in name and not name.startswith(("val/", "test/"))
    }
    wide = max(map(len, [*(row[0] for row in rows), *others]), default=0)
    lines = [COLUMN_GAP.join([" " * wide, *(f"{split:<18}" for split in shown)])] if shown else []
    for name, *cells in rows:
        group = group_metric_in_words(name, classes, biases) or ""
        lines.append(COLUMN_GAP.join([f"{name:<{wide}}", *(f"{cell:<18}" for cell in cells), group]))
    lines += [f"{name:<{wide}}{COLUMN_GAP}{format_metric(name, value)}" for name, value in others.items()]
    lines += [STANDARD_ERROR_NOTE] if any(name.endswith(STANDARD_ERROR_SUFFIX) for name in metrics) else []
    return [text.rstrip() for text in lines]


def _metric_cell(metrics: Mapping[str, float], name: str, sizes: Mapping[str, int]) -> str:
    value, error = metrics.get(name), metrics.get(f"{name}{STANDARD_ERROR_SUFFIX}")
    return "" if value is None else format_metric(name, value, error) + group_size_text(sizes.get(name))


class SingleTrial:
    """A trial of the file's own configuration, ready to run.

    Args:
        device: auto, cpu or cuda; None: what the file asks for, as in a sweep.
        fold: on which it is validated; None: the first, where the data have folds.

    Attributes:
        device: what it runs on, see `study.training.device.describe_device`.
        group_sizes: the size of each group of a split, by the reported name of its accuracy.

    Raises:
        UserError: validation cannot have a metric that the study looks at; there is no such fold; or the GPU that it
            asks for cannot be used.
    """

    def __init__(self, spec: StudySpec, device: str | None = None, fold: int | None = None) -> None:
        chosen = _trial_device(spec) if device is None else resolve_device(device)
        self._spec, self.group_sizes = spec, dict[str, int]()
        self._trial: Trial | FunctionTrial
        if spec.training_function:
            self._trial = build_function_trial(Home.locate(), spec, chosen.type, fold)
        else:
            check_metrics.check_study_metrics(spec)
            config = spec.trial_config({})
            dataset = select_fold(data.load(config.data), 0 if fold is None and spec.folds else fold)
            for split, samples in dataset.splits.items():
                cells = count_cells_of_split(samples, dataset.facts.facts_of_split(split)).cells or ()
                self.group_sizes |= group_sizes_by_metric(split, cells)
            self._trial = Trial(config, dataset, chosen.type)
        self.device = describe_device(self._trial.device)

    def epochs(self) -> Iterator[dict[str, float]]:
        """Yield the metrics of each epoch, `epoch` first.

        Raises:
            UserError: the trial diverged, or its function raised something, whose traceback is printed.
        """
        spec = self._spec
        choice = BestEpochTracker(spec.objective) if spec.objective.epoch_window is not None else None
        try:
            for epoch, metrics in enumerate(self._trial.train_epochs(choice=choice), start=1):
                yield {"epoch": epoch, **metrics}
        except DivergedError as diverged:
            raise UserError(f"the trial diverged: {diverged}") from None
        except Exception as error:
            if spec.training_function is None or isinstance(error, UserError):
                raise
            traceback.print_exception(type(error), error, traceback_from_function(error))
            raise UserError(
                f"{function_error_location(error) or spec.training_function}: {type(error).__name__}: {error}"
            ) from None


def _trial_device(spec: StudySpec) -> torch.device:
    try:
        return resolve_device(spec.resources.device)
    except NoDeviceError as why:
        text = f"resources.gpu: {spec.resources.gpu:g} given, but this machine's GPU cannot be used: {why}"
        raise UserError(f"{text}. On the CPU: --set resources.gpu=0") from None
