"""Whatever is done to a shipped study file, it is a valid study that can be planned, or one message that says where and
what: within ten seconds and 500 MB. A file that is accepted is one for editors, too.
"""

import json
import re
from pathlib import Path
from random import Random

import pytest
import torch  # noqa: F401 (some messages load it, which takes more than all else)
from helpers import reread
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from limits import within
from mutations import mutate_bytes

from study.commands import plan
from study.errors import UserError
from study.spec import json_schema, load_study
from study.spec.yaml_document import read_study_file, shipped_studies_folder, shipped_study_files

TEXTS = {name: path.read_text(encoding="utf-8") for name, path in shipped_study_files().items()}
VALIDATOR = Draft202012Validator(
    json.loads((shipped_studies_folder() / json_schema.SCHEMA_FILE_NAME).read_text(encoding="utf-8"))
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated") / "mutated.yaml"


def broken(random: Random) -> tuple[str, bytes]:
    """The name of a shipped file, and what it is after some changes of its text, and perhaps one of its bytes."""
    name = random.choice(sorted(TEXTS))
    return name, mutate_bytes(random, TEXTS[name].encode())


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**64))
def test_200_mutated_files_are_answered(path: Path, seed: int) -> None:
    answered(path, seed)


def answered(path: Path, seed: int) -> None:
    random = Random(seed)
    name, content = broken(random)
    path.write_bytes(content)
    profile = random.choice([None, None, "cpu"])
    try:
        with within(seconds=10, megabytes=500):
            spec = load_study(str(path), profile=profile)
            assert plan.plan_text(plan.plan_study(spec))
    except UserError as error:
        if not str(error).startswith("--profile cpu: not in "):
            lines = len(re.split(rb"\r\n|[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9]", content))
            for told in str(error).splitlines():
                check(told, path, lines)
        return
    assert reread(spec) == spec
    values = {key: value for key, value in read_study_file(path).values.items() if key != "profiles"}
    if profile is None:
        assert list(VALIDATOR.iter_errors(values)) == [], name


WITHOUT_KEY = (
    "not valid YAML",
    "cannot be read",
    "a study file is a mapping of sections",
    "is not in UTF-8",
    "is in UTF-",
)


def check(told: str, path: Path, lines: int) -> None:
    """A line of a message says which file, which of its lines if there is one, and the key or that it is no YAML; the
    last one perhaps how many more there are."""
    found = re.match(re.escape(str(path)) + r"(?::(\d+))?: (.*)", told)
    assert found, told
    assert 1 <= int(found[1] or 1) <= lines + 1, told
    assert (
        found[2].startswith(WITHOUT_KEY)
        or re.fullmatch(r"and \d+ more problems", found[2])
        or re.match(r".+?: ", found[2])
    ), told
