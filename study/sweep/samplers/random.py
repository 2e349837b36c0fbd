"""Independent draws."""

from typing import TYPE_CHECKING

from study.sweep.samplers import OptunaStrategy

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler


class RandomStrategy(OptunaStrategy):
    """Draws each trial independently of the others."""

    good_for = "covering the space, statements about chance"
    limits = "learns nothing"
    independent = foreseeable = True
    guided = False

    def _sampler(self, seed: int) -> "BaseSampler":
        from optuna.samplers import RandomSampler

        return RandomSampler(seed=seed)
