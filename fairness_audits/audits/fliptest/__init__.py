"""Who is treated differently from their counterpart in the other group, and in which features the two differ.

- Audits: ``fliptest``; ``map_quality`` and ``map_stability`` of the maps by themselves; ``subgroups``, FairTest's
  search, for comparison.
- ``flipsets.Flipsets`` compares two vectors of decisions (Definition 1), also between groups that are alike.
  ``transparency.transparency_report`` says in which features a flipset's members differ from their counterparts
  (Definition 2), with a word for how to read each line; ``intervals`` has the intervals, of one map and of several.

Counterparts may come from any map, a causal model, or pairs of real people.

Source: Black, Yeom and Fredrikson 2020, "FlipTest: fairness testing via optimal transport".
"""
