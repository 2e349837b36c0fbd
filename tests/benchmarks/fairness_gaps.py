"""WCL paper Table 3 by each definition of the gap, at the last epoch and over the last ones, as a Markdown page.

    STUDY_DATA=... python tests/benchmarks/fairness_gaps.py RESULTS.jsonl [--data NAME ...] [--splits N] > page.md

Rows and settings are those of `fairness_tables.py` but for two things that its tests brought nearest to the paper: 8
features instead of 128, and on COMPAS ages and priors in three ranges. LfF's q has the best validation accuracy on its
split. Each trial runs with a constant learning rate, on COMPAS also with a cosine decay to a hundredth. After each of
the last epochs the test split is read with the row's own classifier: logistic regression on the frozen features for
contrastive rows. It chooses nothing. What is in RESULTS.jsonl is not trained again: a run that was cut off goes on.

The gaps, of the rates of the output 1 in two groups s at class y: `parity` is |acc(s0) - acc(s1)|, the equation of the
paper's section 6.2; `Eq. 6` is FSCL's equalized odds, here the mean over y of |P(1 | y, s0) - P(1 | y, s1)|; `max` is
the larger of the two, `sum` both together (twice Eq. 6); `positives` is |P(1 | s0) - P(1 | s1)|.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from fairness_tables import CLASSIFIERS, ROWS, TITLES, VARIANTS, Variant, changed, config
from scipy.stats import spearmanr
from scipy.stats import t as student_t

from study import data, published
from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.paper_comparison import CLAIM_RULE_NOTE
from study.reproduce.reproduction import judge_claim
from study.training.trial import Trial

SETTINGS = {
    "adult": VARIANTS["adult"]["8 features instead of 128"],
    "compas": VARIANTS["compas"]["age and priors in three ranges, 8 features"],
}
EPOCHS, LAST = {"adult": 3, "compas": 20}, {"adult": 2, "compas": 5}
SPLITS = {"adult": 5, "compas": 10}
RATES_OF = {"adult": ("constant",), "compas": ("constant", "cosine")}
RATES: dict[str, dict[str, Any]] = {"constant": {}, "cosine": {"schedule": "cosine", "lr_floor": 0.01}}
GRID = {"adult": (0.0, 0.7), "compas": (0.0, 0.3, 0.7, 1.0)}
"""LfF's q."""

GAPS = {
    "parity": "accuracy_parity",
    "Eq. 6": "equalized_odds",
    "max": "max_gap",
    "sum": "sum_gap",
    "positives": "demographic_parity",
}
OURS = "WCL (E_d)"
TABLE = published.load_published_table("wcl-table3")

Figures = dict[str, float]
Trials = Mapping[tuple[str, str, str], Mapping[int, Sequence[Figures]]]
"""By data set, rate and row: by split, the figures of the last epochs."""


def measured(test: Mapping[str, float], word: str) -> Figures:
    """Accuracy and every gap of one evaluation."""
    odds = [abs(test[f"test/{word}group_{y}_0_accuracy"] - test[f"test/{word}group_{y}_1_accuracy"]) for y in (0, 1)]
    plain = {key: test[f"test/{word}{key}"] for key in ("accuracy", *GAPS.values()) if f"test/{word}{key}" in test}
    return plain | {"max_gap": max(odds), "sum_gap": sum(odds)}


def trained(name: str, rate: str, row: str, split: int) -> dict[str, Any]:
    """One row on one split: its figures after each of the last epochs, and the CPU seconds that it took.

    Of several settings it is the one with the best mean validation accuracy over these epochs.
    """
    setting, began = SETTINGS[name], time.process_time()
    variant = Variant(setting.data, setting.model, setting.train | RATES[rate], setting.columns)
    word, found = "" if row in CLASSIFIERS else "lbfgs_", []
    for method in [one for one in ROWS[row] if one.get("q", 0.0) in GRID[name]]:
        of = config(name, row, method, variant, split, EPOCHS[name])
        trial = Trial(of, changed(data.load(of.data), variant.columns), "cpu")
        val, figures = [], []
        for epoch, reported in enumerate(trial.train_epochs(), start=1):
            if epoch > EPOCHS[name] - LAST[name]:
                val.append(reported["val/accuracy"])
                figures.append(measured(trial.evaluate("test", final=True), word))
        found.append((fmean(val), {"last": figures} | ({"q": method["q"]} if "q" in method else {})))
    place = {"data": name, "rate": rate, "row": row, "split": split}
    return place | max(found, key=lambda one: one[0])[1] | {"seconds": time.process_time() - began}


def recorded(file: Path, names: Sequence[str], splits: int | None) -> list[dict[str, Any]]:
    """Every trial that is asked for: those in the file, and the others trained now and added to it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [json.loads(line) for line in lines]
    done = {(one["data"], one["rate"], one["row"], one["split"]) for one in found}
    wanted = [
        (name, rate, row, split)
        for name in names
        for split in range(splits or SPLITS[name])
        for row in ROWS
        for rate in RATES_OF[name]
    ]
    with file.open("a", encoding="utf-8") as out:
        for place in wanted:
            if place not in done:
                found.append(trained(*place))
                print(json.dumps(found[-1]), file=out, flush=True)
    return [one for one in found if (one["data"], one["rate"], one["row"], one["split"]) in set(wanted)]


def by_place(found: Sequence[Mapping[str, Any]]) -> Trials:
    places: dict[tuple[str, str, str], dict[int, Sequence[Figures]]] = {}
    for one in found:
        places.setdefault((one["data"], one["rate"], one["row"]), {})[one["split"]] = one["last"]
    return places


def spread(values: Sequence[float], places: int = 3) -> str:
    return f"{fmean(values):.{places}f} ± {stdev(values):.{places}f}"


def at_end(of: Mapping[int, Sequence[Figures]], key: str, over_last: bool) -> list[float]:
    """By split, the last epoch's value, or the mean of the last ones."""
    return [fmean(one[key] for one in (of[split] if over_last else of[split][-1:])) for split in sorted(of)]


def of_table(trials: Trials, name: str, rate: str, over_last: bool) -> Iterator[str]:
    """Every row's accuracy and gaps beside the paper's."""
    yield from header("row", "accuracy, %", "paper", *GAPS, "paper's EOd")
    for row in ROWS:
        of = trials[name, rate, row]
        accuracy, gap = (TABLE.printed_cell(row, f"{TITLES[name]} {column}").printed for column in ("ACC", "EOd"))
        percent = [100 * value for value in at_end(of, "accuracy", over_last)]
        yield line(
            row, spread(percent, 1), accuracy, *(spread(at_end(of, key, over_last)) for key in GAPS.values()), gap
        )


def noise(trials: Trials, name: str) -> Iterator[str]:
    """How much a gap moves between the last epochs of a trial, and over splits."""
    yield from header(
        "learning rate", "gap", "between last epochs", "over splits, last epoch", "over splits, their mean"
    )
    for rate in RATES_OF[name]:
        for gap in ("parity", "Eq. 6", "max"):
            of_rows = [trials[name, rate, row] for row in ROWS]
            within = [stdev(one[GAPS[gap]] for one in last) for of in of_rows for last in of.values()]
            over = [[stdev(at_end(of, GAPS[gap], mean)) for of in of_rows] for mean in (False, True)]
            yield line(rate, gap, *(f"{rms(values):.3f}" for values in (within, *over)))


def nearness(trials: Trials, name: str) -> Iterator[str]:
    """How far each definition is from the printed gaps over the rows, and whether it orders the rows alike."""
    yield from header(
        "gap", *(f"{word}, {rate}" for rate in RATES_OF[name] for word in ("mean distance", "order (Spearman)"))
    )
    printed = [float(TABLE.printed_cell(row, f"{TITLES[name]} EOd").printed) for row in ROWS]
    for gap, key in GAPS.items():
        cells = []
        for rate in RATES_OF[name]:
            ours = [fmean(at_end(trials[name, rate, row], key, True)) for row in ROWS]
            distance = fmean(abs(one - paper) for one, paper in zip(ours, printed, strict=True))
            cells += [f"{distance:.3f}", f"{spearmanr(ours, printed).statistic:.2f}"]
        yield line(gap, *cells)


def differences(trials: Trials, name: str) -> Iterator[str]:
    """WCL less other rows by split: mean of the last epochs, with the 95% interval of Student's t; and as printed."""
    yield from header(
        "WCL less", "learning rate", "accuracy, points", "paper", *(f"gap, {gap}" for gap in GAPS), "paper"
    )
    printed = {
        row: [float(TABLE.printed_cell(row, f"{TITLES[name]} {one}").printed) for one in ("ACC", "EOd")] for row in ROWS
    }
    for row in ("Baseline", "LAFTR", "DCL", "HCL"):
        accuracy, gap = (ours - other for ours, other in zip(printed[OURS], printed[row], strict=True))
        for rate in RATES_OF[name]:
            cells = []
            for key in ("accuracy", *GAPS.values()):
                pairs = zip(*(at_end(trials[name, rate, one], key, True) for one in (OURS, row)), strict=True)
                apart = [(100 if key == "accuracy" else 1) * (ours - other) for ours, other in pairs]
                half = float(student_t.ppf(0.975, len(apart) - 1)) * stdev(apart) / math.sqrt(len(apart))
                cells.append(
                    f"{fmean(apart):+.{1 if key == 'accuracy' else 3}f} ± {half:.{1 if key == 'accuracy' else 3}f}"
                )
            yield line(row, rate, cells[0], f"{accuracy:+.1f}", *cells[1:], f"{gap:+.3f}")


def claims(trials: Trials, name: str) -> Iterator[str]:
    """The paper's claims by each definition of the gap, with the mean of the last epochs."""
    told = [claim for claim in TABLE.claims if f"On {TITLES[name]} " in claim.text]
    columns = [(rate, gap) for rate in RATES_OF[name] for gap in GAPS if gap != "sum"]
    yield from header("claim", *(f"{gap}, {rate}" for rate, gap in columns))
    for claim in told:
        words = []
        for rate, gap in columns:
            cells = {
                (row, f"{TITLES[name]} {column}"): MetricCell(
                    metric, tuple(at_end(of, key, True)), seeds=tuple(sorted(of))
                )
                for row in ROWS
                for column, metric, key in (
                    ("ACC", "test/accuracy", "accuracy"),
                    ("EOd", "test/accuracy_parity", GAPS[gap]),
                )
                for of in [trials[name, rate, row]]
            }
            result = judge_claim(claim, cells)
            is_same = "fairer" not in claim.text and gap != "parity"
            word = result.verdict if result.p_value is None else f"{result.verdict}, p {result.p_value:.3f}"
            words.append("same" if is_same else word)
        yield line(claim.text, *words)


def chosen(found: Sequence[Mapping[str, Any]], name: str) -> str:
    """How often each q of LfF was chosen."""
    values = [one["q"] for one in found if one["data"] == name and "q" in one]
    return ", ".join(f"{q} {values.count(q)} times" for q in sorted(set(values)))


def rms(values: Sequence[float]) -> float:
    return math.sqrt(fmean(value**2 for value in values))


def header(*titles: str) -> Iterator[str]:
    yield line(*titles)
    yield "|---" * len(titles) + "|"


def line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def page(found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    trials, minutes = by_place(found), sum(one["seconds"] for one in found) / 60
    yield "# Table 3 of WCL by each gap"
    titles = " and ".join(TITLES[name] for name in names)
    yield f"\nThis page shows WCL's Table 3 on {titles} by each definition of the gap, over several splits.\n"
    yield f"`tests/benchmarks/fairness_gaps.py` printed it: {minutes:.0f} minutes of one CPU core, PyTorch"
    yield f"{torch.__version__}. 8 features; on COMPAS ages and priors in three ranges. Values are mean ± sample"
    yield "standard deviation over splits. Splits share rows, so tests between rows see too little of the noise."
    yield "\n`parity` is the gap of the groups' accuracies, the equation of the paper's section 6.2; `Eq. 6` is FSCL's"
    yield "equalized odds, the mean over both classes of the gap of the groups' rates of the output 1; `max` is the"
    yield "larger of these two gaps, `sum` both together; `positives` is the gap of the rates over all rows of a group."
    for name in names:
        count, last = len(trials[name, "constant", "Baseline"]), LAST[name]
        yield f"\n## {TITLES[name]}\n\n{count} splits, {EPOCHS[name]} epochs."
        yield f"LfF's q, as validation chose it: {chosen(found, name)}."
        for rate in RATES_OF[name]:
            yield f"\nMean of the last {last} epochs, learning rate: {rate}\n"
            yield from of_table(trials, name, rate, True)
        yield "\nThe last epoch alone, learning rate: constant\n"
        yield from of_table(trials, name, "constant", False)
        yield f"\nWhat the noise is: standard deviations, root mean square over the rows ({last} last epochs)\n"
        yield from noise(trials, name)
        yield "\nWhich gap the printed one may be\n"
        yield from nearness(trials, name)
        yield "\nWCL less other rows, split by split, mean with 95% interval\n"
        yield from differences(trials, name)
        yield "\nThe paper's claims, by split\n"
        yield from claims(trials, name)
    yield f"\n{CLAIM_RULE_NOTE}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="JSON lines, one per trial; added to")
    parser.add_argument("--data", nargs="+", choices=tuple(TITLES), default=["compas", "adult"])
    parser.add_argument("--splits", type=int, help="else 10 of COMPAS, 5 of Adult")
    given = parser.parse_args()
    if given.splits is not None and given.splits < 2:
        parser.error(f"--splits: {given.splits} given, at least 2 are needed for a standard deviation")
    torch.set_num_threads(1)
    print("\n".join(page(recorded(given.results, given.data, given.splits), given.data)))


if __name__ == "__main__":
    main()
