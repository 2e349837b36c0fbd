"""A registered model that is asked for and is not there."""

import json
from pathlib import Path

import pytest
from serving import Silent, serving

from study.errors import UserError
from study.home.folder import Home
from study.tracking.connection import open_mlflow_of_home
from study.tracking.registry import download_registered_model


def test_what_there_is_in_its_place_is_said(home: Home, tmp_path: Path) -> None:
    client = open_mlflow_of_home(home)
    client.create_registered_model("birds-final")
    client.create_model_version("birds-final", source=tmp_path.as_uri())
    client.set_registered_model_alias("birds-final", "candidate", "1")
    for asked, told in {
        "birds-final@production": "not in the registry. birds-final has the aliases: candidate; versions: 1",
        "birds-final/7": "not in the registry. birds-final has the aliases: candidate; versions: 1",
        "bird-final@candidate": "no registered model of this name. Did you mean 'birds-final'? Registered: birds-final",
    }.items():
        with pytest.raises(UserError) as caught:
            download_registered_model(home, f"models:/{asked}", tmp_path / "there")
        assert str(caught.value) == f"models:/{asked}: {told}"


class Hostile(Silent):
    """An MLflow whose registered model has one file, of a name that the test gives it."""

    file = ""

    def answer(self) -> None:
        document: object = b"{}"
        if self.path.startswith("/api/2.0/mlflow/registered-models/alias"):
            document = {"model_version": {"name": "m", "version": "1", "source": "mlflow-artifacts:/1/m"}}
        elif "/mlflow-artifacts/artifacts?" in self.path:
            document = {"files": [{"path": self.file, "is_dir": False, "file_size": 2}]}
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.tell(content, **{"Content-Type": "application/json"})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["../evil.json", "/{}/evil.json", "a/../../evil.json", "..%2fevil.json", "%2e%2e/evil.json"]
)
def test_a_server_writes_nowhere_but_where_it_may(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (there := tmp_path / "there").mkdir()
    monkeypatch.setattr(Hostile, "file", name.format(str(tmp_path).strip("/")))
    with serving(Hostile) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        with pytest.raises(UserError, match="models:/m@champion: "):
            download_registered_model(home, "models:/m@champion", there)
    assert not [path for path in tmp_path.rglob("evil*") if not path.is_relative_to(there)]
