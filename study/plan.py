"""What a study would run, before anything starts."""

from typing import Any

from study.spec import StudySpec, rungs


def plan(spec: StudySpec) -> dict[str, Any]:
    """Configurations, trials and epochs of a study, as plain values.

    Epochs are the cost's unit: `most` if no trial were stopped, `expected` if early stopping stops as many as it means
    to (`study.spec.rungs.expected_epochs`).
    """
    search, facts, stopping = spec.search, spec.facts, spec.search.early_stopping
    baseline = int(search.baseline is not None)
    searched = spec.trials - baseline
    confirm = (min(search.confirm.top, searched) + baseline) * search.confirm.seeds if search.confirm.top else 0
    return {
        "name": spec.name,
        "hash": spec.hash,
        "data": dict(spec.base["data"]),
        "title": facts.title or spec.base["data"]["name"],
        "classes": facts.classes,
        "bias_classes": facts.bias_classes,
        "space": {key: domain.model_dump(exclude_none=True) for key, domain in search.space.items()},
        "baseline": search.baseline,
        "enqueued": len(search.enqueue),
        "metric": f"{spec.metric} ({spec.mode})",
        "sampler": search.sampler,
        "early_stopping": stopping.model_dump() | {"words": rungs.words(stopping, spec.epochs)},
        "trials": {"baseline": baseline, "search": searched, "confirm": confirm},
        "epochs_per_trial": spec.epochs,
        "epochs": {
            "most": (spec.trials + confirm) * spec.epochs,
            "expected": round(
                (baseline + confirm) * spec.epochs + searched * rungs.expected_epochs(stopping, spec.epochs)
            ),
        },
        "resources_per_trial": spec.resources.model_dump(),
    }


def text(document: dict[str, Any]) -> str:
    """The same for people."""
    trials, epochs, resources = document["trials"], document["epochs"], document["resources_per_trial"]
    lines = [
        f"study {document['name']} ({document['hash']}), nothing is started",
        f"data: {document['title']}: {', '.join(f'{key} {value}' for key, value in document['data'].items())}",
        "search space:" if document["space"] else "search space: empty, one configuration",
        *(f"  {key}: {_domain(domain)}" for key, domain in document["space"].items()),
        f"metric: {document['metric']}, sampler {document['sampler']}",
        f"early stopping: {document['early_stopping']['words']}",
        f"trials: {trials['baseline']} baseline + {trials['search']} searched, then {trials['confirm']} to confirm",
        f"epochs: {document['epochs_per_trial']} per full trial; in all about {epochs['expected']}, "
        f"at most {epochs['most']}",
        f"each trial takes {resources['cpu']:g} CPU, {resources['gpu']:g} GPU",
    ]
    return "\n".join(lines)


def _domain(domain: dict[str, Any]) -> str:
    if "choices" in domain:
        return "one of " + ", ".join(map(str, domain["choices"]))
    step = f", step {domain['step']:g}" if "step" in domain else ""
    return f"{domain['low']:g} to {domain['high']:g}{', log' if domain['log'] else ''}{step}"
