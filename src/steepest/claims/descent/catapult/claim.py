"""Step sizes between 2/λ₀ and 4/λ₀ catapult gradient descent off its start into a flatter minimum.

This holds for wide two-layer linear networks on one example, with λ₀ the tangent kernel at the start. Such a network
obeys an exact recursion of its output and its tangent kernel λ. Let γ be the step size and m the width. With γ below
2/λ₀ the network stays lazy, and λ falls by the order of 1/m. With γ between 2/λ₀ and 4/λ₀ the loss first grows to the
order of m, then λ falls below 2/γ and descent converges to a flatter point. With γ above 4/λ₀ descent diverges.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.catapult.experiment import (
    DIVERGED,
    CatapultPoint,
    descend_linear,
    linear_network,
    output_and_ntk,
    risks_over_widths,
    two_layers,
)
from steepest.dynamics import Trajectory, stability_bracket
from steepest.kernels import catapult_map
from steepest.nn.types import Params, Values

EARLY = 50  # steps in which a loss that rises has done so
SCALING_STEPS = 100  # long enough for the peak at every width
LAZY = 2.0  # γλ₀ below which the loss does not rise
SURELY_LAZY = 1.8  # nearer to 2 the fall of λ is no longer small, and its first order errs
ENDS = ("below", "above")
FAR = 1e150  # stands for what a wrong rule gives where it diverges


class Setting(NamedTuple):
    """Initial networks, one per seed, with the two numbers of each that theory needs."""

    noise: Values  # normal numbers, (seeds, widest, dimension + 1): see two_layers
    output: Values  # z_0, (seeds,)
    ntk: Values  # λ_0, (seeds,)


@kit.claim
class Catapult(kit.Claim[Setting]):
    """Two-layer linear networks on one example, at step sizes in units of 1/λ₀."""

    multiple: kit.Positive = kit.param(
        2.5,
        "γλ₀ of the trajectories compared with the recursion",
        scope=kit.between(2.4, 3.2, "nearer to 2 the peak is too low to measure its power"),
    )
    target: float = kit.param(
        1.0, "y of these trajectories; it is 0 elsewhere", scope=kit.between(0.5, 1.5)
    )
    multiples: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.5, 1.96, 2.04, 2.8, 3.4, 3.8, 3.99, 4.01, 4.2),
        "γλ₀ of the phases",
        scope=kit.choices(
            (1.0, 1.5, 1.96, 2.04, 2.8, 3.4, 3.8, 3.99, 4.01, 4.2),
            (0.8, 1.3, 1.95, 2.05, 3.0, 3.6, 3.99, 4.01, 4.4),
        ),
    )
    width: kit.Count = kit.param(
        1000, "hidden width m of the phases", unit="neurons", scope=kit.between(500, 1500)
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (100, 300, 1000, 3000),
        "hidden widths m of the scaling laws",
        unit="neurons",
        scope=kit.choices((100, 300, 1000, 3000), (150, 450, 1200, 3600)),
    )
    dimension: kit.Count = kit.param(4, "input dimension d", scope=kit.between(3, 8))
    steps: kit.Count = kit.param(1000, "steps of each descent", unit="steps")
    seeds: kit.Seeds = kit.param(32, "independent initial networks")

    kind = "limit"
    says = {
        "between 2/λ₀ and 4/λ₀": (kit.literal("rise", value=2), kit.literal("threshold", value=4)),
        "catapult gradient descent off its start": ("recursion", "peak_exponent"),
        "into a flatter minimum": "final_flatness",
    }
    ragged = ("end_flatness",)
    tiny = {
        "multiples": (1.0, 1.5, 3.0, 4.2),
        "width": 50,
        "widths": (50, 70, 100),
        "steps": 50,
        "seeds": 3,
    }
    full = {"seeds": 40, "steps": 4000}
    out_of_scope = {"multiple": 4.5}
    point = CatapultPoint

    @property
    def thrown(self) -> tuple[float, ...]:
        """Return γλ₀ of the phases at which descent comes back."""
        return tuple(multiple for multiple in self.multiples if multiple < 4)

    @property
    def lazy(self) -> tuple[float, ...]:
        """Return γλ₀ of the phases in which the kernel hardly moves."""
        return tuple(multiple for multiple in self.multiples if multiple < SURELY_LAZY)

    def axes(self):
        return {
            "step": tuple(range(self.steps + 1)),
            "lazy": self.lazy,
            "thrown": self.thrown,
            "width": self.widths,
            "end": ENDS,
        }

    def setting(self, key):
        def draw(key: kit.Key) -> tuple[jax.Array, jax.Array, jax.Array]:
            net = linear_network(self.dimension, self.width)
            shape = (self.seeds, max(self.width, *self.widths), self.dimension + 1)
            noise = jax.random.normal(key, shape)
            start = two_layers(noise[:, : self.width])
            output, ntk = jax.vmap(lambda params: output_and_ntk(net, params))(start)
            return noise, output, ntk

        return Setting(*map(np.asarray, kit.compiled(draw)(key)))

    def hypotheses(self, setting):
        between = "choose --multiple between 2 and 4"
        yield kit.assume("γλ₀", self.multiple, between=(2, 4), note=between)
        smallest = min(*self.widths, self.width)
        yield kit.assume("smallest width m", smallest, ">=", 50, "the theorem is for m ≫ 1")

    def predict(self, setting):
        curvature = 1 / self.width  # ‖x‖²/(m d)

        def follow(output: jax.Array, ntk: jax.Array) -> tuple[jax.Array, ...]:
            at = lambda multiple, target: catapult_map(
                output, ntk, target, multiple / ntk, curvature, self.steps
            )
            end = lambda multiple: at(multiple, 0.0)[1][-1]
            return *at(self.multiple, self.target), jax.vmap(end)(jnp.array(self.thrown))

        paths = kit.compiled(jax.vmap(follow))(setting.output, setting.ntk)
        output, ntk, ends = map(np.asarray, paths)
        growing = np.log(self.multiple - 1) if self.multiple > LAZY else 1.0
        return kit.law(
            loss=("seed step", (output - self.target) ** 2 / 2),
            steepness=("seed step", self.multiple * ntk / ntk[:, :1]),
            rise=("end", [LAZY, LAZY]),
            threshold=("end", [4.0, 4.0]),
            fall=("seed lazy", self.fall_of_kernel(setting)),
            flatness=("seed thrown", np.array(self.thrown) * ends / ntk[:, :1]),
            peak=("width", np.array(self.widths, float)),
            # |z| grows by the factor γλ₀ − 1 a step until it is of order √m
            peak_time_slope=1 / growing,
        )

    def fall_of_kernel(self, setting: Setting) -> Values:
        """Return 1 − λ_∞/λ₀ where descent is lazy, to first order in 1/m, ``(seeds, lazy)``.

        There z_t = z₀(1 − γλ₀)^t, and each step takes γ(4 − γλ₀)z_t²/m from λ: a geometric series.
        """
        multiple = np.array(self.lazy)
        square = (setting.output / setting.ntk)[:, None] ** 2
        # Σ_t (1 − γλ₀)^(2t) = 1/(γλ₀(2 − γλ₀))
        return square * (4 - multiple) / (LAZY - multiple) / self.width

    def observe(self, setting, key):
        observed = kit.compiled(self.descents)(setting.noise)
        # NumPy from here on: every operation of JAX would be a program of its own
        trace, phases, early, scaling = jax.tree.map(np.asarray, observed)
        ends_above = phases.diverged | (phases.risk[..., -1] > phases.risk[..., 0])
        flatness = phases.observed["steepness"][..., -1]
        with np.errstate(over="ignore"):
            growth = (1 - np.array(self.multiples)) ** (2.0 * self.steps)
        linear = setting.output[:, None] ** 2 / 2 * growth > DIVERGED
        bracket = lambda beyond: ("seed end", np.array(stability_bracket(self.multiples, beyond)))
        return kit.seen(
            loss=("seed step", trace.risk),
            steepness=("seed step", trace.observed["steepness"]),
            rise=bracket(early.max(-1) > early[..., 0]),
            end_rise=bracket(ends_above),
            threshold=bracket(phases.diverged),
            linear_threshold=bracket(linear),
            flatness=("seed thrown", flatness[:, : len(self.thrown)]),
            end_flatness=("seed multiple", np.where(phases.diverged, np.inf, flatness)),
            start_loss=("seed width", scaling[..., 0].T),
            peak_loss=("seed width", scaling.max(2).T),
            peak_time=("seed width", scaling.argmax(2).T),
        )

    def descents(self, noise: jax.Array) -> tuple[Trajectory, Trajectory, jax.Array, jax.Array]:
        """Return a descent at every step, ends and first risks over γλ₀, and risks over widths."""
        net = linear_network(self.dimension, self.width)
        multiples = jnp.array(self.multiples)

        def of_start(start: Params) -> tuple[Trajectory, Trajectory, jax.Array]:
            trace = descend_linear(net, start, self.multiple, self.steps, target=self.target)
            end = lambda multiple: descend_linear(net, start, multiple, self.steps, self.steps)
            early = lambda multiple: descend_linear(net, start, multiple, EARLY).risk
            return trace, jax.vmap(end)(multiples), jax.vmap(early)(multiples)

        trace, phases, early = jax.lax.map(of_start, two_layers(noise[:, : self.width]))
        scaling = risks_over_widths(noise, self.widths, self.multiple, SCALING_STEPS)
        return trace, phases, early, scaling

    def derive(self, law, seen):
        """Return deviations from the recursion, falls of λ, and slopes of the time of the peak."""
        paths = [(seen[name], law[name]) for name in ("loss", "steepness")]
        with np.errstate(invalid="ignore"):  # a wrong rule may diverge
            off = [abs(a - b) / abs(b).max("step") for a, b in paths]
        growth = 0.5 * np.log(seen.width / seen.start_loss).transpose("seed", "width")
        lanes = zip(growth.values, seen.peak_time.values, strict=True)
        slopes = [np.polyfit(logs, times, 1)[0] for logs, times in lanes]
        lazy = seen.flatness.isel(thrown=slice(len(self.lazy))).rename(thrown="lazy")
        return {
            "off": xarray.concat(off, "quantity"),
            "ends_off": abs(seen.flatness / law.flatness - 1),
            "fall": 1 - lazy / lazy.lazy,
            "slopes": xarray.DataArray(slopes, dims="seed"),
        }

    def judge(self, law, seen):
        yield kit.agrees("recursion", seen.off, 1e-9, label="relative deviation from the recursion")
        label = "γλ₀ around which divergence starts"
        yield kit.follows("threshold", law.threshold, seen.threshold, 0.005, each=True, label=label)
        label = "γλ₀ around which the loss begins to rise"
        yield kit.follows("rise", law.rise, seen.rise, 0.03, each=True, label=label)
        label = "1 − λ/λ₀ in the end, below 2/λ₀"
        # the next order in 1/m takes up to 2 % at γλ₀ = 1.5 and m = 500
        yield kit.follows("lazy_fall", law.fall, seen.fall, 0.05, each=True, label=label)
        label = "γλ where descent ends, over the recursion's, less one"
        # rounding grows while the loss does
        yield kit.agrees("final_flatness", seen.ends_off, 1e-6, label=label)
        label = "peak loss against width"
        # the correction at m = 100 is 0.03, and the interval 0.04
        yield kit.power("peak_exponent", law.peak, seen.peak_loss, 0.08, over="width", label=label)
        label = "steps to the peak per log √(m/L₀)"
        # the interval is 6 %, the correction at m = 100 is 4 %
        yield kit.follows("peak_time", law.peak_time_slope, seen.slopes, 0.12, label=label)

    def rivals(self, setting, law):
        yield kit.rival(
            "divergence at 2/λ₀",
            "descent on the linearized network diverges there",
            id="diverges_at_two",
            threshold=law.threshold / 2,
        )
        yield kit.rival(
            "the loss falls as long as descent converges",
            "a loss that ends lower has not risen",
            rise=2 * law.rise,
        )
        yield kit.rival(
            "λ falls by its first step",
            "the kernel moves in the first step",
            fall=law.fall * law.lazy * (LAZY - law.lazy),
        )
        yield kit.rival(
            "λ' = λ + γ a r²(γλ − 4)",
            "both rules are the same at y = 0",
            **self.paths_of_rule(setting, lambda r, ntk, lr: r**2 * (lr * ntk - 4)),
        )
        yield kit.rival(
            "λ' = λ + γ a r²(γλ − 4/(z − y))",
            "as printed in the notes",
            **self.paths_of_rule(setting, lambda r, ntk, lr: r**2 * (lr * ntk - 4 / r)),
        )
        yield kit.rival(
            "γλ ends below 1",
            "the curvature at which the step converges fastest",
            flatness=np.minimum(law.flatness, 1.0),
        )
        yield kit.rival(
            "peak loss ∝ √m", "the output, not the loss, is of order √m", peak=law.peak**0.5
        )
        yield kit.rival(
            "growth by γλ₀ − 2 a step",
            "log(γλ₀ − 1) for γλ₀ near 2",
            peak_time_slope=1 / (self.multiple - LAZY) if self.multiple > LAZY else 1.0,
        )

    def paths_of_rule(self, setting: Setting, rule: Callable[..., Values]) -> dict[str, tuple]:
        """Return the paths of another rule for λ."""
        output = setting.output
        ntk = setting.ntk
        lr = self.multiple / ntk
        path = []
        with np.errstate(all="ignore"):  # a wrong rule may diverge
            for _ in range(self.steps + 1):
                r = output - self.target
                path.append((r**2 / 2, lr * ntk))
                # r' = r(1 − γλ + γ²zr/m), exact
                output = self.target + r * (1 - lr * ntk + lr**2 * output * r / self.width)
                ntk = ntk + rule(r, ntk, lr) * lr / self.width
        finite = np.nan_to_num(np.transpose(path), nan=FAR, posinf=FAR, neginf=-FAR)
        return {name: ("seed step", finite[:, i]) for i, name in enumerate(("loss", "steepness"))}

    def controls(self, seen):
        turned = lambda array: (array.dims, np.roll(array.values, 1, 0))
        yield kit.control(
            "networks linearized at their start",
            "a linearized network keeps the kernel of its start",
            threshold=seen.linear_threshold,
            flatness=seen.thrown,
        )
        yield kit.control(
            "the loss at the end for its peak",
            "the loss comes back between 2/λ₀ and 4/λ₀",
            id="ends",
            rise=seen.end_rise,
        )
        yield kit.control(
            "descents of other networks",
            "the recursion starts at a network's own output and kernel",
            loss=turned(seen.loss),
            steepness=turned(seen.steepness),
        )
        yield kit.control(
            "the loss at the start in place of the peak",
            "only what the catapult adds depends on the width",
            id="start",
            peak_loss=seen.start_loss,
        )

    def figure(self, law, seen, rivals):
        shown = min(self.steps + 1, 41)
        steps = np.arange(shown)
        flat = seen.end_flatness[0].values
        flat = np.where(np.isfinite(flat), flat, np.nan)
        peaks = seen.peak_loss.mean("seed").values
        widths = np.array(self.widths)
        yield kit.panel(
            f"At γλ₀ = {self.multiple:g} the loss grows, then falls",
            "step",
            "loss",
            kit.observed_curve(steps, seen.loss[:4, :shown], "networks, a line each"),
            kit.predicted_curve(steps, law.loss[0, :shown], "recursion for one of them"),
            log="y",
            ylim=(1e-8, None),
        )
        yield kit.panel(
            "Descent ends where γλ < 2",
            "γλ₀",
            "γλ at the end",
            kit.context_curve(self.multiples, np.full_like(flat, LAZY), "2"),
            kit.predicted_curve(self.thrown, law.flatness[0], "recursion"),
            kit.observed_curve(self.multiples, flat, "one seed", kind="points"),
        )
        yield kit.panel(
            "The peak grows with the width",
            "width m",
            "peak loss",
            kit.observed_curve(widths, peaks, kind="points"),
            kit.predicted_curve(widths, peaks[0] * widths / widths[0], "∝ m"),
            log="xy",
        )
