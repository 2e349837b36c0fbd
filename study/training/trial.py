"""The training loop of one trial, top to bottom."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import methods, models
from study.data.dataset import Dataset
from study.methods import UNKNOWN, Batch
from study.training import checkpoint, metrics
from study.training.bias import known_labels
from study.training.config import TrainOptions, TrialConfig
from study.training.resident import Resident

EVALUATION_BATCH = 2048


class Diverged(Exception):
    """The loss became NaN or infinite; the epoch is in the message."""


class Trial:
    """Networks trained by a method, and a linear probe trained beside them on the encoder's detached features.

    The accuracy of the probe, or of the method's own classifier where it has one, is what search and early stopping
    see. The same configuration and data give the same metrics bit for bit on one CPU machine, stopped and resumed or
    not.

    Args:
        config: what to train.
        dataset: its data; it is read, never written.
        device: where; the GPU if there is one.
    """

    def __init__(self, config: TrialConfig, dataset: Dataset, device: str | None = None) -> None:
        self.config, self.dataset, self.facts = config, dataset, dataset.facts
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.set_num_threads(config.train.threads)
        torch.manual_seed(config.train.seed)
        self.method = methods.build(config.method, self.facts, lambda: models.network(config.model, self.facts))
        encoders = self.method.encoders()
        self.probes = nn.ModuleDict(
            {name: nn.Linear(encoder.features, self.facts.classes) for name, encoder in encoders.items()}
        )
        for module in (self.method, self.probes):
            module.to(self.device).to(memory_format=torch.channels_last)
        self._splits = {name: Resident(split, self.facts, self.device) for name, split in dataset.splits.items()}

    def run(self, resume: Path | None = None) -> Iterator[dict[str, float]]:
        """Train, giving the metrics of each epoch: `train/loss`, what the method diagnoses on the last batch as
        `train/NAME`, `val/*`, `time/epoch` in seconds.

        Args:
            resume: a file that is written after each epoch, before its metrics are given. Where it exists, training
                goes on from it: what follows is bit for bit what would have followed without a stop.

        Raises:
            Diverged: the loss of an epoch is not finite.
        """
        options = self.config.train
        labels = known_labels(self.config, self.dataset, self.device)
        self.method.begin(labels)
        optimizer, probe_optimizer = _optimizer(self.method, options), _probe_optimizer(self.probes, options)
        schedule = _schedule(optimizer, options)
        order = torch.Generator().manual_seed(options.seed)
        states = {"method": self.method, "probes": self.probes, "schedule": schedule}
        states |= {"optimizer": optimizer, "probe_optimizer": probe_optimizer}
        done = checkpoint.restore(resume, states, {"order": order}) if resume and resume.exists() else 0
        for epoch in range(done + 1, options.epochs + 1):
            started = time.perf_counter()
            self.method.begin_epoch(epoch, options.epochs)
            self.method.train()
            total, count = torch.zeros((), device=self.device), 0
            for index in self._batches(order):
                batch = Batch(self._views(index), labels.at(index), index)
                loss, features = self.method(batch)
                optimizer.zero_grad(set_to_none=True)
                probe_optimizer.zero_grad(set_to_none=True)
                (loss + self._probe_loss(features, index)).backward()
                optimizer.step()
                probe_optimizer.step()
                total += loss.detach() * len(index)
                count += len(index)
            schedule.step()
            inner = self._diagnosis(batch)
            mean_loss = float(total) / count
            if not math.isfinite(mean_loss):
                raise Diverged(f"loss is {mean_loss} in epoch {epoch}")
            values = {"train/loss": mean_loss, **inner, **self.evaluate("val")}
            if resume:
                checkpoint.keep(resume, epoch, states, {"order": order})
            yield {**values, "time/epoch": time.perf_counter() - started}

    @torch.no_grad()
    def evaluate(self, split: str) -> dict[str, float]:
        """The metrics of a split, `SPLIT/NAME`, with the networks as they are."""
        data = self._splits[split]
        values: dict[str, Tensor] = {}
        for name in self.method.encoders():
            _, logits = self.outputs(split, name)
            found = metrics.compute(self._predicted(name, logits, data), data.target, data.bias, self.facts)
            prefix = f"{split}/" if name == "encoder" else f"{split}/{name}_"
            values |= {f"{prefix}{metric}": value for metric, value in found.items()}
        return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True))

    @torch.no_grad()
    def outputs(self, split: str, name: str = "encoder") -> tuple[Tensor, Tensor]:
        """An encoder's features of the samples of a split, (N, F), and their classification, (N, classes)."""
        self.method.eval()
        encoder, data = self.method.encoders()[name], self._splits[split]
        parts = torch.arange(len(data), device=self.device).split(EVALUATION_BATCH)
        features = [encoder(data.normalised(data.pixels(part))) for part in parts]
        return torch.cat(features), torch.cat([self._logits(name, part) for part in features])

    def save(self, path: Path) -> None:
        """Write networks and probes, safetensors, in one step: a reader sees the whole file or none."""
        from safetensors.torch import save_file

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        save_file({name: tensor.contiguous() for name, tensor in self._modules().state_dict().items()}, part)
        part.replace(path)

    def load(self, path: Path) -> None:
        """Take the weights that `save` wrote for this configuration."""
        from safetensors.torch import load_file

        self._modules().load_state_dict(load_file(path))

    def _batches(self, order: torch.Generator) -> Iterator[Tensor]:
        """Positions of the training samples in random order; a last batch of one sample is left out."""
        size, train = self.config.train.batch_size, self._splits["train"]
        for index in torch.randperm(len(train), generator=order).to(self.device).split(size):
            if len(index) > 1:
                yield index

    def _views(self, index: Tensor) -> Tensor:
        """The samples as the network sees them, (V, B, ...)."""
        train = self._splits["train"]
        pixels = train.pixels(index)
        return train.normalised(pixels)[None]

    def _probe_loss(self, features: dict[str, Tensor], index: Tensor) -> Tensor | float:
        target = self._splits["train"].target[index]
        parts = [
            functional.cross_entropy(self._probe(name, part.detach()), target, ignore_index=UNKNOWN)
            for name, part in features.items()
            if self._is_probed(name)
        ]
        return torch.stack(parts).sum() if parts else 0.0

    def _logits(self, name: str, features: Tensor) -> Tensor:
        return self._probe(name, features) if self._is_probed(name) else self.method.logits(features)

    def _is_probed(self, name: str) -> bool:
        """Whether a probe classifies what this encoder gives; the method itself classifies its own encoder's."""
        return name != "encoder" or not self.method.classifies

    def _predicted(self, name: str, logits: Tensor, data: Resident) -> Tensor:
        """Predictions for a split (N,)."""
        train = self._splits["train"]
        if not self.method.equalizes_odds or data.bias is None or train.bias is None:
            return logits.argmax(1)
        from study.training import postprocess  # fairlearn, which no other trial needs

        thresholds = postprocess.fit(self.outputs("train", name)[1], train.target, train.bias)
        return thresholds.predict(logits, data.bias, self.config.train.seed)

    @torch.no_grad()
    def _diagnosis(self, batch: Batch) -> dict[str, float]:
        self.method.eval()
        return {f"train/{name}": float(value) for name, value in self.method.diagnose(batch).items()}

    def _probe(self, name: str, features: Tensor) -> Tensor:
        logits: Tensor = self.probes[name](functional.normalize(features, dim=1))
        return logits

    def _modules(self) -> nn.ModuleDict:
        return nn.ModuleDict({"method": self.method, "probes": self.probes})


def _optimizer(module: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    if options.optimizer == "sgd":
        return torch.optim.SGD(module.parameters(), lr=rate, momentum=options.momentum, weight_decay=decay)
    return torch.optim.Adam(module.parameters(), lr=rate, weight_decay=decay)


def _probe_optimizer(module: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    return torch.optim.Adam(module.parameters(), lr=options.probe_learning_rate)


def _schedule(optimizer: torch.optim.Optimizer, options: TrainOptions) -> torch.optim.lr_scheduler.LRScheduler:
    milestones = [max(1, round(share * options.epochs)) for share in options.lr_milestones]
    return torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones)
