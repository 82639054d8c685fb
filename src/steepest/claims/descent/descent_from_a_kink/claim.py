"""A wrong slope at a kink can stop descent for ever, and random directions free it.

The program relu(x) − relu(−x) equals x, but automatic differentiation gives it the slope 2s at 0, with s the slope that
the library takes for relu at its kink. With s = 0 descent never leaves 0, and with s = 1 its first step is twice too
long. A one-sided derivative in a random direction has the right slope there. From random starts no kink is ever met.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._kinks import PRIMITIVES, SLOPES, Relu, identity
from steepest.landscapes import directional_gradient

ROUNDING = 1e-10
SHOWN = 8  # random starts in the figure


@kit.claim
class DescentFromAKink(kit.Claim[None]):
    """Descent on ½(f(x) − 1)² with f = relu(x) − relu(−x)."""

    starts: kit.Count = kit.param(1000, "random starts")
    steps: kit.Count = kit.param(300, "steps", unit="steps")
    lr: kit.Positive = kit.param(
        0.1, "η", scope=kit.between(0.06, 0.9, "smaller ones take more steps to arrive")
    )

    kind = "theorem"
    says = {
        "can stop descent for ever": "path",
        "random directions free it": "repaired_path",
        "From random starts no kink is ever met": "random",
    }
    tiny = {"starts": 40, "steps": 150}
    full = {"starts": 20_000}
    out_of_scope = {"lr": 1.5}

    def axes(self):
        return {"primitive": tuple(PRIMITIVES), "step": tuple(range(1, self.steps + 1))}

    def hypotheses(self, setting):
        yield kit.assume("η", self.lr, "<", 1, "descent is to come to the minimum from one side")

    def predict(self, setting):
        shrunk = (1 - self.lr) ** np.arange(self.steps + 1)
        # after its first step descent is off the kink, but with the slope 0 there is no first step
        first = 2 * SLOPES * self.lr
        path = np.where(SLOPES[:, None] > 0, 1 - np.outer(1 - first, shrunk[:-1]), 0.0)
        return kit.law(
            path=("primitive step", path),
            repaired_path=("step", 1 - shrunk[1:]),
            minimum=1.0,
            reached=1.0,  # share of random starts
        )

    def observe(self, setting, key):
        _, for_starts, for_steps = kit.keys(key, 3)
        paths = kit.compiled(self.descend)(for_starts, for_steps)
        random = np.asarray(paths["random"])
        return kit.seen(
            path=("primitive step", paths["backward"]),
            repaired_path=("step", paths["repaired"]),
            ends=("start", random[:, -1]),
            random_paths=("shown step", random[:SHOWN]),
        )

    def descend(self, starts: kit.Key, steps: kit.Key) -> dict[str, jax.Array]:
        """Descend on ½(f(x) − 1)² with f = σ(x) − σ(−x) from zero, with every slope at ties, and from random starts."""
        value = lambda x: identity(x, jax.nn.relu)

        def backward(relu: Relu) -> Callable[[jax.Array, jax.Array], jax.Array]:
            return lambda x, u: jax.grad(identity)(x, relu)

        def run(slope: Callable, start: jax.Array) -> jax.Array:
            def step(x: jax.Array, key: kit.Key) -> tuple[jax.Array, jax.Array]:
                u = jax.random.normal(key, x.shape)
                after = x - self.lr * (value(x) - 1) * slope(x, u)
                return after, after[0]

            return jax.lax.scan(step, start, jax.random.split(steps, self.steps))[1]

        zero = jnp.zeros(1)
        random = jax.random.normal(starts, (self.starts, 1))
        return {
            "backward": jnp.stack([run(backward(relu), zero) for relu, _ in PRIMITIVES.values()]),
            "repaired": run(lambda x, u: directional_gradient(identity, x, u), zero),
            "random": jax.vmap(lambda start: run(backward(jax.nn.relu), start))(random),
        }

    def derive(self, law, seen):
        """Return which random starts reached the minimum."""
        return {"reached": abs(seen.ends - law.minimum) < 1e-6}

    def judge(self, law, seen):
        for id, label in (
            ("path", "descent from 0, with every s: x off theory"),
            ("repaired_path", "repaired descent from 0: x off theory"),
        ):
            yield kit.agrees(id, abs(seen[id] - law[id]), ROUNDING, label=label)
        yield kit.share(
            "random",
            law.reached,
            seen.reached,
            0.1,
            label="share of random starts that reach the minimum",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "a wrong slope at one point does not matter",
            "kinks have measure zero",
            path=xarray.zeros_like(law.path) + law.repaired_path,
        )

    def controls(self, seen):
        of_zero = seen.path.isel(primitive=0, drop=True)
        yield kit.control(
            "the repaired descent in the place of all",
            "its slope is right",
            path=seen.repaired_path,
        )
        yield kit.control(
            "the backward pass with s = 0, from 0, in the place of the repair and of random starts",
            "it is not repaired",
            id="backward",
            repaired_path=of_zero,
            ends=0 * seen.ends + float(of_zero[-1]),
        )

    def figure(self, law, seen, rivals):
        shown = min(60, self.steps)
        step = np.arange(1, shown + 1)
        random_starts = [
            kit.context_curve(step, path[:shown], "random starts" * (not i))
            for i, path in enumerate(seen.random_paths)
        ]
        yield kit.panel(
            "Descent to x = 1",
            "step",
            "x",
            *random_starts,
            kit.observed_curve(step, seen.repaired_path[:shown], "repaired, from 0"),
            kit.rival_curve(step, seen.path[0, :shown], "s = 0, from 0"),
            kit.rival_curve(step, seen.path[3, :shown], "s = 1, from 0"),
        )
