"""Tells the user's own command or address that a study ended. Whatever goes wrong there, the study never waits long."""

import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from study import ranking
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking.summary import summary
from study.spec import StudySpec
from study.spec.schema import VARIABLE, wrong_address
from study.tracking.pages import study_page

PATIENCE = 30.0
"""Seconds that a command, or a server, gets in all."""


def notify(home: Home, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> str | None:
    """Tell whom the study file names.

    Returns:
        What went wrong, in one line without the address; None: nothing did, or nobody is to be told.
    """
    if spec.notify is None:
        return None
    try:
        document = json.dumps(message(home, folder, spec, record)).encode()
    except Exception as error:  # whatever a file of the study, or one beside it, can be
        return f"notify: {type(error).__name__}"
    problems = []
    if spec.notify.command and (why := _run(spec.notify.command, document)):
        problems.append(f"notify.command: {why}")
    if spec.notify.url and (why := _post(spec.notify.url, document)):
        problems.append(f"notify.url: {why}")
    return "; ".join(problems) or None


def message(home: Home, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> dict[str, Any]:
    """What is sent: the study, its state, the metric with the best value and the baseline's, counts of trials by
    state, the run's page where MLflow is a server, and the same as one sentence under `text`."""
    with ranking.ranked_once(record):
        document = summary(spec, record)
    best, baseline = document.get("best") or document.get("final"), document.get("baseline")
    told = {
        "study": spec.name,
        "state": record.state,
        "metric": spec.metric,
        "value": _value(spec, best),
        "baseline": _value(spec, baseline),
        "trial": best.get("trial") if best else None,
        "trials": document["trials"],
        "address": study_page(home, folder),
    }
    return told | {"text": _sentence(told)}


def _value(spec: StudySpec, side: Mapping[str, Any] | None) -> float | None:
    value = side["metrics"].get(spec.metric) if side else None
    return value["mean"] if value else None


def _sentence(told: Mapping[str, Any]) -> str:
    values = [(name, told[key]) for name, key in (("best", "value"), ("baseline", "baseline")) if told[key] is not None]
    numbers = ", ".join(f"{name} {told['metric']} {value:.4f}" for name, value in values)
    return f"study {told['study']}: {told['state']}{f'; {numbers}' if numbers else ''}"


def _run(command: Sequence[str], document: bytes) -> str | None:
    """Run a command with the document on its standard input, in a group of its own, so that it can be ended whole."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}"
    try:
        process.communicate(document, PATIENCE)
    except subprocess.TimeoutExpired:
        return f"{command[0]} had not ended after {PATIENCE:g} s and was killed"
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"{command[0]} ended with status {process.returncode}" if process.returncode else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves the document with the address that it was meant for."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _post(url: str, document: bytes) -> str | None:
    """Post the document. In a thread that is left behind: a server that answers byte by byte has no other end."""
    if variable := VARIABLE.fullmatch(url):
        url = os.environ.get(variable[1], "")
        if why := wrong_address(url) if url else "is not set":
            return f"the variable {variable[1]} {why}"
    outcome: list[str | None] = []
    thread = threading.Thread(target=lambda: outcome.append(_posted(url, document)), name="notify", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return outcome[0] if outcome else f"no answer within {PATIENCE:g} s"


def _posted(url: str, document: bytes) -> str | None:
    request = urllib.request.Request(url, document, {"Content-Type": "application/json", "User-Agent": "study"})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=PATIENCE):
            return None
    except urllib.error.HTTPError as error:
        return f"the server answers {error.code}"
    except urllib.error.URLError as error:
        return f"cannot be reached: {getattr(error.reason, 'strerror', None) or type(error.reason).__name__}"
    except Exception as error:  # whatever a server's answer can be
        return f"failed: {type(error).__name__}"
