"""How sure it is that the best is better than the other configurations that ran on the same seeds."""

from collections.abc import Iterator
from typing import Literal

from study.analysis.statistics import formatting
from study.analysis.statistics.rivals import Rivals, find_rivals
from study.ranking import Results
from study.ranking.json_documents import Statement
from study.text import pluralise


class BestAmongRivals(Statement):
    """The best against the others that ran on the same seeds.

    Attributes:
        limits: which configurations these are, where there are limits.
    """

    rivals: Rivals
    limits: Literal["", "that keep the limits", "that miss the limits by no more"]

    @property
    def verdict(self) -> Literal["one seed", "better mean", "undecided", "best"]:
        """How the best compares with its rivals.

        `one seed`: nothing tells them apart; `better mean`: another has it; `undecided`: some cannot be told from the
        best.
        """
        best, gap = self.rivals.best, self.rivals.difference_to_runner_up.value
        if self.rivals.seed_counts[1] == 1:
            return "one seed"
        if best.spec.is_better(0.0, gap):  # an incumbent, which is chosen all the same
            return "better mean"
        return "undecided" if self.rivals.undecided_trials else "best"

    def __str__(self) -> str:
        against, best, kept = self.rivals, self.rivals.best, self.limits and f" {self.limits}"
        fewest, most = against.seed_counts
        if self.verdict == "one seed":
            number = against.n_compared - 1
            others = f"{'' if number == 1 else f'{number} '}other complete configuration{'s' * (number > 1)}{kept}"
            where = formatting.arm_folds_and_seeds_text(best, best.spec.metric)
            return f"On {where} alone nothing tells {best.label} from the {others}."
        ran = pluralise(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
        if best.spec.folds:
            ran = f"all folds ({ran} in all)" if fewest >= best.spec.folds else f"some of the folds ({ran})"
        where = (
            f"the {against.n_compared} configurations that ran on {ran}{kept and ' and'}{kept.removeprefix(' that')}"
        )
        if self.verdict == "better mean":
            leader = against.runner_up.label
            name, gap = best.spec.metric, against.difference_to_runner_up
            clear = f", beyond the spread over {best.interval_over_text(name)}" if gap.is_clear else ""
            amount = f"{formatting.difference_with_interval(name, gap)}{clear}"
            return (
                f"Of {where}, {leader} has the best mean; in {name} the difference of {best.label} to it is {amount}."
            )
        if against.undecided_trials:
            others = formatting.trial_numbers_text(against.undecided_trials)
            return f"Of {where}, {others} may be as good as {best.label_in_sentence}."
        over = best.interval_over_text(best.spec.metric)
        return f"{best.label.capitalize()} is the best of {where} (95% confidence over {over})."


class DifferenceToRunnerUp(Statement):
    """The difference of the best to the runner-up."""

    comparison: Rivals

    def __str__(self) -> str:
        name = self.comparison.best.spec.metric
        gap = formatting.difference_with_interval(name, self.comparison.difference_to_runner_up)
        return f"The difference to the runner-up, {self.comparison.runner_up.label}, in {name} is {gap}."


def certainty_statements(results: Results) -> Iterator[BestAmongRivals | DifferenceToRunnerUp]:
    """Yield the best against the others that ran on the same seeds.

    Empty where the result is the baseline or needs no search.
    """
    against, won, best = find_rivals(results), results.best, next(iter(results.ranked_search), None)
    if against is None or best is None or (won and won.trial.stage == "baseline") or results.references_above_best:
        return
    missed = (best.confirmed_score or best.score).total_violation
    kept = BestAmongRivals(against, "that miss the limits by no more" if missed else "that keep the limits")
    said = kept if results.spec.objective.constraints else BestAmongRivals(against, "")
    yield said
    if said.verdict in ("undecided", "best"):
        yield DifferenceToRunnerUp(against)
