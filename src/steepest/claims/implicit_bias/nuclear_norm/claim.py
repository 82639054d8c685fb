"""Descent on UUᵀ from tiny starts finds the least nuclear norm if the measurements commute.

It also finds the fit of least nuclear norm if the measurements suffice for this fit to be the low-rank truth. With
fewer measurements it still mostly finds the truth of low rank. Gradient flow on the squared loss of linear measurements
of W = UUᵀ, U square and of full rank, starts at U = αI. If the measurements commute, its limit is known at every α, and
a theorem says that it tends to the fit of least nuclear norm as α → 0. For other measurements the limit is observed to
do so where this fit is the low-rank truth. Where the program of least nuclear norm misses the truth, the flow finds the
truth in seven problems of eight.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import FlowSolver, flow
from steepest.nn.losses import mean_risk, squared
from steepest.nn.types import Values
from steepest.programs import NuclearInterpolation, commuting_limit, nuclear_norm_interpolation

TRIES = 60  # draws of few measurements: the first is taken where the program misses the truth
MISSED = 0.05  # relative distance from the truth that counts as missed
NEAR = 0.02  # part of its least eigenvalue by which the exact law may still be off its limit
PRECISION = (
    1e-8  # absolute tolerance of the flow, over the least α; U is read from 10⁴ times that on
)
# A commuting flow stops at this risk. All of them do: a stiff method takes a few dozen steps a decade of time, however
# slow the flow is.
COMMUTING_FLOOR = 1e-18
COMMUTING_HORIZON = 40.0  # log(1 + t): not even a rate of 10⁻¹⁵ needs longer
SUFFICIENT = ("Gaussian", "completion")
MATRIX = ("row", "column")
_program = partial(nuclear_norm_interpolation, semidefinite=True)


class Problem(NamedTuple):
    """One or several problems: measurements, filled up with zeros to one number of them."""

    a: Values  # A_i, symmetric, (…, m, d, d)
    y: Values  # ⟨A_i, truth⟩, (…, m)
    truth: Values  # (…, d, d)


class Setting(NamedTuple):
    """Problems of every family, with the programs of the first two."""

    commuting: Problem  # (seed, …), diagonal: in the coordinates of the common eigenvectors
    sufficient: Problem  # (family, seed, …)
    few: Problem  # (draw, …)
    commuting_programs: list[NuclearInterpolation]
    sufficient_programs: list[list[NuclearInterpolation]]
    few_programs: list[NuclearInterpolation]


@kit.claim
class NuclearNorm(kit.Claim[Setting]):
    """Random measurements of matrices of Frobenius norm one; the truth has rank one unless measurements commute."""

    alphas: tuple[kit.Positive, ...] = kit.param(
        (1e-10, 1e-8, 1e-6, 0.3),
        "α, scales of the start, three or more, rising; exponents are fitted to the first three",
        scope=kit.choices(
            (1e-10, 1e-8, 1e-6, 0.3),
            (1e-10, 1e-9, 1e-7, 0.2),
            why="from 10⁻⁸ on fewer problems of few measurements end at the truth",
        ),
    )
    dimension: kit.Count = kit.param(
        8,
        "d, rows of the square matrices",
        scope=kit.choices(8, why="how many measurements suffice, or are few, depends on it"),
    )
    commuting: kit.Count = kit.param(
        4, "measurements with common eigenvectors", scope=kit.between(3, 5)
    )
    gaussian: kit.Count = kit.param(
        20,
        "Gaussian measurements, enough for the program to find the truth",
        scope=kit.between(20, 24),
    )
    entries: kit.Count = kit.param(
        26,
        "entries seen of a symmetric matrix, mirrored pairs counted once",
        scope=kit.between(26, 30, "with fewer the program itself may miss the truth"),
    )
    few: kit.Count = kit.param(
        13,
        "Gaussian measurements, drawn until the program misses the truth",
        scope=kit.choices(13, why="the share depends on it: at 14 it is five in six"),
    )
    twist: kit.NonNegative = kit.param(
        0.0, "entries' spread of what is added to the commuting measurements"
    )
    seeds: kit.Seeds = kit.param(6, "problems of each family, but of few measurements")
    draws: kit.Seeds = kit.param(128, "problems of few measurements")
    floor: kit.Positive = kit.param(
        4e-9, "risk at which the flow stops, unless measurements commute: then at 1e-18"
    )
    horizon: kit.Positive = kit.param(
        13.0, "longest log(1 + t) of the flow, unless measurements commute: then none is as long"
    )

    kind = "empirical law"
    says = {
        "finds the least nuclear norm if the measurements commute": (
            "exact_limit",
            "commuting",
            "slope",
        ),
        "if the measurements suffice": "enough",
        "mostly finds the truth of low rank": "few_truth",
    }
    tiny = {
        "alphas": (1e-3, 1e-2, 0.1),
        "dimension": 3,
        "commuting": 2,
        "gaussian": 5,
        "entries": 5,
        "few": 2,
        "seeds": 3,
        "draws": 6,
    }
    full = {"seeds": 20, "draws": 400, "floor": 2e-10, "horizon": 15.0}
    out_of_scope = {"twist": 0.3}

    @property
    def tolerance(self) -> float:
        """Absolute tolerance of the flow."""
        return PRECISION * min(self.alphas)

    @property
    def most(self) -> int:
        """Return to how many the measurements of all families that do not commute are filled up."""
        return max(self.gaussian, self.entries, self.few)

    def axes(self):
        places = tuple(range(self.dimension))
        return {"alpha": self.alphas, "family": SUFFICIENT, "row": places, "column": places}

    # ------------------------------------------------------------------------------------------- problems

    def setting(self, key):
        rng = kit.numpy_generator(key)
        commuting = [self.commuting_problem(rng) for _ in range(self.seeds)]
        sufficient = [
            [draw(rng) for _ in range(self.seeds)]
            for draw in (self.gaussian_problem, self.completion)
        ]
        few, programs = zip(*(self.missed_problem(rng) for _ in range(self.draws)), strict=True)
        return Setting(
            _stacked(commuting),
            _stacked([_stacked(family) for family in sufficient]),
            _stacked(few),
            [_program(problem.a, problem.y) for problem in commuting],
            [[_program(problem.a, problem.y) for problem in family] for family in sufficient],
            list(programs),
        )

    def commuting_problem(self, rng: np.random.Generator) -> Problem:
        """Draw diagonal measurements of a diagonal matrix, with the twist that ends it."""
        d = self.dimension
        values = np.linalg.qr(rng.standard_normal((d, self.commuting)))[0].T
        added = _symmetric(rng, self.commuting, d)
        return _measured(
            values[:, :, None] * np.eye(d) + self.twist * added,
            np.diag(np.exp(rng.standard_normal(d))),
            self.commuting,
        )

    def gaussian_problem(self, rng: np.random.Generator) -> Problem:
        """Draw Gaussian measurements of a matrix of rank one, enough of them."""
        return self.measured_by_normals(rng, self.gaussian, rng.standard_normal(self.dimension))

    def measured_by_normals(self, rng: np.random.Generator, count: int, vector: Values) -> Problem:
        """Draw Gaussian measurements of a matrix of rank one."""
        a = _orthonormal(_symmetric(rng, count, self.dimension))
        return _measured(a, np.outer(vector, vector), self.most)

    def completion(self, rng: np.random.Generator) -> Problem:
        """Draw entries that are seen of a matrix of rank one; it is incoherent: none of its entries is small."""
        d = self.dimension
        vector = rng.standard_normal(d)
        vector += np.sign(vector)
        chosen = rng.permutation(np.argwhere(np.tri(d)))[: self.entries]
        a = np.zeros((len(chosen), d, d))
        a[np.arange(len(chosen)), *chosen.T] = 1.0
        return _measured((a + a.swapaxes(1, 2)) / 2, np.outer(vector, vector), self.most)

    def missed_problem(self, rng: np.random.Generator) -> tuple[Problem, NuclearInterpolation]:
        """Draw few measurements until the program misses the truth, at most ``TRIES`` times."""
        vector = rng.standard_normal(self.dimension)
        for _ in range(TRIES):
            problem = self.measured_by_normals(rng, self.few, vector)
            program = _program(problem.a[: self.few], problem.y[: self.few])
            if np.linalg.norm(program.matrix - problem.truth) > MISSED:
                break
        return problem, program

    def hypotheses(self, setting):
        a = setting.commuting.a
        products = np.einsum("smij,snjk->smnik", a, a)
        apart = float(np.abs(products - products.swapaxes(1, 2)).max())
        away = lambda programs, truth: np.linalg.norm(_matrices(programs) - truth, axis=(-2, -1))
        sufficient = [program for family in setting.sufficient_programs for program in family]
        truth = setting.sufficient.truth.reshape(-1, self.dimension, self.dimension)
        yield kit.assume("largest entry of a commutator", apart, "<=", 1e-10, "choose --twist 0")
        yield kit.assume(
            "distance of the program from the truth",
            away(sufficient, truth).max(),
            "<=",
            1e-4,
            "raise --gaussian or --entries",
        )
        yield kit.assume(
            "least such distance with few measurements",
            away(setting.few_programs, setting.few.truth).min(),
            ">=",
            MISSED,
            "lower --few",
        )
        yield kit.assume(
            "least sine that proves the program's minimizer unique",
            min(program.uniqueness for program in sufficient),
            ">=",
            1e-3,
            "raise --entries",
        )

    # --------------------------------------------------------------------------- theory and experiment

    def predict(self, setting):
        diagonal = partial(np.diagonal, axis1=-2, axis2=-1)
        pairs = list(zip(setting.commuting.a, setting.commuting.y, strict=True))
        exact = [[commuting_limit(a, y, alpha) for alpha in self.alphas] for a, y in pairs]
        duals = [
            np.tensordot(program.dual, a, 1)
            for program, (a, _) in zip(setting.commuting_programs, pairs, strict=True)
        ]
        return kit.law(
            # eigenvalues, as the flow stays on the common eigenvectors
            exact=("seed alpha row", diagonal(exact)),
            limit=("seed row", diagonal(_matrices(setting.commuting_programs))),
            # w_i = α² e^{s_i} with s_i ≈ 2ν_i log(1/α): the dual ν is one on the support
            slope=("seed row", 2 * (1 - diagonal(duals))),
            enough=(
                "family seed row column",
                [_matrices(family) for family in setting.sufficient_programs],
            ),
            low_rank=("draw row column", setting.few.truth),
            low_norm=("draw row column", _matrices(setting.few_programs)),
            found=7 / 8,
            found_program=0.0,
        )

    def observe(self, setting, key):
        alphas = np.array(self.alphas)
        ends = np.array([self.alphas[0], self.alphas[-1]])
        parts = (
            _lanes(setting.commuting, alphas),
            _lanes(setting.sufficient, alphas),
            _lanes(setting.few, ends),
        )
        fast = [np.concatenate(pair) for pair in zip(*parts[1:], strict=True)]
        commuting, faster = map(np.asarray, kit.compiled(self.follow)(parts[0], tuple(fast)))
        cut = len(parts[1][0])
        d = self.dimension
        u = [
            commuting.reshape(self.seeds, len(alphas), d, d),
            faster[:cut].reshape(len(SUFFICIENT), self.seeds, len(alphas), d, d),
            faster[cut:].reshape(self.draws, 2, d, d),
        ]
        residuals = [
            _residuals(problem, w) for problem, w in zip(setting[:3], map(_square, u), strict=True)
        ]
        off = u[0] * (1 - np.eye(d))
        return kit.seen(
            # from U, not from W, where rounding would drown what is below 1e-16
            eigenvalues=("seed alpha row", np.diagonal(u[0], axis1=-2, axis2=-1) ** 2),
            off_diagonal=("seed alpha row column", off),
            sufficient=("family seed alpha row column", _square(u[1])),
            few=("draw row column", _square(u[2][:, 0])),
            few_large=("draw row column", _square(u[2][:, 1])),
            commuting_residual=("seed alpha", residuals[0]),
            sufficient_residual=("family seed alpha", residuals[1]),
            few_residual=("draw", residuals[2][:, 0]),
        )

    def follow(
        self, commuting: tuple[jax.Array, ...], others: tuple[jax.Array, ...]
    ) -> list[jax.Array]:
        """Return the ends U of all flows, ``(lanes, d, d)``."""
        slow = partial(self.end, solver="stiff", floor=COMMUTING_FLOOR, horizon=COMMUTING_HORIZON)
        fast = partial(self.end, solver="explicit", floor=self.floor, horizon=self.horizon)
        # One after the other, not mapped: some take 50 times as many steps as others, for which all would wait.
        return [jax.lax.map(slow, commuting), jax.lax.map(fast, others)]

    def end(
        self, lane: tuple[jax.Array, ...], solver: FlowSolver, floor: float, horizon: float
    ) -> jax.Array:
        """Return where the flow of one problem ends from one start, ``(d, d)``."""
        a, y, alpha = lane
        risk = mean_risk(squared, lambda u, a: jnp.tensordot(a, u @ u.T, 2), a, y)
        return flow(
            risk,
            alpha * jnp.eye(self.dimension),
            jnp.array([horizon]),
            clock="log",
            rtol=1e-7,
            atol=self.tolerance,
            solver=solver,
            floor=floor,
        ).params

    def run_conditions(self, observed):
        limits = {"commuting": 1e-6, "sufficient": 5e-3, "few": 5e-3}
        yield kit.assume(
            "largest entry of U off the diagonal", abs(observed["off_diagonal"]).max(), "==", 0
        )
        yield from (
            kit.assume(
                f"largest relative residual, {name}",
                observed[f"{name}_residual"].max(),
                "<=",
                limit,
                "raise --horizon",
            )
            for name, limit in limits.items()
        )

    # -------------------------------------------------------------------------------------------- verdict

    def derive(self, law, seen):
        """Return distances from the laws, exponents over the three smallest α, and which of them can be read."""
        logs = np.log(np.maximum(seen.eigenvalues.isel(alpha=slice(3)), 1e-300))
        x = np.log(self.alphas[:3])
        weights = xarray.DataArray((x - x.mean()) / ((x - x.mean()) ** 2).sum(), dims="alpha")
        least = law.limit.where(law.limit > 1e-6, np.inf).min("row")
        third = law.exact.isel(alpha=2, drop=True)
        moved = np.sqrt(((third - law.limit) ** 2).sum("row")) / least
        near = (moved <= NEAR) | (moved == moved.min())
        # The theory's choice: off the support, near the limit, of a size of U that the flow resolves.
        readable = (law.slope > 2e-5) & (self.alphas[0] ** (law.slope / 2) >= 1e4 * self.tolerance)
        slopes = (logs.drop_vars("alpha") * weights).sum("alpha")
        return {
            "off_exact": _apart(seen.eigenvalues, law.exact, ("row",)),
            "near": near,
            "slopes": slopes,
            "counted": near & readable,
            "off_limit": _apart(seen.eigenvalues[:, 0], law.limit, ("row",)).where(near, 0.0),
            "off_slope": abs(slopes - law.slope).where(near & readable, 0.0),
            "off_enough": _apart(seen.sufficient, law.enough),
            "at_truth": _apart(seen.few, law.low_rank) <= MISSED / 2,
            "at_program": _apart(seen.few, law.low_norm) <= MISSED / 2,
        }

    def judge(self, law, seen):
        least = f"α = {self.alphas[0]:g}"
        yield kit.agrees(
            "exact_limit",
            seen.off_exact,
            1e-5,  # a thousand steps of 1e-7 each, in part averaged out, over gaps of the fit
            label="commuting: distance to the exact limit, at every α",
        )
        yield kit.agrees(
            "commuting",
            seen.off_limit,
            NEAR,
            note=f"{int(seen.near.sum())} problems whose exact law is near its limit",
            label=f"commuting: distance to least nuclear norm at {least}",
        )
        yield kit.agrees(
            "slope",
            seen.off_slope,
            # 2 % off the limit, over 4 decades of α, is 0.002 times a condition number
            0.02,
            note=f"slopes over the three smallest α, of {int(seen.counted.sum())} that can be read",
            label="commuting: error of the exponents 2(1 − z) of eigenvalues",
        )
        yield kit.agrees(
            "enough",
            seen.off_enough.isel(alpha=0),
            5e-3,  # the flow stops at a relative residual of 1e-3
            label=f"Gaussian and completion: distance to least nuclear norm at {least}",
        )
        # The two limits are MISSED apart at least: nothing is within half of MISSED of both.
        yield kit.share(
            "few_truth",
            law.found,
            seen.at_truth,
            0.16,  # the interval is 0.06
            label=f"few: problems that end at the truth of rank one, {least}",
        )
        yield kit.share(
            "few_program",
            law.found_program,
            seen.at_program,
            0.1,
            label=f"few: problems that end at least nuclear norm, {least}",
        )

    def rivals(self, setting, law):
        d = self.dimension

        def least_squares(a: Values, y: Values) -> Values:
            return np.linalg.lstsq(a.reshape(len(a), -1), y)[0].reshape(d, d)

        frobenius = [
            [least_squares(a, y) for a, y in zip(*rows, strict=True)]
            for rows in zip(setting.sufficient.a, setting.sufficient.y, strict=True)
        ]
        # Where starts are tiny both are near the least nuclear norm: the largest one tells them apart.
        nearest = law.exact.copy(deep=True)
        nearest[:, -1] = [
            np.diag(commuting_limit(a, y, self.alphas[-1] ** 0.5))
            for a, y in zip(setting.commuting.a, setting.commuting.y, strict=True)
        ]
        yield kit.rival(
            "least Frobenius norm",
            "it is the law of descent on W itself",
            id="frobenius",
            enough=("family seed row column", frobenius),
        )
        yield kit.rival("least nuclear norm from every start", "the notes say so", exact=law.limit)
        yield kit.rival(
            "nearest to α in place of α²",
            "the start of U is taken for the start of W",
            exact=nearest,
        )
        yield kit.rival(
            "eigenvalues off the support fall like α²",
            "α² is the size of the start",
            slope=0 * law.slope + 2.0,
        )
        yield kit.rival(
            "least nuclear norm with few measurements too",
            "the notes say so of random measurements",
            id="nuclear_everywhere",
            low_rank=law.low_norm,
        )
        yield kit.rival(
            "with few measurements every other problem ends at the truth",
            "it is neither law's, then",
            id="half",
            found=0.5,
        )
        yield kit.rival(
            "the truth and least nuclear norm agree with few measurements",
            "where the program finds the truth they do",
            id="one_law",
            low_norm=law.low_rank,
        )

    def controls(self, seen):
        flat = lambda name, places: (
            seen[name].dims,
            seen[name].isel(alpha=places).transpose(*seen[name].dims).values,
        )
        count = len(self.alphas)
        yield kit.control(
            "each start's limit in place of the limit of another start",
            "the limit and its exponents depend on the start",
            eigenvalues=flat("eigenvalues", [*range(1, count), 0]),
        )
        yield kit.control(
            f"all from α = {self.alphas[-1]:g}",
            "least nuclear norm, and low rank, are of tiny starts",
            id="large_start",
            eigenvalues=flat("eigenvalues", [count - 1] * count),
            sufficient=flat("sufficient", [count - 1] * count),
            few=seen.few_large,
        )

    def figure(self, law, seen, rivals):
        alphas = np.array(self.alphas)
        mean = lambda array: array.mean("seed").values
        order = slice(None, None, -1)
        sizes = np.linalg.eigvalsh(seen.few.values[0])[order]
        least = np.linalg.eigvalsh(law.low_norm.values[0])[order]
        truth = np.linalg.eigvalsh(law.low_rank.values[0])[order]
        places = np.arange(1, self.dimension + 1)
        apart = [_apart(seen.few, law.low_rank), _apart(seen.few, law.low_norm)]
        met = np.full(2, MISSED / 2)
        reach = np.array([min(map(np.min, apart)), max(map(np.max, apart))], float)
        yield kit.panel(
            "Commuting measurements: small starts end at the least nuclear norm",
            "size of the start, α",
            "distance from least nuclear norm",
            kit.observed_curve(
                alphas, mean(_apart(seen.eigenvalues, law.limit, ("row",))), "flow", kind="points"
            ),
            kit.predicted_curve(alphas, mean(_apart(law.exact, law.limit, ("row",))), "exact law"),
            log="xy",
        )
        yield kit.panel(
            "Enough measurements: flow finds the truth",
            "size of the start, α",
            "distance from the truth",
            *(
                kit.observed_curve(alphas, mean(seen.off_enough[i]), name, shade=float(i))
                for i, name in enumerate(SUFFICIENT)
            ),
            log="xy",
        )
        yield kit.panel(
            "Few measurements: most ends are at the truth, none at the least norm",
            "distance from least nuclear norm",
            "distance from the truth",
            kit.observed_curve(apart[1].values, apart[0].values, "one problem", kind="points"),
            kit.predicted_curve(reach, met, "below: at the truth"),
            kit.rival_curve(met, reach, "left of it: at the least norm"),
            log="xy",
        )
        yield kit.panel(
            "The first of these: its end beside the truth and the least norm",
            "number of the eigenvalue",
            "eigenvalue",
            kit.rival_curve(places, least, "least nuclear norm", kind="points"),
            kit.predicted_curve(places, truth, "truth", kind="points"),
            kit.observed_curve(places, sizes, "flow", kind="points"),
        )


def _apart(
    value: xarray.DataArray, reference: xarray.DataArray, along: tuple[str, ...] = MATRIX
) -> xarray.DataArray:
    """Return ``‖value − reference‖ / ‖reference‖``, in Frobenius' norm."""
    return (((value - reference) ** 2).sum(along) / (reference**2).sum(along)) ** 0.5


def _stacked(problems: "list[Problem] | tuple[Problem, ...]") -> Problem:
    return Problem(*map(np.stack, zip(*problems, strict=True)))


def _measured(a: Values, truth: Values, most: int) -> Problem:
    """Return the problem of some measurements of a truth, scaled to norm one; they are filled up with zeros."""
    truth = truth / np.linalg.norm(truth)
    filled = np.concatenate([a, np.zeros((most - len(a), *truth.shape))])
    return Problem(filled, np.einsum("mij,ij->m", filled, truth), truth)


def _symmetric(rng: np.random.Generator, count: int, d: int) -> Values:
    normals = rng.standard_normal((count, d, d))
    return normals + normals.swapaxes(1, 2)


def _orthonormal(a: Values) -> Values:
    """The same equations by orthonormal measurements, which make a well-conditioned flow."""
    basis = np.linalg.qr(a.reshape(len(a), -1).T)[0].T.reshape(a.shape)
    return (basis + basis.swapaxes(1, 2)) / 2


def _matrices(programs: list[NuclearInterpolation]) -> Values:
    return np.array([program.matrix for program in programs])


def _lanes(problem: Problem, alphas: Values) -> tuple[Values, ...]:
    """Return measurements, targets and scale of every flow along one axis."""
    shape = (*problem.y.shape[:-1], len(alphas))
    parts = ((problem.a[..., None, :, :, :], 3), (problem.y[..., None, :], 1), (alphas, 0))
    lanes = []
    for part, axes in parts:
        of_part = part.shape[part.ndim - axes :]
        lanes.append(np.broadcast_to(part, shape + of_part).reshape(-1, *of_part))
    return tuple(lanes)


def _square(u: Values) -> Values:
    """``UUᵀ`` along the last two axes."""
    return u @ u.swapaxes(-1, -2)


def _residuals(problem: Problem, w: Values) -> Values:
    """Return ‖⟨A_i, W⟩ − y‖/‖y‖ of every start, ``(…, alphas)``."""
    fits = np.einsum("...mij,...aij->...am", problem.a, w)
    misfit = np.linalg.norm(fits - problem.y[..., None, :], axis=-1)
    return misfit / np.linalg.norm(problem.y, axis=-1)[..., None]
