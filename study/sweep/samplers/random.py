"""Random search."""

from optuna.samplers import BaseSampler, RandomSampler

from study.sweep.samplers import OptunaStrategy


class RandomStrategy(OptunaStrategy):
    """Random search, which draws each trial independently of the others."""

    def _sampler(self, seed: int) -> BaseSampler:
        return RandomSampler(seed=seed)
