"""Runs a study's agenda on a virtual clock."""

import heapq
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from study.home.line import Event
from study.home.log import MemoryLog
from study.home.record import StudyRecord, TrialRecord
from study.ranking import mean_score
from study.simulation.cluster import Cluster, Nodes
from study.simulation.course import Course, Step
from study.simulation.curves import Curve, Curves
from study.simulation.nearest import NearestSampler
from study.simulation.table import key
from study.spec import StudySpec
from study.spec.objective import Score
from study.sweep.agenda import Agenda, Job
from study.sweep.early_stopping import EarlyStopping, early_stopping
from study.sweep.failures import NODE_LOST, Failure
from study.sweep.sampler import Sampler

HOUR, MINUTE = 3600.0, 60.0
UNKNOWN = Failure("BUG", "the curves do not tell of the test split")


@dataclass(frozen=True)
class Limit:
    """What a course may take at most: `seconds`, `epochs` of all trials, `money`."""

    seconds: float = math.inf
    epochs: float = math.inf
    money: float = math.inf


def simulate(
    spec: StudySpec,
    curves: Curves,
    cluster: Cluster | None = None,
    seed: int = 0,
    *,
    rule: EarlyStopping | None = None,
    sampler: Sampler | None = None,
    hears: Callable[[Event], object] | None = None,
    limit: Limit | None = None,
) -> Course:
    """The course that a study would take.

    Agenda, sampler and early stopping are those of a real study and are told the same; the clock is virtual. The same
    arguments give the same course. Where `curves` has rows, a baseline and enqueued configurations that are none of
    them are left out.

    Args:
        curves: of one course, as `Table.course` gives them.
        cluster: None: one slot.
        seed: of the search, in place of `search.seed`, and of what befalls the cluster.
        rule, sampler: None: those that the study asks for; where `curves` has rows, its sampler among these.
        hears: is given each event that a ledger would hold, its time in virtual seconds.
        limit: the course ends before it is passed.
    """
    search: dict[str, Any] = {"seed": seed}
    if curves.rows is not None:
        known = {key(row) for row in curves.rows}
        if spec.search.baseline is not None and key(spec.search.baseline) not in known:
            search["baseline"] = None
        search["enqueue"] = [params for params in spec.search.enqueue if key(params) in known]
    spec = replace(spec, search=spec.search.model_copy(update=search))
    if sampler is None and curves.rows is not None:
        sampler = NearestSampler(spec, curves.rows)
    course = _Simulation(spec, curves, cluster or Cluster(), seed, rule or early_stopping(spec), sampler, hears)
    return course.run(limit or Limit())


@dataclass(eq=False)
class _Node:
    """A node of the cluster: which of its slots have a process, and what runs on it."""

    number: int
    kind: Nodes
    is_up: bool = False
    warm: set[int] = field(default_factory=set)
    runs: dict[int, "_Run"] = field(default_factory=dict)


@dataclass(eq=False)
class _Run:
    """A job on a slot: `seconds` that each of its epochs takes there, `kept` when its last checkpoint was written."""

    job: Job
    node: _Node
    slot: int
    curve: Curve
    seconds: float
    is_cut: bool = False
    began: float = 0.0
    kept: float = 0.0


class _Simulation:
    """One course; `now` is the virtual time in seconds since the study began."""

    def __init__(
        self,
        spec: StudySpec,
        curves: Curves,
        cluster: Cluster,
        seed: int,
        rule: EarlyStopping,
        sampler: Sampler | None,
        hears: Callable[[Event], object] | None,
    ) -> None:
        self.spec, self.curves, self.cluster, self.seed = spec, curves, cluster, seed
        self.now, self._heap, self._count = 0.0, list[tuple[float, int, Callable[..., None], tuple[Any, ...]]](), 0
        self._counts: Counter[str] = Counter()
        self._hears = hears
        log = MemoryLog(lambda: self.now, self._heard)
        self.record = StudyRecord()
        self.course = Course(self.record)
        self.record.apply(log.append("created", id="simulated"))
        self.record.apply(log.append("opened", owner="simulated"))
        self.agenda = Agenda(spec, log, self.record, rule, sampler)
        self._free: list[tuple[int, int]] = []
        self._nodes: list[_Node] = []
        self._under_way, self._most = 0, spec.search.concurrency or cluster.slots
        self._checkpoints: dict[int, int] = {}
        self._best: Score | None = None
        self._rate, self._paid_until = 0.0, 0.0
        self._luck = random.Random(f"cluster {seed}")
        self._by_minute: Counter[int] = Counter()
        self._told = [(place, name) for place, name in enumerate(curves.metrics) if not name.startswith("test/")]
        self._tests = [(place, name) for place, name in enumerate(curves.metrics) if name.startswith("test/")]

    def run(self, limit: Limit) -> Course:
        """Go on until nothing follows, or a limit would be passed."""
        for kind in self.cluster.nodes:
            for _ in range(kind.count):
                self._nodes.append(_Node(len(self._nodes), kind))
                self._at(self.cluster.begins, self._ask_for, self._nodes[-1])
        while not self._fill():
            if not self._heap:
                raise RuntimeError("the agenda waits, and nothing runs")
            if self._passes(limit):
                break
            self.now, _, act, given = heapq.heappop(self._heap)
            act(*given)
        else:
            self.now += self.cluster.ends
        self._pay()
        course = self.course
        course.seconds, course.state, course.events = self.now, self.agenda.outcome, dict(self._counts)
        course.busiest = max(self._by_minute.values(), default=0)
        return course

    def _passes(self, limit: Limit) -> bool:
        """Whether what comes next passes a limit."""
        seconds, course = self._heap[0][0], self.course
        spent = course.money + self._rate * (seconds - self._paid_until)
        return seconds > limit.seconds or course.epochs >= limit.epochs or spent > limit.money

    def _at(self, time: float, act: Callable[..., None], *given: Any) -> None:
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, act, given))

    def _heard(self, event: Event) -> None:
        self._counts[event["event"]] += 1
        if self._hears is not None:
            self._hears(event)

    def _fill(self) -> bool:
        """Give jobs to the slots that are free. Says whether the study is over."""
        while self._free and self._under_way < self._most:
            job = self.agenda.next()
            if job is None:
                return False
            if job == "done":
                return True
            self._begin(job, *heapq.heappop(self._free))
        return False

    def _ask_for(self, node: _Node) -> None:
        self._pay()
        self._rate += node.kind.price * node.kind.slots / HOUR
        self._at(self.now + node.kind.start, self._comes, node)

    def _comes(self, node: _Node) -> None:
        node.is_up = True
        for slot in range(node.kind.slots):
            heapq.heappush(self._free, (node.number, slot))
        if node.kind.preempted:
            self._at(self.now + self._luck.expovariate(node.kind.preempted / HOUR), self._goes, node)

    def _goes(self, node: _Node) -> None:
        """A node is taken away, with what runs on it."""
        self._pay()
        self._rate -= node.kind.price * node.kind.slots / HOUR
        self.course.preempted += 1
        runs, node.runs, node.warm, node.is_up = list(node.runs.values()), {}, set(), False
        self._free = [place for place in self._free if place[0] != node.number]
        heapq.heapify(self._free)
        for run in runs:
            run.is_cut = True
            self._under_way -= 1
            self.course.busy += self.now - run.began
            trial = run.job.trial
            if run.job.kind == "test":
                self.agenda.untested(trial.number, NODE_LOST)
                continue
            if trial.state == "running":
                self.course.lost += trial.epochs - self._checkpoints.get(trial.number, 0)
            self.agenda.failed(trial.number, NODE_LOST)
        self._at(self.now, self._ask_for, node)

    def _pay(self) -> None:
        """Bring the money that was spent to this moment."""
        self.course.money += self._rate * (self.now - self._paid_until)
        self._paid_until = self.now

    def _begin(self, job: Job, number: int, slot: int) -> None:
        node, trial = self._nodes[number], job.trial
        curve = self.curves.curve(trial.params, trial.seed - self.spec.seed)
        seconds = curve.seconds / node.kind.speed
        if node.kind.straggling:
            luck = random.Random(f"{self.seed} {trial.number} {trial.attempt} {job.kind}")
            seconds *= luck.lognormvariate(0.0, node.kind.straggling)
        run = node.runs[slot] = _Run(job, node, slot, curve, seconds, began=self.now)
        self._under_way += 1
        wait = self.cluster.trial + (0.0 if slot in node.warm else node.kind.process)
        node.warm.add(slot)
        self._at(self.now + wait, self._tested if job.kind == "test" else self._started, run)

    def _started(self, run: _Run) -> None:
        if run.is_cut:
            return
        trial = run.job.trial
        if self.agenda.started(trial.number, str(run.node.number), self._checkpoints.get(trial.number, 0)):
            run.kept = self.now
            self._at(self.now + run.seconds, self._reports, run)
        else:
            self._ends(run)

    def _reports(self, run: _Run) -> None:
        """An epoch is over."""
        if run.is_cut:
            return
        trial, epoch = run.job.trial, run.job.trial.epochs + 1
        if self.now - run.kept >= self.cluster.checkpoint:
            self._checkpoints[trial.number], run.kept = epoch, self.now
        self.course.epochs += 1
        self._by_minute[int(self.now // MINUTE)] += 1
        values = run.curve.values[epoch - 1].tolist()
        if self.agenda.reported(trial.number, epoch, {name: values[place] for place, name in self._told}):
            self._at(self.now + run.seconds, self._reports, run)
            return
        self._checkpoints[trial.number] = trial.epochs
        self._ends(run)
        if trial.stage in ("baseline", "search", "replicate"):
            self._settle(trial)

    def _tested(self, run: _Run) -> None:
        if run.is_cut:
            return
        number, values = run.job.trial.number, run.curve.values[self.spec.epochs - 1].tolist()
        if self._tests:
            self.agenda.tested(number, {name: values[place] for place, name in self._tests})
        else:
            self.agenda.untested(number, UNKNOWN)
        self._ends(run)

    def _ends(self, run: _Run) -> None:
        """The slot is free."""
        del run.node.runs[run.slot]
        self._under_way -= 1
        self.course.busy += self.now - run.began
        heapq.heappush(self._free, (run.node.number, run.slot))

    def _settle(self, trial: TrialRecord) -> None:
        """Note the best, now that a trial of the search stands still."""
        self._pay()
        course, goal = self.course, self.spec.objective
        course.search = self.now, course.epochs, course.money
        leader = trial if trial.repeats is None else self.record.trials[trial.repeats]
        seeds = [leader, *self.record.repeats_of(leader.number, "replicate")]
        if len(seeds) < len(self.spec.seeds) or any(seed.state != "complete" for seed in seeds):
            return
        score = mean_score(goal, seeds)
        if score is None or (self._best is not None and _rank(score) <= _rank(self._best)):
            return
        self._best = score
        fresh = self.curves.fresh(leader.params, self.spec.metric)
        course.best.append(Step(self.now, course.epochs, course.money, leader.number, score.values[0], fresh))


def _rank(score: Score) -> tuple[float, float]:
    return -score.violation, score.gains[0]
