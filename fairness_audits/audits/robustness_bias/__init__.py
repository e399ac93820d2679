"""Robustness bias: is one group of points closer to the decision boundary than the others?

- ``core`` turns distances and groups into sigma, areas, curves, intervals and p-values. ``measures`` defines groups,
  I_P(tau) and sigma(P), and ``significance`` its intervals and the test behind "significantly closer". Distances can
  come from any source: exact, from an attack, or from a certificate.
- ``distances`` makes the attacks. A user's audit finds the distances of images in ``image_audit`` and of the rows of a
  table in ``table_audit``, and ``result`` writes the sentences. The audits of the studies are the plug-ins
  ``robustness_bias`` for image networks and ``tabular_robustness``.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""
