"""A fitted model of scikit-learn as a method's classifier, of the same inputs that it was fitted to.

It is stored in the format of skops, and read back only if all its types are known here.
"""

from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

from study.catalogue import REFERENCE_METHOD
from study.data.dataset import Facts
from study.errors import UserError
from study.methods.base_method import Batch, Method
from study.models.encoder import Encoder, Network
from study.models.frozen_networks import LayersOnFrozenNetwork
from study.models.network_keys import HeadOptions

TRUSTED_SKOPS_TYPES = ("sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",)
"""Types of such models besides those that skops knows as safe."""

ALLOWED_SKLEARN_MODELS = ("DummyClassifier", "LogisticRegression", "HistGradientBoostingClassifier")
"""Models that may be read."""


class PassThroughEncoder(Encoder):
    """Encoder that passes on the model's inputs: a table's row, normalised pixels, or a frozen network's features."""

    def __init__(self, facts: Facts, network: Network) -> None:
        super().__init__()
        frozen = network.encoder if isinstance(network.encoder, LayersOnFrozenNetwork) else None
        self.frozen = frozen
        self.features = int(np.prod(facts.shape)) if frozen is None else frozen.columns

    def forward(self, inputs: Tensor) -> Tensor:
        return (inputs if self.frozen is None else self.frozen.feature_rows(inputs)).flatten(1)


class FittedClassifier(nn.Module):
    """Classifier of rows by the fitted model.

    Args:
        classes: number of classes of the data; training may lack some.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self._classes = classes
        self._model: Any = None
        self.stored: Tensor
        self.register_buffer("stored", torch.zeros(0, dtype=torch.uint8))

    def set_sklearn_model(self, model: Any) -> None:
        """Store a fitted model of scikit-learn, and classify by it."""
        from skops.io import dumps

        self.stored = torch.frombuffer(bytearray(dumps(model)), dtype=torch.uint8).to(self.stored.device)
        self._model = model

    def forward(self, rows: Tensor) -> Tensor:
        """Return scores (B, classes), float64, for rows (B, F): the lowest for a class that training had none of."""
        scores = score_classes_by_sklearn(self._read_model(), rows.cpu().numpy(), self._classes)
        return torch.as_tensor(scores).to(rows.device)

    def _read_model(self) -> Any:
        """Read the stored model.

        Raises:
            UserError: what is stored is not one, or holds a type that is not known.
        """
        if self._model is None:
            from skops.io import loads
            from skops.io.exceptions import UntrustedTypesFoundException

            try:
                found = loads(self.stored.cpu().numpy().tobytes(), trusted=list(TRUSTED_SKOPS_TYPES))
            except (UntrustedTypesFoundException, BadZipFile, ValueError, KeyError, TypeError, OSError) as error:
                raise UserError(f"the stored model cannot be read: {' '.join(str(error).split())[:200]}") from None
            if type(found).__name__ not in ALLOWED_SKLEARN_MODELS or not type(found).__module__.startswith("sklearn."):
                raise UserError(
                    f"the stored model is a {type(found).__name__}, allowed: {', '.join(ALLOWED_SKLEARN_MODELS)}"
                )
            self._model = found
        return self._model

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        """Accept a stored model of any length."""
        if (stored := state_dict.get(f"{prefix}stored")) is not None and stored.dtype == torch.uint8:
            self.stored, self._model = torch.empty_like(stored, device=self.stored.device), None
        super()._load_from_state_dict(state_dict, prefix, *others)


def score_classes_by_sklearn(model: Any, rows: Any, classes: int) -> Any:
    """Score the classes of rows (N, F) by a model of scikit-learn, float64 (N, classes).

    The score of a class that training had none of is the lowest.
    """
    if type(model).__name__ == "DummyClassifier":
        with np.errstate(divide="ignore"):
            known = np.log(model.predict_proba(rows))
    else:
        known = model.decision_function(rows)
    known = np.stack([-known / 2, known / 2], axis=1) if known.ndim == 1 else known
    found = np.full((len(known), classes), -np.inf)
    found[:, model.classes_] = known
    return found


class ReferenceMethod(Method):
    """A fitted model as the classifier of the inputs that `PassThroughEncoder` passes on.

    Args:
        fits: its name.
        network: whose frozen network's features are fitted to, if it has one.
    """

    def __init__(self, fits: str, facts: Facts, network: Network) -> None:
        super().__init__()
        self.reference_to_fit = fits
        self.network = Network(PassThroughEncoder(facts, network), HeadOptions())
        self.classifier = FittedClassifier(facts.classes)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Refuse a training step: the model is fitted at once.

        Raises:
            UserError: always.
        """
        raise UserError(f"{REFERENCE_METHOD}: is fitted at once, no step trains it")

    def own_classifier(self) -> nn.Module:
        return self.classifier
