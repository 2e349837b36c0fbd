"""Hyperband: successive halving in all the brackets that fit."""

from study.spec.declarations import Bracket, expected
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping.asha import Asha


class Hyperband(Asha):
    """Asha's decisions in as many brackets as Li et al. (2018, JMLR 18, Algorithm 1) and Optuna's HyperbandPruner have.

    These are 1 + floor(log_reduction(epochs/grace)). As there, each gets the same budget. There a trial begins anew at
    each rung; here it goes on, so a bracket's share is inverse to the epochs that one of its trials is expected to run.
    """

    about = "asha in all the brackets that fit, with the same budget each"
    has_brackets = False

    @classmethod
    def grace(cls, rule: Rule, epochs: int) -> int:
        return 1 if rule.grace is None else rule.grace

    @classmethod
    def brackets(cls, rule: Rule, epochs: int) -> list[Bracket]:
        count = cls.most_brackets(rule, epochs)
        return cls.shared(rule, epochs, count, lambda rungs: 1 / expected(rungs, rule, epochs))
