"""Is one group of points closer to the decision boundary than the others?

- Audits: ``robustness_bias`` of networks of images, ``tabular_robustness`` of models of tables. ``distances`` makes
  distances by attacks on the points of a network, and they become ``rows``; ``examples`` chooses two points to show.
  ``illustrations`` has the small examples of section 2.
- ``measures`` has what the groups are, I_P(tau) and sigma(P); ``inference`` their error and the test behind
  "significantly closer". These take distances from any source: exact, an attack's, or a certificate's.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""
