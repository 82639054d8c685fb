"""The Kac–Rice formula gives the mean number of critical points of random Gaussian forms on spheres.

Forms are homogeneous polynomials, here of degree p. The formula also gives this number separately for each index, and
the mean height of minima and of saddles of index 1. The gradient of such a form is independent of its height and of its
Hessian. But the Hessian depends on the height h: it is a Gaussian matrix shifted by −p h. Minima are therefore low, and
their heights become more alike as the dimension grows.
"""

from math import gamma, pi
from typing import Annotated, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.kac_rice.experiment import (
    KacRicePoint,
    Tally,
    expected,
    mixed,
    tally_circle,
    tally_sphere,
)
from steepest.landscapes import binomial_weights, kac_rice
from steepest.nn.types import Values

GROUPS = 20  # of forms, over which a spread has an interval
SHOWN = (2, 3, 4, 6, 8, 12, 16)
"""Dimensions of the predicted trend."""


class Setting(NamedTuple):
    """Coefficients of all forms, normal and of signs."""

    normal: tuple[Values, ...]  # of each circle's degree, then of each sphere, (forms, monomials)
    signs: tuple[Values, ...]
    starts: tuple[Values, ...]  # of Newton's method on each sphere, (starts, N)


@kit.claim
class KacRice(kit.Claim[Setting]):
    """Isotropic Gaussian forms on the circle, solved by roots, and on spheres, by Newton's method from many starts."""

    degrees: tuple[Annotated[int, kit.Within(3)], ...] = kit.param(
        (3, 4, 6), "p on the circle", scope=kit.choices((3, 4, 6), (3, 5, 8), (4, 6, 9))
    )
    circles: kit.Count = kit.param(10000, "forms of each degree on the circle")
    dimensions: tuple[Annotated[int, kit.Within(2)], ...] = kit.param(
        (3, 4), "N of the spheres S^(N−1)", scope=kit.choices((3, 4))
    )
    degree: Annotated[int, kit.Within(3)] = kit.param(
        3, "p on the spheres", scope=kit.choices(3, why="of more, some points have one start only")
    )
    forms: kit.Count = kit.param(500, "forms on each sphere")
    starts: kit.Count = kit.param(200, "starts of Newton's method, for each form")
    signs: kit.Fraction = kit.param(
        0.0, "share of the coefficients' variance that is in random signs"
    )

    kind = "theorem"
    says = {
        "gives the mean number of critical points of random Gaussian forms on spheres": (
            "circle",
            "sphere",
        ),
        "separately for each index": "by_index",
        "the mean height of minima and of saddles of index 1": ("height", "saddles"),
    }
    tiny = {"circles": 200, "forms": 12, "starts": 60}
    full = {"circles": 40000, "dimensions": (3, 4, 5), "forms": 1500, "starts": 600}
    out_of_scope = {"signs": 1.0}
    point = KacRicePoint

    @property
    def kinds(self) -> list[tuple[int, int, int]]:
        """Return degree, dimension and number of the forms: of each circle, then of each sphere."""
        circles = [(p, 2, self.circles) for p in self.degrees]
        spheres = [(self.degree, N, self.forms) for N in self.dimensions]
        return circles + spheres

    def axes(self):
        return {
            "degree": self.degrees,
            "dimension": self.dimensions,
            "high": tuple(N for N in self.dimensions if N > 3),
            "at": (2, *self.dimensions),
            "index": tuple(range(self.dimensions[-1])),
        }

    def setting(self, key):
        # NumPy's generator, seeded by the key: three programs less to compile
        rng = kit.numpy_generator(key)
        sizes = [(n, len(binomial_weights(p, N))) for p, N, n in self.kinds]
        return Setting(
            tuple(rng.standard_normal(size) for size in sizes),
            tuple(rng.choice([-1.0, 1.0], size) for size in sizes),
            tuple(rng.standard_normal((self.starts, N)) for N in self.dimensions),
        )

    def hypotheses(self, setting):
        yield kit.assume(
            "share of signs in the coefficients",
            self.signs,
            "==",
            0,
            "other laws of coefficients are not invariant under rotations",
        )

    def predict(self, setting):
        spheres = [expected(self.degree, N) for N in self.dimensions]
        every = [expected(self.degree, 2), *spheres]
        high = [one for one, N in zip(spheres, self.dimensions, strict=True) if N > 3]
        return kit.law(
            # zeros of H′ on the circle: 2√(Var H″/Var H′), with the variances p(3p − 2) and p
            circle=("degree", [2 * np.sqrt(3 * p - 2) for p in self.degrees]),
            sphere=("dimension", [numbers["total"] for numbers in spheres]),
            minima=("dimension", [numbers["by_index"][0] for numbers in spheres]),
            height=("dimension", [numbers["height"][0] for numbers in spheres]),
            saddles=("high", [numbers["height"][1] for numbers in high]),
            # standard deviation over mean of the minima's heights
            spread=("at", [-numbers["spread"][0] / numbers["height"][0] for numbers in every]),
            by_index=("index", spheres[-1]["by_index"]),
        )

    def observe(self, setting, key):
        normal = [
            mixed(one, other, self.signs)
            for one, other in zip(setting.normal, setting.signs, strict=True)
        ]
        weights = [binomial_weights(p, N) for p, N, _ in self.kinds]
        many = len(self.degrees)
        circles = [tally_circle(weights[i] * normal[i]) for i in range(many)]
        signs = [tally_circle(weights[i] * setting.signs[i]) for i in range(many)]
        kinds = range(many, len(weights))
        spheres = self.spheres([weights[i] * normal[i] for i in kinds], setting.starts)
        # binomial coefficients are one for pure powers alone
        pure = self.spheres([normal[i] * (weights[i] == 1) for i in kinds], setting.starts)
        return kit.seen(
            circle=("degree seed", [tally.counts.sum(1) for tally in circles]),
            signs=("degree seed", [tally.counts.sum(1) for tally in signs]),
            **_arrays(spheres, self.dimensions),
            **{f"pure_{name}": array for name, array in _arrays(pure, self.dimensions).items()},
            spread=("at group", _spreads([circles[0], *spheres])),
            pure_spread=("at group", _spreads([signs[0], *pure])),
            single=("dimension draw", [tally.single for tally in spheres]),
            complete=("dimension draw", [tally.complete for tally in spheres]),
        )

    def spheres(self, coefficients: list[Values], starts: tuple[Values, ...]) -> list[Tally]:
        """Return what was counted on each sphere."""
        lanes = zip(coefficients, self.dimensions, starts, strict=True)
        return [tally_sphere(values, self.degree, N, points) for values, N, points in lanes]

    def run_conditions(self, observed):
        pairs = observed["sphere"].sum() / 2
        whole = observed["complete"].mean()
        advice = "others may be missing; raise --starts"
        yield kit.assume(
            "share of pairs that one start alone found",
            observed["single"].sum() / pairs,
            "<",
            0.001,
            advice,
        )
        yield kit.assume("share of forms with Morse's sum", whole, "==", 1, advice)

    def judge(self, law, seen):
        p = self.degree
        # sums over points, since their number and their heights are not independent
        checks = [
            kit.follows(
                "circle",
                law.circle,
                seen.circle,
                0.02,  # three intervals
                label="critical points on the circle",
            ),
            kit.follows(
                "sphere",
                law.sphere,
                seen.sphere,
                0.08,  # the interval is 3 to 4 %
                label=f"critical points, p = {p}",
            ),
            kit.follows("minima", law.minima, seen.minima, 0.08, label=f"minima, p = {p}"),
            kit.follows(
                "by_index",
                law.by_index,
                seen.by_index,
                0.08,
                label=f"critical points of each index, N = {self.dimensions[-1]}, p = {p}",
            ),
            kit.follows(
                "height",
                law.height,
                seen.height / seen.minima.mean("draw"),
                0.08,
                label=f"mean height of the minima, p = {p}",
            ),
            kit.follows(
                "spread",
                law.spread,
                seen.spread,
                0.12,
                label="spread of minima over their mean height",
            ),
        ]
        if not law.sizes.get("high"):
            return checks
        return [
            *checks,
            kit.follows(
                "saddles",
                law.saddles,
                seen.saddle_height / seen.saddle.mean("draw"),
                0.2,
                label=f"mean height of saddles of index 1, p = {p}",
            ),
        ]

    def rivals(self, setting, law):
        p = law.degree
        N = law.dimension
        unshifted = np.array([_direct(self.degree, n, shift=0.0) for n in self.dimensions])
        narrow = np.array([_direct(self.degree, n, diagonal=1.0) for n in self.dimensions])
        plain = [_unweighted(self.degree, n) for n in (2, *self.dimensions)]
        high = [n > 3 for n in self.dimensions]
        saddles = [mean[1] for (mean, _), at in zip(plain[1:], high, strict=True) if at]
        even = xarray.ones_like(law.by_index) * law.by_index.mean()
        yield kit.rival(
            "height and curvature are independent too",
            "gradient and height are independent",
            circle=2 * np.sqrt(2 * (p - 1)),
            sphere=("dimension", unshifted[:, 0]),
            minima=("dimension", unshifted[:, 1]),
            height=0 * law.height - 1e-9,
            saddles=0 * law.saddles - 1e-9,
        )
        yield kit.rival(
            "variance one on the diagonal of G",
            "all entries of a Gaussian matrix alike",
            # p(p − 1) in place of 2p(p − 1) for the variance of the one entry
            circle=2 * np.sqrt((p * (p - 1) + p**2) / p),
            sphere=("dimension", narrow[:, 0]),
            minima=("dimension", narrow[:, 1]),
        )
        yield kit.rival(
            "all complex critical points are real",
            "the number of complex solutions",
            circle=2.0 * p,
            sphere=2 * ((self.degree - 1.0) ** N - 1) / (self.degree - 2),
        )
        yield kit.rival(
            "heights of the k-th eigenvalue, without Kac–Rice's weight",
            "heights are eigenvalues",
            id="unweighted",
            height=("dimension", [mean[0] for mean, _ in plain[1:]]),
            saddles=("high", saddles),
            spread=("at", [-deviation[0] / mean[0] for mean, deviation in plain]),
        )
        yield kit.rival(
            "the spread of N = 2 at every N",
            "one form is like another",
            spread=xarray.ones_like(law.spread) * law.spread[0],
        )
        yield kit.rival(
            "as many points of every index", "an index is drawn like any other", by_index=even
        )

    def controls(self, seen):
        names = ("sphere", "minima", "height", "saddle", "saddle_height", "by_index", "spread")
        pure = {name: seen[f"pure_{name}"] for name in names}
        yield kit.control(
            "coefficients ±1 on the circle",
            "forms of sign coefficients are not invariant under rotations",
            id="signs",
            circle=seen.signs,
        )
        yield kit.control(
            "sums of pure powers on spheres",
            "they are not invariant under rotations, and have 2(2^N − 1) critical points",
            **pure,
        )

    def figure(self, law, seen, rivals):
        degrees = np.linspace(2, max(self.degrees) + 1, 60)
        index = np.arange(self.dimensions[-1])
        theory = expected(self.degree, self.dimensions[-1])["height"]
        by_index = seen.by_index.mean("draw")
        name = f"N = {self.dimensions[-1]}, p = {self.degree}"
        at = np.repeat(law["at"].values, seen.sizes["group"])
        points = {"kind": "points"}
        trend = [_alike(self.degree, N) for N in SHOWN]
        yield kit.panel(
            "On the circle: 2√(3p − 2) critical points",
            "degree p",
            "critical points",
            kit.observed_curve(self.degrees, seen.circle.mean("seed"), "Gaussian", **points),
            kit.observed_curve(
                self.degrees, seen.signs.mean("seed"), "signs ±1", shade=1.0, **points
            ),
            kit.predicted_curve(degrees, 2 * np.sqrt(3 * degrees - 2), "Kac–Rice"),
            kit.rival_curve(degrees, 2 * np.sqrt(2 * degrees - 2), "without the shift"),
        )
        yield kit.panel(
            f"How many of each index, {name}",
            "index",
            "critical points",
            kit.observed_curve(index, by_index, "observed", **points),
            kit.predicted_curve(index, law.by_index, "Kac–Rice"),
            ylim=(0, None),
        )
        yield kit.panel(
            f"How high, {name}",
            "index",
            "mean height",
            kit.observed_curve(index, seen.heights.mean("draw") / by_index, "observed", **points),
            kit.predicted_curve(index, theory, "Kac–Rice"),
            kit.rival_curve(
                index, _unweighted(self.degree, len(index))[0], "without Kac–Rice's weight"
            ),
        )
        yield kit.panel(
            "Minima are more alike in higher dimension",
            "dimension N",
            "spread / |mean height|",
            kit.observed_curve(at, seen.spread.values.ravel(), "groups of forms", **points),
            kit.predicted_curve(SHOWN, trend, "Kac–Rice"),
            log="xy",
        )


def _arrays(spheres: list[Tally], dimensions: tuple[int, ...]) -> dict[str, tuple[str, Values]]:
    """Return counts and sums of heights on the spheres, by name and axes; by index on the last one."""
    counts = [tally.counts for tally in spheres]
    heights = [tally.heights for tally in spheres]
    high = [i for i, N in enumerate(dimensions) if N > 3]
    forms = len(counts[0])
    at = lambda values, index: np.array([values[i][:, index] for i in high]).reshape(-1, forms)
    return {
        "sphere": ("dimension draw", np.array([values.sum(1) for values in counts])),
        "minima": ("dimension draw", np.array([values[:, 0] for values in counts])),
        "height": ("dimension draw", np.array([values[:, 0] for values in heights])),
        "saddle": ("high draw", at(counts, 1)),
        "saddle_height": ("high draw", at(heights, 1)),
        "by_index": ("draw index", counts[-1]),
        "heights": ("draw index", heights[-1]),
    }


def _spreads(tallies: list[Tally]) -> Values:
    """Return standard deviation over |mean| of the minima's heights, by groups of forms, ``(tallies, groups)``."""
    groups = min(GROUPS, *(len(tally.counts) // 3 for tally in tallies))
    minima = lambda tally: (tally.counts[:, 0], tally.heights[:, 0], tally.squares[:, 0])
    return np.array([_spread(*minima(tally), groups) for tally in tallies])


def _spread(counts: Values, heights: Values, squares: Values, groups: int) -> Values:
    """Return standard deviation over |mean| of heights, pooled over each group of forms, ``(groups,)``."""
    size = len(counts) // groups
    sums = [
        values[: groups * size].reshape(groups, size).sum(1)
        for values in (counts, heights, squares)
    ]
    mean = sums[1] / sums[0]
    return np.sqrt(sums[2] / sums[0] - mean**2) / np.abs(mean)


def _direct(p: int, N: int, shift: float = 1.0, diagonal: float = 2.0) -> tuple[float, float]:
    """Return the number of critical points and of minima as the statement has them, with constants to be got wrong."""
    rng = np.random.default_rng(N)
    samples = 100_000
    matrices = rng.standard_normal((samples, N - 1, N - 1))
    matrices = (matrices + matrices.transpose(0, 2, 1)) / np.sqrt(2)
    units = np.arange(N - 1)
    matrices[:, units, units] *= np.sqrt(diagonal / 2)
    eigenvalues = np.sqrt(p * (p - 1)) * np.linalg.eigvalsh(matrices)
    eigenvalues = eigenvalues - shift * p * rng.standard_normal((samples, 1))
    sizes = np.abs(eigenvalues.prod(1))
    volume = 2 * pi ** (N / 2) / gamma(N / 2)
    # the gradient has N − 1 entries of variance p, and at zero the density (2πp)^(−(N−1)/2)
    factor = volume / (2 * pi * p) ** ((N - 1) / 2)
    minima = sizes * (eigenvalues[:, 0] > 0)
    return float(factor * sizes.mean()), float(factor * minima.mean())


def _unweighted(p: int, N: int) -> tuple[Values, Values]:
    """Return mean and deviation of eigenvalues in units of heights, without the weight of Kac–Rice, ``(N,)`` each."""
    rng = np.random.default_rng(N)
    matrices = rng.standard_normal((20_000, N, N)) / np.sqrt(4 * N)
    eigenvalues = np.linalg.eigvalsh(matrices + matrices.transpose(0, 2, 1))
    scale = np.sqrt(2 * N * (p - 1) / p)
    return scale * eigenvalues.mean(0), scale * eigenvalues.std(0)


def _alike(p: int, N: int) -> float:
    """Return the predicted spread of minima over their mean height, to a per cent, for the figure."""
    count = kac_rice(p, N, jax.random.key(N), samples=4000)
    return float(-count.spread[0] / count.height[0])
