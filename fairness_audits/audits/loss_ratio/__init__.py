"""Loss-ratio audit of individual fairness: how much a gradient flow under a fair metric raises the loss.

``loss_ratio`` audits a classifier. ``ratio_tests`` computes T_n of the loss ratios and of the error-rate ratios, with
tests and intervals. ``loss_ratio_validity`` checks whether the test keeps its level.

Source: Maity, Xue, Yurochkin and Sun 2021, "Statistical inference for individual fairness".
"""
