"""Is one group of points closer to the decision boundary than the others?

- The audit: ``robustness_bias``. Distances are made by ``attacks`` on the points of a network in ``distances``, and
  become ``rows``; ``examples`` chooses two points to show. ``illustrations`` has the small examples of section 2.
- ``lengths.counted`` turns distances into what the shares are of; ``measures`` has I_P(tau), RB(P, tau) and sigma(P);
  ``intervals`` their error; ``significance`` the test behind "significantly closer"; ``partitions`` what the groups
  are; ``agreement`` how far two measures of the same groups agree. These take distances from any source: exact, an
  attack's, or a certificate's.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""
