"""Policy gradient descent reaches the Riccati optimum of linear quadratic control.

Its rate of convergence is known from the optimum. Yet the cost is not convex in the feedback. If the initial states
span all directions, the cost C(K) of the feedback u = −Kx has only one critical point. Gradient descent and natural
gradient descent approach this point at rates that the optimum's own matrices give; Gauss–Newton approaches it
quadratically. The costs of rollouts can replace gradients: the noise of their differences vanishes at the optimum too.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jax.typing import ArrayLike
from scipy.linalg import solve_discrete_are, solve_discrete_lyapunov

from steepest import kit
from steepest.claims.descent.lqr_policy_gradient.experiment import (
    METHODS,
    LqrPoint,
    contraction,
    descent,
    leaves_at,
    rollout_descent,
    rollout_gradients,
    step_sizes,
)
from steepest.landscapes import Lqr
from steepest.nn.types import Values

CLOSE = (1e-11, 1e-7)
"""Distances to K* along the slowest direction, relative, over which the decay is fitted."""
CHEAP = (0.001, 0.01, 0.1, 1.0)
"""Costs q of the state in systems of one state, where the gradient dominates the excess least."""
GROWTH = (0.1, 0.3, 0.6, 0.9, 1.0, 1.2)
"""Factors a of those systems, x' = ax + u."""
GAINS = np.linspace(0.2, 0.9, 8)
"""Feedbacks of those systems, in units of a."""
STABLE = (0.2, 0.4, 0.7)
"""Factors a of systems x' = ax + u whose gradient rollouts estimate at K = 0."""
LOST = 1e9
"""Stands for the excess of a system that is not stable any more."""
WAYS = METHODS[:2]
"""Descents whose rates are judged."""
PAIRS = (
    (np.array([[0.0, 10.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [10.0, 0.0]])),
    (
        np.array([[0.0, 0.0, 10.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
        np.array([[0.0, 10.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
    ),
)
"""Closed loops A − BK of two stable feedbacks each, A = B = I."""
ONE_INPUT = (
    (np.array([[1.8, -0.81], [1.0, 0.0]]), np.array([[-1.8, -0.81], [1.0, 0.0]])),
    (np.array([[1.6, -0.64], [1.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 0.0]])),
)
"""The same of one input and two states, whose stable feedbacks are convex: only the first row depends on K."""
TILTS = (-0.9, -0.5, 0.5, 0.9)
"""Off-diagonal entries q of Q = ((1, q), (q, 1)), A = B = R = I, so that the optimum mixes both states."""


class Setting(NamedTuple):
    """Systems, one per seed, with the starts of all descents."""

    systems: Lqr
    starts: Values  # (seed, start, input, state), the first start zero
    lr: Values  # step sizes, (seed, start, method)
    mask: Values  # the sparse feedback's pattern, (input, state)


@kit.claim
class LqrPolicyGradient(kit.Claim[Setting]):
    """Random systems with two inputs, descents by four methods from two starts, and by rollouts."""

    seeds: kit.Seeds = kit.param(10, "random systems")
    states: kit.Count = kit.param(
        4, "n, dimension of the state", scope=kit.between(3, 4, "more take more steps")
    )
    inputs: kit.Count = kit.param(2, "k, dimension of the input", scope=kit.choices(2, 3))
    norm: kit.Positive = kit.param(
        0.95,
        "largest singular value of A",
        scope=kit.between(0.85, 0.95, "below one K = 0 is stable"),
    )
    spanned: kit.Count = kit.param(
        4,
        "dimensions that the first states span",
        scope=kit.choices(4, why="where they do not span all, K* is not found"),
    )
    narrow: kit.Positive = kit.param(
        0.8,
        "standard deviation of the first state's narrowest coordinate, that of the widest being one",
        unit="length",
        scope=kit.between(0.75, 0.9, "narrower ones take more steps"),
    )
    steps: kit.Count = kit.param(2000, "steps of each descent with gradients", unit="steps")
    pairs: kit.Count = kit.param(4000, "pairs of rollouts in all, of an estimated gradient")
    groups: tuple[kit.Count, ...] = kit.param(
        (64, 16, 4), "independent estimates into which the rollouts are divided"
    )
    length: kit.Count = kit.param(30, "states of a rollout")
    radius: Annotated[float, kit.Within(1e-4, 1)] = kit.param(
        0.02,
        "r, size of the perturbation of K",
        scope=kit.between(0.01, 0.03, "the law is for small ones"),
    )
    rollout_steps: kit.Count = kit.param(120, "steps of the descents by rollouts", unit="steps")
    rollout_pairs: kit.Count = kit.param(50, "fresh pairs of rollouts in each of their steps")
    lr: kit.Positive = kit.param(0.02, "η of the diagram; elsewhere 0.7/(‖Σ‖‖M‖) at the start")

    kind = "theorem"
    says = {
        "reaches the Riccati optimum": "arrival",
        "Its rate of convergence is known from the optimum": ("rate", "gauss_newton_order"),
        "the cost is not convex in the feedback": "midpoint_radius",
    }
    tiny = {
        "seeds": 3,
        "states": 3,
        "spanned": 3,
        "steps": 300,
        "pairs": 64,
        "length": 8,
        "rollout_steps": 3,
        "rollout_pairs": 4,
    }
    full = {"seeds": 40, "states": 6, "spanned": 6, "inputs": 3, "steps": 2000, "pairs": 16000}
    out_of_scope = {"spanned": 1}
    point = LqrPoint

    def axes(self):
        return {
            "way": WAYS,
            "descent": METHODS,
            "growth": GROWTH,
            "cost": CHEAP,
            "pair": (2, 3),
            "tilt": TILTS,
            "stable": STABLE,
            "size": tuple(self.pairs // groups for groups in self.groups),
        }

    def setting(self, key):
        weights = np.geomspace(1, self.narrow, self.states)
        root = np.diag(np.where(np.arange(self.states) < self.spanned, weights, 0.0))

        def draw(key: kit.Key) -> tuple[Lqr, jax.Array, jax.Array]:
            for_system, for_start = jax.random.split(key)
            A, B = contraction(for_system, self.states, self.inputs, self.norm)
            eyes = (jnp.eye(self.states), jnp.eye(self.inputs))
            system = Lqr(A, B, *eyes, jnp.asarray(root))
            zero = jnp.zeros((self.inputs, self.states))
            # a random feedback, halved until it costs at most half more than none does
            way = jax.random.normal(for_start, zero.shape)
            scales = 4 * 0.5 ** jnp.arange(12.0)
            cheap = jax.vmap(lambda scale: system.cost(scale * way))(scales) <= 1.5 * system.cost(
                zero
            )
            starts = jnp.stack([zero, scales[jnp.argmax(cheap)] * way])
            return system, starts, jax.vmap(lambda K: step_sizes(system, K))(starts)

        systems, starts, lr = kit.compiled(lambda key: jax.vmap(draw)(kit.keys(key, self.seeds)))(
            key
        )
        inputs = np.arange(self.inputs)[:, None]
        mask = (np.arange(self.states) % self.inputs == inputs).astype(float)
        return Setting(systems, starts, lr, mask)

    def hypotheses(self, setting):
        roots = np.asarray(setting.systems.root)
        lowest = min(np.linalg.eigvalsh(root @ root.T)[0] for root in roots)
        loops = np.asarray(setting.systems.A)[:, None] - np.einsum(
            "snk,sakm->sanm", np.asarray(setting.systems.B), np.asarray(setting.starts)
        )
        radius = np.abs(np.linalg.eigvals(loops)).max()
        yield kit.assume("λ_min(Σ_0)", lowest, ">", 0, "the first states must span all directions")
        yield kit.assume(
            "largest spectral radius at a start", radius, "<", 0.98, "series are summed so far"
        )

    def predict(self, setting):
        systems = [Lqr(*row) for row in zip(*map(np.asarray, setting.systems), strict=True)]
        optima = [_optimum(system) for system in systems]
        lowest = lambda matrices: np.linalg.eigvalsh(matrices)[:, 0]
        curvatures = lowest([curvature for curvature, _ in optima])
        covariances = lowest([covariance for _, covariance in optima])
        slowest = np.stack([curvatures * covariances, curvatures], -1)[:, None]
        sizes = self.pairs / np.array(self.groups)
        return kit.law(
            # decay of K − K* a step along the slowest direction
            rate=("seed start way", -np.log(1 - 2 * np.asarray(setting.lr)[..., :2] * slowest)),
            order=2.0,
            dominance=("growth cost", [[_cheap_factor(a, q) for q in CHEAP] for a in GROWTH]),
            midpoint_radius=("pair", [5.0, 5**0.5]),
            leaves_at=("tilt", [_leaves_at(_tilted(q)) for q in TILTS]),
            error=("seed", [_rollout_error(system) for system in systems]),
            error_decay=("size", sizes**-0.5),
            one_state=("stable", np.full(len(STABLE), 2**0.5)),
            rollout_end=-5.0,  # log₁₀ of (C − C*)/C* at most
        )

    def observe(self, setting, key):
        def run(
            systems: Lqr, starts: jax.Array, lr: jax.Array, key: kit.Key
        ) -> dict[str, jax.Array]:
            split_keys = jax.vmap(jax.random.split)(kit.keys(key, self.seeds))
            return jax.vmap(self.of_system, in_axes=(0, 0, 0, None, 0, 0))(
                systems, starts, lr, setting.mask, split_keys[:, 0], split_keys[:, 1]
            )

        measured = kit.compiled(run)(setting.systems, setting.starts, setting.lr, key)
        arrays = {name: np.asarray(values) for name, values in measured.items()}
        errors = {
            kind: [
                self.errors(estimates, gradient)
                for estimates, gradient in zip(arrays[kind], arrays["gradient"], strict=True)
            ]
            for kind in ("both", "single")
        }
        along = np.abs(arrays["along"]) / arrays["scale"][:, None, None, None]
        stable = lambda excess: np.where(np.isfinite(excess), excess, LOST)
        rollouts = np.swapaxes(arrays["rollout_excess"], 0, 1)
        radii = lambda pairs: ("pair", [_midpoint_radius(*pair) for pair in pairs])
        return kit.seen(
            excess=("seed start descent step", stable(arrays["excess"])),
            along=("seed start way step", along[:, :, : len(WAYS)]),
            dominance=("growth cost gain", self.dominance()),
            midpoint_radius=radii(PAIRS),
            one_input_radius=radii(ONE_INPUT),
            leaves_at=("tilt", [leaves_at(_tilted(q), LOST) for q in TILTS]),
            level_leaves_at=("tilt", [leaves_at(_tilted(0.0), LOST)] * len(TILTS)),
            errors=("seed size", errors["both"]),
            errors_single=("seed size", errors["single"]),
            one_state=("seed stable", arrays["one_state"][..., 0]),
            one_state_single=("seed stable", arrays["one_state"][..., 1]),
            rollout_excess=("sided seed late", stable(rollouts)),
        )

    def of_system(
        self,
        system: Lqr,
        starts: jax.Array,
        lr: jax.Array,
        mask: jax.Array,
        for_estimates: kit.Key,
        for_descents: kit.Key,
    ) -> dict[str, jax.Array]:
        """Run everything on one system."""
        optimum = system.optimum
        methods = np.arange(len(METHODS))

        def descents(start: jax.Array, lr: jax.Array) -> tuple[jax.Array, jax.Array]:
            def one(method: ArrayLike, lr: jax.Array) -> tuple[jax.Array, jax.Array]:
                first = jnp.where(method == 3, mask * start, start)
                path = descent(system, optimum, first, mask, method, lr, self.steps)
                return path.excess / optimum.cost, path.along

            return jax.vmap(one)(methods, lr)

        excess, along = jax.vmap(descents)(starts, lr)
        zero = jnp.zeros_like(starts[0])
        for_system, for_one_state = jax.random.split(for_estimates)
        both, single = rollout_gradients(
            system, zero, for_system, self.pairs, self.length, self.radius
        )
        of_one_state = lambda a: self.one_state(a, for_one_state)
        sizes = (self.rollout_steps, self.rollout_pairs, self.length, self.radius)
        by_rollouts = lambda sided: rollout_descent(system, optimum, for_descents, sided, *sizes)
        return {
            "excess": excess,
            "along": along,
            "scale": jnp.linalg.norm(optimum.feedback),
            "both": both,
            "single": single,
            "gradient": system.gradient(zero),
            "one_state": jax.vmap(of_one_state)(np.array(STABLE)),
            "rollout_excess": jax.vmap(by_rollouts)(np.arange(2)),
        }

    def one_state(self, a: jax.Array, key: kit.Key) -> jax.Array:
        """Return the relative error of ∇C(0) of x' = ax + u by one pair of rollouts, and by one rollout."""
        unit = jnp.ones((1, 1))
        system = Lqr(a * unit, unit, unit, unit, unit)
        estimates = rollout_gradients(system, 0 * unit, key, self.pairs, self.length, self.radius)
        gradient = system.gradient(0 * unit)
        return jnp.array([jnp.sqrt(jnp.mean((e / gradient - 1) ** 2)) for e in estimates])

    def errors(self, estimates: Values, gradient: Values) -> list[float]:
        """Return the relative error of the mean of each size of group, a root mean square over groups."""
        errors = []
        for groups in self.groups:
            size = len(estimates) // groups
            means = estimates[: groups * size].reshape(groups, size, -1).mean(1)
            squares = ((means - gradient.ravel()) ** 2).sum(-1)
            errors.append(float(np.sqrt(squares.mean() / (gradient**2).sum())))
        return errors

    def dominance(self) -> Values:
        """Return (C − C*)/‖∇C‖² of systems x' = ax + u of one state, ``(growth, cost, gain)``."""

        def ratio(a: jax.Array, q: jax.Array, gain: jax.Array) -> jax.Array:
            matrix = lambda number: jnp.reshape(number, (1, 1))
            one = jnp.ones((1, 1))
            system = Lqr(matrix(a), one, matrix(q), one, one)
            K = matrix(gain * a)
            return system.excess(K, system.optimum) / (system.gradient(K) ** 2).sum()

        grid = np.meshgrid(GROWTH, CHEAP, GAINS, indexing="ij")
        flat = kit.compiled(jax.vmap(ratio))(*(np.ravel(axis) for axis in grid))
        return np.asarray(flat).reshape(grid[0].shape)

    def run_conditions(self, observed):
        near = (observed["along"][..., -1] < CLOSE[1] / 10).mean()
        advice = "rates are those near K*; raise --steps"
        yield kit.assume("share of descents that came near K*", near, "==", 1, advice)

    def derive(self, law, seen):
        """Return ends, rates, orders of convergence and pooled errors."""
        newton = seen.excess.sel(descent="gauss_newton", drop=True).isel(step=[1, 2, 3])
        falls = np.log(newton).diff("step")  # the first step is not yet small
        pooled = np.sqrt((seen.errors**2 / law.error_decay**2).mean("size"))
        return {
            "end": seen.excess.isel(descent=slice(None, 3), step=-1, drop=True)
            .drop_vars("descent")
            .rename(descent="exact"),
            "rate": xarray.DataArray(
                _decays(seen.along.values), dims=("seed", "start", "way"), coords={"way": seen.way}
            ),
            "order": falls.isel(step=1) / falls.isel(step=0),
            "pooled": pooled,
            "rollout_end": np.log10(seen.rollout_excess.isel(sided=0, late=-1)),
        }

    def judge(self, law, seen):
        yield kit.agrees("arrival", seen.end, 1e-6, label="(C − C*)/C* at the end of all descents")
        yield kit.follows(
            "midpoint_radius",
            law.midpoint_radius,
            seen.midpoint_radius,
            1e-6,
            label="spectral radius half-way between two stable feedbacks",
        )
        yield kit.follows(
            "star",
            law.leaves_at,
            seen.leaves_at,
            1e-6,
            label="c from which half of the way to K* is not stable",
        )
        yield kit.follows(
            "rate",
            law.rate,
            seen.rate,
            # the fit starts at a distance of 1e-7; other modes may be thousand times larger, and enter squared
            0.001,
            each=True,
            label="rate of K − K* along its slowest direction, of each system",
        )
        yield kit.follows(
            "gauss_newton_order",
            law.order,
            seen.order,
            0.2,  # of two steps: 0.1 in the interval, and 0.06 of the mean in drafts
            absolute=True,
            label="Gauss–Newton: order of C_{t+1} − C* in C_t − C*",
        )
        yield kit.at_most(
            "dominance", law.dominance, seen.dominance, each=True, label="one state: (C − C*)/‖∇C‖²"
        )
        yield from self.judge_rollouts(law, seen)

    def judge_rollouts(self, law, seen):
        """Judge gradients that rollouts estimate, and where descent with them ends."""
        yield kit.follows(
            "rollout_error",
            law.error,
            seen.pooled,
            0.12,  # the interval over systems takes 0.05, their number moves the mean by as much
            label="error of the gradient by m pairs of rollouts, times √m",
        )
        yield kit.power(
            "rollout_exponent",
            law.error_decay,
            seen.errors,
            0.08,
            over="size",
            label="that error against m",
        )
        yield kit.follows(
            "one_state_error",
            law.one_state,
            seen.one_state,
            0.08,  # of 4000 squares of Gaussians a system, 0.03 in the interval; r = 0.02 makes 0.01
            label="one state: error of the gradient by a pair of rollouts",
        )
        yield kit.at_most(
            "rollout_arrival",
            law.rollout_end,
            seen.rollout_end,
            label=f"by {self.rollout_pairs} pairs of rollouts a step: log₁₀ (C − C*)/C* at the end",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "stable feedbacks are a convex set",
            "a cost that descent minimizes",
            midpoint_radius=1.0,
        )
        yield kit.rival(
            "all ways to K* stay in the stable feedbacks",
            "no way to the optimum leads over a mountain",
            leaves_at=LOST + 0 * law.leaves_at,
        )
        yield kit.rival(
            "c = 4/|N*₂₁|",
            "right for large c",
            leaves_at=("tilt", [4 / abs(_loop(_tilted(q))[1, 0]) for q in TILTS]),
        )
        yield from self.rivals_of_rates(setting, law)
        yield kit.rival(
            "‖Σ_0‖ in place of ‖Σ*‖",
            "the starts' covariance is what is given",
            dominance=0 * law.dominance + 0.25,
        )
        yield kit.rival(
            "a constant of dominance that is a tenth smaller",
            "bounds have slack",
            dominance=law.dominance / 1.1,
        )
        yield from self.rivals_of_rollouts(law)

    def rivals_of_rates(self, setting, law):
        """Return wrong theories of how fast descents converge."""
        lr = np.asarray(setting.lr)
        rate = law.rate.values
        lowest = 1 - np.exp(-rate[..., 0])  # 2η σ_min(Σ*) σ_min(M*)
        systems = [Lqr(*row) for row in zip(*map(np.asarray, setting.systems), strict=True)]
        covariances = np.array([[np.linalg.eigvalsh(_optimum(system)[1])[0]] for system in systems])
        of_start = lowest / covariances * min(self.narrow, 1.0) ** 2
        way = lambda gradient, natural: ("seed start way", np.stack([gradient, natural], -1))
        yield kit.rival(
            "gradient: σ_min(Σ_0) in place of σ_min(Σ*)",
            "Σ* ≥ Σ_0, which the paper's bounds use",
            id="covariance_of_start",
            rate=way(-np.log(1 - of_start), rate[..., 1]),
        )
        yield kit.rival(
            "natural: σ_min(R) in place of σ_min(M*)",
            "M* ≥ R, as in the paper's bound",
            rate=way(rate[..., 0], -np.log(1 - 2 * lr[..., 1])),
        )
        yield kit.rival("∇C = EΣ", "a gradient without the factor 2", rate=law.rate / 2)
        yield kit.rival(
            "the rate is 2ησσ, without its logarithm",
            "right for small steps",
            id="first_order",
            rate=1 - np.exp(-law.rate),
        )
        yield kit.rival(
            "Gauss–Newton converges linearly", "the theorem promises a factor a step", order=1.0
        )

    def rivals_of_rollouts(self, law):
        """Return wrong theories of the error of gradients that rollouts estimate."""
        count = self.states * self.inputs
        yield kit.rival(
            "error of exact costs, √((kn − 1)/m)",
            "exact costs in random directions",
            error=0 * law.error + (count - 1) ** 0.5,
            one_state=0 * law.one_state + 1e-3,  # none at all; a law of zero has no ratio
        )
        yield kit.rival(
            "error of rollouts √(D E‖G‖²/(m‖∇C‖²)), without − 1",
            "what is drawn has this square",
            error=np.sqrt(law.error**2 + 1),
            one_state=0 * law.one_state + 3**0.5,
        )
        yield kit.rival(
            "error of rollouts ∝ m^−¼",
            "r must shrink with the number of rollouts, were they single",
            error_decay=law.error_decay**0.5,
        )

    def controls(self, seen):
        sparse = seen.excess.sel(descent="sparse", drop=True)
        natural = seen.excess.sel(descent="natural", drop=True)
        yield kit.control(
            "feedbacks of which each input sees a part of the states",
            "K* is not sparse",
            id="sparse",
            excess=sparse,
        )
        yield kit.control(
            "natural gradient steps in place of the others",
            "it converges linearly, and at a rate of its own",
            excess=natural,
            along=seen.along.sel(way="natural", drop=True),
        )
        yield kit.control(
            "systems of one input and two states",
            "with one input and two states the stable feedbacks are a triangle",
            midpoint_radius=seen.one_input_radius,
        )
        yield kit.control(
            "costs that do not mix the two states",
            "K* is a multiple of one, and half of the way the loop is triangular",
            leaves_at=seen.level_leaves_at,
        )
        yield kit.control(
            "single rollouts in place of differences",
            "the cost itself, not its change, is in the noise",
            errors=seen.errors_single,
            one_state=seen.one_state_single,
            rollout_excess=(seen.rollout_excess.dims, seen.rollout_excess.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        steps = np.arange(self.steps + 1)
        positive = lambda values: np.where(values > 1e-32, values, np.nan)
        excess = positive(seen.excess[:, 0].values)[..., :200]
        along = seen.along[:, 0, 0].values
        last = -np.log(CLOSE[1]) / law.rate[:, 0, 0].values
        scaled = np.linspace(0, 4, 41)
        curves = [
            np.interp(scaled, steps / end, np.log10(positive(path)))
            for end, path in zip(last / 2, along, strict=True)
        ]
        late = [curve - curve[20] for curve in curves]
        slope = np.log10(CLOSE[1]) / 2 * (scaled - scaled[20])
        rollout = positive(seen.rollout_excess.values)
        t = np.arange(self.rollout_steps + 1)
        descents = [
            kit.observed_curve(steps[:200], excess[:, i], name.replace("_", "–"), shade=i / 3)
            for i, name in enumerate(METHODS)
        ]
        yield kit.panel(
            "Sparse feedbacks stop above the optimum",
            "step",
            "(C − C*)/C*",
            *descents,
            log="y",
            ylim=(1e-16, 10),
        )
        yield kit.panel(
            "Gradient descent decays as predicted",
            "step × predicted rate / 8.1",
            "log₁₀, slowest part of K − K*",
            kit.observed_curve(scaled, late),
            kit.predicted_curve(scaled, slope, "predicted"),
            kit.rival_curve(scaled, slope / 2, "∇C = EΣ"),
        )
        yield self.errors_panel(law, seen)
        yield kit.panel(
            f"Descent by {self.rollout_pairs} pairs of rollouts a step",
            "step",
            "(C − C*)/C*",
            kit.observed_curve(t, rollout[0], "differences"),
            kit.observed_curve(t, rollout[1], "single rollouts", shade=1.0),
            log="y",
            ylim=(1e-10, 1e3),
        )

    def errors_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw the error of gradients by rollouts over their number."""
        sizes = law["size"].values
        single = seen.errors_single / law.error
        return kit.panel(
            "Gradients by rollouts: error as predicted",
            "pairs of rollouts m",
            "relative error / constant",
            kit.observed_curve(sizes, seen.errors / law.error, "differences", kind="points"),
            kit.observed_curve(sizes, single, "single rollouts", kind="points", shade=1.0),
            kit.predicted_curve(sizes, sizes**-0.5, "1/√m"),
            log="xy",
        )


def _optimum(system: Lqr) -> tuple[Values, Values]:
    """Return M* and Σ*, by SciPy."""
    A, B, Q, R, root = system
    value = solve_discrete_are(A, B, Q, R)
    curvature = R + B.T @ value @ B
    return curvature, solve_discrete_lyapunov(_loop(system), root @ root.T)


def _loop(system: Lqr) -> Values:
    """Return N* = A − BK*, by SciPy."""
    A, B, Q, R, _ = system
    value = solve_discrete_are(A, B, Q, R)
    return A - B @ np.linalg.solve(R + B.T @ value @ B, B.T @ value @ A)


def _tilted(tilt: float) -> Lqr:
    """Return the system of two states with A = B = R = I and Q = ((1, q), (q, 1))."""
    eye = jnp.eye(2)
    return Lqr(eye, eye, eye + tilt * (1 - eye), eye, eye)


def _leaves_at(system: Lqr) -> float:
    """Return the least c > 0 at which the mean of ((0, c), (0, 0)) and N* has an eigenvalue of modulus one.

    With trace t and determinant d(c) = (det N* − N*₂₁ c)/4 that is 1 − t + d = 0 where N*₂₁ > 0, and d = 1 where N*₂₁
    < 0, as the eigenvalues are then a pair of complex ones.
    """
    loop = _loop(system)
    trace = np.trace(loop) / 2
    determinant = trace - 1 if loop[1, 0] > 0 else 1.0
    return float((np.linalg.det(loop) - 4 * determinant) / loop[1, 0])


def _rollout_error(system: Lqr) -> float:
    """Return √m times the relative error of ∇C(0) from m differences of rollouts, for r → 0 and long rollouts.

    A rollout's cost has the gradient G with entries x_0ᵀN x_0, N = Σ_t (Aᵗ)ᵀ X Aᵗ, X the symmetric part of 2Eᵢᵀeⱼᵀ.
    With x_0 ~ N(0, Σ_0) is E G² = (tr NΣ_0)² + 2 tr(NΣ_0)², and the estimate (D/r²)⟨G, U⟩U, U uniform on the sphere of
    radius r, has the variance D E‖G‖² − ‖∇C‖².
    """
    A, B, Q, _, root = system
    value = solve_discrete_lyapunov(A.T, Q)
    residual = -B.T @ value @ A  # E = (R + BᵀPB)K − BᵀPA at K = 0
    squares = 0.0
    true = 0.0
    for row in residual:
        for unit in np.eye(len(A)):
            outer = np.outer(2 * row, unit)
            weights = solve_discrete_lyapunov(A.T, (outer + outer.T) / 2) @ root @ root.T
            squares += np.trace(weights) ** 2 + 2 * np.trace(weights @ weights)
            true += np.trace(weights) ** 2
    return float(np.sqrt(residual.size * squares / true - 1))


def _cheap_factor(a: float, q: float) -> float:
    """Return ‖Σ*‖/(4μ²σ_min(R)) of x' = ax + u with the cost q x² + u²; P solves P² + (1 − a² − q)P − q = 0."""
    middle = (a**2 + q - 1) / 2
    value = middle + np.sqrt(middle**2 + q)
    # Σ* = 1/(1 − N*²) with N* = a/(1 + P)
    return 1 / (4 * (1 - (a / (1 + value)) ** 2))


def _decays(along: Values) -> Values:
    """Return the rate at which each distance falls, fitted over ``CLOSE``; along all axes but the last.

    It is no number where the distance does not fall so far.
    """
    rates = np.full(along.shape[:-1], np.nan)
    for where in np.ndindex(rates.shape):
        path = along[where]
        with np.errstate(invalid="ignore"):
            steps = np.flatnonzero((path > CLOSE[0]) & (path < CLOSE[1]))
        if len(steps) > 2:
            rates[where] = -np.polyfit(steps, np.log(path[steps]), 1)[0]
    return rates


def _midpoint_radius(first: Values, second: Values) -> float:
    """Return the spectral radius of A − BK half-way between two nilpotent ones, A = B = I."""
    feedbacks = [np.eye(len(loop)) - loop for loop in (first, second)]
    loop = np.eye(len(first)) - np.mean(feedbacks, axis=0)
    return float(np.abs(np.linalg.eigvals(loop)).max())
