"""Where neurons with biases turn to."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import lsq_linear

from steepest import kit
from steepest.claims.implicit_bias.alignment_with_bias.experiment import Setting
from steepest.nn.types import Values


def bordered_targets(
    setting: Setting, constants: Sequence[float], bounds: tuple[float, float] = (0.0, 1.0)
) -> Values:
    """Return where neurons turn to if examples of length one have a constant as a further coordinate.

    While losses are flat a neuron of the positive class climbs ``Σ_+ σ(⟨w, x_i⟩) − Σ_− σ(⟨w, x_j⟩)`` over directions.
    Where it sees all of its class that is ``⟨x_+, w⟩`` less a convex function, with one maximum: the shortest of all
    ``x_+ − Σ_− α_j x_j`` with α_j in [0, 1]. It is x_+ where ⟨x_+, x_j⟩ ≤ 0 for all j.

    Args:
        setting: data.
        constants: of the further coordinate, c.
        bounds: of the α_j.

    Returns:
        of length one, positive class first, shape ``(seeds, constants, 2, d + 1)``.
    """
    x = setting.x / np.linalg.norm(setting.x, axis=-1, keepdims=True)
    targets = np.empty((len(x), len(constants), 2, x.shape[2] + 1))
    for seed, at, place in np.ndindex(targets.shape[:3]):
        mine = setting.y[seed] == (1, -1)[place]
        bordered = np.pad(x[seed], ((0, 0), (0, 1)), constant_values=constants[at])
        total = bordered[mine].sum(0)
        against = bordered[~mine].T
        # total − Σ α_j x_j of least length: least squares with bounds on α
        shortest = total - against @ lsq_linear(against, total, bounds, method="bvls").x
        targets[seed, at, place] = shortest / np.linalg.norm(shortest)
    return targets


def other_bordered(setting: Setting, constants: Sequence[float]) -> list[kit.Rival]:
    """Return other laws of where neurons turn to with a constant as a further coordinate."""
    dims = "seed constant class bordered"
    sums = bordered_targets(setting, constants, (0.0, 1e-9))
    counts = np.stack([(setting.y > 0).sum(1), (setting.y < 0).sum(1)], 1)  # (seeds, classes)
    share = sums[..., -1:] / counts[:, None, :, None]
    flat = np.concatenate([sums[..., :-1], share], -1)
    return [
        kit.rival(
            "the sums of the classes, whatever the constant",
            "biases are weights of a constant",
            wider_target=(dims, sums),
        ),
        kit.rival(
            "(x_±, c) in place of (x_±, n_± c)",
            "one coordinate of a neuron is its bias",
            wider_target=(dims, flat / np.linalg.norm(flat, axis=-1, keepdims=True)),
        ),
        kit.rival(
            "x_+ − x_−",
            "all examples that a neuron could see pull at it",
            id="whole_pull",
            wider_target=(dims, bordered_targets(setting, constants, (1.0 - 1e-9, 1.0))),
        ),
    ]
