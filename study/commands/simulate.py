"""What a study would find, when, and at what cost: many courses of it on a virtual clock."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from study.analysis.statistics import formatting
from study.errors import UserError
from study.files.output import write_output
from study.home import ledger
from study.home.folder import Home
from study.simulation import carried
from study.simulation.courses import Courses
from study.simulation.observed import Overheads, overheads
from study.simulation.source import Source
from study.simulation.variants import BAND, Summary, Variant, play, variants
from study.text.columns import columns

HOUR = 3600.0
SLOTS = "slots"
"""A key of `--vary` beside those of a study file."""


@dataclass(frozen=True)
class Wanted:
    """What is to be simulated.

    Attributes:
        name: a study of the home, or with `curves` a study file; None: the file that the curves are of.
        curves: a file of recorded curves, None: the study's own trials.
        assignments, vary: overrides of every variant, and those that make variants.
        repeats: courses of each variant.
        slots, nodes: the cluster.
        like: a study of the home that took as much besides its epochs.
    """

    name: str | None
    curves: Path | None = None
    assignments: Sequence[str] = ()
    vary: Sequence[str] = ()
    repeats: int = 100
    slots: int | None = None
    nodes: Sequence[str] = ()
    like: str | None = None


@dataclass(frozen=True)
class Simulated:
    """What came of it: `metric` of the study, `basis` in words, `load` that a driver would have to carry."""

    name: str
    metric: str
    basis: str
    repeats: int
    variants: list[Variant]
    load: list[carried.Load]


def source(home: Home, wanted: Wanted) -> Source:
    """Where the curves come from.

    Raises:
        UserError: neither a study nor curves are given, or they cannot be used.
    """
    if wanted.curves is not None:
        return Source.of_table(wanted.curves, wanted.name)
    if wanted.name is None:
        raise UserError("NAME or --curves FILE: is missing; curves come from a study that has run, or from a table")
    return Source.of_study(home, wanted.name)


def simulate(home: Home, wanted: Wanted, tell: Callable[[str], object] = str) -> Simulated:
    """Simulate every variant.

    Raises:
        UserError: something that is asked for cannot be simulated; nothing was.
    """
    found = source(home, wanted)
    like = observed(home, wanted.like) if wanted.like is not None else None
    chosen = variants(wanted.vary)
    if wanted.slots is not None and any(one.startswith(f"{SLOTS}=") for one in wanted.vary):
        raise UserError("--slots and --vary slots=...: give one of them")
    planned = []
    for one in chosen:
        slots = next((_whole(text) for text in one if text.startswith(f"{SLOTS}=")), wanted.slots)
        own = [text for text in one if not text.startswith(f"{SLOTS}=")]
        planned.append((one, found.spec([*wanted.assignments, *own]), found.cluster(wanted.nodes, slots, like)))
    results, load = [], []
    with Courses() as courses:
        for words, spec, cluster in planned:
            label = ", ".join(_short(text) for text in words)
            told = _counting(tell, label, wanted.repeats)
            result = play(label, spec, found.curves(spec), cluster, wanted.repeats, courses, told)
            results.append(result)
            load.append(carried.load(result))
    spec = planned[0][1]
    return Simulated(spec.name, spec.metric, found.words(), wanted.repeats, results, load)


def observed(home: Home, name: str) -> Overheads:
    """What a study of the home took besides its epochs.

    Raises:
        UserError: there is none, or it ran no trial.
    """
    found = overheads(ledger.read(home.find(name).ledger_file))
    if found is None:
        raise UserError(f"--like {name}: no driver of it ran a trial")
    return found


def document(found: Simulated) -> dict[str, Any]:
    """As plain values."""
    rows = []
    for variant, load in zip(found.variants, found.load, strict=True):
        row = asdict(variant)
        row["best"] = {axis: values.tolist() for axis, values in variant.best.items()}
        rows.append(row | {"load": asdict(load)})
    return {
        "name": found.name,
        "metric": found.metric,
        "basis": found.basis,
        "repeats": found.repeats,
        "band": list(BAND),
        "variants": rows,
    }


def text(found: Simulated) -> str:
    """For people."""
    band = f"{100 * BAND[0]:.0f} to {100 * BAND[1]:.0f}%"
    paid = any(variant.money.mean for variant in found.variants)
    head = [
        "variant",
        "slots",
        "found, on fresh seeds",
        "in the search",
        "found after",
        "search ends",
        "epochs",
        "study",
    ]
    rows = [[*head, *(["money"] if paid else []), "trials", "epochs lost"]]
    for variant in found.variants:
        after, ends = variant.found, variant.search
        rows.append(
            [
                variant.words or "as it is",
                str(variant.slots),
                _value(found.metric, variant.worth),
                formatting.value(found.metric, variant.value.mean),
                f"{_span(after['seconds'].mean)}, {after['epochs'].mean:.0f} epochs",
                _span(ends["seconds"].mean),
                f"{ends['epochs'].mean:.0f}",
                f"{_span(variant.seconds.mean)} ({_span(variant.seconds.low)} to {_span(variant.seconds.high)})",
                *([f"{variant.money.mean:.2f}"] if paid else []),
                f"{variant.trials.mean:.0f}",
                f"{variant.lost.mean:.0f}",
            ]
        )
    without = [f"{one.words}: in {one.without} no trial ran to its end" for one in found.variants if one.without]
    return "\n".join(
        [
            f"{found.name}: {found.repeats} courses of each variant; in brackets {band} of them",
            found.basis,
            "",
            *columns(rows, [0] * (len(rows[0]) - 1)),
            *without,
            "",
            "what the driver, its ledger and MLflow would carry:",
            *(f"  {variant.words or 'as it is'}: {carried.words(load)}" for variant, load in _zipped(found)),
        ]
    )


def write(found: Simulated, out: Path) -> list[Path]:
    """The figure, as PNG and PDF, the table and the numbers into a folder."""
    import json

    from study.analysis.figures.simulated import simulated
    from study.analysis.report.report import pdf, png

    title = f"{found.name}: best {found.metric} of {found.repeats} simulated courses"
    figure = simulated(title, found.metric, [(one.words, one.best) for one in found.variants])
    files: dict[str, str | bytes] = {
        "simulated.png": png(figure),
        "simulated.pdf": pdf(figure),
        "simulated.txt": text(found) + "\n",
        "simulated.json": json.dumps(document(found), indent=2, allow_nan=False) + "\n",
    }
    for name, content in files.items():
        write_output(out / name, content)
    return [out / name for name in files]


def _zipped(found: Simulated) -> list[tuple[Variant, carried.Load]]:
    return list(zip(found.variants, found.load, strict=True))


def _counting(tell: Callable[[str], object], label: str, repeats: int) -> Callable[[int], object]:
    return lambda done: tell(f"{label or 'as it is'}: {done} of {repeats} courses")


def _whole(text: str) -> int:
    value = text.partition("=")[2]
    if not value.isdigit() or int(value) < 1:
        raise UserError(f"--vary {text}: allowed are whole numbers from 1 on")
    return int(value)


def _short(text: str) -> str:
    """`early_stopping asha` of `search.early_stopping.name=asha`."""
    key, _, value = text.partition("=")
    return f"{key.removeprefix('search.').removesuffix('.name')} {value}"


def _value(metric: str, summary: Summary) -> str:
    low, high = (formatting.value(metric, value) for value in (summary.low, summary.high))
    return f"{formatting.value(metric, summary.mean)} ({low} to {high})"


def _span(seconds: float) -> str:
    return formatting.duration(seconds)
