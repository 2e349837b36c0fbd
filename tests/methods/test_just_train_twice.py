"""JTT: what is recorded when, what it weighs, and which network is the result."""

import pytest
import torch
from small import digits, method_for_rows, rows, steps, trained
from torch.nn import functional

from study.errors import UserError
from study.methods import UNKNOWN_LABEL


def begun(epoch: int, epochs: int = 4, **given: float):
    method, batch = method_for_rows(name="just_train_twice", identification=0.5, **given), rows()
    method.prepare_training(batch.labels)
    method.begin_epoch(epoch, epochs)
    return method, batch


def test_errors_of_the_last_epoch_of_the_first_stage_weigh_more_in_the_second() -> None:
    method, batch = begun(1, upweight=5.0)
    method(batch)
    assert not method.wrong.values.any()  # not yet the last epoch
    method.begin_epoch(2, 4)
    method(batch)
    wrong = method.wrong.values.clone()
    first = method.first_classifier(method.first.encoder(batch.views[0]))
    assert torch.equal(wrong, first.argmax(1) != batch.labels.target)
    assert 0 < wrong.sum() < len(wrong)
    method.begin_epoch(3, 4)
    logits = method.classifier(method.network.encoder(batch.views[0]))
    weight = torch.where(wrong, 5.0, 1.0)
    each = functional.cross_entropy(logits, batch.labels.target, reduction="none")
    torch.testing.assert_close(method(batch)[0], (weight * each).sum() / weight.sum())
    assert torch.equal(method.wrong.values, wrong)
    assert method.diagnose(batch)["wrong_share"] == wrong.float().mean()


def test_weighing_is_repeating() -> None:
    """The gradient is that of a batch in which the wrong samples are there so often."""
    method, batch = begun(3, upweight=3.0)
    method.wrong.values[:10] = True
    method.begin_epoch(3, 4)
    method(batch)[0].backward()
    index = torch.cat([batch.index, batch.index[:10], batch.index[:10]])
    logits = method.classifier(method.network.encoder(batch.views[0][index]))
    found = method.classifier.weight.grad.clone()
    method.zero_grad()
    functional.cross_entropy(logits, batch.labels.target[index]).backward()
    torch.testing.assert_close(method.classifier.weight.grad, found)


@pytest.mark.parametrize(("epoch", "moving"), [(1, "first"), (3, "network")])
def test_a_stage_trains_and_gives_its_own_network(epoch: int, moving: str) -> None:
    method, batch = begun(epoch)
    before = {name: value.clone() for name, value in method.named_parameters()}
    steps(method, batch, 3)
    moved = {name.split(".")[0] for name, value in method.named_parameters() if not torch.equal(value, before[name])}
    assert moved == {moving, "first_classifier" if moving == "first" else "classifier"}
    assert method.encoders() == {"encoder": getattr(method, moving).encoder}


@pytest.mark.slow
def test_the_stages_share_out_any_number_of_epochs() -> None:
    for share, epochs, last in [(0.2, 10, 2), (0.01, 10, 1), (0.99, 10, 9), (0.5, 2, 1)]:
        method = method_for_rows(name="just_train_twice", identification=share)
        stages = []
        for epoch in range(1, epochs + 1):
            method.begin_epoch(epoch, epochs)
            stages.append(method.identifies)
        assert stages == [True] * last + [False] * (epochs - last)


def test_one_epoch_cannot_train_twice() -> None:
    with pytest.raises(UserError, match=r"train\.epochs: 1; .* at least 2"):
        begun(1, epochs=1)


def test_unlabelled_samples_are_never_wrong() -> None:
    method, batch = begun(2)
    batch.labels.target[:20] = UNKNOWN_LABEL
    method(batch)
    assert not method.wrong.values[:20].any()


@pytest.mark.parametrize("saved_in", [1, 2])
def test_weights_that_are_loaded_are_evaluated_in_the_stage_that_they_were_saved_in(saved_in: int, tmp_path) -> None:
    trial, _ = trained({"name": "just_train_twice", "identification": 0.5}, digits(), epochs=2)
    trial.method.begin_epoch(saved_in, 2)
    trial.save_model(tmp_path / "one.safetensors")
    fresh, _ = trained({"name": "just_train_twice", "identification": 0.5}, digits(), epochs=2, seed=3)
    fresh.load_model(tmp_path / "one.safetensors")
    assert fresh.evaluate("test") == trial.evaluate("test")
