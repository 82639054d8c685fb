"""In a steady state of SGD, the mean of θ·∇L is ½γ times the mean square of the batch gradients.

That is, weights θ align with the gradient by ½γ tr C̃, at any step size γ. The gradient is zero on average. C̃ is the
second moment of a batch's gradient, not its covariance. On least squares the whole stationary covariance of the weights
solves a linear system, exact at any step size, and the runs must agree with its solution.
"""

from typing import NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.noise.fluctuation_dissipation.experiment import (
    Averages,
    NoisePoint,
    averages,
    minimum,
    patients,
)
from steepest.nn.types import Values
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


@kit.claim
class FluctuationDissipation(kit.Claim[Setting]):
    """Ridged linear models of breast cancer, squared and logistic loss, batches sampled by independent coins."""

    shares: tuple[kit.Fraction, ...] = kit.param(
        (0.15, 0.3, 0.6),
        "step sizes, as shares of 2/λ_max of the Hessian at the minimum",
        scope=kit.choices(
            (0.15, 0.3, 0.6),
            (0.1, 0.3, 0.5),
            (0.2, 0.4, 0.55),
            why="beyond, rare excursions make the mean, which no short run sees",
        ),
    )
    batch: kit.Count = kit.param(32, "mean size of the batches", scope=kit.between(28, 48))
    examples: kit.Count = kit.param(128, "patients", scope=kit.between(112, 180))
    ridge: kit.NonNegative = kit.param(0.1, "weight decay μ", scope=kit.between(0.08, 0.2))
    burn: kit.Count = kit.param(500, "steps before the averages", unit="steps")
    steps: kit.Count = kit.param(4000, "steps of the averages", unit="steps")
    seeds: kit.Seeds = kit.param(32, "runs of each loss and step")

    kind = "theorem"
    says = {
        "The gradient is zero on average": "gradient",
        "the mean of θ·∇L is ½γ times the mean square of the batch gradients": kit.literal(
            "alignment", value=1
        ),
    }
    tiny = {"seeds": 3, "steps": 100, "burn": 20}
    full = {"seeds": 64, "steps": 20000}
    out_of_scope = {"shares": (0.95,)}
    point = NoisePoint

    def axes(self):
        return {"loss": LOSSES, "share": self.shares}

    def setting(self, key):
        x, y = patients(self.examples)
        minima = [minimum(x, y, self.ridge, loss == "logistic") for loss in LOSSES]
        limits = np.array([2 / np.linalg.eigvalsh(hessian)[-1] for _, hessian in minima])
        w = np.array([theta for theta, _ in minima])
        return Setting(x, y, w, limits[:, None] * np.array(self.shares))

    def states(self, setting: Setting, sampling: Sampling = "independent") -> list[SteadyState]:
        """Return the exact stationary laws of least squares, one a step."""
        return [self.state(setting, lr, sampling) for lr in setting.lr[0]]

    def hypotheses(self, setting):
        radius = max(state.radius for state in self.states(setting))
        yield kit.assume(
            "mean size of the batches over examples",
            self.batch / self.examples,
            "<",
            1,
            "batches of all examples have no noise; lower --batch",
        )
        yield kit.assume(
            "radius of the map of second moments, squared loss",
            radius,
            "<",
            1,
            "there is no steady state with second moments; lower --shares or raise --batch",
        )

    def predict(self, setting):
        ones = np.ones((len(LOSSES), len(self.shares)))
        return kit.law(
            alignment=("loss share", ones),
            slope=("loss share", ones),
            gradient=1.0,
            noise=self.noise_at_origin(setting, "independent"),
            excess=("share", [_alignment(state) for state in self.states(setting)]),
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

    def observe(self, setting, key):
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
        for_runs, for_batches = kit.keys(key, 2)
        transient, late = kit.compiled(self.run)(setting.x, setting.y, lanes, for_runs)
        runs = int(np.prod(shape))
        arrays = {
            name: ("loss share seed", np.asarray(values)[:runs].reshape(shape))
            for name, values in late._asdict().items()
        }
        arrays |= {
            f"{name}_early": ("seed", np.asarray(values)[runs:])
            for name, values in transient._asdict().items()
        }
        rng = kit.numpy_generator(for_batches)
        at_origin = -setting.y[:, None] * setting.x
        drawn = [draw_batches(at_origin, self.batch, DRAWS, rng) for _ in range(self.seeds)]
        noise = [batches.var(0, ddof=1).sum() for batches in drawn]
        return kit.seen(**arrays, lr=("loss share", setting.lr), noise=("seed", noise))

    def run(
        self, x: jax.Array, y: jax.Array, lanes: dict, key: kit.Key
    ) -> tuple[Averages, Averages]:
        """Run all lanes at once."""
        one = lambda lane, key: averages(
            x, y, self.ridge, batch=self.batch, key=key, burn=self.burn, steps=self.steps, **lane
        )
        return jax.vmap(one)(lanes, kit.keys(key, lanes["lr"].size))

    def run_conditions(self, observed):
        boundary = np.abs(observed["boundary"].mean(2)) / observed["alignment"].mean(2)
        yield kit.assume(
            "largest part that the finite run adds to the alignment",
            boundary.max(),
            "<",
            0.02,
            "the runs are too short for a steady state; raise --steps",
        )

    def derive(self, law, seen):
        """Return both sides of the identities over one another, and |⟨∇L⟩|² over that of independent noises."""
        noise = 2 * seen.covariance / seen.lr  # ⟨tr C⟩
        return {
            "aligned": seen.alignment / seen.dissipation,
            "sloped": seen.slope / seen.curved,
            "left": seen.gradient * self.steps / noise.mean("seed"),
        }

    def judge(self, law, seen):
        slopes = [
            kit.follows(
                f"slope_{loss}",
                law.slope.sel(loss=loss, drop=True),
                seen.sloped.sel(loss=loss, drop=True),
                within,
                label=f"|∇L|² over ½γ tr HC̃, {loss} loss",
            )
            # the latter leaves out third derivatives
            for loss, within in zip(LOSSES, (0.03, 0.1), strict=True)
        ]
        yield kit.follows(
            "alignment", law.alignment, seen.aligned, 0.03, label="alignment over ½γ tr C̃"
        )
        yield kit.follows(
            "gradient",
            law.gradient,
            seen.left.mean(("loss", "share")),
            (0.7, 1.4),
            label="|mean gradient|² over ⟨tr C⟩/T, mean over steps and losses",
        )
        yield from slopes
        yield kit.follows(
            "noise",
            law.noise,
            seen.noise,
            0.02,
            label="variance of a batch's gradient at the origin, squared loss",
        )
        yield kit.follows(
            "excess",
            law.excess,
            seen.alignment.sel(loss="squared", drop=True),
            0.05,
            label="twice the excess risk, squared loss",
        )

    def rivals(self, setting, law):
        replaced = self.states(setting, sampling="replacement")
        slow = [
            self._small_step(state, lr)
            for state, lr in zip(self.states(setting), setting.lr[0], strict=True)
        ]
        yield kit.rival(
            "batches with replacement",
            "1/b in place of (1 − b/m)/b",
            excess=("share", [_alignment(state) for state in replaced]),
        )
        yield kit.rival(
            "½γ tr C at the minimum, to first order in the step",
            "noise is proportional to γ",
            id="small_step",
            excess=("share", slow),
        )
        yield kit.rival(
            "the covariance of batches of a fixed size",
            "it is the covariance of examples drawn without replacement",
            noise=self.noise_at_origin(setting, "fixed"),
        )
        yield kit.rival(
            "alignment γ tr C̃, without the ½",
            "of the weights' noise only the part of one step is counted",
            alignment=2 * law.alignment,
        )

    def _small_step(self, state: SteadyState, lr: float) -> float:
        """Return ½γ tr C at the minimum: what tr HS is to first order in γ."""
        x, y = patients(self.examples)
        gradients = (x @ state.minimum - y)[:, None] * x + self.ridge * state.minimum
        return lr / 2 * np.trace(gradient_moments(gradients, self.batch).covariance)

    def controls(self, seen):
        names = ("gradient", "slope", "alignment", "dissipation", "curved")
        early = {name: seen[f"{name}_early"] for name in names}
        flat = seen.dissipation - seen.covariance  # ½γ|∇L|²
        yield kit.control(
            "covariance C in place of C̃",
            "the mean's square belongs to the second moment",
            dissipation=seen.covariance,
            curved=seen.curved_covariance,
        )
        yield kit.control(
            "2C in place of C in C̃",
            "the lecture's C̃_ii = C_ii + (∂_i L^B)², in the mean over batches",
            dissipation=2 * seen.covariance + flat,
        )
        yield kit.control(
            "C̃ of batches with replacement",
            "the batches are a quarter of all examples",
            id="replacement",
            dissipation=seen.replaced,
        )
        yield kit.control(
            "the gradient of single steps",
            "the gradient vanishes on average, and not at any step",
            gradient=seen.slope,
        )
        yield kit.control(
            f"the first {self.burn} steps from the origin",
            "the first steps from the origin are not stationary",
            id="transient",
            **early,
        )
        yield kit.control(
            "the alignment of the logistic loss",
            "the stationary law is for least squares",
            alignment=(seen.alignment.dims, seen.alignment.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        alignment = seen.alignment
        ends = np.geomspace(float(alignment.min()), float(alignment.max()), 20)
        steps = seen.lr.sel(loss="squared").values
        shown = np.geomspace(0.9 * steps.min(), 1.15 * steps.max(), 40)
        x, y = patients(self.examples)
        states = [steady_state(x, y, lr, self.batch, ridge=self.ridge) for lr in shown]
        curve = np.array([_alignment(state) for state in states]) / shown
        of_squared = alignment.sel(loss="squared").mean("seed")
        first = float(law.excess[0]) / steps[0]
        yield kit.panel(
            "The lemma, run by run",
            "½γ tr C̃",
            "alignment (θ − w)·∇L",
            kit.predicted_curve(ends, ends, "equal"),
            kit.observed_curve(
                seen.dissipation.values.ravel(),
                alignment.values.ravel(),
                "runs, both losses",
                kind="points",
            ),
            kit.rival_curve(
                seen.covariance.sel(loss="squared").mean("seed"), of_squared, "C in place of C̃"
            ),
            log="xy",
        )
        yield kit.panel(
            "Least squares: the excess risk outgrows the step",
            "step γ",
            "2 × excess risk / step",
            kit.predicted_curve(shown, curve, "exact law"),
            kit.rival_curve(shown, np.full(shown.size, first), "risk ∝ step"),
            kit.observed_curve(steps, of_squared / steps, "runs", kind="points"),
            log="y",
        )


def _alignment(state: SteadyState) -> float:
    """Return twice the mean excess risk, tr HS; of a law that does not exist, NaN."""
    return 2 * state.excess_risk
