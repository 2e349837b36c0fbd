"""Which seeds each stage trains on."""

from hypothesis import given
from hypothesis import strategies as st

from study.spec.schema import ConfirmOptions
from study.spec.stage_seeds import ablation_seeds, confirm_seeds, final_seeds, search_seeds


@given(
    first=st.integers(0, 9),
    replicates=st.one_of(st.integers(1, 5), st.lists(st.integers(0, 9), min_size=1)),
    plan=st.builds(ConfirmOptions, top=st.integers(0, 2), seeds=st.integers(1, 4), rules=st.booleans()),
    folds=st.one_of(st.none(), st.integers(2, 4)),
    count=st.one_of(st.none(), st.integers(1, 7)),
)
def test_no_stage_has_a_seed_that_one_before_it_chose_by(first, replicates, plan, folds, count) -> None:
    searched = search_seeds(first, replicates)
    confirmed = confirm_seeds(searched, plan, folds)
    assert not set(searched) & set(confirmed)
    assert len(confirmed) == (plan.seeds * (folds or 1) if plan.top or plan.rules else 0)
    for chose in (True, False):
        ablated = ablation_seeds(confirmed, chose, None, count)
        assert not set(searched) & set(ablated)
        assert len(ablated) == (count or len(confirmed) or 5)
        assert bool(set(ablated) & set(confirmed)) == (bool(confirmed) and not chose)
        again = ablation_seeds(confirmed, not chose, ablated, 9)
        assert (again.start, len(again)) == (ablated.start, max(len(ablated), 9)), "it keeps its seeds, and gets more"


def test_a_final_training_has_three_seeds_and_a_fitted_model_one() -> None:
    assert list(final_seeds(4, is_fitted=False)) == [4, 5, 6]
    assert list(final_seeds(4, is_fitted=True)) == [4]
