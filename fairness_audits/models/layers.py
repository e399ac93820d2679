r"""Linear models and networks of fully connected layers, with the gradient of their loss in closed form.

.. math:: h_0 = x, \qquad h_l = f(h_{l-1} W_l + b_l), \qquad s = h_{L-1} W_L + b_L,

where f is the activation and s are the scores of the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from fairness_audits.values import Array

ACTIVATIONS: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda h: h * (1 - h)),
    "tanh": (np.tanh, lambda h: 1 - h**2),
    "relu": (lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(h.dtype)),
}
"""Activations, and their derivatives as functions of their values."""


@dataclass(frozen=True)
class Layers:
    """``weights`` W_l (d_l, d_{l+1}) and ``biases`` b_l (d_{l+1},) of layers with an ``activation`` between them.

    The last layer has a column for each of K >= 2 classes.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str = "identity"

    def after(self, matrix: Array, shift: Array) -> Layers:
        """Return the layers as functions of z, where x = z ``matrix`` + ``shift``."""
        first = self.weights[0]
        return replace(
            self,
            weights=(matrix @ first, *self.weights[1:]),
            biases=(shift @ first + self.biases[0], *self.biases[1:]),
        )

    def scores(self, x: Array) -> Array:
        """Return the scores (n, K) of points (n, d)."""
        return np.asarray(self._hidden(x)[-1] @ self.weights[-1] + self.biases[-1])

    def loss_and_gradient(self, x: Array, label: Array) -> tuple[Array, Array]:
        """Return the cross-entropy (n,) of the points' labels, exact even if it is tiny, and its gradient (n, d)."""
        hidden = self._hidden(x)
        scores = hidden[-1] @ self.weights[-1] + self.biases[-1]
        places = np.arange(len(x))
        against = scores - scores[places, label][:, None]
        against[places, label] = -np.inf
        most = against.max(axis=1)
        odds = np.exp(against - most[:, None])
        total = odds.sum(axis=1)
        log_odds = most + np.log(total)
        slope = odds * (expit(log_odds) / total)[:, None]
        slope[places, label] = -expit(log_odds)
        gradient = slope @ self.weights[-1].T
        for h, weight in zip(hidden[:0:-1], self.weights[-2::-1], strict=True):
            gradient = (gradient * ACTIVATIONS[self.activation][1](h)) @ weight.T
        return np.logaddexp(0.0, log_odds), gradient

    def _hidden(self, x: Array) -> list[Array]:
        """Return the values h_0, ..., h_{L-1}."""
        hidden = [x]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            hidden.append(ACTIVATIONS[self.activation][0](hidden[-1] @ weight + bias))
        return hidden
