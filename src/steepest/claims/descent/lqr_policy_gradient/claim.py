"""Policy gradient descent reaches the Riccati optimum of linear quadratic control.

Its rate of convergence is known from the optimum. If the initial states span all directions, the cost C(K) of the
feedback u = −Kx has only one critical point. Gradient descent and natural gradient descent approach this point at rates
that the optimum's own matrices give; Gauss–Newton approaches it quadratically.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from jax.typing import ArrayLike
from scipy.linalg import solve_discrete_lyapunov

from steepest import kit
from steepest.claims.descent._lqr import RandomSystems, drawn, riccati
from steepest.claims.descent.lqr_policy_gradient.experiment import (
    METHODS,
    LqrPoint,
    descent,
    step_sizes,
)
from steepest.landscapes import Lqr
from steepest.nn.types import Values

CLOSE = (1e-11, 1e-7)
"""Distances to K* along the slowest direction, relative, over which the decay is fitted."""
LOST = 1e9
"""Stands for the excess of a system that is not stable any more."""
WAYS = METHODS[:2]
"""Descents whose rates are judged."""


class Setting(NamedTuple):
    """Systems, one per seed, with the starts of all descents."""

    systems: Lqr
    starts: Values  # (seed, start, input, state), the first start zero
    lr: Values  # step sizes, (seed, start, method)
    mask: Values  # the sparse feedback's pattern, (input, state)


@kit.claim
class LqrPolicyGradient(RandomSystems[Setting]):
    """Random systems with two inputs, descents by four methods from two starts."""

    spanned: kit.Count = kit.param(
        4,
        "dimensions that the first states span",
        scope=kit.choices(4, why="where they do not span all, K* is not found"),
    )
    narrow: kit.Positive = kit.param(
        0.8,
        "standard deviation of the first state's narrowest coordinate; the widest has 1",
        unit="length",
        scope=kit.between(0.75, 0.9, "narrower ones take more steps"),
    )
    steps: kit.Count = kit.param(2000, "steps of each descent", unit="steps")
    lr: kit.Positive = kit.param(0.02, "η of the diagram; elsewhere 0.7/(‖Σ‖‖M‖) at the start")

    kind = "theorem"
    says = {
        "reaches the Riccati optimum": "arrival",
        "Its rate of convergence is known from the optimum": ("rate", "gauss_newton_order"),
    }
    tiny = {"seeds": 3, "states": 3, "spanned": 3, "steps": 300}
    full = {"seeds": 40, "states": 6, "spanned": 6, "inputs": 3, "steps": 2000}
    out_of_scope = {"spanned": 1}
    point = LqrPoint

    def axes(self):
        return {"way": WAYS, "descent": METHODS}

    def setting(self, key):
        weights = np.geomspace(1, self.narrow, self.states)
        deviations = np.where(np.arange(self.states) < self.spanned, weights, 0.0)

        def draw(key: kit.Key) -> tuple[Lqr, jax.Array, jax.Array]:
            for_system, for_start = jax.random.split(key)
            system = drawn(for_system, self.inputs, self.norm, deviations)
            zero = jnp.zeros((self.inputs, self.states))
            # a random feedback, halved until it costs at most half more than none does
            way = jax.random.normal(for_start, zero.shape)
            scales = 4 * 0.5 ** jnp.arange(12.0)
            costs = jax.vmap(lambda scale: system.cost(scale * way))(scales)
            cheap = jnp.argmax(costs <= 1.5 * system.cost(zero))
            starts = jnp.stack([zero, scales[cheap] * way])
            return system, starts, jax.vmap(lambda K: step_sizes(system, K))(starts)

        inputs = np.arange(self.inputs)[:, None]
        mask = (np.arange(self.states) % self.inputs == inputs).astype(float)
        systems, starts, steps = kit.compiled(jax.vmap(draw))(kit.keys(key, self.seeds))
        return Setting(systems, starts, steps, mask)

    def hypotheses(self, setting):
        A, B, _, _, root = (np.asarray(matrices)[:, None] for matrices in setting.systems)
        lowest = np.linalg.eigvalsh(root @ root.swapaxes(-1, -2)).min()
        radius = np.abs(np.linalg.eigvals(A - B @ np.asarray(setting.starts))).max()
        yield kit.assume("λ_min(Σ_0)", lowest, ">", 0, "the first states must span all directions")
        yield kit.assume(
            "largest spectral radius at a start", radius, "<", 0.98, "series are summed so far"
        )

    def predict(self, setting):
        curvature, covariance = _lowest(setting.systems).T
        slowest = np.stack([curvature * covariance, curvature], -1)[:, None]
        return kit.law(
            # decay of K − K* a step along the slowest direction
            rate=("seed start way", -np.log(1 - 2 * np.asarray(setting.lr)[..., :2] * slowest)),
            order=2.0,
        )

    def observe(self, setting, key):
        del key
        methods = np.arange(len(METHODS))

        def of_system(system: Lqr, starts: jax.Array, lr: jax.Array) -> tuple[jax.Array, ...]:
            optimum = system.optimum

            def one(start: jax.Array, method: ArrayLike, lr: jax.Array) -> tuple[jax.Array, ...]:
                first = jnp.where(method == 3, setting.mask * start, start)
                path = descent(system, optimum, first, setting.mask, method, lr, self.steps)
                return path[0] / optimum.cost, path[1]

            by_method = jax.vmap(one, in_axes=(None, 0, 0))
            excess, along = jax.vmap(by_method, in_axes=(0, None, 0))(starts, methods, lr)
            return excess, along, jnp.linalg.norm(optimum.feedback)

        run = kit.compiled(jax.vmap(of_system))
        measured = run(setting.systems, setting.starts, setting.lr)
        excess, along, scale = map(np.asarray, measured)
        distance = np.abs(along) / scale[:, None, None, None]
        return kit.seen(
            excess=("seed start descent step", np.where(np.isfinite(excess), excess, LOST)),
            along=("seed start way step", distance[:, :, : len(WAYS)]),
        )

    def run_conditions(self, observed):
        near = (observed["along"][..., -1] < CLOSE[1] / 10).mean()
        advice = "rates are those near K*; raise --steps"
        yield kit.assume("share of descents that came near K*", near, "==", 1, advice)

    def derive(self, law, seen):
        """Return ends, rates and orders of convergence."""
        newton = seen.excess.sel(descent="gauss_newton", drop=True).isel(step=[1, 2, 3])
        falls = np.log(newton).diff("step")  # the first step is not yet small
        exact = seen.excess.isel(descent=slice(None, 3), step=-1, drop=True).drop_vars("descent")
        rates = _decays(seen.along.values)
        return {
            "end": exact.rename(descent="exact"),
            "rate": xarray.DataArray(rates, {"way": seen.way}, ("seed", "start", "way")),
            "order": falls.isel(step=1) / falls.isel(step=0),
        }

    def judge(self, law, seen):
        yield kit.agrees("arrival", seen.end, 1e-6, label="(C − C*)/C* at the end of all descents")
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

    def rivals(self, setting, law):
        lr = np.asarray(setting.lr)
        rate = law.rate.values
        lowest = 1 - np.exp(-rate[..., 0])  # 2η σ_min(Σ*) σ_min(M*)
        covariance = _lowest(setting.systems)[:, 1:]
        of_start = lowest / covariance * min(self.narrow, 1.0) ** 2
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

    def controls(self, seen):
        yield kit.control(
            "feedbacks of which each input sees a part of the states",
            "K* is not sparse",
            id="sparse",
            excess=seen.excess.sel(descent="sparse", drop=True),
        )
        yield kit.control(
            "natural gradient steps in place of the others",
            "it converges linearly, and at a rate of its own",
            excess=seen.excess.sel(descent="natural", drop=True),
            along=seen.along.sel(way="natural", drop=True),
        )

    def figure(self, law, seen, rivals):
        steps = np.arange(self.steps + 1)
        positive = lambda values: np.where(values > 1e-32, values, np.nan)
        excess = positive(seen.excess[:, 0].values)[..., :200]
        scaled = np.linspace(0, 32, 41)
        curves = [
            np.interp(scaled, steps * rate, np.log10(positive(path)))
            for rate, path in zip(law.rate[:, 0, 0].values, seen.along[:, 0, 0].values, strict=True)
        ]
        late = [curve - curve[20] for curve in curves]
        slope = (scaled[20] - scaled) / np.log(10)
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
            "step × predicted rate",
            "log₁₀, slowest part of K − K*",
            kit.observed_curve(scaled, late),
            kit.predicted_curve(scaled, slope, "predicted"),
            kit.rival_curve(scaled, slope / 2, "∇C = EΣ"),
        )


def _lowest(systems: Lqr) -> Values:
    """Return the lowest eigenvalues of M* and of Σ* of each system, ``(seed, 2)``, by SciPy."""
    rows = (Lqr(*row) for row in zip(*map(np.asarray, systems), strict=True))
    return np.array([[np.linalg.eigvalsh(matrix)[0] for matrix in optimum(row)] for row in rows])


def optimum(system: Lqr) -> tuple[Values, Values]:
    """Return M* and Σ*, by SciPy."""
    curvature, loop = riccati(system)
    return curvature, solve_discrete_lyapunov(loop, system.root @ system.root.T)


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
