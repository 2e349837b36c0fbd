"""What each event of a ledger is in MLflow. Writing an event twice changes nothing."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

from study.home import Home, StudyFolder
from study.ledger import Event, read
from study.record import StudyRecord
from study.spec import StudySpec
from study.summary import result_metrics
from study.tracking.progress import Progress

STATUS = {"complete": "FINISHED", "pruned": "KILLED", "failed": "FAILED", "interrupted": "KILLED"}
INHERITED = (
    "study.id",
    "study.name",
    "study.version",
    "study.dirty",
    "study.data",
    "study.dataset",
    "mlflow.source.git.commit",
)
"""Tags of the study's run that each trial's run has too."""

UI_TAGS = {"mlflow.experimentKind": "custom_model_development"}
"""Makes the MLflow UI open an experiment on its training runs."""

BATCH = 1000
"""Metrics that MLflow takes at once."""


class Writer:
    """Writes one study's events through an MLflow client; `progress` says what is there."""

    def __init__(self, home: Home, folder: StudyFolder, spec: StudySpec, progress: Progress) -> None:
        self._client = MlflowClient(home.tracking_uri)
        self._home, self._folder, self._spec, self._progress = home, folder, spec, progress
        self._client.search_experiments(max_results=1)  # makes or migrates the database

    def write(self, events: Iterable[Event]) -> None:
        """Bring events into MLflow."""
        for event in _gathered(events):
            getattr(self, f"_{event['event']}")(event)

    def attach(self, path: Path, folder: str | None) -> None:
        """Log a file as an artifact of the study's run."""
        self._client.log_artifact(self._progress.parent, str(path), folder)

    def _created(self, event: Event) -> None:
        if self._progress.parent:
            return
        name, client = self._spec.name, self._client
        experiment = client.get_experiment_by_name(name)
        experiment_id = (
            experiment.experiment_id if experiment else client.create_experiment(name, self._location(), UI_TAGS)
        )
        query = f"tags.`study.id` = '{event['id']}' and tags.`study.kind` = 'study'"
        found = client.search_runs([experiment_id], query, max_results=1)
        tags = {"study.id": event["id"], "study.kind": "study", "study.name": name, "study.hash": self._spec.hash}
        run = found[0] if found else client.create_run(experiment_id, _milliseconds(event), tags, run_name=name)
        self._progress.parent = run.info.run_id
        client.log_artifact(run.info.run_id, str(self._folder.spec_file))

    def _opened(self, event: Event) -> None:
        plain = {key: value for key, value in event.items() if key not in ("event", "time", "libraries", "commit")}
        tags = {f"study.{key}": value for key, value in plain.items()}
        tags |= {f"version.{key}": value for key, value in event.get("libraries", {}).items()}
        if "commit" in event:
            tags["mlflow.source.git.commit"] = event["commit"]
        self._log(self._progress.parent, tags=tags)
        self._client.update_run(self._progress.parent, status="RUNNING")
        self._progress.attached = False  # there will be new files

    def _trial(self, event: Event) -> None:
        number = str(event["trial"])
        if number in self._progress.trials:
            return
        parent = self._client.get_run(self._progress.parent)
        query = f"tags.`mlflow.parentRunId` = '{parent.info.run_id}' and tags.`study.trial` = '{number}'"
        found = self._client.search_runs([parent.info.experiment_id], query, max_results=1)
        tags = {key: value for key, value in parent.data.tags.items() if key in INHERITED} | {
            "mlflow.parentRunId": parent.info.run_id,
            "study.kind": "trial",
            "study.trial": number,
            "study.stage": event["stage"],
            **({"study.repeats": str(event["repeats"])} if "repeats" in event else {}),
        }
        name = f"{event['stage']}-{event['trial']:03d}"
        when = _milliseconds(event)
        run = found[0] if found else self._client.create_run(parent.info.experiment_id, when, tags, run_name=name)
        document = self._spec.trial_document({**event["params"], "train.seed": event["seed"]})
        params = {f"{section}.{key}": value for section, keys in document.items() for key, value in keys.items()}
        self._log(run.info.run_id, params=params)
        self._progress.trials[number] = run.info.run_id
        self._progress.open.append(number)

    def _started(self, event: Event) -> None:
        run_id = self._progress.trials[str(event["trial"])]
        self._log(run_id, tags={"study.node": event["node"]})
        self._client.update_run(run_id, status="RUNNING")
        if str(event["trial"]) not in self._progress.open:  # cut off by a stop, running again
            if "stopped_by" in self._client.get_run(run_id).data.tags:
                self._client.delete_tag(run_id, "stopped_by")
            self._progress.open.append(str(event["trial"]))

    def _reports(self, event: Event) -> None:
        """All new epochs of one trial. Those that its run holds already, from before a stop, are the same."""
        number = str(event["trial"])
        new = [report for report in event["reports"] if report["epoch"] > self._progress.epochs.get(number, 0)]
        if new:
            self._metrics(number, new)
            self._progress.epochs[number] = new[-1]["epoch"]

    def _tested(self, event: Event) -> None:
        self._metrics(str(event["trial"]), [{**event, "epoch": self._spec.epochs}])

    def _untested(self, event: Event) -> None:
        self._log(self._progress.trials[str(event["trial"])], tags={"test_failure": event["reason"]})

    def _ended(self, event: Event) -> None:
        number = str(event["trial"])
        if event["state"] != "complete":
            name = "stopped_by" if event["state"] == "pruned" else "failure"
            self._log(self._progress.trials[number], tags={name: event.get("reason", "")})
        self._terminate(number, event)

    def _closed(self, event: Event) -> None:
        for number in list(self._progress.open):
            self._log(self._progress.trials[number], tags={"stopped_by": "interrupt"})
            self._terminate(number, {**event, "state": "interrupted"})
        self._result(event)
        self._client.set_terminated(self._progress.parent, STATUS[event["state"]], _milliseconds(event))

    def _result(self, event: Event) -> None:
        """The study's result as metrics of its run, so that its row and charts say what came out."""
        values = result_metrics(self._spec, StudyRecord.fold(read(self._folder.ledger_file)))
        metrics = [Metric(name, value, _milliseconds(event), 0) for name, value in values.items()]
        self._client.log_batch(self._progress.parent, metrics=metrics)

    def _terminate(self, number: str, event: Event) -> None:
        self._client.set_terminated(self._progress.trials[number], STATUS[event["state"]], _milliseconds(event))
        if number in self._progress.open:
            self._progress.open.remove(number)

    def _metrics(self, number: str, reports: list[Event]) -> None:
        metrics = [
            Metric(name, value, _milliseconds(report), report["epoch"])
            for report in reports
            for name, value in report["metrics"].items()
            if value is not None
        ]
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(self._progress.trials[number], metrics=metrics[start : start + BATCH])

    def _log(self, run_id: str, params: dict[str, Any] | None = None, tags: dict[str, Any] | None = None) -> None:
        self._client.log_batch(
            run_id,
            params=[Param(key, str(value)) for key, value in (params or {}).items()],
            tags=[RunTag(key, str(value)[:5000]) for key, value in (tags or {}).items()],
        )

    def _location(self) -> str | None:
        """Where artifacts lie: in the home, unless a server of its own says where."""
        return (self._home.artifacts / self._spec.name).as_uri() if self._home.owns_tracking else None


def _gathered(events: Iterable[Event]) -> Iterator[Event]:
    """The events in an order that is the same to MLflow, with a trial's reports gathered into one `reports`."""
    waiting: dict[int, Event] = {}
    for event in events:
        if event["event"] == "report":
            gathered = waiting.setdefault(event["trial"], {"event": "reports", "trial": event["trial"], "reports": []})
            gathered["reports"].append(event)
            continue
        if event.get("trial") in waiting:
            yield waiting.pop(event["trial"])
        elif event["event"] == "closed":
            yield from waiting.values()
            waiting.clear()
        yield event
    yield from waiting.values()


def _milliseconds(event: Event) -> int:
    return int(event["time"] * 1000)
