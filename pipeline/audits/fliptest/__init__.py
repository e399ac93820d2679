"""Who is treated differently from their counterpart in the other group, and in which features the two differ.

- Audits: ``fliptest`` (with its ``rows``); ``map_quality`` and ``map_stability`` of the maps by themselves;
  ``subgroups`` with its ``guided_tree``, FairTest's search, for comparison.
- ``sets.Flipsets`` compares two vectors of decisions (Definition 1), which ``decisions.judged`` makes.
  ``transparency.transparency_report`` says in which features a flipset's members differ from their counterparts
  (Definition 2), with intervals and p-values by ``intervals`` and ``significance``; ``over_trials`` makes one of each
  of those of several maps, and ``standing`` says how to read them: noise, as the whole group, or stands out.
- ``dealt`` counts the flipsets between groups that are alike; ``marginals`` counts histograms of named groups.

Counterparts may come from any map, a causal model, or pairs of real people.

Source: Black, Yeom and Fredrikson 2020, "FlipTest: fairness testing via optimal transport".
"""
