"""Constraints that nothing in a study keeps, and what comes nearest to them."""

from study.analysis.statistics import formatting
from study.metrics.metric_format import format_metric
from study.ranking import FittedReference, Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.json_documents import Statement
from study.spec.objective import Objective, TrialScore


class NoConfigurationKeepsConstraints(Statement):
    """No configuration keeps the constraints, and which one comes nearest.

    Attributes:
        goal: the objective with its constraints.
        nearest: the configuration, with the score that it is judged by.
        where: that others kept them elsewhere, as ` on fresh seeds`; empty where none did.
        reference: the nearest of what needs no search; None: none was judged.
    """

    goal: Objective
    nearest: Arm
    score: TrialScore
    where: str
    reference: FittedReference | None

    def __str__(self) -> str:
        kept = formatting.join_with_and(map(str, self.goal.constraints))
        has = self._violation_text(self.score)
        said = f"No configuration keeps {kept}{self.where}; the nearest, {self.nearest.label_in_sentence}, {has}."
        if self.reference is None or self.reference.score is None:
            return said
        them = "them" if len(self.goal.constraints) > 1 else "it"
        who, has = self.reference.name_in_sentence, self._violation_text(self.reference.score)
        return f"{said} What needs no search does not keep {them}, either; there the nearest, {who}, {has}."

    def _violation_text(self, score: TrialScore) -> str:
        """Return what a score has of the constraint, or, of several, which of them it misses."""
        constraints, [by, *others] = self.goal.constraints, score.constraint_violations
        if others:
            return f"misses {self.goal.broken_constraints_text(score)}"
        return f"has {format_metric(constraints[0].metric, constraints[0].value_at_violation(by))}"


def find_unkept_constraints(results: Results) -> NoConfigurationKeepsConstraints | None:
    """Return what comes nearest to the constraints where nothing keeps them.

    None where something does: a configuration by what it is judged by, one that did not run on fresh seeds in the
    search, or a reference.
    """
    judged = next(iter(results.scored_candidates), None)
    if judged is None or not judged[1].total_violation or results.spec.final_seeds is not None:
        return None
    if results.reference_as_result or results.spec.varied_data_keys:
        return None
    kept_in_search = [each for each in results.ranked_all if not each.score.total_violation]
    if any(each.confirmed_score is None for each in kept_in_search):
        return None
    candidate, score = judged
    arm = arm_of_candidate(results.spec, candidate)
    where = f" on {formatting.fresh_seeds_text(results.spec)}" if kept_in_search else ""
    return NoConfigurationKeepsConstraints(results.spec.objective, arm, score, where, results.best_reference)
