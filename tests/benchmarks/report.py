"""What a report costs: a study of 10,000 trials, each of 50 epochs of 15 metrics, from its ledger to its last file.

    uv run python tests/benchmarks/report.py                      one such study
    uv run python tests/benchmarks/report.py --trials 1000        a smaller one
    uv run python tests/benchmarks/report.py --stored 1000        reading so many of its trials out of MLflow

Prints seconds of processor time and the process's peak memory after each phase. The ledger is written beforehand,
event by event as a study writes it but without waiting for the disk; it lies in a temporary folder.

With `--stored` so many trials of the same kind are brought into MLflow's SQLite as every study is, and read back: by
MLflow's own search, page by page, which gives last values; by its histories, a request per run and metric; by one query
of all values of all epochs; and from the ledger, which is what the report reads. What it would take for all trials is
the measured time times their number.
"""

import argparse
import os
import random
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.ranking import Results

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from study.spec import StudySpec

METRICS = ["train/loss", "val/accuracy", "val/worst_group_accuracy", "val/equalized_odds", "val/demographic_parity"]
METRICS += [f"val/group_{y}_{s}_accuracy" for y in range(2) for s in range(2)]
METRICS += [f"train/figure_{number}" for number in range(15 - len(METRICS))]
PAGE, FEW = 250, 20
"""Runs of one page of MLflow's search; runs of which histories are asked for."""
SPACE = (
    "{method.alpha: {low: 0.001, high: 1.0, log: true}, method.lambda: {low: 0.0, high: 2.0}, "
    "method.epsilon: {choices: [0.0, 0.1, 0.25, 0.5]}, train.learning_rate: {low: 0.0001, high: 0.1, log: true}}"
)


def events(trials: int, epochs: int) -> Iterator[dict[str, Any]]:
    """The events of a study whose trials run one after the other, the baseline first."""
    chance, clock = random.Random(0), 1_800_000_000.0
    yield {"event": "created", "time": clock, "id": "benchmark"}
    yield {"event": "opened", "owner": "ada", "time": clock, "versions": {}, "data": "0" * 16}
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
    parser.add_argument("--stored", type=int, metavar="RUNS")
    given = parser.parse_args()
    if given.stored:
        read_back(given.stored, given.epochs, given.trials)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.jsonl"
        write(path, given.trials, given.epochs)
        print(
            f"{given.trials} trials, {given.epochs} epochs, {len(METRICS)} metrics: {path.stat().st_size / 1e6:.0f} MB"
        )
        report(path, given.trials, given.epochs)


def write(path: Path, trials: int, epochs: int) -> None:
    """The ledger of such a study."""
    from study.home.ledger_line import LineChainState, encode_entry

    chain = LineChainState()
    with open(path, "wb") as file:
        for event in events(trials, epochs):
            line = chain.complete_line(encode_entry(event))
            chain.advance_if_next(line)
            file.write(line)


def study_of(trials: int, epochs: int) -> "StudySpec":
    """Its study file."""
    from study.spec import load_study

    settings = [f"search.space={SPACE}", f"search.trials={trials}", "search.baseline=null", "search.confirm={top: 0}"]
    settings += ["search.sampler=tpe", "search.early_stopping={name: asha, grace: 4, reduction: 3}"]
    return load_study("fairkl_digits", [*settings, f"train.epochs={epochs}"])


def read_back(runs: int, epochs: int, trials: int) -> None:
    """What reading a study costs, by who is asked."""
    from mlflow import MlflowClient

    from study.home.folder import Home
    from study.home.record import StudyRecord
    from study.tracking.ledger_to_mlflow import LedgerToMlflowWriter

    os.environ.pop("MLFLOW_TRACKING_URI", None)
    with tempfile.TemporaryDirectory() as path:
        home, spec = Home(Path(path) / "home"), study_of(runs, epochs)
        folder = home.create_study(spec)
        write(folder.ledger_file, runs, epochs)
        writer = LedgerToMlflowWriter(home, folder, spec)
        while writer.write_next_events():
            pass
        client = MlflowClient(home.tracking_uri)
        experiment = client.get_experiment_by_name(spec.name)
        assert experiment is not None
        name = experiment.experiment_id
        few = [run.info.run_id for run in client.search_runs([name], max_results=FEW)]
        ways: dict[str, tuple[Callable[[], object], int]] = {
            f"MLflow's search, pages of {PAGE}, last values": (lambda: search(client, name), runs),
            f"MLflow's histories, all metrics of {FEW} runs": (lambda: histories(client, few), FEW),
            "one query, all metrics of all epochs": (lambda: query(home.database_file), runs),
            "the ledger, all metrics of all epochs": (lambda: StudyRecord.load(folder.ledger_file), runs),
        }
        print(f"{runs} runs of {epochs} epochs of {len(METRICS)} metrics in SQLite; seconds, and for {trials} trials")
        for said, (ask, count) in ways.items():
            began = time.perf_counter()
            ask()
            taken = time.perf_counter() - began
            print(f"{said:<50} {taken:8.2f} s   {taken * trials / count:10.1f} s (extrapolated)", flush=True)


def search(client: "MlflowClient", experiment: str) -> int:
    """Every run with its last values; how many."""
    count, token = 0, None
    while token != "":
        page = client.search_runs([experiment], max_results=PAGE, page_token=token)
        count, token = count + len(page), page.token or ""
    return count


def histories(client: "MlflowClient", runs: list[str]) -> int:
    """Every value of every metric of these runs; how many."""
    return sum(len(client.get_metric_history(run, name)) for run in runs for name in METRICS)


def query(database: Path) -> int:
    """Every value in the database, in the order of runs and steps; how many."""
    with sqlite3.connect(database) as connection:
        return len(connection.execute("SELECT run_uuid, key, step, value FROM metrics ORDER BY 1, 3").fetchall())


def report(path: Path, trials: int, epochs: int) -> None:
    """Each phase of `write_report` by itself."""
    phases = Phases()
    import study.analysis.report.write_report  # noqa: F401 (with all that it needs)
    from study.home.record import StudyRecord
    from study.ranking import Results

    spec = study_of(trials, epochs)
    phases.done("imports")
    record = StudyRecord.load(path)
    phases.done("read and fold")
    make(Results(spec, record), phases)


def make(results: "Results", phases: Phases) -> None:
    """Each file of the report."""
    from study.analysis import trials_frame
    from study.analysis.figures import FIGURES
    from study.analysis.report.page_formats import page_to_html, page_to_markdown
    from study.analysis.report.report_page import build_report_page
    from study.analysis.report.write_report import figure_to_pdf, figure_to_png

    trials_frame(results).to_csv()
    phases.done("trials.csv")
    drawn = {}
    for name, draw in FIGURES.items():
        if figure := draw(results):
            drawn[name] = figure
            phases.done(f"figure {name}")
    pictures = {name: figure_to_png(figure) for name, figure in drawn.items()}
    phases.done("PNG")
    papers = {name: figure_to_pdf(figure) for name, figure in drawn.items()}
    phases.done("PDF")
    page = build_report_page(results, drawn)
    phases.done("content")
    files = {"report.md": page_to_markdown(page), "report.html": page_to_html(page, pictures)}
    phases.done("page")
    sizes = {**files, **{f"{name}.pdf": content for name, content in papers.items()}}
    print(", ".join(f"{name} {len(content) / 1e6:.1f} MB" for name, content in sizes.items()))


if __name__ == "__main__":
    main()
