"""What `study plan --simulate` advises: how to spend a budget of epochs, hours or money."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from study.analysis.statistics import formatting
from study.errors import UserError
from study.home.folder import Home
from study.simulation.advice import Choice, advise
from study.simulation.cluster import Nodes
from study.simulation.simulate import Limit
from study.simulation.source import Source
from study.text.columns import columns

HOUR = 3600.0
ENOUGH = 12
"""Trials of a study whose model may advise: from 8 the advice was up to 1.4 points behind no early stopping, on curves
whose truth is known (`tests/benchmarks/plan_advice.py`)."""
REPEATS = 20
SHOWN = 5
SLOTS = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Budget:
    """One of: epochs of all trials, hours until the search ends, money at a price of a slot for an hour."""

    epochs: int | None = None
    deadline: float | None = None
    money: float | None = None
    price: float | None = None

    def check(self) -> None:
        """Raises:
        UserError: none is given, or several, or money without its price.
        """
        given = [value for value in (self.epochs, self.deadline, self.money) if value is not None]
        if len(given) != 1:
            raise UserError("--simulate: give one of --budget-epochs, --deadline HOURS, --money with --price")
        if given[0] <= 0 or (self.price is not None and self.price <= 0):
            raise UserError(
                f"--simulate: the budget {given[0]:g} given, allowed is a number above 0, and so is a price"
            )
        if (self.money is None) != (self.price is None):
            raise UserError("--money X: needs --price P, of one slot for an hour, and --price goes with it alone")

    @property
    def limit(self) -> Limit:
        """For a simulated course."""
        if self.epochs is not None:
            return Limit(epochs=self.epochs)
        return Limit(seconds=self.deadline * HOUR) if self.deadline is not None else Limit(money=self.money or 0.0)

    def words(self) -> str:
        """For people."""
        if self.epochs is not None:
            return f"{self.epochs} epochs"
        return (
            f"{self.deadline:g} hours" if self.deadline is not None else f"{self.money:g} at {self.price:g} a slot hour"
        )


def advice(
    home: Home,
    file: str,
    assignments: Sequence[str],
    known: str,
    budget: Budget,
    tell: Callable[[str], object] = str,
) -> dict[str, Any]:
    """Ways to spend the budget, the advised one first, as plain values.

    Args:
        file: of the study that is planned.
        known: the study of the home whose curves are used, or a file of recorded ones.

    Raises:
        UserError: the budget or the curves cannot be used, or the curves know too little.
    """
    budget.check()
    path = Path(known)
    source = Source.of_table(path, file) if path.suffix == ".npz" else replace(Source.of_study(home, known), file=file)
    if source.model is not None and (source.model.error.is_weak or source.model.error.trials < ENOUGH):
        few = f": {ENOUGH} trials are needed" if source.model.error.trials < ENOUGH else ""
        raise UserError(
            f"--simulate {known}: nothing is advised{few}. {source.words()}. What knows more: the study with early "
            f"stopping off (--set search.early_stopping.name=none) and {ENOUGH} trials or more, or a file of recorded "
            "curves"
        )
    seen = source.cluster((), None, None)
    kinds = [Nodes(slots=slots, price=budget.price or 0.0, process=seen.nodes[0].process) for slots in SLOTS]
    clusters = [seen] if budget.epochs is not None else [replace(seen, nodes=(kind,)) for kind in kinds]
    spec = source.spec(assignments)
    choices = advise(source, list(assignments), clusters, budget.limit, REPEATS, tell)
    return {
        "study": spec.name,
        "metric": spec.metric,
        "basis": source.words(),
        "budget": budget.words(),
        "repeats": REPEATS,
        "choices": [_document(choice) for choice in choices],
    }


def text(document: dict[str, Any]) -> str:
    """For people: the advised choice, and what comes next."""
    metric, choices = document["metric"], document["choices"][:SHOWN]
    rows = [["early stopping", "slots", "trials", "found, on fresh seeds", "epochs", "time", "money"]]
    for choice in choices:
        rule = choice["early_stopping"]
        name = "none" if rule["name"] == "none" else f"asha, grace {rule['grace']}, reduction {rule['reduction']}"
        worth = choice["worth"]
        low, high = (formatting.value(metric, worth[end]) for end in ("low", "high"))
        found = f"{formatting.value(metric, worth['mean'])} ({low} to {high})"
        span = formatting.duration(choice["seconds"])
        money = f"{choice['money']:.2f}" if choice["money"] else formatting.MISSING
        cells = [name, str(choice["slots"]), str(choice["trials"]), found, f"{choice['epochs']:.0f}", span, money]
        rows.append(cells)
    first = choices[0]
    given = " ".join(f"--set '{one}'" for one in first["assignments"])
    return "\n".join(
        [
            f"a search within {document['budget']}, simulated {document['repeats']} times for each choice; confirm "
            "trials come on top",
            document["basis"],
            *columns(rows, [0] * (len(rows[0]) - 1)),
            f"advised: {given} with {first['slots']} slots. Those below it are no better by more than the simulation's "
            "standard error, or worse",
        ]
    )


def _document(choice: Choice) -> dict[str, Any]:
    values = {key: value for key, value in vars(choice).items() if key != "worth"}
    return values | {"worth": vars(choice.worth), "assignments": choice.assignments}
