"""Without biases, a ReLU layer on the sphere never learns harmonics of odd degree above one.

It learns other targets degree by degree, and degree l at the rate λ_l². Inputs are uniform on the sphere. For a neuron
with direction w and a residual of degree l, the correlation of neuron and residual is the residual's value at w times a
number λ_l. Gradients of output and hidden weights have the same numbers. So if output weights of many evenly spread
neurons follow the flow, degree l of the residual decays like exp(−λ_l² t). ReLU is |t|/2 + t/2, so λ_3, λ_5, … are
zero: an unbiased network never learns these degrees, whichever weights train.
"""

from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.claims.expressivity.funk_hecke.experiment import (
    DEGREES,
    FELT,
    TIMES,
    falling_times,
    look,
    on_sphere,
    rms,
)
from steepest.dynamics import descend
from steepest.kernels import harmonic_count, relu_multipliers, zonal
from steepest.nn.types import Values

MISSING = (3, 5)
MOMENTS = np.searchsorted(TIMES, np.geomspace(1, 1e5, 11))
"""Places among TIMES at which every degree is judged."""
LARGEST = 2**27
RATE = 0.03  # of Adam, for the trained networks
POLES = (
    8  # targets of each scrambling: neurons are spread unevenly, and not alike around every pole
)


class Setting(NamedTuple):
    """The poles of the targets, and examples in opposite pairs for the networks that are trained."""

    poles: Values  # (poles, d), unit vectors
    x: Values  # (seeds, 2 pairs, d)
    y: Values  # (seeds, 2 pairs), half of degree two and half of degree three


@kit.claim
class FunkHecke(kit.Claim[Setting]):
    """One hidden layer without biases, square loss, targets that are zonal harmonics of degrees 0 to 5."""

    dimension: Annotated[int, kit.Within(3, 8)] = kit.param(
        4,
        "d of the sphere S^(d−1)",
        scope=kit.between(3, 4, "from five on 1024 neurons are no continuum at degree 4"),
    )
    neurons: Annotated[int, kit.Within(16, 4096)] = kit.param(
        1024, "spread evenly over the sphere", unit="neurons"
    )
    inputs: Annotated[int, kit.Within(256, 2**18)] = kit.param(
        16384, "spread evenly over the sphere"
    )
    seeds: kit.Seeds = kit.param(5, "independent scramblings of neurons and inputs")
    pairs: Annotated[int, kit.Within(8, 4096)] = kit.param(
        128, "opposite examples ±x of the trained networks", scope=kit.between(96, 160)
    )
    width: Annotated[int, kit.Within(4, 1024)] = kit.param(
        64,
        "width of the trained networks",
        unit="neurons",
        scope=kit.between(64, 128, "narrower ones are stuck above the floor at some seeds"),
    )
    steps: Annotated[int, kit.Within(10, 10**6)] = kit.param(500, "steps of Adam", unit="steps")
    stretch: Annotated[float, kit.Within(0.1, 10)] = kit.param(
        1.0,
        "stretch of one axis, before inputs are put on the sphere",
        scope=kit.choices(1.0, why="inputs are uniform on the sphere"),
    )

    kind = "limit"
    says = {
        "learns other targets degree by degree": ("outer", "inner", "mixed"),
        "degree l at the rate λ_l²": ("times", "course"),
        "never learns harmonics of odd degree above one": ("missing", "still", "floor"),
    }
    tiny = {
        "dimension": 3,
        "neurons": 512,
        "inputs": 4096,
        "seeds": 3,
        "pairs": 16,
        "width": 16,
        "steps": 300,
    }
    full = {"neurons": 2048, "inputs": 65536, "seeds": 10, "steps": 2000}
    out_of_scope = {"stretch": 2.0}

    @property
    def coarse(self) -> float:
        """Return how much larger errors of means over the inputs are than at 16384."""
        return max(1.0, (16384 / self.inputs) ** 0.75)

    def axes(self):
        return {
            "degree": DEGREES,
            "learned": FELT,
            "moment": tuple(TIMES[MOMENTS].tolist()),
            "time": tuple(TIMES.tolist()),
        }

    def check_fields(self) -> None:
        if self.neurons * self.inputs > LARGEST:
            raise kit.UserError(
                f"neurons times inputs must be at most {LARGEST}, which take 1 GB, got {self.neurons} times "
                f"{self.inputs}; lower --neurons or --inputs"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        poles = on_sphere(rng.standard_normal((POLES, self.dimension)))
        half = on_sphere(rng.standard_normal((self.seeds, self.pairs, self.dimension)))
        x = np.concatenate([half, -half], axis=1)
        even, odd = zonal(self.dimension, (2, 3), x @ poles[0])
        y = even / rms(even) + odd / rms(odd)
        return Setting(poles, x, y / np.sqrt(2))

    def hypotheses(self, setting):
        yield kit.assume(
            "uneven length of the inputs' axes",
            abs(self.stretch - 1),
            "<=",
            1e-9,
            "inputs must be uniform on the sphere",
        )
        yield kit.assume(
            "harmonics up to degree 5 / inputs",
            sum(harmonic_count(self.dimension, degree) for degree in DEGREES) / self.inputs,
            "<",
            0.1,
            "fewer inputs do not tell degrees apart; raise --inputs",
        )
        yield kit.assume(
            "harmonics up to degree 4 / neurons",
            sum(harmonic_count(self.dimension, degree) for degree in DEGREES[:5]) / self.neurons,
            "<",
            0.06,
            "fewer neurons are not spread evenly; raise --neurons",
        )
        yield kit.assume(
            "harmonics of degrees 0 to 2 / width of the trained networks",
            sum(harmonic_count(self.dimension, degree) for degree in range(3)) / self.width,
            "<",
            1,
            "a network so narrow does not fit the even part; raise --width",
        )

    def predict(self, setting):
        multiplier = relu_multipliers(self.dimension, DEGREES)
        floors = [odd_remainder(x, y) for x, y in zip(setting.x, setting.y, strict=True)]
        return kit.law(
            multiplier=("degree", multiplier),
            time=("learned", multiplier[list(FELT)] ** -2),
            left=("degree moment", _left(multiplier**2)),
            still=1.0,  # share of degree 3 when degree 4 has fallen
            floor=("seed", floors),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        runs = [
            look(setting.poles, rng, self.inputs, self.neurons, self.stretch)
            for _ in range(self.seeds)
        ]
        risks = self.train(setting, key)
        arrays = {name: np.array([getattr(run, name) for run in runs]) for name in runs[0]._fields}
        by_degree = "seed degree"
        return kit.seen(
            outer=(by_degree, arrays["outer"]),
            inner=(by_degree, arrays["inner"]),
            mixed=(by_degree, arrays["mixed"]),
            uneven=("seed quantity degree", arrays["uneven"]),
            biased=("seed quantity degree", arrays["biased"]),
            course=("seed degree time", arrays["course"]),
            biased_course=("seed degree time", arrays["biased_course"]),
            at_neuron=("seed neuron", arrays["at_neuron"]),
            at_output=("seed neuron", arrays["at_output"]),
            floor=("seed", risks[0, :, -1]),
            biased_floor=("seed", risks[1, :, -1]),
            falling=("seed", risks[0, :, -2] / risks[0, :, -1] - 1),
        )

    def train(self, setting: Setting, key: kit.Key) -> Values:
        """Train all weights of networks without and with biases; return their risks over the mean of y².

        Shape ``(2, seeds, 3)``: without and with biases; at the start, after nine tenths of the steps, at the end.
        """
        x = jnp.asarray(setting.x)
        y = jnp.asarray(setting.y)

        def train(seed: kit.Key, x: jax.Array, y: jax.Array, biased: jax.Array) -> jax.Array:
            draw = jax.random.normal(seed, (self.width, x.shape[1] + 2))
            start = (draw[:, :-2], draw[:, -2], draw[:, -1])

            def risk(weights: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
                w, b, a = weights
                hidden = jax.nn.relu(x @ w.T + biased * b)
                return ((hidden @ a / self.width**0.5 - y) ** 2).mean()

            marks = np.array([0, self.steps * 9 // 10, self.steps])
            path = descend(risk, start, optax.adam(RATE), self.steps, record=marks)
            return path.risk / (y**2).mean()

        def run(key: kit.Key, x: jax.Array, y: jax.Array) -> jax.Array:
            seeds = jax.random.split(key, self.seeds)
            lane = lambda biased: jax.vmap(train, (0, 0, 0, None))(seeds, x, y, biased)
            return jax.vmap(lane)(jnp.array([0.0, 1.0]))

        return np.asarray(kit.compiled(run)(key, x, y))

    def run_conditions(self, observed):
        last = observed["course"][:, FELT, -1]
        yield kit.assume(
            "largest share left of degrees 0, 1, 2, 4 at the end",
            float(np.abs(last).max()),
            "<",
            np.exp(-1),
            "the times watched are too short",
        )
        yield kit.assume(
            "largest fall of a trained network's risk in its last tenth of steps",
            float(observed["falling"].max()),
            "<",
            0.01,
            "training has not arrived; raise --steps",
        )

    def derive(self, law, seen):
        """Return when each degree has fallen to 1/e, what is left at the judged moments, and of degree 3 at the end."""
        courses = seen.course.transpose("seed", "degree", "time").values
        times = np.minimum(falling_times(courses), TIMES[-1])
        at = seen.course.isel(time=MOMENTS).rename(time="moment")
        end = int(np.searchsorted(TIMES, times.max(), side="right") - 1)
        return {
            "times": xarray.DataArray(times, {"learned": list(FELT)}, ("seed", "learned")),
            "left": at.assign_coords(moment=law.moment),
            "still": seen.course.sel(degree=3, drop=True).isel(time=end, drop=True),
        }

    def judge_multipliers(self, law, seen):
        """Judge what neurons feel of each degree."""
        unit = float(relu_multipliers(self.dimension, (2,))[0])
        missing = {"degree": list(MISSING)}
        layers = {"outer": ("output", FELT), "inner": ("hidden", FELT[1:])}
        unfelt = [abs(seen[name] - law.multiplier).sel(missing) for name in layers]
        yield from (
            kit.follows(
                name,
                law.multiplier.sel(degree=list(degrees)),
                seen[name].sel(degree=list(degrees)),
                # evenly spread inputs leave half a percent at degree four, the smallest of these numbers
                0.02 * self.coarse,
                each=True,
                label=f"λ as {words} weights feel it",
            )
            for name, (words, degrees) in layers.items()
        )
        yield kit.agrees(
            "mixed",
            seen.mixed / unit,
            # what is left of an integral over 16384 inputs, largest at degree 5; of degree 4 felt as 2, a third
            0.03 * self.coarse,
            label="part of what is felt that is not of the residual's degree, over λ of degree 2",
        )
        yield kit.agrees(
            "missing",
            np.maximum(*unfelt),
            unit / 400 * self.coarse,
            label="|λ| felt of degrees 3 and 5",
        )

    def judge(self, law, seen):
        yield from self.judge_multipliers(law, seen)
        yield kit.follows(
            "times",
            law.time,
            seen.times,
            0.05,  # 1024 evenly spread neurons learn degree 4 slower by 1 %; the interval is up to 2.5 %
            label="time until 1/e of a degree is left",
        )
        yield kit.follows(
            "course",
            law.left,
            seen.left,
            0.03
            * self.coarse,  # 1 % of the time of degree 4 is 0.004, and more of the odd degrees leaks
            absolute=True,
            each=True,
            label="share of every degree left",
        )
        yield kit.follows(
            "still",
            law.still,
            seen.still,
            0.03 * self.coarse,
            absolute=True,
            label="share of degree 3 left when degree 4 has fallen to 1/e",
        )
        yield kit.follows(
            "floor",
            law.floor,
            seen.floor,
            (1 - 1e-9, 1.03),  # no network is below; that training arrives is not a theorem
            each=True,
            label="risk of trained unbiased networks over the risk of the best linear odd part",
        )

    def rivals_of_multipliers(self, law):
        """Return other multipliers, and other rates of learning."""
        d = self.dimension
        multiplier = law.multiplier.values
        count = np.array([harmonic_count(d, degree) for degree in DEGREES])
        felt = list(FELT)
        smooth = multiplier.copy()
        smooth[3] = np.sqrt(np.abs(multiplier[2] * multiplier[4]))
        smooth[5] = np.abs(multiplier[4]) / 2

        def rates(values: Values) -> dict[str, Any]:
            """Return the laws of other rates."""
            return {
                "time": (("learned",), 1 / values[felt]),
                "left": (("degree", "moment"), _left(values)),
            }

        of_degree = lambda values: (("degree",), values)
        gaussian = hermite() / np.sqrt(d * count)
        circle = zonal(d, DEGREES, 0.0) * multiplier[0]
        circle[1] = 1e-9  # zero, to which there is no ratio
        yield kit.rival(
            "Hermite coefficients in place of the sphere's",
            "in high dimension ⟨w, x⟩ is nearly Gaussian",
            id="gaussian",
            multiplier=of_degree(gaussian),
            **rates(gaussian**2),
        )
        yield kit.rival(
            "Funk's own multipliers, the mean over a great circle",
            "“in particular the Funk transform”",
            id="great_circle",
            multiplier=of_degree(circle),
        )
        yield kit.rival(
            "odd degrees are felt as much as their neighbours",
            "a ReLU is no polynomial, so that no degree is missing",
            multiplier=of_degree(smooth),
            left=(("degree", "moment"), _left(smooth**2)),
        )
        yield kit.rival(
            "degree l dies like exp(−|λ_l| t)",
            "the gradient is multiplied by λ once",
            **rates(np.abs(multiplier)),
        )
        yield kit.rival(
            "degrees of many harmonics are learned faster, by √N_l",
            "there are N_l harmonics of a degree to learn from",
            id="multiplicity",
            **rates(multiplier**2 * np.sqrt(count)),
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_multipliers(law)
        yield kit.rival(
            "degree 3 is learned before degree 4",
            "the best polynomial of degree k is learned, degree by degree",
            still=0.0,
        )
        yield kit.rival(
            "training finds the odd part too",
            "“error close to the best degree k polynomial”",
            floor=0.01,
        )
        yield kit.rival(
            "training finds a tenth of the odd part",
            "hidden weights turn, so that gates of pairs ±x need not be opposite",
            id="tenth",
            floor=0.9 * law.floor,
        )

    def controls(self, seen):
        names = ("outer", "inner", "mixed")
        of = lambda array: {name: array.isel(quantity=i) for i, name in enumerate(names)}
        yield kit.control(
            "neurons with biases",
            "with biases the odd degrees are there",
            **of(seen.biased),
            course=seen.biased_course,
            floor=seen.biased_floor,
        )
        yield kit.control(
            "inputs of which one axis is twice as long",
            "harmonics of different degrees are then not orthogonal",
            id="uneven",
            **of(seen.uneven),
        )

    def figure(self, law, seen, rivals):
        multiplier = law.multiplier.values
        felt = list(FELT)
        at_neuron = np.sort(seen.at_neuron[0].values)
        at_output = seen.at_output[0].values[np.argsort(seen.at_neuron[0].values)]
        sizes = lambda values: np.abs(values.sel(degree=felt))
        wrong = {name: rivals[name].multiplier for name in ("gaussian",) if name in rivals}
        yield kit.panel(
            "What a neuron feels of degree 2",
            "the residual where the neuron looks, Y(w)",
            "− gradient of its output weight",
            kit.observed_curve(at_neuron, at_output, "neurons", kind="points"),
            kit.predicted_curve(at_neuron, multiplier[2] * at_neuron, "λ₂ Y(w)"),
        )
        yield kit.panel(
            "The numbers λ",
            "degree l",
            "|λ|",
            kit.observed_curve(DEGREES, np.abs(seen.outer), "output weights", kind="points"),
            kit.observed_curve(
                DEGREES[1:], np.abs(seen.inner)[:, 1:], "hidden weights", kind="points", shade=0.6
            ),
            kit.predicted_curve(felt, sizes(law.multiplier), "theory; 3, 5: zero"),
            *(kit.rival_curve(felt, sizes(wrong_law), name) for name, wrong_law in wrong.items()),
            log="y",
        )
        yield self.course_panel(law, seen)

    def course_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw what is left of each degree over time."""
        multiplier = law.multiplier.values
        left = seen.course.mean("seed").values
        later = TIMES[1:]
        curves = [
            kit.observed_curve(later, left[degree, 1:], f"degree {degree}", shade=place / 4)
            for place, degree in enumerate((0, 1, 2, 4, 3))
        ]
        theory = [
            kit.predicted_curve(
                later,
                np.exp(-(multiplier[degree] ** 2) * later),
                "exp(−λ² t)" if degree == 0 else "",
            )
            for degree in FELT
        ]
        return kit.panel(
            "Output weights learn degree by degree",
            "time t",
            "share of the residual left",
            *curves,
            *theory,
            log="x",
            ylim=(-0.05, 1.1),
            xlim=(1, 1e6),
        )


def _left(rates: Values) -> Values:
    """Return what is left of each degree at the judged moments, ``(degrees, moments)``."""
    return np.exp(-rates[:, None] * TIMES[MOMENTS])


def odd_remainder(x: Values, y: Values) -> float:
    """Return what the best linear function leaves of the odd part of y, over the mean of y²; rows are ±x.

    An unbiased network's odd part is Σ_j a_j ⟨w_j, x⟩/2, linear; its even part can at best fit that of y.
    """
    half = len(x) // 2
    odd = (y[:half] - y[half:]) / 2
    fitted = x[:half] @ np.linalg.lstsq(x[:half], odd, rcond=None)[0]
    return float(((odd - fitted) ** 2).mean() / (y**2).mean())


def hermite() -> Values:
    """Return E[relu(z) He_l(z)]/√l! for the degrees 0 to 5, z standard Gaussian."""
    # relu is z/2 + |z|/2, and E relu(z) z^(2j) = 2^j j!/√(2π)
    root = np.sqrt(2 * np.pi)
    return np.array([1 / root, 0.5, 1 / (root * np.sqrt(2)), 0.0, -1 / (root * np.sqrt(24)), 0.0])
