"""Random events, each of which can follow those before it, as drivers and commands write them."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from study.home.events import (
    ENDED_STATES,
    AblationRequested,
    ConfigurationEnqueued,
    ConfirmRequested,
    EpochReported,
    Event,
    ModelEvaluated,
    NodeExcluded,
    RequestRefused,
    RunLost,
    SearchEndRequested,
    SearchExtended,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialsRetried,
    TrialStarted,
    TrialStopRequested,
    TrialTested,
    TrialUntested,
)
from study.home.record import StudyRecord, TrialRecord

EPOCHS = 3
"""Epochs of a trial, in full."""


def next_event(random: Random, record: StudyRecord, time: float) -> Event:
    """One that can come next at a time, in seconds since the epoch, of one that was created."""
    options = list(_running(random, record) if record.state == "running" else _at_rest(random, record))
    return replace(random.choice(options), time=time)


def _running(random: Random, record: StudyRecord) -> Iterator[Event]:
    number = len(record.trials)
    params = {"method.alpha": random.random(), "method.lambda": 1.0, "method.epsilon": 0.25}
    stage = random.choice(["search", "search", "baseline", "confirm", "replicate", "ablation", "rule"])
    if number == 0 or stage in ("search", "baseline", "ablation"):
        yield TrialDecided(number, "search" if number == 0 else stage, params, random.randrange(3))
    else:
        of = random.choice(list(record.trials))
        yield TrialDecided(number, stage, record.trials[of].params, random.randrange(3, 9), of)
    for trial in record.trials.values():
        yield from _of_trial(random, trial)
    yield random.choice(
        [
            ConfigurationEnqueued("q", params),
            SearchEndRequested("e"),
            RequestRefused("r", "no"),
            NodeExcluded("n", "old"),
        ]
    )
    yield SessionClosed(random.choice(["complete", "interrupted"]), random.choice([None, "trials"]))


def _of_trial(random: Random, trial: TrialRecord) -> Iterator[Event]:
    number, epoch = trial.number, trial.n_epochs + 1
    value = None if (number + epoch) % 3 == 0 else 1 / (number + epoch)  # an epoch that runs again is the same again
    if trial.state == "running":
        if trial.n_epochs < EPOCHS:
            yield EpochReported(number, epoch, {"val/accuracy": value, "train/loss": 1.0})
            yield TrialStopRequested("s", number)
        else:
            yield TrialEnded(number, "complete")
        yield RunLost(
            number, trial.attempt + 1, "OOM", "no room", random.choice([None, True]), random.choice([None, True])
        )
        yield random.choice(
            [TrialEnded(number, "pruned", None, "asha"), TrialEnded(number, "failed", "BUG", "it broke")]
        )
    elif trial.state in ENDED_STATES:
        yield random.choice([TrialTested(number, {"test/accuracy": 0.5}), TrialUntested(number, "weights are gone")])
    else:
        behind, device = random.choice([0, trial.n_epochs]), random.choice([None, {"name": "cpu"}])
        yield TrialStarted(number, f"node:{number}", behind, None, device)


def _at_rest(random: Random, record: StudyRecord) -> Iterator[Event]:
    yield from [SessionOpened(owner="ada", version="1", placement=random.choice([None, {"resources.cpu": 2}]))] * 3
    yield ModelEvaluated(trial=0, split="test", by="study evaluate")
    ended = [trial.number for trial in record.trials.values() if trial.state in ("complete", "pruned")]
    again = [trial.number for trial in record.trials.values() if trial.state in ("failed", "pruned")]
    if record.sessions:
        yield SearchExtended(random.randrange(5, 30))
        yield ConfirmRequested(random.randrange(1, 4), random.randrange(1, 4), random.random() < 0.5)
    if ended:
        yield AblationRequested(ended[0], (("method.alpha",), ("method.lambda", "method.epsilon")), 1, 2)
    if again:
        yield TrialsRetried(tuple(random.sample(again, random.randrange(1, len(again) + 1))))
