"""A study of this home as a Python object: its trials as tables, its figures, and what can be done with it."""

import html
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from study import ranking
from study.api.argument_names import name_arguments_in_errors
from study.errors import UserError, suggest_or_list
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.metrics.metric_format import format_metric
from study.ranking import Candidate, FittedReference, Results, SeedStatistics, study_summary
from study.ranking.arms import arm_of_candidate, is_fitted_once
from study.ranking.candidate_selection import CandidateSelection, judging_trials
from study.ranking.final_model import ensemble_statistics, final_model_arm
from study.ranking.json_documents import to_plain_dict
from study.spec import StudySpec
from study.text import format_parameter, print_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from study.api.trained_model import TrainedModel
    from study.driver.session import StudyView


TABLE_COLUMNS = ["mean", "sd", "n", "over", "pruned", "failed"]
"""Columns of `Study.table` without a second parameter."""

ATTRIBUTE_BY_OPTUNA_NAME = {
    "best_params": "best.params",
    "best_value": "best.metrics[METRIC].mean",
    "best_trial": "best.trial, and trials.loc[best.trial] its row",
    "best_trials": "front",
    "trials_dataframe": "trials",
    "get_trials": "trials",
    "optimize": "resume(trials=N)",
}
"""Attributes of `Study` by what Optuna calls them."""

ItemT = TypeVar("ItemT")


class UnknownNameError(UserError, KeyError):
    """No value of this name; the message says which there are."""

    __str__ = UserError.__str__


class NamedValues(dict[str, ItemT]):
    """Values by name, or by the last part of a dotted one, as `rate`; they say what there is where none is meant."""

    def __missing__(self, name: str) -> ItemT:
        meant = [key for key in self if key.rpartition(".")[2] == name]
        if len(meant) == 1:
            return self[meant[0]]
        raise UnknownNameError(f"{name!r}: not there. {suggest_or_list(name, self, 'There are')}")


@dataclass(frozen=True, repr=False)
class Configuration:
    """Configuration of a study, the reference that is its result, or the model of a final training.

    Attributes:
        trial: the number of the trial that tried it in the search, or trained it; None: a reference, or an ensemble.
        params: the values of the searched keys; of a reference and a final training none.
        metrics: mean, sample standard deviation and count of every validation metric, and of every test metric that was
            read, over `seeds`; of an ensemble its own.
        seeds: training seeds: those on which it was confirmed, else those of the search; those of the model.
        reference: the name of a model that needs no search; None: a configuration.
        broken_limits: those of `search.constraints` that it breaks, by these metrics.
        folds: those that its trials ran on; empty where the data has none.
        printed_metrics: the metrics that it is printed with, where it has them; empty: all.
    """

    trial: int | None
    params: NamedValues[Any]
    metrics: NamedValues[SeedStatistics]
    seeds: tuple[int, ...]
    reference: str | None = None
    broken_limits: tuple[str, ...] = ()
    folds: tuple[int, ...] = ()
    printed_metrics: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the configuration and the metrics that `print(study)` shows, a line for each."""
        is_ensemble = self.trial is None and not self.reference
        named = f"ensemble of {len(self.seeds)} networks" if is_ensemble else self.reference or f"trial {self.trial}"
        params = ", ".join(f"{key} = {format_parameter(value)}" for key, value in self.params.items())
        broken = f"breaks {' and '.join(self.broken_limits)}" if self.broken_limits else ""
        printed = {name: self.metrics[name] for name in self.printed_metrics if name in self.metrics} or self.metrics
        wide = max(map(len, printed), default=0)
        values = [
            f"{name:<{wide}} {format_metric(name, of.mean, of.standard_deviation)} "
            f"({study_summary.fold_and_seed_counts_text(self.folds, 0 if self.reference else of.count)})"
            for name, of in printed.items()
        ]
        others = len(self.metrics) - len(printed)
        more = [f"... and {others} more in .metrics"] if others else []
        return "\n".join([", ".join(filter(None, [named, params, broken])), *values, *more])

    __repr__ = __str__


class Front(list[Configuration]):
    """The configurations of a front, a list that is printed as a table.

    Args:
        configurations: the best in the first metric first.
        metrics: which the table shows.
    """

    def __init__(self, configurations: Iterable[Configuration], metrics: Sequence[str]) -> None:
        super().__init__(configurations)
        self._metrics = metrics

    @property
    def frame(self) -> "pd.DataFrame":
        """One row per configuration, by its trial: searched keys, metrics as means over seeds, number of seeds."""
        import pandas as pd

        keys = dict.fromkeys(key for one in self for key in one.params)
        names = [name for name in self._metrics if any(name in one.metrics for one in self)]
        rows = [
            {key: one.params.get(key) for key in keys}
            | {name: one.metrics[name].mean if name in one.metrics else None for name in names}
            | {"seeds": len(one.seeds)}
            for one in self
        ]
        return pd.DataFrame(rows, pd.Index([one.trial for one in self], name="trial"), [*keys, *names, "seeds"])

    def __repr__(self) -> str:
        return self.frame.to_string(float_format="{:.4g}".format) if self else "[]"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


def to_configuration(results: Results, candidate: Candidate | FittedReference | None) -> Configuration | None:
    """Return what the trials of a candidate say of its configuration, or what a reference is; None for neither."""
    if candidate is None:
        return None
    spec, printed = results.spec, _printed_metrics(results)
    if isinstance(candidate, FittedReference):
        arm = arm_of_candidate(spec, candidate)
        metrics = ranking.statistics_by_metric(spec.objective, arm.trials, arm.joined_folds)
        seeds = tuple(trial.seed for trial in arm.trials)
        return Configuration(None, NamedValues(), NamedValues(metrics), seeds, candidate.name, printed_metrics=printed)
    trials = judging_trials(candidate)
    metrics = ranking.statistics_by_metric(spec.objective, trials, candidate.joined_folds)
    seeds, params = tuple(trial.seed for trial in trials), NamedValues(candidate.trial.params)
    broken = spec.objective.broken_constraints(candidate.confirmed_score or candidate.score)
    folds = tuple(sorted({trial.fold for trial in trials if trial.fold is not None}))
    limits = tuple(map(str, broken))
    return Configuration(candidate.trial.number, params, NamedValues(metrics), seeds, None, limits, folds, printed)


def final_model(results: Results) -> Configuration | None:
    """Return the model of a final training, which `Study.model` loads, with its own metrics; None without one."""
    if (arm := final_model_arm(results)) is None:
        return None
    spec, (first, *_) = results.spec, arm.trials
    if arm.ensemble:
        metrics, score = ensemble_statistics(results.record), spec.objective.score_of_report(arm.ensemble.metrics)
    else:
        metrics = ranking.statistics_by_metric(spec.objective, arm.trials)
        score = ranking.mean_score(spec.objective, arm.trials)
    reference = str(spec.base["method"]["model"]) if is_fitted_once(spec, results.final_training_trials) else None
    return Configuration(
        None if arm.ensemble or reference else first.number,
        NamedValues(first.params),
        NamedValues(metrics),
        tuple(trial.seed for trial in arm.trials),
        reference,
        tuple(map(str, spec.objective.broken_constraints(score))) if score else (),
        printed_metrics=_printed_metrics(results),
    )


def _printed_metrics(results: Results) -> tuple[str, ...]:
    """Return the metrics that a study is printed with, its own first."""
    return tuple(dict.fromkeys([*results.spec.objective.metrics, *study_summary.summarise_study(results).shown]))


def warn_if_failed(study: "Study") -> "Study":
    """Return a study that has ended, after saying on standard error why, if it failed."""
    if study.state == "failed":
        why = study_summary.first_failure_text(study.results.record, study.name)
        print_text("\n".join(filter(None, [f"warning: study {study.name} failed", why])), sys.stderr)
    return study


class Study:
    """Study of a home. Its tables are as of when they are first asked for; `refresh()` reads the study again.

    `study.run` and `study.load` return it. `best`, `baseline` and `front` are configurations, `trials` and `epochs`
    data frames; `table`, `figure` and `report` show them, `compare` sets studies side by side, `train().model()`
    predicts.

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
        results = self.results
        lines = study_summary.summary_lines(study_summary.summarise_study(results))
        if failure := study_summary.first_failure_text(results.record, self.name):
            lines.append(failure)
        if self.state == "interrupted":
            lines.append(f"go on with it: study.load({self.name!r}).resume()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ATTRIBUTE_BY_OPTUNA_NAME:
                raise AttributeError(f"a study has no {name}: it is {ATTRIBUTE_BY_OPTUNA_NAME[name]}")
            return object.__getattribute__(self, name)

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.folder.name

    @cached_property
    def spec(self) -> StudySpec:
        """Resolved study file."""
        return self.folder.load_spec()

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
        return to_plain_dict(study_summary.summarise_study(self.results))

    @property
    def trials(self) -> "pd.DataFrame":
        """One row per trial, by its number: `stage`, `state`, seed, epochs, searched keys and metrics.

        See `study.analysis.trials_frame` for each column.
        """
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

        It is the best configuration, which may be the baseline, with several metrics the best of the `front` in
        the first. Or it is the reference that no configuration beats: that has a `reference`, no `trial` and no
        `params`. Of a final training it is the model that `model()` loads.
        """
        if self.spec.final_seeds is not None:
            return final_model(self.results)
        return to_configuration(self.results, self.results.reference_as_result or self.results.best)

    @property
    def best_searched(self) -> Configuration | None:
        """Best configuration by the study's own ranking, whatever a reference reaches; None if no trial is complete."""
        return to_configuration(self.results, self.results.best)

    @property
    def references(self) -> "pd.DataFrame":
        """One row per model that was fitted without a search, see `study.analysis.report.reference_sentences`."""
        from study.analysis.report.reference_sentences import references_frame

        return references_frame(self.record)

    @property
    def front(self) -> Front:
        """Configurations that no other beats in every metric, the baseline among them, by the first metric.

        With one metric they are the best and those that tie with it, of a final training its model. The list is printed
        as a table, which its `frame` is as a data frame.
        """
        found = [to_configuration(self.results, candidate) for candidate, _ in self.results.front]
        if self.spec.final_seeds is not None:
            found = [self.best]
        needed = self.spec.objective.needed_metrics
        shown = [*needed, *(f"test/{name.partition('/')[2]}" for name in needed)]
        return Front((each for each in found if each), shown)

    @property
    def baseline(self) -> Configuration | None:
        """Configuration that the study compares with, None if it is not complete."""
        return to_configuration(self.results, self.results.baseline)

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
            raise UserError(f"{name!r}: no trial has reported it. {suggest_or_list(name, reported, 'There are')}")
        return frame.pivot(index="epoch", columns="trial", values=name)

    def importance(self) -> "pd.DataFrame":
        """Return how much of the metric's variance each searched key explains.

        See `study.analysis.statistics.importance.importance_frame`.
        """
        from study.analysis.statistics.importance import importance_frame

        return importance_frame(self.results)

    def table(
        self,
        rows: str | Sequence[str],
        columns: str | Sequence[str] | None = None,
        metric: str | None = None,
        bins: int | Literal["auto"] | None = "auto",
    ) -> "pd.DataFrame":
        """Tabulate the metric by one parameter, or its means by two against each other.

        Args:
            rows, columns: dotted keys, as `method.lambda`; of a function's study also the names in its `space`. Without
                columns a row per value, or per combination of values that was tried: mean, sd, n, over, pruned, failed.
                `over` says what the n values are: `configurations`, each with its mean over its seeds, or `seeds` of
                the row's one configuration. With columns the matrix of means, NaN where no trial is complete.
            metric: the study's own if none is given.
            bins: number of bins for parameters that were drawn from a range: 5, of a matrix 3 each way. None: no bins.

        Raises:
            UserError: a parameter or the metric is not one of this study.
        """
        from study.analysis import ablation, sensitivity

        frame, name = self.trials, metric or self.spec.metric

        def keys(given: str | Sequence[str]) -> list[str]:
            named = [given] if isinstance(given, str) else given
            of_function = {
                key: f"method.{key}" for key in named if self.spec.training_function and f"method.{key}" in frame
            }
            return [of_function.get(key, key) for key in named]

        if columns is None:
            return ablation(frame, keys(rows), name, 5 if bins == "auto" else bins)[TABLE_COLUMNS]
        table = sensitivity(frame, keys(rows), keys(columns), name, 3 if bins == "auto" else bins)
        return table[["mean"]].droplevel(0, axis="columns")

    @name_arguments_in_errors
    def compare(self, *others: "str | Study", metric: str | None = None) -> "pd.DataFrame":
        """Return this study and others of the same data side by side, a column each, as `study compare` prints them.

        Args:
            others: studies, or names of studies of this home.
            metric: one that all have; None: the studies' own, which must then be the same.

        Raises:
            UserError: they cannot be compared; says why.
        """
        from study.analysis.statistics.compare_studies import compare_studies, comparison_table

        given = [other if isinstance(other, Study) else load(other) for other in others]
        compared = compare_studies([one.results for one in (self, *given)], metric)
        return comparison_table(compared, metric).set_index("")

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures that can be drawn of what the study has; `figure` says of any other why not."""
        from study.analysis.figures import FIGURES

        return tuple(name for name, draw in FIGURES.items() if draw(self.results) is not None)

    def figure(self, name: str) -> "Figure":
        """Draw a figure of the report with Matplotlib.

        Args:
            name: of a figure, as the report's page has it.

        Raises:
            UserError: there is no such figure, or nothing to draw; says why.
        """
        from study.analysis.figures import FIGURES
        from study.analysis.figures.missing_figures import why_figure_missing
        from study.api.notebook import enable_inline_figures

        enable_inline_figures()
        if name not in FIGURES:
            raise UserError(f"{name!r}: no such figure. {suggest_or_list(name, self.figures, 'There are')}")
        drawn = FIGURES[name](self.results)
        if drawn is None:
            why = why_figure_missing(name, self.results)
            reason = f": {why}" if why else ""
            raise UserError(f"{name!r}: there is nothing to draw in {self.name}, which is {self.state}{reason}")
        return drawn

    @name_arguments_in_errors
    def report(self, out: str | Path | None = None, pdf: bool = False) -> Path:
        """Write the report, as `study report` does, and return its page.

        Without `out` it is the study's own report, which is in MLflow too; that is written in a separate process.
        """
        from study.commands.report import write_study_report

        if out is not None:
            return write_study_report(self._home, self.name, Path(out), pdf)[0]
        page: Path = self._run_in_driver(True, _write_own_report, self.name, pdf)
        return page

    def _run_in_driver(self, quiet: bool, task: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Do what runs trials or writes to MLflow in a separate process, see `study.driver.driver_process`."""
        from study.api.notebook import create_progress_view
        from study.driver.driver_process import run_in_driver_process

        return run_in_driver_process(create_progress_view(quiet), self._home, task, *given, **named)

    @name_arguments_in_errors
    def resume(
        self, trials: int | None = None, address: str | None = None, quiet: bool = False, failed: bool = False
    ) -> "Study":
        """Go on after a stop or a crash, or search on with so many more trials; return the study.

        Args:
            failed: run again what failed, once its cause is mended.
        """
        from study.driver.resume import resume_study

        more = None if trials is None else f"{trials:+}" if isinstance(trials, int) else str(trials)
        self._run_in_driver(quiet, resume_study, self.name, trials=more, address=address, failed=failed)
        return warn_if_failed(self.refresh())

    @name_arguments_in_errors
    def confirm(
        self,
        top: int | None = None,
        seeds: int | None = None,
        rules: bool = False,
        address: str | None = None,
        quiet: bool = False,
    ) -> "Study":
        """Run the best configurations again on fresh seeds, as `study confirm` does; return the study."""
        from study.driver.resume import confirm_study

        self._run_in_driver(quiet, confirm_study, self.name, top=top, seeds=seeds, rules=rules, address=address)
        return warn_if_failed(self.refresh())

    @name_arguments_in_errors
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
        """Write the best configuration, or those that are asked for, as study files; return their paths.

        Args:
            out: the file; several are written as OUT-1, OUT-2 ...
            top: how many; None: one, or all of a front.
            where: limits to keep, each as `val/equalized_odds <= 0.05`.
            by: the metric to order by.
            pareto: metrics whose front is taken.
            trial: the number of one trial.

        Raises:
            UserError: nothing is left of them, or a file cannot be written.
        """
        from study.commands.export_configurations import export_best

        choice = CandidateSelection(top, trial, [where] if isinstance(where, str) else where, by, pareto)
        return [file.path for file in export_best(self.folder, self.results, Path(out), choice)]

    @name_arguments_in_errors
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
        if isinstance(seeds, int | str):
            raise UserError(f"seeds={seeds!r}: allowed is a list of seeds, as [6, 7, 8]; None: three that are unused")
        from study.commands.final_training import default_final_seeds, final_training_spec
        from study.driver.run import train_final
        from study.spec import load_study

        (file,) = self.export(self.folder.best_file)
        best = load_study(str(file))
        final = final_training_spec(
            best, default_final_seeds(self._home, best, name) if seeds is None else list(seeds), name
        )
        folder = self._run_in_driver(quiet, train_final, final, address=address, whole=whole)
        return warn_if_failed(Study(self._home, folder))

    @name_arguments_in_errors
    def model(self, seed: int | None = None, device: str | None = None) -> "TrainedModel":
        """Load the model of a final training: the one that its card is about, or that of a seed.

        Raises:
            UserError: the study is a search, or has no such model.
        """
        from study.api.trained_model import TrainedModel
        from study.commands.final_training import find_model_files
        from study.trained import TrainedClassifier

        if self.spec.final_seeds is None:
            raise UserError(f"{self.name}: is a search, models come from final trainings: train().model()")
        with find_model_files(self._home, self.name, seed) as description:
            return TrainedModel(TrainedClassifier.load_from_description(description, device))


def _write_own_report(home: Home, name: str, pdf: bool, view: "StudyView") -> Path:
    """Write a study's own report, and renew it in MLflow; runs in a driver's process."""
    from study.commands.report import write_study_report

    return write_study_report(home, name, None, pdf)[0]


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
    return Study(home, home.find_study(name))


def studies() -> list[Study]:
    """Return all studies of this home, the newest last.

    Example:
        >>> {one.name: one.state for one in studies()}
        {'mine': 'interrupted'}
    """
    home = Home.locate()
    return [Study(home, folder) for folder in home.list_studies()]
