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
from steepest.claims.bayes_and_transfer.bayesian_deep_linear.slices import draw_first_layer

Measured = dict[str, tuple[str, np.ndarray]]  # axes and values, by name
KINDS = ("Gaussian", "digits")  # of the data of the Gibbs chains

PRIOR_DRAWS = 400
"""Networks of the prior for each chain."""


class Setting(NamedTuple):
    """Noise-free data.

    Attributes:
        slices: Gaussian, one for each network that is sampled by slices.
        gibbs: of the Gibbs chains: Gaussian of every size, then digits of every size.
    """

    slices: tuple[Data, ...]
    gibbs: tuple[Data, ...]


def draw_setting(
    key: kit.Key,
    inputs: int,
    points: int,
    sizes: Sequence[float],
    gibbs_sizes: Sequence[float],
) -> Setting:
    """Draw Gaussian data and digits, and scale each to the sizes that are asked for."""
    rng = kit.numpy_generator(key)
    gaussian = draw_gaussian(inputs, points, rng)
    images = draw_digits(inputs, points, rng)
    return Setting(
        tuple(data_of_size(*gaussian, size) for size in sizes),
        tuple(data_of_size(*kind, size) for kind in (gaussian, images) for size in gibbs_sizes),
    )


def read_rows(rows: kit.Values, data: Sequence[Data], rng: np.random.Generator) -> Measured:
    """Draw the first layers of networks sampled by slices, and read s and θ off the products.

    Args:
        rows: product rows, ``(networks, chains, records, n)``.
        data: of each network.
        rng: of the first layers.
    """
    first_layers = [
        draw_first_layer(row, data_set, rng) for row, data_set in zip(rows, data, strict=True)
    ]
    scales = (rows**2).sum(-1)
    square = np.stack([draws.square for draws in first_layers])
    along = np.stack([draws.along.mean(-1) for draws in first_layers])
    residual = np.stack([draws.residual.max(-1) for draws in first_layers])
    return {
        "first_scales": ("chain record", scales[0]),
        "time": ("network", np.array([correlation_time(scale) for scale in scales])),
        "perp": ("network chain", square.mean(-1)),
        "spread": ("network chain", spread_by_chain(square)),
        "along": ("network chain", along / np.sqrt(square.mean((1, 2)))[:, None]),
        "residual": ("network chain", residual),
    }


def sample_by_gibbs(
    data: Sequence[Data],
    widths: Sequence[int],
    *,
    chains: int,
    sweeps: int,
    burn: int,
    rng: np.random.Generator,
) -> Measured:
    """Sample whole networks, and read s and θ off their products.

    Args:
        data: of every kind and size, the sizes of one kind side by side.
        widths: of the hidden layers.
        chains: for each data.
        sweeps: of each chain.
        burn: sweeps that are not recorded.
        rng: of the chains.
    """
    chain = gibbs_over_layers(data, widths, chains, sweeps, rng)
    shape = (len(KINDS), len(data) // len(KINDS), chains, -1)
    scale = chain.scale[..., burn:].reshape(shape)
    square = chain.square[..., burn:].reshape(shape)
    times = [[correlation_time(series) for series in of_kind] for of_kind in scale]
    dims = "kind gibbs_size gibbs_chain"
    return {
        "gibbs_time": ("kind gibbs_size", np.array(times)),
        "gibbs_scale": (dims, scale.mean(-1)),
        "gibbs_perp": (dims, square.mean(-1)),
        "gibbs_spread": (dims, spread_by_chain(square)),
        "gibbs_residual": (dims, chain.residual.reshape(shape).max(-1)),
    }


def spread_by_chain(square: kit.Values) -> kit.Values:
    """Return E‖θ_⊥‖⁴/(E‖θ_⊥‖²)² as one linearized value a chain, whose mean is the ratio over all chains.

    Args:
        square: ‖θ_⊥‖², shape ``(..., chains, records)``.
    """
    second = square.mean(-1)
    fourth = (square**2).mean(-1)
    mean = second.mean(-1, keepdims=True)
    all_of_them = fourth.mean(-1, keepdims=True)
    ratio = all_of_them / mean**2
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
    """Networks that never saw the data, each ``(chains, draws)``.

    Attributes:
        scale: s.
        square: ‖θ_⊥‖².
    """

    scale: kit.Values
    square: kit.Values


def untaught_networks(
    widths: Sequence[int], inputs: int, off: int, chains: int, rng: np.random.Generator
) -> Untaught:
    """Draw networks from their prior by explicit matrices; ``off`` of the ``inputs`` directions are off the data."""
    row = np.ones((chains, PRIOR_DRAWS, 1, 1))
    for fan_in in reversed(widths):
        matrix = rng.standard_normal((chains, PRIOR_DRAWS, row.shape[-1], fan_in))
        row = row @ matrix / np.sqrt(fan_in)
    last = rng.standard_normal((chains, PRIOR_DRAWS, row.shape[-1], off))
    return Untaught((row**2).sum((2, 3)), ((row @ last) ** 2).sum((2, 3)) / inputs)


def read_untaught(
    architectures: Sequence[Sequence[int]],
    gibbs_widths: Sequence[int],
    inputs: int,
    off: int,
    rng: np.random.Generator,
    *,
    chains: int,
    gibbs_chains: int,
) -> Measured:
    """Read the same moments off networks that never saw the data, of every architecture and of the Gibbs chains'."""
    networks = [untaught_networks(widths, inputs, off, chains, rng) for widths in architectures]
    square = np.stack([draws.square for draws in networks])
    of_gibbs = untaught_networks(gibbs_widths, inputs, off, gibbs_chains, rng)
    return {
        "prior_perp": ("network chain", square.mean(-1)),
        "prior_spread": ("network chain", spread_by_chain(square)),
        "prior_gibbs_scale": ("gibbs_chain", of_gibbs.scale.mean(-1)),
        "prior_gibbs_perp": ("gibbs_chain", of_gibbs.square.mean(-1)),
        "prior_gibbs_spread": ("gibbs_chain", spread_by_chain(of_gibbs.square)),
    }


def measure_evidence(
    layers: Sequence[int],
    points: int,
    size: float,
    *,
    groups: int,
    networks: int,
    rng: np.random.Generator,
) -> kit.Values:
    """Return Z(L)/Z(0) of networks whose width is P, from networks of the prior, ``(groups, layers)``."""
    scales = prior_scales(points, max(layers), groups, networks, rng)
    chosen = np.array(layers) - 1
    return evidence_ratios(scales[..., chosen], points, size)


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
    logs = -points / 2 * (np.log(scales) + size / scales - size)
    return np.exp(logs).mean(1)
