"""Which addresses are spoken to, and how the token gets there."""

import os
from pathlib import Path

import pytest

from study import cluster_addresses
from study.errors import UserError
from study.upstream import ray_token

TOKEN = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # so that what the code sets is taken back
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def token_file(folder: Path, text: str = TOKEN, mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("given", ["auto", "127.0.0.1:6379", "localhost:1", "[::1]:65535"])
def test_this_machine_needs_no_token(given: str) -> None:
    cluster_addresses.check_cluster_address(given)


@pytest.mark.parametrize("given", ["", "head", "head:", ":6379", "head:0", "head:65536", "ray://head:10001", "a b:1"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(UserError, match="allowed: auto, HOST:PORT"):
        cluster_addresses.check_cluster_address(given)


def test_the_jobs_address_is_told_from_the_clusters() -> None:
    with pytest.raises(UserError, match="study submit"):
        cluster_addresses.check_cluster_address("http://head:8265")
    for given in ("head:8265", "http://", "http://user:word@head:8265", "http://head:8265/api", "file:///etc"):
        with pytest.raises(UserError, match="allowed: http://HOST:PORT"):
            cluster_addresses.check_jobs_address(given)


@pytest.mark.parametrize("given", ["10.0.0.1:6379", "head.example.org:6379", "0.0.0.0:6379", "127.0.0.1.evil.org:1"])
def test_a_cluster_elsewhere_needs_a_token(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no token is given"):
        cluster_addresses.check_cluster_address(given)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token_file(tmp_path)))
    cluster_addresses.check_cluster_address(given)
    assert os.environ["RAY_AUTH_MODE"] == "token"


def test_a_short_token_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token_file(tmp_path, "secret")))
    with pytest.raises(UserError, match="has 6 characters, allowed: 16"):
        cluster_addresses.check_jobs_address("http://10.0.0.1:8265")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_refused(mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token_file(tmp_path, mode=mode)))
    with pytest.raises(UserError, match="chmod 600"):
        cluster_addresses.check_jobs_address("http://127.0.0.1:8265")


def test_rays_own_token_file_is_looked_at_where_ray_would_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local `ray.init()` of any program writes it, for all to read: that keeps nobody from a cluster without one."""
    (tmp_path / ".ray").mkdir()
    path = token_file(tmp_path, mode=0o644).rename(tmp_path / ".ray" / "auth_token")
    cluster_addresses.check_jobs_address("http://127.0.0.1:8265")
    assert "RAY_AUTH_MODE" not in os.environ
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(UserError, match="chmod 600"):
        cluster_addresses.check_jobs_address("http://127.0.0.1:8265")
    path.chmod(0o600)
    cluster_addresses.check_jobs_address("http://127.0.0.1:8265")


def test_a_home_that_cannot_be_looked_into_has_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for home in ("/nonexistent", "/proc/1/fd", ""):
        monkeypatch.setenv("HOME", home)
        cluster_addresses.check_cluster_address("127.0.0.1:6379")
        assert ray_token.find_token() is None


def test_a_ray_of_ones_own_has_a_token_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else can read it, and what was given for a cluster is there again afterwards. A second one has the same:
    Ray keeps the first that a process reads."""
    given = {"RAY_AUTH_TOKEN": "of a cluster", "RAY_AUTH_TOKEN_PATH": str(token_file(tmp_path))}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    (folder := tmp_path / "private").mkdir()
    tokens = set()
    for _ in range(2):
        with ray_token.use_new_ray_token(folder):
            assert "RAY_AUTH_TOKEN" not in os.environ
            path = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
            assert (path.parent, path.stat().st_mode & 0o777) == (folder, 0o600)
            tokens.add(ray_token.find_token())
            os.environ["RAY_AUTH_MODE"] = "token"  # as Ray does
        assert given == {name: os.environ[name] for name in given}
        assert "RAY_AUTH_MODE" not in os.environ
    (token,) = tokens
    assert len(token or "") == 64
