"""Permutation tests of the difference of a metric between two groups: valid for any metric, exact where possible.

``run.permutation_test`` is the one call; ``pairs.all_pairs`` makes it for every pair of groups,
``correlation.correlation_test`` for a continuous attribute, ``many_tables.table_p`` for the tables of a simulation, and
``power`` says how many rows are needed. What goes in is ``outcomes.Predictions`` or ``outcomes.Counts``, what comes
out ``result.PermutationTest``.

Source: DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal 2020, "Evaluating fairness using permutation tests".
"""
