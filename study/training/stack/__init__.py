"""Trials that share one program: N configurations that differ in numbers, trained step by step together.

A stack is N ordinary trials (`study.training.trial.Trial`) whose tensors lie beside each other. Every parameter, buffer
and optimizer state of a trial is a view of its row of a stacked tensor. So a trial's evaluation, checkpoint, schedule
and end are those of a trial alone, on its own modules; only what costs time is done for all rows at once:

* networks (`layers`, `lifted`, `forms`): the encoder's own code on the samples of all rows, (N * B, ...), row by row;
  only its layers tell rows apart. Linear layers are batched products. Layers of images that follow each other are one:
  on a CPU each row goes through all of them before the next one does (convolutions in groups take up to 2.5 times as
  long, `torch.vmap` of the modules twice as long as a trial alone), on a GPU the channels of all rows are those of one
  network. Encoders that are not `by_sample`, such as those of other distributions, run one by one within the stack.
* losses (`stack`, `slots`): the method's own `forward` under `torch.vmap`, which the losses are written for. Inside it
  a lifted network sees the batches of all rows. Numbers that differ are put in the place that the number has in the
  method's objects (`slots`), as tensors without dimensions. Masks are (N, B, B): each row has its own batch order.
* optimizers (`optimizers`): Adam, SGD and LARS on one matrix, (N, elements), with the rate, decay and momentum that
  each row's own optimizer has, and that its own schedule changes.
* evaluation (`program`): features of all rows by the lifted encoder, scores and metrics of all rows under `torch.vmap`;
  row by row what `train.final` names, thresholds for odds, and inferred groups.

What may go together: `together.apart` says why two configurations cannot. It allows what the `train` section decides
on the host (rates, schedule, epochs, seed, augmentation's numbers), and each number of the `method` section. A method
goes if its `recording` is a constant: no step asks the device or depends on the batch.

With `Stack("shared")` all rows have one order, one batch and one augmentation, those of the row that has been there the
longest, and seeds tell how their weights begin. What depends on the batch alone has no rows then: masks are (B, B), the
first layer reads (B, ...), which evaluation always does. A stack of one row is its trial, bit for bit (`alone`).

Trials leave and join between epochs (`Stack.leave`, `Stack.join`); the tensors are stacked anew then. A row that
diverges yields its error in the place of its metrics, and no other row sees it: no operation crosses rows.

The code stays one: there is no second forward of a network, a method or a loss. A test over the catalogue holds a stack
and its trials alone together (`tests/training/stack`).

Measured (`tests/benchmarks/stack.py`) by two processes of one thread on two cores that others used too, alone and
stacked in turns: how many times as fast a trial and epoch is, its evaluation included, by CPU time, and in brackets
trial-epochs a second by the clock. `compas` and `adult` are `mlp` on as many columns as these tables have.

| case                     | rows | own draws   | shared draws |
| ------------------------ | ---- | ----------- | ------------ |
| compas                   | 4    | 1.55 (1.62) |              |
| compas                   | 16   | 2.04 (2.00) | 2.31 (2.26)  |
| adult                    | 4    | 1.58 (1.77) |              |
| adult                    | 16   | 1.95 (1.88) | 2.12 (2.11)  |
| small_conv_net on digits | 4    | 1.55 (1.67) |              |
| small_conv_net on digits | 16   | 2.14 (2.20) | 2.32 (2.29)  |
| lenet                    | 4    | 1.29 (1.30) | 1.59 (1.55)  |
| lenet                    | 8    | 1.39 (1.40) | 1.64 (1.62)  |

Of a step of 16 rows of mlp, 52 ms of one thread, products of matrices are a third, and 3 to 4 ms are what `torch.vmap`
and autograd cost besides arithmetic. Recorded by `make_fx` as one list of operations a step gives the same bits without
them, but takes 2 to 4 CPU seconds to record for each set of rows and each size of a batch.

On the simulated device (`tests/gpu/test_stack_launches.py`) a step of 16 rows has per row 16 to 17 launches where a
trial alone has 169 to 187, and does not wait. Its peak of memory in MiB for 1, 4 and 16 rows of 64 samples: mlp 33, 35,
53; lenet 118, 136, 199; small_conv_net of 32 pixels 69, 149, 449; simple_conv_net 250, 763, 2698.

Stacked and alone differ by rounding: in float32 by 1e-6 of the first step's loss, in float64 by 1e-10 over an epoch for
every method of the catalogue (1e-6 where a plain cross entropy, always in float32, is in the loss). Over 50 steps in
float32 small_conv_net stays within 5e-7 of the loss. Where training amplifies rounding nothing is close: the losses of
three mlp on 128 rows of a table are 8, 0.9 and 0.6% off, those of trials alone whose first weights are 1e-7 off 18, 1.2
and 1.5%.

What is there, file by file: `layers` (layers of N networks, tensors beside each other), `lifted` (a module inside vmap
that works outside of it), `slots` (where a method keeps a number), `optimizers`, `program` (steps and evaluation of a
fixed set of rows), `alone` (the same for one row), `stack` (members that come and go, an epoch's end, `run` for a fixed
set), `forms` (a CPU's fast forms of some layers), `together`.

A study trains stacks where its `resources.stack` says so: `study.sweep.stack_jobs` says which jobs go into a process,
`study.sweep.stack_worker` trains them, `study.sweep.stack_reports` hears of each.

What is not there:

1. Rows of different data: the splits of a table (`data.split_seed`), of which each has a stack of its own.
2. What a step costs besides arithmetic on a GPU: a step as a CUDA graph, and Adam's bias correction on the host.
3. ResNets as `by_sample` (`Backbone` and its buffers, the blocks of torchvision).
4. Methods whose step changes state of its own (group_dro, learning_from_failure, laftr, just_train_twice), adversaries
   in a stage of their own, `unknown_bias: sup_con`, `micro_batch`, `graph`: refused. Rows of which some have lambda 0
   compute the regulariser for all: where it is not finite, 0 times it is not either.
5. The name of each number that may differ beside its knob: `together.FREE` lists those of `train`.
"""
