"""Every figure may be missing: whatever groups a split lacks, card, report, tables, JSON and MLflow say the rest."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import Told, quickstart, record
from helpers import events as told_events

from study import data
from study.analysis.report import report_lead
from study.analysis.report.page_formats import page_to_html, page_to_markdown
from study.analysis.report.report_page import build_report_page
from study.analysis.report.write_report import write_report
from study.analysis.statistics.compare_studies import compare_studies, comparison_table
from study.analysis.statistics.trials_frame import trials_frame
from study.commands.final_training import final_training_spec
from study.data import Dataset, Split
from study.data.cells import group_sizes
from study.home.events import GroupSampleCounts
from study.home.record import StudyRecord, finite_metrics
from study.metrics.worst_group import find_worst_group
from study.ranking import Results, study_summary
from study.ranking.json_documents import to_plain_value
from study.spec import StudySpec
from study.tracking.runs_from_events import EventTranslator
from study.tracking.tracking_state import TrackingState
from study.trained import model_card
from study.training import metrics

Cells = list[list[int]]
"""Samples of each class (rows) with each bias class."""


def drawn(seed: int) -> Cells:
    """Two to five classes by up to four bias classes; about each fourth group is empty."""
    generator = np.random.default_rng(seed)
    shape = generator.integers(2, 6), generator.integers(1, 5)
    cells: Cells = generator.integers(0, 4, shape).tolist()
    return cells


CASES: list[Cells] = [[[3, 3], [3, 0]], [[0, 0], [0, 0]], [[3, 0], [0, 3]], *map(drawn, range(6))]


NAMES = ("equalized_odds", "accuracy", "worst_group_accuracy")


def dataset(cells: Sequence[Sequence[int]], unknown: int) -> Dataset:
    """With these groups in each split, and so many samples of a class whose bias is not known."""
    pairs = [(y, s) for y, row in enumerate(cells) for s, size in enumerate(row) for _ in range(size)]
    pairs += [(0, -1)] * unknown
    target, bias = np.array([pair[0] for pair in pairs], np.int64), np.array([pair[1] for pair in pairs], np.int64)
    split = Split(np.zeros((len(pairs), 3, 8, 8), np.uint8), target, bias)
    facts = replace(data.load({"name": "biased_digits"}).facts, classes=len(cells), bias_classes=len(cells[0]))
    facts = replace(facts, aligned=tuple(s % len(cells) for s in range(len(cells[0]))))
    return Dataset(facts, {"train": split, "val": split, "test": split})


def measured(dataset: Dataset, split: str, seed: int) -> dict[str, float | None]:
    """The metrics of random predictions on a split."""
    samples, facts = dataset.splits[split], dataset.facts
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(len(samples), facts.classes, generator=generator)
    target, bias = torch.as_tensor(samples.target), torch.as_tensor(samples.bias)
    values = metrics.compute_metrics(scores, scores.argmax(1), target, bias, facts, errors=True)
    return finite_metrics({f"{split}/{name}": float(value) for name, value in values.items()})


def trial(of: Dataset, metric: str, stage: str, seed: int, repeats: int | None = None) -> Told:
    found = measured(of, "val", seed)
    tested = measured(of, "test", seed) if stage in ("confirm", "final") else {}
    return Told(stage, [found[metric]] * 2, seed=seed, repeats=repeats, tested=tested, metric=metric, further=found)


def all_that_is_told(spec: StudySpec, told: StudyRecord) -> None:
    page = build_report_page(Results(spec, told), ())
    page_to_markdown(page)
    page_to_html(page, {})
    trials_frame(Results(spec, told))
    document = study_summary.summarise_study(Results(spec, told))
    json.dumps(to_plain_value([document, report_lead.build_report_lead(Results(spec, told))]), allow_nan=False)
    study_summary.summary_lines(document)
    report_lead.report_lead_lines(report_lead.build_report_lead(Results(spec, told)))
    comparison_table(compare_studies([Results(spec, told), Results(replace(spec, name="other"), told)]))


def in_mlflow(spec: StudySpec, trials: Sequence[Told]) -> None:
    names = [("created", {"id": "study"}), *told_events(*trials), ("closed", {"state": "complete"})]
    events = [
        {"event": name, "time": float(at), **{key: one for key, one in fields.items() if one is not None}}
        for at, (name, fields) in enumerate(names)
    ]
    for change in EventTranslator(spec, TrackingState(""), StudyRecord()).translate(events):
        assert all(np.isfinite(point.value) for point in change.metric_values)


def studies(of: Dataset, metric: str) -> tuple[StudySpec, StudySpec, list[Told], list[Told]]:
    """A search and a final training with their trials."""
    search = quickstart(
        f"search.metric={metric}", "search.confirm={top: 1, seeds: 2}", "search.early_stopping={name: none}"
    )
    stages = [("baseline", None), ("search", None), ("search", None), *(("confirm", n) for n in (0, 0, 1, 1))]
    trials = [trial(of, metric, stage, seed, repeats) for seed, (stage, repeats) in enumerate(stages)]
    return search, final_training_spec(search, [1, 2]), trials, [trial(of, metric, "final", seed) for seed in (1, 2)]


def record_of(of: Dataset, trials: Sequence[Told]) -> StudyRecord:
    told = record(*trials)
    told.group_sample_counts, told.state = GroupSampleCounts.from_sizes(group_sizes({"data": of}) or {}), "complete"
    return told


@pytest.mark.parametrize(
    ("cells", "unknown", "name"), [(cells, 2 * (at % 2), NAMES[at % 3]) for at, cells in enumerate(CASES)], ids=str
)
def test_whatever_groups_a_split_lacks(cells: Cells, unknown: int, name: str) -> None:
    of = dataset(cells, unknown)
    search, final, trials, finals = studies(of, f"val/{name}")
    for spec, of_study in ((search, trials), (final, finals)):
        all_that_is_told(spec, record_of(of, of_study))
        in_mlflow(spec, of_study)
    told = record(*finals)
    for one in told.trials.values():
        model = model_card.described_model(Results(final, told), [one])
        text = model_card.model_card(Results(final, told), model, of, "birds")
        counts = model_card.group_counts_of_split(model, of)
        assert counts is not None
        found = find_worst_group(counts, of.facts.class_names, of.facts.bias_names)
        lowest = one.test_metrics["test/worst_group_accuracy"]
        if found and found.lowest_accuracy is not None:
            assert found.lowest_accuracy == pytest.approx(lowest)
            assert not found.worst or found.worst[0].name in text
        for gap in model_card.CARD_FAIRNESS_METRICS:
            if one.test_metrics.get(f"test/{gap}", 0.0) is None:
                assert f"- {gap} not defined" in text


@pytest.mark.slow
@pytest.mark.parametrize("cells", CASES, ids=str)
def test_its_figures_are_drawn(cells: Cells, tmp_path: Path) -> None:
    of = dataset(cells, 2)
    search, final, trials, finals = studies(of, "val/equalized_odds")
    assert write_report(Results(search, record_of(of, trials)), tmp_path).is_file()
    assert write_report(Results(final, record_of(of, finals)), tmp_path).is_file()
