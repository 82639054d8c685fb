"""With output scale 1/N, wide networks follow a limit flow up to errors of order N^(−1/2).

A network depends on its neurons only through their distribution, and as N → ∞ this distribution follows a partial
differential equation. At width N the error is the Gaussian fluctuation of the start, carried by the linearized flow.
Neurons move equally far at every width, so this is no kernel regime.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import gmean

from steepest import kit
from steepest.claims.features._mean_field import BATCH, MARGIN, MEAN, OnCircle, Setting, follow_flow

KERNEL = 0.5  # power of N that outputs are divided by in the kernel regime


@kit.claim
class MeanFieldLimit(OnCircle):
    """Tanh networks of two inputs, trained by gradient flow on a few examples on a circle."""

    kind = "limit"
    says = {
        "wide networks follow a limit flow": ("distance", "movement"),
        "up to errors of order N^(−1/2)": ("distance", "width_exponent"),
    }
    tiny = {"widths": (150, 300), "times": (0.5, 1.0), "examples": 4, "seeds": 3, "starts": 2}
    full = {"widths": (60, 180, 540, 1620), "starts": 80}
    out_of_scope = {"widths": (3, 5), "times": (0.5, 1.0), "starts": 2}

    def predict(self, setting):
        limit = self.limit(setting)
        square = limit.start / np.array(self.widths)[:, None]
        return kit.law(
            limit=("time example", limit.outputs),
            square=("width time", square),
            movement=("width time", np.broadcast_to(limit.movement, square.shape)),
        )

    def observe(self, setting, key):
        """Follow the flow of every start, and of the first of each group in the kernel regime."""

        def every(keys: kit.Key, data: Setting) -> dict[str, jax.Array]:
            powers = jnp.repeat(jnp.array([MEAN, KERNEL]), np.array([keys.size, len(keys)]))
            follow = partial(follow_flow, data=data, widths=self.widths, times=np.array(self.times))
            keys = jnp.concatenate([keys.ravel(), keys[:, 0]])
            return jax.lax.map(lambda of: follow(*of), (keys, powers), batch_size=BATCH)

        shape = self.seeds, self.starts
        keys = kit.keys(key, self.seeds * self.starts).reshape(shape)
        trained = jax.tree.map(np.asarray, kit.compiled(every)(keys, setting))
        flows, moved = (
            (values[: keys.size].reshape(*shape, *values.shape[1:]), values[keys.size :])
            for values in (trained["outputs"], trained["moved"])
        )
        return kit.seen(
            flows=("seed start time width example", flows[0]),
            moved=("seed start time width", moved[0]),
            kernel=("seed time width example", flows[1]),
            kernel_moved=("seed time width", moved[1]),
        )

    def derive(self, law, seen):
        """Return squared distances of flows from the limit."""
        return {"squares": ((seen.flows - law.limit) ** 2).mean("example", skipna=False)}

    def judge(self, law, seen):
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
            seen.squares.isel(time=-1).mean("start", skipna=False) ** 0.5,
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

    def rivals(self, setting, law):
        narrower = gmean(law.width) / law.width
        yield kit.rival(
            "distance ∝ 1/N",
            "the talk's max(1/N, ε), without the root",
            id="one_over_n",
            square=law.square * narrower,
        )
        yield kit.rival(
            "the central limit of independent neurons at every time",
            "neurons of wide networks are independent draws of the limit's distribution",
            id="independent_neurons",
            square=("width time", self.limit(setting).alone / np.array(self.widths)[:, None]),
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

    def controls(self, seen):
        yield kit.control(
            "networks with output scale 1/√N, the first of each group",
            "outputs at the start do not concentrate, and neurons hardly move",
            id="kernel_regime",
            flows=seen.kernel,
            moved=seen.kernel_moved,
        )
