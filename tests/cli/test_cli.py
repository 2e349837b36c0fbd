"""What all commands share: how errors are told, what libraries may say, and who shows no progress."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from answers import answer
from helpers import Told, append_event, quickstart, write_ledger
from typer.testing import CliRunner

from study.cli import COMMAND_BY_SYNONYM, COMMANDS_BY_APP, app
from study.commands import status
from study.errors import StudyStoppedError, UserError
from study.home.folder import Home
from study.upstream.logging import VERBOSE_VARIABLE, hide_library_messages


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    monkeypatch.setenv(VERBOSE_VARIABLE, "")
    return tmp_path


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UserError("what was given"), 2),
        (StudyStoppedError("no room"), 1),
        (OSError(28, "No space left on device", "/there"), 1),
        (PermissionError(13, "Permission denied", "/there"), 2),
    ],
)
def test_what_is_no_bug_is_one_line(home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
    monkeypatch.setattr(status, "list_study_rows", lambda home: raising(error))
    done = answer("list")
    assert done.status == code
    assert done.err.startswith(f"error: {error.filename or ''}" if isinstance(error, OSError) else "error: ")
    assert done.err.count("\n") == 1
    monkeypatch.setenv(VERBOSE_VARIABLE, "1")
    done = answer("list")
    assert done.status == code
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero.\nNever"), FileNotFoundError(2, "No such file", "/gone")])
def test_a_bug_shows_where_it_is_and_asks_for_a_report(
    home: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(status, "list_study_rows", lambda home: raising(error))
    done = answer("list")
    assert done.status == 1
    assert "in raising" in done.err
    last = done.err.splitlines()[-1]
    assert last.startswith(f"error: {type(error).__name__}: ")
    assert "study doctor" in last


@pytest.mark.slow
def test_libraries_are_quiet_unless_they_may_speak(home: Path) -> None:
    logger = logging.getLogger("a.library")
    hide_library_messages("a.library")
    assert logger.level == logging.ERROR
    code = (
        "import logging, sys; from study import cli; from study.upstream.logging import hide_library_messages\ntry: "
        "cli.app(sys.argv[1:])\nexcept SystemExit: pass\nhide_library_messages('a.library'); "
        "logging.getLogger('a.library').info('heard')"
    )
    for arguments, heard in ((["list"], False), (["--verbose", "list"], True), (["-v", "list"], True)):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert ("a.library INFO: heard" in done.stderr) == heard


def raising(error: Exception) -> None:
    raise error


INTERRUPTED_IMPORT = """
from study import cli

def app(**_):
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as interrupt:
        raise ImportError("initialization failed") from interrupt

cli.app = app
cli.main()
"""


def test_a_library_whose_import_was_interrupted_is_no_bug() -> None:
    """Compiled ones turn the interrupt into an error of their own. In a process of its own, which it ends."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


SWALLOWED = """
import signal
from study import cli

def app(**_):
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt as interrupt:
        told = repr(interrupt)
    raise ValueError(f"SchemaError: {told}")

cli.app = app
cli.main()
"""


def test_a_library_that_puts_an_interrupt_into_words_is_no_bug() -> None:
    """As pydantic's compiled core does while a form is built: nothing but the words is left of it."""
    done = subprocess.run([sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_bug(tmp_path: Path, closed: str) -> None:
    (tmp_path / "rows.csv").write_text("a,sex,y\n" + "1,f,no\n2,m,yes\n3,f,yes\n4,m,no\n" * 20)
    command = [sys.executable, "-m", "study", "init", "rows", "--data", str(tmp_path / "rows.csv")]
    words = [*command, "--target", "y", "--bias", "sex"]
    shell = ["sh", "-c", f'"$@" {closed}', "sh", *words]
    ended = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "bug in study" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode in (0, 2)


def test_what_others_named_is_printed_without_escapes() -> None:
    told = answer("plan", "\x1b[2Jevil\u202e.yaml").err
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "x1b[2Jevil" in told


@pytest.mark.parametrize(("typed", "meant"), [("show", "status"), ("ls", "list"), ("expotr", "export")])
def test_an_unknown_command_is_answered_with_the_one_that_is_meant(typed: str, meant: str) -> None:
    done = CliRunner().invoke(app, [typed, "mine"])
    assert done.exit_code == 2
    assert f"No such command {typed!r}. Did you mean {meant!r}" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("resume mine --trails 3", "--trails. Did you mean '--trials'?"),
        ("data list --jsno", "--jsno. Did you mean '--json'?"),
        ("run quickstart --trails 3", "--trails. Did you mean '--set search.trials=...'?"),
        ("run quickstart --epochs 3", "--epochs. Did you mean '--set train.epochs=...'?"),
        ("run quickstart --batch-size 3", "--batch-size. Did you mean '--set train.batch_size=...'?"),
        ("list --zzzzzz", "--zzzzzz"),
    ],
)
def test_an_unknown_option_is_answered_with_the_one_that_is_meant(words: str, told: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert done.stderr.rstrip().endswith(f"No such option: {told}")


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("interrupted", "i1: is interrupted and has no result yet: study resume i1"),
        ("failed", "i1: has failed and has no result yet: study resume i1 --failed"),
        ("new", "i1: has not begun and has no result yet: study resume i1"),
    ],
)
def test_a_study_that_is_not_over_is_not_trained(home: Path, state: str, told: str) -> None:
    folder = Home(home).create_study(quickstart("name=i1"))
    if state != "new":
        write_ledger(folder.ledger_file, Told("search", [0.5]))
        append_event(folder.ledger_file, "closed", state=state)
    done = answer("train", "i1")
    assert (done.status, done.err) == (2, f"error: {told}\n")


@pytest.mark.parametrize("command", ["resume", "report", "status", "export", "logs", "stop", "delete", "attach"])
def test_a_study_file_where_a_name_is_wanted_is_answered_with_the_name(home: Path, command: str) -> None:
    Home(home).create_study(quickstart("name=k3"))
    done = answer(command, "k3.yaml")
    assert (done.status, done.err.splitlines()[-1]) == (
        2,
        "error: k3.yaml: a study file; what is wanted is the name of a study: k3",
    )


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("logs mine --trial two", "--trial two: a whole number is needed"),
        ("confirm mine --top 0", "--top 0: at least 1 is needed"),
        ("ui --port 70000", "--port 70000: at most 65535 is needed"),
    ],
)
def test_a_number_that_cannot_be_used_is_told_in_one_line(home: Path, typed: str, told: str) -> None:
    done = answer(*typed.split())
    assert (done.status, done.err) == (2, f"error: {told}\n")


def test_no_command_is_one_of_the_other_words() -> None:
    assert not COMMAND_BY_SYNONYM.keys() & COMMANDS_BY_APP[app].keys()
