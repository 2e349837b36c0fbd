"""What the report says below each figure, in the order in which the page shows them."""

CAPTIONS = {
    "seeds": "Each ring is one seed; the tick is the mean, the line one sample standard deviation to each side.",
    "learning_curves": "Each line is one trial. Confirm trials are left out.",
    "trade_off": "Each mark is one configuration of the search. The front joins those that no other is better than in "
    "both metrics.",
    "worst_group": "Each mark is one configuration of the search.",
    "parameters": "Each mark is one trial of the search, one seed. A trial that was stopped early stands at the value "
    "of its last epoch, which a full budget would have changed. The dashed line is the baseline.",
    "importance": "How much of the metric each searched parameter decides, judged by those of the search's trials at "
    "full budget that have it, of more than 200 by 200 evenly chosen ones: over the whole space (fANOVA, of 32 trees), "
    "and for being among the best tenth (PED-ANOVA). From few trials the shares are rough.",
    "surface": "Each mark is one trial at full budget, each tile the mean of those in it.",
    "parallel": "Each line is one trial at full budget, coloured by its value. On the page, draw along an axis to pick "
    "trials.",
    "progress": "Each mark is one trial of the search, one seed. Only trials at full budget count for the best so far.",
    "bought": "The best value of a configuration at full budget, one seed, when it was known. Left: as the clock says, "
    "pauses included. Right: the time that trials ran, all together. The dashed line is the baseline.",
}

WHICH_MODELS = (
    "Features of the encoder at the last epoch, on the test split (validation where there is none): for the baseline "
    "and the best configuration the first of the fresh seeds. Nothing was chosen by these figures."
)

MODEL_CAPTIONS = {
    "similarities": "All pairs of samples. Where the bias does not matter, the two lines of a panel are one. Besides "
    "the baseline and the best, each other configuration that was confirmed on fresh seeds, and the epochs that "
    "train.keep_epochs names; the FairKL paper's Fig. 5 compares values of epsilon.",
    "groups": "Left: mean cosine of two samples of a group, its compactness. Right: of a sample of the group and one "
    "of another class, lower is better separated. The spread over groups is that of the FSCL paper's Fig. 2: the "
    "smaller, the fairer.",
    "neighbours": "Anchors drawn at random; of the samples of other classes those with the lowest and the highest "
    "cosine, which is below each.",
    "tsne": "Distances between clusters say little. Where the bias does not matter, the colours on the right mix.",
}
