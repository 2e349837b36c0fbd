"""The trials of `study ablate`: the steps from a study's baseline to its best configuration."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from study.analysis.statistics import formatting
from study.errors import UserError
from study.home.folder import StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.knobs import Scalar
from study.ranking import Candidate, Results, ablation_steps
from study.ranking.json_documents import FLATTEN_FIELDS
from study.spec import StudySpec
from study.text import pluralise


@dataclass(frozen=True)
class AblationRequest:
    """Request of a user for an ablation.

    Attributes:
        seeds: seeds of each step, those that already ran included; None: as many as before, or as the confirm stage
            has.
        knobs: the keys that are measured, the others move together; none: all are measured, or those of before.
        order: keys in the order of the path; those not named follow by their importance in the search.
    """

    seeds: int | None = None
    knobs: Sequence[str] = ()
    order: Sequence[str] = ()


@dataclass(frozen=True)
class AblationSummary:
    """Numbers of an ablation that could run, as plain values.

    Attributes:
        baseline, best: numbers of the trials that it leads from and to.
        steps: for each step, the two values of each of its keys.
        order: what the order of the steps follows, in words.
        together: keys of one step, joined by commas, and why they move together.
        there, to_run: number of trials that exist, and of those to come.
        epochs: those of the trials to come.
    """

    name: str
    baseline: int
    best: int
    steps: Sequence[Mapping[str, Sequence[Scalar]]]
    order: str
    together: Mapping[str, str]
    seeds: Sequence[int]
    configurations: int
    trials: int
    there: int
    to_run: int
    epochs: int


def plan_ablation(results: Results, request: AblationRequest) -> tuple[ablation_steps.Ablation, AblationSummary]:
    """Plan the ablation of a study; return it, and what it has and lacks.

    Raises:
        UserError: the search is not over, there is no complete baseline or nothing better, the two do not differ, or
            they do not differ in a key that the request names.
    """
    from study.analysis.statistics.importance import compute_importances

    baseline, best = _baseline_and_best(results)
    start, end = baseline.trial.params, best.trial.params
    knobs = ablation_steps.differing_knobs(results.spec, start, end)
    if not knobs:
        raise UserError(f"{results.spec.name}: trial {best.trial.number}, its best, has the values of the baseline")
    ablation_steps.check_ablation_knobs(results.spec.name, "--knobs", request.knobs, knobs)
    ablation_steps.check_ablation_knobs(results.spec.name, "--order", request.order, knobs)
    before = ablation_steps.requested_ablation(results.record)
    steps: Sequence[ablation_steps.StepKeys]
    merges: Sequence[ablation_steps.MergedKnobs] = []
    is_renewed = before is not None and before.best_configuration_trial.number == best.trial.number
    if before and is_renewed and not request.knobs and not request.order:
        steps, words = before.steps, "as before"
    else:
        by_importance = [key for key in compute_importances(results).share_by_key if key in knobs]
        order = [*request.order, *by_importance]
        steps, merges = ablation_steps.plan_steps(results.spec, start, end, order, request.knobs)
        words = _order_in_words(request, by_importance)
    seeds = ablation_steps.choose_ablation_seeds(results, best, request.seeds)
    ablation = ablation_steps.Ablation(baseline.trial, best.trial, steps, seeds)
    to_run = sum(1 for _ in ablation_steps.missing_ablation_trials(results, ablation))
    return ablation, AblationSummary(
        results.spec.name,
        baseline.trial.number,
        best.trial.number,
        [
            {
                key: [ablation_steps.value_in_configuration(results.spec, params, key) for params in (start, end)]
                for key in step
            }
            for step in steps
        ],
        words,
        {", ".join(merge.keys): merge.reason for merge in merges},
        list(ablation.seeds),
        len(ablation.configurations),
        len(ablation.configurations) * len(ablation.seeds),
        sum(len(by_seed) for by_seed in ablation_steps.ablation_trials_by_configuration(results, ablation).values()),
        to_run,
        to_run * results.spec.epochs,
    )


def request_ablation(folder: StudyFolder, spec: StudySpec, request: AblationRequest) -> bool:
    """Write the steps of an ablation to the ledger, to be run; return whether there is anything to run.

    Raises:
        UserError: see `plan_ablation`; or another process runs the study.
    """
    with closing(Ledger(folder.ledger_file)) as ledger:
        results = Results(spec, StudyRecord.load_without_closing(folder.ledger_file))
        wanted = ablation_steps.to_ablation_event(plan_ablation(results, request)[0])
        if wanted == results.record.ablation_request and ablation_steps.is_ablation_measured(results):
            return False
        ledger.append(wanted)
        return True


def summarise_ablation_plan(folder: StudyFolder, request: AblationRequest) -> AblationSummary:
    """Return what an ablation of a study would run, without writing anything.

    Raises:
        UserError: see `plan_ablation`.
    """
    return plan_ablation(Results.load(folder), request)[1]


@dataclass(frozen=True)
class AblationResult:
    """What is known of an ablation: how far it is, and its effects as lines of `ablation_frame`."""

    name: str
    state: str
    progress: ablation_steps.AblationProgress = field(metadata=FLATTEN_FIELDS)
    effects: Sequence[Mapping[str, object]]


def ablation_result(folder: StudyFolder) -> AblationResult:
    """Return what is known of the ablation that was asked for last."""
    from study.analysis.statistics.ablation_effects import ablation_effects_by_metric, ablation_to_dicts

    results = Results.load(folder)
    known = ablation_steps.ablation_progress(results)
    assert known is not None  # just asked for
    return AblationResult(
        results.spec.name, results.record.state, known, ablation_to_dicts(ablation_effects_by_metric(results))
    )


def effects_as_markdown(result: AblationResult) -> str:
    """Return the effects of an ablation as a Markdown table, with notes on its numbers."""
    from study.analysis.report.page_formats import frame_to_markdown
    from study.analysis.statistics.ablation_effects import ablation_frame_from_dicts
    from study.analysis.tables.printed_grid import ablation_notes, ablation_table

    frame = ablation_frame_from_dicts(result.effects)
    if frame.empty:
        return "no trial of the ablation is complete yet"
    return f"{frame_to_markdown(ablation_table(frame))}\n\n{' '.join(ablation_notes(frame))}"


def ablation_plan_lines(plan: AblationSummary) -> list[str]:
    """Return the lines that tell a user of a plan."""
    ends = f"from trial {plan.baseline} (baseline) to trial {plan.best}"
    texts = [f"ablation of {plan.name}: {ends} in {pluralise(len(plan.steps), 'step')}, {plan.order}"]
    for step in plan.steps:
        settings = ((key, *map(formatting.format_setting, ends)) for key, ends in step.items())
        texts.append(f"  {', '.join(f'{key} {one} -> {other}' for key, one, other in settings)}")
    texts += [f"{keys} move together: {reason}" for keys, reason in plan.together.items()]
    if len(plan.steps) == 1:
        texts.append("they differ in one step, which is the whole gain")
    texts.append(
        f"{plan.configurations} configurations on {formatting.seeds_text(plan.seeds)}: {plan.trials} trials, "
        f"{plan.there} of them are there, {plan.to_run} to run ({pluralise(plan.epochs, 'epoch')})"
    )
    return texts


def _baseline_and_best(results: Results) -> tuple[Candidate, Candidate]:
    """Return the baseline and the best configuration."""
    spec, record = results.spec, results.record
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training has no baseline; ablate the study that its file came from")
    if record.state != "complete":
        raise UserError(f"{spec.name}: is {record.state}, it must end first: study resume {spec.name}")
    baseline, best = results.baseline, results.best
    if baseline is None:
        has_begun = any(True for _ in record.trials_of_stages("baseline"))
        why = "its baseline is not complete" if has_begun else "it has no search.baseline"
        raise UserError(f"{spec.name}: {why}, there is nothing to begin with")
    if best is None or best.trial.stage == "baseline":
        raise UserError(f"{spec.name}: its search found nothing better than the baseline, there is no gain to divide")
    return baseline, best


def _order_in_words(request: AblationRequest, by_importance: Sequence[str]) -> str:
    if request.order:
        return "in the order of --order"
    return "by importance in the search" if by_importance else "in the order of the study file"
