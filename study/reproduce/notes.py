"""What must be known about a reproduction's numbers, in sentences that stand under its table."""

from collections.abc import Iterator, Mapping
from typing import Any

from study.analysis.statistics import formatting
from study.analysis.statistics.cells import Cell
from study.home.record import StudyRecord
from study.published import PublishedTable
from study.reproduce.cell_matching import Document, Labels, belongs, planned
from study.reproduce.missing import listed
from study.spec import StudySpec

LAST_EPOCH = "Ours is each trial's last epoch: no split chose it."
BEST_EPOCH = (
    "Ours is each trial's best epoch on the test split, as a paper has it that reports its best epoch: too high, and "
    "for comparison only. Nothing else is chosen by it."
)

VARIANTS = ("method.variant", "method.alpha_squared", "method.base_temperature", "method.kld")
"""Keys that say which reading of a loss was run: its paper's equation or what the released code computes."""

NO_BUDGET = ("train.seed", "train.threads", "train.report_test", "train.keep_epochs")
"""Keys that do not make a budget."""


def notes(
    table: PublishedTable,
    spec: StudySpec,
    record: StudyRecord,
    full: StudySpec,
    ours: Mapping[Labels, Cell],
    missing: Mapping[Labels, str],
) -> list[str]:
    """Budget, variant of the loss, missing cells and the notes of the print.

    Args:
        spec: the study that was run.
        full: the table's study file without a profile: the paper's protocol.
        ours, missing: its cells, and why some have no value.
    """
    documents = list(_documents(table, spec, full))
    lines = [_budget(spec, record, full, ours, documents), *_variants(here for here, _ in documents)]
    why = listed(missing, [row.label for row in table.rows], [column.label for column in table.columns])
    lines += [f"Missing: {one}." for one in why]
    lines += [f"Data: {table.needs}."] if table.needs else []
    said = table.spread if table.trials is None else f"{table.spread}; {table.trials} trials"
    return [*lines, f"The paper's ±: {said}.", *table.notes]


def _documents(table: PublishedTable, spec: StudySpec, full: StudySpec) -> Iterator[tuple[Document, Document]]:
    """The sections of each cell's trials here, and in the paper's protocol."""
    here = [(params, spec.trial_document(params)) for params in planned(spec)]
    there = [(params, full.trial_document(params)) for params in planned(full)]
    for row in table.rows:
        for column in table.columns:
            where = table.where(row.label, column.label)
            if where is None:
                continue
            ours = next((one for one in here if belongs(where, *one)), None)
            theirs = next((one for one in there if belongs(where, *one)), None)
            if ours and theirs:
                yield ours[1], theirs[1]


def _budget(
    spec: StudySpec,
    record: StudyRecord,
    full: StudySpec,
    ours: Mapping[Labels, Cell],
    documents: list[tuple[Document, Document]],
) -> str:
    """What was run, and where it is less than the protocol."""
    seeds = sorted({seed for cell in ours.values() for seed in cell.seeds})
    used = dict.fromkeys(session["dataset"] for session in record.sessions if "dataset" in session)
    epochs, networks = spec.epochs, ", ".join(dict.fromkeys(here["model"]["name"] for here, _ in documents))
    titles = ", ".join(used or spec.data_titles)
    what = f"{titles}, {networks or 'network'}, {formatting.count(epochs, 'epoch')}, {formatting.seeds(seeds)}"
    trained = _samples(record)
    what += f", {trained:,} training samples" if trained else ""
    busy = f"{formatting.duration(record.busy)} of trials" if record.busy else "no trial has run yet"
    found: dict[str, dict[tuple[str, str], None]] = {}
    for here, there in documents:
        mine, theirs = _flat(here), _flat(there)
        for key in mine.keys() & theirs.keys():
            if mine[key] != theirs[key] and key not in NO_BUDGET:
                found.setdefault(key, {})[formatting.setting(mine[key]), formatting.setting(theirs[key])] = None
    if len(spec.seeds) != len(full.seeds):
        found["search.replicates"] = {(str(len(spec.seeds)), str(len(full.seeds))): None}
    less = "; ".join(
        f"{key} {' / '.join(one for one, _ in pairs)} instead of {' / '.join(dict.fromkeys(two for _, two in pairs))}"
        for key, pairs in sorted(found.items())
    )
    than = (
        f"Against the paper's protocol: {less}." if less else "That is the paper's protocol, as the study file has it."
    )
    return f"Budget: {what}; {busy}. {than}"


def _samples(record: StudyRecord) -> int | None:
    """How many samples an epoch of the first trial trained on: its speed times its time."""
    first: Mapping[str, Any] = next((trial.reports[0] for trial in record.trials.values() if trial.reports), {})
    figures = [first.get(name) for name in ("speed/images_per_second", "time/data", "time/training")]
    speed, *times = [figure for figure in figures if figure is not None] or [0.0]
    return round(speed * sum(times)) if len(times) == 2 else None


def _variants(documents: Iterator[Document]) -> Iterator[str]:
    """Which reading of the losses was run."""
    found: dict[str, dict[str, None]] = {}
    for document in documents:
        flat = _flat(document)
        for key in VARIANTS:
            if flat.get(key) is not None:
                found.setdefault(key, {})[formatting.setting(flat[key])] = None
    named = "; ".join(f"{key} {' / '.join(values)}" for key, values in found.items())
    yield f"Variant of the loss: {named}." if named else "Variant of the loss: the paper's equation."


def _flat(document: Document) -> dict[str, Any]:
    return {f"{section}.{key}": value for section, values in document.items() for key, value in values.items()}
