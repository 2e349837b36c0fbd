"""The training loop of one trial, top to bottom."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import methods, models
from study.data.dataset import Dataset, Split
from study.training import metrics
from study.training.config import TrainOptions, TrialConfig

EVALUATION_BATCH = 2048


class Diverged(Exception):
    """The loss became NaN or infinite; the epoch is in the message."""


class Trial:
    """An encoder trained by a method, and a linear probe trained beside it on its detached features.

    The probe's accuracy is what search and early stopping see. The same configuration and data give the same
    metrics bit for bit on one CPU machine.

    Args:
        config: what to train.
        dataset: its data; it is read, never written.
        device: where; the GPU if there is one.
    """

    def __init__(self, config: TrialConfig, dataset: Dataset, device: str | None = None) -> None:
        self.config, self.facts = config, dataset.facts
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.set_num_threads(config.train.threads)
        torch.manual_seed(config.train.seed)
        self.encoder = models.build(config.model, dataset.facts).to(self.device)
        self.probe = nn.Linear(self.encoder.features, dataset.facts.classes).to(self.device)
        self._splits = {name: _Resident(split, self.device) for name, split in dataset.splits.items()}

    def run(self) -> Iterator[dict[str, float]]:
        """Train, giving the metrics of each epoch: `train/loss`, `val/*`, `time/epoch` in seconds.

        Raises:
            Diverged: the loss of an epoch is not finite.
        """
        options, objective = self.config.train, methods.build(self.config.method)
        optimizer = _optimizer(self.encoder, options)
        probe_optimizer = torch.optim.Adam(self.probe.parameters(), lr=options.probe_learning_rate)
        milestones = [max(1, round(share * options.epochs)) for share in options.lr_milestones]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones)
        order = torch.Generator().manual_seed(options.seed)
        train = self._splits["train"]
        for epoch in range(1, options.epochs + 1):
            started = time.perf_counter()
            self.encoder.train()
            total = torch.zeros((), device=self.device)
            for indices in torch.randperm(len(train), generator=order).to(self.device).split(options.batch_size):
                images, target, bias = train.batch(indices)
                features = functional.normalize(self.encoder(self._normalised(images)), dim=1)
                views = features[None]
                loss = objective(views, views, target=target, bias=bias)
                probe_loss = functional.cross_entropy(self.probe(features.detach()), target)
                optimizer.zero_grad(set_to_none=True)
                probe_optimizer.zero_grad(set_to_none=True)
                (loss + probe_loss).backward()
                optimizer.step()
                probe_optimizer.step()
                total += loss.detach() * len(indices)
            schedule.step()
            mean_loss = float(total) / len(train)
            if not math.isfinite(mean_loss):
                raise Diverged(f"loss is {mean_loss} in epoch {epoch}")
            yield {
                "train/loss": mean_loss,
                **self.evaluate("val"),
                "time/epoch": time.perf_counter() - started,
            }

    @torch.no_grad()
    def evaluate(self, split: str) -> dict[str, float]:
        """The metrics of a split, `SPLIT/NAME`, with the encoder and probe as they are."""
        self.encoder.eval()
        data = self._splits[split]
        parts = [
            self.probe(functional.normalize(self.encoder(self._normalised(images)), dim=1))
            for images in data.inputs.split(EVALUATION_BATCH)
        ]
        scores = torch.cat(parts)
        values = metrics.compute(scores, scores.argmax(1), data.target, data.bias, self.facts)
        fetched = torch.stack(list(values.values())).tolist()
        return {f"{split}/{name}": value for name, value in zip(values, fetched, strict=True)}

    def save(self, path: Path) -> None:
        """Write encoder and probe, safetensors, in one step: a reader sees the whole file or none."""
        from safetensors.torch import save_file

        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        save_file({name: tensor.contiguous() for name, tensor in self._modules().state_dict().items()}, part)
        part.replace(path)

    def load(self, path: Path) -> None:
        """Take the weights that `save` wrote for this configuration."""
        from safetensors.torch import load_file

        self._modules().load_state_dict(load_file(path))

    def _modules(self) -> nn.ModuleDict:
        return nn.ModuleDict({"encoder": self.encoder, "probe": self.probe})

    def _normalised(self, images: Tensor) -> Tensor:
        return images.float().div_(255.0).sub_(self.facts.mean).div_(self.facts.deviation)


class _Resident:
    """A split on the device, once; a batch is an indexing there."""

    def __init__(self, split: Split, device: torch.device) -> None:
        self.inputs = torch.tensor(split.inputs, device=device)
        self.target = torch.tensor(split.target, device=device)
        self.bias = None if split.bias is None else torch.tensor(split.bias, device=device)

    def __len__(self) -> int:
        return len(self.target)

    def batch(self, indices: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.inputs[indices], self.target[indices], None if self.bias is None else self.bias[indices]


def _optimizer(encoder: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    rate, decay = options.learning_rate, options.weight_decay
    if options.optimizer == "sgd":
        return torch.optim.SGD(encoder.parameters(), lr=rate, momentum=options.momentum, weight_decay=decay)
    return torch.optim.Adam(encoder.parameters(), lr=rate, weight_decay=decay)
