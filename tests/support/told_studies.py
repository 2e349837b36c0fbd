"""Studies told trial by trial, so that together with the kept ones they make the software say all that it can say."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from helpers import Told, quickstart, record

from study.analysis.report.caveats import CouldNotReadTestSplit, caveat_statements
from study.analysis.report.conclusions import InputRevealsClass, LikelyShortcut, SuspiciousResult
from study.analysis.report.report_lead import report_lead_statements
from study.analysis.statistics.next_step import TrialFailed, UndecidedBySamples, next_steps
from study.commands.final_training import final_training_spec
from study.home.events import EnsembleMeasured, GroupSampleCounts, ReferenceFitted
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.spec.load import check_and_complete_document
from study.spec.yaml_document import YamlDocument

Kind = TypeVar("Kind", bound=Statement)
Values = tuple[float, float]
"""Accuracy and equalized odds."""


def statements(results: Results) -> Iterator[Statement]:
    """All that is said of a study in the lead, in what is not known and in its next steps."""
    for said in report_lead_statements(results).values():
        yield from said
    yield from caveat_statements(results)
    yield from (step.why for step in next_steps(results))


def said(kind: type[Kind], results: Results) -> list[Kind]:
    """What of this kind is said, each once."""
    found: list[Kind] = []
    found += (one for one in statements(results) if isinstance(one, kind) and one not in found)
    return found


def only(kind: type[Kind], results: Results) -> Kind:
    """The one of this kind."""
    (found,) = said(kind, results)
    return found


def over(*trials: Told) -> StudyRecord:
    """A study that is complete."""
    found = record(*trials)
    found.state = "complete"
    return found


def trained_twice(joined: float | None) -> StudyRecord:
    """A final training of two seeds, whose ensemble is so good on validation; None: there it was not measured."""
    tested = {"test/accuracy": 0.5}
    found = over(Told("final", [0.5], tested=tested), Told("final", [0.6], seed=1, tested=tested))
    validated = {} if joined is None else {"val/accuracy": joined, ERROR: 0.02}
    of_ensemble = {**validated, "test/accuracy": 0.55}
    found.apply(EnsembleMeasured((0, 1), of_ensemble, time=99.0))
    return found


def fresh(*values: tuple[float | None, ...], tested: bool = False) -> list[Told]:
    """Fresh seeds of the trials 0, 1, ..., from seed 1 on; `tested`: with the same values on the test split."""
    return [
        Told("confirm", [value], seed=seed, repeats=of, tested={"test/accuracy": value or 0.0} if tested else {})
        for of, each in enumerate(values)
        for seed, value in enumerate(each, 1)
    ]


WHOLE = ("train.epochs=1", "search.early_stopping={name: none}")
ONE = quickstart(*WHOLE, "search.confirm={top: 2, seeds: 3}")
ALONE = quickstart(*WHOLE, "search.confirm={top: 0}")
SAME = (0.5, 0.5, 0.5)
TWO = [Told("search", [0.7]), Told("search", [0.6])]
ROUNDED = (0.5 + 1 / 30, 0.5 + 1 / 30 + 2e-16, 0.53333336)
PAIRS = {
    "a runner-up that is as good": (
        ONE,
        [Told("baseline", [0.4]), *TWO, *fresh((0.4, 0.4, 0.41), (0.7, 0.702, 0.704), (0.7, 0.7, 0.703))],
    ),
    "the baseline wins": (
        ONE,
        [Told("baseline", [0.8]), *TWO, *fresh((0.83, 0.84, 0.82), (0.7, 0.72, 0.75), (0.59, 0.62, 0.64), tested=True)],
    ),
    "all equal": (
        ONE,
        [Told("baseline", [0.5]), *(Told("search", [0.5]) for _ in range(4)), *fresh(SAME, SAME, SAME, tested=True)],
    ),
    "pruned but one": (
        ALONE,
        [Told("baseline", [0.5]), Told("search", [0.7]), *(Told("search", [0.4], "pruned") for _ in range(4))],
    ),
    "one configuration": (ALONE, [Told("search", [0.7])]),
    "equal but for rounding": (
        ONE,
        [Told("baseline", [0.5]), *TWO, *fresh(SAME, ROUNDED, (0.5 + 1e-16, 0.5, 0.5), tested=True)],
    ),
    "differences equal but for rounding": (
        ONE,
        [Told("baseline", [0.5]), *TWO, *fresh((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), (0.35, 0.45, 0.55), tested=True)],
    ),
    "no number on a seed": (
        ONE,
        [
            Told("baseline", [0.5]),
            *TWO,
            *fresh((0.5, 0.52, 0.51), tested=True),
            *fresh((), (0.62, None, None), (0.62, 0.64, 0.66)),
        ],
    ),
    "rules alone": (
        ALONE,
        [Told("baseline", [0.5]), *TWO, *(Told("rule", [0.7], seed=seed, repeats=1) for seed in (1, 2, 3))],
    ),
}
"""Studies whose pages say something of pairs of configurations."""

# What needs no search, beside what is searched.

ERROR = "val/accuracy_standard_error"
ODDS = "val/equalized_odds"
PARAMS = {"method.alpha": 0.02, "method.lambda": 1.0, "method.epsilon": 0.0}
CONSTRAINT = f"search.constraints=[{ODDS} <= 0.1]"
FRONT = f"search.metric=[val/accuracy, {ODDS}]"


def referenced_spec(*others: str) -> StudySpec:
    metric = "search.metric=val/accuracy"
    return quickstart(*WHOLE, metric, "search.references=true", "search.confirm={top: 0, seeds: 2}", *others)


def referenced(
    beside: dict[str, Values],
    searched: list[Values],
    baseline: Values = (0.5, 0.3),
    tested: Mapping[str, float] = MappingProxyType({}),
) -> StudyRecord:
    """A complete study with these references and trials, all of standard error 2 points.

    Args:
        tested: accuracy on the test split, by the reference; of every trial under `search`.
    """

    def trial(stage: str, values: Values, **more: Any) -> Told:
        further = {ERROR: 0.02, ODDS: values[1]}
        on_test = {"test/accuracy": tested["search"]} if "search" in tested else {}
        return Told(stage, [values[0]], further=further, tested=on_test, **more)

    own = [{**PARAMS, "method.alpha": 0.02 + 0.01 * place} for place in range(len(searched))]
    trials = [trial("search", values, params=params) for values, params in zip(searched, own, strict=True)]
    found = over(trial("baseline", baseline, params=dict(referenced_spec().search.baseline or {})), *trials)
    for name, (accuracy, odds) in beside.items():
        metrics = {"val/accuracy": accuracy, ERROR: 0.02, ODDS: odds}
        metrics |= {"test/accuracy": tested[name]} if name in tested else {}
        found.apply(ReferenceFitted(name, metrics, 1.0, time=90.0))
    return found


WINS = {"logistic_regression": (0.8, 0.2), "majority": (0.3, 0.0)}
LOSES = {"logistic_regression": (0.6, 0.2), "majority": (0.3, 0.0)}
TIES = {"logistic_regression": (0.7, 0.2)}
MARGIN = "search.margin=1"
REFERENCED = {
    "wins": (referenced_spec(), referenced(WINS, [(0.7, 0.2), (0.6, 0.2)])),
    "wins, worse on test": (
        referenced_spec(),
        referenced(WINS, [(0.7, 0.2)], tested={"search": 0.9, "logistic_regression": 0.6}),
    ),
    "loses": (referenced_spec(), referenced(LOSES, [(0.7, 0.2), (0.65, 0.2)])),
    "ties": (referenced_spec(), referenced(TIES, [(0.7, 0.2)])),
    "within the margin": (referenced_spec(MARGIN), referenced(TIES, [(0.72, 0.2)])),
    "beyond the margin": (referenced_spec(MARGIN), referenced(TIES, [(0.74, 0.2)])),
    "two metrics, dominates": (referenced_spec(FRONT), referenced(WINS, [(0.7, 0.2), (0.75, 0.25)])),
    "two metrics, one each": (referenced_spec(FRONT), referenced(WINS, [(0.7, 0.1)])),
    "keeps the limit": (referenced_spec(CONSTRAINT), referenced({"majority": (0.3, 0.0)}, [(0.7, 0.2)])),
    "misses the limit": (referenced_spec(CONSTRAINT), referenced(WINS, [(0.7, 0.05)])),
    "nothing keeps the limit": (
        referenced_spec(f"search.metric={ODDS}", "search.constraints=[val/accuracy >= 0.999]"),
        referenced(
            {"logistic_regression": (0.85, 0.1), "hist_gradient_boosting_class_balanced": (0.95, 0.6)},
            [(0.909, 0.2), (0.7, 0.05)],
        ),
    ),
    "needs the group": (referenced_spec(), referenced({"threshold_optimizer": (0.9, 0.0), **LOSES}, [(0.7, 0.2)])),
    "behind on test": (
        referenced_spec(),
        referenced(
            {
                **LOSES,
                "logistic_regression_class_balanced": (0.58, 0.1),
                "hist_gradient_boosting_class_balanced": (0.5, 0.1),
            },
            [(0.7, 0.2)],
            tested={
                **{"search": 0.8, "logistic_regression": 0.75, "majority": 0.3},
                **{"logistic_regression_class_balanced": 0.9, "hist_gradient_boosting_class_balanced": 0.82},
            },
        ),
    ),
    "the baseline leads": (referenced_spec(), referenced(LOSES, [(0.4, 0.2)], baseline=(0.55, 0.2))),
}
"""Studies with what needs no search, by how that stands to what the search found."""

# Incumbents.

OURS, OTHER = {"method.alpha": 0.02, "method.lambda": 1.0}, {"method.alpha": 0.03, "method.lambda": 1.5}
DRAWN = {"method.alpha": 0.05, "method.lambda": 1.2}
ENQUEUED = f"search.enqueue=[{OURS}, {OTHER}]".replace("'", '"')


def incumbent_spec(margin: float = 1.0, *others: str) -> StudySpec:
    given = (f"search.margin={margin}", ENQUEUED, "search.confirm={top: 1, seeds: 2}")
    return quickstart(*WHOLE, "search.metric=val/accuracy", *given, *others)


def judged(stage: str, value: float, params: dict[str, Any], error: float | None = 0.02, **more: Any) -> Told:
    """A trial with the standard error of its accuracy."""
    further = {} if error is None else {ERROR: error}
    return Told(stage, [value], params=params, further=further | more.pop("further", {}), **more)


def incumbents(*values: float, error: float | None = 0.02) -> list[Told]:
    """The baseline, the enqueued two, then drawn ones with these values."""
    given = [("baseline", dict(incumbent_spec().search.baseline or {})), ("search", OURS), ("search", OTHER)]
    drawn = [("search", DRAWN | {"method.alpha": 0.05 + 0.01 * place}) for place in range(len(values) - 3)]
    return [
        judged(stage, value, params, error) for (stage, params), value in zip([*given, *drawn], values, strict=True)
    ]


# What a gain costs, and groups.

AGAINST = quickstart(*WHOLE, "search.metric=val/conflicting_accuracy", "search.confirm={top: 1, seeds: 3}")


def measured(
    stage: str,
    conflicting: float,
    aligned: float,
    accuracy: float,
    seed: int = 0,
    error: float | None = None,
    **given: int,
) -> Told:
    """A trial with its accuracy against the bias, with it and over all, on validation and, by a little less, on
    test; `error`: the standard error of those against the bias and with it."""
    values = {"aligned_accuracy": aligned, "accuracy": accuracy}
    tested = {f"test/{name}": value - 0.01 for name, value in {**values, "conflicting_accuracy": conflicting}.items()}
    if error is not None:
        tested |= {f"test/{name}_accuracy_standard_error": error for name in ("aligned", "conflicting")}
    further = {f"val/{name}": value for name, value in values.items()}
    params = {"method.alpha": conflicting} if stage == "search" else {}
    metric = "val/conflicting_accuracy"
    return Told(stage, [conflicting], seed=seed, metric=metric, further=further, tested=tested, params=params, **given)


def traded(searched: float = 0.63, milder: float | None = None) -> StudyRecord:
    """The best gains on conflicting samples and loses much of all others on fresh seeds, whatever accuracy it had in
    the search; trial 2 loses less, and has so much against the bias on fresh seeds, if it ran on any."""
    off = (-0.01, 0.0, 0.01)
    return over(
        measured("baseline", 0.38, 0.98, 0.92),
        measured("search", 0.54, 0.64, searched),
        measured("search", 0.45, 0.95, 0.90),
        measured("search", 0.40, 0.97, 0.91),
        *(measured("confirm", 0.38 + by, 0.98, 0.92 + by, seed, repeats=0) for seed, by in enumerate(off, 1)),
        *(measured("confirm", 0.54 - by, 0.64, 0.63, seed, repeats=1) for seed, by in enumerate(off, 1)),
        *(measured("confirm", milder, 0.95, 0.89, seed, repeats=2) for seed in (1, 2, 3) if milder is not None),
    )


def ahead_without_search() -> StudyRecord:
    """A reference with more of all accuracies on test than the best, which is behind in the study's own metric."""
    off = (-0.01, 0.0, 0.01)

    def told(stage: str, loss: float, fair: float, accuracy: float, seed: int = 0, **given: int) -> Told:
        values = {"val/shrunk_unbiased_accuracy": fair, "val/accuracy": accuracy}
        tested = {f"test/{name[4:]}": value for name, value in values.items()}
        params = {"method.alpha": 0.5} if stage == "search" else {}
        metric = "val/shrunk_unbiased_log_loss"
        return Told(stage, [loss], seed=seed, metric=metric, further=values, tested=tested, params=params, **given)

    found = over(
        told("baseline", 1.5, 0.51, 0.83),
        told("search", 0.9, 0.59, 0.61),
        *(told("confirm", 1.5 + by, 0.51 + by, 0.83 - by, seed, repeats=0) for seed, by in enumerate(off, 1)),
        *(told("confirm", 0.9 + by, 0.59 - by, 0.61 + by, seed, repeats=1) for seed, by in enumerate(off, 1)),
    )
    metrics = {"val/shrunk_unbiased_log_loss": 1.4, "test/shrunk_unbiased_accuracy": 0.64, "test/accuracy": 0.84}
    found.apply(ReferenceFitted("logistic_regression_class_balanced", metrics, 1.0, time=90.0))
    return found


FAIR_LOSS = quickstart(*WHOLE, "search.metric=val/shrunk_unbiased_log_loss", "search.confirm={top: 1, seeds: 3}")


def level(conflicting: float = 0.9, error: float = 0.008) -> StudyRecord:
    """A baseline that follows no bias, if it has so many conflicting samples right, and a search that gains nothing."""
    off = (-0.003, 0.0, 0.003)
    return over(
        measured("baseline", conflicting, 0.91, 0.9, error=error),
        measured("search", conflicting + 0.001, 0.91, 0.9, error=error),
        *(measured("confirm", conflicting + by, 0.91, 0.9, seed, error, repeats=0) for seed, by in enumerate(off, 1)),
        *(measured("confirm", conflicting - by, 0.91, 0.9, seed, error, repeats=1) for seed, by in enumerate(off, 1)),
    )


LIMITED = quickstart(*WHOLE, "search.constraints=['val/equalized_odds <= 0.1']", "search.confirm={top: 2, seeds: 2}")


def broken_anew(gap: float = 0.2) -> StudyRecord:
    """What led the search has this gap on fresh seeds; the other configuration keeps the limit there too."""

    def gapped(stage: str, value: float, gap: float, seed: int = 0, **given: Any) -> Told:
        return Told(stage, [value], seed=seed, further={"val/equalized_odds": gap}, **given)

    return over(
        gapped("baseline", 0.5, 0.05),
        gapped("search", 0.8, 0.09, params={"method.alpha": 0.1}),
        gapped("search", 0.7, 0.05, params={"method.alpha": 0.2}),
        *(gapped("confirm", 0.5, 0.05, seed, repeats=0) for seed in (1, 2)),
        *(gapped("confirm", 0.8, gap, seed, repeats=1) for seed in (1, 2)),
        *(gapped("confirm", 0.7, 0.05, seed, repeats=2) for seed in (1, 2)),
    )


def kept_in_search_alone(*further: Told) -> StudyRecord:
    """The one configuration on fresh seeds breaks there the limit that it and another kept in the search."""
    pairs = [(0.7, 0.2), (0.9, 0.3), (0.9, 0.02), (0.85, 0.01)]
    params = [{"method.alpha": each / 4, "method.lambda": 1.0, "method.epsilon": 0.0} for each in range(1, 5)]
    searched = [
        Told("search" if number else "baseline", [accuracy], params=params[number], further={ODDS: gap})
        for number, (accuracy, gap) in enumerate(pairs)
    ]
    ran = [
        Told("confirm", [value + 0.001 * seed], params=params[number], further={ODDS: gap}, seed=seed, repeats=number)
        for number, value, gap in ((0, 0.7, 0.2), (2, 0.9, 0.15))
        for seed in (1, 2)
    ]
    return over(*searched, *ran, *further)


def limited_to_one(*assignments: str) -> StudySpec:
    """A study with a limit, of which one configuration runs on fresh seeds."""
    confirm, limit = "search.confirm={top: 1, seeds: 2, front: 0}", f"search.constraints=[{ODDS} <= 0.05]"
    return quickstart(*WHOLE, confirm, limit, "search.trials=4", *assignments)


TWO_METRICS = quickstart(
    *WHOLE, f"search.metric=[val/accuracy, {ODDS}]", "search.confirm={top: 2, seeds: 3}", "search.trials=2"
)
NEARLY = (0.9015, 0.901, 0.9035)


def cheaper(accuracy: tuple[float, ...] = NEARLY, gap: float = 0.14, start: float = 0.7) -> StudyRecord:
    """A front of two: the second has this accuracy on fresh seeds, and this gap, about half of that of the first."""
    chosen = ((0.901, 0.30), (0.902, 0.31), (0.904, 0.29))
    trials = [Told("baseline", [start], further={ODDS: 0.5})]
    searched = (((0.91, 0.3), 0.1), ((0.9, gap), 0.2))
    trials += [
        Told("search", [value], further={ODDS: odds}, params={"method.alpha": alpha})
        for (value, odds), alpha in searched
    ]
    for seed, (first, second) in enumerate(zip(chosen, accuracy, strict=True), 1):
        anew = [(start + seed / 1000, 0.5), first, (second, gap + seed / 1000)]
        trials += [
            Told("confirm", [value], further={ODDS: odds}, seed=seed, repeats=of)
            for of, (value, odds) in enumerate(anew)
        ]
    return over(*trials)


CELLS = GroupSampleCounts.from_sizes(
    {"val": [[40, 8], [0, 30]], "classes": ["cat", "dog"], "biases": ["dark", "light"], "aligned": [0, 1]}
)


def grouped() -> StudyRecord:
    """One configuration that serves a group of eight worst, on a small split."""
    own = {"val/group_0_0_accuracy": 0.9, "val/group_0_1_accuracy": 0.25, "val/worst_group_accuracy": 0.25}
    errors = {"val/worst_group_accuracy_standard_error": 0.1, ERROR: 0.06}
    found = record(Told("search", [0.6], further={**own, **errors}))
    found.group_sample_counts = CELLS
    return found


def guessed() -> StudyRecord:
    """A complete study whose best is right in half of its conflicting samples and wrong in as many aligned ones."""
    shares = {"val/unbiased_accuracy": 0.52, "val/unbiased_accuracy_standard_error": 0.04}
    found = over(Told("baseline", [0.9], further=shares), Told("search", [0.91], further=shares))
    found.group_sample_counts = GroupSampleCounts.from_sizes(
        {"val": [[40, 8], [6, 30]], "classes": ["cat", "dog"], "biases": ["dark", "light"], "aligned": [0, 1]}
    )
    return found


def of_other_data() -> tuple[StudySpec, StudyRecord]:
    """Four configurations on two kinds of data."""
    space = "search.space={data.rho: {choices: [0.9, 0.99]}, method.lambda: {choices: [0.5, 1.0]}}"
    trials = [
        Told("search", [value], params={"data.rho": rho, "method.lambda": weight})
        for rho, value in ((0.9, 0.8), (0.99, 0.5))
        for weight in (0.5, 1.0)
    ]
    return quickstart(space, "search.baseline=null"), over(*trials)


def of_own_function() -> StudySpec:
    """A study of a function of the user's own, which gives values and no errors."""
    search = {
        "space": {"method.rate": {"low": 0.001, "high": 1.0}},
        "baseline": {"method.rate": 0.01},
        "metric": ["val/accuracy", "val/used"],
        "direction": ["max", "min"],
        "confirm": {"top": 1, "seeds": 3},
    }
    method = {"name": "own_function", "function": "own_functions:train"}
    values = {"name": "own", "method": method, "train": {"epochs": 1}, "search": search}
    return check_and_complete_document(YamlDocument("own.yaml", values))


def equal_on_validation() -> StudyRecord:
    """Two configurations that validation does not tell apart, and test does, on every seed alike."""

    def told(stage: str, used: float, accuracy: float, seed: int = 0, **given: int) -> Told:
        tested = {"test/accuracy": accuracy, "test/used": used}
        params = {"method.rate": 0.02 if used < 39 else 0.01}
        return Told(stage, [0.921], seed=seed, further={"val/used": used}, tested=tested, params=params, **given)

    return over(
        told("baseline", 39.0, 0.944),
        told("search", 34.0, 0.981),
        *(told("confirm", 39.0, 0.944, seed, repeats=0) for seed in (1, 2, 3)),
        *(told("confirm", 33.0, 0.981, seed, repeats=1) for seed in (1, 2, 3)),
    )


def all_told() -> dict[str, Results]:
    """Every study of this module by name."""
    found = {name: (spec, over(*trials)) for name, (spec, trials) in PAIRS.items()}
    found |= {f"references: {name}": study for name, study in REFERENCED.items()}
    short = referenced({}, [(0.7, 0.2)])
    short.apply(ReferenceFitted("logistic_regression", {"val/balanced_accuracy": 0.9}, 1.0, time=90.0))
    short.apply(ReferenceFitted("majority", reason="no memory", time=90.0))
    blind = {"val/aligned_accuracy": 0.9}
    found |= {
        "references: lacking": (referenced_spec(), short),
        "within the margin of an incumbent": (incumbent_spec(), over(*incumbents(0.5, 0.7, 0.65, 0.712))),
        "a margin without errors": (incumbent_spec(), over(*incumbents(0.5, 0.7, 0.65, 0.71, error=None))),
        "traded": (AGAINST, traded()),
        "ahead without a search": (FAIR_LOSS, ahead_without_search()),
        "an own function": (of_own_function(), equal_on_validation()),
        "level": (AGAINST, level()),
        "broken anew": (LIMITED, broken_anew()),
        "kept in the search alone": (limited_to_one(), kept_in_search_alone()),
        "as good for half": (TWO_METRICS, cheaper()),
        "groups": (ALONE, grouped()),
        "guessed": (quickstart(), guessed()),
        "other data": of_other_data(),
        "not begun": (ALONE, record()),
        "running": (ALONE, record(Told("baseline", [0.5]), Told("search", [0.6], "running"))),
        "blind": (ALONE, over(Told("baseline", [0.5], further=blind), Told("search", [0.5], further=blind))),
        "narrow kernel": (ALONE, over(Told("search", [0.5], further={"train/weight_sum": 0.02}))),
        "one final seed": (
            final_training_spec(ALONE, [0]),
            over(Told("final", [0.5], tested={"test/accuracy": 0.4}, further={ERROR: 0.06})),
        ),
        "told by its study": (
            replace(
                final_training_spec(ALONE, [0]), origin={"study": "birds", "told": ["It rose.", "It cost little."]}
            ),
            over(Told("final", [0.5])),
        ),
        "ensemble": (final_training_spec(ALONE, [0, 1]), trained_twice(0.62)),
        "ensemble behind a seed": (final_training_spec(ALONE, [0, 1]), trained_twice(0.58)),
    }
    return {name: Results(spec, told) for name, (spec, told) in found.items()}


def by_hand() -> list[Statement]:
    """Statements that rest on a user's files or on folds, and of a study that failed."""
    side = Results(ALONE, over(Told("search", [0.995]))).baseline_and_best_arms[1]
    assert side is not None
    telling = InputRevealsClass("column 'copy' alone tells the class: right in 98.0%")
    doubted = (SuspiciousResult("val/accuracy", side, inputs) for inputs in (1, 0, None))
    return [
        telling,
        LikelyShortcut("lab", 0.84),
        *doubted,
        CouldNotReadTestSplit([3], "no memory"),
        UndecidedBySamples(side, side),
        TrialFailed("boom", 0, "BUG: RuntimeError: my own bug"),
    ]
