"""Critical points of random forms: on the circle by roots of polynomials, on spheres by Newton's method."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.kit.points import equal
from steepest.landscapes import Form, binomial_weights, critical_points, kac_rice, sphere_newton

KEY_OF_THEORY = 0x5EED  # of the matrices over which theory averages; an error of a thousandth


class Tally(NamedTuple):
    """What was counted on forms of one kind.

    Attributes:
        counts: critical points by index, shape ``(forms, N)``.
        heights: sum of H over them, by index, shape ``(forms, N)``.
        squares: sum of H² over them, by index, shape ``(forms, N)``.
        single: pairs ±x to which one start alone came, shape ``(forms,)``.
        complete: whether Morse's sum is right, shape ``(forms,)``.
    """

    counts: kit.Values
    heights: kit.Values
    squares: kit.Values
    single: kit.Values
    complete: kit.Values


def mixed(normal: Any, signs: Any, share: Any) -> Any:
    """Return coefficients of variance one, of which signs have this share."""
    return (1 - share) ** 0.5 * normal + share**0.5 * signs


def circle_roots(coefficients: kit.Values) -> tuple[kit.Values, kit.Values]:
    """Return the angles in (−π/2, π/2) where forms on the circle are critical, by companion matrices.

    The derivative of H(cos φ, sin φ) is a polynomial of degree p in tan φ. Real matrices have real eigenvalues without
    any imaginary part, so that real roots are counted and not guessed.

    Args:
        coefficients: of cos^(p−k) sin^k, shape ``(forms, p + 1)``.

    Returns:
        angles, NaN where a root is not real, shape ``(forms, p)``; whether it is, of the same shape.
    """
    forms, size = coefficients.shape
    p = size - 1
    slope = np.zeros((forms, p + 1))
    for k in range(p + 1):
        # (cos^(p−k) sin^k)'/cos^p = k tan^(k−1) − (p − k) tan^(k+1)
        if k < p:
            slope[:, k + 1] -= (p - k) * coefficients[:, k]
        if k > 0:
            slope[:, k - 1] += k * coefficients[:, k]
    companion = np.zeros((forms, p, p))
    companion[:, np.arange(1, p), np.arange(p - 1)] = 1
    companion[:, 0] = -slope[:, p - 1 :: -1] / slope[:, p:]  # monic, by its leading coefficient
    roots = np.linalg.eigvals(companion)
    real = roots.imag == 0
    return np.where(real, np.arctan(roots.real), np.nan), real


def tally_circle(coefficients: kit.Values) -> Tally:
    """Count critical points of forms on the circle, ``(forms, p + 1)`` coefficients; H″ tells minima from maxima."""
    p = coefficients.shape[1] - 1
    angles, _ = circle_roots(coefficients)
    orders = np.arange(p + 1)
    cos = np.cos(angles)[..., None]
    sin = np.sin(angles)[..., None]
    terms = coefficients[:, None] * cos ** (p - orders) * sin**orders
    value = terms.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = ((p - orders) * sin / cos, orders * cos / sin)
    # H″ of cos^a sin^b is cos^a sin^b ((a tan − b cot)² − a/cos² − b/sin²)
    bend = (ratio[0] - ratio[1]) ** 2 - (p - orders) / cos**2 - orders / sin**2
    curvature = (terms * bend).sum(-1)
    counts = np.zeros((len(coefficients), 2))
    heights = np.zeros_like(counts)
    squares = np.zeros_like(counts)
    for parity in (1, (-1) ** p):  # φ and φ + π
        for index in (0, 1):
            chosen = (parity * curvature > 0) if index == 0 else (parity * curvature < 0)
            counts[:, index] += chosen.sum(1)
            heights[:, index] += np.where(chosen, parity * value, 0).sum(1)
            squares[:, index] += np.where(chosen, value**2, 0).sum(1)
    whole = np.ones(len(coefficients))
    # Morse's sum on the circle: as many minima as maxima
    return Tally(counts, heights, squares, 0 * whole, counts[:, 0] == counts[:, 1])


def tally_sphere(
    coefficients: kit.Values, degree: int, dimension: int, starts: kit.Values
) -> Tally:
    """Count critical points of forms by Newton's method from the same starts, by index."""
    rows = []
    for row in coefficients:
        ends = critical_points(Form(degree, dimension, row), starts)
        sums = [
            np.bincount(ends.index, weights, minlength=dimension)
            for weights in (np.ones(len(ends.value)), ends.value, ends.value**2)
        ]
        rows.append((*sums, (ends.hits == 1).sum() / 2, ends.complete))
    return Tally(*(np.array(column) for column in zip(*rows, strict=True)))


@cache
def expected(degree: int, dimension: int) -> Mapping[str, kit.Values]:
    """Return Kac–Rice's numbers, once for all points of a diagram."""
    count = kac_rice(degree, dimension, jax.random.key(KEY_OF_THEORY))
    return {
        "total": np.array(count.total),
        "by_index": count.by_index,
        "height": count.height,
        "spread": count.spread,
    }


@dataclass(frozen=True)
class KacRicePoint(kit.Point):
    """Critical points of forms of one degree on one sphere."""

    dimensions: kit.Count
    degree: kit.Count
    signs: kit.Fraction
    forms: kit.Count
    starts: kit.Count

    batched = ("signs",)
    diagram = {"dimensions": "2,3,4", "degree": "3,4,5,6,7"}
    base = {"forms": 60, "starts": 400}
    diagram_remarks = ("Sixty forms a point, Newton's method from 400 starts each.",)

    def predict(self, setting):
        numbers = expected(self.degree, self.dimensions)
        share = numbers["by_index"][0] / numbers["total"]
        return kit.Prediction(total=numbers["total"], minima=share)

    def observe(self, setting, key):
        for_starts, for_forms = jax.random.split(key)
        starts = jax.random.normal(for_starts, (self.starts, self.dimensions))
        weights = jnp.asarray(binomial_weights(self.degree, self.dimensions))

        def count(key: kit.Key) -> tuple[jax.Array, jax.Array]:
            for_normal, for_signs = jax.random.split(key)
            normal = jax.random.normal(for_normal, weights.shape)
            coefficients = weights * mixed(
                normal, jax.random.rademacher(for_signs, weights.shape, float), self.signs
            )
            ends = sphere_newton(coefficients, starts, self.degree)
            arrived = ends.residual < 1e-9 * jnp.linalg.norm(coefficients)
            overlaps = jnp.abs(ends.points @ ends.points.T)
            same = (1 - overlaps < 1e-10) & arrived & arrived[:, None]
            # each pair ±x has the weight one, divided among the starts that came to it
            weight = jnp.where(arrived, 1 / jnp.maximum(same.sum(1), 1), 0.0)
            # H(−x) = −H(x) for odd degrees: what rises at x falls at −x
            other = self.dimensions - 1 - ends.index if self.degree % 2 else ends.index
            minima = (ends.index == 0).astype(float) + (other == 0)
            return 2 * weight.sum(), (weight * minima).sum()

        total, minima = jax.vmap(count)(kit.keys(key=for_forms, seeds=self.forms))
        return {"total": total, "minima": minima}

    def run_conditions(self, observed):
        advice = "other laws of coefficients are not invariant under rotations"
        yield kit.assume("share of signs in the coefficients", self.signs, "==", 0, advice)

    def judge(self, predicted, observed):
        total = observed["total"]
        minima = observed["minima"] / total.mean()
        # the interval over sixty forms is up to 9 %
        yield equal("total", predicted["total"], total, 0.12, label="critical points")
        yield equal("minima", predicted["minima"], minima, 0.12, label="share of minima")
