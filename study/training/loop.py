"""The training loop of one trial, top to bottom."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import models
from study.data.dataset import Dataset
from study.files.whole import write_whole
from study.methods import UNKNOWN, Batch, Labels, Method
from study.training import augment, checkpoint
from study.training.checkpoint import Checkpoint, Unusable
from study.training.chosen_weights import Choice, ChosenWeights
from study.training.clock import Clock
from study.training.config import TrialConfig
from study.training.diverged import check_loss, check_networks
from study.training.eager import Adam
from study.training.evaluation import Evaluation
from study.training.networks import networks
from study.training.optimization import groups, optimizer, schedule
from study.training.resident import Resident
from study.training.training_samples import with_share, with_val


class TrainingLoop:
    """Networks trained by a method, and a linear probe trained beside them on the encoder's detached features.

    The accuracy of the probe, or of the method's own classifier where it has one, is what search and early stopping
    see. The same configuration and data give the same metrics bit for bit on one CPU machine, stopped and resumed or
    not.

    Args:
        config: what to train.
        dataset: its data; it is read, never written.
        device: where; the GPU if there is one.
        begins: the networks begin from the weights that `model.weights` names, if it names any; False: `load` follows.

    Attributes:
        evaluate: `evaluate(split, final=False)` gives the metrics of a split with the networks as they are.
    """

    def __init__(self, config: TrialConfig, dataset: Dataset, device: str | None = None, begins: bool = True) -> None:
        self.config, self.options = config, config.train
        self._weights = models.weights(config.model) if begins else None
        self._apart = with_share(dataset, self.options.data_share)
        self.dataset = with_val(self._apart) if self.options.with_val else self._apart
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.set_num_threads(self.options.threads)
        facts = dataset.facts.on("train")
        self._networks = networks(config, dataset.facts, begins)
        self.method, self.probes = cast(Method, self._networks["method"]), cast(nn.ModuleDict, self._networks["probes"])
        self._networks.to(self.device).to(memory_format=torch.channels_last)
        self._splits = {name: Resident(split, facts, self.device) for name, split in self.dataset.splits.items()}
        self._augmentation = augment.build(self.options.augmentation, facts.shape, self.options)
        networks_and_data = self.method, self.probes, self._splits, dataset.facts
        self.evaluate = Evaluation(*networks_and_data, self.options, lambda: self.inferred)
        self._shapes = {name: list(tensor.shape) for name, tensor in self._networks.state_dict().items()}

    def run(
        self, resume: Path | None = None, pause: float = 0.0, choice: Choice | None = None
    ) -> Iterator[dict[str, float]]:
        """Train, giving the metrics of each epoch: `train/*`, `val/*`, and what it cost (see `Clock`).

        Args:
            resume: a file that is written after each epoch but the last, once its metrics were taken: an epoch in it
                is one that the caller knows of. Where it exists, training goes on from it: what follows is bit for
                bit what would have followed without a stop.
            pause: write it only when so many times the duration of the last write are over.
            choice: which epoch's networks to end with, before the last epoch's metrics are given: what `train.final`
                names is measured of these. None: those of the last.

        Raises:
            Diverged: the loss of an epoch, the networks behind it or what they give for a split is not finite.
            Unusable: `resume` is damaged, or another trial's.
            OSError: `resume` cannot be written.
        """
        options, method = self.options, self.method
        labels, _ = self._labels(), self.inferred  # whatever stands in for labels is trained before the clock runs
        method.begin(labels)
        forward = torch.compile(method) if options.compile else method
        main, beside = optimizer(groups(method, options), options), self._probe_optimizer()
        rates = schedule(main, options)
        states = {"method": method, "probes": self.probes, "optimizer": main, "probe_optimizer": beside, "rates": rates}
        chosen = ChosenWeights(self._networks, choice) if choice else None
        kept_too = {"chosen": chosen} if chosen else {}
        order = torch.Generator().manual_seed(options.seed)
        chance = torch.Generator(self.device).manual_seed(options.seed)
        generators = {"order": order, "chance": chance}
        kept = Checkpoint(resume, self._identity(), states | kept_too, generators, pause) if resume else None
        done = kept.restore() if kept else 0
        clock = Clock(self.device)
        for epoch in range(done + 1, options.epochs + 1):
            method.begin_epoch(epoch, options.epochs)
            method.train()
            total, count = torch.zeros((), device=self.device), 0
            for index in self._batches(order):
                with clock.phase("data"):
                    batch = Batch(self._views(index, chance), labels.at(index), index)
                with clock.phase("training"):
                    with self._precision():
                        loss, features = forward(batch)
                    probe_loss = self._probe_loss(features, index)
                    main.zero_grad(set_to_none=True)
                    beside.zero_grad(set_to_none=True)
                    (loss + probe_loss).backward()
                    if options.clip_norm is not None:
                        nn.utils.clip_grad_norm_(method.parameters(), options.clip_norm)
                    main.step()
                    beside.step()
                    total += loss.detach() * len(index)
                    count += len(index)
            rates.step()
            with clock.phase("evaluation"):
                values = {"train/loss": float(total) / count}
                check_loss(values["train/loss"], epoch)
                check_networks(self._networks.parameters(), method.encoders().values(), epoch)
                for split in self._reported:
                    values |= self.evaluate(split, final=epoch == options.epochs and chosen is None)
                values |= self._diagnosis(batch)
                if chosen:
                    chosen.hear(values)
                if chosen and epoch == options.epochs:
                    chosen.put_back()
                    values = self._finals() | values
            yield values | clock.epoch(images=count)
            if kept and epoch < options.epochs:
                kept.keep(epoch)

    def epochs_in(self, resume: Path) -> int:
        """How many epochs `run` would leave out with this file, 0 where there is none.

        Raises:
            Unusable: it is damaged, or another trial's.
        """
        content = checkpoint.read(resume, self._identity())
        return int(content["epoch"]) if content else 0

    def save(self, path: Path) -> None:
        """Write networks and probes, safetensors, in one step: a reader sees the whole file or none."""
        from safetensors.torch import save

        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, save({name: tensor.contiguous() for name, tensor in self._networks.state_dict().items()}))

    def load(self, path: Path) -> None:
        """Take the weights that `save` wrote for this configuration.

        Raises:
            Unusable: the file is missing, cut short or otherwise damaged, or of other networks.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            self._networks.load_state_dict(load_file(path))
        except (SafetensorError, OSError, RuntimeError) as error:
            does_not_fit = isinstance(error, RuntimeError)
            what = "does not fit these data or this version of study" if does_not_fit else "is damaged or cut short"
            raise Unusable(f"{path}: {what} ({' '.join(str(error).split())[:200]})") from None

    def _labels(self) -> Labels:
        """What the method knows of the training samples: all that the data say."""
        return self._splits["train"].labels

    @cached_property
    def inferred(self) -> Mapping[str, Tensor]:
        """By split, the class of the group that each sample was found to be in, (N,): none are looked for."""
        return {}

    def _batches(self, order: torch.Generator) -> Iterator[Tensor]:
        """Positions of the training samples in random order; a last batch of one sample is left out."""
        size, train = self.options.batch_size, self._splits["train"]
        least = size if self.options.drop_last else 2
        for index in torch.randperm(len(train), generator=order).to(self.device).split(size):
            if len(index) >= min(least, len(train)):
                yield index

    def _views(self, index: Tensor, chance: torch.Generator) -> Tensor:
        """The samples as the network sees them, (V, B, ...)."""
        train = self._splits["train"]
        pixels = train.pixels(index)
        if self.method.views == 1:
            return train.normalised(self._augmentation(pixels, chance))[None]
        return torch.stack([train.normalised(self._augmentation(pixels, chance)) for _ in range(self.method.views)])

    def _probe_loss(self, features: dict[str, Tensor], index: Tensor) -> Tensor | float:
        """Of the probes that are looked at, on features that pass no gradient on."""
        target = self._splits["train"].target[index]
        parts = [
            functional.cross_entropy(
                self.evaluate.online_scores(name, part.detach().float()), target, ignore_index=UNKNOWN
            )
            for name, part in features.items()
            if name != "encoder" or self.method.own_classifier() is None
        ]
        return torch.stack(parts).sum() if parts else 0.0

    @property
    def _reported(self) -> list[str]:
        """The splits whose metrics an epoch has."""
        return [name for name in self._splits if name == "val" or (self.options.report_test and name != "train")]

    def _finals(self) -> dict[str, float]:
        """The metrics of an epoch's splits with the networks as they are, nothing without `train.final`."""
        return {
            name: value
            for split in (self._reported if self.options.final else ())
            for name, value in self.evaluate(split, final=True).items()
        }

    @torch.no_grad()
    def _diagnosis(self, batch: Batch) -> dict[str, float]:
        """The method's own figures on the epoch's last batch, `train/NAME`."""
        return {f"train/{name}": float(value) for name, value in self.method.diagnose(batch).items()}

    def _precision(self) -> AbstractContextManager[object]:
        if self.options.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _probe_optimizer(self) -> torch.optim.Optimizer:
        return Adam(self.probes.parameters(), lr=self.options.probe_learning_rate)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must have been made from for this trial to go on from it."""
        begun = {"weights": self._weights} if self._weights else {}
        made_from = {"config": self.config.to_document(), "data": self.dataset.fingerprint, "shapes": self._shapes}
        return made_from | begun
