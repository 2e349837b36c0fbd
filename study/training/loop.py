"""The training loop of one trial, top to bottom."""

import hashlib
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

from study import models
from study.data import holdout
from study.data.dataset import Dataset, Facts, Split, derived_fingerprint
from study.files import sha256_of_file, write_atomically
from study.knobs import Value
from study.methods import Batch, BatchLabels, Method
from study.methods.sample_weights import add_sample_weights, weighted_mean_cross_entropy
from study.models.frozen_networks import LayersOnFrozenNetwork
from study.training import augment, checkpoint, features, optimization
from study.training.checkpoint import (
    ChosenWeights,
    EpochChooser,
    HasStateDict,
    TrialCheckpointFile,
    UnusableCheckpointError,
)
from study.training.config import TrialConfig
from study.training.device import (
    DeviceCopy,
    DeviceSplit,
    EpochProfiler,
    apply_determinism,
    available_gpu_bytes,
    best_available_device,
    global_cuda_generators,
    keep_freed_memory,
    shared_device_copy,
)
from study.training.diverged import check_loss_is_finite, check_networks_are_finite
from study.training.evaluation import SplitEvaluator, build_networks
from study.training.optimization import make_adam, make_lr_scheduler, make_optimizer, parameter_groups

CUDA_GRAPH_WARM_UP_BATCHES = 3
"""Full batches before the recording that run as they are, on a stream of their own: libraries choose and allocate."""

TrainingStep = Callable[[Batch], Tensor]


class CudaGraphStep:
    """A training step recorded once as a CUDA graph, then launched as one (`train.graph`).

    Every full batch runs the graph, with the batch copied to where the graph reads it; any other batch runs the step as
    it is. The step is recorded anew whenever the method's `recording` returns another value. The first steps, too,
    train as any other: the results are those of the plain step.

    Args:
        step: returns the step's loss times its samples, a scalar; it must not ask the device for anything.
        method: whose step it is.
        size: samples of a full batch.
        optimizers: those of the step; their rates become tensors on the device, which a schedule fills.
        device: a CUDA device.
        is_asked: whether the study asks for it: then a step that cannot be recorded raises. Else it runs as it is,
            as it does where the memory that the graph holds beside the step's own would be short.
    """

    def __init__(
        self,
        step: TrainingStep,
        method: Method,
        size: int,
        optimizers: Iterable[Optimizer],
        device: torch.device,
        is_asked: bool,
    ) -> None:
        self._step, self._method, self._size, self._is_asked = step, method, size, is_asked
        self._stream = torch.cuda.Stream(device)
        self._is_plain, self._warm, self._recording = False, 0, method.cuda_graph_key()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._batch: Batch | None = None
        self._value: Tensor | None = None
        groups = [group for one in optimizers for group in one.param_groups]
        self._rates = [torch.as_tensor(group["lr"], device=device) for group in groups]
        for group, rate in zip(groups, self._rates, strict=True):
            group["lr"] = rate

    def __call__(self, batch: Batch) -> Tensor:
        """Return the step's loss times its samples; the tensor is written anew by the next call."""
        if len(batch.index) != self._size or self._is_plain:
            return self._step(batch)
        if (key := self._method.cuda_graph_key()) != self._recording:  # the step's operations have changed
            self._warm, self._recording = 0, key
            self._graph = self._batch = self._value = None
        if self._warm < CUDA_GRAPH_WARM_UP_BATCHES:
            self._warm += 1
            return self._run_on_side_stream(batch)
        if self._graph is None or self._batch is None or self._value is None:
            return self._record_graph(batch) if self._is_asked else self._record_if_possible(batch)
        for ours, theirs in zip(_device_tensors(self._batch), _device_tensors(batch), strict=True):
            ours.copy_(theirs, non_blocking=True)
        self._graph.replay()
        return self._value

    def _run_on_side_stream(self, batch: Batch) -> Tensor:
        here = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            value = self._step(batch)
        here.wait_stream(self._stream)
        return value

    def _record_if_possible(self, batch: Batch) -> Tensor:
        """Record the step, or run it as it is if recording fails; a recording that fails has run nothing."""
        device = self._stream.device
        needed = torch.cuda.max_memory_allocated(device) - torch.cuda.memory_allocated(device)
        if 2 * needed <= available_gpu_bytes(device):
            try:
                return self._record_graph(batch)
            except RuntimeError as error:
                first = str(error).splitlines()[0]
                warnings.warn(f"the training step runs without a CUDA graph (train.graph): {first}", stacklevel=2)
        self._is_plain, self._graph, self._batch = True, None, None
        return self._step(batch)

    def _record_graph(self, batch: Batch) -> Tensor:
        # in memory of its own, without what lies on the host: no step that can be recorded asks for it
        self._batch = Batch(batch.views.clone(), batch.labels.map_tensors(torch.clone), batch.index.clone())
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=self._stream):
            self._value = self._step(self._batch)
        self._graph.replay()
        return self._value


def _device_tensors(batch: Batch) -> list[Tensor]:
    """List the batch's tensors that lie on the device."""
    return [tensor for tensor in (batch.views, batch.index, *vars(batch.labels).values()) if tensor is not None]


MAX_SPLIT_MEMORY_SHARE = 0.25
"""Share of the device's memory still available to a trial: a split with more inputs than that stays in the host's. The
rest is for networks and what they compute.
"""

MAX_STEPS_AHEAD = 2
"""Steps that the host may be ahead of the device: each holds a batch in pinned memory and one on the device."""

HOST_DEVICE = torch.device("cpu")


class StreamedSplit(DeviceSplit):
    """A split whose inputs stay in the host's memory; all else, values included, is as in `DeviceSplit`.

    While a batch of `batches` or `batches_in_order` is worked on, the next one is copied through pinned memory on a
    stream of its own. Only the host waits for the device, where it is more than two steps ahead.
    """

    def __init__(self, split: Split, facts: Facts, device: torch.device) -> None:
        super().__init__(split, facts, device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._used: deque[torch.cuda.Event] = deque()
        self._index: Tensor | None = None
        self._batch: tuple[Tensor, torch.cuda.Event | None] | None = None

    def batches(self, order: Tensor, size: int) -> Iterator[Tensor]:
        on_host, on_device = order.split(size), order.to(self.device).split(size)
        batch = self._start_copy_to_device(on_host[0])
        for place, index in enumerate(on_device):
            self._index, self._batch = index, batch
            if place + 1 < len(on_host):
                batch = self._start_copy_to_device(on_host[place + 1])
            yield index
        self._index = self._batch = None

    def batches_in_order(self, size: int) -> Iterator[Tensor]:
        yield from self.batches(torch.arange(len(self)), size)

    def _copy_on_device(self, array: NDArray[np.generic]) -> DeviceCopy:
        return shared_device_copy(array, HOST_DEVICE)

    def _select_inputs(self, index: Tensor) -> Tensor:
        batch = self._batch if index is self._index else None
        values, arrived = batch or self._start_copy_to_device(index.cpu())
        if arrived is not None:
            here = torch.cuda.current_stream(self.device)
            here.wait_event(arrived)
            values.record_stream(here)
            self._used.append(here.record_event())
        return values

    def _start_copy_to_device(self, index: Tensor) -> tuple[Tensor, torch.cuda.Event | None]:
        """Start to copy inputs at these positions (B,) on the host to the device; return also the event of arrival."""
        if self._stream is None:
            return self.inputs[self._input_rows_of_samples(index)], None
        while len(self._used) > MAX_STEPS_AHEAD:
            self._used.popleft().synchronize()
        shape = (len(index), *self.inputs.shape[1:])
        pinned = torch.empty(shape, dtype=self.inputs.dtype, pin_memory=True)
        torch.index_select(self.inputs, 0, self._input_rows_of_samples(index), out=pinned)
        with torch.cuda.stream(self._stream):
            return pinned.to(self.device, non_blocking=True), self._stream.record_event()


DATA_SHARE_SEED = 0
"""Seed of `reduce_to_data_share`: all trials of a study, whatever their own seed, train on the same samples."""


def reduce_to_data_share(dataset: Dataset, share: float) -> Dataset:
    """Reduce the training samples to this share (`train.data_share`), exact to one sample in each cell."""
    if share == 1.0:
        return dataset
    train = dataset.splits["train"]
    _, chosen = holdout.stratified_split(holdout.cell_of_sample(train), share, DATA_SHARE_SEED)
    splits = {**dataset.splits, "train": holdout.select_samples(train, chosen)}
    fingerprint = derived_fingerprint(dataset.fingerprint, f"{share} of train")
    return replace(dataset, splits=splits, stored_fingerprint=fingerprint)


def append_val_to_train(dataset: Dataset) -> Dataset:
    """Append the validation samples to the training samples, and drop the validation split (`train.with_val`).

    A data set without one is returned as it is.
    """
    if "val" not in dataset.splits:
        return dataset
    train, val = dataset.splits["train"], dataset.splits["val"]
    splits = {name: split for name, split in dataset.splits.items() if name != "val"}
    splits["train"] = holdout.concatenate_samples(train, val)
    return replace(dataset, splits=splits, stored_fingerprint=derived_fingerprint(dataset.fingerprint, "val in train"))


FITTED_PROBES_SUFFIX = ".probes.safetensors"
"""Ending of the file beside a model's weights with the probes of `train.final`."""


@dataclass(frozen=True)
class TrainingState:
    """What a trial has from its first epoch to its last, besides its networks.

    Attributes:
        labels: of the training split, as the method knows them.
        optimizer, probe_optimizer: the optimizers of the method and of the probes.
        scheduler: the schedule of `optimizer`.
        order_generator, augmentation_generator: generators of the order of the samples, and of their augmentation.
        checkpoint: the file that the state is written to, if there is one.
        chosen_weights: the weights of the epoch chosen so far, if one is chosen.
        epochs_done: epochs that were complete when it began.
    """

    labels: BatchLabels
    optimizer: Optimizer
    probe_optimizer: Optimizer
    scheduler: LambdaLR
    order_generator: torch.Generator
    augmentation_generator: torch.Generator
    checkpoint: TrialCheckpointFile | None
    chosen_weights: ChosenWeights | None
    epochs_done: int


class TrainingLoop:
    """Networks trained by a method, and a linear probe trained beside them on the encoder's detached features.

    The accuracy of the probe, or of the method's own classifier where it has one, is what search and early stopping
    see. The same configuration and data give the same metrics bit for bit on one CPU machine, stopped and resumed or
    not; on CUDA that is so with `train.deterministic`, for the same kind of card, driver and libraries. Without it a
    resumed trial continues from the same state with the same random numbers, but sums of many terms may be rounded
    differently.

    Args:
        config: what to train.
        dataset: its data; it is read, never written.
        device: one that works; by default a GPU if one works, see `study.training.device.best_available_device`.
        loads_weights: load the weights that `model.weights` names, if it names any; False: `load_model` follows.

    Attributes:
        dataset: what it trains on and is evaluated on.
        evaluate: `evaluate(split, final=False)` computes the metrics of a split with the networks as they are.
    """

    def __init__(
        self, config: TrialConfig, dataset: Dataset, device: str | None = None, loads_weights: bool = True
    ) -> None:
        self.config, self.options = config, config.train
        self._weights = models.describe_weights(config.model) if loads_weights else None
        self.device = torch.device(device) if device else best_available_device()
        dataset = features.replace_inputs_with_frozen_features(config.model, dataset, self.device)
        self._apart = reduce_to_data_share(dataset, self.options.data_share)
        self.dataset = append_val_to_train(self._apart) if self.options.with_val else self._apart
        apply_determinism(self.options, self.device)
        torch.set_num_threads(self.options.threads)
        if self.device.type == "cpu":
            keep_freed_memory()
        torch.backends.cudnn.benchmark = not torch.are_deterministic_algorithms_enabled()  # shapes are few
        facts = dataset.facts.facts_of_split("train")
        self._networks = build_networks(config, dataset.facts, loads_weights)
        self.method, self.probes = cast(Method, self._networks["method"]), cast(nn.ModuleDict, self._networks["probes"])
        optimization.use_micro_batches(self.method, self.options)
        self._networks.to(self.device).to(memory_format=torch.channels_last)
        self._splits = {name: self._place_split(split, facts) for name, split in self.dataset.splits.items()}
        for part in self._networks.modules():
            if isinstance(part, LayersOnFrozenNetwork):
                part.fit_scaling(self._splits["train"].sample_inputs)
        self._augmentation = augment.build_augmentation(self.options.augmentation, facts.shape, self.options)
        networks_and_data = self._networks, self._splits, dataset.facts
        self.evaluate = SplitEvaluator(*networks_and_data, self.options, lambda: self.inferred_groups_by_split)
        self._shapes = {name: list(tensor.shape) for name, tensor in self._networks.state_dict().items()}

    def train_epochs(
        self, resume: Path | None = None, pause: float = 0.0, choice: EpochChooser | None = None
    ) -> Iterator[dict[str, float]]:
        """Train, and yield the metrics of each epoch: `train/*`, `val/*`, and what it cost (see `EpochProfiler`).

        Args:
            resume: a file that is written after each epoch but the last, once its metrics were taken: the caller knows
                of every epoch in it. Where it exists, training continues from it: what follows is what would have
                followed without a stop, bit for bit where the class promises that.
            pause: after a write of `resume` there is none for so many times its duration.
            choice: which epoch's networks to end with, before the last epoch's metrics are given: what `train.final`
                names is measured of these. None: those of the last.

        Raises:
            DivergedError: the loss of an epoch, the networks after it or their outputs for a split are not finite.
            UnusableCheckpointError: at once: `resume` is damaged, another trial's, or has states that this version has
                not; this object cannot be used then.
            OSError: `resume` cannot be written.
        """
        if self.method.reference_to_fit is not None:
            return self._fit_reference(self.method.reference_to_fit)
        return self._train_remaining_epochs(self._make_or_restore_state(resume, pause, choice))

    def _fit_reference(self, name: str) -> Iterator[dict[str, float]]:
        """Yield the one epoch of a model that is fitted at once, to the training split as it is."""
        from study.methods.fitted_classifier import ReferenceMethod
        from study.training import reference_fitting  # scikit-learn, which no other trial needs

        train, clock = self.dataset.splits["train"], EpochProfiler(self.device)
        with clock.phase("training"):
            facts = models.facts_of_pooled_features(self.config.model, self.dataset.facts)
            rows = reference_fitting.ReferenceRows.for_fitting(train, facts, self.options.seed)
            model = reference_fitting.fit_reference(name, rows, self.options.seed)
        cast(ReferenceMethod, self.method).classifier.set_sklearn_model(model)
        with clock.phase("evaluation"):
            values = [self.evaluate(split, final=True).items() for split in self._reported_splits]
        yield dict(chain.from_iterable(values)) | clock.end_epoch(images=len(train))

    def _train_remaining_epochs(self, state: TrainingState) -> Iterator[dict[str, float]]:
        """Yield the epochs after a state; see `train_epochs`."""
        options = self.options
        step, clock = self._make_step(state.optimizer, state.probe_optimizer), EpochProfiler(self.device)
        for epoch in range(state.epochs_done + 1, options.epochs + 1):
            values = self.train_one_epoch(state, epoch, step, clock)
            yield values
            if state.checkpoint is not None and epoch < options.epochs:
                state.checkpoint.save_if_due(epoch)

    def train_one_epoch(
        self, state: TrainingState, epoch: int, step: TrainingStep, clock: EpochProfiler
    ) -> dict[str, float]:
        """Train the `epoch`-th epoch and return its metrics; raises `DivergedError` as `train_epochs`."""
        self.evaluate.load_probe_tensors({})
        self.method.begin_epoch(epoch, self.options.epochs)
        self.method.train()
        total, count = torch.zeros((), device=self.device), 0
        for index, on_host in self.random_batches(state.order_generator):
            with clock.phase("data"):
                views = self.views_of_samples(index, state.augmentation_generator)
                batch = Batch(views, state.labels.select_samples(index), index, on_host)
            with clock.phase("training"):
                total += step(batch)
                count += len(index)
        state.scheduler.step()
        with clock.phase("evaluation"):
            values = self._epoch_metrics(state, epoch, float(total) / count, batch)
        return values | clock.end_epoch(images=count)

    def _make_or_restore_state(self, resume: Path | None, pause: float, choice: EpochChooser | None) -> TrainingState:
        """Make the state that training begins with, by `train_epochs`'s arguments; restore it if `resume` is there."""
        options, method = self.options, self.method
        _ = self.inferred_groups_by_split  # what stands in for labels is trained before the clock runs
        labels = add_sample_weights(self._labels_known_to_method(), self.config.method)
        method.prepare_training(labels)
        optimizer = make_optimizer(parameter_groups(method, options), options, self.device)
        probe_optimizer = make_adam(self.probes.parameters(), options.probe_learning_rate, options, self.device)
        scheduler = make_lr_scheduler(optimizer, options)
        states: dict[str, HasStateDict] = {"method": method, "probes": self.probes, "optimizer": optimizer}
        states |= {"probe_optimizer": probe_optimizer, "rates": scheduler}
        chosen = ChosenWeights(self._networks, choice) if choice else None
        states |= {"chosen": chosen} if chosen else {}
        order_generator = torch.Generator().manual_seed(options.seed)
        augmentation_generator = torch.Generator(self.device).manual_seed(options.seed)
        generators = {"order": order_generator, "chance": augmentation_generator} | global_cuda_generators(self.device)
        identity = self._checkpoint_identity()
        file = TrialCheckpointFile(resume, identity, states, generators, pause) if resume else None
        epochs_done = file.restore_state() if file else 0
        return TrainingState(
            labels,
            optimizer,
            probe_optimizer,
            scheduler,
            order_generator,
            augmentation_generator,
            file,
            chosen,
            epochs_done,
        )

    def _epoch_metrics(self, state: TrainingState, epoch: int, loss: float, batch: Batch) -> dict[str, float]:
        """Return the metrics of an epoch whose steps are done; raises as `train_epochs`.

        Args:
            loss: mean over the epoch's samples.
            batch: the last one.
        """
        values, chosen, last = {"train/loss": loss}, state.chosen_weights, epoch == self.options.epochs
        check_loss_is_finite(loss, epoch)
        check_networks_are_finite(self._networks.parameters(), self.method.encoders().values(), epoch)
        if self.options.probe == "fitted":
            self.evaluate.fit_probes(state.labels)
        for split in self._reported_splits:
            values |= self.evaluate(split, final=last and chosen is None)
        with torch.no_grad():
            values |= {f"train/{name}": float(value) for name, value in self.method.diagnose(batch).items()}
        if chosen:
            chosen.update(values)
        if chosen and last:
            chosen.load_chosen()
            finals: dict[str, float] = {}
            for split in self._reported_splits if self.options.final else ():
                finals |= self.evaluate(split, final=True)
            values = finals | values
        return values

    def _make_step(self, optimizer: Optimizer, probe_optimizer: Optimizer) -> TrainingStep:
        """Return a function that trains on a batch and returns its loss times its samples.

        Args:
            optimizer, probe_optimizer: optimizers of the method and of the probes.
        """
        options, method = self.options, self.method
        recordable = options.micro_batch is None and method.cuda_graph_key() is not None
        recorded = self.device.type == "cuda" and options.graph is not False and recordable

        def step(batch: Batch) -> Tensor:
            with torch.autocast(self.device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
                loss, features = method(batch)
            probe_loss = self._sum_of_probe_losses(features, batch.labels)
            optimizer.zero_grad(set_to_none=True)
            probe_optimizer.zero_grad(set_to_none=True)
            (loss + probe_loss).backward()
            if options.clip_norm is not None:
                # computing several norms at once copies from the host, which a recorded step must not do
                nn.utils.clip_grad_norm_(method.parameters(), options.clip_norm, foreach=False if recorded else None)
            optimizer.step()
            probe_optimizer.step()
            return loss.detach() * len(batch.index)

        if recorded:
            optimizers = optimizer, probe_optimizer
            return CudaGraphStep(step, method, options.batch_size, optimizers, self.device, bool(options.graph))
        return step

    def saved_epoch(self, resume: Path) -> int:
        """Return the epoch after which `train_epochs` would continue with this file, 0 where there is none.

        Raises:
            UnusableCheckpointError: it is damaged, or another trial's.
        """
        content = checkpoint.read_checkpoint(resume, self._checkpoint_identity())
        return content["epoch"] if content else 0

    def save_model(self, path: Path) -> None:
        """Write networks and their online probes, safetensors, in one step: a reader sees the whole file or none.

        Before it, write the probes of `train.final` that were fitted to these networks to a file beside it.
        """
        from safetensors.torch import save

        path.parent.mkdir(parents=True, exist_ok=True)
        content = save({name: tensor.contiguous() for name, tensor in self._networks.state_dict().items()})
        if fitted := self.evaluate.probe_tensors():
            made_from = {"weights": hashlib.sha256(content).hexdigest(), "data": self.dataset.fingerprint}
            tensors = {name: tensor.contiguous() for name, tensor in fitted.items()}
            write_atomically(path.with_suffix(FITTED_PROBES_SUFFIX), save(tensors, made_from))
        write_atomically(path, content)

    def load_model(self, path: Path) -> None:
        """Load the weights that `save_model` wrote for this configuration.

        Raises:
            UnusableCheckpointError: the file is missing, cut short or otherwise damaged, or of other networks.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            self._networks.load_state_dict(load_file(path))
        except (SafetensorError, OSError, RuntimeError) as error:
            does_not_fit = isinstance(error, RuntimeError)
            what = "does not fit these data or this version of study" if does_not_fit else "is damaged or cut short"
            raise UnusableCheckpointError(f"{path}: {what} ({' '.join(str(error).split())[:200]})") from None
        self.evaluate.load_probe_tensors(self._load_fitted_probes(path))

    def _load_fitted_probes(self, path: Path) -> dict[str, Tensor]:
        """Load the probes that lie beside weights; none where they were fitted to others, or to other data."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path.with_suffix(FITTED_PROBES_SUFFIX), "pt", str(self.device)) as kept:
                made_from = {"weights": sha256_of_file(path), "data": self.dataset.fingerprint}
                names = kept.keys() if kept.metadata() == made_from else ()
                return {name: kept.get_tensor(name) for name in names}
        except (SafetensorError, OSError):
            return {}

    def _place_split(self, split: Split, facts: Facts) -> DeviceSplit:
        """Place the split on the device, or in the host's memory where it takes more than `MAX_SPLIT_MEMORY_SHARE`."""
        is_gpu = self.device.type == "cuda"
        fits = not is_gpu or split.inputs.nbytes <= MAX_SPLIT_MEMORY_SHARE * available_gpu_bytes(self.device)
        return (DeviceSplit if fits else StreamedSplit)(split, facts, self.device)

    def _labels_known_to_method(self) -> BatchLabels:
        """Return what the method knows of the training samples: all that the data say."""
        return self._splits["train"].labels

    @cached_property
    def inferred_groups_by_split(self) -> Mapping[str, Tensor]:
        """Class of each sample's inferred group, (N,), by split; here none is inferred."""
        return {}

    def random_batches(self, order: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield positions of the training samples in random order, on the device and on the host.

        A last batch of one sample is left out, with `train.drop_last` any last batch that is not full.
        """
        size, train = self.options.batch_size, self._splits["train"]
        least = size if self.options.drop_last else 2
        positions = torch.randperm(len(train), generator=order)
        for index, on_host in zip(train.batches(positions, size), positions.split(size), strict=True):
            if len(index) >= min(least, len(train)):
                yield index, on_host

    def views_of_samples(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """Return the views of the samples as the network sees them, (V, B, ...)."""
        train = self._splits["train"]
        return train.normalise_pixels(self._augmentation(train.pixels_of_samples(index), generator, self.method.views))

    def _sum_of_probe_losses(self, features: dict[str, Tensor], labels: BatchLabels) -> Tensor | float:
        """Sum the losses of the probes that learn online and are looked at, on features that pass no gradient on."""
        if self.options.probe == "fitted":
            return 0.0
        parts = [
            weighted_mean_cross_entropy(self.probes[name](functional.normalize(part.detach().float(), dim=1)), labels)
            for name, part in features.items()
            if name != "encoder" or self.method.own_classifier() is None
        ]
        return torch.stack(parts).sum() if parts else 0.0

    @property
    def _reported_splits(self) -> list[str]:
        """Splits whose metrics an epoch has."""
        return [name for name in self._splits if name == "val" or (self.options.report_test and name != "train")]

    def _checkpoint_identity(self) -> dict[str, Value]:
        """Return what a checkpoint must have been made from for this trial to resume from it."""
        begun = {"weights": self._weights} if self._weights else {}
        made_from: dict[str, Value] = {
            "config": self.config.to_document(),
            "data": self.dataset.fingerprint,
            "shapes": self._shapes,
        }
        return made_from | begun
