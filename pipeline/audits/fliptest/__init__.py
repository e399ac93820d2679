"""Who is treated differently from their counterpart in the other group, and in which features the two differ.

``sets.flipsets`` compares two vectors of decisions (Definition 1); ``transparency.transparency_report`` says in which
features a flipset's members differ from their counterparts (Definition 2), with an interval and a p-value for each
line; ``intervals`` and ``significance`` are where those come from, ``over_trials`` makes one interval and one p-value
of those of several maps, and ``standing`` the word for the line: noise, as the whole group, or stands out. ``dealt``
counts the flipsets between groups that are alike; ``marginals`` counts histograms of named groups.

Nothing here knows where the counterparts come from: any map, a causal model, or pairs of real people will do.

Source: Black, Yeom and Fredrikson 2020, "FlipTest: fairness testing via optimal transport".
"""
