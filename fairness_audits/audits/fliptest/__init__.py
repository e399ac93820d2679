"""FlipTest: whose decision changes under a map to the other group, and in which features people and images differ.

- Audits: ``fliptest``; ``map_quality`` and ``map_stability`` of the maps alone; ``subgroups``, the FairTest search, as
  a comparison.
- ``core.flip_test`` is the measurement, which the audit of a user's model and the studies share. ``core.noise_floor``
  counts flips between groups that are alike.
- ``flipsets.Flipsets`` compares two vectors of decisions (Definition 1). ``transparency.transparency_report`` ranks the
  features in which the members of a flipset differ from their counterparts (Definition 2) and says how to read each
  line. ``intervals`` computes the intervals for one map and for several maps.

Counterparts come from any map, from a causal model, or from pairs of real people.

Source: Black, Yeom and Fredrikson 2020, "FlipTest: fairness testing via optimal transport".
"""
