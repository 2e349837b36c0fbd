"""From how many configurations the best of a study was chosen, as its arm says."""

from study.ranking import Results


def test_the_best_of_a_study_knows_from_how_many_it_was_chosen(spec, frozen):
    baseline, best = Results(spec, frozen).baseline_and_best_arms
    assert (baseline.n_candidates, best.n_candidates) == (1, 2)
    assert best.metric_by_seed("test/accuracy") == {1: 0.68, 2: 0.70, 3: 0.72}


def test_before_all_are_confirmed_fresh_seeds_had_no_part_in_the_choice(spec, writer):
    study = writer()
    study.trial("baseline", [0.5])
    for alpha, value in ((0.1, 0.7), (0.2, 0.6)):
        study.trial("search", [value], params={"method.alpha": alpha})
    study.trial("confirm", [0.6], seed=1, repeats=1)
    assert Results(spec, study.record()).baseline_and_best_arms[1].n_candidates == 1


def test_without_fresh_seeds_it_was_chosen_among_all_that_ran(spec, writer):
    study = writer()
    study.trial("baseline", [0.5])
    study.trial("search", [0.7])
    study.trial("search", [0.2], state="pruned")
    study.trial("search", [], state="failed")
    assert Results(spec, study.record()).baseline_and_best_arms[1].n_candidates == 2
