"""A stack of one trial: its own step and evaluation, as `Program` has them for several."""

from collections.abc import Iterator, Sequence

from torch import Tensor

from study.methods import Batch
from study.training.course import Course
from study.training.diverged import Diverged
from study.training.loop import TrainingLoop
from study.training.plain_step import plain_step


class Alone:
    """Trains one trial as `TrainingLoop.run` does, bit for bit; what a stack's program costs besides is not paid.

    Args:
        course: of the trial, from `begin`.
    """

    def __init__(self, trial: TrainingLoop, course: Course) -> None:
        self._trial, self._course = trial, course
        self._step = plain_step(trial, course.main, course.beside)

    def begin_epoch(self, epochs: Sequence[int]) -> None:
        """As of `Program`, and so are the others."""
        self._trial.method.begin_epoch(epochs[0], self._trial.options.epochs)
        self._trial.method.train()

    def batches(self) -> Iterator[list[Tensor]]:
        for on_device, _ in self._trial.batches(self._course.order):
            yield [on_device]

    def views(self, positions: list[Tensor]) -> Tensor:
        return self._trial.views(positions[0], self._course.chance)[None]

    def step(self, positions: list[Tensor], views: Tensor) -> Tensor:
        batch = Batch(views[0], self._course.labels.at(positions[0]), positions[0])
        loss = self._step(batch)
        self._course.main.zero_grad(set_to_none=True)
        return loss[None]

    def measured(self, split: str, final: Sequence[bool]) -> list[dict[str, float] | Diverged]:
        try:
            return [self._trial.evaluate(split, final[0])]
        except Diverged as error:
            return [error]
