"""The sentences under a suite's tables: each only where the numbers carry it."""

from collections import Counter
from collections.abc import Iterator

from study.analysis.statistics import formatting
from study.analysis.statistics.ranks import LEVEL
from study.analysis.statistics.suite_table import AVERAGE, RuleTable
from study.analysis.tables.suite_grid import deviation, level
from study.spec import rungs
from study.spec.suite import Suite


def table_notes(suite: Suite, table: RuleTable) -> list[str]:
    """What the numbers of one rule's table say, and what they do not."""
    return [_cells(suite, table), *_bold(table), *_ranks(suite, table), *_spread(table), *_missing(suite, table)]


def suite_notes(suite: Suite) -> list[str]:
    """What holds for all tables of a suite: budget, splits, averages."""
    spec = suite.cells[0].spec
    trials = max(cell.spec.trials for cell in suite.cells)
    stopping = rungs.words(spec.search.early_stopping, spec.epochs)
    lines = [
        f"Each search: {formatting.count(trials, 'trial')} of at most {formatting.count(spec.epochs, 'epoch')}, "
        f"sampler {spec.search.sampler}, {spec.metric}; early stopping: {stopping}. What a rule picks then runs on "
        f"{suite.seeds} fresh seeds, and test is read for these alone."
    ]
    single = [method for method in suite.methods if not suite.by_place[method, suite.data[0]][0].spec.search.space]
    if single and trials > 1:
        lines.append(f"Without a space, so one configuration and nothing to pick: {formatting.listed(single)}.")
    if suite.split == "same":
        lines.append(
            "All searches on a data set share its split, so no number tells how much another split would change."
        )
    else:
        lines.append("Each search has a split of its own, so ± has the split's luck in it.")
    lines.append(
        f"The {AVERAGE} is over these data sets. Its standard error comes from the searches on each; how methods would "
        "do on other data sets it does not tell."
    )
    return lines


def _cells(suite: Suite, table: RuleTable) -> str:
    unit = f"{table.judge} in percent" if formatting.in_percent(table.judge) else table.judge
    text = f"{unit} of what the rule {table.rule} picks: mean over searches of the mean over fresh seeds"
    if suite.searches == 1:
        return f"{text}; from one search there is no standard error."
    return f"{text}, ± standard error over searches (not over seeds); {suite.searches} searches in a cell."


def _bold(table: RuleTable) -> Iterator[str]:
    judged = {column: [told for told in leads.values() if told is not None] for column, leads in table.leading.items()}
    if not any(judged.values()):
        return
    if all(len(told) < 2 for told in judged.values()):
        yield "Bold: the best of a column. No two methods have two searches in common, so none are told apart."
        return
    text = "Bold: the best of a column, and those that the searches do not tell from it (95%, all pairs at once)."
    if table.reach is not None:
        low, high = (_points(table, end) for end in table.reach)
        apart = low if low == high else f"{low} (the pair that varies least) to {high} (the one that varies most)"
        text += f" To be told from each other, two averages have to be {apart} apart."
    yield text


def _ranks(suite: Suite, table: RuleTable) -> Iterator[str]:
    ranks = table.ranks
    if ranks is None:
        if len(suite.methods) > 1:
            yield "No ranks: they need two data sets on which every method has a value."
        return
    yield (
        f"Rank: the mean place over {ranks.blocks} data sets, 1 is best; searches on one data set are no further data "
        f"sets. Friedman's test by permutation: p = {ranks.p:.3f}; critical difference {ranks.critical:.2f} (Nemenyi, "
        "95%, all pairs at once)."
    )
    if not ranks.can_tell:
        largest = len(suite.methods) - 1
        yield (
            f"So few data sets cannot tell any two methods apart by rank: the largest possible difference is {largest}."
        )
    elif ranks.apart:
        pairs = [f"{better} before {worse}" for better, worse in ranks.apart]
        yield f"Told apart by rank: {formatting.listed(pairs)}."
    else:
        yield "No two methods are told apart by rank."
    names = Counter(str(suite.by_place[suite.methods[0], label][0].spec.base["data"]["name"]) for label in suite.data)
    if repeated := [f"{count} are variants of {name}" for name, count in names.items() if count > 1]:
        yield (
            f"Of the data sets {formatting.listed(repeated)}: these are no independent draws, and the test by ranks "
            "speaks of such variants alone."
        )


def _spread(table: RuleTable) -> Iterator[str]:
    found = table.components
    if found.search is None or found.seed is None or found.p is None:
        return
    seed = _points(table, found.seed)
    if found.p > LEVEL:
        yield (
            f"From seed to seed the standard deviation is {seed}. That searches differ by more than their seeds is not "
            f"shown (p = {found.p:.3f})."
        )
        return
    yield (
        f"From search to search the standard deviation is {_points(table, found.search)}, what seeds bring into it "
        f"taken off (p {_compared(found.p)}); from seed to seed {seed}."
    )


def _missing(suite: Suite, table: RuleTable) -> Iterator[str]:
    reasons = Counter[str]()
    for counts in table.results.missing.values():
        reasons.update(counts)
    if reasons:
        told = [f"{count} {reason}" for reason, count in reasons.items()]
        yield f"Of {len(suite.cells)} searches without a value: {formatting.listed(told)}."


def _compared(p: float) -> str:
    """A p value with its sign."""
    text = level(p)
    return text if text.startswith("<") else f"= {text}"


def _points(table: RuleTable, value: float) -> str:
    return (
        f"{deviation(table.judge, value)} points"
        if formatting.in_percent(table.judge)
        else deviation(table.judge, value)
    )
