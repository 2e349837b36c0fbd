"""Freeze-thaw and its model: what leads early and what is best at the end are told apart by the study's own trials."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from course import Course, outcome
from course import spec_of as short

from study.errors import UserError
from study.home.events import ENDED
from study.home.ledger import read
from study.home.record import StudyRecord
from study.spec import StudySpec, load_study
from study.spec.objective import Score
from study.sweep.agenda import Job
from study.sweep.curve_process import CurveProcess
from study.sweep.freeze_thaw import FreezeThaw
from study.sweep.prospects import Prospects
from study.sweep.sampler import Sampler, TrialEnd

RULE = "search.early_stopping={name: freeze_thaw, grace: 4, reduction: 2}"
WHOLE = ("search.early_stopping={name: freeze_thaw, reduction: 2}", "search.sampler=mfgp", "search.trials=14")


def spec(*given: str) -> StudySpec:
    return load_study("quickstart", [RULE, *given])


def params(place: float) -> dict[str, float]:
    return {"method.alpha": 10 ** (3 * place - 3), "method.lambda": 1.0, "method.epsilon": 0.1}


def score(value: float) -> Score:
    return Score((value,), (value,))


def falling(place: float, epoch: int) -> float:
    """Who leads early ends last."""
    return epoch / 40 + (place - 0.5) * (epoch - 12) / 50


def run(rule: FreezeThaw, trial: int, place: float, after: int = 0) -> int:
    """Trains a trial until it pauses or is complete; says behind which epoch."""
    for epoch in range(after + 1, 20):
        if rule.judge(trial, epoch, score(falling(place, epoch))) == "pause":
            return epoch
    rule.completed(trial, score(falling(place, 20)))
    rule.ended(trial, "complete")
    return 20


def played(rule: FreezeThaw) -> list[int]:
    """Epochs of twelve trials, the last seven far from and near to the best in turn."""
    lasted = []
    for trial, place in enumerate((0.1, 0.5, 0.8, 0.3, 0.65, 0.05, 0.9, 0.12, 0.2, 0.95, 0.0, 1.0)):
        rule.decided(trial, params(place))
        lasted.append(run(rule, trial, place))
    return lasted


def test_those_that_lead_early_pause_once_the_order_is_known() -> None:
    lasted = played(FreezeThaw(spec()))
    assert lasted[:3] == [20, 20, 20]
    assert lasted[7] < 20  # ahead of trial 6 and 9 at epoch 5
    assert lasted[9] == 20
    assert lasted[10] < 20


def test_the_same_events_give_the_same_verdicts() -> None:
    quiet, asked = FreezeThaw(spec()), FreezeThaw(spec())
    judge: Callable[..., str] = asked.judge

    def asking(*given: object) -> str:
        verdict = judge(*given)
        asked.thaw(more=True)
        return verdict

    asked.judge = asking  # type: ignore[method-assign, assignment]
    assert played(quiet) == played(asked)
    assert quiet.thaw(more=True) == asked.thaw(more=True)
    assert quiet.thaw(more=False) == asked.thaw(more=False)


def test_an_epoch_that_is_heard_again_changes_nothing() -> None:
    rule = FreezeThaw(spec())
    played(rule)
    assert rule.judge(7, 5, score(0.9)) == "on"


def test_a_trial_that_failed_or_went_on_is_not_thawed() -> None:
    rule = FreezeThaw(spec())
    paused = [trial for trial, epoch in enumerate(played(rule)) if epoch < 20]
    while (trial := rule.thaw(more=False)) is not None:
        assert trial in paused
        rule.ended(trial, "failed")
        paused.remove(trial)


def test_it_pauses_at_parts_of_a_full_run() -> None:
    assert list(FreezeThaw(spec()).pauses_at(0)) == [5, 10]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "given",
    ["search.metric=[val/accuracy, val/worst_group_accuracy]", "search.constraints=[val/equalized_odds <= 0.4]"],
)
def test_several_aims_are_refused(given: str) -> None:
    with pytest.raises(UserError, match="'freeze_thaw' given with several metrics or constraints"):
        spec(given)


def test_the_gradient_of_the_fit_is_that_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, process = np.random.default_rng(0), CurveProcess([0, 0, 1], 3)
    losses = []

    def keep(loss: Callable[..., tuple[float, np.ndarray]], start: np.ndarray, **_: object) -> object:
        losses.append(loss)
        return type("Found", (), {"x": start})

    monkeypatch.setattr("study.sweep.curve_process.minimize", keep)
    trial, rung = np.repeat(np.arange(6), 3)[:14], np.tile(np.arange(3), 6)[:14]
    at = process.fit(draw.random((6, 3)), trial, rung, draw.normal(size=14)) + 0.1
    steps = 1e-6 * np.eye(len(at))
    numeric = [(losses[0](at + step)[0] - losses[0](at - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(losses[0](at)[1], numeric, rtol=1e-4, atol=1e-4)


def suggested(told: Iterator[float], lessons: bool = False) -> list[dict[str, object]]:
    sampler = Sampler(load_study("quickstart", ["search.sampler=mfgp", "search.baseline=null"]))
    if lessons:
        sampler.learn([(params(place), score(place)) for place in (0.1, 0.3, 0.6, 0.9)])
    found = []
    for number, value in enumerate(told):
        given = sampler.ask(number)
        assert given is not None
        found.append(given)
        course = [(epoch, score(value * epoch)) for epoch in range(1, 21)]
        sampler.tell(TrialEnd(number, "complete", course, course[-1][1]))
    return found


def test_the_sampler_goes_where_values_were_good() -> None:
    sampler = Sampler(load_study("quickstart", ["search.sampler=mfgp", "search.baseline=null"]))
    places = []
    for number in range(14):
        given = sampler.ask(number)
        assert given is not None
        place = (np.log10(given["method.alpha"]) + 3) / 3
        places.append(abs(place - 0.7))
        paused = number % 3 == 1
        course = [(epoch, score(epoch / 20 - (place - 0.7) ** 2)) for epoch in range(1, 11 if paused else 21)]
        sampler.tell(TrialEnd(number, "paused" if paused else "complete", course, None if paused else course[-1][1]))
    assert np.mean(places[7:]) < 0.6 * np.mean(places[:4])


def test_a_suggestion_depends_on_the_history_alone() -> None:
    values = [0.3, 0.5, 0.4, 0.6]
    assert suggested(iter(values)) == suggested(iter(values))
    assert suggested(iter(values), lessons=True) == suggested(iter(values), lessons=True)


def test_a_whole_search(tmp_path: Path) -> None:
    """Trials pause and go on, all end, and the ledger tells the same."""
    course = Course(tmp_path / "ledger.jsonl", short(*WHOLE)).play(slots=2)
    kinds = Counter(event["event"] for event in read(course.ledger.path))
    assert kinds["paused"] > 0
    searched = list(course.record.by_stage("search"))
    assert all(trial.state in ENDED for trial in searched)
    assert sum(trial.state == "complete" for trial in searched) >= FreezeThaw.START
    assert outcome(StudyRecord.load(course.ledger.path)) == outcome(course.record)


def test_a_search_that_was_cut_off_goes_on_as_it_would_have(tmp_path: Path) -> None:
    """Made anew before each decision, it decides the same."""
    whole = Course(tmp_path / "whole.jsonl", short(*WHOLE)).play()
    lines = whole.ledger.path.read_text().splitlines(keepends=True)
    decisions = [place for place, event in enumerate(read(whole.ledger.path)) if event["event"] in ("trial", "thawed")]
    for place in decisions[4:24:3]:
        path = tmp_path / f"cut-{place}.jsonl"
        path.write_text("".join(lines[:place]))
        again, expected = Course(path, short(*WHOLE)), read(whole.ledger.path)[place]
        job = again.agenda.next()
        again.ledger.close()
        assert isinstance(job, Job)
        assert job.trial.number == expected["trial"]
        assert dict(job.trial.params) == expected.get("params", dict(job.trial.params))


def test_a_configuration_of_the_study_file_may_lie_outside_the_space() -> None:
    """A logarithm has no place for 0, a choice none for what it does not name."""
    space = "search.space={method.lambda: {low: 0.01, high: 2.0, log: true}, method.epsilon: {choices: [0.1, 0.25]}}"
    prospects = Prospects(load_study("quickstart", [RULE, space]), 2)
    assert prospects.point({"method.lambda": 0.0, "method.epsilon": 0.5}).tolist() == [0.0, 0.5]
    assert prospects.point({"method.lambda": 3.0, "method.epsilon": 0.25}).tolist() == [1.0, 1.0]
