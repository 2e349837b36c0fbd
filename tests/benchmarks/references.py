"""Does the drafted search of a table beat what scikit-learn gives for free, on the metric that it searches by?

    STUDY_DATA=... python tests/benchmarks/references.py run --json FILE [--tables german bank-500 ...] [--splits 3]
    python tests/benchmarks/references.py table --json FILE
    python tests/benchmarks/references.py run --json FILE --tables drawn --splits 48 --homes FOLDER
    python tests/benchmarks/references.py margins --homes FOLDER

`run` cuts each table several times into rows to learn from and rows that are held back, has `study init` draft a study
of the former and runs it whole; `NAME-500` learns from 500 rows. The references are those of the study
(`search.references`), which tests hold to scikit-learn and fairlearn called by hand. All are judged on the held-back
rows, which neither saw: the mean and the least accuracy of the cells of class and bias, accuracy, and fairlearn's
equalized odds difference. `baseline` and `search` are the study's confirmed baseline and the best of its search,
references left out, means over their seeds. What is in FILE already is not run again.

`table` prints the means over splits, and the search's paired difference to the best reference of each
table that can be used without the group of whom it judges.

`drawn` are tables of `rare_classes.py`, another of its settings for each split, and their new unbiased rows are held
back. With `--homes`, the studies stay in that folder; `margins` prints what each `search.margin` would have
chosen in them, less what none chooses.

German credit and bank marketing are `tables/NAME.csv` and `NAME_held.csv` in STUDY_DATA, the breast cancer of
scikit-learn has a made-up attribute, which goes with the class in 80% and 30%.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rare_classes import COLUMNS, SETTINGS, drawn
from scipy import stats
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from study import data
from study.data.source import data_root
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.methods.reference import REFERENCES
from study.ranking import Results
from study.ranking.candidates import Candidate, FittedReference

TABLES = {"german": ("class-label", "sex"), "bank": ("y", "marital"), "adult": ("y", "s"), "compas": ("y", "s")}
TABLES |= {"cancer": ("target", "attribute"), "drawn": ("y", "s")}
SMALL, MOST, HELD = 500, 8000, 8000
"""Rows to learn from of a table that is cut, of any other at most, and held-back rows at most."""

MARGINS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0)
"""Standard errors."""

MEASURES = ("cell_mean", "worst_cell", "accuracy", "equalized_odds_difference")
OF_STUDY = ("unbiased_accuracy", "worst_group_accuracy", "accuracy", "equalized_odds_difference")


def frame(name: str) -> pd.DataFrame:
    """All rows of a table, those that only judge elsewhere too."""
    if name == "cancer":
        rows = load_breast_cancer(as_frame=True).frame
        share = np.where(rows["target"] == 1, 0.8, 0.3)
        return rows.assign(attribute=np.where(np.random.default_rng(0).random(len(rows)) < share, "a", "b"))
    if name in ("adult", "compas"):
        parts = [
            pd.DataFrame(split.inputs).add_prefix("x").assign(y=split.target, s=split.bias)
            for split in data.load({"name": name}).splits.values()
        ]
        return pd.concat(parts)
    return pd.concat([pd.read_csv(data_root() / "tables" / f"{name}{part}.csv") for part in ("", "_held")])


def cut(name: str, seed: int, place: Path) -> None:
    """Write a table with a column `split`: `test` is held back, a quarter of the rows; of drawn ones new rows."""
    table, _, rows = name.partition("-")
    if name == "drawn":
        parts = drawn(SETTINGS[7 * seed % len(SETTINGS)], np.random.default_rng(seed))
        columns = [f"x{number}" for number in range(COLUMNS)]
        frames = [
            pd.DataFrame(part.inputs[:, :COLUMNS], columns=columns).assign(y=part.target, s=part.bias, split=split)
            for part, split in zip(parts, ("train", "test"), strict=True)
        ]
        texts = {column: [f"{column}{number}" for number in range(5)] for column in ("y", "s")}
        pd.concat(frames).replace({column: dict(enumerate(of)) for column, of in texts.items()}).to_csv(
            place, index=False
        )
        return
    found = frame(table).reset_index(drop=True)
    cells = found[list(TABLES[table])].astype(str).agg("|".join, axis=1)
    learn, held = train_test_split(found.index, test_size=min(HELD, len(found) // 4), stratify=cells, random_state=seed)
    most = int(rows or MOST)
    if len(learn) > most:
        learn, _ = train_test_split(learn, train_size=most, stratify=cells[learn], random_state=seed)
    found["split"] = np.where(found.index.isin(held), "test", "train")
    found.loc[learn.union(held)].to_csv(place, index=False)


def drafted(name: str, place: Path, scratch: Path) -> StudyFolder:
    """The folder of a study that `study init` drafts of a table, which was run."""
    target, bias = TABLES[name.partition("-")[0]]
    environment = {**os.environ, "STUDY_HOME": str(scratch / "home")}
    file, command = scratch / "own.yaml", [sys.executable, "-m", "study"]
    answers = ["--data", str(place), "--target", target, "--bias", bias, "--cpu", "-o", str(file)]
    answers += ["--without", "none"] if name == "drawn" else []  # some classes lie apart in one column
    quiet: dict[str, Any] = {"env": environment, "check": True, "stdin": subprocess.DEVNULL}
    quiet |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    subprocess.run([*command, "init", "own", *answers], **quiet)
    subprocess.run([*command, "run", str(file), "-q", "--set", "train.report_test=true"], **quiet)
    return StudyFolder(scratch / "home" / "own")


def of_study(folder: StudyFolder) -> Iterator[tuple[str, dict[str, float], dict[str, Any]]]:
    """The measures of a study's references, and those of its baseline and of its search, with their parameters."""
    record, spec = StudyRecord.load(folder.ledger_file), folder.load_spec()
    for one in Results(spec, record).references:
        yield one.name, {key: one.metrics[f"test/{own}"] for key, own in zip(MEASURES, OF_STUDY, strict=True)}, {}
    for name, found in (("baseline", Results(spec, record).baseline), ("search", Results(spec, record).best)):
        assert found is not None
        last = [trial.reports[-1] for trial in found.confirm_trials or [found.trial]]
        values = {
            key: float(np.mean([report[f"test/{own}"] for report in last]))
            for key, own in zip(MEASURES, OF_STUDY, strict=True)
        }
        yield name, values, dict(found.trial.params)


def row(name: str, seed: int, homes: Path | None) -> dict[str, Any]:
    """One table and split; what its study leaves is kept in a folder of `homes`."""
    with tempfile.TemporaryDirectory() as place:
        scratch, started = homes / f"{name}-{seed}" if homes else Path(place), time.perf_counter()
        scratch.mkdir(parents=True, exist_ok=True)
        cut(name, seed, scratch / "own.csv")
        folder = drafted(name, scratch / "own.csv", scratch)
        rows = len(data.load(folder.load_spec().base["data"]).splits["train"])
        measured, found = {}, {"table": name, "seed": seed, "rows": rows}
        for source, values, params in of_study(folder):
            measured[source] = values
            found |= {source: params} if params else {}
        return {**found, "seconds": round(time.perf_counter() - started), "measured": measured}


def table(rows: list[dict[str, Any]]) -> None:
    """Print the tables of the page."""
    sources = [name for name in rows[0]["measured"] if all(name in row["measured"] for row in rows)]
    by = {name: [row for row in rows if row["table"] == name] for name in dict.fromkeys(row["table"] for row in rows)}
    for measure in MEASURES:
        print(f"\n{measure}:\n\n| table | rows | splits | {' | '.join(sources)} |\n|{'---|' * (len(sources) + 3)}")
        for name, found in by.items():
            means = [100 * np.mean([row["measured"][source][measure] for row in found]) for source in sources]
            texts = " | ".join(f"{mean:.1f}" for mean in means)
            print(f"| {name} | {found[0]['rows']} | {len(found)} | {texts} |")
    print(
        "\n| table | best reference | search less it, points | 95% interval | least and most |\n|---|---|---|---|---|"
    )
    others = [source for source in sources if source in REFERENCES and not REFERENCES[source].predicts_by_group]
    for name, found in by.items():
        cells = {source: np.array([100 * row["measured"][source]["cell_mean"] for row in found]) for source in sources}
        best = max(others, key=lambda source: cells[source].mean())
        differences = cells["search"] - cells[best]
        mean, count = differences.mean(), len(found)
        interval = "-"
        if count > 1:
            half = stats.t.ppf(0.975, count - 1) * differences.std(ddof=1) / count**0.5
            interval = f"{mean - half:+.1f} to {mean + half:+.1f}"
        ends = f"{differences.min():+.1f} to {differences.max():+.1f}"
        print(f"| {name} | {best} | {mean:+.1f} | {interval} | {ends} |")


def margins(homes: Path) -> None:
    """Print what each margin would have chosen in the studies of a folder, and the best reference and search alone."""
    rules: dict[str, list[NDArray[np.float64]]] = {}
    for place in sorted(homes.iterdir()):
        folder = StudyFolder(place / "home" / "own")
        spec, record = folder.load_spec(), StudyRecord.load(folder.ledger_file)
        plain = Results(spec, record)
        if not plain.is_confirmed or plain.best_reference is None:
            print(place.name, "is left out: not confirmed, or without a reference")
            continue
        for margin in (None, *MARGINS):
            search = spec.search.model_copy(update={"margin": margin or 0.0})
            found = Results(replace(spec, search=search), record)
            searched = Results(spec, replace(record, reference_events={})).best if margin is None else found.best
            chosen = searched if margin is None else found.reference_as_result or found.best
            assert chosen is not None
            name = "search alone" if margin is None else f"margin {margin:g}"
            rules.setdefault(name, []).append(on_test(chosen))
        rules.setdefault("best reference", []).append(on_test(plain.best_reference))
    none = np.array(rules["margin 0"])
    print(f"\n{len(none)} studies, points on held-back rows less those of margin 0:\n")
    print(f"| rule | {' | '.join(MEASURES)} |\n|---{'|---' * len(MEASURES)}|")
    print(f"| margin 0, itself | {' | '.join(f'{mean:.1f}' for mean in none.mean(0))} |")
    for name, found_values in rules.items():
        less = np.array(found_values) - none
        half = stats.t.ppf(0.975, len(less) - 1) * less.std(0, ddof=1) / len(less) ** 0.5
        texts = [f"{mean:+.2f} ± {end:.2f}" for mean, end in zip(less.mean(0), half, strict=True)]
        print(f"| {name} | {' | '.join(texts)} |")


def on_test(one: Candidate | FittedReference) -> NDArray[np.float64]:
    """The measures of what a study chose, in points."""
    if isinstance(one, FittedReference):
        reports = [one.metrics]
    else:
        reports = [trial.reports[-1] for trial in one.confirm_trials or [one.trial]]
    return 100 * np.array([np.mean([report[f"test/{own}"] for report in reports]) for own in OF_STUDY])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table", "margins"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--homes", type=Path)
    parser.add_argument(
        "--tables",
        nargs="+",
        default=[f"{name}{end}" for name in TABLES if name != "drawn" for end in ("", f"-{SMALL}")],
    )
    parser.add_argument("--splits", type=int, default=3)
    chosen = parser.parse_args()
    if chosen.what == "margins":
        margins(chosen.homes)
        return
    lines = chosen.json.read_text().splitlines() if chosen.json.exists() else []
    rows = [json.loads(line) for line in lines]
    if chosen.what == "table":
        table(rows)
        return
    done = {(row["table"], row["seed"]) for row in rows}
    for name, seed in ((name, seed) for seed in range(chosen.splits) for name in chosen.tables):
        if (name, seed) not in done:
            found = row(name, seed, chosen.homes)
            with chosen.json.open("a") as file:
                file.write(json.dumps(found) + "\n")
            cells = {source: round(values["cell_mean"], 3) for source, values in found["measured"].items()}
            print(name, seed, found["seconds"], "s", cells, found["search"], flush=True)


if __name__ == "__main__":
    main()
