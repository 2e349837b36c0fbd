"""The training loop of one trial, top to bottom."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from study import models
from study.data.dataset import Dataset, Facts
from study.methods import UNKNOWN, Batch, Labels, Method
from study.training import augment, checkpoint, deterministic, elastic, gradient_cache, streamed, weights_file
from study.training.checkpoint import Checkpoint
from study.training.chosen_weights import Choice, ChosenWeights
from study.training.clock import Clock
from study.training.config import TrialConfig
from study.training.course import Course
from study.training.device import best
from study.training.diverged import check_loss, check_networks
from study.training.evaluation import Evaluation
from study.training.heap import keep_freed_memory
from study.training.networks import networks
from study.training.optimization import adam, groups, optimizer, schedule
from study.training.plain_step import Step, plain_step
from study.training.resident import Resident
from study.training.training_samples import with_share, with_val


class TrainingLoop:
    """Networks trained by a method, and a linear probe trained beside them on the encoder's detached features.

    The accuracy of the probe, or of the method's own classifier where it has one, is what search and early stopping
    see. The same configuration and data give the same metrics bit for bit on one CPU machine, stopped and resumed or
    not; on CUDA that is so with `train.deterministic`, for the same kind of card, driver and libraries. Without it what
    is resumed goes on from the same state by the same random numbers, and sums of many terms may be rounded otherwise.

    Args:
        config: what to train.
        dataset: its data; it is read, never written.
        device: where, one that works; by default a GPU if one works, see `study.training.device.best`.
        begins: the networks begin from the weights that `model.weights` names, if it names any; False: `load` follows.

    Attributes:
        given: the data as they were given; `dataset` is what it trains on and is evaluated on.
        evaluate: `evaluate(split, final=False)` gives the metrics of a split with the networks as they are.
    """

    def __init__(self, config: TrialConfig, dataset: Dataset, device: str | None = None, begins: bool = True) -> None:
        self.config, self.options, self.given = config, config.train, dataset
        self._weights = models.weights(config.model) if begins else None
        self._apart = with_share(dataset, self.options.data_share)
        self.dataset = with_val(self._apart) if self.options.with_val else self._apart
        self.device = torch.device(device) if device else best()
        deterministic.demand(self.options, self.device)
        torch.set_num_threads(self.options.threads)
        if self.device.type == "cpu":
            keep_freed_memory()
        torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()  # shapes are few
        facts = dataset.facts.on("train")
        self._networks = networks(config, dataset.facts, begins)
        self.method, self.probes = cast(Method, self._networks["method"]), cast(nn.ModuleDict, self._networks["probes"])
        gradient_cache.split(self.method, self.options)
        self._networks.to(self.device).to(memory_format=torch.channels_last)
        self._splits: dict[str, Resident] = self._on_device(facts)
        self._augmentation = augment.build(self.options.augmentation, facts.shape, self.options)
        networks_and_data = self.method, self.probes, self._splits, dataset.facts
        self.evaluate = Evaluation(*networks_and_data, self.options, lambda: self.inferred)
        self._shapes = {name: list(tensor.shape) for name, tensor in self._networks.state_dict().items()}

    def run(
        self,
        resume: Path | None = None,
        pause: float = 0.0,
        choice: Choice | None = None,
        ended: Path | None = None,
    ) -> Iterator[dict[str, float]]:
        """Train, giving the metrics of each epoch: `train/*`, `val/*`, and what it cost (see `Clock`).

        Args:
            resume: a file that is written after each epoch but the last, once its metrics were taken: an epoch in it
                is one that the caller knows of. Where it exists, training goes on from it: what follows is what would
                have followed without a stop, bit for bit where the class promises that.
            pause: write it only when so many times the duration of the last write are over.
            choice: which epoch's networks to end with, before the last epoch's metrics are given: what `train.final`
                names is measured of these. None: those of the last.
            ended: a file that the state behind the last epoch is written to, before that epoch's metrics are given. A
                longer trial goes on from it, see `study.training.elastic`.

        Raises:
            Diverged: the loss of an epoch, the networks behind it or what they give for a split is not finite.
            Unusable: `resume` is damaged, or another trial's.
            OSError: `resume` or `ended` cannot be written.
        """
        options = self.options
        course = self.begin(resume, pause, choice, ended)
        step, clock = plain_step(self, course.main, course.beside), Clock(self.device)
        for epoch in range(course.done + 1, options.epochs + 1):
            values = self.epoch(course, epoch, step, clock)
            yield values
            course.keep(epoch, options.epochs)

    def epoch(self, course: Course, epoch: int, step: Step, clock: Clock) -> dict[str, float]:
        """Train an epoch, the `epoch`-th, and give its metrics; raises `Diverged` as `run`."""
        self.method.begin_epoch(epoch, self.options.epochs)
        self.method.train()
        total, count = torch.zeros((), device=self.device), 0
        for index, on_host in self.batches(course.order):
            with clock.phase("data"):
                batch = Batch(self.views(index, course.chance), course.labels.at(index), index, on_host)
            with clock.phase("training"):
                total += step(batch)
                count += len(index)
        course.rates.step()
        with clock.phase("evaluation"):
            values = self.end_epoch(course, epoch, float(total) / count, batch, self.evaluate)
        return values | clock.epoch(images=count)

    def begin(
        self,
        resume: Path | None = None,
        pause: float = 0.0,
        choice: Choice | None = None,
        ended: Path | None = None,
    ) -> Course:
        """What `run` begins with, its arguments: optimizers, schedule and generators, as `resume` has them if it is."""
        options, method = self.options, self.method
        labels, _ = self._labels(), self.inferred  # whatever stands in for labels is trained before the clock runs
        method.begin(labels)
        main, beside = optimizer(groups(method, options), options, self.device), self._probe_optimizer()
        rates = schedule(main, options)
        states = {"method": method, "probes": self.probes, "optimizer": main, "probe_optimizer": beside, "rates": rates}
        chosen = ChosenWeights(self._networks, choice) if choice else None
        kept_too = {"chosen": chosen} if chosen else {}
        order = torch.Generator().manual_seed(options.seed)
        chance = torch.Generator(self.device).manual_seed(options.seed)
        generators = {"order": order, "chance": chance} | deterministic.global_generators(self.device)
        kept = Checkpoint(resume, self._identity(), states | kept_too, generators, pause) if resume else None
        at_end = Checkpoint(ended, self._identity(), states | kept_too, generators) if ended else None
        done = kept.restore() if kept else 0
        return Course(labels, main, beside, rates, order, chance, kept, at_end, chosen, done)

    def end_epoch(
        self, course: Course, epoch: int, loss: float, batch: Batch, measure: Callable[[str, bool], dict[str, float]]
    ) -> dict[str, float]:
        """The metrics of an epoch whose steps are over; raises as `run`.

        Args:
            loss: mean over the epoch's samples.
            batch: the last one.
            measure: gives the metrics of a split with the networks as they are, `final` or not.
        """
        values, chosen, last = {"train/loss": loss}, course.chosen, epoch == self.options.epochs
        check_loss(loss, epoch)
        check_networks(self._networks.parameters(), self.method.encoders().values(), epoch)
        for split in self._reported:
            values |= measure(split, last and chosen is None)
        values |= self._diagnosis(batch)
        if chosen:
            chosen.hear(values)
        if course.at_end and last:
            course.at_end.keep(epoch)
        if chosen and last:
            chosen.put_back()
            values = self._finals() | values
        return values

    def losses(self, batch: Batch, forward: Callable[[Batch], tuple[Tensor, dict[str, Tensor]]]) -> tuple[Tensor, Any]:
        """The method's loss of a batch, a scalar, and the sum of the probes' losses on its features."""
        with self._precision():
            loss, features = forward(batch)
        return loss, self._probe_loss(features, batch.index)

    def epochs_in(self, resume: Path) -> int:
        """The epoch behind which `run` would go on with this file, 0 where there is none.

        Raises:
            Unusable: it is damaged, or another trial's.
        """
        content = checkpoint.read(resume, self._identity())
        return int(content["epoch"]) if content else 0

    def save(self, path: Path) -> None:
        """Write networks and probes, safetensors, in one step: a reader sees the whole file or none."""
        weights_file.write(path, self._networks)

    def load(self, path: Path) -> None:
        """Take the weights that `save` wrote for this configuration; raises as `weights_file.read`."""
        weights_file.read(path, self._networks)

    def _on_device(self, facts: Facts) -> dict[str, Resident]:
        return {name: streamed.on(self.device, split, facts) for name, split in self.dataset.splits.items()}

    def _labels(self) -> Labels:
        """What the method knows of the training samples: all that the data say."""
        return self._splits["train"].labels

    @cached_property
    def inferred(self) -> Mapping[str, Tensor]:
        """By split, the class of the group that each sample was found to be in, (N,): none are looked for."""
        return {}

    def batches(self, order: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Positions of the training samples in random order, on the device and on the host; a last batch of one sample
        is left out."""
        size, train = self.options.batch_size, self._splits["train"]
        least = size if self.options.drop_last else 2
        positions = torch.randperm(len(train), generator=order)
        for index, on_host in zip(train.batches(positions, size), positions.split(size), strict=True):
            if len(index) >= min(least, len(train)):
                yield index, on_host

    def split(self, name: str) -> Resident:
        """A split on the device."""
        return self._splits[name]

    def views(self, index: Tensor, chance: torch.Generator) -> Tensor:
        """The samples as the network sees them, (V, B, ...)."""
        train = self._splits["train"]
        return train.normalised(self._augmentation(train.pixels(index), chance, self.method.views))

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
        return adam(self.probes.parameters(), self.options.probe_learning_rate, self.options, self.device)

    def _identity(self) -> dict[str, Any]:
        """What a checkpoint must have been made from for this trial to go on from it."""
        begun = {"weights": self._weights} if self._weights else {}
        made_from = {
            "config": elastic.identity(self.config.to_document()),
            "data": self.dataset.fingerprint,
            "shapes": self._shapes,
        }
        return made_from | begun
