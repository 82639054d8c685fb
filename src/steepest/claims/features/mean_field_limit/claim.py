"""With output scale 1/N, wide networks follow a limit flow up to errors of order N^(−1/2).

One-pass SGD with step size ε adds an error of order √ε, which grows with the number D of inputs like √D. A network
depends on its neurons only through their distribution, and as N → ∞ this distribution follows a partial differential
equation. At width N the error is the Gaussian fluctuation of the start, carried by the linearized flow. At step ε of
one-pass SGD the error is the noise of the steps. Neurons move equally far at every width, so this is no kernel regime.

With D inputs the squared noise of the steps is ε times D, times nearly a constant, whatever the width. So a given
accuracy takes of the order of D examples, not ND.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.mean_field_limit.experiment import (
    LABELS,
    Setting,
    draw_examples,
    noise_in_dimensions,
    train_all,
)
from steepest.claims.features.mean_field_limit.figure import panels_of_distances
from steepest.claims.features.mean_field_limit.point import MeanFieldPoint
from steepest.claims.features.mean_field_limit.theory import (
    limit_of,
    noise_of_labels,
    relative_difference,
)

MARGIN = 0.25
"""Of a mean squared distance: the interval takes 0.1, and the next order in 1/N and in ε as much."""
MOST_STEPS = 10**5


@kit.claim
class MeanFieldLimit(kit.Claim[Setting]):
    """Tanh networks of two inputs, trained by gradient flow and by one-pass SGD on a few examples on a circle."""

    widths: tuple[kit.Count, ...] = kit.param(
        (60, 180, 540),
        "N",
        unit="neurons",
        scope=kit.choices(
            (60, 180, 540),
            (64, 256, 1024),
            (100, 300, 900),
            why="below the next order in 1/N is seen",
        ),
    )
    times: tuple[kit.Positive, ...] = kit.param(
        (0.2, 0.6, 2.0),
        "times of the flow, in time multiplied by N, increasing",
        scope=kit.choices((0.2, 0.6, 2.0), (0.2, 0.8, 3.0), why="later SGD is as noisy as early"),
    )
    rates: tuple[kit.Positive, ...] = kit.param(
        (0.02, 0.05, 0.1),
        "ε of one-pass SGD",
        scope=kit.choices(
            (0.02, 0.05, 0.1), (0.0125, 0.05, 0.1), why="above the next order in ε is seen"
        ),
    )
    examples: kit.Count = kit.param(
        12,
        "examples, the whole population",
        scope=kit.between(8, 20, "fewer often have small targets"),
    )
    radius: kit.Positive = kit.param(
        1.4, "length of an example", scope=kit.between(1.0, 1.6, "longer ones make steeper neurons")
    )
    height: kit.Positive = kit.param(
        0.5,
        "height of the target, height · (tanh 2x₁ − tanh 2x₂)",
        scope=kit.between(0.4, 0.6, "outputs at the start are small beside it"),
    )
    dimensions: tuple[kit.Count, ...] = kit.param(
        (4, 8, 16, 32),
        "D of networks that are trained on noise",
        scope=kit.choices((4, 8, 16, 32), (4, 12, 36), why="more take longer"),
    )
    neurons: tuple[kit.Count, ...] = kit.param(
        (32, 128),
        "N of the same, even",
        scope=kit.choices((32, 128), (40, 160), why="below the next order in 1/N is seen"),
    )
    seeds: kit.Seeds = kit.param(40, "independent groups of starts")
    starts: kit.Count = kit.param(40, "starts of each width in a group")

    kind = "limit"
    says = {
        "wide networks follow a limit flow": ("distance", "movement"),
        "up to errors of order N^(−1/2)": ("distance", "width_exponent"),
        "adds an error of order √ε": ("noise", "step_exponent", "both"),
        "grows with the number D of inputs like √D": ("samples", "dimension_exponent"),
    }
    tiny = {
        "widths": (150, 300),
        "times": (0.5, 1.0),
        "rates": (0.1, 0.25),
        "examples": 4,
        "dimensions": (4, 8),
        "neurons": (16, 32),
        "seeds": 3,
        "starts": 2,
    }
    full = {"widths": (60, 180, 540, 1620), "rates": (0.01, 0.02, 0.05, 0.1), "starts": 80}
    out_of_scope = {"rates": (0.5, 0.25), "times": (0.5, 1.0), "starts": 2}
    point = MeanFieldPoint

    def axes(self):
        return {
            "width": self.widths,
            "time": self.times,
            "rate": self.rates,
            "example": range(self.examples),
            "dimension": self.dimensions,
            "neurons": self.neurons,
        }

    def check_fields(self) -> None:
        """Refuse times that do not increase, and steps that do not end at them."""
        if any(later <= time for time, later in zip(self.times, self.times[1:], strict=False)):
            raise kit.UserError(f"times must increase, got {self.times}")
        if self.times[-1] / min(self.rates) > MOST_STEPS:
            raise kit.UserError(
                f"--times {self.times[-1]:g} takes more than {MOST_STEPS} steps of {min(self.rates):g}; raise --rates"
            )
        if min(self.dimensions) < 3 or any(number % 2 for number in self.neurons):
            raise kit.UserError(
                f"--dimensions must be three or more, and --neurons even, got {self.dimensions} and {self.neurons}"
            )
        steps = np.divide.outer(self.times, self.rates)
        if np.abs(steps - steps.round()).max() > 1e-6:
            raise kit.UserError(
                f"every time must be a whole number of steps of each rate, got --times {self.times} and --rates "
                f"{self.rates}"
            )

    def setting(self, key):
        return draw_examples(key, self.examples, self.radius, self.height)

    def hypotheses(self, setting):
        limit = limit_of(setting.x, setting.y, self.times)
        other = limit_of(setting.x, setting.y, self.times, 0.5)
        yield kit.assume("smallest width", min(self.widths), ">=", 30, "the law is for N → ∞")
        yield kit.assume(
            "variance of outputs at the first time, of the smallest network, over mean y²",
            float(limit.alone[0] / min(self.widths) / np.mean(setting.y**2)),
            "<=",
            0.06,
            "neurons move by their own noise; raise --widths or --height",
        )
        yield kit.assume(
            "largest ε‖x‖²",
            max(self.rates) * self.radius**2,
            "<=",
            0.5,
            "the law is for ε → 0; lower --rates",
        )
        yield kit.assume(
            "relative difference of the laws by two quadratures",
            relative_difference(limit, other, max(self.widths)),
            "<=",
            MARGIN / 3,
            "choose shorter --times or a smaller --radius",
        )

    def predict(self, setting):
        limit = limit_of(setting.x, setting.y, self.times)
        square = limit.start / np.array(self.widths)[:, None]
        noise = limit.noise * np.array(self.rates)[:, None]
        return kit.law(
            limit=("time example", limit.outputs),
            square=("width time", square),
            noise=("rate time", noise),
            # start and draws are independent, and squares add up
            both=("width rate time", square[:, None] + noise),
            movement=("width time", np.broadcast_to(limit.movement, square.shape)),
            sampling=(
                "neurons dimension time",
                np.stack(
                    [noise_of_labels(self.dimensions, self.times, LABELS)] * len(self.neurons)
                ),
            ),
        )

    def observe(self, setting, key):
        trained = train_all(
            setting,
            key,
            widths=self.widths,
            times=self.times,
            rates=self.rates,
            seeds=self.seeds,
            starts=self.starts,
        )
        on_noise = noise_in_dimensions(
            kit.numpy_generator(key),
            seeds=self.seeds,
            dimensions=self.dimensions,
            neurons=self.neurons,
            times=self.times,
        )
        return kit.seen(**trained, **on_noise)

    def derive(self, law, seen):
        """Return squared distances: of flows and of SGD from the limit, and of SGD from the flow of the same start."""
        square = lambda values: (values**2).mean("example", skipna=False)
        return {
            "squares": square(seen.flows - law.limit),
            "boths": square(seen.sgd - law.limit),
            "noises": square(seen.sgd - seen.flows),
        }

    def judge(self, law, seen):
        rms = lambda squares: squares.isel(time=-1).mean("start", skipna=False) ** 0.5
        widest = int(np.argmax(self.widths))
        yield kit.follows(
            "distance",
            law.square,
            seen.squares,
            MARGIN,
            label="squared distance of gradient flow from the limit",
        )
        yield kit.power(
            "width_exponent",
            law.square.isel(time=-1) ** 0.5,
            rms(seen.squares),
            0.06,  # twice the interval
            over="width",
            label="distance of gradient flow against N, last time",
        )
        yield kit.follows(
            "movement",
            law.movement,
            seen.moved,
            0.05,  # the interval takes 0.01, the next order in 1/N 0.01
            label="movement of neurons under gradient flow",
        )
        yield kit.follows(
            "noise",
            law.noise,
            seen.noises.isel(width=widest),
            MARGIN,
            label="squared distance of SGD from gradient flow of the same start, largest width",
        )
        yield kit.power(
            "step_exponent",
            law.noise.isel(time=-1) ** 0.5,
            rms(seen.noises.isel(width=widest)),
            0.06,  # twice the interval
            over="rate",
            label="distance of SGD from gradient flow against ε, last time, largest width",
        )
        yield kit.follows(
            "both", law.both, seen.boths, MARGIN, label="squared distance of SGD from the limit"
        )
        yield from self.judge_sampling(law, seen)

    def judge_sampling(self, law, seen):
        """Compare the noise of steps in D dimensions, around a limit at rest."""
        yield kit.follows(
            "samples",
            law.sampling,
            seen.sampling,
            MARGIN,
            label="squared distance from a limit at rest over ε, of SGD on noise in D dimensions",
        )
        yield kit.power(
            "dimension_exponent",
            law.sampling.isel(time=-1, neurons=-1) ** 0.5,
            seen.sampling.isel(time=-1, neurons=-1).mean("draw", skipna=False) ** 0.5,
            0.06,  # twice the interval
            over="dimension",
            label="distance from a limit at rest against D, last time, most neurons",
        )

    def rivals(self, setting, law):
        narrower = _middle(law.width) / law.width
        start = law.square * law.width  # F
        alone = xarray.DataArray(limit_of(setting.x, setting.y, self.times).alone, dims="time")
        yield kit.rival(
            "distance ∝ 1/N",
            "the talk's max(1/N, ε), without the root",
            id="one_over_n",
            square=law.square * narrower,
        )
        yield kit.rival(
            "distance ∝ ε",
            "discretization alone: descent without noise",
            id="linear_in_step",
            noise=law.noise * law.rate / _middle(law.rate),
        )
        yield kit.rival(
            "the larger of both errors alone",
            "the talk's √max(1/N, ε): the smaller error is hidden",
            both=np.maximum(law.square, law.noise).transpose(*law.both.dims),
        )
        yield kit.rival(
            "width and step have one constant",
            "√max(1/N, ε) with one constant",
            noise=(start.isel(width=0, drop=True) * law.rate).transpose(*law.noise.dims),
        )
        yield kit.rival(
            "the central limit of independent neurons at every time",
            "neurons of wide networks are independent draws of the limit's distribution",
            id="independent_neurons",
            square=(alone / law.width).transpose(*law.square.dims),
        )
        yield kit.rival(
            "the distance stays as at the first time",
            "the start's error stays, as a triangle inequality would have it",
            square=law.square.isel(time=0, drop=True),
        )
        yield kit.rival(
            "V = E[yσ]",
            "as printed in the notes of the talk: networks of tanh go to the negative of their target",
            limit=-law.limit,
        )
        yield kit.rival(
            "the kernel regime: neurons move like 1/√N",
            "what the scale 1/√N does",
            movement=law.movement * narrower**0.5,
        )
        yield from self.rivals_of_sampling(law)

    def rivals_of_sampling(self, law):
        """Return wrong theories of the noise of steps in D dimensions."""
        yield kit.rival(
            "n ∝ ND for a given accuracy",
            "as many examples as weights, ND, are what one expects",
            sampling=law.sampling * law.neurons / _middle(law.neurons),
        )
        yield kit.rival(
            "the noise of each step stays",
            "the noise of all steps adds up",
            sampling=(law.sampling.isel(time=0) * law.time / law.time[0]).transpose(
                *law.sampling.dims
            ),
        )
        yield kit.rival(
            "n ∝ D² for a given accuracy",
            "an error ∝ D in place of √D",
            id="dimension_twice",
            sampling=law.sampling * law.dimension / _middle(law.dimension),
        )

    def controls(self, seen):
        yield kit.control(
            "networks with output scale 1/√N, the first of each group",
            "outputs at the start do not concentrate, and neurons hardly move",
            id="kernel_regime",
            flows=seen.kernel,
            moved=seen.kernel_moved,
        )
        yield kit.control(
            "descent on all examples at every step, the first of each group",
            "descent has no noise, so that it is off its flow by the length of its steps alone",
            id="whole_population",
            sgd=seen.whole,
            flows=seen.flows.isel(start=0, drop=True),
        )
        yield kit.control(
            "examples that vary in the fewest dimensions, as many as are drawn in all D",
            "what counts are the dimensions of the examples",
            id="fewest_dimensions",
            sampling=seen.flat,
        )

    def figure(self, law, seen, rivals):
        return panels_of_distances(law, seen, rivals)


def _middle(axis: xarray.DataArray) -> float:
    """Return the geometric mean of an axis."""
    return float(np.exp(np.log(axis).mean()))
