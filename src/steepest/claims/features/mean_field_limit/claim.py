"""With output scale 1/N networks follow a limit flow: they are off it by N^(−1/2) in width, √ε in the step of SGD.

A network sees its neurons through their distribution alone, and as N → ∞ that follows a partial differential equation.
What remains at width N is the central limit of the start, carried by the linearized flow; what remains at step ε of
one-pass SGD is the noise of the steps. Neurons move as far at every width: this is no kernel regime.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    Within,
    assume,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.features.mean_field_limit.experiment import (
    STIFF,
    MeanFieldPoint,
    descend_tanh,
    draw_squares,
    initial_rate,
    one_pass,
    tanh_limit,
)
from steepest.linalg import sequential
from steepest.nn.networks import QuadraticMeanField, quadratic_mean_field

INPUTS = 3  # dimension of the inputs of tanh networks
MOST_STEPS = 10**6


class Setting(NamedTuple):
    """The examples that are the population of the tanh networks."""

    x: Values  # (n, 3)
    y: Values  # (n,)


@dataclass(frozen=True)
class MeanFieldLimit(Claim):
    """Squares on Gaussian inputs, (1/N) Σ ⟨θ, x⟩² with target xᵀAx, and tanh neurons on fixed examples."""

    diagonal: tuple[float, ...] = (3.0, 1.0, 0.5, 0.0, 0.0)  # of A [1]
    scale: Positive = 0.5  # τ, deviation of θ at the start [1]
    widths: tuple[Count, ...] = (200, 800, 3200)  # N of the networks of squares [neurons]
    times: tuple[Positive, ...] = (0.5, 2.0)  # of the flow, in time multiplied by N [1]
    draws: Count = 80  # starts of a width and group [1]
    # ε of one-pass SGD [1]
    rates: tuple[Annotated[float, Within(1e-6)], ...] = (2e-4, 1e-4, 5e-5)
    horizon: Positive = 0.5  # time of SGD: steps · ε [1]
    runs: Count = 10  # of SGD at a step and group [1]
    tanh_widths: tuple[Count, ...] = (32, 128, 512)  # N of the tanh networks [neurons]
    examples: Count = 40  # fixed examples of the tanh networks [1]
    tanh_runs: Count = 4  # networks of a width and group [1]
    tanh_steps: Count = 100  # of 0.1, on tanh networks [steps]
    seeds: Seeds = 20  # independent groups [1]

    kind = "limit"
    version = 2  # 1 had 30 starts of a width and group
    headline = ("width_exponent", "step_exponent", "tanh_exponent")
    statement = (
        r"\Big(\mathbb E\,(f_N-f_\infty)^2\Big)^{1/2}\sim N^{-1/2}\sqrt{F(t)},\qquad"
        r"\Big(\mathbb E\,(f_\varepsilon-f_\infty)^2\Big)^{1/2}\sim\sqrt{\varepsilon\,G(t)},\qquad"
        r"\partial_t\rho=\nabla_\theta\!\cdot(\rho\,\nabla_\theta\Psi)"
    )
    source = (
        "Montanari's talk in the notes [@vodrahalli2019]; [@mei2018]; lecture on pathologies of the NTK regime in "
        "[@hanin2022]"
    )
    corrections = (
        "The talk prints Ψ = V + ∫U ρ with V = E[yσ]. With ∂ρ = ∇(ρ∇Ψ) descent needs V = −E[yσ]: as printed the "
        "network runs away from its target: to its negative, or as near as it can come (squares go to zero).",
        "The talk's error √max(1/N, ε) is a bound. The two parts have constants of their own, here F = 0.106 and "
        "G = 19.4 at t = 0.5: the step matters from ε = 0.0055/N on, far below 1/N.",
        "The talk says that the distance explodes with time, like e^(ct). That is the bound: on these networks, which "
        "learn their target, it grows at first and then shrinks: 2.09/√N at the start, 3.75/√N at t = 0.05, 0.33/√N at "
        "t = 0.5 and 0.021/√N at t = 2.",
    )
    remarks = (
        "The squares are outside of the theorem's assumptions (σ is not bounded), but their limit is an ordinary "
        "differential equation of M = E θθᵀ, so that F, G and the limit itself are computed and not fitted: F "
        "carries the Wishart covariance of the start along the linearized flow, G solves a Lyapunov equation with "
        "the exact covariance of a step.",
        "Amplitudes are judged at the largest width and at the smallest step: at N = 100 the squared distance at t "
        "= 2 is 1.27 times its limit's, at ε = 4e-4 it is 1.2 times.",
        "SGD starts from M = τ² I, the limit's start: only M enters, and a network of D neurons has it.",
        "The limit of tanh neurons is the same descent with neurons at the nodes of Gauss–Hermite quadrature, with "
        "their weights; a second-layer sign is none of its own, as ±tanh⟨w, x⟩ = tanh⟨±w, x⟩. Their 40 examples are "
        "the population: the two errors of the theorem are width and time there, not samples.",
        "How the constant depends on D is not tested.",
        "Version 1 had 30 starts of a width and group, where 80 are now: 12 of its 20 fresh seeds held and none "
        "failed, but 8 were inconclusive, as amplitudes were known to 4 to 9 % only.",
    )
    full = {
        "widths": (200, 800, 3200, 12800),
        "draws": 100,
        "rates": (2e-4, 1e-4, 5e-5, 2e-5),
        "runs": 20,
        "tanh_widths": (32, 128, 512, 2048),
        "tanh_steps": 400,
    }
    tiny = {
        "diagonal": (1.0, 0.0),
        "widths": (1000, 1200, 1500),
        "draws": 2,
        "rates": (1e-2, 5e-3, 2e-3),
        "horizon": 0.2,
        "runs": 2,
        "tanh_widths": (4, 8, 16),
        "tanh_runs": 1,
        "examples": 6,
        "tanh_steps": 5,
        "seeds": 3,
    }
    out_of_scope = {"rates": (8e-3, 4e-3, 2e-3), "runs": 2, "tanh_steps": 5}
    point = MeanFieldPoint

    def check_fields(self) -> None:
        if len(self.diagonal) > 6:
            raise UserError(
                f"--diagonal takes at most 6 numbers, for averages of degree eight, got {len(self.diagonal)}"
            )
        if self.horizon / min(self.rates) > MOST_STEPS:
            raise UserError(
                f"--horizon {self.horizon:g} takes more than {MOST_STEPS} steps of {min(self.rates):g}; raise --rates"
            )

    @property
    def model(self) -> QuadraticMeanField:
        """The network of squares."""
        return quadratic_mean_field(np.array(self.diagonal), self.scale)

    @property
    def readings(self) -> np.ndarray:
        """Times at which the flow is compared, 0 first."""
        return np.unique([0.0, *self.times])

    def setting(self, key: Key) -> Setting:
        x = numpy_generator(key).standard_normal((self.examples, INPUTS))
        return Setting(x, 0.5 * (np.tanh(2 * x[:, 0]) - np.tanh(2 * x[:, 1])))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        stiffness = max(self.rates) * initial_rate(self.diagonal, self.scale)
        return [
            assume("largest ε · 2(D + 2)|tr Δ₀|", stiffness, "<", STIFF, "lower --rates"),
            assume(
                "smallest width of squares, in dimensions",
                min(self.widths) / len(self.diagonal),
                ">=",
                10,
                "the linear regime is for N ≫ D; raise --widths",
            ),
            assume("largest width of squares", max(self.widths), ">=", 1000, "raise --widths"),
            assume(
                "largest entry of A − τ²I",
                float(np.abs(np.array(self.diagonal) - self.scale**2).max()),
                ">",
                1e-3,
                "the network starts at its target; choose another --diagonal",
            ),
            assume(
                "steps of SGD at the largest ε",
                round(self.horizon / max(self.rates)),
                ">=",
                20,
                "raise --horizon or lower --rates",
            ),
        ]

    @sequential
    def predict(self, setting: Setting) -> Prediction:
        model = self.model
        tanh = tanh_limit(setting.x, setting.y, self.tanh_steps)
        noises = model.noise(np.linspace(0, self.horizon, 7))
        return Prediction(
            limit=("time row column", model.limit(self.readings)),
            end=("row column", model.limit(np.array([0.0, self.horizon]))[-1]),
            fluctuations=("time", model.fluctuations(self.readings)),
            noise=noises[-1],
            noises=("part", noises),
            width_exponent=-0.5,
            step_exponent=0.5,
            tanh_exponent=-0.5,
            outputs=("example", tanh.outputs),
            movement=("tanh_width", np.full(len(self.tanh_widths), tanh.movement)),
        )

    @sequential
    def observe(self, setting: Setting, key: Key) -> Observation:
        rng = numpy_generator(key)
        model = self.model
        D = len(self.diagonal)
        count = self.seeds * self.draws
        starts = np.stack([draw_squares(rng, N, count, D, self.scale) for N in self.widths])
        flows = model.flow(starts, self.readings)  # (times, widths, count, D, D)
        shape = (len(self.readings), len(self.widths), self.seeds, self.draws, D, D)
        ends = [
            one_pass(model, rng, lr, round(self.horizon / lr), self.seeds * self.runs)
            for lr in self.rates
        ]
        tanh = [
            descend_tanh(
                rng.standard_normal((self.seeds, self.tanh_runs, N, INPUTS)),
                np.full(N, 1 / N),
                setting.x,
                setting.y,
                self.tanh_steps,
            )
            for N in self.tanh_widths
        ]
        return Observation(
            networks=(
                "seed draw time width row column",
                flows.reshape(shape).transpose(2, 3, 0, 1, 4, 5),
            ),
            sgd=(
                "seed run rate row column",
                np.stack(ends, 1).reshape(self.seeds, self.runs, len(self.rates), D, D),
            ),
            outputs=(
                "seed run_tanh tanh_width example",
                np.stack([net.outputs for net in tanh], 2),
            ),
            movement=("seed run_tanh tanh_width", np.stack([net.movement for net in tanh], 2)),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        finite = float(np.isfinite(observed["sgd"]).all())
        return [assume("runs of SGD that stay finite", finite, "==", 1, "lower --rates")]

    def squares(
        self, predicted: Prediction, observed: Observation
    ) -> tuple[Values, Values, Values]:
        """Return mean squared distances by group: of flows (seeds, times, widths), SGD, and tanh networks."""
        model = self.model
        flows = model.distance(observed["networks"], predicted["limit"][:, None]) ** 2
        sgd = model.distance(observed["sgd"], predicted["end"]) ** 2
        tanh = ((observed["outputs"] - predicted["outputs"]) ** 2).mean((1, 3))
        return flows.mean(1), sgd.mean(1), tanh

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        flows, sgd, tanh = self.squares(predicted, observed)
        widest = int(np.argmax(self.widths))
        finest = int(np.argmin(self.rates))
        checks: list[Check] = []
        for name, axis, squares, within, label in (
            ("width", self.widths, flows[:, -1], 0.06, "distance of squares against N, last time"),
            ("step", self.rates, sgd, 0.1, "distance of one-pass SGD against ε"),
            ("tanh", self.tanh_widths, tanh, 0.1, "distance of tanh networks against N"),
        ):
            if len(set(axis)) > 2:
                checks.append(
                    exponent(
                        f"{name}_exponent",
                        float(predicted[f"{name}_exponent"]),
                        axis,
                        np.sqrt(squares),
                        within,  # twice the interval over groups, and the next order at small widths
                        label=label,
                    )
                )
        for i, time in enumerate(self.readings):
            checks.append(
                equal(
                    f"amplitude_{i}",
                    float(predicted["fluctuations"][i]),
                    self.widths[widest] * flows[:, i, widest],
                    0.12,  # the interval over groups is 2 to 5 %, the next order in 1/N 1 %
                    label=f"N · squared distance of squares at t = {time:g}",
                )
            )
        checks.append(
            equal(
                "noise",
                float(predicted["noise"]),
                sgd[:, finest] / self.rates[finest],
                0.2,  # the interval is 7 to 10 %, the next order in ε 3 %
                label="squared distance of one-pass SGD over ε",
            )
        )
        checks.append(
            equal(
                "movement",
                np.ones(self.seeds),
                (observed["movement"] / predicted["movement"]).mean((1, 2)),
                0.05,
                label="movement of tanh neurons / that of the limit",
            )
        )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        printed = quadratic_mean_field(-np.array(self.diagonal), self.scale)
        tau = self.scale**4
        D = len(self.diagonal)
        start = predicted["fluctuations"][0]
        widths = np.array(self.tanh_widths)
        return [
            Rival(
                "one_over_n",
                predicted.replace(width_exponent=-1.0, tanh_exponent=-1.0),
                "the talk's max(1/N, ε), without the root",
                label="distance ∝ 1/N",
            ),
            Rival(
                "linear_in_step",
                predicted.replace(step_exponent=1.0),
                "discretization alone: SGD without noise",
                label="distance ∝ ε",
            ),
            Rival(
                "kernel_scaling",
                predicted.replace(
                    width_exponent=0.0,
                    tanh_exponent=0.0,
                    movement=("tanh_width", predicted["movement"] * np.sqrt(widths[0] / widths)),
                ),
                "what the scale 1/√N does",
                label="the kernel regime: neurons move like 1/√N",
            ),
            Rival(
                "printed_sign",
                predicted.replace(
                    limit=("time row column", printed.limit(self.readings)),
                    end=("row column", printed.limit(np.array([0.0, self.horizon]))[-1]),
                ),
                "as printed in the notes of the talk",
                label="V = E[yσ]",
            ),
            Rival(
                "never_contracts",
                predicted.replace(fluctuations=("time", np.full(len(self.readings), start))),
                "the start's error stays, as a triangle inequality would have it",
                label="the distance stays as at the start",
            ),
            Rival(
                "no_trace",
                predicted.replace(
                    fluctuations=(
                        "time",
                        predicted["fluctuations"] * 2 * tau * (D**2 + D) / start,
                    )
                ),
                "the trace of a Wishart matrix concentrates as well as its entries",
                label="fluctuations without those of the trace",
            ),
            Rival(
                "one_constant",
                predicted.replace(noise=predicted["fluctuations"][1]),
                "√max(1/N, ε) with one constant",
                label="width and step have one constant",
            ),
            Rival(
                "no_drift",
                predicted.replace(noise=predicted["noises"].max()),
                "noise only adds up, so that its peak stays",
                label="noise of SGD that the flow does not damp",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        flows, sgd, tanh = (np.sqrt(values) for values in self.squares(predicted, observed))
        widths = np.array(self.widths, float)
        rates = np.array(self.rates)
        neurons = np.array(self.tanh_widths, float)
        shades = np.linspace(0, 0.8, len(self.readings))
        first = [
            observed_curve(widths, flows[:, i], f"t = {t:g}", kind="points", shade=shade)
            for i, (t, shade) in enumerate(zip(self.readings, shades, strict=True))
        ]
        laws = [
            predicted_curve(widths, np.sqrt(value / widths), "√(F/N)" if i == 0 else "")
            for i, value in enumerate(predicted["fluctuations"])
        ]
        middle = flows[:, -1].mean(0)
        return (
            panel(
                "Squares: the distance falls like N^(−1/2), and with time",
                "width N",
                "distance",
                *first,
                *laws,
                rival_curve(widths, middle[0] * widths[0] / widths, "1/N"),
                log="xy",
            ),
            panel(
                "One-pass SGD: like √ε",
                "step ε",
                "distance",
                observed_curve(rates, sgd, "groups of runs", kind="points"),
                predicted_curve(rates, np.sqrt(float(predicted["noise"]) * rates), "√(G ε)"),
                rival_curve(rates, sgd.mean(0)[0] * rates / rates[0], "ε"),
                log="xy",
            ),
            panel(
                "tanh neurons: like N^(−1/2) too",
                "width N",
                "distance",
                observed_curve(neurons, tanh, "networks", kind="points"),
                predicted_curve(
                    neurons, tanh.mean(0)[0] * np.sqrt(neurons[0] / neurons), "N^(−1/2)"
                ),
                rival_curve(neurons, tanh.mean(0)[0] * neurons[0] / neurons, "1/N"),
                log="xy",
            ),
            panel(
                "Their neurons move as far at every width",
                "width N",
                "movement",
                observed_curve(neurons, observed["movement"].mean(1), "networks", kind="points"),
                predicted_curve(neurons, predicted["movement"], "the limit"),
                rival_curve(
                    neurons, predicted["movement"] * np.sqrt(neurons[0] / neurons), "kernel regime"
                ),
                log="xy",
            ),
        )
