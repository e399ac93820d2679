"""Is one group of points closer to the decision boundary than the others? Measures of distances, however obtained.

``lengths.counted`` turns distances into what the shares are of; ``measures`` has I_P(tau), RB(P, tau) and sigma(P);
``intervals`` their error; ``significance`` the test behind "significantly closer"; ``partitions`` what the groups are;
``agreement`` how far two measures of the same groups agree.

Nothing here knows where the distances come from: exact, an attack's, or a certificate's. Arrays in, arrays out.

Source: Nanda, Dooley, Singla, Feizi and Dickerson 2021, "Fairness through robustness: investigating robustness
disparity in deep learning".
"""
