"""The fifth study: whether the audits of the four papers agree on the same models."""

COLUMNS = (
    "alpha delta metric metric_split regularization step_size steps attribute bootstraps direction feature "
    "flipset permutations source target transport split draws test threshold distance level "
    "effect metric_rows points train_fraction trainings first_repetition folds pool band measure other error "
    "relative_rows delta_over_truth"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
