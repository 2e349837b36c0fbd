"""The studies of a home at a glance."""

from dataclasses import asdict
from typing import Any

from study import ranking
from study.analysis.report import lead
from study.commands import progress
from study.errors import UserError
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import ablation, summary
from study.ranking.remaining_gain import remaining_gain, sentence
from study.ranking.ties import ties
from study.text.moment import moment


def document(folder: StudyFolder) -> dict[str, Any]:
    """A study's summary, the lead of its report and, once it has begun, its pace."""
    spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    with ranking.ranked_once(record):
        tied = [asdict(tie) | {"message": str(tie)} for tie in ties(record, spec)]
        remaining = remaining_gain(spec, record)
        told = {
            "lead": lead.document(spec, record),
            "ablation": ablation.progress(record, spec),
            "pace": progress.pace(spec, record),
            "ties": tied,
            "remaining": asdict(remaining) | {"message": sentence(spec, remaining)},
        }
        return {**summary.summary(spec, record), **told}


def lines(document: dict[str, Any]) -> list[str]:
    """The same for people."""
    texts = summary.lines(document)
    if "lead" in document and (document.get("final") or document.get("best")):  # what a cluster runs may lack it
        texts += lead.lines(document["lead"])
    texts += [f"warning   {tie['message']}" for tie in document["ties"]]
    if way := document.get("ablation"):
        texts.append(
            f"ablation  from the baseline to trial {way['best']} in {len(way['steps'])} steps on {len(way['seeds'])} "
            f"seeds: {way['complete']} of {way['trials']} trials complete"
        )
    if pace := document["pace"]:
        to_go = "to go" if document["state"] == "running" else "left to do"
        left = "" if pace["remaining"] is None else f", about {progress.clock(pace['remaining'])} {to_go}"
        texts.append(f"pace      {pace['epochs_per_minute']:.1f} epochs per minute{left}")
    elif document["state"] == "running":
        texts.append("pace      not known before the first epoch")
    if document["lost"]:
        texts.append(f"lost      {document['lost']} run(s) of trials, which had to run again")
    return texts


def overview(home: Home) -> list[dict[str, Any]]:
    """One row per study, the oldest first: name, state, owner, trials by state, metric, best value, when it began."""
    rows: list[dict[str, Any]] = []
    for folder in home.studies():
        try:
            spec, record = folder.spec(), StudyRecord.load(folder.ledger_file)
        except UserError as error:
            unknown = dict.fromkeys(("owner", "metric", "best", "began"))
            rows.append({"name": folder.name, "state": "unreadable", "trials": {}, **unknown, "reason": str(error)})
            continue
        best = ranking.best(record, spec)
        rows.append(
            {
                "name": spec.name,
                "state": record.state,
                "owner": record.owner,
                "trials": {state: count for state, count in record.counts().items() if count},
                "metric": spec.metric,
                "best": best.value if best else None,
                "began": record.sessions[0]["time"] if record.sessions else None,
            }
        )
    return rows


def table(home: Home, rows: list[dict[str, Any]]) -> str:
    """The same for people."""
    if not rows:
        return f"no studies in {home.path}; a first one: study run quickstart"
    lines = [f"{'study':<28} {'state':<12} {'owner':<12} {'best':<28} {'began':<24} trials"]
    for row in rows:
        best = "-" if row["best"] is None else f"{row['metric']} {row['best']:.4f}"
        began = moment(row["began"])
        trials = ", ".join(f"{count} {state}" for state, count in row["trials"].items())
        lines.append(f"{row['name']:<28} {row['state']:<12} {row['owner'] or '-':<12} {best:<28} {began:<24} {trials}")
    return "\n".join(lines)
