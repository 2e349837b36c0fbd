"""What a report costs: a study of 10,000 trials, each of 50 epochs of 15 metrics, from its ledger to its last file.

    uv run python tests/benchmarks/report.py                      one such study
    uv run python tests/benchmarks/report.py --trials 1000        a smaller one

Prints seconds of processor time and the process's peak memory after each phase. The ledger is written beforehand,
event by event as a study writes it but without waiting for the disk; it lies in a temporary folder.
"""

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METRICS = ["train/loss", "val/accuracy", "val/worst_group_accuracy", "val/equalized_odds", "val/demographic_parity"]
METRICS += [f"val/group_{y}_{s}_accuracy" for y in range(2) for s in range(2)]
METRICS += [f"train/figure_{number}" for number in range(15 - len(METRICS))]
SPACE = (
    "{method.alpha: {low: 0.001, high: 1.0, log: true}, method.lambda: {low: 0.0, high: 2.0}, "
    "method.epsilon: {choices: [0.0, 0.1, 0.25, 0.5]}, train.learning_rate: {low: 0.0001, high: 0.1, log: true}}"
)


def events(trials: int, epochs: int) -> Iterator[dict[str, Any]]:
    """The events of a study whose trials run one after the other, the baseline first."""
    chance, clock = random.Random(0), 1_800_000_000.0
    yield {"event": "created", "time": clock, "id": "benchmark"}
    yield {"event": "opened", "time": clock, "versions": {}, "data": "0" * 16}
    for number in range(trials):
        params = {
            "method.alpha": 10 ** chance.uniform(-3, 0),
            "method.lambda": chance.uniform(0, 2),
            "method.epsilon": chance.choice([0.0, 0.1, 0.25, 0.5]),
            "train.learning_rate": 10 ** chance.uniform(-4, -1),
        }
        yield {
            "event": "trial",
            "time": clock,
            "trial": number,
            "stage": "search" if number else "baseline",
            "params": params,
            "seed": 0,
        }
        yield {"event": "started", "time": clock, "trial": number, "node": "here"}
        top = 0.9 - 0.2 * (params["method.lambda"] - 1) ** 2 + chance.gauss(0, 0.02)
        for epoch in range(1, epochs + 1):
            clock += 1.0
            metrics = {name: top * (1 - 0.8**epoch) + chance.random() / 50 for name in METRICS}
            yield {"event": "report", "time": clock, "trial": number, "epoch": epoch, "metrics": metrics}
        yield {"event": "ended", "time": clock, "trial": number, "state": "complete"}
    yield {"event": "closed", "time": clock, "state": "complete"}


class Phases:
    """Prints what each phase took."""

    def __init__(self) -> None:
        self._begun = self._last = time.process_time()

    def done(self, name: str) -> None:
        """The phase ends here."""
        now, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{name:<24} {now - self._last:7.1f} s   {now - self._begun:7.1f} s in all   peak {peak:5.2f} GiB")
        self._last = time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(event, separators=(",", ":")) + "\n" for event in events(given.trials, given.epochs)
            )
        print(
            f"{given.trials} trials, {given.epochs} epochs, {len(METRICS)} metrics: {path.stat().st_size / 1e6:.0f} MB"
        )
        report(path, given.trials, given.epochs)


def report(path: Path, trials: int, epochs: int) -> None:
    """Each phase of `write_report` by itself."""
    phases = Phases()
    from study.analysis import trials_frame
    from study.analysis.content import report_page
    from study.analysis.figures import FIGURES
    from study.analysis.interactive import INTERACTIVE
    from study.analysis.page import to_html, to_markdown
    from study.analysis.report import pdf, png
    from study.record import StudyRecord
    from study.spec import load_study

    settings = [f"search.space={SPACE}", f"search.trials={trials}", "search.baseline=null", "search.confirm={top: 0}"]
    spec = load_study("quickstart", [*settings, f"train.epochs={epochs}"])
    phases.done("imports")
    record = StudyRecord.load(path)
    phases.done("read and fold")
    trials_frame(spec, record).to_csv()
    phases.done("trials.csv")
    drawn, plots = {}, {}
    for name, draw in FIGURES.items():
        if figure := draw(spec, record):
            drawn[name] = figure
            phases.done(f"figure {name}")
        if figure and name in INTERACTIVE:
            plots[name] = INTERACTIVE[name](spec, record).to_json()
            phases.done(f"plotly {name}")
    pictures = {name: png(figure) for name, figure in drawn.items()}
    phases.done("PNG")
    papers = {name: pdf(figure) for name, figure in drawn.items()}
    phases.done("PDF")
    page = report_page(spec, record, {name: figure.get_suptitle() for name, figure in drawn.items()})
    phases.done("content")
    files = {"report.md": to_markdown(page), "report.html": to_html(page, pictures, plots)}
    phases.done("page")
    sizes = {**files, **{f"{name}.pdf": content for name, content in papers.items()}}
    print(", ".join(f"{name} {len(content) / 1e6:.1f} MB" for name, content in sizes.items()))


if __name__ == "__main__":
    main()
