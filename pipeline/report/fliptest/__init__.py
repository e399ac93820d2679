"""Tables and figures of Black, Yeom and Fredrikson (FAT* 2020)."""

COLUMNS = (
    "direction source target flipset feature alpha attribute transport both split given_label point correlation "
    "dimension context depth part"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
ARRAYS = {
    "*/fliptest+*": "feature_names units",
    "hiring/*/given/*+wgan@*": "decision* features features_reverse images target_features",
    "ssl/*/given/* ssl_proxy/*": "decision* features",
    "law/*/logistic/*+counterfactual@* law/*/logistic/*+wgan@*": "decision* features",
    "law/*/linear_regression/*": "decision* score score_image target_score",
    "law/logistic ssl/linear_regression": "coef",
}
"""Arrays that the artefacts read, by audit or classifier, see :func:`pipeline.report.registry.arrays`."""
