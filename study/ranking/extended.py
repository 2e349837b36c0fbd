"""Which configurations of a study were extended beyond its number of epochs, and what may be compared then."""

from itertools import chain
from typing import Any

from study.home.events import ENDED
from study.home.record import StudyRecord
from study.ranking.order import compared_at
from study.spec import StudySpec


def extended(record: StudyRecord, spec: StudySpec) -> dict[str, Any] | None:
    """The last extension as plain values, with earlier ones to as many epochs; None where there was none.

    `epochs`: of its trials; `of`: the study's; `trials`: the numbers of its configurations; `left`: how many trials of
    it are still to end; `compared`: how many epochs the trials ran that the results compare.
    """
    if not record.lengthened:
        return None
    epochs = record.lengthened[-1].epochs
    alike = (each.trials for each in record.lengthened if each.epochs == epochs)
    trials = [record.trials[number] for number in dict.fromkeys(chain.from_iterable(alike))]
    return {
        "epochs": epochs,
        "of": spec.epochs,
        "trials": [trial.number for trial in trials if trial.stage in ("baseline", "search")],
        "left": sum(trial.state not in ENDED for trial in trials),
        "compared": compared_at(record, spec),
    }


def sentence(found: dict[str, Any]) -> str:
    """The same for people."""
    numbers = found["trials"]
    which = f"trial{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    if found["epochs"] == found["of"]:
        return f"{which} went on to epoch {found['epochs']} after early stopping had ended them"
    if found["compared"] == found["epochs"] and not found["left"]:
        return (
            f"{which} went on to epoch {found['epochs']} and are compared with one another alone; the other trials "
            "are as they ended"
        )
    why = "until all of them have ended" if found["left"] else "none of the search's is complete, so"
    return f"{which} go on to epoch {found['epochs']}; {why} results are those of {found['compared']} epochs"
