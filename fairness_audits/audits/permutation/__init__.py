"""Permutation tests of the difference of a metric between two groups: valid for any metric, exact where possible.

- One test: ``run.permutation_test`` makes it of ``outcomes.Predictions`` or ``outcomes.Counts`` and gives a
  ``run.PermutationTest``; ``pairs.largest_t`` makes it of every pair of groups, ``correlation.correlation_test`` for
  a continuous attribute; ``power.sample_size`` says how many rows are needed.
- Inside it: ``metrics``, ``exact`` where the law is enumerated, ``resamplers`` (of counts in ``draws``, of rows in
  ``rows``) where it is drawn, ``monte_carlo`` for what is concluded.
- Audits: ``permutation`` (every metric, on a classifier's predictions), ``thresholds``, ``sample_size``, ``auc``.

Source: DiCiccio, Vasudevan, Basu, Kenthapadi and Agarwal 2020, "Evaluating fairness using permutation tests".
"""
