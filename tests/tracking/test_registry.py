"""A registered model that is asked for and is not there."""

from pathlib import Path

import pytest

from study.errors import UserError
from study.home.folder import Home
from study.tracking.opening import open_mlflow
from study.tracking.registry import download


def test_what_there_is_in_its_place_is_said(home: Home, tmp_path: Path) -> None:
    client = open_mlflow(home)
    client.create_registered_model("birds-final")
    client.create_model_version("birds-final", source=tmp_path.as_uri())
    client.set_registered_model_alias("birds-final", "candidate", "1")
    for asked, told in {
        "birds-final@production": "not in the registry. birds-final has the aliases: candidate; versions: 1",
        "birds-final/7": "not in the registry. birds-final has the aliases: candidate; versions: 1",
        "bird-final@candidate": "no registered model of this name. Did you mean 'birds-final'? Registered: birds-final",
    }.items():
        with pytest.raises(UserError) as caught:
            download(home, f"models:/{asked}", tmp_path / "there")
        assert str(caught.value) == f"models:/{asked}: {told}"
