"""The parts of the guide that are made from the code: names, keys, metrics, and the options of commands.

    python tests/support/guide_parts.py

writes them into the pages; a test asks that the pages have them.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from study import data, methods, models
from study.cli import app
from study.knobs import MAX_INTEGER
from study.metrics import CELLS_BY_GROUP_METRIC, MAX_GROUP_METRICS, METRICS
from study.spec.json_schema import study_file_schema
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.training.config import TRIAL_SECTIONS

GUIDE = Path(__file__).parents[2] / "study" / "guide"
START = "<!-- From here on written by tests/support/guide_parts.py -->\n"
FEW = 5
"""Most data sets, networks or methods that are named beside a key which only they have."""

MANY = 12
"""From so many allowed words on they are left out."""

COMMON = {"--json", "--quiet", "--follow", "--address", "--set", "--profile", "--name", "--env", "--python", "--device"}
"""Options of many commands, which the hand-written part of the page explains."""

ABOUT = {"data": data.CATALOGUE.description, "model": models.CATALOGUE.description, "method": methods.describe_method}
NEEDS = {
    "bias_key": "bias labels",
    "condition_key": "a continuous attribute or bias labels",
    "only_tables": "a table",
    "only_binary": "two classes",
    "views_key": "two views of a sample",
}


def pages() -> dict[str, str]:
    """Each page with a generated part: what stands before the mark, and that part anew."""
    made = {"keys.md": keys_part(), "commands.md": commands_part()}
    return {name: f"{_before(name)}{START}\n{text}" for name, text in made.items()}


def _before(name: str) -> str:
    return (GUIDE / name).read_text(encoding="utf-8").partition(START)[0]


def keys_part() -> str:
    """Names and keys of each section of a study file, and the metrics."""
    definitions = study_file_schema()["$defs"]
    lines = [line for section in TRIAL_SECTIONS for line in _section(section, definitions)]
    for model in ("Search", "Resources"):
        choices = _ways() if model == "Search" else ()
        lines += [f"## `{model.lower()}`", "", *choices, *_model(definitions, model, model.lower()), ""]
    return "\n".join([*lines, *_metrics(), ""])


def _section(section: str, definitions: dict[str, Any]) -> Iterator[str]:
    kinds = definitions["file"]["properties"][section].get("discriminator", {}).get("mapping", {"": f"$/{section}"})
    called = [name for name in kinds if name]
    of = {name: definitions[place.split("/")[-1]]["properties"] for name, place in kinds.items()}
    yield from (f"## `{section}`", "")
    if called:
        yield from (f"`{section}.name` is one of:", "")
    for name in called:
        yield f"- `{name}`: {_one_line(ABOUT[section](name))}{_needs(section, name)}"
    if called:
        yield from ("", "Its keys:", "")
    for key in dict.fromkeys(key for keys in of.values() for key in keys if key != "name" or not called):
        having = [name for name in of if key in of[name]]
        first = next((name for name in ("image_folder", "table") if name in having), having[0])
        branches = [branch for name in having for branch in _branches(of[name][key])]
        words = {"enum": list(dict.fromkeys(word for branch in branches for word in branch.get("enum", ())))}
        allowed = [*([words] if words["enum"] else []), *(branch for branch in branches if "enum" not in branch)]
        shown = {_shown(of[name][key]) for name in having}
        what = {"anyOf": allowed, "description": of[first][key].get("description", "")}
        few = len(having) <= FEW and len(having) < len(called)
        owners = f" Of {', '.join(f'`{name}`' for name in having)}." if few else ""
        default = shown.pop() if len(shown) == 1 else "differs"
        yield _entry(f"{section}.{key}", what, default, _paper(section, key, having)) + owners
    yield ""


def _paper(section: str, key: str, having: list[str]) -> str:
    """The range that the word `paper` stands for, where it is the same for all methods, and what papers found good."""
    if section != "method":
        return ""
    added = {"regulariser": "fair_kl", "cross_entropy": "plain"}
    plain = {name: methods.method_knobs({"name": name}) for name in having}
    whole = [{"name": name} | {key: word for key, word in added.items() if key in plain[name]} for name in having]
    searched = [methods.method_knobs(section).get(key) for section in whole]
    ranges = {knob.search_range for knob in searched if knob is not None and knob.search_range is not None}
    ends = {(one.low, one.high) for one in ranges if not one.choices}
    if len(ends) != 1:
        return ""
    low, high = ends.pop()
    good = sorted({value for one in ranges for value in one.paper})
    return f"paper {low:g} to {high:g}" + (f", good: {', '.join(f'{value:g}' for value in good)}" if good else "")


def _needs(section: str, name: str) -> str:
    """What a method needs of the data, as its defaults are."""
    if section != "method":
        return ""
    defaults = {key: knob.default for key, knob in methods.method_knobs({"name": name}).items()}
    needs = methods.method_needs({"name": name, **defaults})
    wanted = [words for key, words in NEEDS.items() if getattr(needs, key)]
    return f" Needs {', '.join(wanted)}." if wanted else ""


def _entry(key: str, what: dict[str, Any], default: str, paper: str = "") -> str:
    allowed = [_values(what, default), default, paper]
    told = f" ({'; '.join(filter(None, allowed))})" if any(allowed) else ""
    return f"- `{key}`{told}: {_one_line(what.get('description', ''))}"


def _ways() -> Iterator[str]:
    yield from ("`search.sampler` is one of:", "")
    for name, can in SAMPLER_CAPABILITIES.items():
        yield f"- `{name}`: good for {can.good_for}. Limits: {can.limits}."
    yield from ("", "All keys:", "")


def _metrics() -> Iterator[str]:
    yield from ("## Metrics", "")
    yield "A metric is named with its split, as `val/accuracy`. Larger is better unless it says that smaller is."
    yield ""
    for name, metric in METRICS.items():
        if name not in CELLS_BY_GROUP_METRIC:
            yield f"- `{name}`: {_one_line(metric.description)}" + (
                " Smaller is better." if metric.better == "min" else ""
            )
    most = f"where there are at most {MAX_GROUP_METRICS} such cells"
    yield f"- `group_Y_S_accuracy`: Accuracy of class Y with bias class S, {most}."


def _shown(what: dict[str, Any]) -> str:
    return f"`{json.dumps(what['default']).strip(chr(34))}`" if "default" in what else ""


def _model(definitions: dict[str, Any], name: str, above: str) -> Iterator[str]:
    """The keys of a pydantic model, and those of the models in it."""
    for key, what in definitions[name]["properties"].items():
        inner = next((of["$ref"].split("/")[-1] for of in _branches(what) if "$ref" in of), "")
        if inner in ("ConfirmOptions", "EarlyStoppingOptions"):
            yield from _model(definitions, inner, f"{above}.{key}")
        else:
            yield _entry(f"{above}.{key}", what, _shown(what))
        if key == "space":
            yield from _model(definitions, "Domain", f"{above}.{key}.KEY")


def _branches(what: dict[str, Any]) -> list[dict[str, Any]]:
    return [inner for of in what.get("anyOf", [what]) for inner in (_branches(of) if "anyOf" in of else [of])]


def _values(what: dict[str, Any], default: str = "") -> str:
    """What a schema allows, in few words, without its default."""
    allowed = dict.fromkeys(filter(None, map(_branch, _branches(what))))
    return ", ".join(word for word in allowed if word not in (default, "`null`"))


def _branch(of: dict[str, Any]) -> str:
    if "enum" in of:
        words = [str(value).replace("\t", r"\t") for value in of["enum"]]
        return ", ".join(f"`{word}`" for word in words) if len(words) < MANY else ""
    if "const" in of:
        return f"`{json.dumps(of['const']).strip(chr(34))}`"
    kind = of.get("type")
    if kind in ("integer", "number"):
        return _range(of)
    if kind == "array":
        return "list"
    return "`null`" if kind == "null" else ""


def _range(of: dict[str, Any]) -> str:
    least, above, most, below = (of.get(key) for key in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"))
    lower = f"from {least:g}" if least is not None else f"above {above:g}" if above is not None else ""
    upper = f"to {most:.10g}" if most not in (None, MAX_INTEGER) else f"below {below:.10g}" if below is not None else ""
    return " ".join(filter(None, [lower, upper])) or "number"


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", ".)")) else f"{text}."


def commands_part() -> str:
    """What each command does and takes, and the options that it alone has."""
    lines = ["## Every command", ""]
    for name, command in _commands(typer.main.get_command(app), ""):
        about = (command.help or "").partition("\n\n")[0].partition(" Example")[0]
        own = [part for part in command.params if part.param_type_name == "argument"]
        arguments = [str(part.metavar or part.name.upper()) for part in own]
        lines += [f"`study {' '.join([name, *arguments])}`: {' '.join(about.split())}", "", *_options(command), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for key, inner in command.commands.items():
        if not inner.hidden:
            yield from _commands(inner, f"{name} {key}".strip())


def _options(command: Any) -> Iterator[str]:
    for option in command.params:
        names = [*option.opts, *option.secondary_opts]
        if option.param_type_name == "argument" or option.hidden or COMMON & set(names) or not option.help:
            continue
        value = f" {option.metavar}" if option.metavar and not option.is_flag else ""
        yield f"- `{'`, `'.join(names)}{value}`: {_one_line(option.help)}"


if __name__ == "__main__":
    for page, text in pages().items():
        (GUIDE / page).write_text(text, encoding="utf-8")
