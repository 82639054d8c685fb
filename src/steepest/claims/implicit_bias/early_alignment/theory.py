"""When a neuron meets the second of two examples, how long features of aligned neurons are, and aims with biases."""

from collections.abc import Sequence

import numpy as np
import xarray
from scipy.optimize import lsq_linear

from steepest import kit
from steepest.claims.implicit_bias.early_alignment.experiment import Setting, one_sided
from steepest.nn.types import Values
from steepest.programs import hard_margin


def selection_times(setting: Setting, copies: Values) -> Values:
    """Return when a neuron that sees one of two examples meets the other, shape ``(seeds, h)``; one for all others.

    While it sees x₁ only, ``dw/dt = p v x₁`` with ``v = ‖w‖``, so that ``dθ/dt = −p sin θ``.
    """
    pairs = np.asarray(setting.pairs)
    starts = np.asarray(setting.start.w)
    directions = starts / np.linalg.norm(starts, axis=-1, keepdims=True)
    cosines = np.einsum("shd,sed->seh", directions, pairs)
    mu = (pairs[:, 0] * pairs[:, 1]).sum(-1)[:, None]
    nearer = cosines.max(1)
    farther = cosines.min(1)
    angle = np.arccos(nearer)
    # u = cos θ x₁ + sin θ e with e ⟂ x₁: ⟨e, x₂⟩ from ⟨u, x₂⟩ = μ cos θ + sin θ ⟨e, x₂⟩
    beside = (farther - mu * nearer) / np.sin(angle)
    # ⟨u, x₂⟩ is zero at tan θ = −μ/⟨e, x₂⟩
    meets = np.arctan2(mu, -beside)
    share = np.where(cosines.argmax(1) == 0, (copies == 0).mean(), copies.mean())
    with np.errstate(invalid="ignore", divide="ignore"):
        # dθ/dt = −p sin θ lets log tan(θ/2) fall at the rate p
        times = np.log(np.tan(angle / 2) / np.tan(meets / 2)) / share
    return np.where(one_sided(setting), times, 1.0)


def relative_lengths(x: Values, y: Values, sums: Values) -> Values:
    """Return ⟨x_±, x_i⟩ over its mean in the class of each example, ``(seeds, n)``.

    Args:
        x: examples, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.
        sums: the sum of each class, the positive one first, shape ``(seeds, 2, d)``.
    """
    products = np.einsum("snd,scd->snc", x, sums)
    positive = y > 0
    of_class = np.where(positive, products[..., 0], products[..., 1])
    means = [
        np.where(mine, of_class, 0.0).sum(1, keepdims=True) / mine.sum(1, keepdims=True)
        for mine in (positive, ~positive)
    ]
    return of_class / np.where(positive, *means)


def rivals_of_window(setting: Setting, law: xarray.Dataset) -> list[kit.Rival]:
    """Return other laws of how neurons turn and grow, and of when and how the loss falls."""
    best = [hard_margin(x, y).direction for x, y in zip(setting.x, setting.y, strict=True)]
    on_example = np.einsum("shd,snd->shn", setting.start.w, setting.x) > 0
    same = setting.y[:, None] * setting.start.v[..., None] > 0
    on_own = (on_example & same).any(-1)
    pure = on_own & ~(on_example & ~same).any(-1)
    longest = xarray.DataArray(np.linalg.norm(setting.x, axis=-1).max(1), dims="seed")
    return [
        kit.rival(
            "log ‖w‖² rises at the rate C",
            "norms, and not their squares, grow like exp(Ct)",
            growing=law.growing / 2,
        ),
        kit.rival(
            "C = max‖x_i‖",
            "it is the constant of the source",
            turning=law.turning * 0 + longest,
            growing=2 * (law.growing * 0 + longest),
            delay=law.delay * law.turning.max("class") / longest,
        ),
        kit.rival(
            "both classes turn at the larger rate",
            "it is the constant of the window",
            turning=law.turning.max("class"),
        ),
        kit.rival(
            "the fall comes at the window's end",
            "norms are then still of order √ε",
            delay=law.delay / 2,
        ),
        kit.rival(
            "neurons turn to the maximal margin",
            "that is where linear classifiers end",
            target=("seed class unknown", [(w, -w) for w in best]),
        ),
        kit.rival(
            "all features of a class become equal",
            "alignment is called a proof of neural collapse",
            length=xarray.ones_like(law.length),
        ),
        kit.rival(
            "neurons that start on both classes die",
            "the other class pulls them off all examples; neurons on only that class die",
            alive=pure.sum() / on_own.sum(),
        ),
        kit.rival("the risk falls like 1/t", "the source says so", late_risk=1 / law.late),
    ]


def other_waits(law: xarray.Dataset) -> list[kit.Rival]:
    """Return other laws of the time until neurons see both of two examples."""
    mus = law.mu.values
    # a power of μ in place of the logarithm, from the largest μ on
    logarithm = np.log1p(2 / mus)
    power = lambda order: (mus[-1] / mus) ** order * logarithm[-1] / logarithm
    return [
        kit.rival(
            "neurons see both after a time ∝ 1/√μ",
            "the bound of the paper",
            id="selection_root",
            wait=law.wait * power(0.5),
        ),
        kit.rival(
            "neurons see both after a time ∝ 1/μ",
            "the bound of the talk",
            id="selection_inverse",
            wait=law.wait * power(1.0),
        ),
        kit.rival(
            "the pull of both examples from the start",
            "it is the rate C of the window",
            # ‖(x₁ + x₂)/2‖ = √((1 + μ)/2), in place of the share ½ of one example
            wait=law.wait * 0.5 / np.sqrt((1 + mus) / 2),
        ),
    ]


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
