"""What `study report` does: write the report of a study in any state, and renew MLflow's copy of it."""

import math
import time
from collections.abc import Callable
from pathlib import Path

from study.analysis.report import report_lead
from study.commands.final_training import compare_with_baseline_training
from study.errors import UserError
from study.files import check_output_path
from study.home import ledger
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results
from study.text import study_command
from study.tracking.tracking_state import replace_study_artifacts

MAX_WATCH_CPU_SHARE = 0.05
"""Largest share of a core that a watched report takes: the driver may need the same core."""

WATCH_POLL_INTERVAL_S = 1.0
"""Seconds between two looks at whether a ledger has grown."""


def write_study_report(home: Home, name: str, out: Path | None = None, pdf: bool = False) -> tuple[Path, str | None]:
    """Write a study's report into a folder.

    Args:
        out: the folder; None: the study's own, and the report in MLflow is renewed as well.
        pdf: each figure as a PDF, too.

    Returns:
        The page, and what went wrong with MLflow, if anything did.

    Raises:
        UserError: there is no such study, or the folder cannot be written.
    """
    folder = home.find_study(name)
    _check_report_folder(name, out or folder.report_folder)
    results = Results.load(folder)
    from study.analysis.report.write_report import write_report

    beside = compare_with_baseline_training(folder, results)
    page = write_report(results, out or folder.report_folder, pdf, beside=beside)
    return page, None if out else replace_study_artifacts(home, folder, artifact_folder_by_report_file(folder))


def watch_report(home: Home, name: str, out: Path | None, tell: Callable[[Path], object]) -> None:
    """Write a study's report again each time its ledger has grown, until no driver runs it any more.

    The page reloads itself. After each report there is a rest, so that reports take a small share of a core.

    Args:
        out: the folder to write into; None: the study's own.
        tell: is given the page, once.

    Raises:
        UserError: there is no such study, or the folder cannot be written.
    """
    folder = home.find_study(name)
    _check_report_folder(name, out or folder.report_folder)
    spec, page, rest = folder.load_spec(), None, 2 * WATCH_POLL_INTERVAL_S
    from study.analysis.report.write_report import write_report

    while True:
        runs, size = ledger.is_driver_running(folder.ledger_file), folder.ledger_file.stat().st_size
        began = time.process_time()
        reload = math.ceil(rest + WATCH_POLL_INTERVAL_S) if runs else None
        results = Results(spec, StudyRecord.load(folder.ledger_file))
        written = write_report(results, out or folder.report_folder, reload=reload)
        if page is None:
            tell(page := written)
        if not runs:
            return
        rest = (time.process_time() - began) * (1 / MAX_WATCH_CPU_SHARE - 1)
        until = time.monotonic() + rest
        while ledger.is_driver_running(folder.ledger_file) and (
            time.monotonic() < until or folder.ledger_file.stat().st_size == size
        ):
            time.sleep(WATCH_POLL_INTERVAL_S)


def _check_report_folder(name: str, out: Path) -> None:
    try:
        check_output_path(out / "report.html")
    except UserError as error:
        raise UserError(f"{error}. Another folder: {study_command('report', name, '-o', 'DIR')}") from None


def rule_pick_rows(home: Home, name: str) -> list[dict[str, object]]:
    """Return what each selection rule would have picked in a study, one dictionary per rule."""
    from study.analysis.statistics.rule_pick_results import judge_rule_picks, rule_picks_to_dicts

    folder = home.find_study(name)
    results = Results.load(folder)
    return rule_picks_to_dicts(results.spec, judge_rule_picks(results))


def artifact_folder_by_report_file(folder: StudyFolder) -> dict[Path, str | None]:
    """Return the files of a study's report, each with the artifact folder that it goes to."""
    files = (path for path in folder.report_folder.rglob("*") if path.is_file())
    return {path: str(path.parent.relative_to(folder.path)) for path in files}


def artifact_folder_by_result_file(folder: StudyFolder) -> dict[Path, str | None]:
    """Return the files of a study's report, and its best configuration or model card, which go to no folder."""
    files: dict[Path, str | None] = {file: None for file in (folder.best_file, folder.model_card_file) if file.exists()}
    return files | artifact_folder_by_report_file(folder)


def lead_sentences_by_title(results: Results) -> dict[str, tuple[str, ...]]:
    """Return the sentences of the report's lead by title, as the study's run in MLflow shows them."""
    return {title: tuple(map(str, said)) for title, said in report_lead.report_lead_statements(results).items()}
