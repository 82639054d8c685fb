"""Whether settled directions are stationary for ``ℓ_{2/L}`` under margins of one: what two claims ask of depth L.

On the support of a stationary point the pull ``|Σ_i q_i y_i x_i|`` is proportional to ``size^{2/L − 1}``, the
derivative of ``Σ size^{2/L}``, with one factor for each problem. The support's slope in logarithms, pooled over
problems, tells one depth from the next (Lyu and Li 2020; Gunasekar, Lee, Soudry and Srebro 2018).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from steepest.claim import Check, Control, Observation, exponent

WITHIN = 0.08  # half of 1/6, the least distance between the exponents of three layers and of four


class Settled(NamedTuple):
    """Directions at the end of their flows and which of them have settled.

    Attributes:
        end: the last direction, shape ``(sets, unknowns)``.
        still: whether it turned by less than the limit, shape ``(sets,)``.
    """

    end: Float[np.ndarray, "sets unknowns"]
    still: Bool[np.ndarray, "sets"]


def settled(
    weights: Float[np.ndarray, "sets readings unknowns"], readings: int, limit: float
) -> Settled:
    """Return the last directions and whether each turned by less than the limit over the last readings."""
    direction = unit(weights)
    turned = np.linalg.norm(direction[:, -1] - direction[:, -1 - readings], axis=-1)
    return Settled(direction[:, -1], turned < limit)


def power_on_support(
    id: str,
    predicted: float,
    sizes: Float[np.ndarray, "sets n"],
    pulls: Float[np.ndarray, "sets n"],
    support: Bool[np.ndarray, "sets n"],
    still: Bool[np.ndarray, "sets"],
    label: str,
) -> Check:
    """Check the slope of the pull in the size, in logarithms, pooled over the supports of the settled sets.

    A set with one entry on its support has no slope and is left out; without any other nothing is decided.
    """
    told = still & (support.sum(1) > 1)
    x = [_centred(size[on]) for size, on in zip(sizes[told], support[told], strict=True)]
    y = [_centred(pull[on]) for pull, on in zip(pulls[told], support[told], strict=True)]
    return exponent(
        id,
        predicted,
        np.concatenate([*x, []]),
        np.concatenate([*y, []]),
        WITHIN,
        label=label,
        note=f"{told.sum()} sets with two or more entries, of {still.sum()} settled of {len(still)}",
    )


def equal_multipliers(observed: Observation) -> Control:
    """Return the control with the pull of equal multipliers (``equal_pull``) in place of the flow's (``pull``)."""
    return Control(
        "equal_multipliers",
        observed.replace(pull=observed.quantity("equal_pull")),
        "they are no multipliers of any margin problem",
        "all examples pull alike",
    )


def unit(w: Float[np.ndarray, "... n"]) -> Float[np.ndarray, "... n"]:
    """Return vectors over their ℓ2 norms."""
    return w / np.linalg.norm(w, axis=-1, keepdims=True)


def _centred(sizes: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return sizes over their geometric mean, so that every set has a factor of its own."""
    logs = np.log(np.abs(sizes))
    return np.exp(logs - logs.mean())
