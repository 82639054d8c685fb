"""How far the weights of attention are from equal, to first order in its logits.

Queries and keys of one head are W_Q z_p and W_K z_q, with d rows of independent normals of variance 1/C: over draws a
logit L_pq = (β/d) Σ_j Q_pj K_qj has mean zero and Cov(L_pq, L_pq') = β²K_pp K_qq'/d, K = zzᵀ/C. Softmax gives each
position 1/P and (L_pq − mean_q L_pq)/P, so that what p reads differs from the mean over positions, in the mean square
of a channel of values, by β²K_pp tr(HKHK)/(P²d), H = I − 11ᵀ/P.
"""

import numpy as np

from steepest.nn.types import Values


def covariance(z: Values) -> Values:
    """Return K of inputs ``(…, P, C)``, ``(…, P, P)``."""
    return z @ z.swapaxes(-2, -1) / z.shape[-1]


def centred(k: Values) -> Values:
    """Return HKH.

    >>> centred(np.eye(2)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    rows = k - k.mean(-1, keepdims=True)
    return rows - rows.mean(-2, keepdims=True)


def distance(k: Values, sharpness: float, width: Values) -> Values:
    """Return the mean square distance of what a position reads from the mean over positions, averaged over positions.

    Args:
        k: K of one input, ``(P, P)``.
        sharpness: β.
        width: d, ``(…,)``.
    """
    positions = len(k)
    spread = np.trace(centred(k) @ k)
    return sharpness**2 * np.trace(k) / positions * spread / (positions**2 * np.asarray(width))
