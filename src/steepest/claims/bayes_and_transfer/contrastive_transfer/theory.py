"""What the contrastive bound loses for a small representation, from the covariances of its classes."""

from typing import NamedTuple

import numpy as np

from steepest.measurement.quantities import LOG_TWO, pair_weights
from steepest.nn.types import Values


class Slack(NamedTuple):
    """Parts of the slack (L_un − τ)/(1 − τ) − L_sup to leading order, each a mean of fᵀΣf over 8 log 2.

    Attributes:
        positives: Σ of x's own class, pairs of different classes.
        negatives: Σ of the other class.
        same: of pairs within a class, with their weight τ/(1 − τ).
    """

    positives: float
    negatives: float
    same: float

    @property
    def total(self) -> float:
        """Return the slack."""
        return self.positives + self.negatives + self.same


def leading_slack(features: Values, shares: Values) -> Slack:
    """Return the slack of a small representation, which depends only on its class covariances.

    Given x, v = f(x)ᵀ(f(x⁺) − f(x⁻)) has variance fᵀ(Σ_c + Σ_c')f, and ℓ'' = 1/(4 log 2) at zero. The mean of v
    enters both losses alike, so that what is left is of fourth order in f.

    Args:
        features: shape ``(10, n, k)``.
        shares: of the classes, shape ``(10,)``.
    """
    # fᵀΣ_d f over x of class c, (10, 10)
    forms = np.einsum("cik,dkl,cil->cd", features, _covariances(features), features)
    return _weighted(forms / features.shape[1], shares)


def mean_slack(images: Values, shares: Values, k: int) -> float:
    """Return the mean of the leading slack over random W with entries N(0, 1/k), f = Wᵀx.

    E WWᵀSWWᵀ = (1 + 1/k)S + tr(S) I/k for a covariance S of images.
    """
    covariances = _covariances(images)
    forms = np.einsum("cik,dkl,cil->cd", images, covariances, images) / images.shape[1]
    sizes = (images**2).sum(2).mean(1)
    traces = np.trace(covariances, axis1=1, axis2=2)
    # E fᵀΣf = xᵀ E[WWᵀSWWᵀ] x, with ‖x‖² beside the trace
    return _weighted((1 + 1 / k) * forms + np.outer(sizes, traces) / k, shares).total


def _covariances(features: Values) -> Values:
    """Return Σ_c of each class, ``(10, k, k)``."""
    centred = features - features.mean(1, keepdims=True)
    return np.einsum("cik,cil->ckl", centred, centred) / features.shape[1]


def _weighted(forms: Values, shares: Values) -> Slack:
    """Return the parts from mean forms fᵀΣ_d f over x of class c, shape ``(10, 10)``."""
    pairs = pair_weights(shares)
    # half of ℓ''(0) = 1/(4 log 2)
    unit = 1 / (8 * LOG_TWO)
    diagonal = forms.diagonal()
    weight = pairs.collision / (1 - pairs.collision)
    return Slack(
        float(unit * (pairs.different.sum(1) * diagonal).sum()),
        float(unit * (pairs.different * forms).sum()),
        # x⁺ and x⁻ are of one class: v has the variance 2fᵀΣf
        float(unit * weight * 2 * (pairs.same * diagonal).sum()),
    )
