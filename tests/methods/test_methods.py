"""Methods by name: their keys, what they need of the data, and that each trains a network."""

from typing import Literal

import pytest
import torch
from helpers import quickstart
from tiny_methods import FACTS, batch_for, build, section
from torch.nn import functional

from study import methods
from study.data import Facts
from study.errors import UserError
from study.losses.loss_catalogue import classification_losses_by_name, losses_by_name, needs_two_views
from study.methods import UNKNOWN_LABEL, Batch, BatchLabels

CONTRASTIVE = sorted(set(methods.method_names()) & set(losses_by_name()))
PLAIN = Facts(classes=3, bias_classes=None, shape=(5,))
IMAGES = Facts(classes=3, bias_classes=None, shape=(3, 16, 16))


def test_every_loss_is_a_method_but_the_two_halves_of_wcl() -> None:
    assert set(losses_by_name()) - set(methods.method_names()) == {"biased_triplet", "difficulty_weighted_info_nce"}
    assert {"cross_entropy", *classification_losses_by_name()} <= set(methods.method_names())


@pytest.mark.parametrize("regulariser", ["none", "end", "fair_kl"])
@pytest.mark.parametrize("name", [*CONTRASTIVE, "cross_entropy", *classification_losses_by_name()])
def test_every_method_trains_every_weight_of_its_network(name: str, regulariser: str) -> None:
    given = {"regulariser": regulariser} | ({"lambda": 1.0} if regulariser != "none" else {})
    method = build(name, head="mlp" if name in CONTRASTIVE else "none", **given)
    batch = batch_for(method)
    loss, features = method(batch)
    loss.backward()
    assert torch.isfinite(loss)
    assert features["encoder"].shape == (12, 6)
    for parameter in method.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad).all()


@pytest.mark.parametrize("name", [name for name in CONTRASTIVE if not needs_two_views(name)])
def test_two_samples_give_a_finite_loss(name: str) -> None:
    """The last batch of an epoch may be that small."""
    method = build(name, regulariser="fair_kl", **{"lambda": 1.0})
    assert torch.isfinite(method(batch_for(method, 2))[0])


def test_the_loss_sees_the_head_and_a_regulariser_the_features() -> None:
    method = build("sup_con", head="mlp", regulariser="fair_kl", **{"lambda": 2.0, "alpha": 0.5})
    batch = batch_for(method)
    features, embeddings = method.network(batch.views[0])
    loss = losses_by_name()["sup_con"](functional.normalize(embeddings, dim=1)[None], target=batch.labels.target)
    from study.losses.loss_catalogue import regularisers_by_name

    unit = functional.normalize(features, dim=1)[None]
    debias = regularisers_by_name()["fair_kl"](unit, target=batch.labels.target, bias=batch.labels.bias)
    torch.testing.assert_close(method(batch)[0], 0.5 * loss + 2.0 * debias)


def test_fscl_dagger_is_the_loss_of_two_views_without_the_target() -> None:
    method = build("fair_sup_con", views=2, use_target=False)
    batch = batch_for(method)
    views = functional.normalize(method.network(batch.views.flatten(0, 1))[1], dim=1).unflatten(0, (2, 12))
    torch.testing.assert_close(method(batch)[0], losses_by_name()["fair_sup_con"](views, bias=batch.labels.bias))


def test_more_positives_of_dcl_are_further_views() -> None:
    method = build("debiased_info_nce", positives=3)
    assert method.views == 5
    batch = batch_for(method)
    views = functional.normalize(method.network(batch.views.flatten(0, 1))[1], dim=1).unflatten(0, (5, 12))
    expected = losses_by_name()["debiased_info_nce"](views[:2], extra_positives=views[2:])
    torch.testing.assert_close(method(batch)[0], expected)


def test_a_bias_balanced_cross_entropy_is_added_with_its_weight() -> None:
    alone = build("bias_con")
    both = build("bias_con", cross_entropy="bias_balanced", ce_weight=0.5)
    batch = batch_for(both)
    both.network.load_state_dict(alone.network.state_dict())
    counts = torch.zeros(2, 3)
    for target, bias in zip(batch.labels.target, batch.labels.bias, strict=True):
        counts[bias, target] += 1
    entropy = classification_losses_by_name()["bias_balanced_cross_entropy"](
        both.own_classifier()(both.network.encoder(batch.views[0])),
        target=batch.labels.target,
        bias=batch.labels.bias,
        confusion=counts / counts.sum(1, keepdim=True),
    )
    torch.testing.assert_close(both(batch)[0], alone(batch)[0] + 0.5 * entropy)
    assert both.own_classifier() is not None
    assert alone.own_classifier() is None


@pytest.mark.parametrize("name", ["sup_con", "cross_entropy"])
def test_an_adversary_learns_the_bias_and_the_encoder_unlearns_it(name: str) -> None:
    plain, against = build(name), build(name, adversary="representation", adversary_weight=0.7)
    batch = batch_for(against)
    for one, other in zip(plain.network.parameters(), against.network.parameters(), strict=True):
        assert torch.equal(one, other)
    plain(batch)[0].backward()
    against(batch)[0].backward()
    features = against.network.encoder(batch.views[0])
    entropy = functional.cross_entropy(against.adversary.layers(features), batch.labels.bias)
    weight = next(against.network.encoder.parameters())
    (gradient,) = torch.autograd.grad(entropy, weight)
    torch.testing.assert_close(weight.grad, next(plain.network.encoder.parameters()).grad - 0.7 * gradient)
    assert all(one.grad.abs().sum() > 0 for one in against.adversary.parameters())


def test_an_adversary_of_the_classifier_stage_acts_in_the_last_epochs() -> None:
    method = build("sup_con", adversary="classifier", classifier_epochs=2)
    batch = batch_for(method)
    method.begin_epoch(3, 5)
    assert method.own_classifier() is None
    plain = build("sup_con")
    assert method(batch)[0] == plain(batch)[0]
    method.begin_epoch(4, 5)
    assert method.own_classifier() is not None
    features = method.network.encoder(batch.views[0])
    entropy = functional.cross_entropy(method.own_classifier()(features), batch.labels.target)
    adversary = functional.cross_entropy(method.adversary.layers(features), batch.labels.bias)
    torch.testing.assert_close(method(batch)[0], entropy + adversary)


def test_where_the_bias_is_unknown_the_loss_is_sup_con() -> None:
    method = build("fair_sup_con", bias_source="some_labels", unknown_bias="sup_con")
    whole = batch_for(method)
    some = torch.where(whole.index < 5, whole.labels.bias, UNKNOWN_LABEL)
    value = method(Batch(whole.views, BatchLabels(whole.labels.target, some), whole.index))[0]
    rows = functional.normalize(method.network.encoder(whole.views[0]), dim=1)[None]
    target = whole.labels.target
    told = losses_by_name()["fair_sup_con"](rows[:, :5], target=target[:5], bias=some[:5])
    rest = losses_by_name()["sup_con"](rows[:, 5:], target=target[5:], temperature=0.1)
    torch.testing.assert_close(value, (5 * told + 7 * rest) / 12)


def test_without_the_target_no_part_of_the_loss_sees_classes() -> None:
    method = build("fair_sup_con", use_target=False, bias_source="some_labels", unknown_bias="sup_con")
    whole = batch_for(method)
    some = torch.where(whole.index < 5, whole.labels.bias, UNKNOWN_LABEL)
    values = {
        method(Batch(whole.views, BatchLabels(target, some), whole.index))[0].item()
        for target in (whole.labels.target, 2 - whole.labels.target, whole.index % 2)
    }
    assert len(values) == 1


def test_without_the_target_there_are_two_views() -> None:
    method = build("sup_con", use_target=False)
    assert method.views == 2
    assert method(batch_for(method))[0] > 0


def test_an_adversary_needs_labels_not_a_model() -> None:
    given = {"name": "cross_entropy", "regulariser": "fair_kl", "adversary": "representation"}
    assert methods.method_knobs(given)["bias_source"].type == Literal["labels", "some_labels", "early_layers"]
    assert methods.method_knobs({"name": "cross_entropy"})["adversary"].type == Literal["none", "representation"]


def test_a_batch_without_a_class_has_a_finite_cross_entropy() -> None:
    method = build("cross_entropy")
    batch = batch_for(method)
    assert method(Batch(batch.views, BatchLabels(torch.full((12,), UNKNOWN_LABEL)), batch.index))[0] == 0


def test_the_condition_of_hard_negatives_is_the_representation() -> None:
    method = build("hard_negative_cclk", head="mlp")
    batch = batch_for(method)
    features, embeddings = (part.unflatten(0, (2, 12)) for part in method.network(batch.views.flatten(0, 1)))
    expected = losses_by_name()["hard_negative_cclk"](functional.normalize(embeddings, dim=2), condition=features)
    torch.testing.assert_close(method(batch)[0], expected)


def test_clusters_of_the_condition_stand_in_for_classes() -> None:
    method = build("fair_info_nce", clusters=2)
    batch = batch_for(method)
    near = torch.cdist(batch.labels.condition, batch.labels.condition)
    ids = method.inputs.cluster_of.values
    assert ids.unique().tolist() == [0, 1]
    same = ids[:, None] == ids[None]
    assert near[same].mean() < near[~same].mean()
    views = functional.normalize(method.network(batch.views.flatten(0, 1))[1], dim=1).unflatten(0, (2, 12))
    torch.testing.assert_close(method(batch)[0], losses_by_name()["fair_info_nce"](views, bias=ids))


def test_soft_con_with_labels_is_bias_con_up_to_its_mean() -> None:
    """One-hot bias features: weight 1 for another bias, 0 for the same."""
    method = build("soft_con")
    batch = batch_for(method)
    rows = functional.normalize(method.network.encoder(batch.views[0]), dim=1)[None]
    expected = losses_by_name()["bias_con"](rows, target=batch.labels.target, bias=batch.labels.bias)
    torch.testing.assert_close(method(batch)[0], expected)


def test_the_keys_of_a_method_are_those_that_have_an_effect() -> None:
    alone = methods.method_knobs({"name": "eps_sup_info_nce"})
    assert {"alpha", "temperature", "epsilon", "views", "use_target", "regulariser", "adversary"} <= set(alone)
    off = {"lambda", "variant", "tau_plus", "ce_weight", "adversary_weight", "known_bias", "bias_source", "positives"}
    assert not off & set(alone)
    given = {"regulariser": "fair_kl", "adversary": "classifier", "cross_entropy": "plain", "bias_source": "labels"}
    every = methods.method_knobs({"name": "eps_sup_info_nce", **given})
    assert {*alone, "lambda", "variant", "ce_weight", "adversary_weight", "classifier_epochs"} <= set(every)
    some = methods.method_knobs({"name": "fair_sup_con", "bias_source": "some_labels"})
    assert {"known_bias", "unknown_bias", "bias_epochs"} <= set(some)


@pytest.mark.parametrize("name", CONTRASTIVE)
def test_classes_can_be_left_out_where_a_loss_of_one_view_can_do_without(name: str) -> None:
    optional = {"eps_sup_con", "eps_sup_info_nce", "fair_sup_con", "sup_con", "sup_con_in"}
    assert ("use_target" in methods.method_knobs({"name": name})) == (name in optional)


def lacking(name: str, facts: Facts = PLAIN, **given: object) -> list[str]:
    return [key for key, _ in methods.unmet_needs(section(name, **given), facts)]


def test_what_a_method_needs_is_said_by_the_key_that_asks_for_it() -> None:
    assert lacking("eps_sup_info_nce") == []
    assert lacking("eps_sup_info_nce", regulariser="fair_kl") == ["regulariser"]
    assert lacking("eps_sup_info_nce", IMAGES, regulariser="fair_kl", bias_source="model") == []
    assert lacking("cross_entropy", IMAGES, regulariser="fair_kl", bias_source="model") == []
    assert lacking("soft_con", bias_source="model") == ["bias_field"]
    assert lacking("cross_entropy", adversary="representation") == ["adversary"]
    assert lacking("sup_con", cross_entropy="bias_balanced") == ["cross_entropy"]
    assert lacking("soft_con") == lacking("fair_sup_con") == lacking("bias_con") == ["name"]
    assert lacking("soft_con", IMAGES, bias_source="model") == []
    assert lacking("fair_cclk") == lacking("fair_info_nce") == ["name"]
    assert lacking("fair_cclk", Facts(3, None, (5,), condition=2)) == lacking("hard_negative_cclk") == []
    assert lacking("fair_sup_con", FACTS) == []


def test_losses_that_pair_views_need_two_that_differ() -> None:
    asks = {name: methods.method_needs({"name": name}).views_key for name in CONTRASTIVE}
    assert {name for name, key in asks.items() if key} == {name for name in CONTRASTIVE if needs_two_views(name)}


def test_what_looks_at_classes_is_not_for_samples_without() -> None:
    some = Facts(classes=3, bias_classes=2, shape=(5,), unlabelled=True)
    for name in ("sup_con", "cross_entropy", "just_train_twice", "learning_from_failure", "group_dro"):
        assert "name" in lacking(name, some)
    for name in ("info_nce", "debiased_info_nce", "wcl", "fair_cclk"):
        assert lacking(name, some) == []
    assert lacking("sup_con", some, use_target=False, views=2) == []
    assert lacking("info_nce", some, regulariser="fair_kl") == ["regulariser"]


def test_bias_labels_of_other_splits_are_no_use_in_training() -> None:
    only_test = Facts(classes=3, bias_classes=2, shape=(5,), bias_splits=("test",))
    assert lacking("fair_sup_con", only_test) == ["name"]
    assert lacking("sup_con", only_test) == []


@pytest.mark.parametrize(
    ("key", "told"),
    [
        *((key, "Allowed here: name, ") for key in ("tau_plus", "bias", "kernel")),
        ("lambda_", r"Did you mean 'method\.lambda'\?"),
        ("target", r"Did you mean 'method\.use_target'\?"),
        ("ce_weight", r"it comes with method\.cross_entropy: plain or bias_balanced"),
    ],
)
def test_what_is_no_key_of_a_method_is_refused(key: str, told: str) -> None:
    with pytest.raises(UserError, match=rf"method\.{key}: unknown key[.:] .*{told}"):
        quickstart(f"method.{key}=1")
