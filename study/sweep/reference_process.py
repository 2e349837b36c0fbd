"""Fits references while the search runs, in a process of its own; its results become events of the study.

That process prints a line of JSON for each reference. A reference with an event is not fitted again, unless the test
split is to be read with it and was not.
"""

import json
import math
import os
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from study import data, models
from study.data.folds import select_fold
from study.errors import error_message
from study.home.events import ReferenceFitted
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, finite_metrics, has_test_metrics
from study.ranking import Results
from study.spec import StudySpec
from study.spec.reference_models import requested_reference_names
from study.text import escape_control
from study.upstream.child_process import end_with_parent, python_command

if TYPE_CHECKING:
    from study.sweep.agenda import Agenda
    from study.training.reference_fitting import ReferenceRows

PROCESS_NICENESS = 5
"""Niceness of that process: trials come first."""

RESULTS_POLL_INTERVAL_S = 0.1
"""Seconds between two looks at the results, when only references are left."""

FITTING_PROGRAM = (
    "from study.sweep.reference_process import fit_and_print_references; fit_and_print_references(*sys.argv[1:])"
)
"""Program of that process. Arguments: the folder, whether test is read, and names."""

ONE_THREAD_VARIABLES = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def should_read_test_split(spec: StudySpec, record: StudyRecord) -> bool:
    """Return whether the test split is read with the references, as with the baseline."""
    if "test" not in spec.data_facts.splits:
        return False
    return spec.train.report_test or Results(spec, record).confirmation.settings.top > 0


def missing_references(spec: StudySpec, record: StudyRecord) -> list[str]:
    """Return the names of the references that are still to be fitted."""
    names, known = list(requested_reference_names(spec)), record.reference_events
    tests = bool(names) and should_read_test_split(spec, record)
    return [
        name
        for name in names
        if name not in known or (tests and known[name].reason is None and not has_test_metrics(known[name]))
    ]


class ReferenceFitter:
    """The process that fits the missing references, and its results; there is none where nothing is missing.

    Args:
        agenda: is told the results, in the thread that calls `pass_results_to_agenda`.
    """

    def __init__(self, agenda: "Agenda", folder: StudyFolder) -> None:
        self._agenda, self._left = agenda, missing_references(agenda.spec, agenda.record)
        self._lines = queue.SimpleQueue[str | None]()
        self._process: subprocess.Popen[str] | None = None
        if not self._left:
            return
        self._complaints = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  # until `close`
        tests = "yes" if should_read_test_split(agenda.spec, agenda.record) else "no"
        self._process = subprocess.Popen(
            python_command(FITTING_PROGRAM, str(folder.path), tests, *self._left),
            env={**os.environ, **ONE_THREAD_VARIABLES},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            start_new_session=True,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_result_lines, name="references", daemon=True)
        self._reader.start()

    def _read_result_lines(self) -> None:
        assert self._process
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def pass_results_to_agenda(self) -> None:
        """Tell the agenda what has come.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        with suppress(queue.Empty):
            while self._left:
                line = self._lines.get_nowait()
                if line is None:
                    ended = self._process_end_text()
                    events = [ReferenceFitted(name, reason=ended) for name in self._left]
                else:
                    events = [ReferenceFitted(**json.loads(line))]
                for event in events:
                    self._left.remove(event.name)
                    self._agenda.append_event(event)

    def _process_end_text(self) -> str:
        assert self._process
        code = self._process.wait()
        self._complaints.seek(0)
        last = [line for line in self._complaints if line.strip()][-1:]
        return escape_control(": ".join([f"its process ended with {code}", *map(str.strip, last)]))

    def wait_until_fitted(self, tell: Callable[[str], None]) -> None:
        """Wait for what is left, unless the study stops; `tell`: is told that it waits, where it does.

        Raises:
            StudyCannotContinueError: the ledger cannot be written.
        """
        self.pass_results_to_agenda()
        if self._left and self._agenda.stopping is None:
            tell(f"fitting what needs no search: {', '.join(self._left)}")
        while self._left and self._agenda.stopping is None:
            time.sleep(RESULTS_POLL_INTERVAL_S)
            self.pass_results_to_agenda()

    def close(self) -> None:
        """End the process; what it has not told is fitted another time."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            self._complaints.close()


def fit_references(spec: StudySpec, tests: bool, names: list[str], tell: Callable[[ReferenceFitted], None]) -> None:
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
                dataset = data.load(spec.trial_data_sections[0])
            parts = parts or list(_iterate_split_rows(spec, dataset, tests))
            metrics, draws = _measure_reference(name, spec, dataset, parts)
            seconds = round(time.process_time() - begun, 3)
            event = ReferenceFitted(name, dict(finite_metrics(metrics)), seconds, draws=draws)
        except Exception as error:  # whatever a library makes of such data
            reason = f"{type(error).__name__}: {' '.join(error_message(error).split())}"
            event = ReferenceFitted(name, reason=escape_control(reason))
        tell(event)
        begun = time.process_time()


def _iterate_split_rows(spec: StudySpec, dataset: data.Dataset, tests: bool) -> Iterator[Mapping[str, "ReferenceRows"]]:
    """Yield the rows of each split, for each fold or once, as trials have them; with a frozen network, its features."""
    import torch

    from study.training.features import replace_inputs_with_frozen_features
    from study.training.loop import reduce_to_data_share
    from study.training.reference_fitting import ReferenceRows

    model, share = spec.model_sections[0], spec.train.data_share
    for fold in range(spec.folds) if spec.folds else (None,):
        part = dataset if fold is None else select_fold(dataset, fold)
        part = reduce_to_data_share(replace_inputs_with_frozen_features(model, part, torch.device("cpu")), share)
        facts = models.facts_of_pooled_features(model, part.facts)
        judged = {split: part.splits[split] for split in ("val", *(["test"] if tests else []))}
        yield {
            "train": ReferenceRows.for_fitting(part.splits["train"], facts, spec.seed),
            **{split: ReferenceRows.from_split(samples, facts) for split, samples in judged.items()},
        }


def _measure_reference(
    name: str, spec: StudySpec, dataset: data.Dataset, parts: Sequence[Mapping[str, "ReferenceRows"]]
) -> tuple[Mapping[str, float], dict[str, list[float]] | None]:
    """Return the metrics of a reference, and with folds the draws of `FoldJoiner.metrics_and_draws`.

    With folds, validation metrics are those of all samples outside test together; test metrics are means over folds.
    """
    from study.sweep.joined_folds import FoldJoiner, FoldPredictions
    from study.training.reference_fitting import fit_reference, measure_reference, predictions_and_losses

    if dataset.folds is None:
        (rows,) = parts
        model = fit_reference(name, rows["train"], spec.seed)
        judged = {split: rows[split] for split in rows if split != "train"}
        return measure_reference(model, judged, spec.seed), None
    verdicts, tested = list[FoldPredictions](), dict[str, list[float]]()
    for rows in parts:
        model = fit_reference(name, rows["train"], spec.seed)
        verdicts.append(FoldPredictions(*predictions_and_losses(model, rows["val"], spec.seed)))
        on_test = measure_reference(model, {split: rows[split] for split in rows if split == "test"}, spec.seed)
        for metric, value in on_test.items():
            tested.setdefault(metric, []).append(value)
    members = [dataset.folds.fold_of_sample == fold for fold in range(len(parts))]
    found, draws = FoldJoiner(spec, dataset).metrics_and_draws([FoldPredictions.join_parts(verdicts, members)])
    together = {metric: math.nan if value is None else value for metric, value in found.items()}
    return {**together, **{metric: fmean(values) for metric, values in tested.items()}}, draws


def fit_and_print_references(folder: str, tests: str, *names: str) -> None:
    """Print the events of references, a line for each."""
    end_with_parent()
    os.nice(PROCESS_NICENESS)
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # a library must not print among the results

        def tell(event: ReferenceFitted) -> None:
            known = {key: value for key, value in vars(event).items() if key not in ("time", "asleep")}
            out.write(f"{json.dumps(known)}\n")
            out.flush()

        fit_references(StudyFolder(Path(folder)).load_spec(), tests == "yes", list(names), tell)
