"""Tables and figures of Nanda, Dooley, Singla, Feizi and Dickerson (FAccT 2021)."""

COLUMNS = (
    "attack denominator epoch fold level model partition reason alpha penalised_level training pretrained width "
    "distance second_order indicator tau"
)
"""Columns of the rows of a complete run, besides the first ones of :mod:`pipeline.stages.collect`."""
ARRAYS = {
    "*/robustness_bias": "class superclass digit age gender race",
    "linear/* networks* regularizer/* regularizer_[!v]*": "correct distance_* tried_*",
    "pretrained*": "correct *_smoothing",
    "networks*/cifar10/* networks*/digits/*": "example_*",
    "*=deep_cnn *=deep_cnn_cifar100 *=utk_classifier *=adience_classifier": "step test_accuracy*",
}
"""Arrays that the artefacts read, by audit or classifier, see :func:`pipeline.report.registry.arrays`."""
