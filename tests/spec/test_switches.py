"""A search over keys that others depend on, and values that only together make sense."""

from helpers import quickstart, refused

PLAIN = ("method.regulariser=none", "search.baseline={}", "search.trials=4")


def space(text: str, *others: str) -> tuple[str, ...]:
    return (*PLAIN, f"search.space={text}", *others)


def test_a_key_that_others_depend_on_brings_them_along() -> None:
    spec = quickstart(
        *space("{method.cross_entropy: {choices: [none, plain]}, method.ce_weight: {low: 0.5, high: 2.0}}")
    )
    without, with_it = list(spec.space.combinations_of_deciding_keys())
    assert "ce_weight" not in spec.trial_document(without)["method"]
    assert spec.trial_document(with_it)["method"]["ce_weight"] == 1.0
    assert spec.trial_document({**with_it, "method.ce_weight": 0.5})["method"]["ce_weight"] == 0.5
    assert [spec.space.applies_to("method.ce_weight", case) for case in (without, with_it)] == [False, True]


def test_one_that_depends_on_another_comes_after_it() -> None:
    unknown = "method.unknown_bias: {choices: [pseudo_labels, sup_con]}"
    text = f"{{{unknown}, method.bias_source: {{choices: [labels, some_labels]}}}}"
    spec = quickstart(*space(text, "method.name=fair_sup_con"))
    assert list(spec.space.domains) == ["method.bias_source", "method.unknown_bias"]
    assert list(spec.space.combinations_of_deciding_keys()) == [
        {"method.bias_source": "labels"},
        {"method.bias_source": "some_labels", "method.unknown_bias": "pseudo_labels"},
        {"method.bias_source": "some_labels", "method.unknown_bias": "sup_con"},
    ]
    forms = [spec.trial_document(case)["method"].keys() for case in spec.space.combinations_of_deciding_keys()]
    assert [{"known_bias", "bias_epochs"} & form for form in forms] == [
        set(),
        {"known_bias", "bias_epochs"},
        {"known_bias"},
    ]


def test_a_value_for_a_key_that_only_some_trials_have_stands_in_the_section() -> None:
    searched = "{method.regulariser: {choices: [none, fair_kl, end]}}"
    spec = quickstart(*space(searched, "method.kld=0.5"))
    found = {
        case["method.regulariser"]: spec.trial_document(case)["method"]
        for case in spec.space.combinations_of_deciding_keys()
    }
    assert found["fair_kl"]["kld"] == 0.5
    assert "kld" not in found["end"]
    assert "kld" not in spec.trial_document({})["method"]
    assert "method.kld: unknown key" in refused(*PLAIN, "search.space={}", "search.trials=1", "method.kld=0.5")
    assert "method.kld: with method.regulariser 'fair_kl': -1 given" in refused(*space(searched, "method.kld=-1"))


def test_a_configuration_that_is_given_may_have_other_keys() -> None:
    given = space(
        "{method.alpha: {low: 0.1, high: 1.0}}", "search.enqueue=[{method.regulariser: end, method.entangling: 2.0}]"
    )
    spec = quickstart(*given)
    assert spec.trial_document(spec.search.enqueue[0])["method"]["entangling"] == 2.0
    wrong = space(
        "{method.alpha: {low: 0.1, high: 1.0}}", "search.enqueue=[{method.regulariser: end, method.kld: 2.0}]"
    )
    assert "search.enqueue.0.method.kld: unknown key" in refused(*wrong)


def test_searched_values_must_go_together_with_the_rest() -> None:
    one_view = "{train.augmentation: {choices: [none, crop_flip]}}"
    given = space(one_view, "method.name=info_nce", "train.augmentation=crop_flip")
    assert "search.space.train.augmentation: 'none' given, method.name 'info_nce' needs views that differ" in refused(
        *given
    )
    warmup = refused(*space("{train.warmup_epochs: {low: 0, high: 500}}"))
    assert "search.space.train.warmup_epochs: 500 given, allowed is at most train.epochs" in warmup


def test_they_must_go_together_with_each_other() -> None:
    """Two views of the same image, only where both are searched values."""
    both = "{method.views: {low: 1, high: 2}, train.augmentation: {choices: [crop_flip, none]}}"
    found = refused(*space(both, "train.augmentation=crop_flip"))
    assert "with method.views 2: 'none' given, method.views 2 needs views that differ" in found
    only = (
        "{method.views: {choices: [1, 2]}, train.augmentation: {choices: [crop_flip, none], when: {method.views: [1]}}}"
    )
    quickstart(*space(only, "train.augmentation=crop_flip"))


def test_a_range_of_whole_numbers_that_may_be_none_is_one_of_whole_numbers() -> None:
    crop = ("method.name=info_nce", "train.augmentation=crop_flip")
    assert quickstart(*space("{train.crop_size: {low: 6, high: 12}}", *crop)).space.integer_keys == {"train.crop_size"}
    quickstart(*space("{train.crop_size: {choices: [6, 8, null]}}", *crop))
    assert "6.5 given" in refused(*space("{train.crop_size: {low: 6.5, high: 12}}", *crop))
