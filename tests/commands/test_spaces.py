"""What `study spaces` lists: every shipped file with what it is about, and every name with where it comes from."""

from functools import cache

import pytest

from study import data, methods, models
from study.commands import spaces
from study.spec.yaml_document import shipped_study_files


@cache
def document() -> spaces.AvailableNames:
    return spaces.list_spaces()


def files() -> dict[str, spaces.ShippedFile]:
    return {row.name: row for row in document().files}


@pytest.mark.slow
def test_every_shipped_file_says_in_a_sentence_what_it_is() -> None:
    assert list(files()) == list(shipped_study_files())
    for row in files().values():
        assert row.about
        assert "yaml-language-server" not in row.about
        assert "\n" not in row.about


def test_every_shipped_suite_is_listed() -> None:
    suites = {suite.name: suite for suite in document().suites}
    papers = [f"papers_{data}" for data in ("adult", "biased_mnist", "color_mnist", "compas", "digits")]
    assert list(suites) == [*papers, "quickstart_suite"]
    assert all(suite.about == suite.about.split(". ")[0] for suite in suites.values())


def test_everything_that_a_file_can_name_is_there() -> None:
    assert [row.name for row in document().data] == data.dataset_names()
    assert [row.name for row in document().model] == models.CATALOGUE.listed_names()
    assert [row.name for row in document().method] == methods.method_names()
    for row in (*document().data, *document().model, *document().method):
        assert row.about
        assert not row.about.startswith(f"{row.name}: ")
