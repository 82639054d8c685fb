"""The matrix factorization loss ¼‖XXᵀ − M‖² has no spurious local minima.

M is positive semidefinite. Every critical point but the best is a strict saddle: its Hessian has a negative eigenvalue.
The critical points are the square roots of M on sets of its eigenvectors. The values at critical points, and all
eigenvalues of the Hessians, are known in closed form. Some direction leads down at every critical point, except at the
set of the largest eigenvalues. So descent from a random start finds a root of M, or its best approximation if the rank
of M exceeds the number of columns of X. Descent leaves a saddle after a time of log(1/distance) over the size of the
lowest curvature.
"""

from typing import NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.factorization_landscape.experiment import (
    DIMENSION,
    FactorizationPointOfDiagram,
    critical_points,
    escape,
    final_risks,
)
from steepest.landscapes import (
    factorization_points,
    factorization_risk,
    strict_saddles,
)
from steepest.nn.types import Values

NAMES = ("rank M = r", "rank M > r")
CONVERGED = 1e-8  # ‖∇f‖ from which a search for critical points counts
ROUNDS = 100  # of a search
LONG = 20  # dimension of the descents
LONGER = 1.25  # factor of critical points that makes them others
AT_POINTS = ("value", "lowest", "index", "spectrum")
FOUND = ("critical_value", "critical_gradient", "critical_lowest")


class Setting(NamedTuple):
    """Matrices, points and starts that theory and experiment both see."""

    bases: Values  # eigenvectors of both M in dimension n, (2, n, n)
    points: list[Values]  # critical points of each M by construction, (sets, n, r)
    searches: Values  # starts of the search for critical points, (starts, n r)
    starts: Values  # of the descents, (starts, LONG, r)
    directions: Values  # in which descents leave a saddle, (escapes, DIMENSION)


@kit.claim
class FactorizationLandscape(kit.Claim[Setting]):
    """Two positive semidefinite matrices with random eigenvectors, one of the rank of X and one of a higher rank."""

    exact: tuple[float, ...] = kit.param(
        (4.0, 3.0, 2.0),
        "eigenvalues of M that X can reach",
        scope=kit.choices((4.0, 3.0, 2.0), (5.0, 3.0, 1.0), (3.0, 2.0, 1.5)),
    )
    over: tuple[float, ...] = kit.param(
        (5.0, 4.0, 3.0, 2.0, 1.0),
        "positive eigenvalues of M of a higher rank than X has columns",
        scope=kit.choices(
            (5.0, 4.0, 3.0, 2.0, 1.0), (6.0, 4.0, 3.0, 1.0), (3.0, 2.6, 2.0, 1.2, 0.5)
        ),
    )
    columns: kit.Count = kit.param(
        3, "r, columns of X", scope=kit.choices(3, why="the first matrix has just this rank")
    )
    dimension: kit.Count = kit.param(
        7,
        "n, at which all Hessians are formed",
        scope=kit.between(6, 9, "all Hessians are formed"),
    )
    searches: kit.Count = kit.param(100, "searches for critical points of each matrix")
    starts: kit.Seeds = kit.param(50, "descents from random starts, n = 20")
    steps: kit.Count = kit.param(1000, "steps of each descent", unit="steps")
    gaps: tuple[kit.Positive, ...] = kit.param(
        (0.25, 0.5, 1.0, 2.0),
        "λ_1 − λ_2 at saddles that are left",
        scope=kit.choices((0.25, 0.5, 1.0, 2.0), (0.3, 0.9, 1.5)),
    )
    radii: tuple[kit.Positive, ...] = kit.param(
        (1e-2, 1e-4, 1e-6),
        "distance of such a start to the saddle",
        scope=kit.choices((1e-2, 1e-4, 1e-6), (1e-1, 1e-3, 1e-7)),
    )
    escapes: kit.Seeds = kit.param(10, "random directions in which saddles are left")
    pace: kit.Positive = kit.param(
        0.01, "ηλ_1 of these descents", scope=kit.between(0.005, 0.01, "the law is the flow's")
    )

    kind = "theorem"
    says = {
        "has no spurious local minima": ("complete", "descent"),
        "Every critical point but the best is a strict saddle": (
            "lowest_curvature",
            "index",
            "spectrum",
            "found_curvature",
        ),
    }
    tiny = {
        "exact": (4.0, 3.0),
        "over": (3.0, 2.0, 1.0),
        "columns": 2,
        "dimension": 4,
        "searches": 40,
        "starts": 5,
        "steps": 200,
        "gaps": (1.0, 2.0),
        "radii": (1e-2, 1e-4),
        "escapes": 3,
    }
    full = {
        "dimension": 12,
        "exact": (4.0, 3.0, 2.0, 1.0),
        "over": (6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
        "columns": 4,
        "starts": 400,
        "searches": 1000,
    }
    out_of_scope = {"over": (5.0, 4.0, 3.0, -1.0)}
    point = FactorizationPointOfDiagram

    def spectra(self, dimension: int) -> Values:
        """Return the eigenvalues of both matrices, filled with zeros, ``(2, dimension)``."""
        spectra = np.zeros((2, dimension))
        for row, levels in zip(spectra, (self.exact, self.over), strict=True):
            row[: len(levels)] = levels[:dimension]
        return spectra

    def sets(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return of each critical point whose matrix it belongs to, 0 or 1, and which eigenvectors it uses."""
        return [
            (matrix, chosen)
            for matrix, row in enumerate(self.spectra(self.dimension).clip(0))
            for chosen in _sets(row, self.columns)
        ]

    @property
    def owner(self) -> Values:
        """Return which matrix each critical point belongs to."""
        return np.array([matrix for matrix, _ in self.sets()])

    @property
    def sizes(self) -> Values:
        """Return ¼‖M‖² of both matrices."""
        return np.array([(np.array(levels) ** 2).sum() / 4 for levels in (self.exact, self.over)])

    def axes(self):
        names = [
            f"{NAMES[i]}, S = {{{' '.join(str(u + 1) for u in chosen)}}}"
            for i, chosen in self.sets()
        ]
        return {
            "point": tuple(names),
            "eigenvalue": tuple(range(self.dimension * self.columns)),
            "matrix": NAMES,
            "gap": self.gaps,
            "radius": self.radii,
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        n = self.dimension
        r = self.columns
        bases = np.linalg.qr(rng.normal(size=(2, n, n)))[0]
        points = []
        for basis, levels in zip(bases, self.spectra(n).clip(0), strict=True):
            sets = _sets(levels, r)
            rotations = np.linalg.qr(rng.normal(size=(len(sets), r, r)))[0]
            roots = np.zeros((len(sets), n, r))
            for root, chosen in zip(roots, sets, strict=True):
                root[:, : len(chosen)] = basis[:, list(chosen)] * np.sqrt(levels[list(chosen)])
            points.append(roots @ rotations)
        directions = rng.normal(size=(self.escapes, DIMENSION))
        return Setting(
            bases,
            points,
            0.8 * rng.normal(size=(self.searches, n * r)),
            rng.normal(size=(self.starts, LONG, r)) / np.sqrt(LONG),
            directions / np.linalg.norm(directions, axis=1, keepdims=True),
        )

    def matrices(self, setting: Setting) -> Values:
        """Return both M, ``(2, n, n)``."""
        levels = self.spectra(self.dimension)
        return setting.bases * levels[:, None] @ np.swapaxes(setting.bases, 1, 2)

    def hypotheses(self, setting):
        levels = [np.sort(np.array(part)) for part in (self.exact, self.over)]
        yield kit.assume(
            "smallest eigenvalue of M",
            min(part[0] for part in levels),
            ">",
            0,
            "XXᵀ cannot reach negative ones; leave out zeros",
        )
        yield kit.assume(
            "smallest gap between eigenvalues",
            min(np.diff(part).min(initial=np.inf) for part in levels),
            ">",
            0,
            "equal ones make more critical points",
        )
        yield kit.assume("rank of the first matrix", len(self.exact), "==", self.columns)
        yield kit.assume("rank of the second matrix", len(self.over), ">", self.columns)
        yield kit.assume("dimension", self.dimension, ">=", len(self.over))

    def predict(self, setting):
        levels = self.spectra(self.dimension)
        points = [point for row in levels for point in factorization_points(row, self.columns)]
        # x_2/x_1 at the start is known; radius · direction is the only part of it that is not one
        first = np.array(self.radii)[:, None] * setting.directions[:, 0]
        second = 1 + np.array(self.radii)[:, None] * setting.directions[:, 1]
        ahead = np.log(np.abs(second / first))
        values = np.array([point.value for point in points])
        return kit.law(
            value=("point", values),
            lowest=("point", [point.lowest for point in points]),
            index=("point", [float(point.index) for point in points]),
            spectrum=("point eigenvalue", [point.eigenvalues for point in points]),
            best=("matrix", [values[self.owner == i].min() for i in (0, 1)]),
            escape=("gap radius draw", ahead / np.array(self.gaps)[:, None, None]),
        )

    def observe(self, setting, key):
        matrices = self.matrices(setting)
        certificates = []
        longer = []
        for matrix, points in zip(matrices, setting.points, strict=True):
            with_longer = np.concatenate([points, LONGER * points])
            of_matrix = strict_saddles(factorization_risk(matrix), with_longer)
            certificates += of_matrix[: len(points)]
            longer += of_matrix[len(points) :]
        searches = [critical_points(m, self.columns, setting.searches, ROUNDS) for m in matrices]
        value, slope, curvature = map(np.stack, zip(*searches, strict=True))
        diagonal = np.stack([np.diag(levels) for levels in self.spectra(LONG)])
        # Without the first eigenvector descent never sees it: its coordinate stays zero to the bit.
        blind = setting.starts * (np.arange(LONG) > 0)[:, None]
        starts = np.stack([np.concatenate([setting.starts, blind])] * 2)
        ends, times = kit.compiled(self.descents)(diagonal, starts, setting.directions)
        ends = np.asarray(ends).reshape(2, 2, self.starts)
        return kit.seen(
            value=("point", [point.value for point in certificates]),
            gradient=("point", [point.gradient for point in certificates]),
            lowest=("point", [point.lowest for point in certificates]),
            index=("point", [float(point.index) for point in certificates]),
            spectrum=("point eigenvalue", [point.eigenvalues for point in certificates]),
            longer_value=("point", [point.value for point in longer]),
            longer_lowest=("point", [point.lowest for point in longer]),
            longer_index=("point", [float(point.index) for point in longer]),
            longer_spectrum=("point eigenvalue", [point.eigenvalues for point in longer]),
            critical_value=("matrix search", value),
            critical_gradient=("matrix search", slope),
            critical_lowest=("matrix search", curvature),
            end=("matrix start", ends[:, 0]),
            blind_end=("matrix start", ends[:, 1]),
            escape=("gap radius draw", times),
        )

    def descents(
        self, matrices: jax.Array, starts: jax.Array, directions: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return the risks at the ends of all descents, and the times to leave saddles."""
        leave = lambda gap, radius, direction: escape(direction, gap, radius, self.pace)[0]
        leave = jax.vmap(leave, in_axes=(None, None, 0))
        leave = jax.vmap(leave, in_axes=(None, 0, None))
        leave = jax.vmap(leave, in_axes=(0, None, None))
        times = leave(np.array(self.gaps), np.array(self.radii), directions)
        return final_risks(matrices, starts, self.steps), times

    def run_conditions(self, observed):
        converged = (observed["critical_gradient"] < CONVERGED).mean(1)
        yield kit.assume("‖∇f‖ at the constructed points", observed["gradient"].max(), "<", 1e-12)
        yield kit.assume("share of searches that converged", converged.min(), ">=", 0.3)

    def derive(self, law, seen):
        """Return deviations at constructed points, of what searches found and of descents."""
        misses = []
        misfits = []
        for i, size in enumerate(self.sizes):
            of_matrix = np.flatnonzero(self.owner == i)
            converged = seen.critical_gradient.values[i] < CONVERGED
            ended = {"matrix": i, "search": np.flatnonzero(converged)}
            value = seen.critical_value.isel(ended)
            off = abs(value - law.value.isel(point=of_matrix)) / size
            lowest = seen.critical_lowest.isel(ended)
            bent = abs(lowest - law.lowest.isel(point=of_matrix)) / law.spectrum.max()
            misses.append(off.min("point").values)
            # two points may have one value, and a search ends at either
            misfits.append(np.maximum(off, bent).min("point").values)
        sizes = xarray.DataArray(self.sizes, dims="matrix")
        return {
            **{f"{name}_off": abs(seen[name] - law[name]) for name in AT_POINTS},
            "miss": xarray.DataArray(np.concatenate(misses), dims="converged"),
            "misfit": xarray.DataArray(np.concatenate(misfits), dims="converged"),
            "excess": abs(seen.end - law.best) / sizes,
        }

    def judge(self, law, seen):
        yield kit.agrees("value", seen.value_off, 1e-10, label="f at all critical points")
        yield kit.agrees(
            "lowest_curvature",
            seen.lowest_off,
            1e-10,
            label="lowest curvature at all critical points",
        )
        yield kit.agrees(
            "index",
            seen.index_off,
            0.0,
            label="number of directions that lead down at all critical points",
        )
        yield kit.agrees(
            "spectrum",
            seen.spectrum_off,
            1e-10,
            label="all eigenvalues of the Hessian at all critical points",
        )
        yield kit.agrees(
            "complete",
            seen.miss,
            1e-10,
            label="critical points that searches find: f − nearest predicted value, relative",
        )
        yield kit.agrees(
            "found_curvature",
            seen.misfit,
            # in an unused column the gradient may be cubic: 1e-8 leaves z³ = 1e-8, whose curvature is z²
            1e-5,
            label="critical points that searches find: lowest curvature and f, off the nearest predicted pair",
        )
        yield kit.agrees(
            "descent",
            seen.excess,
            1e-12,
            label="excess of descents from random starts over the best value, relative",
        )
        yield kit.follows(
            "escape_time",
            law.escape,
            seen.escape,
            # descent with η = 0.01/λ_1 is late by η gap/2, 0.3 % at the largest gap
            0.005,
            each=True,
            label="time to leave the saddle at the second eigenvector",
        )

    def rivals(self, setting, law):
        levels = self.spectra(self.dimension)
        r = self.columns
        sets = [(levels[i], chosen) for i, chosen in self.sets()]
        used = np.array([len(chosen) for _, chosen in sets])
        omitted = [np.delete(row, chosen) for row, chosen in sets]
        index = law["index"].values
        value = law.value.values
        best = index == 0
        positive = np.array([(left_out > 0).sum() for left_out in omitted])
        top = np.array([left_out.max() for left_out in omitted])
        least = law.best.values[self.owner]
        geometric = [
            _with_geometric_means(spectrum, row[list(chosen)])
            for (row, chosen), spectrum in zip(sets, law.spectrum.values, strict=True)
        ]
        yield kit.rival(
            "f = ¼(Σ_{i∉S} λ_i)²",
            "the omitted part as one number",
            value=("point", [left_out.sum() ** 2 / 4 for left_out in omitted]),
        )
        yield kit.rival(
            "only the origin is a saddle",
            "the only point where X has no direction",
            index=("point", np.where(used == 0, index, 0)),
        )
        yield kit.rival(
            "only points of deficient rank are saddles",
            "an unused column is the way out; X of full rank has none",
            index=("point", positive * (r - used)),
            lowest=("point", np.where(used < r, -top, 0)),
        )
        yield kit.rival(
            "λ_min = −max λ_v at every saddle",
            "right wherever a column is unused",
            id="largest_omitted",
            lowest=("point", np.where(best, 0, -top)),
            escape=law.escape * law.gap / (law.gap + 1),
        )
        yield kit.rival(
            "mixing two columns costs 2√(λ_u λ_u')",
            "it is 2λ_u where both are equal",
            spectrum=("point eigenvalue", geometric),
        )
        yield kit.rival(
            "only the origin and the best are critical",
            "a landscape without spurious minima need not have these saddles",
            value=("point", np.where(best | (used == 0), value, least)),
        )

    def controls(self, seen):
        turned = lambda name: (seen[name].dims, seen[name].values[::-1])
        yield kit.control(
            f"points that are {LONGER:g} times as long",
            "these points are not critical",
            id="longer",
            value=seen.longer_value,
            lowest=seen.longer_lowest,
            index=seen.longer_index,
            spectrum=seen.longer_spectrum,
        )
        yield kit.control(
            "what searches found of the other matrix",
            "its critical points have other values",
            **{name: turned(name) for name in FOUND},
        )
        yield kit.control(
            "starts without the first eigenvector",
            "they lie on the stable set of a saddle",
            end=seen.blind_end,
        )
        yield kit.control(
            "descents that leave in another direction",
            "the start's own direction sets the time",
            escape=(seen.escape.dims, np.roll(seen.escape.values, 1, -1)),
        )

    def figure(self, law, seen, rivals):
        over = np.flatnonzero(self.owner == 1)
        over = over[np.argsort(law.value.values[over], kind="stable")]
        values = law.value.values[over]
        place = np.arange(over.size)
        converged = seen.critical_gradient.values[1] < CONVERGED
        ends = seen.critical_value.values[1][converged]
        levels = np.unique(np.round(values, 9))
        counts = [(np.abs(ends - level) < 1e-6).sum() for level in levels]
        straight = rivals["largest_omitted"].lowest[over]
        yield kit.panel(
            "Each critical point but the best has negative curvature",
            "critical points, best first",
            "lowest eigenvalue of the Hessian",
            kit.observed_curve(
                place, seen.lowest[over], "automatic differentiation", kind="points"
            ),
            kit.predicted_curve(place, law.lowest[over], "predicted"),
            kit.rival_curve(place, straight, "−max λ_v, even where |S| = r"),
        )
        yield kit.panel(
            "Searches find critical points at predicted values only",
            "f",
            "searches",
            kit.observed_curve(levels, counts, "searches that end there", kind="points"),
            kit.context_curve(values, 0 * values, "predicted values", kind="points"),
        )
        yield kit.curves(
            "Time to leave a saddle",
            law.escape,
            seen.escape,
            over="radius",
            by="gap",
            name="gap {}",
            x="distance of the start",
            y="time",
            log="xy",
        )


def _sets(levels: Values | tuple[float, ...], columns: int) -> list[tuple[int, ...]]:
    """Return all sets S of at most r positive eigenvalues, in the order of theory."""
    return [point.chosen for point in factorization_points(levels, columns)]


def _with_geometric_means(spectrum: Values, used: Values) -> Values:
    """Return a spectrum with 2√(λ_u λ_u') for each λ_u + λ_u', sorted."""
    changed = list(spectrum)
    for i, first in enumerate(used):
        for second in used[i + 1 :]:
            nearest = int(np.argmin(np.abs(np.array(changed) - (first + second))))
            changed[nearest] = 2 * np.sqrt(first * second)
    return np.sort(changed)
