"""Robustness bias: is one group of points closer to the decision boundary than the others?

- A user's audit: ``of_images`` and ``of_rows`` find the distances of images and of the rows of a table, ``result``
  compares the groups by the same inference.
- Audits of the studies: ``robustness_bias`` for image networks, ``tabular_robustness`` for models of tables.
  ``distances`` attacks the points of a network, ``rows`` turns the distances into tables, and ``examples`` chooses two
  points to show.
  ``illustrations`` has the small examples of section 2.
- ``measures`` defines groups, I_P(tau) and sigma(P). ``inference`` computes their error and the test behind
  "significantly closer". Distances can come from any source: exact, from an attack, or from a certificate.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""
