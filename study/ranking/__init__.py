"""Which configuration is best, and by which rule; see `study.ranking.results`."""

from study.ranking.candidates import Candidate as Candidate
from study.ranking.candidates import FittedReference as FittedReference
from study.ranking.results import Results as Results
from study.ranking.results import cached_per_results as cached_per_results
from study.ranking.trial_statistics import RELATIVE_TOLERANCE as RELATIVE_TOLERANCE
from study.ranking.trial_statistics import SeedStatistics as SeedStatistics
from study.ranking.trial_statistics import mean_score as mean_score
from study.ranking.trial_statistics import seed_statistics as seed_statistics
from study.ranking.trial_statistics import statistics_by_metric as statistics_by_metric
