"""What is special to each sampler."""

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import quickstart
from optuna.trial import TrialState

from study.spec import StudySpec, load_study
from study.spec.objective import TrialScore
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.sweep.optuna_history import ConfigurationOutcome, OptunaHistory
from study.sweep.search_stage import UntriedSuggestions

SPACE = "{method.alpha: {low: 0.0, high: 1.0}, method.lambda: {low: 0.0, high: 1.0}}"
BEST = {"method.alpha": 0.8, "method.lambda": 0.3}
WORST = {"method.alpha": 0.0, "method.lambda": 1.0}
TWO = "search.metric=[val/accuracy, val/equalized_odds]"
LIMITED = "search.constraints=[val/equalized_odds <= 0.1]"
TWO_LIMITS = "search.constraints=[val/equalized_odds <= 0.1, val/accuracy >= 0.8]"


def spec_of(sampler: str, *assignments: str) -> StudySpec:
    given = assignments or (f"search.space={SPACE}",)
    return quickstart(f"search.sampler={sampler}", "search.baseline=null", *given)


def away(params: dict[str, Any]) -> float:
    return math.dist([params[key] for key in BEST], list(BEST.values()))


def score(*gains: float, excesses: tuple[float, ...] = ()) -> TrialScore:
    return TrialScore(gains, gains, excesses)


def complete(number: int, *gains: float, excesses: tuple[float, ...] = ()) -> ConfigurationOutcome:
    return ConfigurationOutcome(number, "complete", (), score(*gains, excesses=excesses))


def searched(sampler: UntriedSuggestions, trials: int, at: int = 0) -> list[dict[str, Any]]:
    """Suggestions, each of which the sampler hears of before the next: the nearer to BEST the better."""
    found = []
    for number in range(at, at + trials):
        params = sampler.suggest_untried_params(number)
        assert params is not None
        found.append(params)
        sampler.history.add_outcome(complete(number, -away(params)))
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


SEARCHERS = [("tpe", 50), pytest.param("gp", 24, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("sampler", "trials"), SEARCHERS)
def test_what_was_good_draws_the_search(sampler: str, trials: int) -> None:
    found = [away(params) for params in searched(UntriedSuggestions(spec_of(sampler)), trials)]
    assert mean(found[-10:]) < 0.7 * mean(found[:10])


class TestGrid:
    SPEC = spec_of(
        "grid", "search.space={method.lambda: {low: 0, high: 1, step: 1}, method.epsilon: {choices: [0.1, 0.0]}}"
    )
    CELLS = ((0.0, 0.1), (0.0, 0.0), (1.0, 0.1), (1.0, 0.0))

    def test_gives_every_cell_once_in_the_files_order_and_then_none(self) -> None:
        sampler = UntriedSuggestions(self.SPEC)
        found = [sampler.suggest_untried_params(number) for number in range(4)]
        assert tuple(tuple(params.values()) for params in found if params) == self.CELLS
        assert sampler.suggest_untried_params(4) is None
        assert sampler.suggest_untried_params(4) is None

    def test_leaves_out_what_was_given(self) -> None:
        sampler = UntriedSuggestions(self.SPEC)
        sampler.add_decided_params(0, {"method.lambda": 0, "method.epsilon": 0.1})
        sampler.add_decided_params(1, {"method.lambda": 1.0, "method.epsilon": 0.1})
        found = [sampler.suggest_untried_params(number) for number in (2, 3, 4)]
        assert found == [
            {"method.lambda": 0.0, "method.epsilon": 0.0},
            {"method.lambda": 1.0, "method.epsilon": 0.0},
            None,
        ]


def test_sixteen_points_of_sobols_sequence_are_one_in_each_sixteenth_of_every_range() -> None:
    sampler = UntriedSuggestions(spec_of("qmc"))
    found = [sampler.suggest_untried_params(number) for number in range(16)]
    for key in BEST:
        assert sorted(int(params[key] * 16) for params in found if params) == list(range(16))


class TestHistory:
    def history(self, *given: str) -> OptunaHistory:
        return OptunaHistory(spec_of("tpe", f"search.space={SPACE}", *given))

    def fill(
        self, history: OptunaHistory, gains: list[tuple[float, ...]], excesses: list[float] | None = None
    ) -> OptunaHistory:
        for number, gain in enumerate(gains):
            history.add_trial(number, WORST)
            history.add_outcome(complete(number, *gain, excesses=(excesses[number],) if excesses else ()))
        return history

    def numbers(self, history: OptunaHistory, best: int, newest: int, pruned: bool = True) -> list[int]:
        return [trial.number for trial in history.select_trials(best, newest, pruned=pruned)]

    def test_of_one_metric_the_best_that_keep_the_constraints_and_the_newest_are_seen(self) -> None:
        gains = [(0.1,), (0.9,), (0.5,), (0.95,), (0.2,), (0.3,)]
        history = self.fill(self.history(LIMITED), gains, [0.0, -0.1, -0.2, 0.5, 0.0, 0.0])
        assert self.numbers(history, 2, 1) == [1, 2, 5]

    def test_of_several_metrics_those_are_seen_than_which_none_is_better(self) -> None:
        history = self.fill(self.history(TWO), [(1, 1), (3, 0), (2, 2), (0, 3), (1, 2), (0, 0)])
        assert self.numbers(history, 9, 1) == [1, 2, 3, 5]

    def test_all_that_run_are_seen_and_stopped_ones_where_wanted(self) -> None:
        history = self.fill(self.history(), [(0.1,), (0.9,)])
        for number in (2, 3, 4):
            history.add_trial(number, BEST)
        history.add_outcome(ConfigurationOutcome(2, "pruned", [(1, score(0.3))]))
        history.add_outcome(ConfigurationOutcome(3, "failed"))
        assert self.numbers(history, 1, 1) == [1, 2, 4]
        assert self.numbers(history, 1, 1, pruned=False) == [1, 4]
        assert history.trials[4].state == TrialState.RUNNING

    def test_each_constraint_is_told_by_itself_with_the_room_that_it_leaves(self) -> None:
        """Clipped at 0 and summed they tell a Gaussian process nothing of how near a limit is."""
        spec = spec_of("gp", f"search.space={SPACE}", TWO_LIMITS)
        history = OptunaHistory(spec)
        far = spec.objective.score_of_report({"val/accuracy": 0.9, "val/equalized_odds": 0.5})
        kept = spec.objective.score_of_report({"val/accuracy": 0.9, "val/equalized_odds": 0.05})
        missed = spec.objective.score_of_report({"val/accuracy": 0.7, "val/equalized_odds": 0.05})
        for number, end in enumerate((far, kept, missed)):
            history.add_trial(number, BEST)
            history.add_outcome(ConfigurationOutcome(number, "complete", (), end))
        told = [list(trial.constraints.items()) for trial in history.select_trials(9, 9, pruned=False)]
        odds, accuracy = spec.search.constraints
        assert told == [
            [(odds, pytest.approx(0.4)), (accuracy, pytest.approx(-0.1))],
            [(odds, pytest.approx(-0.05)), (accuracy, pytest.approx(-0.1))],
            [(odds, pytest.approx(-0.05)), (accuracy, pytest.approx(0.1))],
        ]
        assert (kept and kept.total_violation, missed and missed.total_violation) == (0.0, pytest.approx(0.1))

    @pytest.mark.parametrize("report", [{"val/accuracy": 0.9}, {"val/accuracy": 0.9, "val/equalized_odds": None}])
    def test_a_trial_that_lacks_what_a_constraint_needs_is_told_as_failed(self, report: dict[str, Any]) -> None:
        spec = spec_of("gp", f"search.space={SPACE}", TWO_LIMITS)
        history = OptunaHistory(spec)
        history.add_trial(0, BEST)
        history.add_outcome(ConfigurationOutcome(0, "complete", (), spec.objective.score_of_report(report)))
        assert (history.trials[0].state, history.trials[0].constraints) == (TrialState.FAIL, {})
        assert history.select_trials(9, 9, pruned=True) == []


def test_constraints_keep_the_search_where_they_are_kept() -> None:
    """The best is where the constraint is missed: alpha above one half."""
    limited = UntriedSuggestions(spec_of("tpe", f"search.space={SPACE}", LIMITED))
    inside = []
    for number in range(40):
        params = limited.suggest_untried_params(number) or {}
        inside.append(params["method.alpha"] <= 0.5)
        limited.history.add_outcome(complete(number, -away(params), excesses=(params["method.alpha"] - 0.5,)))
    assert sum(inside[-15:]) > 10


KINDS = [False, 0, 0.5, True, 1]


@pytest.mark.parametrize("sampler", SAMPLER_CAPABILITIES)
def test_choices_that_python_calls_equal_are_told_apart(sampler: str, tmp_path: Path) -> None:
    file = tmp_path / "kinds.yaml"
    method = {"name": "own_function", "function": "own_functions:train"}
    search = {"space": {"method.rate": {"choices": KINDS}}, "metric": "val/accuracy", "sampler": sampler, "trials": 30}
    file.write_text(yaml.safe_dump({"name": "kinds", "method": method, "train": {"epochs": 4}, "search": search}))
    tried, found = UntriedSuggestions(load_study(str(file))), []
    while (params := tried.suggest_untried_params(len(found))) is not None:
        tried.history.add_outcome(complete(len(found), float(params["method.rate"] is True)))
        found.append(params["method.rate"])
    assert {(type(one), one) for one in found} == {(type(one), one) for one in KINDS}
    assert len(found) == 5
    trials = tried.history.trials.values()
    assert all(trial.params["method.rate"] is one for trial, one in zip(trials, found, strict=True))
