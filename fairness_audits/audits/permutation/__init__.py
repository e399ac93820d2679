"""Permutation tests of the difference of a metric between two groups: valid for any metric, exact where possible.

- One test: ``core.permutation_test`` takes ``outcomes.Predictions`` or ``outcomes.Counts`` and returns a
  ``PermutationTest``; ``pairs.largest_t`` tests every pair of groups; ``correlation.correlation_test`` tests a
  continuous attribute; ``power.sample_size`` computes the number of rows needed; ``samples`` tests many samples at
  once.
- Internals: ``metrics``; ``exact`` for enumerated distributions; ``resamplers`` for random permutations (of counts in
  ``draws``, of rows in ``rows``); ``monte_carlo`` for their p-values; ``intervals``, one function for each estimator,
  and ``doubts``, what widens them.
- The user's audit: ``settings``, ``compute`` (from a table to tests) and ``result``.

Source: DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal 2020, "Evaluating fairness using permutation tests".
"""
