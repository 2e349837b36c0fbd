"""The notes under a reproduction's table: what a reader must know about its numbers."""

from collections.abc import Iterator, Mapping
from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.cells import Cell
from study.home.record import StudyRecord
from study.published import PublishedTable
from study.reproduce.reproduced_cells import Document, Labels, belongs, planned, reasons_text
from study.spec import StudySpec

LAST_EPOCH = "Our numbers are from each trial's last epoch: no split chose it."
BEST_EPOCH = (
    "Our numbers are from each trial's best epoch on the test split, for comparison with papers that report their best "
    "epoch. They look, on average, too good. Nothing else is chosen by the test split."
)

VARIANTS = ("method.variant", "method.alpha_squared", "method.base_temperature", "method.kld")
"""Keys that tell which variant of a loss was run: the paper's equation or the released code."""

PAPERS, OWN = "the paper's protocol", "a protocol of our own"
"""What a table's study file holds; `OWN` where its source says so."""

NO_BUDGET = ("train.seed", "train.threads", "train.report_test", "train.keep_epochs")
"""Keys in which a run may differ from the protocol without a smaller budget."""


def notes(
    table: PublishedTable,
    spec: StudySpec,
    record: StudyRecord,
    full: StudySpec,
    ours: Mapping[Labels, Cell],
    missing: Mapping[Labels, str],
) -> list[str]:
    """Budget, variant of the loss, missing cells and the transcription's notes.

    Args:
        spec: the study that was run.
        full: the table's study file without a profile: the paper's protocol.
        ours, missing: its cells, and why some have no value.
    """
    documents = list(_documents(table, spec, full))
    protocol = OWN if OWN in table.source else PAPERS
    lines = [_budget(spec, record, full, ours, documents, protocol), *_variants(here for here, _ in documents)]
    reasons = reasons_text(missing, [row.label for row in table.rows], [column.label for column in table.columns])
    lines += [f"Missing: {reason}." for reason in reasons]
    lines += _no_verdicts(table)
    lines += [f"Data: {table.needs}."] if table.needs else []
    return [*lines, printed_spread(table), *table.notes]


def printed_spread(table: PublishedTable) -> str:
    """What the paper's ± is."""
    return f"The paper's ±: {table.spread if table.trials is None else f'{table.spread}; {table.trials} trials'}."


def _no_verdicts(table: PublishedTable) -> list[str]:
    """Which lines are not compared with the paper's, and why."""
    return [
        f"No verdict on {line.label}: {line.no_verdict}." for line in (*table.rows, *table.columns) if line.no_verdict
    ]


def _documents(table: PublishedTable, spec: StudySpec, full: StudySpec) -> Iterator[tuple[Document, Document]]:
    """The sections of each cell's trials here, and in the paper's protocol."""
    planned_here = [(params, spec.trial_document(params)) for params in planned(spec)]
    planned_in_full = [(params, full.trial_document(params)) for params in planned(full)]
    for row in table.rows:
        for column in table.columns:
            values = table.where(row.label, column.label)
            if values is None:
                continue
            ours = next((planned for planned in planned_here if belongs(values, *planned)), None)
            theirs = next((planned for planned in planned_in_full if belongs(values, *planned)), None)
            if ours and theirs:
                yield ours[1], theirs[1]


def _budget(
    spec: StudySpec,
    record: StudyRecord,
    full: StudySpec,
    ours: Mapping[Labels, Cell],
    documents: list[tuple[Document, Document]],
    protocol: str,
) -> str:
    """What was run, and where it differs from the protocol of this name."""
    seeds = sorted({seed for cell in ours.values() for seed in cell.seeds})
    titles_run = dict.fromkeys(session["dataset"] for session in record.sessions if "dataset" in session)
    epochs, networks = spec.epochs, ", ".join(dict.fromkeys(ours_run["model"]["name"] for ours_run, _ in documents))
    titles = ", ".join(titles_run or spec.data_titles)
    what = f"{titles}, {networks or 'network'}, {formatting.count(epochs, 'epoch')}, {formatting.seeds(seeds)}"
    trained = _samples(record)
    what += f", {trained:,} training samples" if trained else ""
    trial_time = f"{formatting.duration(record.busy)} of trials" if record.busy else "no trial has run yet"
    differing: dict[str, dict[tuple[str, str], None]] = {}
    for ours_run, theirs_run in documents:
        mine, theirs = _flat(ours_run), _flat(theirs_run)
        for key in mine.keys() & theirs.keys():
            if mine[key] != theirs[key] and key not in NO_BUDGET:
                differing.setdefault(key, {})[formatting.setting(mine[key]), formatting.setting(theirs[key])] = None
    if len(spec.seeds) != len(full.seeds):
        differing["search.replicates"] = {(str(len(spec.seeds)), str(len(full.seeds))): None}
    shortfall = "; ".join(
        f"{key} {' / '.join(run for run, _ in pairs)} instead of {' / '.join(dict.fromkeys(full for _, full in pairs))}"
        for key, pairs in sorted(differing.items())
    )
    comparison = f"Against {protocol}: {shortfall}." if shortfall else f"This is {protocol}, as in the study file."
    return f"Budget: {what}; {trial_time}. {comparison}"


def _samples(record: StudyRecord) -> int | None:
    """How many samples an epoch of the first trial trained on: its speed times its time."""
    first: Mapping[str, Any] = next((trial.reports[0] for trial in record.trials.values() if trial.reports), {})
    figures = [first.get(name) for name in ("speed/images_per_second", "time/data", "time/training")]
    speed, *times = [figure for figure in figures if figure is not None] or [0.0]
    return round(speed * sum(times)) if len(times) == 2 else None


def _variants(documents: Iterator[Document]) -> Iterator[str]:
    """Which variant of the losses was run."""
    values_by_key: dict[str, dict[str, None]] = {}
    for document in documents:
        flat = _flat(document)
        for key in VARIANTS:
            if flat.get(key) is not None:
                values_by_key.setdefault(key, {})[formatting.setting(flat[key])] = None
    text = "; ".join(f"{key} {' / '.join(values)}" for key, values in values_by_key.items())
    yield f"Variant of the loss: {text}." if text else "Variant of the loss: the paper's equation."


def _flat(document: Document) -> dict[str, Any]:
    return {f"{section}.{key}": value for section, values in document.items() for key, value in values.items()}
