"""Commands that answer at once: which libraries they must not load, once what the catalogues accept is known."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ROOT, Told, quickstart, write_ledger

from study.home.folder import Home

HEAVY = {"torch", "ray", "mlflow", "optuna", "sklearn", "scipy", "matplotlib", "pandas", "fairlearn"}
DRAWN = {"scipy", "matplotlib", "pandas", "optuna", "sklearn", "torch"}
"""What a report is made with; scikit-learn, where importance is told of enough trials."""

RUN = """
import sys
sys.argv[0] = "study"
from study.cli import main
try:
    main()
except SystemExit as left:
    assert not left.code, left
finally:
    print("LOADED", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


class Here:
    """A home with a small study, and commands in a process of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        spec = quickstart("train.epochs=3", "search.early_stopping.grace=1", "search.trials=4")
        params = [{"method.alpha": 0.1 * one, "method.lambda": 0.2, "method.epsilon": 0.1} for one in (1, 2, 3)]
        trials = [Told("baseline", [0.2, 0.3, 0.4], params=dict(spec.search.baseline or {}))]
        trials += [Told("search", [0.3, 0.4, 0.5 + place / 10], params=one) for place, one in enumerate(params)]
        write_ledger(Home(folder / "home").create_study(spec).ledger_file, *trials)

    def __call__(self, *command: str, **more: str) -> set[str]:
        """The libraries that a command loads."""
        places = {
            "STUDY_HOME": str(self.folder / "home"),
            "STUDY_DATA": str(self.folder / "data"),
            "HOME": str(self.folder),
        }
        environment = {**os.environ, **places, "PYTHONPATH": str(ROOT), **more}
        environment.pop("MLFLOW_TRACKING_URI", None)
        done = subprocess.run(
            [sys.executable, "-c", RUN, *command], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return set(done.stderr.rpartition("LOADED ")[2].split())


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Here:
    return Here(tmp_path_factory.mktemp("here"))


@pytest.mark.slow
@pytest.mark.parametrize("command", ["list", "status quickstart", "logs quickstart", "--help"])
def test_what_is_told_of_a_study_needs_no_kept_answers(here: Here, command: str) -> None:
    assert not here(*command.split()) & HEAVY


@pytest.mark.parametrize(
    "command",
    ["plan quickstart --fast", *(pytest.param(name, marks=pytest.mark.slow) for name in ("spaces", "schema"))],
)
def test_what_is_told_of_study_files_needs_no_heavy_library(here: Here, command: str) -> None:
    """Networks, methods and losses say of themselves what they need, without PyTorch."""
    assert not here(*command.split(), STUDY_DATA=str(here.folder / f"data of {command}")) & HEAVY


@pytest.mark.slow
def test_an_export_needs_them(here: Here) -> None:
    here("export", "quickstart", "-o", "best.yaml")
    assert not here("export", "quickstart", "-o", "best.yaml") & HEAVY


@pytest.mark.slow
def test_a_report_loads_what_it_draws_with(here: Here) -> None:
    here("report", "quickstart")
    assert here("report", "quickstart") & HEAVY <= DRAWN


def test_completion_loads_nothing(here: Here) -> None:
    loaded = here(_STUDY_COMPLETE="complete_bash", COMP_WORDS="study st", COMP_CWORD="1")
    assert not loaded & (HEAVY | {"numpy", "ruamel"})


@pytest.mark.slow
def test_what_is_asked_of_a_study_that_runs_loads_no_pytorch() -> None:
    """Nor does a refusal: `study stop` took three seconds instead of one."""
    code = "import sys, study.driver.ask_driver, study.driver.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" not in done.stdout.split()
