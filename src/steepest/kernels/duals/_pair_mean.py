"""Means over a Gaussian pair, ``E f(u) g(v)``, to full precision and with an error bound."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from steepest.nn.activations import Elementwise, Estimate, determinant, panel_rule

Triple = Float[Array, "3"]
REACH = 12.0  # standard deviations; the density is 2e-32 there
# Distances from a kink, in units of z, at which panels are cut: the panels grow with the distance, so that features of
# unit size are resolved next to the kink at any variance. The smaller distances resolve singularities like |z|^{3/2}.
DISTANCES = np.concatenate([[0.0], 4.0 ** np.arange(-7, 6)])
USUAL = DISTANCES[[0, *range(7, 14)]]  # from 1/4
BASE = np.linspace(-REACH, REACH, 13)
TURNS = np.array([0.0, 0.25, 1.0, 2.0, 4.0, 8.0])


def pair_mean(
    f: Elementwise,
    g: Elementwise,
    triple: Triple,
    kinks: tuple[float, ...] = (),
    *,
    level: int = 0,
    order: int = 16,
    root: Float[Array, ""] | None = None,
) -> Estimate:
    """Integrate a product over a Gaussian pair, ``E f(u) g(v)`` with ``(u, v) ~ N(0, K)``, given u first.

    ``u = √K_αα x`` and ``v = √K_ββ (ρ x + √(1−ρ²) y)`` with x, y independent. Both integrals are Gauss–Legendre over
    panels that are cut at the kinks and at 0 and grow geometrically away from them. Near ρ = ±1 the mean of g(v)
    given x turns from one branch to the other within ``√(1−ρ²)/|ρ|`` of a kink: the outer panels are cut at multiples
    of this width too. So it stays accurate up to ρ = ±1 and for variances from 0 to several hundred.

    Args:
        f: elementwise function of the first variable, with features of unit size.
        g: elementwise function of the second variable.
        triple: ``(K_αα, K_ββ, K_αβ)``, positive semidefinite.
        kinks: points where f or g, or a derivative, jumps.
        level: 0 for functions that are smooth up to their kinks; 1 also for singularities there, such as that of
            |z|^{3/2}; 2 with every panel halved, and so on.
        order: nodes of each panel, a multiple of four.
        root: ``√(K_αα K_ββ − K_αβ²)``, where it is known better than the rounded covariances tell.

    Returns:
        The mean, and as its error the change from a rule of three quarters of the order, plus rounding, plus what is
        left at the ends of the range (infinite or NaN where f g grows faster than the density falls).

    >>> import jax.numpy as jnp
    >>> triple = jnp.array([1.0, 1.0, 0.5])
    >>> round(float(pair_mean(jnp.sin, jnp.sin, triple).value / (jnp.exp(-1) * jnp.sinh(0.5))), 6)
    1.0
    """
    triple = jnp.asarray(triple, dtype=float)
    first = jnp.sqrt(triple[0])
    second = jnp.sqrt(triple[1])
    rho = correlation(triple)
    scale = first * second
    root = jnp.sqrt(determinant(*triple)) if root is None else root
    # √(1 − ρ²) = √det K/√(K_αα K_ββ), from the root, since 1 − ρ² cancels near ρ = ±1
    spread = jnp.where(scale > 0, root / jnp.where(scale > 0, scale, 1.0), 1.0)
    distances = DISTANCES if level else USUAL
    refine = 2 ** max(0, level - 1)
    cuts = _around(np.unique([0.0, *kinks]), distances)
    outer = _outer_breaks(first, second, rho, spread, cuts, np.unique([0.0, *kinks]), refine)

    def rule(order):
        x, weights = panel_rule(outer, order)
        inner = _breaks(second * rho * x, second * spread, cuts, refine)
        y, inner_weights = panel_rule(inner, order)
        # E_y g(√K_ββ (ρ x + √(1 − ρ²) y)), then E_x with f(√K_αα x): (outer nodes, inner nodes)
        values = inner_weights * g(second * (rho * x[:, None] + spread * y))
        terms = weights * f(first * x) * values.sum(-1)
        size = jnp.abs(weights * f(first * x)) * jnp.abs(values).sum(-1)
        outermost = jnp.abs(values.reshape(len(x), -1, order)[:, jnp.array([0, -1])]).sum((1, 2))
        ends = (
            size.reshape(-1, order)[jnp.array([0, -1])].sum()
            + jnp.abs(weights * f(first * x)) @ outermost
        )
        # rounding of v, which matters where the product is much smaller than its factors (ρ near −1)
        size = (
            size.sum()
            + (jnp.abs(weights * f(first * x)).sum() * jnp.abs(weights * g(second * x)).sum()) / 4
        )
        return terms.sum(), size, ends

    (coarse, _, _) = rule(3 * order // 4)
    (fine, size, ends) = rule(order)
    # the outermost panels hold everything when the product grows faster than the density falls
    divergent = ~(ends <= 1e-3 * size)
    error = jnp.abs(fine - coarse) + 16 * jnp.finfo(fine.dtype).eps * size
    return Estimate(fine, jnp.where(divergent, jnp.inf, error))


def correlation(triple: Triple) -> Float[Array, ""]:
    """Return the correlation ``K_αβ / √(K_αα K_ββ)``, clipped to [−1, 1]; zero when a variance is zero."""
    scale = jnp.sqrt(triple[0] * triple[1])
    return jnp.where(
        scale > 0, jnp.clip(triple[2] / jnp.where(scale > 0, scale, 1.0), -1.0, 1.0), 0.0
    )


def _around(centres: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """Return every centre plus and minus every distance."""
    return (centres[:, None] + np.concatenate([-distances[:0:-1], distances])).ravel()


def _sorted(
    base: np.ndarray, cuts: Float[Array, "*batch cuts"], refine: int
) -> Float[Array, "*batch breaks"]:
    """Sort base breaks and cuts; split every panel into ``refine`` equal ones."""
    cuts = jnp.clip(cuts, base[0], base[-1])
    first = jnp.broadcast_to(jnp.asarray(base), (*cuts.shape[:-1], len(base)))
    breaks = jnp.sort(jnp.concatenate([first, cuts], axis=-1), axis=-1)
    if refine == 1:
        return breaks
    parts = jnp.arange(refine) / refine
    split = (breaks[..., :-1, None] + jnp.diff(breaks)[..., None] * parts).reshape(
        *breaks.shape[:-1], -1
    )
    return jnp.concatenate([split, breaks[..., -1:]], axis=-1)


def _breaks(mean, deviation, cuts: np.ndarray, refine: int) -> Float[Array, "nodes breaks"]:
    """Return panels for ``y`` in ``z = mean + deviation y``, cut at these values of z."""
    places = (cuts - mean[:, None]) / jnp.where(deviation > 0, deviation, 1.0)
    return _sorted(BASE, jnp.where(deviation > 0, places, REACH), refine)


def _outer_breaks(first, second, rho, spread, cuts, centres, refine: int) -> Float[Array, "breaks"]:
    """Return panels for x, cut where u is at a cut and where the mean of v given x is within a few spreads of one."""
    of_f = jnp.where(first > 0, cuts / jnp.where(first > 0, first, 1.0), REACH)
    slope = jnp.where(second * rho == 0, 1.0, second * rho)
    width = spread / jnp.where(rho == 0, 1.0, jnp.abs(rho))
    # the mean √K_ββ ρ x of v is at a kink c where x = c/(√K_ββ ρ), within √(1 − ρ²)/|ρ|
    turns = (jnp.asarray(centres)[:, None] / slope + width * _around(np.zeros(1), TURNS)).ravel()
    of_g = jnp.where(second * rho == 0, REACH, jnp.concatenate([cuts / slope, turns]))
    return _sorted(BASE, jnp.concatenate([of_f, of_g]), refine)


@partial(jax.jit, static_argnums=(0, 1, 4, 5))
def pair_means(
    f: Elementwise,
    g: Elementwise,
    triples: Float[Array, "t 3"],
    roots: Float[Array, " t"],
    kinks: tuple[float, ...] = (),
    level: int = 0,
) -> Estimate:
    """Compute ``pair_mean`` of many covariances and their roots, one after the other so that memory stays small."""
    return jax.lax.map(
        lambda pair: pair_mean(f, g, pair[0], kinks, level=level, root=pair[1]), (triples, roots)
    )
