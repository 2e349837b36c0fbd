"""The networks of a trial, and their evaluation on a split: online after every epoch, and final."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import methods, models
from study.data.dataset import Facts
from study.methods import BatchLabels, Method
from study.methods.debiasing import BIAS_FROM_EARLY_LAYERS
from study.metrics import is_standard_error
from study.training import augment, metrics, probes
from study.training.augment import augmented_shape, resize_for_evaluation
from study.training.cell_statistics import PredictionCounts, log_loss_of_samples
from study.training.config import TrainOptions, TrialConfig
from study.training.device import DeviceSplit
from study.training.diverged import check_features_are_finite


def build_networks(config: TrialConfig, facts: Facts, loads_weights: bool = True) -> nn.ModuleDict:
    """Build the networks of a trial, freshly initialised from `train.seed`.

    Args:
        facts: of the data set.
        loads_weights: load the weights that `model.weights` names; False: the caller loads others.

    Returns:
        `method`: the method with its networks; `probes`: a linear probe for each of its encoders, by name.
    """
    torch.manual_seed(config.train.seed)
    trained = facts.facts_of_split("train")
    if config.method.get("bias_source") == BIAS_FROM_EARLY_LAYERS:
        trained = replace(trained, bias_classes=facts.classes)  # a sample's bias is the class that it looks like
    seen = replace(trained, shape=augment.augmented_shape(config.train.augmentation, facts.shape, config.train))
    method = methods.build_method(
        config.method, trained, lambda: models.build_network(config.model, seen, loads_weights)
    )
    encoders = method.encoders().items()
    probes = nn.ModuleDict({name: nn.Linear(encoder.features, facts.classes) for name, encoder in encoders})
    return nn.ModuleDict({"method": method, "probes": probes})


def modules_that_predict(networks: nn.ModuleDict) -> tuple[nn.Module, nn.Module]:
    """Return the encoder and the classifier of its features: the method's own, else the probe."""
    method = cast(Method, networks["method"])
    own = method.own_classifier()
    return method.encoders()["encoder"], cast(nn.ModuleDict, networks["probes"])["encoder"] if own is None else own


MAX_BATCH_SAMPLES = 2048
"""Largest number of samples in a batch of evaluation."""

MIN_BATCH_PIXELS = 2**19
"""Least pixels per channel, or values of rows, in a batch of evaluation, if `MAX_BATCH_SAMPLES` samples have as many:
with less a GPU would wait for launches."""


def evaluation_batch_size(options: TrainOptions, views: int, shape: tuple[int, ...]) -> int:
    """Return the number of samples that evaluation takes at a time: as many pixels as a training step.

    A step holds more of each of them for its gradient, so a split is evaluated in less memory than a step takes.

    Args:
        views: of each sample in a step.
        shape: of a sample of the data.
    """
    trained = augmented_shape(options.augmentation, shape, options)
    side = options.evaluation_size
    evaluated = (side, side) if side is not None and len(shape) == 3 else shape[-2:]
    pixels = min(options.batch_size, options.micro_batch or options.batch_size) * views * math.prod(trained[-2:])
    return max(2, min(MAX_BATCH_SAMPLES, max(pixels, MIN_BATCH_PIXELS) // math.prod(evaluated)))


def _drop_nan_standard_errors(values: Mapping[str, float]) -> dict[str, float]:
    """Return metrics without the standard errors that are not known, NaN."""
    return {name: value for name, value in values.items() if not (math.isnan(value) and is_standard_error(name))}


FITTED_PROBE_L2 = 1.5e-4
"""Factor of the squared weights of a fitted probe: the best of 0.5e-4, 1.5e-4 and 5e-4 on folders of pictures, see
`tests/benchmarks/results/draft-space.md`."""


class SplitEvaluator:
    """Evaluates networks on splits.

    Args:
        networks: as `build_networks` builds them: the method's encoders are evaluated, with its own classifier where it
            has one, else with the linear probe of each, trained beside it.
        splits: of the data, on the device.
        inferred: gives, by split, the class of each sample's inferred group, (N,); a split that is
            not there has no metrics of inferred groups.

    Attributes:
        batch: samples that are taken at a time.
        counts: of the method's encoder, by split, where its final evaluation was asked for.
    """

    def __init__(
        self,
        networks: nn.ModuleDict,
        splits: Mapping[str, DeviceSplit],
        facts: Facts,
        options: TrainOptions,
        inferred: Callable[[], Mapping[str, Tensor]] = dict,
    ) -> None:
        self._method, self._online = cast(Method, networks["method"]), cast(nn.ModuleDict, networks["probes"])
        self._splits = splits
        self._facts, self._options, self._inferred = facts, options, inferred
        self.batch = evaluation_batch_size(options, self._method.views, facts.shape)
        self.counts: dict[str, PredictionCounts] = {}
        self._fitted: dict[tuple[str, str], probes.ProbeClassifier] = {}

    @torch.no_grad()
    def __call__(self, split: str, final: bool = False) -> dict[str, float]:
        """Compute the metrics of a split, `SPLIT/NAME`; of a further encoder `SPLIT/ENCODER_NAME`.

        Args:
            final: also compute what `train.final` names, as `SPLIT/knn_accuracy`.

        Raises:
            DivergedError: the features of a sample are not finite.
        """
        values: dict[str, Tensor] = {}
        for name in self._method.encoders():
            check_features_are_finite(features := self.compute_features(split, name), split)
            prefix = f"{split}/" if name == "encoder" else f"{split}/{name}_"
            scores = self.class_scores(name, features)
            has_errors = split != "train" and name == "encoder"
            predicted, data = self._predict_classes(split, name, scores), self._splits[split]
            of_encoder = self._split_metrics(split, scores, predicted, errors=has_errors)
            if final and name == "encoder":
                facts = self._facts.facts_of_split(split)
                self.counts[split] = PredictionCounts.from_predictions(predicted, data.target, data.bias, facts)
            if final and self._options.final:
                of_encoder |= self._final_probe_metrics(split, name, features)
            values |= {f"{prefix}{metric}": value for metric, value in of_encoder.items()}
        told = torch.stack([value.double() for value in values.values()]).tolist()
        return _drop_nan_standard_errors(dict(zip(values, told, strict=True)))

    @torch.no_grad()
    def compute_features(self, split: str, encoder: str = "encoder") -> Tensor:
        """Compute the encoder's features of a whole split, (N, F) float32, not normalised."""
        data, module = self._splits[split], self._method.eval().encoders()[encoder]
        size, device = self._options.evaluation_size, data.target.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._options.precision == "bfloat16"):
            parts = [
                module(data.normalise_pixels(resize_for_evaluation(data.pixels_of_samples(index), size))).float()
                for index in data.batches_in_order(self.batch)
            ]
        return torch.cat(parts)

    @torch.no_grad()
    def fit_probes(self, labels: BatchLabels) -> None:
        """Fit the probes that are looked at to the features of the training split (`train.probe: fitted`).

        Args:
            labels: of that split, as the method knows them.
        """
        for name in self._method.encoders():
            if name != "encoder" or self._method.own_classifier() is None:
                unit = functional.normalize(self.compute_features("train", name), dim=1)
                target, classes = labels.target, self._facts.classes
                fitted = probes.fit_lbfgs_probe(unit, target, classes, 0, FITTED_PROBE_L2, weights=labels.weight)
                online = cast(nn.Linear, self._online[name])
                online.weight.copy_(fitted.weight)
                online.bias.copy_(fitted.offset)

    @torch.no_grad()
    def class_scores(self, encoder: str, features: Tensor) -> Tensor:
        """Classify features (B, F) by the method's own classifier or the online probe: (B, classes)."""
        own = self._method.own_classifier() if encoder == "encoder" else None
        return own(features) if own else self._online[encoder](functional.normalize(features, dim=1))

    @torch.no_grad()
    def predictions_and_losses(self, split: str) -> tuple[Tensor, Tensor]:
        """Return the predicted class of each sample, as in its metrics, and -log p of its own class, each (N,)."""
        scores = self.class_scores("encoder", self.compute_features(split))
        return self._predict_classes(split, "encoder", scores), log_loss_of_samples(scores, self._splits[split].target)

    def log_probabilities(self, split: str) -> Tensor:
        """Return log p of each class, (N, classes) float32, in nats: p is the softmax of the scores.

        Raises:
            DivergedError: the features of a sample are not finite.
        """
        check_features_are_finite(features := self.compute_features(split), split)
        return self.class_scores("encoder", features).float().log_softmax(1)

    def metrics_of_scores(self, split: str, scores: Tensor) -> dict[str, float]:
        """Compute the metrics of a split, `SPLIT/NAME`, of these scores (N, classes) in place of the networks' own.

        `counts` are of them afterwards.
        """
        data, facts, predicted = self._splits[split], self._facts.facts_of_split(split), scores.argmax(1)
        self.counts[split] = PredictionCounts.from_predictions(predicted, data.target, data.bias, facts)
        values = self._split_metrics(split, scores, predicted, errors=split != "train")
        return _drop_nan_standard_errors({f"{split}/{name}": float(value) for name, value in values.items()})

    def _predict_classes(self, split: str, encoder: str, scores: Tensor) -> Tensor:
        """Predict classes (N,): of the highest score, or by thresholds that equalize odds on the training split."""
        train, data = self._splits["train"], self._splits[split]
        if not self._method.equalizes_odds or data.bias is None or train.bias is None:
            return scores.argmax(1)
        from study.training import postprocess  # fairlearn, which no other trial needs

        on_train = self.class_scores(encoder, self.compute_features("train", encoder))
        thresholds = postprocess.fit_equalized_odds_thresholds(on_train, train.target, train.bias)
        return thresholds.predict(scores, data.bias, self._options.seed)

    def _split_metrics(self, split: str, scores: Tensor, predicted: Tensor, errors: bool = False) -> dict[str, Tensor]:
        data, facts, inferred = self._splits[split], self._facts.facts_of_split(split), self._inferred().get(split)
        return metrics.compute_metrics(scores, predicted, data.target, data.bias, facts, inferred, errors)

    def _final_probe_metrics(self, split: str, encoder: str, features: Tensor) -> dict[str, Tensor]:
        """Compute what `train.final` names, of probes fitted to the training split's features: `PROBE_METRIC`."""
        values: dict[str, Tensor] = {}
        of_train, of_split = self._splits["train"], self._splits[split]
        for name in self._options.final:
            if name != "ridge":
                scores = self._final_probe(encoder, name)(features)
                measured = self._split_metrics(split, scores, scores.argmax(1))
                values |= {f"{name}_{metric}": value for metric, value in measured.items()}
            elif of_train.condition is not None and of_split.condition is not None:
                attribute = self._final_probe(encoder, name)
                values["condition_mse"] = probes.mean_squared_error(attribute, features, of_split.condition)
        return values

    def _final_probe(self, encoder: str, name: str) -> probes.ProbeClassifier:
        """Return a probe of `train.final`, fitted once for all splits."""
        if (encoder, name) not in self._fitted:
            train, of_train = self.compute_features("train", encoder), self._splits["train"]
            if name == "ridge":
                assert of_train.condition is not None
                fitted = probes.fit_ridge_probe(train, of_train.condition)
            else:
                fitted = probes.PROBE_FITTERS[name](train, of_train.target, self._facts.classes, self._options.seed)
            self._fitted[encoder, name] = fitted
        return self._fitted[encoder, name]

    def probe_tensors(self) -> dict[str, Tensor]:
        """Return the tensors of the probes that were fitted to these networks, except those that hold all features."""
        kept = {key: fitted for key, fitted in self._fitted.items() if key[1] in probes.STORED_PROBE_CLASSES}
        return {".".join((*key, name)): tensor for key, fitted in kept.items() for name, tensor in vars(fitted).items()}

    def load_probe_tensors(self, kept: Mapping[str, Tensor]) -> None:
        """Replace the fitted probes, as the networks have changed, by those that `probe_tensors` returned."""
        tensors: dict[tuple[str, str], dict[str, Tensor]] = {}
        for key, tensor in kept.items():
            encoder, name, field = key.rsplit(".", 2)
            tensors.setdefault((encoder, name), {})[field] = tensor
        self._fitted = {key: probes.STORED_PROBE_CLASSES[key[1]](**of) for key, of in tensors.items()}
