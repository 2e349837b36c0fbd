"""The state of a study in detail, and of all studies of a home at a glance."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from study import __version__
from study.analysis.report import report_lead
from study.commands import changes_on_resume, progress
from study.commands.progress import StudyProgress
from study.errors import UserError
from study.files import write_atomically
from study.home.driver_requests import pending_requests
from study.home.events import ENDED_STATES
from study.home.folder import Home, StudyFolder, read_fetch_origin
from study.home.provenance import device_text, used_devices
from study.home.record import StudyRecord
from study.metrics.metric_format import format_metric
from study.ranking import Results, ablation_steps, statistics_by_metric, study_summary
from study.ranking.ablation_steps import AblationProgress
from study.ranking.arms import is_fitted_once
from study.ranking.candidate_selection import judging_trials
from study.ranking.json_documents import FLATTEN_FIELDS
from study.ranking.study_summary import StudySummary
from study.ranking.tied_metrics import TiedMetric
from study.text import align_columns, format_time, pluralise


@dataclass(frozen=True)
class TieStatus:
    """A tie, and what is said of it."""

    tie: TiedMetric = field(metadata=FLATTEN_FIELDS)
    message: str


@dataclass(frozen=True)
class DeviceUse:
    """A device, see `study.home.provenance.DeviceTrialCount`, and the number of trials that ran on it."""

    facts: Mapping[str, str] = field(metadata=FLATTEN_FIELDS)
    trials: int


@dataclass(frozen=True)
class PendingRequests:
    """Requests of users that are still to be met.

    Attributes:
        ending: whether a user ended the search while some of its trials still run.
        stopping: the trials that end at their next report.
        enqueued: number of configurations that are tried next.
        unanswered: number of requests that no driver has answered yet.
    """

    ending: bool
    stopping: Sequence[int]
    enqueued: int
    unanswered: int


@dataclass(frozen=True)
class StudyStatus:
    """A study's summary, the lead of its report and, once it has begun, its pace."""

    summary: StudySummary = field(metadata=FLATTEN_FIELDS)
    lead: report_lead.ReportLead
    ablation: AblationProgress | None
    pace: progress.StudyPace | None
    ties: Sequence[TieStatus]
    devices: Sequence[DeviceUse]
    unusable_nodes: Mapping[str, str]
    placement: Mapping[str, changes_on_resume.PlacementChange]
    asked: PendingRequests | None
    fetched: str | None


def study_status(folder: StudyFolder) -> StudyStatus:
    """Return what is known of a study."""
    results = Results.load(folder)
    spec, record = results.spec, results.record
    source = read_fetch_origin(folder)
    return StudyStatus(
        study_summary.summarise_study(results),
        report_lead.build_report_lead(results),
        ablation_steps.ablation_progress(results),
        StudyProgress(spec, record).pace(),
        [TieStatus(tie, str(tie)) for tie in results.tied_metrics],
        [DeviceUse(device.facts, device.trials) for device in used_devices(record)],
        record.unusable_nodes,
        changes_on_resume.placement_changes(results),
        pending_user_requests(folder, record),
        source.download_summary(folder.name) if source else None,
    )


def study_status_lines(status: StudyStatus) -> list[str]:
    """Return the lines that tell a user of a study's status."""
    told = status.summary
    texts = study_summary.summary_lines(told)
    if told.state != "running" or told.final or "best" in told.arms:
        if told.state not in ("complete", "failed"):
            texts.append("so far    the study is not over, and what follows may change")
        texts += report_lead.report_lead_lines(status.lead)
    texts += [f"warning   {tie.message}" for tie in status.ties]
    if way := status.ablation:
        texts.append(
            f"ablation  from the baseline to trial {way.best} in {len(way.steps)} steps on {len(way.seeds)} "
            f"seeds: {way.complete} of {way.trials} trials complete"
        )
    if pace := status.pace:
        to_go = "to go" if told.state == "running" else "left to do"
        left = "" if pace.remaining is None else f", about {progress.clock_text(pace.remaining)} {to_go}"
        texts.append(f"pace      {pace.epochs_per_minute:.1f} epochs per minute{left}")
    elif told.state == "running":
        texts.append("pace      not known before the first epoch")
    for device in status.devices:
        texts.append(f"device    {device_text(device.facts)}: {pluralise(device.trials, 'trial')}")
    texts += changes_on_resume.placement_change_lines(status.placement)
    texts += [f"warning   {node} is not used: {why}" for node, why in status.unusable_nodes.items()]
    texts += pending_request_lines(status.asked)
    texts += [f"fetched   {status.fetched}"] if status.fetched else []
    texts += [f"lost      {pluralise(told.lost, 'run')} of trials, which had to run again"] if told.lost else []
    return texts


def pending_user_requests(folder: StudyFolder, record: StudyRecord) -> PendingRequests | None:
    """Return what users asked of the study and is still to come; None: nothing, or the study is over."""
    if record.state in ("complete", "failed"):
        return None
    searched = record.trials_of_stages("baseline", "search", "replicate")
    given = [request for _, request in pending_requests(folder.requests_folder) if request is not None]
    found = PendingRequests(
        record.has_search_end_request and any(trial.state not in ENDED_STATES for trial in searched),
        progress.trials_stopping_soon(record),
        progress.count_untried_enqueued(record),
        sum(request.id not in record.request_refusals for request in given),
    )
    return found if found.ending or found.stopping or found.enqueued or found.unanswered else None


def pending_request_lines(asked: PendingRequests | None) -> Iterator[str]:
    """Yield the lines that tell a user of requests that are still to be met."""
    if asked is None:
        return
    if asked.ending:
        yield "ending    a user ended the search; what runs of it goes on, then the study does"
    if numbers := asked.stopping:
        ends = "s {} end at their" if len(numbers) > 1 else " {} ends at its"
        yield f"stopping  trial{ends.format(', '.join(map(str, numbers)))} next report, as a user asked"
    if count := asked.enqueued:
        yield f"enqueued  {pluralise(count, 'configuration')} to try next"
    if count := asked.unanswered:
        yield f"asked     {pluralise(count, 'request')} that no driver has answered yet"


class StudyRow(TypedDict):
    """A study at a glance, as `study list --json` has it.

    `best` is the value of `metric`, on `seeds` seeds; `reference` is the name of the reference that is the result in
    its place, and `chosen_by` the rule that chose it of a front. `began` is in seconds since the epoch. A study that
    cannot be read has a `reason` and no `id`; one of a cluster has the state of its newest driver as `job`.
    """

    name: str
    id: NotRequired[str | None]
    state: str
    owner: str | None
    trials: dict[str, int]
    metric: str | None
    best: float | None
    seeds: NotRequired[int]
    reference: NotRequired[str | None]
    chosen_by: NotRequired[str | None]
    began: float | None
    job: NotRequired[str | None]
    reason: NotRequired[str | None]


def unreadable_row(name: str, state: str = "unreadable") -> StudyRow:
    """Return the row of a study of which nothing is known."""
    return {"name": name, "state": state, "trials": {}, "owner": None, "metric": None, "best": None, "began": None}


def list_study_rows(home: Home) -> list[StudyRow]:
    """Return one row per study, the oldest first.

    The row of a study that does not run is kept in its folder, and made again once its ledger or study file has another
    size or time. A kept row that cannot be read or written is as if it were not there.
    """
    rows: list[StudyRow] = []
    for folder in home.list_studies():
        try:
            rows.append(_study_row(folder))
        except UserError as error:
            rows.append({**unreadable_row(folder.name), "reason": str(error)})
    return rows


def _study_row(folder: StudyFolder) -> StudyRow:
    files = [path.stat() for path in (folder.ledger_file, folder.spec_file)]  # before they are read
    of = [__version__, folder.name, *(part for file in files for part in (file.st_ino, file.st_size, file.st_mtime_ns))]
    file = folder.path / ".row.json"
    with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):  # not there, or damaged
        kept = json.loads(file.read_bytes())
        if kept["of"] == of and "id" in kept["row"]:
            row: StudyRow = kept["row"]
            return row
    results = Results.load(folder)
    spec, record = results.spec, results.record
    reference = results.reference_as_result
    metric, best, seeds = _metric_value_and_seeds(results)
    row = {
        "name": spec.name,
        "id": record.id,
        "state": record.state,
        "owner": record.owner,
        "trials": {state: count for state, count in record.trials_by_state().items() if count},
        "metric": metric,
        "best": best,
        "seeds": seeds,
        "reference": reference.name if reference else None,
        "chosen_by": spec.objective.front_choice_text if spec.objective.has_several_metrics else None,
        "began": record.sessions[0].time if record.sessions else None,
    }
    if record.state != "running":
        with suppress(OSError, ValueError):  # a read-only home, or a value that JSON cannot hold
            write_atomically(file, json.dumps({"of": of, "row": row}, allow_nan=False))
    return row


def _metric_value_and_seeds(results: Results) -> tuple[str, float | None, int]:
    """Return the metric that stands for a study, its value for the best, and on how many seeds; None: no value yet.

    For a final training it is the study's metric on the test split, where that has it.
    """
    if results.spec.final_seeds is None:
        best, reference = results.best, results.reference_as_result
        if reference:
            return results.spec.metric, reference.metrics[results.spec.metric], 0
        if best is None:
            return results.spec.metric, None, 0
        value = best.confirm_statistics.mean if best.confirm_statistics else best.search_value
        return results.spec.metric, value, len(judging_trials(best))
    trials = [trial for trial in results.record.trials_of_stages("final") if trial.state == "complete"]
    found = statistics_by_metric(results.spec.objective, trials)
    seeds = 0 if is_fitted_once(results.spec, trials) else len(trials)
    metric = results.spec.test_metric if results.spec.test_metric in found else results.spec.metric
    return metric, found[metric].mean if metric in found else None, seeds


def studies_table(home: Home, rows: Sequence[StudyRow]) -> str:
    """Format the rows of `list_study_rows` as a table for people; a study and its copy that are alike are one row."""
    if not rows:
        return f"no studies in {home.path}; a first one: study run quickstart"
    found = [("study", "state", "owner", "best", "began", "trials")]
    names: dict[object, list[str]] = {}
    for row in rows:
        names.setdefault((row.get("id") or row["name"], row["state"], str(row["trials"])), []).append(row["name"])
    first = {copies[0]: ", ".join(copies) for copies in names.values()}
    for row in (row for row in rows if row["name"] in first):
        seeds = f" ({pluralise(row['seeds'], 'seed')})" if row.get("seeds") else ""  # older rows lack it
        metric = row["metric"] or ""
        best = "-" if row["best"] is None else f"{metric} {format_metric(metric, row['best'])}{seeds}"
        best += f" ({name})" if (name := row.get("reference")) else ""
        best += f", {rule} of the front" if (rule := row.get("chosen_by")) and row["best"] is not None else ""
        trials = ", ".join(f"{count} {state}" for state, count in row["trials"].items())
        found.append((first[row["name"]], row["state"], row["owner"] or "-", best, format_time(row["began"]), trials))
    return "\n".join(align_columns(found, (28, 12, 12, 28, 24)))
