"""Fits references while the search runs, in a process of its own; its results become events of the study.

That process prints a line of JSON for each reference. A reference with an event is not fitted again, unless the test
split is to be read with it and was not.
"""

import json
import math
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from study import data, models
from study.data.folds import of_fold
from study.errors import said
from study.home.events import Referenced
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, finite, is_tested
from study.ranking import Results
from study.spec import StudySpec
from study.spec.reference_models import wanted
from study.text import printed
from study.upstream.end_with_parent import end_with_parent

if TYPE_CHECKING:
    from study.sweep.agenda import Agenda
    from study.training.reference_fitting import ReferenceRows

LATER = 5
"""Niceness of that process: trials come first."""

POLL_INTERVAL_S = 0.1
"""Seconds between two looks at the results, when only references are left."""

START = """\
import json, sys
sys.path = json.loads(sys.argv[1])
from study.sweep.reference_process import main
main(*sys.argv[2:])
"""
"""Program of that process. Arguments: this one's module paths, the folder, whether test is read, and names."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def reads_test(spec: StudySpec, record: StudyRecord) -> bool:
    """Return whether the test split is read with the references, as with the baseline."""
    return "test" in spec.facts.splits and (Results(spec, record).confirm.top > 0 or spec.train.report_test)


def missing(spec: StudySpec, record: StudyRecord) -> list[str]:
    """Return the names of the references that are still to be fitted."""
    tests, known = bool(names := list(wanted(spec))) and reads_test(spec, record), record.references
    return [
        name
        for name in names
        if name not in known or (tests and known[name].reason is None and not is_tested(known[name]))
    ]


class References:
    """The process that fits the missing references, and its results; there is none where nothing is missing.

    Args:
        agenda: is told the results, in the thread that calls `poll`.
    """

    def __init__(self, agenda: "Agenda", folder: StudyFolder) -> None:
        self._agenda, self._left = agenda, missing(agenda.spec, agenda.record)
        self._lines = queue.SimpleQueue[str | None]()
        self._process: subprocess.Popen[str] | None = None
        if not self._left:
            return
        self._complaints = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # until `close`
        tests = "yes" if reads_test(agenda.spec, agenda.record) else "no"
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path), str(folder.path), tests, *self._left],
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            start_new_session=True,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="references", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def poll(self) -> None:
        """Tell the agenda what has come.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        with suppress(queue.Empty):
            while self._left:
                line = self._lines.get_nowait()
                if line is None:
                    ended = self._how_it_ended()
                    events = [Referenced(name, reason=ended) for name in self._left]
                else:
                    events = [Referenced(**json.loads(line))]
                for event in events:
                    self._left.remove(event.name)
                    self._agenda.referenced(event)

    def _how_it_ended(self) -> str:
        assert self._process
        code = self._process.wait()
        self._complaints.seek(0)
        last = [line for line in self._complaints if line.strip()][-1:]
        return printed(": ".join([f"its process ended with {code}", *map(str.strip, last)]))

    def finish(self, tell: Callable[[str], None]) -> None:
        """Wait for what is left, unless the study stops; `tell`: is told that it waits.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        self.poll()
        if self._left:
            tell(f"fitting what needs no search: {', '.join(self._left)}")
        while self._left and self._agenda.stopping is None:
            time.sleep(POLL_INTERVAL_S)
            self.poll()

    def close(self) -> None:
        """End the process; what it has not told is fitted another time."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            self._complaints.close()


def events_of(spec: StudySpec, tests: bool, names: list[str], tell: Callable[[Referenced], None]) -> None:
    """Fit references on the training split and judge them on validation, and on test where that is to be read.

    One that cannot be fitted fails alone. With folds each is fitted to all folds but one, in turn.

    Args:
        tell: is told each event.
    """
    begun, parts = time.process_time(), list[Mapping[str, "ReferenceRows"]]()
    dataset: data.Dataset | None = None
    for name in names:
        try:
            if dataset is None:
                dataset = data.load(spec.data_sections[0])
            parts = parts or list(_parts(spec, dataset, tests))
            metrics, draws = _measured(name, spec, dataset, parts)
            event = Referenced(name, dict(finite(metrics)), round(time.process_time() - begun, 3), draws=draws)
        except Exception as error:  # whatever a library makes of such data
            event = Referenced(name, reason=printed(f"{type(error).__name__}: {' '.join(said(error).split())}"))
        tell(event)
        begun = time.process_time()


def _parts(spec: StudySpec, dataset: data.Dataset, tests: bool) -> Iterator[Mapping[str, "ReferenceRows"]]:
    """Yield the rows of each split, for each fold or once, as trials have them; with a frozen network, its features."""
    import torch

    from study.training.features import of_frozen
    from study.training.loop import with_share
    from study.training.reference_fitting import ReferenceRows

    model, share = spec.model_sections[0], spec.train.data_share
    for fold in range(spec.folds) if spec.folds else (None,):
        part = dataset if fold is None else of_fold(dataset, fold)
        part = with_share(of_frozen(model, part, torch.device("cpu")), share)
        facts = models.without_maps(model, part.facts)
        judged = {split: part.splits[split] for split in ("val", *(["test"] if tests else []))}
        yield {
            "train": ReferenceRows.training(part.splits["train"], facts, spec.seed),
            **{split: ReferenceRows.of(samples, facts) for split, samples in judged.items()},
        }


def _measured(
    name: str, spec: StudySpec, dataset: data.Dataset, parts: Sequence[Mapping[str, "ReferenceRows"]]
) -> tuple[Mapping[str, float], dict[str, list[float]] | None]:
    """Return the metrics of a reference, and with folds the draws of `Joiner.judged`.

    With folds, validation metrics are those of all samples outside test together; test metrics are means over folds.
    """
    from study.sweep.joined import FoldPredictions, Joiner
    from study.training.reference_fitting import fitted, judge, measured, outputs

    if dataset.folds is None:
        (rows,) = parts
        return measured(
            name, rows["train"], {split: rows[split] for split in rows if split != "train"}, spec.seed
        ), None
    verdicts, tested = list[FoldPredictions](), dict[str, list[float]]()
    for rows in parts:
        model = fitted(name, rows["train"], spec.seed)
        verdicts.append(FoldPredictions(*outputs(model, rows["val"], spec.seed)))
        on_test = judge(model, {split: rows[split] for split in rows if split == "test"}, spec.seed)
        for metric, value in on_test.items():
            tested.setdefault(metric, []).append(value)
    members = [dataset.folds.numbers == fold for fold in range(len(parts))]
    found, draws = Joiner(spec, dataset).judged([FoldPredictions.joined(verdicts, members)])
    together = {metric: math.nan if value is None else value for metric, value in found.items()}
    return {**together, **{metric: fmean(values) for metric, values in tested.items()}}, draws


def main(folder: str, tests: str, *names: str) -> None:
    """Print the events of references, a line for each."""
    end_with_parent()
    os.nice(LATER)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # a library must not print among the results

        def tell(event: Referenced) -> None:
            known = {key: value for key, value in vars(event).items() if key not in ("time", "asleep")}
            out.write(f"{json.dumps(known)}\n")
            out.flush()

        events_of(StudyFolder(Path(folder)).spec(), tests == "yes", list(names), tell)
