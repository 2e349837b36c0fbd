"""Whatever is done to a user's table or images: they are prepared, or one message says what is wrong with which."""

import json
import shutil
from pathlib import Path
from random import Random

import pytest
from answers import Answer, answer, peak
from file_mutations import mutate_folder, mutated_table
from pictures import picture

TABLE = "\n".join(
    ["y,b,x,t,z,part"]
    + [
        f"{n % 2},{'fm'[n // 2 % 2]},{n * 0.7:.1f},{'uvw'[n % 3]},{n % 5},{('train', 'val', 'test')[n // 4 % 3]}"
        for n in range(48)
    ]
)
NAMES = [f"{number}.png" for number in range(12)]
LABELS = "\n".join(["file,target,bias", *(f"{name},{'ab'[n % 2]},{'xy'[n // 2 % 2]}" for n, name in enumerate(NAMES))])


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(answered: Answer, seed: int) -> None:
    """A document alone, or one message alone that is no bug: a line, or all things of a table that are to be mended."""
    told = f"seed {seed}: {answered}"
    if answered.status == 0:
        document = json.loads(answered.out)
        assert answered.err == "", told
        assert document["classes"] >= 2, told
        assert all(split["samples"] for split in document["splits"].values()), told
        return
    assert answered.status == 2, told
    assert answered.out == "", told
    assert answered.err.startswith("error: "), told
    assert answered.err.count("\n") == 1 or "things are to be mended or decided:\n" in answered.err, told
    assert len(answered.err) < 2000, told


def prepare(name: str, **options: str) -> Answer:
    settings = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    return answer("data", "prepare", name, *settings, "--json", "--quiet")


BLOCKS = [pytest.param(range(150), marks=pytest.mark.slow), pytest.param(range(150, 500), marks=pytest.mark.long)]
"""Seeds of changes."""


@pytest.mark.parametrize("seeds", BLOCKS, ids=str)
def test_tables(here: Path, seeds: range) -> None:
    before = peak()
    for seed in seeds:
        random = Random(seed)
        (here / "t.csv").write_bytes(mutated_table(random, TABLE))
        options = {"missing": random.choice(["error", "drop", "fill"]), "bias": random.choice(["b", "null"])}
        options |= random.choice([{}, {"split": "part"}, {"features": "[x,t]"}, {"condition": "[z]"}])
        answered = prepare("table", path="t.csv", target="y", **options)
        check(answered, seed)
        assert answered.status == 0 or "t.csv" in answered.err or "data." in answered.err, f"seed {seed}: {answered}"
    assert peak() - before < 500


@pytest.mark.parametrize("seeds", BLOCKS, ids=str)
def test_folders(here: Path, seeds: range) -> None:
    for number, name in enumerate(NAMES):
        picture(here / "whole" / name, 300 * number, (9, 7))
    before = peak()
    for seed in seeds:
        random, folder = Random(seed), here / "mine"
        shutil.copytree(here / "whole", folder)
        (folder / "labels.csv").write_bytes(mutated_table(random, LABELS) if random.random() < 0.2 else LABELS.encode())
        for _ in range(random.choice([1, 1, 2, 5])):
            mutate_folder(random, folder, [*NAMES, "labels.csv"])
        check(prepare("image_folder", path="mine", size="4", bias="bias", val_share="0.3", test_share="0.3"), seed)
        shutil.rmtree(folder)
    assert peak() - before < 500
