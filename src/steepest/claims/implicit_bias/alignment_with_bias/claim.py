"""With biases, small ReLU neurons turn to a class's sum only if it sees no example of the other class.

Biases are weights of a constant coordinate c. While all norms are small, a neuron of the positive class turns to the
shortest of all vectors x_+ − Σ α_j x_j, with x_+ the sum of its class and with 0 ≤ α_j ≤ 1 over the other class. This
is the sum x_+ exactly where it sees no example of the other class. For larger c the other class pulls neurons away.
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias._small_starts import (
    CLASSES,
    OnSeparableSets,
    by_class,
    separable_sets,
)
from steepest.claims.implicit_bias.alignment_with_bias.experiment import (
    Setting,
    turned_with_constant,
)
from steepest.claims.implicit_bias.alignment_with_bias.theory import (
    bordered_targets,
    other_bordered,
)
from steepest.nn.data import orthogonal_separability
from steepest.nn.networks import Neurons

CONSTANTS = (0.25, 0.5, 1.0, 1.5)  # further coordinates of examples of length one


@kit.claim
class AlignmentWithBias(OnSeparableSets[Setting]):
    """Descent on the exponential loss from one small scale, on examples with a constant coordinate."""

    scale: kit.Positive = kit.param(1e-8, "ε, scale of the start", scope=kit.between(1e-9, 1e-8))

    kind = "limit"
    says = {"turn to a class's sum only if it sees no example of the other class": "with_bias"}
    tiny = {"scale": 1e-5, "width": 16, "n": 6, "dimension": 3, "seeds": 3}
    full = {"width": 100, "n": 60, "dimension": 20, "seeds": 15}
    out_of_scope = {"flipped": 0.3}

    def axes(self):
        return {
            "constant": CONSTANTS,
            "class": CLASSES,
            "bordered": tuple(range(self.dimension + 1)),
        }

    def setting(self, key):
        def draw(key: kit.Key) -> tuple[jax.Array, jax.Array]:
            for_data, _, for_flips = jax.random.split(key, 3)
            x, y = separable_sets(for_data, self.seeds, self.n, self.dimension, self.mu)
            return x, jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)

        x, y = map(np.asarray, kit.compiled(draw)(key))
        rng = kit.numpy_generator(key)
        width = self.dimension + 1
        w = rng.standard_normal((self.seeds, self.width, width)) / width**0.5
        v = rng.choice([-1.0, 1.0], (self.seeds, self.width)) * np.linalg.norm(w, axis=-1)
        return Setting(x, y, Neurons(jnp.asarray(w), jnp.asarray(v)))

    def hypotheses(self, setting):
        mu = kit.compiled(jax.vmap(orthogonal_separability))(setting.x, setting.y)
        yield kit.assume(
            "μ of the data", np.min(mu), ">", 0, "the data are not orthogonally separable"
        )

    def predict(self, setting):
        return kit.law(
            wider_target=("seed constant class bordered", bordered_targets(setting, CONSTANTS))
        )

    def observe(self, setting, key):
        return kit.seen(**turned_with_constant(setting, CONSTANTS, self.scale))

    def derive(self, law, seen):
        """Return one less the cosine of each living neuron with its aim, zero for the others."""
        aim = by_class(law.wider_target, seen.wider_positive.values)
        # of unit vectors: one less the cosine
        beside = ((seen.wider.values - aim) ** 2).sum(-1) / 2
        unaligned = np.where(seen.wider_alive.values, beside, 0.0)
        return {"wider_unaligned": seen.wider_alive.copy(data=unaligned)}

    def judge(self, law, seen):
        yield kit.agrees(
            "with_bias",
            seen.wider_unaligned,
            # steps of 0.02 to and fro across the border of an example leave 2e-4
            1e-3,
            label="1 − cosine of living neurons with biases when norms² are ε^½",
        )

    def rivals(self, setting, law):
        yield from other_bordered(setting, CONSTANTS)

    def controls(self, seen):
        yield kit.control(
            "each constant with the neurons of the next larger constant",
            "the larger the constant, the more products are positive",
            id="other_constants",
            wider=(seen.wider.dims, np.roll(seen.wider.values, -1, 1)),
            wider_alive=(seen.wider_alive.dims, np.roll(seen.wider_alive.values, -1, 1)),
        )

    def figure(self, law, seen, rivals):
        positive = seen.wider_positive.values
        sums = by_class(next(iter(rivals.values())).wider_target, positive)
        alive = seen.wider_alive.values
        lost = lambda aim: np.where(alive, ((seen.wider.values - aim) ** 2).sum(-1) / 2, 0).max(-1)
        yield kit.panel(
            "Where neurons with biases turn to",
            "constant c",
            "largest 1 − cosine",
            kit.observed_curve(CONSTANTS, lost(by_class(law.wider_target, positive)), "to the aim"),
            kit.rival_curve(CONSTANTS, lost(sums).max(0), "to the class sum"),
            log="y",
        )
