"""What the study's own run in MLflow says of the study: its parameters, and a note in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

from study.home.record import StudyRecord
from study.metrics.table import groups_of_study
from study.ranking.summary import lines, summary
from study.spec import StudySpec
from study.text import Markdown, escaped, rows_as_markdown

LONGEST = 5000
"""Characters of a parameter or tag that every MLflow takes."""

MOST = 200
"""Characters of a name before its seed; MLflow takes 250 in all."""

NOTE = "mlflow.note.content"
"""The tag that MLflow's UI shows as a run's description, as Markdown."""


def cut(value: Any) -> str:
    """A value as text. One of more than `LONGEST` characters is cut, and its end says how many it has."""
    text = str(value)
    if len(text) <= LONGEST:
        return text
    end = f" ... (cut: {len(text)} characters in all)"
    return text[: LONGEST - len(end)] + end


def params(spec: StudySpec) -> dict[str, str]:
    """The study's parameters under their keys: what all trials start from, without what is searched, then the search
    and the resources. A domain reads as its `low`, `high` ... or its choices; what is not set is left out."""
    document = spec.to_document()
    search = document["search"]
    fixed = {
        f"{section}.{name}": value
        for section in ("data", "model", "method", "train")
        for name, value in document[section].items()
        if f"{section}.{name}" not in search["space"]
    }
    flat = {f"search.{name}": value for name, value in _flat(search) if value not in (None, {}, [])}
    resources = {f"resources.{name}": value for name, value in document["resources"].items() if value is not None}
    return {name: cut(value) for name, value in {**fixed, **flat, **resources}.items()}


def _flat(search: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The keys of a search: those of its sections one by one, domains in words."""
    flat: list[tuple[str, Any]] = []
    for name, value in search.items():
        if name == "space":
            flat += [(f"space.{key}", _domain(domain)) for key, domain in value.items()]
        elif name in ("early_stopping", "confirm", "plateau", "stop", "baseline") and isinstance(value, Mapping):
            flat += [(f"{name}.{key}", part) for key, part in value.items()]
        else:
            flat.append((name, value))
    return flat


def _domain(domain: Mapping[str, Any]) -> str:
    if "choices" in domain and len(domain) == 1:
        return f"one of {', '.join(map(str, domain['choices']))}"
    return ", ".join(f"{key} {value}" for key, value in domain.items())


def note(
    spec: StudySpec,
    record: StudyRecord,
    parts: Mapping[str, Sequence[str]] | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """Return what the study is, on which data, and what came of it.

    Args:
        parts: the sentences of the report's lead by title; without them the summary takes their place.
        links: addresses by what they lead to.
    """
    text = [*_what(spec, record)]
    if parts:
        text += [f"**{escaped(title)}.** {escaped(' '.join(sentences))}" for title, sentences in parts.items()]
    elif record.trials and record.state != "running":
        text += [f"- {escaped(line)}" for line in lines(summary(spec, record))]
    if links:
        text.append(" · ".join(f"[{escaped(name)}]({address})" for name, address in links.items()))
    return cut("\n\n".join(text))


def _what(spec: StudySpec, record: StudyRecord) -> list[str]:
    is_final = spec.final_seeds is not None
    better = "lower" if spec.mode == "min" else "higher"
    what = (
        "Final training of one configuration" if is_final else f"Search for the best {spec.metric}, {better} is better"
    )
    searched = "" if is_final else ", ".join(spec.search.space)
    stopping = spec.search.early_stopping.name
    session = record.sessions[-1] if record.sessions else {}
    rows = [
        ("data", session.get("dataset") or spec.base["data"]["name"]),
        ("method", _name(spec, "method")),
        ("network", _name(spec, "model")),
        ("searched", searched),
        ("sampler", f"{spec.search.sampler}, seed {spec.search.seed}" if searched else ""),
        ("early stopping", stopping if searched and stopping != "none" else ""),
        ("seeds", ", ".join(map(str, spec.final_seeds or spec.seeds))),
        ("state", record.state),
    ]
    shown = [(Markdown(name), value) for name, value in rows if value]
    return [f"{escaped(what)}.", rows_as_markdown(("", ""), shown)]


def _name(spec: StudySpec, section: str) -> str:
    """Of a method or network; of those that are searched over each."""
    domain = spec.search.space.get(f"{section}.name")
    return ", ".join(map(str, domain.ends())) if domain else str(spec.base[section]["name"])


def device_tags(device: Mapping[str, str]) -> dict[str, str]:
    """The tags of a trial's run that say what it ran on: `study.device` is its name, `study.device.driver` the rest."""
    return {f"study.device.{key}".removesuffix(".name"): value for key, value in device.items()}


FILES = ("weights", "function")
NOT_TAGS = ("event", "time", "libraries", "commit", "node", "spec", "datasets", *FILES)


def inherited(spec: StudySpec, record: StudyRecord) -> dict[str, Any]:
    """Tags of the study's run that each trial's run has too: which study, on which code, libraries and data."""
    session = record.sessions[-1] if record.sessions else {}
    plain = {key: value for key, value in session.items() if key not in NOT_TAGS}
    tags = {"study.id": record.id, "study.name": spec.name}
    tags |= {f"study.{key}": value for key, value in plain.items()}
    for key in session.keys() & set(FILES):
        tags[f"study.{key}"] = "; ".join("{name}: {file}, sha256 {sha256}".format(**one) for one in session[key])
    tags |= {f"version.{key}": value for key, value in session.get("libraries", {}).items()}
    tags |= {"mlflow.user": session["owner"]} if session else {}  # the UI's column of who made a run
    if groups := groups_of_study(record.groups):
        tags["study.groups"] = cut("; ".join(f"{name}: {words}" for name, words in groups.items()))
    source = f"study {session['version']}" if "version" in session else "study"
    tags |= {"mlflow.source.name": source, "mlflow.source.type": "LOCAL"}  # its column of what made it
    return tags | ({"mlflow.source.git.commit": session["commit"]} if "commit" in session else {})
