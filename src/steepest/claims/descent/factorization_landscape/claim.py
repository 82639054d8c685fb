"""Factoring a matrix as XXᵀ has no spurious minima: every critical point but the best is a strict saddle.

The critical points of ¼‖XXᵀ − M‖² are the square roots of M on sets of its eigenvectors. Their values, and all
eigenvalues of their Hessians, are known in closed form; only the set of the largest eigenvalues has none that leads
down. So descent from a random start finds a root of M, or its best approximation where X has fewer columns than M has
rank, and leaves a saddle after a time log(1/distance) over its lowest curvature.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    agreement,
    assume,
    bound,
    compiled,
    context_curve,
    equal,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
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
    nearest_root,
    strict_saddles,
)

NAMES = ("exact", "over")  # M of the rank of X, and of a higher one
CONVERGED = 1e-8  # ‖∇f‖ from which a search for critical points counts
ROUNDS = 100  # of a search
LONG = 20  # dimension of the descents


class Setting(NamedTuple):
    """Matrices, points and starts that theory and experiment both see."""

    bases: np.ndarray  # eigenvectors of both M in dimension n, (2, n, n)
    points: list[np.ndarray]  # critical points of each M by construction, (sets, n, r)
    pairs: np.ndarray  # X and U of the identity and the lemma, (2, pairs, n, r)
    orthogonal: np.ndarray  # the same, where XᵀU = 0 and XᵀX = UᵀU = cI, (2, pairs, n, r)
    searches: np.ndarray  # starts of the search for critical points, (starts, n r)
    starts: np.ndarray  # of the descents, (starts, LONG, r)
    directions: np.ndarray  # in which descents leave a saddle, (escapes, DIMENSION)


@dataclass(frozen=True)
class FactorizationLandscape(Claim):
    """Two positive semidefinite matrices with random eigenvectors, one of the rank of X and one of a higher rank."""

    exact: tuple[float, ...] = (4.0, 3.0, 2.0)  # eigenvalues of M that X can reach [1]
    # positive eigenvalues of M of a higher rank than X has columns [1]
    over: tuple[float, ...] = (5.0, 4.0, 3.0, 2.0, 1.0)
    columns: Count = 3  # r, columns of X [1]
    dimension: Count = 7  # n, at which all Hessians are formed [1]
    pairs: Count = 4000  # random X and U of the identity and the lemma [1]
    searches: Count = 100  # searches for critical points of each matrix [1]
    starts: Seeds = 50  # descents from random starts, n = 20 [1]
    steps: Count = 1000  # of each descent [steps]
    gaps: tuple[Positive, ...] = (0.25, 0.5, 1.0, 2.0)  # λ_1 − λ_2 at saddles that are left [1]
    radii: tuple[Positive, ...] = (1e-2, 1e-4, 1e-6)  # distance of such a start to the saddle [1]
    escapes: Seeds = 10  # random directions in which saddles are left [1]
    pace: Positive = 0.01  # ηλ_1 of these descents [1]

    kind = "theorem"
    point = FactorizationPointOfDiagram
    headline = (
        "value",
        "lowest_curvature",
        "index",
        "spectrum",
        "complete",
        "descent_exact",
        "descent_over",
    )
    statement = (
        r"f(X)=\tfrac14\lVert XX^\top-M\rVert^2,\quad \nabla f=0\iff X=U_S\Lambda_S^{1/2}Q;\qquad "
        r"\text{unless }S\text{ is best:}\quad "
        r"\lambda_{\min}(\nabla^2 f)=\begin{cases}-\max_{v\notin S}\lambda_v & |S|<r\\ "
        r"\min_{u\in S}\lambda_u-\max_{v\notin S}\lambda_v & |S|=r\end{cases}\;<0"
    )
    source = "Lectures of Ge on 27 January and of J. Lee in the notes [@vodrahalli2019]; [@ge2016]; [@ge2017a]"
    corrections = (
        "The lecture states the second-order necessary condition as “gradient is zero and Hessian is not PSD”. It is "
        "that the Hessian is positive semidefinite, as the argument that follows uses it (a slip, not tested here).",
        "Lee's “the only local minimizer is the top eigenvector” of the best rank-k approximation is for k = 1; for "
        "k columns it is the span of the top k, and X is known up to a rotation.",
    )
    remarks = (
        "The whole spectrum is predicted, not only the index: 2λ_u, λ_u + λ_u', λ_u − λ_v, −λ_v and zeros. Each of its "
        "numbers is compared with automatic differentiation.",
        "That there are no other critical points is searched for, with Gauss–Newton steps on ‖∇f‖² from random starts, "
        "which are drawn to saddles as much as to minima; those that stall at a minimum of ‖∇f‖ without a zero "
        "are not counted. A search cannot prove it; that XXᵀX = MX forces eigenvectors does.",
        "The constant 2 of Ge's lemma is attained wherever the columns of X are orthogonal to those of U and XᵀX = "
        "UᵀU = cI; the lecture does not say whether it is sharp.",
        "Leaving the saddle at the second of two eigenvectors, r = 1, log(x₂/x₁) falls at the rate λ_1 − λ_2 exactly "
        "along the flow, however far; descent with η = 0.01/λ_1 differs by ηgap/2, at most a third of a percent.",
        "Rotations Q of the columns are a symmetry: where k columns are used, k(k − 1)/2 + k(r − k) eigenvalues of the "
        "Hessian vanish, so that minima are strict only up to it.",
    )
    full = {
        "dimension": 12,
        "exact": (4.0, 3.0, 2.0, 1.0),
        "over": (6.0, 5.0, 4.0, 3.0, 2.0, 1.0),
        "columns": 4,
        "starts": 400,
        "searches": 1000,
    }
    tiny = {
        "exact": (4.0, 3.0),
        "over": (3.0, 2.0, 1.0),
        "columns": 2,
        "dimension": 4,
        "pairs": 100,
        "searches": 40,
        "starts": 5,
        "steps": 200,
        "gaps": (1.0, 2.0),
        "radii": (1e-2, 1e-4),
        "escapes": 3,
    }
    out_of_scope = {"over": (5.0, 4.0, 3.0, -1.0)}

    def spectra(self, dimension: int) -> np.ndarray:
        """Return the eigenvalues of both matrices, filled with zeros, ``(2, dimension)``."""
        spectra = np.zeros((2, dimension))
        for row, levels in zip(spectra, (self.exact, self.over), strict=True):
            row[: len(levels)] = levels[:dimension]
        return spectra

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        levels = [np.sort(np.array(part)) for part in (self.exact, self.over)]
        return [
            assume(
                "smallest eigenvalue of M",
                min(part[0] for part in levels),
                ">",
                0,
                "XXᵀ cannot reach negative ones; leave out zeros",
            ),
            assume(
                "smallest gap between eigenvalues",
                min(np.diff(part).min(initial=np.inf) for part in levels),
                ">",
                0,
                "equal ones make more critical points",
            ),
            assume("rank of the first matrix", len(self.exact), "==", self.columns),
            assume("rank of the second matrix", len(self.over), ">", self.columns),
            # X and U side by side must fit, for the pairs that are orthogonal
            assume("dimension", self.dimension, ">=", max(len(self.over), 2 * self.columns)),
        ]

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
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
        frames = np.linalg.qr(rng.normal(size=(self.pairs, n, min(n, 2 * r))))[0]
        sizes = rng.uniform(0.5, 2, (self.pairs, 1, 1))
        orthogonal = np.stack([frames[..., :r] * sizes, frames[..., -r:] * sizes])
        directions = rng.normal(size=(self.escapes, DIMENSION))
        return Setting(
            bases,
            points,
            rng.normal(size=(2, self.pairs, n, r)),
            orthogonal,
            0.8 * rng.normal(size=(self.searches, n * r)),
            rng.normal(size=(self.starts, LONG, r)) / np.sqrt(LONG),
            directions / np.linalg.norm(directions, axis=1, keepdims=True),
        )

    def matrices(self, setting: Setting) -> np.ndarray:
        """Return both M, ``(2, n, n)``."""
        levels = self.spectra(self.dimension)
        return setting.bases * levels[:, None] @ np.swapaxes(setting.bases, 1, 2)

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return of each critical point whose matrix it belongs to, 0 or 1, and how many eigenvectors it uses."""
        sets = [
            (matrix, len(chosen))
            for matrix, row in enumerate(self.spectra(self.dimension))
            for chosen in _sets(row, self.columns)
        ]
        owner, used = np.array(sets).T
        return owner, used

    def predict(self, setting: Setting) -> Prediction:
        levels = self.spectra(self.dimension)
        points = [point for row in levels for point in factorization_points(row, self.columns)]
        # x_2/x_1 at the start is known; radius · direction is the only part of it that is not one
        first = np.array(self.radii)[:, None] * setting.directions[:, 0]
        second = 1 + np.array(self.radii)[:, None] * setting.directions[:, 1]
        ahead = np.log(np.abs(second / first))
        return Prediction(
            value=("point", [point.value for point in points]),
            lowest=("point", [point.lowest for point in points]),
            index=("point", [point.index for point in points]),
            spectrum=("point eigenvalue", [point.eigenvalues for point in points]),
            identity=("term", [0.5, -1.5, 4.0]),
            constant=2.0,
            ahead=("radius direction", ahead),
            rate=("gap", np.array(self.gaps)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        matrices = self.matrices(setting)
        certificates = [
            point
            for matrix, points in zip(matrices, setting.points, strict=True)
            for point in strict_saddles(factorization_risk(matrix), points)
        ]
        searches = [critical_points(m, self.columns, setting.searches, ROUNDS) for m in matrices]
        diagonal = np.stack([np.diag(levels) for levels in self.spectra(LONG)])
        # Without the first eigenvector descent never sees it: its coordinate stays zero to the bit.
        blind = setting.starts * (np.arange(LONG) > 0)[:, None]
        starts = np.stack([np.concatenate([setting.starts, blind])] * 2)
        ends, times = compiled(self.descents)(diagonal, starts, setting.directions)
        ends = np.asarray(ends).reshape(2, 2, self.starts)
        terms, ratio, turned = _identity(*setting.pairs)
        return Observation(
            value=("point", [point.value for point in certificates]),
            gradient=("point", [point.gradient for point in certificates]),
            lowest=("point", [point.lowest for point in certificates]),
            index=("point", [point.index for point in certificates]),
            spectrum=("point eigenvalue", [point.eigenvalues for point in certificates]),
            critical_value=("matrix search", [value for value, _ in searches]),
            critical_gradient=("matrix search", [slope for _, slope in searches]),
            terms=("pair term", terms),
            ratio=("pair", ratio),
            turned_ratio=("pair", turned),
            orthogonal_ratio=("pair", _identity(*setting.orthogonal)[1]),
            end=("matrix start", ends[:, 0]),
            blind_end=("matrix start", ends[:, 1]),
            time=("gap radius direction", times),
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

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        converged = (observed["critical_gradient"] < CONVERGED).mean(1)
        return [
            assume("‖∇f‖ at the constructed points", observed["gradient"].max(), "<", 1e-12),
            assume("share of searches that converged", converged.min(), ">=", 0.3),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        sizes = [(np.array(levels) ** 2).sum() / 4 for levels in (self.exact, self.over)]
        owner, _ = self.points()
        misses = []
        excesses = []
        for i in range(2):
            values = predicted["value"][owner == i]
            converged = observed["critical_gradient"][i] < CONVERGED
            away = np.abs(observed["critical_value"][i][converged, None] - values)
            misses.append(away.min(1) / sizes[i])
            excesses.append((observed["end"][i] - values.min()) / sizes[i])
        terms = observed["terms"]
        second = terms[:, 3] - terms[:, :3] @ predicted["identity"]
        times = predicted["ahead"] / predicted["rate"][:, None, None]
        return [
            agreement(
                "value",
                np.abs(observed["value"] - predicted["value"]).max(),
                1e-10,
                label="f at all critical points, largest error",
            ),
            agreement(
                "lowest_curvature",
                np.abs(observed["lowest"] - predicted["lowest"]).max(),
                1e-10,
                label="lowest curvature at all critical points, largest error",
            ),
            agreement(
                "index",
                np.abs(observed["index"] - predicted["index"]).max(),
                0.0,
                label="number of directions that lead down at critical points, largest error",
            ),
            agreement(
                "spectrum",
                np.abs(observed["spectrum"] - predicted["spectrum"]).max(),
                1e-10,
                label="all eigenvalues of the Hessian at all critical points, largest error",
            ),
            agreement(
                "complete",
                np.concatenate(misses).max(),
                1e-10,
                label="critical points that searches find: f − nearest predicted value, relative",
            ),
            *[
                agreement(
                    f"descent_{name}",
                    excess.max(),
                    1e-12,
                    label=f"excess of descent over the best value, {words}",
                )
                for name, words, excess in zip(
                    NAMES, ("rank M = r", "rank M > r"), excesses, strict=True
                )
            ],
            agreement(
                "identity",
                # relative to the largest term
                (np.abs(second) / np.abs(terms).max(1)).max(),
                1e-12,
                label="∇²f[Δ, Δ] − ½‖ΔΔᵀ‖² + (3/2)‖E‖² − 4⟨∇f, Δ⟩, E = XXᵀ − M",
            ),
            bound(
                "lemma",
                observed["ratio"].max(),
                at_most=float(predicted["constant"]),
                label="largest ‖ΔΔᵀ‖²/‖E‖² over random pairs",
            ),
            equal(
                "sharp",
                float(predicted["constant"]),
                observed["orthogonal_ratio"],
                1e-10,
                aggregate="all",
                label="‖ΔΔᵀ‖²/‖E‖² where XᵀU = 0 and XᵀX = UᵀU = cI",
            ),
            equal(
                "escape_time",
                times.ravel(),
                observed["time"].ravel(),
                # descent with η = 0.01/λ_1 is late by η gap/2, 0.3 % at the largest gap
                0.005,
                aggregate="all",
                label="time to leave the saddle at the second eigenvector",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        levels = self.spectra(self.dimension)
        r = self.columns
        owner, used = self.points()
        sets = [(row, chosen) for row in levels for chosen in _sets(row, r)]
        omitted = [np.delete(row, chosen) for row, chosen in sets]
        best = predicted["index"] == 0
        origin = np.where(used == 0, predicted["index"], 0)
        missing = [
            (left_out > 0).sum() * (r - k) for left_out, k in zip(omitted, used, strict=True)
        ]
        top = np.array([left_out.max() for left_out in omitted])
        ends = best | (used == 0)
        few = predicted["value"].copy()
        for matrix in (0, 1):
            own = owner == matrix
            few[own & ~ends] = few[own & best][0]
        geometric = []
        for (row, chosen), spectrum in zip(sets, predicted["spectrum"], strict=True):
            geometric.append(_with_geometric_means(spectrum, row[list(chosen)]))
        return [
            Rival(
                "square_of_sum",
                predicted.replace(
                    value=("point", [left_out.sum() ** 2 / 4 for left_out in omitted])
                ),
                "the omitted part as one number",
                label="f = ¼(Σ_{i∉S} λ_i)²",
            ),
            Rival(
                "saddle_at_origin",
                predicted.replace(index=("point", origin)),
                "the only point where X has no direction",
                label="only the origin is a saddle",
            ),
            Rival(
                "missing_columns",
                predicted.replace(
                    index=("point", missing), lowest=("point", np.where(used < r, -top, 0))
                ),
                "an unused column is the way out; X of full rank has none",
                label="only points of deficient rank are saddles",
            ),
            Rival(
                "largest_omitted",
                predicted.replace(
                    lowest=("point", np.where(best, 0, -top)),
                    rate=("gap", np.array(self.gaps) + 1),
                ),
                "right wherever a column is unused",
                label="λ_min = −max λ_v at every saddle",
            ),
            Rival(
                "geometric_mean",
                predicted.replace(spectrum=("point eigenvalue", geometric)),
                "it is 2λ_u where both are equal",
                label="mixing two columns costs 2√(λ_u λ_u')",
            ),
            Rival(
                "no_others",
                predicted.replace(value=("point", few)),
                "a landscape without spurious minima need not have these saddles",
                label="only the origin and the best are critical",
            ),
            Rival(
                "two_for_three",
                predicted.replace(identity=("term", [0.5, -1.0, 4.0])),
                "then the lemma's 2 would be just what is needed",
                label="½‖ΔΔᵀ‖² − ‖E‖² + 4⟨∇f, Δ⟩",
            ),
            Rival(
                "local_constant",
                predicted.replace(constant=1 / (2 * (np.sqrt(2) - 1))),
                "the constant of the lemma for ‖Δ‖² σ_r(M) (Tu et al. 2016)",
                label="‖ΔΔᵀ‖² ≤ 1.207 ‖E‖²",
            ),
            Rival(
                "three",
                predicted.replace(constant=3.0),
                "as much as the proof can bear",
                label="the lemma's constant is 3",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "blind_starts",
                observed.replace(end=("matrix start", observed["blind_end"])),
                "they lie on the stable set of a saddle",
                label="starts without the first eigenvector",
            ),
            Control(
                "another_root",
                observed.replace(ratio=("pair", observed["turned_ratio"])),
                "the lemma is about the nearest root",
                label="Δ to a root that is not the nearest",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        owner, _ = self.points()
        over = owner == 1
        values = predicted["value"][over]
        rank = np.argsort(values, kind="stable")
        place = np.arange(rank.size)
        lowest = observed["lowest"][over][rank]
        top = np.array([np.delete(self.over, c).max() for c in _sets(self.over, self.columns)])
        converged = observed["critical_gradient"][1] < CONVERGED
        levels = np.unique(np.round(values, 9))
        counts = [
            (np.abs(observed["critical_value"][1][converged] - level) < 1e-6).sum()
            for level in levels
        ]
        away = 1 / np.array(self.radii)
        times = observed["time"].mean(-1)
        predictions = predicted["ahead"].mean(-1)
        ladder = [
            curve
            for i, gap in enumerate(self.gaps)
            for curve in (
                observed_curve(
                    away,
                    times[i],
                    f"gap {gap:g}",
                    kind="points",
                    shade=i / max(1, len(self.gaps) - 1),
                ),
                predicted_curve(away, predictions / gap, "log(1/radius)/gap" if not i else ""),
            )
        ]
        random = np.sort(observed["ratio"])
        return (
            panel(
                "Each critical point but the best has negative curvature",
                "critical points, best first",
                "lowest eigenvalue of the Hessian",
                observed_curve(place, lowest, "automatic differentiation", kind="points"),
                predicted_curve(place, predicted["lowest"][over][rank], "predicted"),
                rival_curve(
                    place,
                    np.where(predicted["index"][over] == 0, 0, -top)[rank],
                    "−max λ_v, even where |S| = r",
                ),
            ),
            panel(
                "Searches find critical points at predicted values only",
                "f",
                "searches",
                observed_curve(levels, counts, "searches that end there", kind="points"),
                context_curve(values, 0 * values, "predicted values", kind="points"),
            ),
            panel(
                "Ge's constant 2 is sharp",
                "‖ΔΔᵀ‖² / ‖XXᵀ − M‖²",
                "share of pairs below",
                observed_curve(
                    random, np.linspace(0, 1, random.size), "random pairs", kind="steps"
                ),
                observed_curve(
                    np.sort(observed["orthogonal_ratio"]),
                    np.linspace(0, 1, random.size),
                    "XᵀU = 0, XᵀX = UᵀU = cI",
                    shade=0.7,
                ),
                predicted_curve((2, 2), (0, 1), "2"),
                rival_curve((1.207, 1.207), (0, 1), "1.207"),
            ),
            panel(
                "Time to leave a saddle",
                "1 / distance of the start",
                "time",
                *ladder,
                log="xy",
            ),
        )


def _sets(levels: np.ndarray | tuple[float, ...], columns: int) -> list[tuple[int, ...]]:
    """Return all sets S of at most r positive eigenvalues, in the order of theory."""
    return [point.chosen for point in factorization_points(levels, columns)]


def _identity(x: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the terms of Ge's identity at pairs of X and U, and the lemma's ratio for two roots.

    Returns:
        ``(terms, ratio, turned)``: ``‖ΔΔᵀ‖²``, ``‖E‖²``, ``⟨∇f, Δ⟩`` and ``∇²f[Δ, Δ]``, shape ``(pairs, 4)``, by the
        definitions; ``‖ΔΔᵀ‖²/‖E‖²`` with the nearest root, and with U as it comes, ``(pairs,)``.
    """
    delta = x - nearest_root(x, root)
    transposed = lambda a: np.swapaxes(a, -1, -2)
    squared = lambda a: (a**2).sum((-2, -1))
    residual = x @ transposed(x) - root @ transposed(root)
    cross = x @ transposed(delta)
    outer = delta @ transposed(delta)
    slope = (residual @ x * delta).sum((-2, -1))
    second = squared(cross + transposed(cross)) / 2 + (residual * outer).sum((-2, -1))
    terms = np.stack([squared(outer), squared(residual), slope, second], -1)
    other = x - root
    turned = squared(other @ transposed(other)) / squared(residual)
    return terms, squared(outer) / squared(residual), turned


def _with_geometric_means(spectrum: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return a spectrum with 2√(λ_u λ_u') for each λ_u + λ_u', sorted."""
    changed = list(spectrum)
    for i, first in enumerate(used):
        for second in used[i + 1 :]:
            nearest = int(np.argmin(np.abs(np.array(changed) - (first + second))))
            changed[nearest] = 2 * np.sqrt(first * second)
    return np.sort(changed)
