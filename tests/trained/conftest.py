"""A trained model's files."""

from pathlib import Path

import pytest
from final_training import train

from study.home.folder import Home, StudyFolder


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> StudyFolder:
    """Of a final training."""
    return train(Home(tmp_path_factory.mktemp("home")))


@pytest.fixture
def model(folder: StudyFolder, tmp_path: Path) -> Path:
    """A copy of the first seed's files, to be spoilt; its description."""
    for file in (folder.model_description_file(0), folder.model_file(0)):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path / folder.model_description_file(0).name
