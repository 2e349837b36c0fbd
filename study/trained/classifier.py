"""A trained model that classifies, loaded from its files alone, without its training data: one network, or several."""

import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from study import files, models
from study.data import Split
from study.errors import UserError
from study.files import safe_path_below
from study.methods import Method
from study.models import initial_weights
from study.trained.description import ModelDescription
from study.training import ensemble_probabilities, features
from study.training.device import DeviceSplit, resolve_device
from study.training.evaluation import SplitEvaluator, build_networks, modules_that_predict

TIMING_BATCH_SIZES, TIMING_PASSES, MIN_TIMING_PASS_S = (8, 64, 512, 4096), 3, 0.1
"""Samples whose time is measured, more until a pass takes so many seconds; and the number of passes."""


def cpu_name() -> str:
    """Return the name of this machine's CPU."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def _model_size_text(what: str, count: int, others: int, file: Path) -> str:
    """Say how large a network is.

    Args:
        count: of its parameters that predict.
        others: number of those that do not, as of a projection head, and of the probe beside a classifier.
    """
    counted = (
        f"{count:,} parameters{f' that predict, {others:,} for training alone' if others else ''}, " if count else ""
    )
    return f"{what}: {counted}{file.stat().st_size / 1e6:.3g} MB on disk"


def _count_parameters(*modules: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in torch.nn.ModuleList(modules).parameters())


class TrainedClassifier:
    """Networks with their trained weights; of an ensemble the probabilities are the mean of its networks'.

    Args:
        description: of the model.
        folder: where its weights are.
        device: where it computes: auto, cpu, cuda, cuda:1; by default a GPU if one works.

    Raises:
        UserError: the weights are missing, were changed, or do not fit the description; or that device cannot be used.
    """

    def __init__(self, description: ModelDescription, folder: Path, device: str | None = None) -> None:
        self.description, self.facts = description, description.facts
        self.device = resolve_device(device)
        states = [
            load_model_weights(safe_path_below(folder, name), digest)
            for name, digest in description.digest_by_weights_file.items()
        ]
        self._frozen, self._sizes = None, list[str]()
        with description.use_frozen_network(folder):
            try:
                config = description.trial_config
                self._train, self._seen = config.train, models.facts_of_network_inputs(config.model, self.facts)
                if description.frozen is not None:
                    self._frozen = features.build_frozen_backbone(config.model, self.facts, self.device)
                    file, _ = initial_weights.find_weights_file(config.model)
                    self._sizes.append(_model_size_text("Frozen network", _count_parameters(self._frozen), 0, file))
                self._members = [build_networks(config, self._seen, loads_weights=False) for _ in states]
                for modules, state in zip(self._members, states, strict=True):
                    modules.load_state_dict(dict(state))
                each = "Trained" if len(states) == 1 else f"Trained: {len(states)} networks, each"
                count = _count_parameters(*modules_that_predict(self._members[0]))
                others = _count_parameters(self._members[0]) - count
                self._sizes.append(_model_size_text(each, count, others, safe_path_below(folder, description.weights)))
            except (UserError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
                why = " ".join(str(error).split())[:200] or type(error).__name__
                message = f"{folder / description.weights}: does not fit this version of study: {why}"
                raise UserError(message) from None
        for modules in self._members:
            modules.to(self.device).eval()
        self._method = cast(Method, self._members[0]["method"])

    @classmethod
    def load_from_description(cls, path: Path, device: str | None = None) -> "TrainedClassifier":
        """Load the model of a description's file.

        Raises:
            UserError: as `ModelDescription.read_file` and the constructor.
        """
        return cls(ModelDescription.read_file(path), path.parent, device)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the scores."""
        return self.description.class_names_or_numbers

    def predict_probabilities(self, inputs: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return the probability of each class: the softmax of the scores, or its mean over networks; not calibrated.

        Args:
            inputs: samples as the data set holds them: images uint8 (N, C, H, W), rows of a table float32 (N, F).

        Returns:
            float32 (N, classes).

        Raises:
            UserError: the inputs do not have the model's shape or type, or its method decides by more than its scores.
        """
        self._check_inputs(inputs)
        return self._class_scores(inputs).softmax(1).float().cpu().numpy()

    def describe_size_and_time(self) -> str:
        """Say how large the model is, and how long a sample takes: the time is measured, on one thread of this CPU."""
        facts, generator, threads = self.facts, np.random.default_rng(0), torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            for samples in TIMING_BATCH_SIZES:
                noise: NDArray[Any] = generator.integers(0, 256, (samples, *facts.shape), np.uint8)
                inputs = noise.astype(np.float32) if facts.is_table else noise
                if (seconds := min(self._cpu_seconds(inputs) for _ in range(TIMING_PASSES))) > MIN_TIMING_PASS_S:
                    break
        finally:
            torch.set_num_threads(threads)
        sample = "row" if facts.is_table else f"picture of {facts.shape[1]} x {facts.shape[2]} pixels"
        return (
            f"{'. '.join(self._sizes)}. A {sample} takes {seconds / samples * 1000:.2g} ms of one thread of the CPU "
            f"({cpu_name()}): the fastest of {TIMING_PASSES} passes over {samples} of noise, where the training ended; "
            f"reading {'cells' if facts.is_table else 'and decoding files'} comes on top."
        )

    def _cpu_seconds(self, inputs: NDArray[Any]) -> float:
        """Return the processor's time for these samples in this thread, whatever else the machine does."""
        began = time.thread_time()
        self._class_scores(inputs)
        return time.thread_time() - began

    def _class_scores(self, inputs: NDArray[Any]) -> torch.Tensor:
        """Return the scores of samples (N, classes); of several networks the log of their mean probability."""
        no_labels = np.zeros(len(inputs), dtype=np.int64)
        if self._frozen is not None:
            all_of_them = range(len(inputs))
            rows = features.compute_feature_batches(self._frozen, inputs, all_of_them, self.facts, self.device)
            inputs = np.concatenate([batch for _, batch in rows])
        resident = {"given": DeviceSplit(Split(inputs, no_labels), self._seen.facts_of_split("train"), self.device)}
        evaluators = [SplitEvaluator(modules, resident, self._seen, self._train) for modules in self._members]
        if len(evaluators) == 1:
            return evaluators[0].class_scores("encoder", evaluators[0].compute_features("given"))
        return ensemble_probabilities.mean_log_probabilities([each.log_probabilities("given") for each in evaluators])

    def _check_inputs(self, inputs: NDArray[np.generic]) -> None:
        if self._method.equalizes_odds:
            raise UserError(
                "this method's decisions need each sample's bias class and thresholds from the training data, and a "
                "model's files have neither. Use study evaluate on data with bias labels"
            )
        expected = np.dtype(np.float32 if self.facts.is_table else np.uint8)
        if inputs.shape[1:] != self.facts.shape or inputs.dtype != expected or not len(inputs):
            raise UserError(
                f"{inputs.dtype} {inputs.shape} given, the model takes {expected} (samples, "
                f"{', '.join(map(str, self.facts.shape))})"
            )


def load_model_weights(path: Path, digest: str) -> Mapping[str, torch.Tensor]:
    """Return the weights of a network by name, on the CPU.

    Args:
        digest: SHA-256 of the file.

    Raises:
        UserError: it is missing, or was changed since it was written, and is not read then.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if files.sha256_of_file(path) != digest:
            raise UserError(
                f"{path}: is not the file that study train wrote: it was changed, cut short, or is another model's"
            )
        return cast(Mapping[str, torch.Tensor], load_file(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except SafetensorError as error:
        raise UserError(f"{path}: is not a safetensors file: {error}") from None
