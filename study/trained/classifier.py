"""A trained model, ready to classify: from its files, without the data that it was trained on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from study.data import Split
from study.errors import UserError
from study.files import digest
from study.methods import Method
from study.trained.description import Description
from study.training.evaluation import Evaluation
from study.training.networks import networks
from study.training.resident import Resident


class Classifier:
    """Networks with their trained weights.

    Args:
        description: of the model.
        folder: where its weights are.
        device: where it computes; the GPU if there is one.

    Raises:
        UserError: the weights are not there, were changed, or do not fit the description.
    """

    def __init__(self, description: Description, folder: Path, device: str | None = None) -> None:
        self.description, self.facts = description, description.facts
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        state = weights(description, folder)
        try:
            modules = networks(description.trial_config, self.facts)
            modules.load_state_dict(dict(state))
        except (UserError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            told = (str(error) or type(error).__name__).splitlines()[0]
            raise UserError(f"{folder / description.weights}: does not fit this version of study: {told}") from None
        self._method = cast(Method, modules["method"].to(self.device).eval())
        self._probes = cast(nn.ModuleDict, modules["probes"].to(self.device))

    @classmethod
    def load(cls, path: Path, device: str | None = None) -> "Classifier":
        """The model of a description's file.

        Raises:
            UserError: it cannot be read, see `Description.read`, or see above.
        """
        return cls(Description.read(path), path.parent, device)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes' names, in the order of the scores."""
        return self.description.classes

    def probabilities(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        """The probability of each class, as the softmax of the scores has it, which nothing calibrates.

        Args:
            inputs: samples as the data set holds them: images uint8 (N, C, H, W), rows of a table float32 (N, F).

        Returns:
            float32 (N, classes).

        Raises:
            UserError: they are not of the shape that the model takes, or it decides by more than its scores.
        """
        self._check(inputs)
        nothing = np.zeros(len(inputs), dtype=np.int64)
        given = {"given": Resident(Split(inputs, nothing), self.facts.on("train"), self.device)}
        evaluation = Evaluation(self._method, self._probes, given, self.facts, self.description.trial_config.train)
        scores = evaluation.scores("encoder", evaluation.features("given"))
        return scores.softmax(1).float().cpu().numpy()

    def _check(self, inputs: NDArray[Any]) -> None:
        if self._method.equalizes_odds:
            raise UserError(
                "the method decides by each sample's bias class and thresholds from the training data, which a model "
                "alone does not have. On data with both: study evaluate"
            )
        wanted = np.dtype(np.float32 if self.facts.is_table else np.uint8)
        if inputs.shape[1:] != self.facts.shape or inputs.dtype != wanted or not len(inputs):
            raise UserError(
                f"{inputs.dtype} {inputs.shape} given, the model takes {wanted} (samples, "
                f"{', '.join(map(str, self.facts.shape))})"
            )


def weights(description: Description, folder: Path) -> Mapping[str, torch.Tensor]:
    """A model's weights by name, on the CPU.

    Raises:
        UserError: they are not there, or not those that were written; then nothing of them is read.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / Path(description.weights).name
    try:
        if digest.of_file(path) != description.weights_digest:
            raise UserError(f"{path}: is not the file that study train wrote: changed, cut short or another model's")
        return cast(Mapping[str, torch.Tensor], load_file(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except SafetensorError as error:
        raise UserError(f"{path}: is no safetensors file: {error}") from None
