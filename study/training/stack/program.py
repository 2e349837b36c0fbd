"""The steps and the evaluation of N trials as one program."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from study.methods import Batch, Labels
from study.methods.bias_source import LABELS
from study.training import augment
from study.training.augment import evaluation_resize
from study.training.config import TrialConfig
from study.training.course import Course
from study.training.diverged import Diverged
from study.training.loop import TrainingLoop
from study.training.stack.layers import Joiner
from study.training.stack.lifted import Lifted, lift
from study.training.stack.optimizers import StackedOptimizer
from study.training.stack.slots import Slot, marked, slots
from study.training.stack.together import varying

LEAST = 64
"""Samples of a batch of evaluation at least."""

TINY = 1e-6
"""As `torch.nn.utils.clip_grad_norm_` adds to a norm."""


class Program:
    """Trains the rows' networks and evaluates them; their tensors are its own until they are stacked elsewhere.

    Args:
        trials: that go together, on one device.
        courses: theirs, from `begin`.
        shared: all rows have the order, the batches and the augmentation of the first.

    Raises:
        ValueError: a number of the method that differs is not kept by its objects as it is.
    """

    def __init__(self, trials: Sequence[TrainingLoop], courses: Sequence[Course], shared: bool = False) -> None:
        self._trials, self._courses, self.rows, self._shared = trials, courses, len(trials), shared
        first = trials[0].config
        keys = varying([trial.config for trial in trials])
        config = TrialConfig(first.data, first.model, marked(first.method, keys), first.train)
        with torch.random.fork_rng(devices=[]):
            self._template = type(trials[0])(config, trials[0].given, str(trials[0].device), False, trials[0])
        self._template.method.begin(courses[0].labels)
        places = slots(self._template.method, config.method)
        if lost := sorted(key for key, found in places.items() if not found):
            raise ValueError(f"method.{lost[0]}: {first.method['name']} keeps something else than this number")
        of_method, of_probes = Joiner(), Joiner()
        self._buffers = list(lift(self._template.method, [trial.method for trial in trials], of_method))
        list(lift(self._template.probes, [trial.probes for trial in trials], of_probes))
        self._main = StackedOptimizer(of_method.parameters, [course.main for course in courses])
        self._beside = StackedOptimizer(of_probes.parameters, [course.beside for course in courses])
        self._numbers = [(places[key], self._of_rows(key)) for key in sorted(keys)]
        self._values: list[tuple[list[Slot], Tensor]] = []
        self._augments = augment.is_random(first.train.augmentation)
        self._clip = self._clip_norms()
        self._labels = self._same_labels()
        of_batch = None if shared else 0
        of_labels = None if shared and self._labels is not None else 0
        self._losses = torch.vmap(self._of_a_row, in_dims=(of_batch, of_batch, of_labels, 0, 0))
        self._places = torch.arange(self.rows, device=self._template.device)

    def begin_epoch(self, epochs: Sequence[int]) -> None:
        """Before the steps of an epoch, which is the `epochs[n]`-th of row n, from 1 on."""
        for trial, epoch in zip(self._trials, epochs, strict=True):
            trial.method.begin_epoch(epoch, trial.options.epochs)
        self._template.method.begin_epoch(epochs[0], self._trials[0].options.epochs)
        self._main.take_rates()
        self._template.method.train()
        of_buffers = [
            ([self._buffer(self._template.method, name)], self._stacked_buffer(name)) for name in self._buffers
        ]
        self._values = self._numbers + of_buffers

    def batches(self) -> Iterator[list[Tensor]]:
        """Of each step, the positions of each row's samples, (B,)."""
        if self._shared:
            self._share_chance()
            for on_device, _ in self._trials[0].batches(self._courses[0].order):
                yield [on_device] * self.rows
            self._share_chance()
            return
        for parts in zip(
            *(trial.batches(course.order) for trial, course in zip(self._trials, self._courses, strict=True)),
            strict=True,
        ):
            yield [on_device for on_device, _ in parts]

    def views(self, positions: list[Tensor]) -> Tensor:
        """The samples of all rows as their networks see them, (N, V, B, ...); shared ones lie there once."""
        if self._shared:
            one = self._trials[0].views(positions[0], self._courses[0].chance)
            return one.expand(self.rows, *one.shape)
        if self._augments:
            of_rows = [
                trial.views(index, course.chance)
                for trial, course, index in zip(self._trials, self._courses, positions, strict=True)
            ]
            return torch.stack(of_rows)
        together = self._template.views(torch.cat(positions), self._courses[0].chance)
        return together.unflatten(1, (self.rows, -1)).transpose(0, 1)

    def labels(self, positions: list[Tensor]) -> Labels:
        """Those of all rows' samples, (N, B, ...), or of shared ones, (B, ...)."""
        if self._labels is not None and self._shared:
            return self._labels.at(positions[0])
        if self._labels is not None:
            return self._labels.at(torch.stack(positions))
        return _labels([course.labels.at(index) for course, index in zip(self._courses, positions, strict=True)])

    def step(self, positions: list[Tensor], views: Tensor) -> Tensor:
        """One step of all rows; their losses times the samples, (N,)."""
        labels = self.labels(positions)
        given = {name: value for name, value in vars(labels).items() if value is not None}
        before = [[(place, key, place[key]) for place, key in places] for places, _ in self._values]
        try:
            batch = (views[0], positions[0]) if self._shared else (views, torch.stack(positions))
            losses, totals = self._losses(*batch, given, [value for _, value in self._values], self._places)
        finally:
            for places in before:
                for place, key, value in places:
                    place[key] = value
        self._main.zero_grad()
        self._beside.zero_grad()
        totals.sum().backward()
        if self._clip is not None:
            self._main.clip(self._clip, TINY)
        self._main.step()
        self._beside.step()
        return losses.detach() * len(positions[0])

    @torch.no_grad()
    def measured(self, split: str, final: Sequence[bool]) -> list[dict[str, float] | Diverged]:
        """Of each row the metrics of a split, what `train.final` names too where its word is `final`."""
        features, method = self._features(split), self._template.method.eval()
        together = not method.equalizes_odds and self._template.options.inferred_groups == "none"
        finite = all(bool(one.isfinite().all()) for one in features.values())
        if not together or not finite or any(final):
            return [self._of_row(row, split, features, final[row]) for row in range(self.rows)]
        values = torch.vmap(partial(self._template.evaluate.measured, split))(features)
        told = torch.stack([value.double() for value in values.values()], 1).tolist()
        return [dict(zip(values, of_row, strict=True)) for of_row in told]

    def _of_row(self, row: int, split: str, features: dict[str, Tensor], final: bool) -> dict[str, float] | Diverged:
        """The metrics of one row, by its own networks."""
        evaluate = self._trials[row].evaluate
        try:
            return evaluate.of_features(split, {name: of_rows[row] for name, of_rows in features.items()}, final)
        except Diverged as error:
            return error

    def _features(self, split: str) -> dict[str, Tensor]:
        """By encoder, the features of a whole split, (N, samples, F) float32."""
        template, options = self._template, self._template.options
        data, device = template.split(split), template.device
        size = max(LEAST, template.evaluate.batch // self.rows)
        found: dict[str, Tensor] = {}
        for name, encoder in template.method.eval().encoders().items():
            with torch.autocast(device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
                parts = []
                for index in data.in_order(size):
                    inputs = data.normalised(evaluation_resize(data.pixels(index), options.evaluation_size))
                    parts.append(cast(Lifted, encoder).of_shared(inputs).float())
            found[name] = torch.cat(parts, 1)
        return found

    def _of_a_row(
        self, views: Tensor, index: Tensor, labels: dict[str, Tensor], values: list[Tensor], _: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The method's loss, and that with the probes', of one row; the last argument says only that rows are many."""
        for (places, _), value in zip(self._values, values, strict=True):
            for place, key in places:
                place[key] = value
        template = self._template
        loss, of_probes = template.losses(Batch(views, Labels(**labels), index), template.method)
        return loss, loss + of_probes

    def _of_rows(self, key: str) -> Tensor:
        """A number of the `method` section of each row, (N,)."""
        values = [float(trial.config.method[key]) for trial in self._trials]
        like = next(self._trials[0].method.parameters())
        return torch.tensor(values, dtype=like.dtype, device=like.device)

    def _clip_norms(self) -> Tensor | None:
        norms = [trial.options.clip_norm for trial in self._trials]
        if norms[0] is None:
            return None
        return torch.tensor([norm or math.inf for norm in norms], device=self._template.device)

    def _share_chance(self) -> None:
        """Let all rows draw on as the first does."""
        first, *others = self._courses
        for course in others:
            course.order.set_state(first.order.get_state())
            course.chance.set_state(first.chance.get_state())

    def _same_labels(self) -> Labels | None:
        """The labels of the training split, where they are the same for all rows: those of the data."""
        sources = {trial.config.method.get("bias_source", LABELS) for trial in self._trials}
        return self._courses[0].labels if sources == {LABELS} else None

    @staticmethod
    def _buffer(method: nn.Module, name: str) -> Slot:
        inside, _, leaf = name.rpartition(".")
        return cast(dict[str, Any], method.get_submodule(inside)._buffers), leaf

    def _stacked_buffer(self, name: str) -> Tensor:
        return torch.stack([trial.method.get_buffer(name) for trial in self._trials])


def _labels(rows: Sequence[Labels]) -> Labels:
    """Labels of all rows as one."""
    named: dict[str, Any] = {
        name: None if value is None else torch.stack([vars(row)[name] for row in rows])
        for name, value in vars(rows[0]).items()
    }
    return Labels(**named)
