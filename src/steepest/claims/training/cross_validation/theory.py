"""What can be said of new examples from those of training alone.

With A = (K + nδI)⁻¹ and α = Ay the prediction at example i by a fit to all others errs by α_i/A_ii, and 1/A_ii is the
variance v_i that the others leave there, with that of noise, nδ. Examples are exchangeable, so the mean of the squares
is that of the error at a new example, in the mean over training sets.

Generalized cross-validation is the square of the training error over (1 − tr H/n)², with H = KA. Training errors are
nδα and 1 − H_ii = nδA_ii, so it is also the mean of α² over the square of the mean of A_ii. In it α_i = e_i/v_i and
A_ii = 1/v_i. So for the same reason it tends to the mean of (e/v)² at new examples, over the squared mean of 1/v there:
to the risk, where v is the same at all of them.
"""

from typing import NamedTuple

import numpy as np

from steepest.nn.types import Values


class Estimates(NamedTuple):
    """What training sets say of the error on new examples, each in the mean over the sets.

    Attributes:
        left_out: the mean square error at each example by a fit to the others.
        generalized: generalized cross-validation.
        as_expected: the latter if the squared error were ∝ v, as the kernel's Gaussian process expects.
    """

    left_out: float
    generalized: float
    as_expected: float


def estimates(grams: Values, labels: Values, ridge: float) -> Estimates:
    """Return estimates of the risk from Gram matrices ``(sets, n, n)`` and labels ``(sets, n, outputs)``.

    >>> import numpy as np
    >>> estimates(np.eye(2)[None], np.ones((1, 2, 1)), 0.5)[:2]
    (1.0, 1.0)
    """
    n = grams.shape[-1]
    inverses = np.linalg.inv(grams + n * ridge * np.eye(n))
    squares = ((inverses @ labels) ** 2).sum(-1)
    sureness = np.diagonal(inverses, axis1=-2, axis2=-1)  # 1/v
    # means of (α_i/A_ii)², and of α² over the square of the mean of A_ii
    left_out = (squares / sureness**2).mean(-1)
    generalized = squares.mean(-1) / sureness.mean(-1) ** 2
    # with e² = cv the first is c E v and the second c E(1/v)/(E 1/v)² = c/E(1/v)
    spread = sureness.mean(-1) * (1 / sureness).mean(-1)
    return Estimates(
        float(left_out.mean()), float(generalized.mean()), float((left_out / spread).mean())
    )


def folds(gram: Values, y: Values, ridge: float, parts: int) -> float:
    """Return the mean square error at each of some parts by a fit to all others."""
    n = len(gram)
    penalized = gram + n * ridge * np.eye(n)
    places = np.arange(n)
    squares = 0.0
    for part in range(parts):
        out = places % parts == part
        dual = np.linalg.solve(penalized[np.ix_(~out, ~out)], y[~out])
        squares += float(((gram[np.ix_(out, ~out)] @ dual - y[out]) ** 2).sum())
    return squares / n
