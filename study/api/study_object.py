"""A study of this home as a Python object: its trials as tables, its figures, and what can be done with it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study import ranking
from study.api.argument_names import naming_arguments
from study.errors import UserError, nearest
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Candidate, Reference, Results, SeedStatistics, summary
from study.ranking.difference import side_of
from study.ranking.documents import plain_fields
from study.ranking.selection import Choice, trials_of
from study.spec import StudySpec

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go
    from matplotlib.figure import Figure

    from study.api.model import Model
    from study.driver.session import View


@dataclass(frozen=True)
class Configuration:
    """Configuration of a study, or the reference that is its result.

    Attributes:
        trial: the number of the trial that tried it in the search; None: a reference.
        params: the values of the searched keys; of a reference none.
        metrics: mean, sample standard deviation and count of every validation metric, and of every test metric that was
            read, over `seeds`.
        seeds: training seeds: those on which it was confirmed, else those of the search.
        reference: the name of a model that needs no search; None: a configuration.
    """

    trial: int | None
    params: dict[str, Any]
    metrics: dict[str, SeedStatistics]
    seeds: tuple[int, ...]
    reference: str | None = None


def configuration(spec: StudySpec, candidate: Candidate | Reference | None) -> Configuration | None:
    """Return what the trials of a candidate say of its configuration, or what a reference is; None for neither."""
    if candidate is None:
        return None
    if isinstance(candidate, Reference):
        side = side_of(spec, candidate)
        metrics = ranking.spreads(spec.objective, side.trials, side.joined)
        return Configuration(None, {}, metrics, tuple(trial.seed for trial in side.trials), candidate.name)
    trials = trials_of(candidate)
    metrics = ranking.spreads(spec.objective, trials, candidate.joined)
    return Configuration(
        candidate.trial.number, dict(candidate.trial.params), metrics, tuple(trial.seed for trial in trials)
    )


class Study:
    """Study of a home. Its tables are as of when they are first asked for; `refresh()` reads the study again.

    Args:
        home: that the study is in.
        folder: of the study.

    Example:
        >>> mine = load("mine")
        >>> mine.best.params["method.alpha"]
        0.05
        >>> mine.trials.loc[4, ["stage", "state"]].tolist()
        ['search', 'pruned']
        >>> mine.curves()[3].tolist()  # of trial 3, by epoch
        [0.4, 0.65]
        >>> mine.baseline.params["method.lambda"]
        0.0
    """

    def __init__(self, home: Home, folder: StudyFolder) -> None:
        self._home, self.folder = home, folder

    def __repr__(self) -> str:
        return f"Study({self.name!r}, {self.state})"

    def __str__(self) -> str:
        told = summary.summary(self.results)
        failed = [f"trial {number} failed: {why}" for number, why in told.failures.items() if told.state == "failed"]
        return "\n".join([*summary.lines(told), *failed[:1]])

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.folder.name

    @cached_property
    def spec(self) -> StudySpec:
        """Resolved study file."""
        return self.folder.spec()

    @cached_property
    def record(self) -> StudyRecord:
        """All trials as the ledger has them."""
        return StudyRecord.load(self.folder.ledger_file)

    @cached_property
    def results(self) -> Results:
        """What the study found, see `study.ranking.Results`."""
        return Results(self.spec, self.record)

    def refresh(self) -> "Study":
        """Read the study again, as while another process runs it, and return it."""
        for name in ("spec", "record", "results"):
            self.__dict__.pop(name, None)
        return self

    @property
    def state(self) -> str:
        """`running`, `complete`, `interrupted`, `failed` ..."""
        return self.record.state

    @property
    def summary(self) -> dict[str, Any]:
        """The results as `study status --json` prints them: baseline and best with their metrics."""
        return plain_fields(summary.summary(self.results))

    @property
    def trials(self) -> "pd.DataFrame":
        """One row per trial, see `study.analysis.trials_frame`."""
        from study.analysis import trials_frame

        return trials_frame(self.results)

    @property
    def epochs(self) -> "pd.DataFrame":
        """One row per trial and epoch, see `study.analysis.epochs_frame`."""
        from study.analysis import epochs_frame

        return epochs_frame(self.record)

    @property
    def best(self) -> Configuration | None:
        """The study's result, which best.yaml describes and `train` trains; None if no trial is complete.

        It is the best configuration, which may be the baseline, with several metrics what `search.choose` chooses of
        the `front`. Or it is the reference that no configuration beats: that has a `reference`, no `trial` and no
        `params`.
        """
        return configuration(self.spec, self.results.unbeaten or self.results.best)

    @property
    def best_searched(self) -> Configuration | None:
        """Best configuration by the study's own ranking, whatever a reference reaches; None if no trial is complete."""
        return configuration(self.spec, self.results.best)

    @property
    def references(self) -> "pd.DataFrame":
        """One row per model that was fitted without a search, see `study.analysis.report.reference_sentences`."""
        from study.analysis.report.reference_sentences import references_frame

        return references_frame(self.record)

    @property
    def front(self) -> list[Configuration]:
        """Configurations that no other beats in every metric, the baseline among them, by the first metric."""
        found = (configuration(self.spec, candidate) for candidate, _ in self.results.front)
        return [each for each in found if each]

    @property
    def baseline(self) -> Configuration | None:
        """Configuration that the study compares with, None if it is not complete."""
        return configuration(self.spec, self.results.baseline)

    @property
    def picks(self) -> "pd.DataFrame":
        """Picks of each selection rule, see `study.analysis.picks_frame`."""
        from study.analysis import picks_frame

        return picks_frame(self.results)

    def curves(self, metric: str | None = None) -> "pd.DataFrame":
        """Return a metric by epoch (rows) and trial (columns); the study's own if none is given.

        Raises:
            UserError: no trial has reported such a metric; says which there are.
        """
        frame, name = self.epochs, metric or self.spec.metric
        if name not in frame.columns:
            reported = [str(column) for column in frame.columns if "/" in str(column)]
            there_are = ", ".join(reported) or "none yet"
            raise UserError(f"{name!r}: no trial has reported it. {nearest(name, reported)}There are: {there_are}")
        return frame.pivot(index="epoch", columns="trial", values=name)

    def importance(self) -> "pd.DataFrame":
        """Return how much of the metric's variance each searched key explains.

        See `study.analysis.statistics.importance.importances`.
        """
        from study.analysis.statistics.importance import importances

        return importances(self.results.without_extensions)

    def table(
        self,
        rows: str | Sequence[str],
        columns: str | Sequence[str] | None = None,
        metric: str | None = None,
        bins: int | None = 5,
    ) -> "pd.DataFrame":
        """Tabulate the metric by one parameter, or by two against each other.

        See `study.analysis.ablation` and `study.analysis.sensitivity`.

        Args:
            rows, columns: dotted keys, as `method.lambda`.
            metric: the study's own if none is given.
            bins: number of bins for parameters that were drawn from a range.

        Raises:
            UserError: a parameter or the metric is not one of this study.
        """
        from study.analysis import ablation, sensitivity

        name = metric or self.spec.metric
        if columns is None:
            return ablation(self.trials, rows, name, bins)
        return sensitivity(self.trials, rows, columns, name, bins)

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures that can be drawn of what the study has; `figure` says of any other why not."""
        from study.analysis.figures import FIGURES, shown
        from study.analysis.figures.by_optuna import by_optuna

        ours = [name for name, draw in FIGURES.items() if draw(shown(name, self.results)) is not None]
        return (*ours, *by_optuna(self.results))

    def figure(self, name: str) -> "Figure | go.Figure":
        """Draw a figure of the report with Matplotlib or, where it has the name of one of Optuna's, with Plotly.

        Args:
            name: of a figure, as the report's page has it.

        Raises:
            UserError: there is no such figure, or nothing to draw; says why.
        """
        from study.analysis.figures import FIGURES, shown
        from study.analysis.figures.by_optuna import OPTUNA, by_optuna
        from study.analysis.figures.missing import why_missing
        from study.api.notebook import show_figures

        show_figures()
        if name not in (names := [*FIGURES, *OPTUNA]):
            raise UserError(f"{name!r}: no such figure. {nearest(name, names)}There are: {', '.join(names)}")
        drawn: Figure | go.Figure | None
        if name in FIGURES:
            drawn = FIGURES[name](shown(name, self.results))
        else:
            drawn = by_optuna(self.results, [name]).get(name)
        if drawn is None:
            why = why_missing(name, self.results)
            reason = f": {why}" if why else ""
            raise UserError(f"{name!r}: there is nothing to draw in {self.name}, which is {self.state}{reason}")
        return drawn

    @naming_arguments
    def report(self, out: str | Path | None = None, models: bool = False, pdf: bool = False) -> Path:
        """Write the report, as `study report` does, and return its page.

        Without `out` it is the study's own report, which is in MLflow too; that is written in a separate process.
        """
        from study.api.notebook import view
        from study.commands.report import report
        from study.driver.driver_process import run_in_driver

        if out is not None:
            return report(self._home, self.name, Path(out), models, pdf)[0]
        page: Path = run_in_driver(view(quiet=True), self._home, _own_report, self.name, models, pdf)
        return page

    @naming_arguments
    def resume(
        self, trials: int | None = None, address: str | None = None, quiet: bool = False, failed: bool = False
    ) -> "Study":
        """Go on after a stop or a crash, or search on with so many more trials; return the study.

        Args:
            failed: run again what failed, once its cause is mended.
        """
        from study.api.notebook import view
        from study.driver.driver_process import run_in_driver
        from study.driver.run import resume

        more = f"{trials:+}" if trials is not None else None
        run_in_driver(view(quiet), self._home, resume, self.name, trials=more, address=address, failed=failed)
        return self.refresh()

    @naming_arguments
    def confirm(
        self,
        top: int | None = None,
        seeds: int | None = None,
        rules: bool = False,
        address: str | None = None,
        quiet: bool = False,
    ) -> "Study":
        """Run the best configurations again on fresh seeds, as `study confirm` does; return the study."""
        from study.api.notebook import view
        from study.driver.driver_process import run_in_driver
        from study.driver.run import confirm

        given = {"top": top, "seeds": seeds, "rules": rules}
        run_in_driver(view(quiet), self._home, confirm, self.name, **given, address=address)
        return self.refresh()

    @naming_arguments
    def extend(
        self,
        epochs: int,
        address: str | None = None,
        quiet: bool = False,
        *,
        top: int | None = None,
        trials: Iterable[int] = (),
    ) -> "Study":
        """Let trials go on to more epochs, as `study extend` does; return the study.

        Args:
            epochs, top, trials: see `study.commands.extend_study.ExtensionRequest`.
        """
        from study.api.notebook import view
        from study.commands import extend_study
        from study.driver import run
        from study.driver.driver_process import run_in_driver

        request = extend_study.ExtensionRequest(epochs, top, tuple(trials))
        run_in_driver(view(quiet), self._home, run.extend, self.name, request=request, address=address)
        return self.refresh()

    @naming_arguments
    def export(
        self,
        out: str | Path,
        *,
        top: int | None = None,
        where: Sequence[str] = (),
        by: str | None = None,
        pareto: Sequence[str] = (),
        trial: int | None = None,
    ) -> list[Path]:
        """Write the best configuration, or those of a `study.ranking.selection.Choice`, as study files."""
        from study.commands.export import export

        choice = Choice(top, trial, where, by, pareto)
        return [file.path for file in export(self.folder, self.results, Path(out), choice)]

    @naming_arguments
    def train(
        self,
        seeds: Iterable[int] | None = None,
        name: str | None = None,
        address: str | None = None,
        quiet: bool = False,
        whole: bool = False,
    ) -> "Study":
        """Train the best configuration on these seeds, as `study train` does.

        Args:
            seeds: None: those of this training if it is there, else of another final training of the study, else three
                that the study did not use.
            whole: keep a frozen network's weights with the models, which then need no others.

        Returns:
            The final training, a study of its own: `train().model()` predicts.

        Raises:
            UserError: no configuration is complete, or `seeds` is no list.
        """
        if isinstance(seeds, int):
            raise UserError(f"seeds={seeds}: allowed is a list of seeds, as [6, 7, 8]; None: three that are unused")
        from study.api.notebook import view
        from study.commands.final_training import default_seeds, final_study
        from study.driver.driver_process import run_in_driver
        from study.driver.run import train
        from study.spec import load_study

        (file,) = self.export(self.folder.best_file)
        best = load_study(str(file))
        final = final_study(best, default_seeds(self._home, best, name) if seeds is None else list(seeds), name)
        return Study(self._home, run_in_driver(view(quiet), self._home, train, final, address=address, whole=whole))

    @naming_arguments
    def model(self, seed: int | None = None, device: str | None = None) -> "Model":
        """Load the model of a final training: the one that its card is about, or that of a seed.

        Raises:
            UserError: the study is a search, or has no such model.
        """
        from study.api.model import Model
        from study.commands.final_training import find_model
        from study.trained import Classifier

        with find_model(self._home, self.name, seed) as description:
            return Model(Classifier.load(description, device))


def _own_report(home: Home, name: str, models: bool, pdf: bool, view: "View") -> Path:
    """Write a study's own report, and renew it in MLflow; runs in a driver's process."""
    from study.commands.report import report

    return report(home, name, None, models, pdf)[0]


def load(name: str) -> Study:
    """Return a study of this home (`STUDY_HOME`, else `./studies`), in any state.

    Raises:
        UserError: there is no such study; says which there are.

    Example:
        >>> load("mine").state
        'interrupted'
        >>> load("meine")
        Traceback (most recent call last):
        study.errors.StudyNotFoundError: meine: no such study in ... Did you mean 'mine'? Studies there: mine
    """
    home = Home.locate()
    return Study(home, home.find(name))


def studies() -> list[Study]:
    """Return all studies of this home, the newest last.

    Example:
        >>> {one.name: one.state for one in studies()}
        {'mine': 'interrupted'}
    """
    home = Home.locate()
    return [Study(home, folder) for folder in home.studies()]
