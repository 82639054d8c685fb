"""Step sizes between 2/λ₀ and 4/λ₀ catapult gradient descent off its start into a flatter minimum.

This holds for wide two-layer linear networks on one example, with λ₀ the tangent kernel at the start. Such a network
obeys an exact recursion of its output and its tangent kernel λ. Let γ be the step size and m the width. With γ below
2/λ₀ the network stays lazy, and λ falls by the order of 1/m. With γ between 2/λ₀ and 4/λ₀ the loss first grows to the
order of m, then λ falls below 2/γ and descent converges to a flatter point. With γ above 4/λ₀ descent diverges. ReLU
networks are catapulted too. On a few centred digits, catapulted networks have a lower test error than lazy networks,
because the catapult makes them forget the output of their random start. Lazy networks that start with zero output have
an even lower test error.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.claims.descent.catapult.experiment import (
    DIVERGED,
    THROWN_STEP,
    CatapultPoint,
    descend_linear,
    errors_of_steps,
    linear_network,
    output_and_ntk,
    risks_over_widths,
    two_layers,
)
from steepest.dynamics import Trajectory, descend, stability_bracket
from steepest.kernels import catapult_map, ntk_top
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp
from steepest.nn.types import Params, Values

RELU_IMAGES = 30  # of the two classes
RELU_NETWORKS = 3
EARLY = 50  # steps in which a loss that rises has done so
SCALING_STEPS = 100  # long enough for the peak at every width
LAZY = 2.0  # γλ₀ below which the loss does not rise
SURELY_LAZY = 1.8  # nearer to 2 the fall of λ is no longer small, and its first order errs
ENDS = ("below", "above")
CLOCKS = ("steps", "time")  # in which thrown networks train as long as lazy ones
DRAWS = 2  # of images and networks in each group
FAR = 1e150  # stands for what a wrong rule gives where it diverges


class Setting(NamedTuple):
    """Initial networks, one per seed, with the two numbers of each that theory needs."""

    noise: Values  # normal numbers, (seeds, widest, dimension + 1): see two_layers
    output: Values  # z_0, (seeds,)
    ntk: Values  # λ_0, (seeds,)


@kit.claim
class Catapult(kit.Claim[Setting]):
    """Two-layer linear networks on one example, ReLU networks on two classes of digits."""

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
    relu_width: kit.Count = kit.param(200, "hidden width of the ReLU networks", unit="neurons")
    relu_multiples: tuple[kit.Positive, ...] = kit.param(
        (1.0, 3.0, 6.0, 12.0, 24.0, 48.0), "γλ₀ for ReLU, the second is judged"
    )
    relu_steps: kit.Count = kit.param(200, "steps of the ReLU networks", unit="steps")

    kind = "limit"
    says = {
        "between 2/λ₀ and 4/λ₀": (kit.literal("rise", value=2), kit.literal("threshold", value=4)),
        "catapult gradient descent off its start": ("recursion", "peak_exponent"),
        "into a flatter minimum": "final_flatness",
    }
    ragged = ("end_flatness", "relu_loss", "relu_peak", "relu_flatness")
    tiny = {
        "multiples": (1.0, 1.5, 3.0, 4.2),
        "width": 50,
        "widths": (50, 70, 100),
        "steps": 50,
        "seeds": 3,
        "relu_width": 20,
        "relu_multiples": (1.0, 3.0),
        "relu_steps": 10,
    }
    full = {"seeds": 40, "steps": 4000, "relu_width": 512, "relu_steps": 400}
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
            "clock": CLOCKS,
        }

    def setting(self, key):
        def draw(key: kit.Key) -> tuple[jax.Array, jax.Array, jax.Array]:
            net = linear_network(self.dimension, self.width)
            shape = (self.seeds, max(self.width, *self.widths), self.dimension + 1)
            noise = jax.random.normal(key, shape)
            start = two_layers(noise[:, : self.width])
            output, ntk = jax.vmap(lambda params: output_and_ntk(net, params))(start)
            return noise, output, ntk

        return Setting(*kit.compiled(draw)(key))

    def hypotheses(self, setting):
        yield kit.assume(
            "γλ₀", self.multiple, between=(2, 4), note="choose --multiple between 2 and 4"
        )
        yield kit.assume(
            "smallest width m", min(*self.widths, self.width), ">=", 50, "the theorem is for m ≫ 1"
        )

    def predict(self, setting):
        curvature = 1 / self.width  # ‖x‖²/(m d)

        def follow(output: jax.Array, ntk: jax.Array) -> tuple[jax.Array, ...]:
            path = catapult_map(
                output, ntk, self.target, self.multiple / ntk, curvature, self.steps
            )
            end = lambda multiple: catapult_map(
                output, ntk, 0.0, multiple / ntk, curvature, self.steps
            )[1][-1]
            return (*path, jax.vmap(end)(jnp.array(self.thrown)))

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
            relu_flatness=2.0,  # γλ_∞ at most
            peak=("width", np.array(self.widths, float)),
            # |z| grows by the factor γλ₀ − 1 a step until it is of order √m
            peak_time_slope=1 / growing,
            test_error=("clock", [1.0, 1.0]),  # over that of lazy networks, at most
            silent_error=("clock", [1.0, 1.0]),  # of lazy ones that start silent, over thrown ones'
            relu_thrown=1.0,  # share of ReLU networks whose loss rises and then converges
        )

    def fall_of_kernel(self, setting: Setting) -> Values:
        """Return 1 − λ_∞/λ₀ where descent is lazy, to first order in 1/m, ``(seeds, lazy)``.

        There z_t = z₀(1 − γλ₀)^t, and each step takes γ(4 − γλ₀)z_t²/m from λ: a geometric series.
        """
        multiple = np.array(self.lazy)
        square = np.asarray(setting.output / setting.ntk)[:, None] ** 2
        # Σ_t (1 − γλ₀)^(2t) = 1/(γλ₀(2 − γλ₀))
        return square * (4 - multiple) / (LAZY - multiple) / self.width

    def observe(self, setting, key):
        raw = signs(digits((3, 8), RELU_IMAGES))
        pixels = np.asarray(raw.x)
        images = np.stack([pixels, pixels - pixels.mean(0)])
        observed = kit.compiled(self.descents)(setting.noise, key, images, np.asarray(raw.y))
        # NumPy from here on: every operation of JAX would be a program of its own
        trace, phases, early, scaling, relu = jax.tree.map(np.asarray, observed)
        few = len(self.thrown)
        flatness = phases.observed["steepness"][..., -1]
        bracket = np.array(stability_bracket(self.multiples, phases.diverged))
        rises = np.array(stability_bracket(self.multiples, early.max(-1) > early[..., 0]))
        ends_above = phases.diverged | (phases.risk[..., -1] > phases.risk[..., 0])
        linear = np.array(stability_bracket(self.multiples, self.linearized(setting)))
        dims = "data network relu"
        return kit.seen(
            loss=("seed step", trace.risk),
            steepness=("seed step", trace.observed["steepness"]),
            rise=("seed end", rises),
            end_rise=("seed end", np.array(stability_bracket(self.multiples, ends_above))),
            threshold=("seed end", bracket),
            linear_threshold=("seed end", linear),
            flatness=("seed thrown", flatness[:, :few]),
            # a linearized network keeps the kernel of its start
            linear_flatness=("thrown", self.thrown),
            end_flatness=("seed multiple", np.where(phases.diverged, np.inf, flatness)),
            start_loss=("seed width", scaling[..., 0].T),
            peak_loss=("seed width", scaling.max(2).T),
            peak_time=("seed width", scaling.argmax(2).T),
            relu_loss=(dims, relu["last"] / relu["first"]),
            relu_peak=(dims, relu["peak"] / relu["first"]),
            relu_flatness=(dims, relu["steepness"]),
            **self.test_errors(key),
        )

    def test_errors(self, key: kit.Key) -> dict[str, tuple[str, Values]]:
        """Return test errors of lazy and of thrown networks, from usual starts and from silent ones."""
        data = signs(digits((3, 8)))
        images = np.asarray(data.x)
        images = images - images.mean(0)
        shape = self.seeds * DRAWS, self.relu_width, RELU_IMAGES
        measured = {}
        for name in ("usual", "silent"):
            silent = name == "silent"
            rng = kit.numpy_generator(key)  # the same images for both
            errors = errors_of_steps(rng, images, np.asarray(data.y), shape, silent=silent)
            lazy, thrown = errors
            groups = (self.seeds, DRAWS)
            measured[f"{name}_lazy"] = ("seed draw", lazy.reshape(groups))
            measured[f"{name}_thrown"] = ("seed draw clock", thrown.reshape(*groups, -1))
        return measured

    def linearized(self, setting: Setting) -> Values:
        """Return which linearized networks diverge under descent, ``(seeds, multiples)``."""
        output = np.repeat(np.asarray(setting.output)[:, None], len(self.multiples), 1)
        diverged = np.zeros(output.shape, bool)
        for _ in range(self.steps):
            output = np.where(diverged, output, output * (1 - np.array(self.multiples)))
            diverged |= output**2 / 2 > DIVERGED
        return diverged

    def descents(
        self, noise: jax.Array, key: kit.Key, images: jax.Array, labels: jax.Array
    ) -> tuple[Trajectory, Trajectory, jax.Array, jax.Array, dict[str, jax.Array]]:
        """Return a descent at every step, ends and first risks over γλ₀, risks over widths, and ReLU networks' ends."""
        net = linear_network(self.dimension, self.width)
        multiples = jnp.array(self.multiples)

        def of_start(start: Params) -> tuple[Trajectory, Trajectory, jax.Array]:
            trace = descend_linear(net, start, self.multiple, self.steps, target=self.target)
            end = lambda multiple: descend_linear(net, start, multiple, self.steps, self.steps)
            early = lambda multiple: descend_linear(net, start, multiple, EARLY).risk
            return trace, jax.vmap(end)(multiples), jax.vmap(early)(multiples)

        trace, phases, early = jax.lax.map(of_start, two_layers(noise[:, : self.width]))
        scaling = risks_over_widths(noise, self.widths, self.multiple, SCALING_STEPS)
        relu_noise = jax.random.normal(key, (RELU_NETWORKS, self.relu_width, images.shape[2] + 1))
        over_multiples = jax.vmap(self.descend_relu, (None, None, None, 0))
        over_networks = jax.vmap(over_multiples, (None, None, 0, None))
        over_images = jax.vmap(over_networks, (0, None, None, None))
        relu_multiples = jnp.array(self.relu_multiples)
        relu = over_images(images, labels, two_layers(relu_noise), relu_multiples)
        return trace, phases, early, scaling, relu

    def descend_relu(
        self, images: jax.Array, labels: jax.Array, start: Params, multiple: jax.Array
    ) -> dict[str, jax.Array]:
        """Descend with a ReLU network at γ = multiple/λ₀: first, largest and last loss, and γλ at the end."""
        widths = (images.shape[1], self.relu_width, 1)
        net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, bias=False)
        lr = multiple / ntk_top(net, start, images)
        path = descend(
            lambda params: 0.5 * jnp.mean((net.apply(params, images) - labels) ** 2),
            start,
            optax.sgd(lr),
            self.relu_steps,
            ceiling=DIVERGED,
        )
        return {
            "first": path.risk[0],
            "peak": jnp.nanmax(path.risk),
            "last": path.risk[-1],
            "steepness": lr * ntk_top(net, path.params, images),
        }

    def derive(self, law, seen):
        """Return deviations from the recursion, slopes of the time of the peak, and what became of ReLU networks."""
        paths = [(seen[name], law[name]) for name in ("loss", "steepness")]
        with np.errstate(invalid="ignore"):  # a wrong rule may diverge
            off = [abs(a - b) / abs(b).max("step") for a, b in paths]
        growth = 0.5 * np.log(seen.width / seen.start_loss).transpose("seed", "width")
        lanes = zip(growth.values, seen.peak_time.values, strict=True)
        slopes = [np.polyfit(logs, times, 1)[0] for logs, times in lanes]
        # one and the mean difference over the mean of all, as an error may vanish
        over = lambda error, other: 1 + (error - other) / other.mean(("seed", "draw"))
        of_raw = {"data": 0, "relu": 1}
        flat = seen.relu_flatness.isel(of_raw)
        rises = seen.relu_peak.isel(of_raw) > 1
        converges = seen.relu_loss.isel(of_raw) < 1
        return {
            "off": xarray.concat(off, "quantity"),
            "ends_off": abs(seen.flatness / law.flatness - 1),
            "fall": self.fallen(seen),
            "slopes": xarray.DataArray(slopes, dims="seed"),
            "test_error": over(seen.usual_thrown, seen.usual_lazy),
            "silent_error": over(seen.silent_lazy, seen.usual_thrown),
            "relu_end": flat,
            "relu_thrown": (rises & converges & (flat > 0)).astype(float).mean("network"),
        }

    def fallen(self, seen: xarray.Dataset) -> xarray.DataArray:
        """Return 1 − λ_∞/λ₀ of the networks below 2/λ₀."""
        few = len(self.lazy)
        ends = seen.flatness.isel(thrown=slice(0, few)).rename(thrown="lazy")
        ends = ends.assign_coords(lazy=np.array(self.lazy))
        return 1 - ends / ends.lazy

    def judge(self, law, seen):
        yield kit.agrees("recursion", seen.off, 1e-9, label="relative deviation from the recursion")
        yield kit.follows(
            "threshold",
            law.threshold,
            seen.threshold,
            0.005,
            each=True,
            label="γλ₀ around which divergence starts",
        )
        yield kit.follows(
            "rise",
            law.rise,
            seen.rise,
            0.03,
            each=True,
            label="γλ₀ around which the loss begins to rise",
        )
        yield kit.follows(
            "lazy_fall",
            law.fall,
            seen.fall,
            0.05,  # the next order in 1/m takes up to 2 % at γλ₀ = 1.5 and m = 500
            over="lazy",
            each=True,
            label="1 − λ/λ₀ in the end, below 2/λ₀",
        )
        yield kit.agrees(
            "final_flatness",
            seen.ends_off,
            1e-6,  # rounding grows while the loss does
            label="γλ where descent ends, over the recursion's, less one",
        )
        yield from self.judge_digits(law, seen)
        yield from self.judge_peaks(law, seen)

    def judge_digits(self, law, seen):
        """Compare where descents of ReLU networks on digits end, and their test errors."""
        yield kit.at_most(
            "relu_flatness",
            law.relu_flatness,
            seen.relu_end,
            each=True,
            label=f"γλ after γλ₀ = {self.relu_multiples[1]:g}, ReLU on digits",
        )
        yield kit.agrees(
            "relu_thrown",
            abs(seen.relu_thrown - law.relu_thrown),
            0.0,
            label="share of ReLU networks whose loss does not rise, or does not converge then",
        )
        yield kit.at_most(
            "catapult_error",
            law.test_error,
            seen.test_error,
            over="clock",
            label="ReLU on digits: test error at γλ₀ = 3 over that at 1.5",
        )
        yield kit.at_most(
            "start_forgotten",
            law.silent_error,
            seen.silent_error,
            over="clock",
            label="test error of lazy networks with no output at the start over that of thrown ones",
        )

    def judge_peaks(self, law, seen):
        """Compare how high the loss is thrown at each width, and when."""
        yield kit.power(
            "peak_exponent",
            law.peak,
            seen.peak_loss,
            0.08,  # the correction at m = 100 is 0.03, and the interval 0.04
            over="width",
            label="peak loss against width",
        )
        yield kit.follows(
            "peak_time",
            law.peak_time_slope,
            seen.slopes,
            0.12,  # the interval is 6 %, the correction at m = 100 is 4 %
            label="steps to the peak per log √(m/L₀)",
        )

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
            "it is the same at y = 0",
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
            relu_flatness=1.0,
        )
        yield kit.rival(
            "the test error falls to 1/γλ₀, as the curvature may",
            "flatter minima err less, and steps converge fastest at γλ = 1",
            id="as_flat",
            test_error=("clock", [1 / THROWN_STEP] * 2),
        )
        yield kit.rival(
            "peak loss ∝ √m", "the output, not the loss, is of order √m", peak=law.peak**0.5
        )
        yield kit.rival(
            "growth by γλ₀ − 2 a step",
            "log(γλ₀ − 1) for γλ₀ near 2",
            peak_time_slope=1 / (self.multiple - LAZY) if self.multiple > LAZY else 1.0,
        )

    def paths_of_rule(self, setting: Setting, rule: Callable[..., Values]) -> dict[str, Any]:
        """Return the paths of another rule for λ."""
        output = np.asarray(setting.output)
        ntk = np.asarray(setting.ntk)
        lr = self.multiple / ntk
        outputs = [output]
        kernels = [ntk]
        with np.errstate(all="ignore"):  # a wrong rule may diverge
            for _ in range(self.steps):
                r = output - self.target
                growth = rule(r, ntk, lr) * lr / self.width
                # r' = r(1 − γλ + γ²zr/m), exact
                output = self.target + r * (1 - lr * ntk + lr**2 * output * r / self.width)
                ntk = ntk + growth
                outputs.append(output)
                kernels.append(ntk)
            loss = (np.transpose(outputs) - self.target) ** 2 / 2
        steepness = lr[:, None] * np.transpose(kernels)
        dims = ("seed", "step")
        large = lambda values: np.nan_to_num(values, nan=FAR, posinf=FAR, neginf=-FAR)
        return {"loss": (dims, large(loss)), "steepness": (dims, large(steepness))}

    def controls(self, seen):
        names = ("relu_loss", "relu_peak", "relu_flatness")
        lazy = {name: seen[name].isel(relu=0) for name in names}
        turned = lambda array: (array.dims, np.roll(array.values, 1, 0))
        yield kit.control(
            "networks linearized at their start",
            "a linearized network keeps the kernel of its start",
            threshold=seen.linear_threshold,
            flatness=seen.linear_flatness,
            relu_flatness=xarray.DataArray(np.array(self.relu_multiples), dims="relu"),
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
            "the loss at the start for that at the peak",
            "it is the catapult that depends on the width",
            id="start",
            peak_loss=seen.start_loss,
        )
        yield kit.control(
            f"ReLU networks at γλ₀ = {self.relu_multiples[0]:g}",
            "below 2/λ₀ the loss does not rise",
            id="lazy_relu",
            **lazy,
        )
        yield kit.control(
            "ReLU networks that start with no output",
            "there is no output of the start to forget",
            usual_thrown=seen.silent_thrown,
            usual_lazy=seen.silent_lazy,
        )
        yield kit.control(
            "lazy networks from the usual start for those with no output there",
            "they keep the output of their start",
            id="usual_start",
            silent_lazy=seen.usual_lazy,
        )

    def figure(self, law, seen, rivals):
        shown = min(self.steps + 1, 41)
        steps = np.arange(shown)
        flat = seen.end_flatness[0].values
        flat = np.where(np.isfinite(flat), flat, np.nan)
        peaks = seen.peak_loss.mean("seed").values
        widths = np.array(self.widths)
        relu = [
            kit.observed_curve(self.relu_multiples, seen.relu_loss[i], name, shade=float(i))
            for i, name in enumerate(("raw pixels", "centred pixels"))
        ]
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
        yield kit.panel(
            "ReLU on digits: where training ends is empirical",
            "γλ₀",
            "loss at the end / at the start",
            *relu,
            kit.context_curve((12, 12), (0, 1), "12", kind="dashed"),
            log="x",
        )
