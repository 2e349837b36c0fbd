"""What `study init` asks about a table's columns: which are no inputs, and what to do with missing values."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from study import data
from study.commands.answers import Asker, one_of, split_names, with_data_keys
from study.data import findings, label_files, table_format, user_data
from study.data.findings import WITHOUT, Finding
from study.errors import UserError
from study.knobs import Section, Value, texts
from study.text import some

if TYPE_CHECKING:
    import pandas as pd


def ask_columns(section: Section, flag: Sequence[str] | None, asker: Asker) -> Section:
    """Return the section of a table with what the user decides about its columns.

    The user decides about columns that cannot be inputs and those that alone tell the class, all at once. Columns with
    the same value in every row are left out; where nobody can be asked, those of dates and names are, too.

    Args:
        flag: columns that are left out; `none`: none of those that tell the class.

    Raises:
        UserError: some are to be decided and nobody can be asked; names all of them. Or the flag is for other data.
    """
    if section["name"] != "table":
        if flag is not None:
            raise UserError(f"--without {','.join(flag)}: is for tables")
        return dict(section)
    path, decided = label_files.locate(str(section["path"])), dict(section)
    given = _columns_in(flag or (), label_files.names(path, table_format.given(section)))
    if given:
        decided["without"] = [*texts(decided, "without"), *given]
    found, answered = data.survey(decided), set[Finding]()
    decisive = ("refused", "no input") if flag is not None and not given else ("refused", "no input", "telling")
    while asked := [one for one in found if one.kind in decisive and one not in answered]:
        if asker.ask is not None:
            for line in findings.table(asked):
                asker.say(line)
            for key, values in findings.keys(asked).items():
                decided = _asked_key(decided, key, values, asker, path)
        else:
            no_inputs = [one for one in asked if one.kind == "no input" and one.column not in texts(decided, "words")]
            if not no_inputs:
                raise UserError(f"{findings.message(path, asked)}\n{_options(asked)}")
            asked = no_inputs
            decided["without"] = [*texts(decided, "without"), *(one.column for one in asked)]
            for one in asked:
                asker.say(f"without: {one.column}: it {one.problem}. To have it: {one.remedy.partition(', or ')[2]}")
        answered.update(asked)
        found = data.survey(decided)  # an answer may bring others to light
    if same := [one.column for one in found if one.kind == "constant"]:
        decided["without"] = list(dict.fromkeys([*texts(decided, "without"), *same]))
        asker.say(f"without: {some(same)}: the same in every row")
    return decided


def _columns_in(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns that texts name, each one column or several with commas; none for `none`."""
    parts = [part for text in texts for part in ([text] if text in names else split_names(text))]
    return [] if parts == ["none"] else parts


def _options(asked: Sequence[Finding]) -> str:
    """Return the options that decide what was asked, to be added to the command."""
    keys = findings.keys(asked)
    without = keys.pop(WITHOUT, ())
    together = [",".join(plain)] if (plain := [name for name in without if "," not in name]) else []
    texts = [f"--without {shlex.quote(text)}" for text in [*together, *(name for name in without if "," in name)]]
    texts += [
        f"--set {shlex.quote(findings.setting(key, values).replace(': ', '=', 1))}" for key, values in keys.items()
    ]
    keep = "; --without none keeps those that tell the class" if any(one.kind == "telling" for one in asked) else ""
    return f"As options of study init: {' '.join(texts)}{keep}" if texts else "Mend them first"


def _asked_key(section: Section, key: str, values: Sequence[str], asker: Asker, path: Path) -> dict[str, Value]:
    name = key.removeprefix("data.")
    before = [] if key in findings.SINGLE else texts(section, name)
    others = {own: value for own, value in section.items() if own != name}
    default = findings.setting(key, [*before, *values]).partition(": ")[2]

    def check(answer: str) -> None:
        if answer not in ("", "none"):
            given = with_data_keys(others, [f"{key}={answer}"])
            there = label_files.names(path, table_format.given(section))
            label_files.need(there, texts(given, name) if key == WITHOUT else (), path)

    answer = asker(key, None, f"{key}, or none", default, check)
    return dict(section) if answer in ("", "none") else with_data_keys(others, [f"{key}={answer}"])


def ask_missing_values(section: Section, flag: str | None, asker: Asker) -> tuple[Section, str | None]:
    """Return the section with what happens to rows of a table with missing values, and a note on them for the file.

    Both stay as they are where the section says it, there are no such rows, or the data are no table.

    Raises:
        UserError: the flag is for another kind of data, or cannot be used.
    """
    if section["name"] != "table" or "missing" in section:
        if flag is not None:
            raise UserError(f"--missing {flag}: is for tables, and not beside --set data.missing")
        return dict(section), None
    path = label_files.locate(str(section["path"]))
    rows = label_files.read_rows(path, section)
    named = section.get("bias")
    bias = user_data.columns_of(named if isinstance(named, str) else None, rows.columns, path)
    target = user_data.columns_of(str(section["target"]), rows.columns, path)
    inputs = rows.drop(columns={*bias, *texts(section, "without")} - {*target})
    gaps = inputs.isna() | inputs.isin([math.inf, -math.inf])
    incomplete = int(gaps.any(axis=1).sum())
    unlabelled = int(gaps[target].any(axis=1).sum())
    if not incomplete and flag is None:
        return dict(section), None
    counted = f"{incomplete} of {len(rows)} rows have missing values, {unlabelled} of them no class"
    counted += _unevenly(gaps.any(axis=1), rows[target])
    allowed = ("drop",) if unlabelled else ("fill", "drop")
    question = f"{counted}. What happens to them, {' or '.join(allowed)}"
    answer = asker("--missing", flag, question, allowed[0], one_of(*allowed))
    remedy = "the rows are left out" if answer == "drop" else "the mean of the training rows, or a value of its own"
    note = f"{counted}. missing: {answer}: {remedy}."
    asker.say(note)
    return {**section, "missing": answer}, note


UNEVEN = 0.2
"""Difference of two classes' shares of rows with missing values from which the user is warned: dropping these rows
changes how frequent the classes are."""


def _unevenly(gaps: "pd.Series", classes: "pd.DataFrame") -> str:
    """Return a warning with the shares of incomplete rows of two classes where these differ much, else nothing."""
    shares = gaps.groupby([classes[name] for name in classes]).mean().sort_values()
    if not 2 <= len(shares) <= user_data.MOST_GROUPS or shares.iloc[-1] - shares.iloc[0] < UNEVEN:
        return ""
    least, most = (f"{100 * share:.0f}% of {name}" for name, share in shares.iloc[[0, -1]].items())
    return f" ({most}, {least}: without them the classes are others)"
