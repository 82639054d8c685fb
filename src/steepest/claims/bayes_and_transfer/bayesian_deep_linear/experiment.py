"""Posterior and prior networks of bayesian-deep-linear: the data, what is sampled, and what is read off."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.data import (
    Data,
    data_of_size,
    draw_digits,
    draw_gaussian,
)
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.gibbs import gibbs_over_layers

Measured = dict[str, tuple[str, np.ndarray]]  # axes and values, by name
KINDS = ("Gaussian", "digits")  # of data

PRIOR_DRAWS = 100
"""Networks of the prior for each chain."""


def draw_setting(
    key: kit.Key, inputs: int, points: int, sizes: Sequence[float]
) -> tuple[Data, ...]:
    """Draw Gaussian data and digits, each scaled to every size: the sizes of one kind stand side by side."""
    rng = kit.numpy_generator(key)
    kinds = (draw_gaussian(inputs, points, rng), draw_digits(inputs, points, rng))
    return tuple(data_of_size(kind, size) for kind in kinds for size in sizes)


def sample_posterior(
    data: Sequence[Data],
    architectures: Sequence[Sequence[int]],
    *,
    chains: int,
    sweeps: int,
    burn: int,
    rng: np.random.Generator,
) -> Measured:
    """Sample whole networks by Gibbs, and read s and θ off their products.

    Args:
        data: of every kind and size, the sizes of one kind side by side.
        architectures: hidden widths of every network.
        chains: for each data and network.
        sweeps: of each chain.
        burn: sweeps that are not recorded.
        rng: of the chains.
    """
    sampled = [gibbs_over_layers(data, widths, chains, sweeps, rng) for widths in architectures]
    shape = (len(KINDS), len(data) // len(KINDS), len(architectures), chains, -1)
    scale = np.stack([one.scale[..., burn:] for one in sampled], 1).reshape(shape)
    square = np.stack([one.square[..., burn:] for one in sampled], 1).reshape(shape)
    residual = np.stack([one.residual.max(-1) for one in sampled], 1).reshape(shape[:-1])
    apart = np.stack([deviations(layers.outputs[..., burn:], data) for layers in sampled], 1)
    apart = (apart**2).reshape(*shape[:-1], -1)  # of all new inputs and records of a chain
    times = np.array([correlation_time(series) for series in scale.reshape(-1, *scale.shape[-2:])])
    dims = "kind size network"
    return {
        "scale": (f"{dims} chain", scale.mean(-1)),
        "perp": (f"{dims} chain", square.mean(-1)),
        "spread": (f"{dims} chain", spread_by_chain(square)),
        "prediction": (f"{dims} chain", apart.mean(-1)),
        "tails": (f"{dims} chain", spread_by_chain(apart)),
        "residual": (f"{dims} chain", residual),
        "time": (dims, times.reshape(shape[:-2])),
        "first_scales": ("chain record", scale[0, 0, 0]),
    }


def deviations(outputs: kit.Values, data: Sequence[Data]) -> kit.Values:
    """Return (f(x) − θ_∥ᵀx)/‖x_⊥‖ at the new inputs of every data, ``(data, chains, new, records)``."""
    least = np.stack([data_set.interpolant @ data_set.new for data_set in data])
    lengths = np.stack([data_set.new_lengths for data_set in data])
    return (outputs - least[:, None, :, None]) / lengths[:, None, :, None]


def spread_by_chain(square: kit.Values) -> kit.Values:
    """Return E q²/(E q)² as one linearized value a chain, whose mean is the ratio over all chains.

    Args:
        square: q, such as ‖θ_⊥‖², shape ``(..., chains, records)``.
    """
    second = square.mean(-1)
    fourth = (square**2).mean(-1)
    mean = second.mean(-1, keepdims=True)
    all_of_them = fourth.mean(-1, keepdims=True)
    ratio = all_of_them / mean**2
    # delta method: d(F/M²) = dF/M² − 2F dM/M³, with mean zero over chains
    return ratio + (fourth - all_of_them) / mean**2 - 2 * ratio * (second - mean) / mean


def correlation_time(series: kit.Values) -> float:
    """Return 1 + 2 Σ ρ_k of chains, ``(chains, records)``, in records: the sum ends where ρ falls below 0.05."""
    centred = series - series.mean()
    records = series.shape[1]
    variance = (centred**2).mean()
    total = 1.0
    for lag in range(1, records // 2):
        correlation = (centred[:, lag:] * centred[:, :-lag]).mean() / variance
        if correlation < 0.05:
            break
        total += 2 * correlation
    return float(total)


# ------------------------------------------------------------------------------------------------- prior


class Untaught(NamedTuple):
    """Networks that never saw the data, each ``(chains, draws)``, deviations with an axis of new inputs.

    Attributes:
        scale: s.
        square: ‖θ_⊥‖².
        deviation: (f(x) − θ_∥ᵀx)/‖x_⊥‖ at new inputs, as many as directions off the data.
    """

    scale: kit.Values
    square: kit.Values
    deviation: kit.Values


def untaught_networks(
    widths: Sequence[int], inputs: int, off: int, chains: int, rng: np.random.Generator
) -> Untaught:
    """Draw networks from their prior by explicit matrices; ``off`` of the ``inputs`` directions are off the data."""
    row = np.ones((chains, PRIOR_DRAWS, 1, 1))
    for fan_in in reversed(widths):
        matrix = rng.standard_normal((chains, PRIOR_DRAWS, row.shape[-1], fan_in))
        row = row @ matrix / np.sqrt(fan_in)
    last = rng.standard_normal((chains, PRIOR_DRAWS, row.shape[-1], off))
    theta = row @ last / np.sqrt(inputs)
    # x_⊥ of the new inputs is along the axes off the data
    return Untaught((row**2).sum((2, 3)), (theta**2).sum((2, 3)), theta[..., 0, :])


def sample_prior(
    architectures: Sequence[Sequence[int]],
    inputs: int,
    off: int,
    chains: int,
    rng: np.random.Generator,
) -> Measured:
    """Read the same moments off networks of every architecture that never saw the data."""
    networks = [untaught_networks(widths, inputs, off, chains, rng) for widths in architectures]
    square = np.stack([draws.square for draws in networks])
    apart = np.stack([draws.deviation.reshape(chains, -1) ** 2 for draws in networks])
    return {
        "prior_scale": ("network chain", np.stack([draws.scale.mean(-1) for draws in networks])),
        "prior_perp": ("network chain", square.mean(-1)),
        "prior_spread": ("network chain", spread_by_chain(square)),
        "prior_prediction": ("network chain", apart.mean(-1)),
        "prior_tails": ("network chain", spread_by_chain(apart)),
    }


def measure_evidence(
    layers: Sequence[int],
    points: int,
    size: float,
    *,
    groups: int,
    networks: int,
    rng: np.random.Generator,
) -> Measured:
    """Return Z(L)/Z(0) of networks whose width is P, from networks of the prior.

    The same networks also weigh data that are as large as the prior expects, A = 1.
    """
    scales = prior_scales(points, max(layers), groups, networks, rng)
    scales = scales[..., np.array(layers) - 1]
    return {
        "evidence": ("group layers", evidence_ratios(scales, points, size)),
        "expected_evidence": ("group layers", evidence_ratios(scales, points, 1.0)),
    }


def prior_scales(
    width: int, layers: int, groups: int, networks: int, rng: np.random.Generator
) -> kit.Values:
    """Return s = ‖v‖² of networks from their prior by explicit matrices, of every depth up to ``layers``.

    The first k matrices of a network are one of depth k. The shape is ``(groups, networks, layers)``.
    """
    scales = np.empty((groups, networks, layers))
    for scale in scales:
        row = rng.standard_normal((networks, 1, width)) / np.sqrt(width)
        for layer in range(layers):
            scale[:, layer] = (row**2).sum((1, 2))
            matrix = rng.standard_normal((networks, width, width), np.float32)
            row = row @ matrix / np.sqrt(width)
    return scales


def evidence_ratios(scales: kit.Values, points: float, size: float) -> kit.Values:
    """Return Z(L)/Z(0) as means over networks of the prior: E s^(−P/2) e^(−PA/2s + PA/2), ``(groups, layers)``."""
    # log of s^(−P/2) e^(−PA/2s), less its value at s = 1, which is Z(0)'s
    logs = -points / 2 * (np.log(scales) + size / scales - size)
    return np.exp(logs).mean(1)
