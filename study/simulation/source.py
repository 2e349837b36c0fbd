"""The curves that a study is simulated over, and the study that is simulated: of a table, or of a study of the home."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from study.errors import UserError
from study.home import ledger
from study.home.folder import Home
from study.home.record import StudyRecord
from study.simulation.cluster import Cluster, Nodes
from study.simulation.curves import Curves
from study.simulation.observed import Overheads, overheads
from study.simulation.surrogate import Surrogate, surrogate
from study.simulation.table import Table
from study.spec import StudySpec, load_study
from study.spec.document import Document, override
from study.spec.load import resolve

SEARCHED_FROM = "search.from: a simulated search knows of no other study; --set search.from=null"


@dataclass(frozen=True)
class Source:
    """Curves, and the study file that overrides are applied to.

    Attributes:
        name: what it is called.
        table: recorded, None where `home` has a study that was run.
        file: of the study, a shipped name or a path; None: the curves' own.
        recorded: the study of the curves.
        model: of the curves, where there is no table.
        observed: what the study of the home took besides its epochs.
    """

    name: str
    table: Table | None
    file: str | None
    recorded: StudySpec
    model: Surrogate | None = None
    observed: Overheads | None = None

    @classmethod
    def of_table(cls, path: Path, file: str | None) -> "Source":
        """A file of recorded curves, with a study file or with its own."""
        table = Table.load(path)
        return cls(path.name, table, file, table.spec())

    @classmethod
    def of_study(cls, home: Home, name: str) -> "Source":
        """A study of the home.

        Raises:
            UserError: there is none, or it has too few trials.
        """
        folder = home.find(name)
        spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
        if spec.final_seeds is not None:
            raise UserError(f"{name}: is a final training, which has no search to simulate")
        observed = overheads(ledger.read(folder.ledger_file))
        return cls(name, None, None, spec, surrogate(spec, record), observed)

    def spec(self, assignments: Iterable[str]) -> StudySpec:
        """The study with these overrides.

        Raises:
            UserError: the curves do not tell of it.
        """
        given = list(assignments)
        if self.file is not None:
            spec = load_study(self.file, given)
        else:
            document = Document(self.name, {})
            override(document, [f"all={self.recorded.to_yaml()}"])
            document = Document(self.name, document.values["all"])
            override(document, given)
            spec = resolve(document)
        if spec.search.from_ is not None:
            raise UserError(SEARCHED_FROM)
        if self.table is None:
            self._check(spec)
        else:
            self.table.within(spec)
        return spec

    def _check(self, spec: StudySpec) -> None:
        """A model of curves knows of the study that it is of, and of no other trials."""
        recorded = self.recorded
        changed = [
            f"{section}.{key}"
            for section, values in recorded.base.items()
            for key, value in values.items()
            if spec.base.get(section, {}).get(key) != value
        ]
        if changed:
            raise UserError(f"{changed[0]}: was changed, but the curves of {self.name} are those of its own trials")
        for key, domain in spec.space.domains.items():
            known = recorded.space.domains.get(key)
            if known is None or not all(known.contains(end) for end in domain.ends()):
                raise UserError(f"search.space.{key}: reaches beyond what {self.name} searched")
        assert self.model is not None
        if missing := [name for name in spec.objective.needed if name not in self.model.metrics]:
            raise UserError(f"search.metric: {missing[0]} is not among {', '.join(self.model.metrics)}")

    def curves(self, spec: StudySpec) -> Callable[[int], Curves]:
        """The curves of each course of a study."""
        if self.table is not None:
            return self.table.within(spec).course
        assert self.model is not None
        return self.model.course

    def cluster(self, nodes: Iterable[str], slots: int | None, like: Overheads | None) -> Cluster:
        """The cluster that is asked for, by default slots as the study of the home had; with what it took besides."""
        seen = like or self.observed
        kinds = tuple(parsed(text) for text in nodes)
        if kinds and slots is not None:
            raise UserError("--slots and --nodes: give one of them")
        if not kinds:
            kinds = (Nodes(slots=slots or (seen.slots if seen else 1)),)
        if seen is None:
            return Cluster(kinds)
        kinds = tuple(kind if kind.process else replace(kind, process=seen.process) for kind in kinds)
        return Cluster(kinds, begins=seen.begins, trial=seen.trial, ends=seen.ends)

    def words(self) -> str:
        """What the curves are worth."""
        if self.table is not None:
            count, seeds = len(self.table.rows), len(self.table.seeds)
            return (
                f"curves: {count} configurations of {self.name}, recorded on {seeds} seeds; each suggestion stands for "
                "the nearest that was not tried, so that nothing better than these can be found"
            )
        assert self.model is not None
        error = self.model.error
        return (
            f"curves: a model of the {error.trials} trials of {self.name}, {error.complete} of which ran to their end. "
            f"Left out of it, these end {error.root_mean_square:.3g} away from what it says (root mean square; one "
            f"number for all would be {error.deviation:.3g} away), in an order that correlates {error.agreement:.2f} "
            f"with theirs. {'It knows hardly more than their mean. ' if error.is_weak else ''}What it says is about "
            "this study"
        )


def parsed(text: str) -> Nodes:
    """Nodes of one kind from `count=10,slots=8,start=120`.

    Raises:
        UserError: says which keys there are.
    """
    known = Nodes.__dataclass_fields__
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known or not equals:
            raise UserError(f"--nodes {text}: {part!r} given, allowed is KEY=NUMBER of {', '.join(known)}")
        try:
            given[name] = int(value) if name in ("count", "slots") else float(value)
        except ValueError:
            raise UserError(f"--nodes {text}: {name} {value!r} given, allowed is a number") from None
    try:
        return Nodes(**given)
    except UserError as error:
        raise UserError(f"--nodes {text}: {str(error).removeprefix('nodes: ')}") from None
