"""A small ReLU neuron that sees one of two examples sees both after a time like log(1/μ).

The two examples are of one class, and μ is their cosine. A neuron that sees only one example turns to this example, and
so toward the other. Let θ be its angle to the example that it sees, and p the share of this example. Then tan(θ/2)
falls like exp(−pt), which gives the time of the meeting in closed form. Sources bound such times by (log n)/μ or
(log n)/√μ.
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._small_starts import flows
from steepest.claims.implicit_bias.second_example.experiment import (
    Setting,
    mean_of,
    meeting,
    one_sided,
)
from steepest.claims.implicit_bias.second_example.theory import other_waits, selection_times
from steepest.nn.networks import two_layer


@kit.claim
class SecondExample(kit.Claim[Setting]):
    """Gradient flow of the exponential loss on two examples, repeated to n, from one small scale."""

    scale: kit.Positive = kit.param(
        1e-8,
        "ε, scale of the start",
        scope=kit.between(1e-9, 1e-8, "with larger ones losses fall before neurons see both"),
    )
    width: kit.Count = kit.param(
        30, "neurons h", unit="neurons", scope=kit.between(24, 60, "some must see one example")
    )
    n: kit.Count = kit.param(20, "examples", scope=kit.between(14, 30))
    dimension: kit.Count = kit.param(8, "input dimension d", scope=kit.between(6, 12))
    least_mu: kit.Fraction = kit.param(
        0.003, "smallest μ of the sets", scope=kit.between(0.002, 0.01)
    )
    seeds: kit.Seeds = kit.param(6, "sets with a network each, from the smallest μ to 0.3")
    readings: kit.Count = kit.param(400, "points of each path")

    kind = "limit"
    says = {"sees both after a time like log(1/μ)": "selection"}
    tiny = {
        "scale": 1e-5,
        "least_mu": 0.03,
        "width": 16,
        "n": 6,
        "dimension": 3,
        "seeds": 3,
        "readings": 60,
    }
    full = {"width": 100, "n": 60, "dimension": 20, "seeds": 15}
    out_of_scope = {"scale": 1e-3}

    @property
    def mus(self) -> np.ndarray:
        """Return the cosine of each set of two examples, shape ``(seeds,)``."""
        return np.geomspace(self.least_mu, 0.3, self.seeds)

    @property
    def copies(self) -> np.ndarray:
        """Return which of the two examples stands at each of the n places, shape ``(n,)``."""
        return np.arange(self.n) % 2

    def axes(self):
        return {"mu": tuple(self.mus)}

    def setting(self, key):
        def draw(key: kit.Key) -> tuple:
            _, for_start, _ = jax.random.split(key, 3)
            init = two_layer(self.dimension, self.width).init
            # any two directions will do: starts are isotropic
            mus = self.mus
            axes = jnp.eye(2, self.dimension)
            second = mus[:, None] * axes[0] + np.sqrt(1 - mus**2)[:, None] * axes[1]
            pairs = jnp.stack([jnp.broadcast_to(axes[0], second.shape), second], 1)
            return jax.vmap(init)(kit.keys(for_start, self.seeds)), pairs

        return Setting(*jax.tree.map(np.asarray, kit.compiled(draw)(key)))

    def hypotheses(self, setting):
        # tan(angle/2) shrinks by √ε while norms are small
        beyond = self.least_mu / (2 * np.sqrt(self.scale))
        waiting = int(one_sided(setting).sum(1).min())
        smaller = "raise --least_mu, or choose a smaller --scale"
        yield kit.assume("least μ of two examples / 2√ε", beyond, ">", 1, smaller)
        yield kit.assume(
            "fewest neurons that see one of two examples", waiting, ">=", 1, "raise --width"
        )

    def predict(self, setting):
        times = selection_times(setting, self.copies)
        return kit.law(wait=("mu", mean_of(times, one_sided(setting))))

    def observe(self, setting, key):
        follow = flows(two_layer(self.dimension, self.width))
        # a neuron that sees one example has grown by ε^(−1/2) at the last of these times, and is still small
        times = np.log(1 / self.scale) * np.linspace(0, 1, self.readings) ** 2
        repeated = setting.pairs[:, self.copies]
        labels = np.ones(repeated.shape[:2])
        scale = np.array([self.scale])
        _, weights = follow(repeated, labels, setting.start, np.log1p(times), scale)
        toward = np.einsum("srhd,sed->srhe", np.asarray(weights)[:, 0], setting.pairs)
        return kit.seen(wait=("mu", mean_of(meeting(times, toward), one_sided(setting))))

    def judge(self, law, seen):
        yield kit.follows(
            "selection",
            law.wait,
            seen.wait,
            # exact as ε → 0; meetings are read to 0.01 where a neuron's time is 0.3
            0.01,
            label="two examples: time until neurons see both",
        )

    def rivals(self, setting, law):
        yield from other_waits(law)

    def controls(self, seen):
        yield kit.control(
            "each set with the neurons of the next larger μ",
            "the larger the cosine, the sooner both are seen",
            id="other_sets",
            wait=(seen.wait.dims, np.roll(seen.wait.values, -1)),
        )

    def figure(self, law, seen, rivals):
        mus = law.mu.values
        wait = law.wait.values
        yield kit.panel(
            "The time until both examples are seen is logarithmic",
            "μ",
            "mean time",
            kit.observed_curve(mus, seen.wait, "neurons that see one", kind="points"),
            kit.predicted_curve(mus, wait, "closed form"),
            kit.rival_curve(mus, wait[-1] * np.sqrt(mus[-1] / mus), "1/√μ"),
            log="xy",
        )
