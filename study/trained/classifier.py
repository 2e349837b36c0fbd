"""A trained model that classifies, loaded from its files alone, without its training data."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from study import files
from study.data import Split
from study.errors import UserError
from study.files import below
from study.methods import Method
from study.trained.description import Description
from study.training.device import Resident, take
from study.training.evaluation import Evaluation, networks


class Classifier:
    """Networks with their trained weights.

    Args:
        description: of the model.
        folder: where its weights are.
        device: where it computes: auto, cpu, cuda, cuda:1; by default a GPU if one works.

    Raises:
        UserError: the weights are missing, were changed, or do not fit the description; or that device cannot be used.
    """

    def __init__(self, description: Description, folder: Path, device: str | None = None) -> None:
        self.description, self.facts = description, description.facts
        self.device = take(device)
        state = weights(description, folder)
        try:
            config = description.trial_config
            if config.model.get("frozen"):  # training augmented rows of features; here whole images are given
                train = replace(config.train, augmentation="none", evaluation_size=None)
                config = replace(config, train=train)
            self._train = config.train
            modules = networks(config, self.facts, begins=False)
            modules.load_state_dict(dict(state))
        except (UserError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise UserError(f"{folder / description.weights}: does not fit this version of study: {reason}") from None
        self._networks = modules.to(self.device).eval()
        self._method = cast(Method, modules["method"])

    @classmethod
    def load(cls, path: Path, device: str | None = None) -> "Classifier":
        """Load the model of a description's file.

        Raises:
            UserError: as `Description.read` and the constructor.
        """
        return cls(Description.read(path), path.parent, device)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the scores."""
        return self.description.classes

    def probabilities(self, inputs: NDArray[np.generic]) -> NDArray[np.float32]:
        """Return the probability of each class: the softmax of the scores, not calibrated.

        Args:
            inputs: samples as the data set holds them: images uint8 (N, C, H, W), rows of a table float32 (N, F).

        Returns:
            float32 (N, classes).

        Raises:
            UserError: the inputs do not have the model's shape or type, or its method decides by more than its scores.
        """
        self._check(inputs)
        no_labels = np.zeros(len(inputs), dtype=np.int64)
        resident = {"given": Resident(Split(inputs, no_labels), self.facts.on("train"), self.device)}
        evaluation = Evaluation(self._networks, resident, self.facts, self._train)
        scores = evaluation.scores("encoder", evaluation.features("given"))
        return scores.softmax(1).float().cpu().numpy()

    def _check(self, inputs: NDArray[np.generic]) -> None:
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


def weights(description: Description, folder: Path) -> Mapping[str, torch.Tensor]:
    """Return a model's weights by name, on the CPU.

    Raises:
        UserError: they are missing, or were changed since they were written, and are not read then. The same holds for
            the weights of a frozen network whose features it takes.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    description.check_frozen()
    path = below(folder, description.weights)
    try:
        if files.digest_of_file(path) != description.weights_digest:
            raise UserError(
                f"{path}: is not the file that study train wrote: it was changed, cut short, or is another model's"
            )
        return cast(Mapping[str, torch.Tensor], load_file(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except SafetensorError as error:
        raise UserError(f"{path}: is not a safetensors file: {error}") from None
