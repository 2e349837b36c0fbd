"""Write the best configurations of a study as files that `study train`, `study trial` and `study run` take."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from study import ranking
from study.analysis.report.report_lead import statements_repeated_by_final_training
from study.catalogue import REFERENCE_METHOD
from study.files import check_output_path, write_output
from study.home.events import SessionOpened
from study.home.folder import StudyFolder
from study.home.ledger_line import Entry
from study.knobs import Params, Scalar, Section
from study.metrics import is_standard_error
from study.ranking import Candidate, FittedReference, Results
from study.ranking.candidate_selection import CandidateSelection, judging_trials, select_candidates
from study.ranking.chosen_epoch import chosen_epoch_text, metrics_at_chosen_epoch
from study.spec import StudySpec
from study.spec.configuration import EXPORT_FORMAT_VERSION, configuration_digest
from study.spec.objective import Objective
from study.spec.schema import OBJECTIVE_KEYS, ExportOrigin, SearchOptions
from study.spec.section_models import default_as_in_file
from study.spec.trial_sections import train_knobs
from study.text import study_command
from study.tracking.tracking_state import TrackingState


@dataclass(frozen=True)
class ExportedFile:
    """File that was written, the configuration or reference in it, and the objective of its study."""

    path: Path
    candidate: Candidate | FittedReference
    objective: Objective

    @property
    def rests_on_one_seed(self) -> bool:
        """Whether its metrics are those of one trial."""
        return isinstance(self.candidate, Candidate) and len(judging_trials(self.candidate)) == 1

    def to_document(self) -> dict[str, object]:
        """Return plain values: the file, the trial or reference, and mean, sd and n of its metrics."""
        if isinstance(self.candidate, FittedReference):
            metrics = {name: {"mean": value, "sd": None, "n": 1} for name, value in self.candidate.metrics.items()}
            return {"file": str(self.path), "reference": self.candidate.name, "metrics": metrics}
        trials = judging_trials(self.candidate)
        spreads = ranking.statistics_by_metric(self.objective, trials, self.candidate.joined_folds)
        metrics = {name: value.to_dict() for name, value in spreads.items()}
        return {"file": str(self.path), "trial": self.candidate.trial.number, "metrics": metrics}


def export_best(
    folder: StudyFolder, results: Results, out: Path, choice: CandidateSelection | None = None
) -> list[ExportedFile]:
    """Write the best configuration of a study, or those that a choice selects.

    Several, or a front, are written as OUT-1, OUT-2 ... Without a choice, a reference is written where it is the
    study's result.

    Returns:
        The files, the best first.

    Raises:
        UserError: the choice selects nothing, see `study.ranking.candidate_selection.select_candidates`, or a file
            cannot be written.
    """
    spec = results.spec
    choice = choice or CandidateSelection()
    if choice == CandidateSelection() and (reference := results.reference_as_result):
        return [_export_reference(results, reference, out)]
    candidates = select_candidates(results, choice)
    check_output_path(out)
    several = len(candidates) > 1
    paths = [out.with_stem(f"{out.stem}-{place}") if several else out for place in range(1, len(candidates) + 1)]
    for path in paths:
        check_output_path(path)
    won = results.best
    goal, gained = spec.objective, won is None or won.trial.stage != "baseline"
    for path, candidate in zip(paths, candidates, strict=True):
        study = exported_spec(folder, results, candidate, choice)
        file = path.name if path.name.isprintable() else "FILE"
        fold = () if candidate.trial.fold is None else ("--fold", candidate.trial.fold)
        trial = study_command("trial", file, *fold)
        head = CONFIGURATION_HEADER.format(study=spec.name, train=study_command("train", file), trial=trial)
        if results.reference_as_result:
            head += f"# The result of that study needs no search: {results.reference_as_result.name_in_sentence}.\n"
        head += f"# Chosen by: {' '.join(choice.rule_text(spec).split())}.\n" if goal.has_several_metrics else ""
        if candidate.trial.params:
            head += "# What distinguishes it from the study's other configurations:\n"
            head += "".join(_parameter_line(spec, key, value) for key, value in candidate.trial.params.items())
        if candidate.trial.stage == "baseline":
            head += "# It is the baseline of that study"
            is_told = gained or goal.has_several_metrics or results.reference_as_result
            head += ".\n" if is_told else ": the search found nothing better.\n"
        write_output(path, head + study.to_yaml())
    return [ExportedFile(path, candidate, spec.objective) for path, candidate in zip(paths, candidates, strict=True)]


def _parameter_line(spec: StudySpec, key: str, value: Scalar) -> str:
    """Return a parameter as a remark, with every digit; behind a label the name that stands in the file below."""
    name = spec.name_behind_label(key, value)
    return f"#   {key}: {json.dumps(value)}{f', which is {name}' if name else ''}\n"


REFERENCE_HEADER = """\
# The result of the study {study} needs no search: {words}. Fit it: {train}
# `origin` says how it was found. The best configuration of the search: study export {study} --trial {trial} -o FILE
"""


def _export_reference(results: Results, reference: FittedReference, out: Path) -> ExportedFile:
    """Write a reference as a study file of one trial."""
    check_output_path(out)
    searched = results.best
    train = study_command("train", out.name if out.name.isprintable() else "FILE")
    number = searched and searched.trial.number
    head = REFERENCE_HEADER.format(study=results.spec.name, words=reference.name_in_sentence, train=train, trial=number)
    write_output(out, head + _reference_spec(results, reference).to_yaml())
    return ExportedFile(out, reference, results.spec.objective)


REFERENCE_TRAIN_KEYS = ("seed", "threads", "data_share", "deterministic")
"""Keys of `train` that a reference takes over from its study; the others say how networks are trained."""


def _reference_spec(results: Results, reference: FittedReference) -> StudySpec:
    """Return a reference as a study of one trial of one epoch."""
    spec, record = results.spec, results.record
    train = {key: default_as_in_file(knob.default) for key, knob in train_knobs().items()}
    train |= {key: spec.base["train"][key] for key in REFERENCE_TRAIN_KEYS} | {"epochs": 1}
    base = {**spec.trial_document({}), "method": {"name": REFERENCE_METHOD, "model": reference.name}, "train": train}
    margin = f" unless beaten by more than {spec.search.margin:g} standard errors" if spec.search.margin else ""
    limits = f" where {' and '.join(spec.search.constraints)}" if spec.search.constraints else ""
    origin: ExportOrigin = {
        "format": EXPORT_FORMAT_VERSION,
        "study": spec.name,
        "study_id": record.id,
        "study_hash": spec.hash,
        "reference": reference.name,
        "trials": record.n_configurations_tried,
        "chosen_by": f"{', '.join(spec.objective.metrics)}: what needs no search{margin}{limits}",
        "metrics": _validation_metrics(spec, reference.metrics),
        **_report_statements_section(results, reference),
        "test_readings": record.n_test_readings,
        "unused_seed": results.first_unused_seed,
        "code": _code_version_fields(record.sessions[-1]),
        "digest": configuration_digest(base),
    }
    search = SearchOptions(trials=1, **spec.search.model_dump(include=OBJECTIVE_KEYS))
    return replace(spec, name=f"{spec.name[:95]}-best", base=base, search=search, origin=origin)


CONFIGURATION_HEADER = """\
# A configuration of the study {study}, complete: the best of its search or among them. Train it: {train}
# `origin` says how it was found; the trial's metrics come back with: {trial}
"""


def exported_spec(folder: StudyFolder, results: Results, candidate: Candidate, choice: CandidateSelection) -> StudySpec:
    """Return a configuration as a study file of one trial."""
    spec, record = results.spec, results.record
    began = candidate.trial.started_at or 0.0
    session = [session for session in record.sessions if session.time <= began or session is record.sessions[0]][-1]
    seeds = len(judging_trials(candidate))
    values = metrics_at_chosen_epoch(spec.objective, candidate.trial)
    kind = "fresh" if candidate.confirm_trials else "searched"
    rule = "one seed" if seeds == 1 else f"mean over {seeds} {kind} seeds"
    if candidate.joined_folds:
        rule = f"the samples of all {spec.folds} folds together, on {seeds} fresh seeds"
        chosen = [metrics_at_chosen_epoch(spec.objective, trial)["epoch"] or 0 for trial in candidate.confirm_trials]
        values = {**values, "epoch": round(statistics.median(chosen))}
    rule += "" if spec.objective.epoch_window is None else f", each {chosen_epoch_text(spec.objective)}"
    labels = spec.labels_of_params(candidate.trial.params)
    runs = TrackingState.load(folder.tracking_state_file, folder.tracking_uri).runs
    origin: ExportOrigin = {
        "format": EXPORT_FORMAT_VERSION,
        "study": spec.name,
        "study_id": record.id,
        "study_hash": spec.hash,
        "trial": candidate.trial.number,
        "mlflow_run": runs.get(str(candidate.trial.number)),
        "trials": record.n_configurations_tried,
        "chosen_by": f"{choice.rule_text(spec)}; {rule}",
        "epoch": values["epoch"],
        "metrics": _validation_metrics(spec, values),
        "confirmed": _confirm_statistics(spec, candidate),
        "gain": _gain_section(results, candidate),
        **({"labels": labels} if labels else {}),
        **_report_statements_section(results, candidate),
        "test_readings": record.n_test_readings,
        "unused_seed": results.first_unused_seed,
        "code": _code_version_fields(session),
    }
    of_trial = {"train.seed": candidate.trial.seed, "train.epochs": spec.epochs}
    base = _trial_sections(spec, {**candidate.trial.params, **of_trial})
    origin["digest"] = configuration_digest(base)
    search = SearchOptions(trials=1, **spec.search.model_dump(include=OBJECTIVE_KEYS))
    return replace(spec, name=f"{spec.name[:95]}-best", base=base, search=search, origin=origin)


def _code_version_fields(session: SessionOpened) -> Entry:
    return {key: value for key, value in session.environment_fields.items() if key not in ("owner", "datasets")}


def _validation_metrics(spec: StudySpec, metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the metrics of the validation split, with the standard errors of the study's own alone."""
    own = {f"{name}_standard_error" for name in spec.objective.metrics}
    return {
        name: value
        for name, value in metrics.items()
        if name.startswith("val/") and (name in own or not is_standard_error(name))
    }


def _trial_sections(spec: StudySpec, params: Params) -> Mapping[str, Section]:
    """Return the sections of a trial, as `StudySpec.trial_document` does, without PyTorch where that is possible.

    Other keys may depend on a parameter that is a name. Where there is none, the study's own sections have all of the
    trial's keys, and no network or method has to be asked: that would take seconds.
    """
    if any(isinstance(value, str) for value in params.values()):
        return spec.trial_document(params)
    base = {section: dict(values) for section, values in spec.base.items()}
    for key, value in params.items():
        section, name = key.split(".")
        base[section][name] = value
    return base


def _confirm_statistics(spec: StudySpec, candidate: Candidate) -> Section:
    """Return the seeds of the confirm trials, and mean, sample standard deviation and n of each metric over them."""
    if not candidate.confirm_trials:
        return {}
    spreads = ranking.statistics_by_metric(spec.objective, candidate.confirm_trials, candidate.joined_folds)
    metrics = {name: value.to_dict() for name, value in spreads.items()}
    return {"seeds": [trial.seed for trial in candidate.confirm_trials], **metrics}


def _report_statements_section(results: Results, exported: Candidate | FittedReference) -> ExportOrigin:
    """Return what the study's report says of its result; empty for what is not its result."""
    won = results.reference_as_result or results.best
    is_result = exported == won
    if isinstance(won, Candidate) and isinstance(exported, Candidate):
        is_result = exported.trial.number == won.trial.number
    return {"told": [str(one) for one in statements_repeated_by_final_training(results)]} if is_result else {}


def _gain_section(results: Results, candidate: Candidate) -> Section:
    """Return the study's metric minus the baseline's on both splits, with its interval; empty for the baseline."""
    from study.ranking.arms import arm_of_candidate

    baseline = results.baseline
    if baseline is None or baseline.trial.number == candidate.trial.number:
        return {}
    other = arm_of_candidate(results.spec, baseline)
    one = replace(arm_of_candidate(results.spec, candidate), n_candidates=results.n_candidates_for(candidate))
    names = (results.spec.metric, results.spec.test_metric)
    gains = {name: one.difference_to(other, name) for name in names}
    return {name: gain.to_dict() for name, gain in gains.items() if gain}
