"""Prepared data on disk: built once, checked, locked, and built again when it is damaged."""

import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from study.data.cache import allocate_array_on_disk, load_or_build_dataset
from study.data.dataset import Facts, Split, fingerprint_of_splits
from study.data.source import Source
from study.errors import UserError

FACTS = Facts(classes=3, bias_classes=2, shape=(1, 2, 2), splits=("train", "val"))


def test_mapped_arrays_are_shared_not_copied_into_a_pickle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray puts what goes out of band into shared memory, once for a machine."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    made = load_or_build_dataset("one", {}, FACTS, lambda: {"train": split(4000), "val": split()})
    buffers: list[pickle.PickleBuffer] = []
    inside = pickle.dumps(made, protocol=5, buffer_callback=buffers.append)
    assert len(inside) < 5000
    assert sum(buffer.raw().nbytes for buffer in buffers) >= made.splits["train"].inputs.nbytes


def split(count: int = 4) -> Split:
    inputs = np.arange(count * 4, dtype=np.uint8).reshape(count, 1, 2, 2)
    return Split(inputs, np.arange(count) % 3, np.arange(count) % 2)


class Build:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict[str, Split]:
        self.calls += 1
        return {"train": split(), "val": split(2)}


def entry(root: Path) -> Path:
    found = [path for path in (root / "prepared").iterdir() if path.is_dir()]
    assert len(found) == 1
    return found[0]


def test_it_is_built_once_and_then_mapped(root: Path) -> None:
    build = Build()
    first, second = (load_or_build_dataset("some", {"rho": 0.5}, FACTS, build) for _ in range(2))
    assert build.calls == 1
    assert isinstance(second.splits["train"].inputs.base, np.memmap)
    assert not second.splits["train"].inputs.flags.writeable
    for name, part in build().items():
        for field in ("inputs", "target", "bias"):
            assert np.array_equal(getattr(second.splits[name], field), getattr(part, field))
    assert first.fingerprint == second.fingerprint == fingerprint_of_splits(build())


def test_other_settings_are_other_data(root: Path) -> None:
    build = Build()
    for key in ({"rho": 0.5}, {"rho": 0.6}, {"rho": 0.5, "version": 2}):
        load_or_build_dataset("some", key, FACTS, build)
    load_or_build_dataset("some", {"rho": 0.5}, replace(FACTS, classes=4), build)
    assert build.calls == 4


def test_other_files_are_other_data(root: Path) -> None:
    build, source = Build(), Source("raw.bin")
    for content in (b"one", b"two", b"one"):
        (root / "raw.bin").write_bytes(content)
        load_or_build_dataset("some", {}, FACTS, build, [source])
    assert build.calls == 2


@pytest.mark.parametrize("file", ["train.npy", "val.labels.npz", "entry.json"])
@pytest.mark.parametrize("how", ["cut short", "gone"])
def test_a_damaged_entry_is_built_again(root: Path, file: str, how: str) -> None:
    build = Build()
    load_or_build_dataset("some", {}, FACTS, build)
    path = entry(root) / file
    path.write_bytes(path.read_bytes()[:-1]) if how == "cut short" else path.unlink()
    again = load_or_build_dataset("some", {}, FACTS, build)
    assert build.calls == 2
    assert np.array_equal(again.splits["train"].inputs, split().inputs)
    load_or_build_dataset("some", {}, FACTS, build)
    assert build.calls == 2


def test_a_build_that_fails_leaves_nothing(root: Path) -> None:
    def fails() -> dict[str, Split]:
        raise UserError("no")

    with pytest.raises(UserError):
        load_or_build_dataset("some", {}, FACTS, fails)
    assert not [path for path in (root / "prepared").iterdir() if path.is_dir()]
    assert load_or_build_dataset("some", {}, FACTS, Build()).splits


def test_a_killed_builds_leftovers_do_not_matter(root: Path) -> None:
    load_or_build_dataset("some", {}, FACTS, Build())
    left = entry(root)
    left.rename(left.with_name(f".{left.name}.part"))
    build = Build()
    load_or_build_dataset("some", {}, FACTS, build)
    assert build.calls == 1
    assert [path.name for path in (root / "prepared").iterdir() if path.is_dir()] == [left.name]


@pytest.mark.slow
def test_two_processes_build_once(root: Path) -> None:
    code = """if True:
        import sys, time
        import numpy as np
        from study.data.cache import load_or_build_dataset
        from study.data.dataset import Facts, Split
        def build():
            print("built", flush=True)
            time.sleep(1)
            return {"train": Split(np.zeros((2, 1, 1, 1), np.uint8), np.zeros(2, np.int64))}
        load_or_build_dataset("some", {}, Facts(1, None, (1, 1, 1), splits=("train",)), build)
        print("read")
    """
    start = {"env": {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}, "stdout": subprocess.PIPE}
    running = [subprocess.Popen([sys.executable, "-c", code], text=True, **start) for _ in range(2)]
    said = sorted(process.communicate(timeout=60)[0] for process in running)
    assert said == ["built\nread\n", "read\n"]


def test_a_folder_that_cannot_be_written_is_made_up_for_in_the_users_own(root: Path) -> None:
    (root / "prepared").write_text("a file where the folder would be")
    build = Build()
    load_or_build_dataset("some", {}, FACTS, build)
    load_or_build_dataset("some", {}, FACTS, build)
    assert build.calls == 1
    assert entry(Path(os.environ["HOME"]) / ".cache/study").name.startswith("some-")


def test_what_is_prepared_in_a_folder_that_cannot_be_written_is_used(root: Path) -> None:
    load_or_build_dataset("some", {}, FACTS, Build())
    (root / "prepared" / f".{entry(root).name}.lock").unlink()
    (root / "prepared").chmod(0o555)
    build = Build()
    load_or_build_dataset("some", {}, FACTS, build)
    assert build.calls == 0
    assert len(list((root / "prepared").iterdir())) == 1  # not even a lock


def test_no_folder_to_write_is_the_users_to_mend(root: Path) -> None:
    (root / "prepared").write_text("")
    home = Path(os.environ["HOME"])
    home.mkdir()
    (home / ".cache").write_text("")
    Path(os.environ["STUDY_HOME"]).write_text("")
    with pytest.raises(UserError, match=r"data/prepared: File exists.*study/prepared: .*Set STUDY_DATA"):
        load_or_build_dataset("some", {}, FACTS, Build())


TRAIN = split()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (replace(TRAIN, target=np.array([0, 1, 2, 3])), "target of sample 3 is 3, allowed is 0 to 2"),
        (replace(TRAIN, target=np.array([0, -1, 2, 0])), "target of sample 1 is -1, allowed is 0 to 2"),
        (replace(TRAIN, target=TRAIN.target.astype(np.int32)), "target: .*int32.* given"),
        (replace(TRAIN, bias=np.array([0, 1, 2, 0])), "bias of sample 2 is 2, allowed is 0 to 1"),
        (replace(TRAIN, bias=np.array([0, 1])), r"bias: .*int64.*\(2,\)\) given"),
        (replace(TRAIN, bias=None), "bias: None given"),
        (replace(TRAIN, condition=np.zeros((4, 2), np.float32)), "condition: .* given, None is needed"),
        (replace(TRAIN, inputs=TRAIN.inputs[:3]), r"inputs: .*\(3, 1, 2, 2\)\) given, .*\(4, 1, 2, 2\)\) is needed"),
        (split(0), "is empty"),
    ],
)
def test_arrays_that_are_not_as_declared_are_refused(root: Path, wrong: Split, message: str) -> None:
    (root / "raw.bin").write_bytes(b"raw")
    with pytest.raises(UserError, match=rf"some \(made from .*raw.bin\): split train: {message}"):
        load_or_build_dataset("some", {}, FACTS, lambda: {"train": wrong, "val": split(2)}, [Source("raw.bin")])


def test_a_missing_split_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match="has the splits train, train, val are needed"):
        load_or_build_dataset("some", {}, FACTS, lambda: {"train": split()})


def test_no_class_is_allowed_in_training_where_that_is_declared(root: Path) -> None:
    facts = replace(FACTS, unlabelled=True)
    bare = replace(split(), target=np.array([0, 1, 2, -1]))
    assert (
        load_or_build_dataset("some", {}, facts, lambda: {"train": bare, "val": split(2)}).splits["train"].target[3]
        == -1
    )
    with pytest.raises(UserError, match="split val: target of sample 3 is -1"):
        load_or_build_dataset("other", {}, facts, lambda: {"train": bare, "val": bare})


def test_arrays_too_big_for_memory_are_built_on_disk(root: Path) -> None:
    def build() -> dict[str, Split]:
        inputs = allocate_array_on_disk((4, 1, 2, 2))
        inputs[:] = split().inputs
        return {"train": replace(split(), inputs=inputs), "val": split(2)}

    dataset = load_or_build_dataset("some", {}, FACTS, build)
    assert dataset.fingerprint == fingerprint_of_splits(Build()())
    assert len(list((root / "prepared").iterdir())) == 2  # the entry and its lock
