"""Individual fairness: how much a gradient flow under a fair metric raises the loss, with tests and intervals.

``loss_ratio`` runs the audit of a classifier; ``ratio_tests`` has T_n of the loss ratios and of the error-rate ratios;
``loss_ratio_validity`` asks whether the test keeps its level.

Source: Maity, Xue, Yurochkin and Sun 2021, "Statistical inference for individual fairness".
"""
