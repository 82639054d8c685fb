"""Rounded to nearest in bfloat16, a weight stops once its update is below half the float spacing.

Smaller step sizes therefore leave more risk. A weight w in [2^e, 2^(e+1)) has the spacing u = 2^(e−7). On the parabola
½h(w − w*)² it stops at a distance of at most u/2ηh from w*, so a smaller step size η ends at a larger risk. If the
weight is rounded at random, its mean moves on, and a risk of hu²/12 is left at every step size. Gradient noise of more
than one spacing per step also lets the weight move on.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.bf16_stall.experiment import DIGITS, Ends, Lane, descend
from steepest.claims.training.bf16_stall.point import Bf16StallPoint

KINDS = ("nearest", "at_random", "float32", "dithered", "dithered_float32")


class Setting(NamedTuple):
    """What weights lie between, in powers of two."""

    spacings: kit.Values  # u at each size


@kit.claim
class Bf16Stall(kit.Claim[Setting]):
    """Weights in bfloat16 that descend, each on its own parabola, with three ways to round."""

    etas: tuple[kit.Positive, ...] = kit.param(
        (0.04, 0.08, 0.16, 0.32),
        "η",
        scope=kit.choices((0.04, 0.08, 0.16, 0.32), (0.05, 0.1, 0.3), (0.06, 0.2, 0.4)),
    )
    exponents: tuple[float, ...] = kit.param(
        (-3.0, 0.0, 2.0),
        "e, whole: weights lie between 2^e and 2^(e+1)",
        scope=kit.choices((-3.0, 0.0, 2.0), (-6.0, -1.0), (-2.0, 1.0, 5.0)),
    )
    curvature: kit.Positive = kit.param(1.0, "h", scope=kit.between(0.8, 1.4))
    noise: kit.Positive = kit.param(
        1.0,
        "size of the noisy gradients: deviation of a step over the spacing",
        scope=kit.between(0.7, 1.2, "beside larger noise rounding is lost"),
    )
    weights: kit.Count = kit.param(4000, "weights of each descent", unit="weights")
    steps: kit.Count = kit.param(450, "steps of each descent", unit="steps")
    seeds: kit.Seeds = kit.param(8, "draws of starts and minima")

    kind = "theorem"
    says = {
        "a weight stops once its update is below half the float spacing": "furthest",
        "Smaller step sizes therefore leave more risk": "left",
    }
    tiny = {"etas": (0.1, 0.3), "exponents": (0.0, 2.0), "weights": 40, "steps": 150, "seeds": 3}
    full = {"weights": 20_000, "steps": 5000}
    out_of_scope = {"etas": (0.001, 0.3)}
    precision = "float32"
    point = Bf16StallPoint

    def axes(self):
        return {"eta": self.etas, "size": tuple(2.0**e for e in self.exponents)}

    def check_fields(self) -> None:
        if any(e != int(e) for e in self.exponents):
            raise kit.UserError(
                f"exponents are whole numbers, as spacings are powers of two, got {self.exponents}; try --exponents 0"
            )

    def setting(self, key):
        return Setting(2.0 ** (np.array(self.exponents) + 1 - DIGITS))

    def hypotheses(self, setting):
        slowest = min(self.etas) * self.curvature
        relative = float(setting.spacings[0]) / 2.0 ** self.exponents[0]
        yield kit.assume(
            "largest ηh",
            max(self.etas) * self.curvature,
            "<",
            0.9,
            "near one a weight arrives in one step",
        )
        yield kit.assume(
            "distance at which weights stop, over the distance of the nearest start",
            relative / (2 * slowest) / 0.55,
            "<=",
            0.5,
            "they must start farther off: raise the smallest step size",
        )
        yield kit.assume(
            "steps in units of 1/ηh",
            self.steps * slowest,
            ">=",
            14,
            "half of the steps must be behind the start: raise --steps",
        )

    def predict(self, setting):
        u = setting.spacings
        eta = np.array(self.etas)[:, None]
        h = self.curvature
        # rounding to the nearest undoes a step ηh|w − w*| below half of a spacing
        reach = u / (2 * eta * h)
        step = self.noise * u  # of the noise, ησ
        return kit.law(
            furthest=("eta size", reach),
            # |w − w*| is uniform in its last spacing, from reach − u to reach
            left=("eta size", h / 2 * (reach**2 - reach * u + u**2 / 3)),
            # w is one of two neighbours of w*, in the mean w*: f(1 − f)u², u²/6 over all places f
            at_random=("eta size", h * u**2 / 12 + 0 * eta),
            # ½hV with V = N/(2ηh − η²h²), N the variances of noise and of an even rounding, u²/12
            dithered=("eta size", (step**2 + u**2 / 12) / (4 * eta - 2 * eta**2 * h)),
        )

    def observe(self, setting, key):
        eta, u = np.meshgrid(self.etas, setting.spacings, indexing="ij")
        sizes = u * 2.0 ** (DIGITS - 1)
        columns = (eta, sizes, self.noise * u / eta)
        lanes = Lane(*(jnp.asarray(column.ravel(), jnp.float32) for column in columns))

        def ends(key: kit.Key) -> list[Ends]:
            def of_kind(rounding: str, noisy: bool, key: jax.Array) -> Ends:
                of_seed = lambda key: self.of_lanes(lanes, key, rounding, noisy=noisy)
                return jax.lax.map(of_seed, jax.random.split(key, self.seeds))

            kinds = [("nearest", False), ("at_random", False), ("float32", False)]
            kinds += [("nearest", True), ("float32", True)]
            return [
                of_kind(rounding, noisy, key)
                for (rounding, noisy), key in zip(kinds, kit.keys(key, len(kinds)), strict=True)
            ]

        shape = (self.seeds, *eta.shape)
        read = lambda values: ("seed eta size", np.asarray(values, float).reshape(shape))
        of_kinds = dict(zip(KINDS, kit.compiled(ends)(key), strict=True))
        measured = {f"{kind}_furthest": read(end.furthest) for kind, end in of_kinds.items()}
        risks = {kind: read(end.risk) for kind, end in of_kinds.items()}
        return kit.seen(**measured, **risks)

    def of_lanes(self, lanes: Lane, key: kit.Key, rounding: str, *, noisy: bool) -> Ends:
        """Return the ends of every lane of one kind, each with draws of its own."""
        keys = jax.random.split(key, len(lanes.step))
        run = lambda lane, key: descend(
            lane, key, rounding, self.curvature, self.weights, self.steps, noisy=noisy
        )
        return jax.vmap(run)(lanes, keys)

    def judge(self, law, seen):
        yield kit.follows(
            "furthest",
            law.furthest,
            seen.nearest_furthest,
            0.02,  # the last of a thousand weights is within u/1000, and c is 1.6 u at least
            label="largest distance at which a weight stops",
        )
        yield kit.follows(
            "left",
            law.left,
            seen.nearest,
            0.05,  # exact in the mean; where c is near u the interval takes 3 %
            label="risk that is left, rounded to nearest",
        )
        yield kit.follows(
            "at_random",
            law.at_random,
            seen.at_random,
            0.05,  # exact in the mean; the interval takes 2 %
            label="risk that is left, rounded at random",
        )
        yield kit.follows(
            "dithered",
            law.dithered,
            seen.dithered,
            0.03,  # the interval takes 1 %
            label="risk beside gradient noise, rounded to nearest",
        )

    def rivals(self, setting, law):
        u = xarray.DataArray(setting.spacings, {"size": law.size}, ("size",))
        eta = law.eta
        h = self.curvature
        as_noise = u**2 / 12 / (4 * eta - 2 * eta**2 * h)
        spacing_apart = u / (eta * h)
        yield kit.rival(
            "it stops where ηh|w − w*| < u",
            "a weight needs a step of one spacing to move",
            furthest=spacing_apart,
            left=h / 2 * (spacing_apart**2 - spacing_apart * u + u**2 / 3),
        )
        yield kit.rival(
            "the risk of noise u²/12 a step, ∝ 1/η",
            "rounding is an even error of variance u²/12 in each step",
            id="as_noise",
            left=as_noise,
            at_random=as_noise,
        )
        yield kit.rival(
            "hu²/24 at every step size",
            "it is the error of rounding once",
            left=h * u**2 / 24 + 0 * law.left,
            at_random=h * u**2 / 24 + 0 * law.at_random,
        )
        yield kit.rival(
            "all weights stop at u/2ηh",
            "it stops as soon as it is as near as that",
            left=h / 2 * law.furthest**2,
        )
        yield kit.rival(
            "the risk of the noise, without rounding",
            "noise undoes the rounding",
            dithered=law.dithered / (1 + 1 / (12 * self.noise**2)),
        )
        yield kit.rival(
            "the same spacing at every size",
            "bfloat16 has 8 bits, as all weights do",
            furthest=law.furthest.isel(size=0, drop=True) + 0 * law.furthest,
            left=law.left.isel(size=0, drop=True) + 0 * law.left,
        )

    def controls(self, seen):
        yield kit.control(
            "weights in float32",
            "spacings are 2¹⁶ times smaller",
            id="float32",
            nearest=seen.float32,
            nearest_furthest=seen.float32_furthest,
            at_random=seen.float32,
            dithered=seen.dithered_float32,
        )
        yield kit.control(
            "rounded at random in place of to nearest",
            "its mean moves on",
            nearest=seen.at_random,
            nearest_furthest=seen.at_random_furthest,
        )
        yield kit.control(
            "gradients without noise",
            "it is the noise that lets weights move on",
            dithered=seen.nearest,
        )

    def figure(self, law, seen, rivals):
        middle = {"size": float(law.size[len(self.exponents) // 2])}
        wrong = {"as noise, 1/η": rivals["as_noise"].left.sel(middle)} if rivals else {}
        yield kit.curves(
            "Rounded to nearest, a smaller step ends higher",
            law.left.sel(middle),
            seen.nearest.sel(middle),
            over="eta",
            x="step size η",
            y="risk that is left",
            rivals=wrong,
            more=(
                kit.observed_curve(
                    self.etas,
                    seen.at_random.sel(middle).mean("seed"),
                    "rounded at random",
                    shade=0.7,
                ),
                kit.predicted_curve(self.etas, law.at_random.sel(middle).values),
            ),
            log="xy",
        )
        yield kit.curves(
            "How far from the minimum weights stop",
            law.furthest,
            seen.nearest_furthest,
            over="eta",
            by="size",
            x="step size η",
            y="largest distance",
            name="weights from {}",
            log="xy",
        )
        yield kit.curves(
            "Gradient noise of a spacing lets them move on",
            law.dithered.sel(middle),
            seen.dithered.sel(middle),
            over="eta",
            x="step size η",
            y="risk beside noise",
            log="xy",
        )
