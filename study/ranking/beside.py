"""What a configuration would show at another epoch, printed beside its result as papers do; nothing is chosen by it."""

from collections.abc import Sequence

from study.home.record import TrialRecord
from study.ranking.epochs import LAST
from study.ranking.order import Spread, spread
from study.spec import StudySpec

TEST_BEST = "at the best epoch on the test split, which chose nothing"


def beside(spec: StudySpec, trials: Sequence[TrialRecord]) -> dict[str, dict[str, Spread]]:
    """The study's metrics over trials at other epochs than the chosen one: by which epoch, then by metric.

    `LAST` where `search.epoch` is best: also of the test split, where each epoch read it. `TEST_BEST` where each epoch
    read it (`train.report_test`): the metric on the test split, at each trial's best epoch by that. It looks, on
    average, too good.
    """
    metrics = [f"{split}/{name.split('/')[1]}" for name in spec.objective.needed for split in ("val", "test")]
    last = {name: spread(trial.last(name) for trial in trials) for name in metrics}
    test_best = {spec.test_metric: spread(_best(spec, trial) for trial in trials)}
    by_epoch = {LAST: last if spec.objective.window is not None else {}, TEST_BEST: test_best}
    spreads = {which: {name: value for name, value in of.items() if value} for which, of in by_epoch.items()}
    return {which: of for which, of in spreads.items() if of}


def _best(spec: StudySpec, trial: TrialRecord) -> float | None:
    values = [value for report in trial.reports if (value := report.get(spec.test_metric)) is not None]
    return (min if spec.mode == "min" else max)(values, default=None)
