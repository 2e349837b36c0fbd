"""Genetic search over many metrics: NSGA-III (Deb and Jain 2014)."""

from study.sweep.samplers.nsga2 import NSGA2Strategy


class NSGA3Strategy(NSGA2Strategy):
    """NSGA-III, which breeds as NSGA-II does, and chooses parents along directions that are spread over the metrics."""

    OPTUNAS = "NSGAIIISampler"
