"""Trials trained as one, epoch by epoch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from study.methods import Batch
from study.training.chosen_weights import Choice
from study.training.clock import Clock
from study.training.course import Course
from study.training.diverged import Diverged
from study.training.loop import TrainingLoop
from study.training.stack.alone import Alone
from study.training.stack.layers import beside
from study.training.stack.program import Program
from study.training.stack.together import apart

Draws = Literal["own", "shared"]
"""Whose random numbers a trial in a stack has."""

Result = dict[str, float] | Diverged
"""Of an epoch of a trial: its metrics, or why it has none."""


@dataclass
class Member:
    """A trial in a stack.

    Attributes:
        trial: whose networks are trained.
        course: from its `begin`.
        epoch: epochs that are over.
    """

    trial: TrainingLoop
    course: Course
    epoch: int

    @property
    def over(self) -> bool:
        """Whether it has had all its epochs."""
        return self.epoch >= self.trial.options.epochs


class Apart(ValueError):
    """Trials cannot be trained as one; why, is in the message."""


class Stack:
    """Trials that are trained as one, see `study.training.stack`.

    Attributes:
        members: in the order in which they joined.

    Args:
        draws: `own`: each trial has the order, the batches and the augmentation of its own seed, as if it were alone.
            `shared`: all have those of the trial that has been here the longest; what depends on the batch alone is
            computed once.
    """

    def __init__(self, draws: Draws = "own") -> None:
        self.members: list[Member] = []
        self._shared = draws == "shared"
        self._program: Program | Alone | None = None

    def join(
        self,
        trial: TrainingLoop,
        resume: Path | None = None,
        pause: float = 0.0,
        choice: Choice | None = None,
        ended: Path | None = None,
    ) -> Member:
        """Take a trial in, to go on from the state that it or another stack wrote to `resume`; see `TrainingLoop.run`.

        Raises:
            Apart: it cannot be trained together with those that are here.
            Unusable: as `TrainingLoop.run`.
        """
        first = self.members[0].trial if self.members else trial
        why = apart(first.config, trial.config)
        if why is None and (
            first.dataset is not trial.dataset and first.dataset.fingerprint != trial.dataset.fingerprint
        ):
            why = "the data differ"
        if why is None and first.device != trial.device:
            why = "the device differs"
        if why is not None:
            raise Apart(why)
        course = trial.begin(resume, pause, choice, ended)
        self.members.append(Member(trial, course, course.done))
        self._program = None
        return self.members[-1]

    def leave(self, member: Member) -> None:
        """Take a trial out between two epochs. It has its tensors to itself then, and can be evaluated and saved."""
        self.members.remove(member)
        self._program = None
        trial, course = member.trial, member.course
        tensors: list[torch.Tensor] = [*trial.method.parameters(), *trial.probes.parameters()]
        tensors += [*trial.method.buffers(), *trial.probes.buffers()]
        for optimizer in (course.main, course.beside):
            tensors += [
                value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)
            ]
        for tensor in tensors:
            beside([tensor])

    def epoch(self) -> list[Result]:
        """The next epoch of each member: what `TrainingLoop.run` would yield.

        Times are those of the stack's epoch divided by its rows. A row that diverged goes on being trained until it
        leaves, and does no harm to others. The state of each is written as `TrainingLoop.run` does: for an epoch that
        the caller knows of, once the next is asked for.

        Raises:
            Apart: these cannot be trained as one, which shows once their networks are put together.
        """
        members = self.members
        for member in members:
            if member.epoch > member.course.done:
                member.course.keep(member.epoch, member.trial.options.epochs)
        if self._program is None:
            pairs = [(member.trial, member.course) for member in members]
            try:
                self._program = self._of(*zip(*pairs, strict=True))
            except ValueError as error:
                raise Apart(str(error)) from error
        program, device = self._program, members[0].trial.device
        clock = Clock(device)
        program.begin_epoch([member.epoch + 1 for member in members])
        total, count = torch.zeros(len(members), device=device), 0
        for positions in program.batches():
            with clock.phase("data"):
                views = program.views(positions)
            with clock.phase("training"):
                total += program.step(positions, views)
                count += len(positions[0])
        losses = (total / count).tolist()
        with clock.phase("evaluation"):
            for member in members:
                member.epoch += 1
                member.trial.method.eval()
            known: dict[str, list[Result]] = {}
            results = []
            for row, member in enumerate(members):
                member.course.main.step()  # of no gradient: nothing moves, and the schedule sees a step before its own
                member.course.rates.step()
                batch = Batch(views[row], member.course.labels.at(positions[row]), positions[row])
                results.append(self._end(row, losses[row], batch, program, known))
        figures = clock.epoch(images=count * len(members))
        shares = {name: value / len(members) if name.startswith("time/") else value for name, value in figures.items()}
        return [result if isinstance(result, Diverged) else result | shares for result in results]

    def _of(self, trials: tuple[TrainingLoop, ...], courses: tuple[Course, ...]) -> Program | Alone:
        return Program(trials, courses, self._shared) if len(trials) > 1 else Alone(trials[0], courses[0])

    def _end(
        self, row: int, loss: float, batch: Batch, program: Program | Alone, known: dict[str, list[Result]]
    ) -> Result:
        """The end of a member's epoch; the metrics of a split are computed once for all rows, and `known` then."""
        member = self.members[row]

        def measure(split: str, final: bool) -> dict[str, float]:
            if split not in known:
                last = [other.over and other.course.chosen is None for other in self.members]
                needed = [
                    over and bool(other.trial.options.final) for over, other in zip(last, self.members, strict=True)
                ]
                known[split] = program.measured(split, needed)
            result = known[split][row]
            if isinstance(result, Diverged):
                raise result
            return result

        try:
            return member.trial.end_epoch(member.course, member.epoch, loss, batch, measure)
        except Diverged as error:
            return error


def run(trials: Sequence[TrainingLoop], draws: Draws = "own") -> Iterator[list[Result | None]]:
    """Train trials as one: by epoch, what each yields, None for one that is over or diverged before."""
    stack, places = Stack(draws), {}
    for place, trial in enumerate(trials):
        places[id(stack.join(trial))] = place
    while stack.members:
        told: list[Result | None] = [None] * len(trials)
        members = list(stack.members)
        for member, result in zip(members, stack.epoch(), strict=True):
            told[places[id(member)]] = result
            if member.over or isinstance(result, Diverged):
                stack.leave(member)
        yield told
