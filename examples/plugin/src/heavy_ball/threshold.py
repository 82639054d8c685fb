"""With momentum β descent on a quadratic is stable up to the step 2(1 + β)/λ.

The error obeys w' = (1 + β − ηλ) w − β w₋. Its characteristic polynomial z² − (1 + β − ηλ) z + β has a root at −1 where
ηλ = 2(1 + β), and leaves the unit circle there: momentum allows steps that plain descent does not survive.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    assume,
    compiled,
    equal,
    idle,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)

GRID = 400  # steps ηλ between 0 and 4


@dataclass(frozen=True)
class HeavyBallThreshold(Claim):
    """Heavy-ball descent on random quadratics, over a grid of step sizes."""

    momenta: tuple[Fraction, ...] = (0.0, 0.3, 0.6, 0.9)  # β, momentum [1]
    dimension: Count = 20  # unknowns of each quadratic [1]
    steps: Count = 4000  # steps of descent [steps]
    seeds: Seeds = 5  # random quadratics [1]

    kind = "theorem"
    headline = ("threshold_1",)  # the first one has no momentum
    statement = r"\eta_{\max} = \frac{2(1+\beta)}{\lambda_{\max}}"
    source = "Polyak 1964"
    full = {"seeds": 30, "steps": 20_000}
    tiny = {"seeds": 3, "steps": 1000, "momenta": (0.0, 0.6)}
    out_of_scope = {"momenta": (1.0,)}

    def setting(self, key: Key) -> jax.Array:
        """Draw spectra with largest eigenvalue one, shape (seeds, dimension)."""
        spectra = jax.random.uniform(key, (self.seeds, self.dimension))
        return spectra / spectra.max(1, keepdims=True)

    def hypotheses(self, setting: jax.Array) -> list[Hypothesis]:
        return [assume("largest momentum", max(self.momenta), "<", 1, "choose --momenta below 1")]

    def predict(self, setting: jax.Array) -> Prediction:
        return Prediction(threshold=("momentum", 2 * (1 + np.array(self.momenta))))

    def observe(self, setting: jax.Array, key: Key) -> Observation:
        steps = jnp.linspace(0, 4, GRID + 1)[1:]
        start = jax.random.normal(key, setting.shape)

        def grows(spectrum: jax.Array, w: jax.Array, momentum: jax.Array, lr: jax.Array):
            def step(state: tuple, _: None) -> tuple:
                now, before = state
                ahead = now - lr * spectrum * now + momentum * (now - before)
                return (ahead, now), None

            (last, _), _ = jax.lax.scan(step, (w, w), None, self.steps)
            return ~(jnp.abs(last).max() < jnp.abs(w).max())  # not a number is growth too

        over_steps = jax.vmap(grows, (None, None, None, 0))
        over_momenta = jax.vmap(over_steps, (None, None, 0, None))
        over_seeds = jax.vmap(over_momenta, (0, 0, None, None))
        diverged = compiled(over_seeds)(setting, start, jnp.array(self.momenta), steps)
        return Observation(step=("step", steps), diverged=("seed momentum step", diverged))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        threshold = first_divergence(observed)
        checks = []
        for i, momentum in enumerate(self.momenta):
            check = equal(
                f"threshold_{i}",
                predicted["threshold"][i],
                threshold[:, i],
                0.02,
                aggregate="all",
                label=f"ηλ where descent starts to diverge, β = {momentum:g}",
            )
            same = momentum == 0
            checks.append(idle(check, "without momentum all theories agree") if same else check)
        return checks

    def rivals(self, setting: jax.Array, predicted: Prediction) -> list[Rival]:
        momenta = np.array(self.momenta)
        plain = predicted.replace(threshold=("momentum", np.full(len(momenta), 2.0)))
        rescaled = predicted.replace(threshold=("momentum", 2 * (1 - momenta)))
        return [
            Rival(
                "plain",
                plain,
                "momentum does not change where the minimum is",
                "2/λ, as without momentum",
            ),
            Rival(
                "effective_step",
                rescaled,
                "momentum multiplies the step by 1/(1 − β)",
                "2(1 − β)/λ",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        threshold = first_divergence(observed)
        seeds = [observed_curve(self.momenta, row, kind="points") for row in threshold]
        theory = predicted_curve(self.momenta, predicted["threshold"], "2(1 + β)")
        rescaled = rival_curve(self.momenta, 2 * (1 - np.array(self.momenta)), "2(1 − β)")
        title = "Momentum allows larger steps"
        return (panel(title, "momentum β", "largest stable ηλ", *seeds, theory, rescaled),)


def first_divergence(observed: Observation) -> np.ndarray:
    """Return the first step on the grid from which descent diverges, shape (seeds, momenta)."""
    first = observed["diverged"].argmax(-1)
    return observed["step"][first]
