"""Networks above the theorem's threshold width move and learn as their linearization does.

Neurons move far less than the theorem allows. The output weights are frozen, and the first layer follows gradient flow.
Two lemmas support each other. While every neuron is within Δ of its start, the kernel keeps half of its smallest
eigenvalue λ₀. While the kernel keeps this half, no neuron moves farther than Δ* ∝ n^{-1/2}, with n the number of
neurons. For n > 128 m⁴ L(0)/λ₀⁴, with m inputs and the initial risk L(0), Δ* is smaller than Δ, and the risk decays at
least like exp(−λ₀t/m). The flow with the kernel of the start predicts how far neurons move and how the risk decays.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import flow
from steepest.kernels import StayPut, sampled_first_layer_kernel, stay_put
from steepest.nn.activations import Activation, activation
from steepest.nn.types import Values

READINGS = 12  # of the clock, at which everything is recorded
FAR_INSIDE = 0.5  # of Δ*


class Setting(NamedTuple):
    """The data and the initial networks, narrow networks last; every list is over widths."""

    x: Values  # (m, d)
    y: Values  # (m,)
    weights: list[jax.Array]  # (seeds, n, d) each
    outer: list[jax.Array]  # a, (seeds, n) each
    smallest: Values  # λ₀, (widths, seeds)
    risk: Values  # L(0), (widths, seeds)


class Linear(NamedTuple):
    """What the flow with the kernel of the start does."""

    movement: Values  # the farthest of any neuron, (widths, seeds)
    risk: Values  # (widths, seeds, times)


@kit.claim
class NtkStaysPut(kit.Claim[Setting]):
    """A few well-separated inputs, with networks wider than the theorem requires and with narrow networks."""

    activation: str = kit.param(
        "sin",
        "σ with |σ'|, |σ''| ≤ 1",
        unit="name",
        scope=kit.choices("sin", "tanh", why="their threshold is below 10⁵ neurons"),
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (32_768, 65_536, 131_072),
        "n, above the threshold",
        unit="neurons",
        scope=kit.choices((32_768, 65_536, 131_072), (40_000, 100_000)),
    )
    narrow: tuple[kit.Count, ...] = kit.param(
        (64, 1024), "n below the threshold, shown, and a changed world", unit="neurons"
    )
    inputs: Annotated[int, kit.Within(2)] = kit.param(
        3,
        "m, also their dimension",
        scope=kit.choices(
            3, why="two fall at nearly the rate λ₀ themselves, and the threshold grows like m⁴"
        ),
    )
    cosine: Annotated[float, kit.Within(0, 0.9)] = kit.param(
        0.05,
        "cosine of every two inputs",
        scope=kit.between(0.0, 0.06, "λ₀ falls, and with it the end of the risk"),
    )
    target: kit.Positive = kit.param(0.25, "|y_i|", scope=kit.between(0.15, 0.3))
    seeds: kit.Seeds = kit.param(3, "initial networks of each width")
    horizon: kit.Positive = kit.param(8.0, "time of the flow, in units of m")

    kind = "theorem"
    says = {
        "move and learn as their linearization does": ("linear_movement", "linear_risk"),
        "Neurons move far less than the theorem allows": "movement",
    }
    tiny = {"widths": (4096, 8192, 16_384), "narrow": (64,), "inputs": 2, "seeds": 3}
    full = {"inputs": 4, "widths": (262_144, 524_288, 1_048_576), "seeds": 6}
    out_of_scope = {"widths": (256, 512, 1024)}

    @property
    def all(self) -> tuple[int, ...]:
        """Return all widths, narrow ones last."""
        return (*self.widths, *self.narrow)

    @property
    def times(self) -> Values:
        """Return the times at which everything is recorded."""
        return np.linspace(0, self.horizon * self.inputs, READINGS + 1)[1:]

    def axes(self):
        return {"width": self.widths, "time": tuple(self.times)}

    def setting(self, key):
        for_signs, for_nets = jax.random.split(key)
        m = self.inputs
        x = np.linalg.cholesky((1 - self.cosine) * np.eye(m) + self.cosine)  # rows of unit length
        y = self.target * np.asarray(jax.random.rademacher(for_signs, (m,), float))
        sigma = activation(self.activation)
        inputs, targets = jnp.asarray(x), jnp.asarray(y)

        def draw(key: kit.Key) -> tuple[list[tuple[jax.Array, jax.Array]], jax.Array]:
            nets = []
            for n, (for_w, for_a) in zip(
                self.all, kit.keys(key, 2 * len(self.all)).reshape(-1, 2), strict=True
            ):
                w = jax.random.uniform(for_w, (n, m), minval=-1, maxval=1)
                nets.append((w, jax.random.rademacher(for_a, (n,), float)))
            kernels = jnp.stack([sampled_first_layer_kernel(sigma, inputs, *net) for net in nets])
            risks = jnp.stack([_risk(sigma, w, a, inputs, targets) for w, a in nets])
            return nets, jnp.stack([jnp.linalg.eigvalsh(kernels)[:, 0], risks])

        nets, numbers = kit.compiled(lambda seeds: jax.lax.map(draw, seeds))(
            kit.keys(for_nets, self.seeds)
        )
        weights, outer = map(list, zip(*nets, strict=True))
        smallest, risk = np.transpose(np.asarray(numbers), (1, 2, 0))
        return Setting(x, y, weights, outer, smallest, risk)

    def hypotheses(self, setting):
        sigma = activation(self.activation)

        def steepest(grid: jax.Array) -> tuple[jax.Array, jax.Array]:
            first, second = jax.jvp(sigma.slope, (grid,), (jnp.ones_like(grid),))
            return jnp.abs(first).max(), jnp.abs(second).max()

        first, second = kit.compiled(steepest)(np.linspace(-20, 20, 8001))
        ratio = (np.array(self.all)[:, None] / self.lemmas(setting).width).min(1)
        yield kit.assume("largest |σ'|", float(first), "<=", 1, "choose another --activation")
        yield kit.assume("largest |σ''|", float(second), "<=", 1, "choose another --activation")
        yield from (
            kit.assume(
                f"n = {n} / threshold width",
                ratio[i],
                ">",
                1,
                "choose larger --widths or fewer --inputs",
            )
            for i, n in enumerate(self.widths)
        )

    def lemmas(self, setting: Setting) -> StayPut:
        """Return Δ*, Δ and the threshold of every network, each of shape ``(widths, seeds)``."""
        return stay_put(self.inputs, setting.smallest, setting.risk, np.array(self.all)[:, None])

    def predict(self, setting):
        wide = slice(len(self.widths))
        lemmas = self.lemmas(setting)
        linear = self.linearized(setting)
        rate = setting.smallest / self.inputs
        slowest = setting.risk[..., None] * np.exp(-rate[..., None] * self.times)
        return kit.law(
            linear=("width seed", linear.movement[wide]),
            risk=("width seed time", linear.risk[wide]),
            allowed=("width seed", lemmas.movement[wide]),
            slowest=("width seed time", slowest[wide]),
            kept=("width seed", setting.smallest[wide] / 2),
            lipschitz=2.0 * self.inputs,
        )

    def linearized(self, setting: Setting) -> Linear:
        """Return movement and risk while the kernel is that of the start.

        ``w_k(t) − w_k(0) = −(a_k/√n) Σ_j σ'(w_k·x_j) x_j g_j(t)`` with ``g = (1/m)∫r = K⁻¹(1 − e^{−Kt/m}) r(0)``.
        """
        sigma = activation(self.activation)
        slope = kit.compiled(lambda z: (sigma(z), sigma.slope(z)))
        x = np.asarray(setting.x)
        farthest = []
        risks = []
        signals = np.concatenate(setting.weights, 1) @ x.T  # (seeds, n of all widths, m)
        ends = np.cumsum(self.all)[:-1]
        parts = (np.split(np.asarray(array), ends, 1) for array in slope(signals))
        for values, slopes, outer in zip(*parts, setting.outer, strict=True):
            a = np.asarray(outer)
            n = a.shape[1]
            residual = np.einsum("sk,skj->sj", a, values) / np.sqrt(n) - np.asarray(setting.y)
            of_seeds = []
            left = []
            for signs_k, slopes_k, r in zip(a, slopes, residual, strict=True):
                kernel = (x @ x.T) * (slopes_k.T @ slopes_k) / n
                rates, vectors = np.linalg.eigh(kernel)
                along = vectors.T @ r
                fading = -np.outer(self.times, rates) / self.inputs
                # K⁻¹(1 − e^(−Kt/m)) r(0)
                gained = (-np.expm1(fading) / rates * along) @ vectors.T  # (times, m)
                steps = slopes_k @ (gained[..., None] * x) / np.sqrt(n)  # (times, n, d)
                of_seeds.append(np.linalg.norm(steps * signs_k[:, None], axis=2).max())
                # r(t) = e^(−Kt/m) r(0), of the same length in eigenvectors
                left.append(0.5 * ((np.exp(fading) * along) ** 2).mean(1))
            farthest.append(of_seeds)
            risks.append(left)
        return Linear(np.array(farthest), np.array(risks))

    def observe(self, setting, key):
        movement, smallest, change, risk, ok = self.follow(setting)
        wide = slice(len(self.widths))
        farthest = movement.max(-1)
        dims = "width seed time"
        # the narrowest networks, in place of wide ones
        narrow = np.broadcast_to(farthest[len(self.widths)], farthest[wide].shape)
        return kit.seen(
            movement=("width seed", farthest[wide]),
            narrow_movement=("width seed", narrow),
            moving=(dims, movement[wide]),
            risk=(dims, risk[wide]),
            smallest=(dims, smallest[wide]),
            change=(dims, change[wide]),
            every_movement=("every seed", farthest),
            every_kept=("every seed", smallest.min(-1) / setting.smallest),
            first_risk=("width seed", setting.risk[wide]),
            ok=("seed", ok),
        )

    def follow(self, setting: Setting) -> tuple[Values, ...]:
        """Return movement, smallest eigenvalue, change of the kernel, risk, and which flows were followed.

        All but the last have the shape ``(widths, seeds, times)``.
        """
        times = jnp.asarray(self.times)
        sigma = activation(self.activation)
        x = setting.x
        y = setting.y

        def follow(nets: list[tuple[jax.Array, jax.Array]]) -> tuple:
            first = jnp.stack([sampled_first_layer_kernel(sigma, x, *net) for net in nets])

            def look(moved: list[jax.Array]) -> jax.Array:
                """Return the largest movement, smallest eigenvalue, change of the kernel and risk: one row a width."""
                now = [(w + step, a) for (w, a), step in zip(nets, moved, strict=True)]
                farthest = jnp.stack([jnp.sqrt((step**2).sum(1).max()) for step in moved])
                kernels = jnp.stack([sampled_first_layer_kernel(sigma, x, *net) for net in now])
                change = jnp.abs(jnp.linalg.eigvalsh(kernels - first)).max(1)
                risks = jnp.stack([_risk(sigma, w, a, x, y) for w, a in now])
                return jnp.stack([farthest, jnp.linalg.eigvalsh(kernels)[:, 0], change, risks], 1)

            # The flow of a sum of risks follows each network on its own, with one integrator for all. What is
            # integrated is the displacement, so that the tolerance is relative to what moves.
            def total(moved: list[jax.Array]) -> jax.Array:
                risks = [
                    _risk(sigma, w + step, a, x, y)
                    for (w, a), step in zip(nets, moved, strict=True)
                ]
                return jnp.stack(risks).sum()

            path = flow(
                total, [jnp.zeros_like(w) for w, _ in nets], times, observe={"all": look}, rtol=1e-4
            )
            return path.observed["all"], path.ok

        nets = list(zip(setting.weights, setting.outer, strict=True))
        # (seeds, times, widths, 4)
        records, ok = kit.compiled(lambda nets: jax.lax.map(follow, nets))(nets)
        movement, smallest, change, risk = np.transpose(np.asarray(records), (3, 2, 0, 1))
        return movement, smallest, change, risk, np.asarray(ok)

    def run_conditions(self, observed):
        left = (observed["risk"][..., -1] / observed["first_risk"]).max()
        yield kit.assume(
            "flows that were followed", observed["ok"].mean(), "==", 1, "shorten --horizon"
        )
        yield kit.assume(
            "largest risk at the end / at the start", left, "<=", 1e-4, "raise --horizon"
        )

    def derive(self, law, seen):
        """Return how far risks are from the linearized flow's, over the risk at the start."""
        return {"risk_off": abs(seen.risk - law.risk) / seen.first_risk}

    def judge(self, law, seen):
        kept = kit.at_least(
            "kernel_kept",
            law.kept,
            seen.smallest.min("time"),
            over="width",
            each=True,
            label="λ_min(K), at least λ₀/2",
        )
        change = kit.at_most(
            "kernel_change",
            law.lipschitz,
            (seen.change / seen.moving).max("time"),
            over="width",
            each=True,
            label="‖K − K(0)‖ over the movement, at most 2m",
        )
        yield kit.follows(
            "linear_movement",
            law.linear,
            seen.movement,
            0.002,  # corrections are of the order of the change of the kernel, below 10⁻³
            over="width",
            each=True,
            label="largest movement, beside the linearized flow's movement",
        )
        yield kit.agrees(
            "linear_risk",
            seen.risk_off,
            1e-4,
            label="risk at all times, off the linearized flow's, over that at the start",
        )
        yield kit.at_most(
            "movement",
            FAR_INSIDE * law.allowed,
            seen.movement,
            over="width",
            each=True,
            label="largest movement, at most half of Δ*",
        )
        yield kit.at_most(
            "risk_decay",
            law.slowest,
            seen.risk,
            over="width time",
            each=True,
            label="L(t), at most exp(−λ₀t/m) L(0)",
        )
        yield kit.idle(kept, "it follows from the movement, by the first lemma")
        yield kit.idle(
            change, "the first lemma is an inequality for any displacement with |σ'|, |σ''| ≤ 1"
        )

    def rivals(self, setting, law):
        rate = xarray.DataArray(
            setting.smallest[: len(self.widths)] / self.inputs, dims=("width", "seed")
        )
        first = setting.risk[: len(self.widths)]
        slowest = lambda factor: (
            xarray.DataArray(first, dims=("width", "seed")) * np.exp(-factor * rate * law.time)
        )
        yield kit.rival(
            "movement does not depend on the width",
            "so it is in mean field",
            linear=xarray.ones_like(law.linear) * law.linear[0],
        )
        yield kit.rival(
            "movement falls like 1/n",
            "so does the change of the kernel",
            linear=law.linear * (self.widths[0] / law.width) ** 0.5,
        )
        yield kit.rival(
            "neurons move by Δ*",
            "the lemma says so at most",
            id="bound_attained",
            linear=law.allowed,
        )
        yield kit.rival(
            "the risk decays like exp(−2λ₀t/m)",
            "the smallest eigenvalue bounds the rate",
            risk=slowest(2.0),
        )
        yield kit.rival(
            "decay at the rate λ₀ at least",
            "the mean over the examples forgotten, as in lecture 10/10",
            slowest=slowest(float(self.inputs)),
        )
        yield kit.rival(
            "Δ* without √2",
            "as printed",
            accepted="the constant of Δ*: networks keep far from it",
            allowed=law.allowed / np.sqrt(2),
        )
        yield kit.rival(
            "decay at least at the rate λ₀/2m",
            "as printed",
            accepted="a slower rate is a weaker bound, and true as well",
            slowest=slowest(0.5),
        )

    def controls(self, seen):
        yield kit.control(
            "what another network does",
            "each has a kernel of its own",
            movement=seen.movement.roll(seed=1),
            risk=seen.risk.roll(seed=1),
        )
        yield kit.control(
            f"networks of {self.narrow[0]} neurons",
            "neurons move like n^{-1/2}",
            id="narrow",
            movement=seen.narrow_movement,
        )

    def figure(self, law, seen, rivals):
        n = np.array(self.all)
        order = np.argsort(n)
        widths = np.array(self.widths)
        every = seen.every_movement.mean("seed").values
        fall = float(law.linear[0].mean()) * np.sqrt(n[0] / n)
        allowed = float(law.allowed[0].mean()) * np.sqrt(n[0] / n)
        time = self.times
        first = float(seen.first_risk[0, 0])
        risk = seen.risk[0, 0] / first  # below 1e-14 it is rounding
        least = np.full(len(n), widths.min())
        yield kit.panel(
            "Neurons move less in wide layers, far below the bound",
            "width n",
            "largest movement",
            kit.observed_curve(n[order], every[order], "network", kind="points"),
            kit.predicted_curve(n[order], fall[order], "linearized flow, ∝ n^{-1/2}"),
            kit.bound_curve(
                n[order], allowed[order], "bound Δ*", forbidden="above", tall=0.09, log="xy"
            ),
            kit.rival_curve(n[order], 0 * fall + every[0], "independent of n"),
            log="xy",
        )
        yield kit.panel(
            "Its least eigenvalue stays above the half that is granted",
            "width n",
            "least eigenvalue over its start",
            kit.observed_curve(n[order], seen.every_kept.values[order].T, "networks"),
            kit.bound_curve(
                n[order], 0 * fall + 0.5, "at least ½", forbidden="below", tall=0.05, log="x"
            ),
            kit.context_curve(least, np.linspace(0, 1, len(n)), "theorem from here", kind="dashed"),
            log="x",
        )
        yield kit.panel(
            f"The risk falls faster than the bound, width {n[0]}",
            "time t",
            "risk over its start",
            kit.observed_curve(time, risk.where(risk > 1e-14), "network", kind="points"),
            kit.predicted_curve(time, law.risk[0, 0] / first, "linearized flow"),
            kit.bound_curve(
                time,
                np.asarray(law.slowest[0, 0]) / first,
                "bound exp(−λ₀t/m)",
                forbidden="above",
                tall=0.25,
                log="y",
            ),
            log="y",
        )


def _risk(sigma: Activation, w: jax.Array, a: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return L = (1/2m) Σ r² of the network n^{-1/2} Σ_k a_k σ(w_k·x)."""
    return 0.5 * jnp.mean((a @ sigma(w @ x.T) / jnp.sqrt(a.size) - y) ** 2)
