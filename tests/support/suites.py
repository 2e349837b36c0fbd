"""A small suite, and what its searches gave, written as ledgers."""

from pathlib import Path

from helpers import Told, write_ledger

from study.home.events import SessionClosed
from study.home.folder import Home
from study.home.ledger import Ledger
from study.spec.suite import Suite, SuiteSearch, load_suite

TEXT = """\
name: small
base:
  model: {name: small_conv_net, width: 4}
  train: {batch_size: 128, learning_rate: 0.003}
methods:
  weak:
    method: {name: cross_entropy}
    space: {train.learning_rate: {low: 0.001, high: 0.01}}
  strong:
    method: {name: sup_con}
    space: {method.temperature: {low: 0.1, high: 0.5}}
data:
  rho_80: {name: biased_digits, rho: 0.8}
  rho_95: {name: biased_digits, rho: 0.95}
rules: [accuracy, unbiased_accuracy]
searches: 2
budget: {trials: 2, epochs: 1, seeds: 2}
"""

VALUES = {
    ("weak", "rho_80", 1): ((0.60, 0.62), (0.70, 0.70)),
    ("weak", "rho_80", 2): ((0.63, 0.67), (0.72, 0.72)),
    ("weak", "rho_95", 1): ((0.30, 0.34), (0.40, 0.40)),
    ("weak", "rho_95", 2): ((0.36, 0.36), (0.42, 0.44)),
    ("strong", "rho_80", 1): ((0.80, 0.82), (0.90, 0.90)),
    ("strong", "rho_80", 2): ((0.83, 0.87), (0.92, 0.92)),
    ("strong", "rho_95", 1): ((0.70, 0.74), (0.80, 0.80)),
    ("strong", "rho_95", 2): ((0.76, 0.76), (0.82, 0.84)),
}
"""Test accuracy on two fresh seeds of what accuracy picks, and of what unbiased accuracy picks."""


def write_suite(folder: Path, text: str = TEXT) -> str:
    """Write the suite's file; gives its path."""
    (folder / "small.yaml").write_text(text)
    return str(folder / "small.yaml")


def small_suite(folder: Path, text: str = TEXT) -> Suite:
    return load_suite(write_suite(folder, text))


def tell(home: Home, search: SuiteSearch, *tests: tuple[float, float], closed: str | None = "complete") -> None:
    """Write the study of a search: its first trial is picked by accuracy, its second by unbiased accuracy.

    Args:
        tests: of each of the two trials the test accuracy on two fresh seeds; of a trial without, no seed ran.
        closed: how its driver ended; None: it did not come to its end.
    """
    folder = home.create_study(search.spec)
    key = next(iter(search.spec.search.space))
    params = [{key: 0.1 + 0.1 * number} for number in range(2)]
    further = [{"val/unbiased_accuracy": 0.5}, {"val/unbiased_accuracy": 0.6}]
    trials = [
        Told("search", [value], params=one, further=more, seed=search.spec.seed)
        for value, one, more in zip((0.9, 0.8), params, further, strict=True)
    ]
    for number, values in enumerate(tests):
        for at, value in enumerate(values, 1):
            told = {"test/accuracy": value}
            more = further[number]
            trials.append(
                Told("rule", [0.7], "complete", params[number], search.spec.seed + at, number, told, further=more)
            )
    write_ledger(folder.ledger_file, *trials)
    if closed is not None:
        ledger = Ledger(folder.ledger_file)
        ledger.append(SessionClosed(state=closed, enough="trials"))
        ledger.close()
