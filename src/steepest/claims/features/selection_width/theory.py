"""Which neurons come to see an example of their own class, and how often networks have such neurons of both signs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steepest.claims.features.selection_width.experiment import Pairs, Sets

TURN = 0.03
"""Step of the direction equations."""
HORIZON = 30.0
"""Time after which no direction sees anything new."""


def share_living_on_pairs(mus: ArrayLike) -> NDArray:
    r"""Return the share of neurons that live on two examples of opposite classes at the angle cos⁻¹(−μ).

    Half of all directions see their own example. Of those that see only the other, a wedge of the angle arcsin μ is
    turned to its own: :math:`p = \tfrac12 + \arcsin(\mu)/2\pi`.
    """
    return 0.5 + np.arcsin(mus) / (2 * np.pi)


def share_that_learns(p: ArrayLike, widths: Sequence[int]) -> NDArray:
    """Return how often living neurons of both signs are among h, each drawn with probability p/2: ``(…, widths)``."""
    h = np.asarray(widths)
    p = np.asarray(p)[..., None]
    # one less the chances of no positive and of no negative one, plus the chance of neither
    return 1 - 2 * (1 - p / 2) ** h + (1 - p) ** h


def living_on_pairs(pairs: Pairs) -> NDArray:
    """Return which neurons live on two examples, by the rule in the limit ε → 0, shape ``(draws, mus, h)``.

    A neuron that sees only the other example is pushed off it, along it. What is left of the neuron then is its part
    orthogonal to the other example, and that sees the neuron's own or does not.
    """
    with_own, other = products_of_pairs(pairs)
    cosine = (pairs.x[:, 0] * pairs.x[:, 1]).sum(-1)[:, None]
    # w − ⟨w, x'⟩x' meets the own example x with ⟨w, x⟩ − ⟨x, x'⟩⟨w, x'⟩, as ‖x'‖ = 1
    return (with_own > 0) | ((other > 0) & (with_own - cosine * other > 0))


def products_of_pairs(pairs: Pairs) -> tuple[NDArray, NDArray]:
    """Return ⟨w, x⟩ for the example of a neuron's own class, and for the other: ``(draws, mus, h)`` each."""
    products = np.einsum("tmhd,mnd->ntmhd", pairs.start.w, pairs.x).sum(-1)
    positive = pairs.start.v > 0
    return np.where(positive, products[0], products[1]), np.where(
        positive, products[1], products[0]
    )


def living_on_sets(sets: Sets) -> NDArray:
    """Return which neurons come to see their own class, each turning alone, shape ``(seeds, starts, h)``.

    ``u' = (I − u uᵀ) s Σ_i y_i x_i 1[⟨u, x_i⟩ > 0]``, s the sign of the output weight: the limit ε → 0, by Euler's
    steps. A neuron that sees its own class once sees it for ever.
    """
    seeds = len(sets.x)
    dimension = sets.x.shape[-1]
    u = sets.start.w.reshape(seeds, -1, dimension)
    sign = np.sign(sets.start.v).reshape(seeds, -1, 1)
    # pulls over Σ‖x_i‖ are of length one at most, so that TURN bounds the angle of a step
    longest = np.linalg.norm(sets.x, axis=-1).sum(-1)[:, None, None]
    pull_of = sets.y[..., None] * sets.x / longest
    across = np.swapaxes(sets.x, -1, -2)
    same_class = sign * sets.y[:, None, :] > 0
    lives = np.zeros(u.shape[:-1], bool)
    for _ in range(int(HORIZON / TURN)):
        # in place of the projection I − u uᵀ, to first order in the step
        u = u / np.linalg.norm(u, axis=-1, keepdims=True)
        gates = u @ across > 0
        lives |= (gates & same_class).any(-1)
        u = u + TURN * sign * (gates @ pull_of)
    return lives.reshape(sets.start.v.shape)


def both_signs_live(lives: NDArray, v: ArrayLike, widths: Sequence[int]) -> NDArray:
    """Return whether living neurons of both signs are among the first h, ``(…, widths)``."""
    positive = lives & (np.asarray(v) > 0)
    negative = lives & (np.asarray(v) < 0)
    both = [positive[..., :h].any(-1) & negative[..., :h].any(-1) for h in widths]
    return np.stack(both, -1)
