"""With momentum β descent on a quadratic is stable up to the step 2(1 + β)/λ.

The error obeys w' = (1 + β − ηλ) w − β w₋. Its characteristic polynomial z² − (1 + β − ηλ) z + β has a root at −1 where
ηλ = 2(1 + β), and leaves the unit circle there: momentum allows steps that plain descent does not survive.
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit

GRID = 400  # steps ηλ between 0 and 4


@kit.claim
class HeavyBallThreshold(kit.Claim[jax.Array]):
    """Heavy-ball descent on random quadratics, over a grid of step sizes."""

    momenta: tuple[kit.Fraction, ...] = kit.param(
        (0.0, 0.3, 0.6, 0.9),
        "β, momentum",
        scope=kit.choices((0.0, 0.3, 0.6, 0.9), (0.0, 0.2, 0.5, 0.8)),
    )
    dimension: kit.Count = kit.param(20, "unknowns of each quadratic", scope=kit.between(10, 40))
    steps: kit.Count = kit.param(4000, "steps of descent", unit="steps")
    seeds: kit.Seeds = kit.param(5, "random quadratics")

    kind = "theorem"
    says = {"stable up to the step 2(1 + β)/λ": "threshold"}
    statement = r"\eta_{\max} = \frac{2(1+\beta)}{\lambda_{\max}}"
    source = "Polyak 1964"
    tiny = {"seeds": 3, "steps": 1000, "momenta": (0.0, 0.6)}
    full = {"seeds": 30, "steps": 20_000}
    out_of_scope = {"momenta": (1.0,)}

    def axes(self):
        return {"momentum": self.momenta}

    def setting(self, key):
        """Draw spectra with largest eigenvalue one, shape (seeds, dimension)."""
        spectra = jax.random.uniform(key, (self.seeds, self.dimension))
        return spectra / spectra.max(1, keepdims=True)

    def hypotheses(self, setting):
        largest = max(self.momenta)
        yield kit.assume("largest momentum", largest, "<", 1, "choose --momenta below 1")

    def predict(self, setting):
        return kit.law(threshold=("momentum", 2 * (1 + np.array(self.momenta))))

    def observe(self, setting, key):
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
        diverged = kit.compiled(over_seeds)(setting, start, jnp.array(self.momenta), steps)
        first_divergence = np.asarray(steps)[np.asarray(diverged).argmax(-1)]
        return kit.seen(threshold=("seed momentum", first_divergence))

    def judge(self, law, seen):
        yield kit.follows(
            "threshold",
            law.threshold,
            seen.threshold,
            0.02,  # two steps of the grid at the smallest threshold
            each=True,
            label="ηλ where descent starts to diverge",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "2/λ, as without momentum",
            "momentum does not change where the minimum is",
            threshold=2.0,
        )
        yield kit.rival(
            "2(1 − β)/λ",
            "momentum multiplies the step by 1/(1 − β)",
            threshold=2 * (1 - law.momentum),
        )

    def controls(self, seen):
        plain = seen.threshold.isel(momentum=0, drop=True)
        yield kit.control(
            "descent without momentum", "nothing carries the error on", threshold=plain
        )

    def figure(self, law, seen, rivals):
        seeds = [kit.observed_curve(self.momenta, row, kind="points") for row in seen.threshold]
        theory = kit.predicted_curve(self.momenta, law.threshold, "2(1 + β)")
        rescaled = kit.rival_curve(self.momenta, 2 * (1 - np.array(self.momenta)), "2(1 − β)")
        title = "Momentum allows larger steps"
        yield kit.panel(title, "momentum β", "largest stable ηλ", *seeds, theory, rescaled)
