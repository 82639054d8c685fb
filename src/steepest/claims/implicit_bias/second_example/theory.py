"""When a neuron meets the second of two examples."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.second_example.experiment import Setting, one_sided
from steepest.nn.types import Values


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
