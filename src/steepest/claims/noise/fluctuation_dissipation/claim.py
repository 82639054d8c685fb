"""In a steady state of SGD the gradient is zero on average, and weights align with it by ½γ tr C̃, at any step size.

C̃ is the second moment of a batch's gradient, not its covariance. On least squares the whole stationary covariance of
the weights is a linear system, exact at any step, whose solution the runs must meet.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Fraction,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    Values,
    assume,
    bound,
    compiled,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.noise.fluctuation_dissipation.experiment import (
    Averages,
    NoisePoint,
    averages,
    minimum,
    patients,
)
from steepest.noise import Sampling, SteadyState, draw_batches, gradient_moments, steady_state

LOSSES = ("squared", "logistic")
DRAWS = 4000
"""Batches at the origin that are drawn in each run."""


class Setting(NamedTuple):
    """Patients, the two exact minima, and the step sizes of each loss."""

    x: Values  # (m, d)
    y: Values  # (m,)
    w: Values  # (losses, d)
    lr: Values  # (losses, shares)


@dataclass(frozen=True)
class FluctuationDissipation(Claim):
    """Ridged linear models of breast cancer, squared and logistic loss, batches drawn by independent coins."""

    # step sizes, as shares of 2/λ_max of the Hessian at the minimum [1]
    shares: tuple[Fraction, ...] = (0.15, 0.3, 0.6)
    batch: Count = 32  # mean size of the batches [1]
    examples: Count = 128  # patients [1]
    ridge: NonNegative = 0.1  # weight decay μ [1]
    burn: Count = 500  # steps before the averages [1]
    steps: Count = 4000  # steps of the averages [1]
    seeds: Seeds = 16  # runs of each loss and step [1]

    kind = "theorem"
    statement = (
        r"\langle\nabla L\rangle=0,\qquad\langle(\theta-a)\cdot\nabla L\rangle="
        r"\tfrac{\gamma}{2}\langle\operatorname{tr}\tilde C\rangle\ \ \forall a,\qquad "
        r"\tilde C=\nabla L\,\nabla L^{\top}+\tfrac1b\big(1-\tfrac bm\big)\tfrac1m\sum_k g_k g_k^{\top}"
    )
    source = "Lecture of 16 November in [@hanin2022], lemma of Yaida; [@yaida2019]"
    corrections = (
        "The lecture writes the second moment as C̃_ii = C_ii + (∂_i L^B)², with the batch's gradient; it is the full "
        "gradient's square, and a control here. The proof drops the square of ½θ_i² once.",
        "The lecture draws batches by independent coins and speaks of covariances. Then the size of a batch is random "
        "too, and its covariance is the uncentred (1/b)(1 − b/m)(1/m) Σ g_k g_kᵀ. The centred one belongs to batches "
        "of a fixed size, with (m − b)/(m − 1) in place of 1 − b/m; at the three steps "
        "here the excess risk would differ by 0.5, 0.03 and 2.7 %, less than is judged. "
        "At the origin the mean gradient is large, and they differ by a quarter: there batches are drawn.",
        "The lecture's N(0, C) for the noise is a limit of large batches. The skewness of the noise falls like "
        "b^(−½): at b = 16 it is 0.2 in the middle, and up to 0.6, over random directions of a tanh network on digits "
        "(its cumulants are exact, steepest.noise.batch_cumulants).",
    )
    remarks = (
        "The average of θ·g with the gradient g of the same batch would telescope: it holds on any run, stationary or "
        "not, and would test nothing. Here full gradient and C̃ come from all examples at every step.",
        "The lemma holds about any point a, since the mean gradient is zero. About the origin flat directions make the "
        "average useless, so that a is the exact minimum.",
        "A stationary law with second moments exists only below a step that is smaller than 2/λ_max; for this set and "
        "batches of 32 it is 0.89 of it. The map of second moments is computed and must contract.",
        "For the logistic loss no such map is known. That its runs, which start at the minimum, stay near it is "
        "seen in what the finite run adds.",
        "The third identity, for the risk itself as observable, ⟨|∇L|²⟩ = ½γ⟨tr HC̃⟩, is exact for the squared loss. "
        "For another it leaves out derivatives of third order.",
    )
    # 1 did not draw batches away from the minimum
    version = 2
    headline = (
        "alignment_squared",
        "alignment_logistic",
        "gradient_squared",
        "gradient_logistic",
    )
    full = {"seeds": 64, "steps": 20000}
    tiny = {"seeds": 3, "steps": 100, "burn": 20}
    out_of_scope = {"shares": (0.95,)}
    point = NoisePoint

    def setting(self, key: Key) -> Setting:
        x, y = patients(self.examples)
        minima = [minimum(x, y, self.ridge, loss == "logistic") for loss in LOSSES]
        limits = np.array([2 / np.linalg.eigvalsh(hessian)[-1] for _, hessian in minima])
        w = np.array([theta for theta, _ in minima])
        return Setting(x, y, w, limits[:, None] * np.array(self.shares))

    def states(self, setting: Setting, sampling: Sampling = "independent") -> list[SteadyState]:
        """Return the exact stationary laws of least squares, one a step."""
        return [self.state(setting, lr, sampling) for lr in setting.lr[0]]

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        radius = max(state.radius for state in self.states(setting))
        return [
            assume(
                "mean size of the batches over examples",
                self.batch / self.examples,
                "<",
                1,
                "batches of all examples have no noise; lower --batch",
            ),
            assume(
                "radius of the map of second moments, squared loss",
                radius,
                "<",
                1,
                "there is no steady state with second moments; lower --shares or raise --batch",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        excess = [_alignment(state) for state in self.states(setting)]
        return Prediction(
            ratio=1.0,
            gradient=0.0,
            noise=self.noise_at_origin(setting, "independent"),
            excess=("share", excess),
            lr=("share", setting.lr[0]),
            curve=(
                "step",
                [_alignment(self.state(setting, lr)) for lr in self.steps_shown(setting)],
            ),
            steps=("step", self.steps_shown(setting)),
        )

    def noise_at_origin(self, setting: Setting, sampling: Sampling) -> float:
        """Return tr C of a batch's gradient of the squared loss at the origin."""
        gradients = -setting.y[:, None] * setting.x
        return float(np.trace(gradient_moments(gradients, self.batch, sampling).covariance))

    def state(self, setting: Setting, lr: float, sampling: Sampling = "independent") -> SteadyState:
        """Return the exact stationary law of least squares at one step."""
        return steady_state(
            setting.x, setting.y, lr, self.batch, ridge=self.ridge, sampling=sampling
        )

    def steps_shown(self, setting: Setting) -> Values:
        """Return the steps of the figure's curve."""
        return np.geomspace(0.3, 1.15, 12) * setting.lr[0].max()

    def observe(self, setting: Setting, key: Key) -> Observation:
        shape = (len(LOSSES), len(self.shares), self.seeds)
        loss, lr, _ = np.meshgrid(
            np.arange(len(LOSSES)),
            np.arange(len(self.shares)),
            np.arange(self.seeds),
            indexing="ij",
        )
        lr = setting.lr[loss, lr]
        # the last runs start away from the minimum, for what is not stationary: squared loss, the middle step
        far = np.zeros((self.seeds, setting.x.shape[1]))
        lanes = {
            "logistic": np.append(loss.ravel(), np.zeros(self.seeds)).astype(float),
            "w": np.concatenate([setting.w[loss.ravel()], np.tile(setting.w[0], (self.seeds, 1))]),
            "start": np.concatenate([setting.w[loss.ravel()], far]),
            "lr": np.append(lr.ravel(), np.full(self.seeds, np.median(setting.lr[0]))),
        }
        for_runs, for_batches = keys(key, 2)
        transient, late = compiled(self.run)(setting.x, setting.y, lanes, for_runs)
        runs = int(np.prod(shape))
        arrays = {
            name: ("loss share seed", np.asarray(values)[:runs].reshape(shape))
            for name, values in late._asdict().items()
        }
        arrays |= {
            f"{name}_early": ("seed", np.asarray(values)[runs:])
            for name, values in transient._asdict().items()
        }
        rng = numpy_generator(for_batches)
        at_origin = -setting.y[:, None] * setting.x
        drawn = [draw_batches(at_origin, self.batch, DRAWS, rng) for _ in range(self.seeds)]
        noise = [batches.var(0, ddof=1).sum() for batches in drawn]
        return Observation(**arrays, noise=("seed", noise))

    def run(self, x: jax.Array, y: jax.Array, lanes: dict, key: Key) -> tuple[Averages, Averages]:
        """Run all lanes at once."""
        one = lambda lane, key: averages(
            x, y, self.ridge, batch=self.batch, key=key, burn=self.burn, steps=self.steps, **lane
        )
        return jax.vmap(one)(lanes, keys(key, lanes["lr"].size))

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        boundary = np.abs(observed["boundary"].mean(2)) / observed["alignment"].mean(2)
        return [
            assume(
                "largest part that the finite run adds to the alignment",
                boundary.max(),
                "<",
                0.02,
                "the runs are too short for a steady state; raise --steps",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        ratio = observed["alignment"] / observed["dissipation"]
        slope = observed["slope"] / observed["curved"]
        gradient = observed["gradient"] / observed["slope"].mean(2, keepdims=True)
        checks: list[Check] = []
        for i, loss in enumerate(LOSSES):
            checks += [
                equal(
                    f"alignment_{loss}",
                    predicted["ratio"],
                    ratio[i].mean(0),
                    0.02,
                    label=f"alignment over ½γ tr C̃, {loss} loss, all steps",
                ),
                bound(
                    f"gradient_{loss}",
                    gradient[i].max(0),
                    # a sum of T independent noises leaves tr C/(T|∇L|²), 8/T at the smallest step
                    at_most=24 / self.steps,
                    label=f"|mean gradient|² over mean |gradient|², {loss} loss, worst step",
                ),
                equal(
                    f"slope_{loss}",
                    predicted["ratio"],
                    slope[i].mean(0),
                    0.02 if loss == "squared" else 0.1,  # the latter leaves out third derivatives
                    label=f"|∇L|² over ½γ tr HC̃, {loss} loss, all steps",
                ),
            ]
        checks.append(
            equal(
                "noise",
                predicted["noise"],
                observed["noise"],
                0.02,
                label="variance of a batch's gradient at the origin, squared loss",
            )
        )
        for i, excess in enumerate(predicted["excess"]):
            checks.append(
                equal(
                    f"excess_{i}",
                    excess,
                    observed["alignment"][0, i],
                    0.04,
                    label=f"twice the excess risk at {self.shares[i]:g} of 2/λ_max, squared loss",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        replaced = self.states(setting, sampling="replacement")
        slow = [
            _small_step(state, lr, self)
            for state, lr in zip(self.states(setting), setting.lr[0], strict=True)
        ]
        return [
            Rival(
                "with_replacement",
                predicted.replace(excess=("share", [_alignment(state) for state in replaced])),
                "1/b in place of (1 − b/m)/b",
                label="batches with replacement",
            ),
            Rival(
                "small_step",
                predicted.replace(excess=("share", slow)),
                "noise is proportional to γ",
                label="½γ tr C at the minimum, to first order in the step",
            ),
            Rival(
                "centred",
                predicted.replace(noise=self.noise_at_origin(setting, "fixed")),
                "it is the covariance of examples drawn without replacement",
                label="the covariance of batches of a fixed size",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        early = {
            name: (
                "loss share seed",
                np.broadcast_to(observed[f"{name}_early"], observed[name].shape),
            )
            for name in ("gradient", "slope", "alignment", "dissipation", "curved")
        }
        dims = "loss share seed"
        return [
            Control(
                "covariance",
                observed.replace(
                    dissipation=(dims, observed["covariance"]),
                    curved=(dims, observed["curved_covariance"]),
                ),
                "the mean's square belongs to the second moment",
                label="covariance C in place of C̃",
            ),
            Control(
                "batch_gradient",
                observed.replace(
                    dissipation=(dims, 2 * observed["covariance"] + _flat(observed)),
                ),
                "the lecture's C̃_ii = C_ii + (∂_i L^B)², in the mean over batches",
                label="2C in place of C in C̃",
            ),
            Control(
                "replacement",
                observed.replace(dissipation=(dims, observed["replaced"])),
                "the batches are a quarter of all examples",
                label="C̃ of batches with replacement",
            ),
            Control(
                "not_averaged",
                observed.replace(gradient=(dims, observed["slope"])),
                "the gradient vanishes on average, and not at any step",
                label="the gradient of single steps",
            ),
            Control(
                "transient",
                observed.replace(**early),
                "the first steps from the origin are not stationary",
                label=f"the first {self.burn} steps from the origin",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        alignment = observed["alignment"]
        dissipation = observed["dissipation"]
        line = np.geomspace(alignment.min(), alignment.max(), 20)
        unit = predicted["lr"]
        first = predicted["excess"][0] / unit[0]
        return (
            panel(
                "The lemma, run by run",
                "½γ tr C̃",
                "alignment (θ − w)·∇L",
                predicted_curve(line, line, "equal"),
                observed_curve(
                    dissipation.ravel(), alignment.ravel(), "runs, both losses", kind="points"
                ),
                rival_curve(
                    observed["covariance"][0].mean(1), alignment[0].mean(1), "C in place of C̃"
                ),
                log="xy",
            ),
            panel(
                "Least squares at any step",
                "step γ",
                "twice the excess risk / γ",
                predicted_curve(
                    predicted["steps"],
                    predicted["curve"] / predicted["steps"],
                    "exact steady state",
                ),
                rival_curve(
                    predicted["steps"], np.full(predicted["steps"].size, first), "proportional to γ"
                ),
                observed_curve(unit, alignment[0].mean(1) / unit, "runs", kind="points"),
            ),
        )


def _flat(observed: Observation) -> Values:
    """Return ½γ|∇L|², what the second moment has more than the covariance."""
    return observed["dissipation"] - observed["covariance"]


def _alignment(state: SteadyState) -> float:
    """Twice the mean excess risk, tr HS; of a law that does not exist, NaN."""
    return 2 * state.excess_risk


def _small_step(state: SteadyState, lr: float, claim: FluctuationDissipation) -> float:
    """Return ½γ tr C at the minimum: what tr HS is to first order in γ."""
    x, y = patients(claim.examples)
    gradients = (x @ state.minimum - y)[:, None] * x + claim.ridge * state.minimum
    return lr / 2 * np.trace(gradient_moments(gradients, claim.batch).covariance)
