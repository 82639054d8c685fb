"""At initialization, a Pre-LN residual stream's variance grows linearly, as 1 + l/2 after l blocks.

The gradient of block l falls as (1 + l/2)^(−½), whatever the number of blocks. Both laws are for ReLU, matrices with
entries of variance 1/d, and a width d far above the depth. Each block adds ½ to the variance of the stream. On its way
back to a block, the gradient grows by the same factors as the stream. So no block's gradient depends on how many blocks
come after it. Under Post-LN the last block's gradient is √(d/3) at every depth.
"""

from typing import Any

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.residual_stream import experiment
from steepest.claims.training.residual_stream.experiment import Signals
from steepest.claims.training.residual_stream.point import ResidualStreamPoint

SHALLOW = (1, 2, 4, 8)  # blocks that all networks have
ADDED = 0.5  # variance that a block adds


@kit.claim
class ResidualStream(kit.Claim[None]):
    """Random residual networks of several depths, each on one input, with normalization before or after the blocks."""

    width: kit.Count = kit.param(
        192, "d of the stream and of each block", unit="neurons", scope=kit.between(160, 320)
    )
    depths: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32), "L", unit="blocks", scope=kit.choices((8, 16, 32), (12, 24), (10, 40))
    )
    networks: kit.Count = kit.param(5, "networks of a seed, over which squares are averaged")
    seeds: kit.Seeds = kit.param(24, "groups of networks")

    kind = "limit"
    says = {
        "variance grows linearly, as 1 + l/2 after l blocks": "stream",
        "The gradient of block l falls as (1 + l/2)^(−½), whatever the number of blocks": (
            "gradient",
            "last",
        ),
    }
    tiny = {"width": 40, "depths": (8, 10), "networks": 2, "seeds": 3}
    full = {"width": 512, "depths": (8, 16, 64), "seeds": 40}
    out_of_scope = {"depths": (8, 64), "width": 40}
    precision = "float32"
    point = ResidualStreamPoint

    def axes(self):
        deepest = max(self.depths)
        blocks = tuple(sorted({*SHALLOW, *(b for b in (16, 32) if b < deepest), deepest}))
        return {"block": blocks, "shallow": SHALLOW, "depth": self.depths}

    def check_fields(self) -> None:
        if min(self.depths) < max(SHALLOW):
            raise kit.UserError(
                f"networks have at least {max(SHALLOW)} blocks, got depths {self.depths}; try --depths 8 16"
            )

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        yield kit.assume(
            "depth over width",
            max(self.depths) / self.width,
            "<=",
            0.3,
            "the law is for d ≫ L: raise --width",
        )

    def predict(self, setting):
        axes = self.axes()
        grown = lambda name: 1 + ADDED * np.array(axes[name], float)
        falls = grown("shallow") ** -0.5
        return kit.law(
            stream=("block", grown("block")),
            gradient=("depth shallow", np.broadcast_to(falls, (len(self.depths), len(falls)))),
            last=("depth", grown("depth") ** -0.5),
            post=("depth", np.full(len(self.depths), (1 + ADDED) ** -0.5)),
        )

    def observe(self, setting, key):
        deepest = max(self.depths)

        def all_signals(keys: jax.Array) -> dict[str, Any]:
            def of_one(key: jax.Array) -> dict[str, Any]:
                drawn = experiment.draw(key, self.width, deepest)
                signals = lambda step, depth: experiment.signals(*drawn, depth, step)
                return {
                    "pre": [signals(experiment.pre, depth) for depth in self.depths],
                    "post": [signals(experiment.post, depth) for depth in self.depths],
                    "plain": signals(experiment.plain, deepest).variance,
                    "damped": signals(experiment.damped, deepest).variance,
                }

            return jax.lax.map(of_one, keys)

        keys = jax.random.split(key, self.seeds * self.networks)
        measured = jax.tree.map(self.averaged, kit.compiled(all_signals)(keys))
        pre: list[Signals] = measured["pre"]
        post: list[Signals] = measured["post"]
        longest = pre[int(np.argmax(self.depths))]
        blocks = np.array(self.axes()["block"]) - 1
        shallow = np.array(SHALLOW) - 1
        at_blocks = lambda of_depths, places: np.sqrt(
            np.stack([signals.square[:, places] for signals in of_depths], 1)
        )
        return kit.seen(
            stream=("seed block", longest.variance[:, blocks]),
            gradient=("seed depth shallow", at_blocks(pre, shallow)),
            last=("seed depth", at_blocks(pre, -1)),
            post=("seed depth", at_blocks(post, -1)),
            post_gradient=("seed depth shallow", at_blocks(post, shallow)),
            plain_stream=("seed block", measured["plain"][:, blocks]),
            damped_stream=("seed block", measured["damped"][:, blocks]),
        )

    def averaged(self, values: jax.Array) -> kit.Values:
        """Return means over the networks of each seed, ``(seeds, …)``."""
        array = np.asarray(values, float)
        return array.reshape(self.seeds, self.networks, *array.shape[1:]).mean(1)

    def judge(self, law, seen):
        yield kit.follows(
            "stream",
            law.stream,
            seen.stream,
            0.08,  # exact in the mean; the interval takes 4 %
            label="variance of the stream",
        )
        yield kit.follows(
            "gradient",
            law.gradient,
            seen.gradient,
            0.12,  # the interval takes 5 %, L/d a few
            label="gradient of a block over √(d/2), Pre-LN",
        )
        yield kit.follows(
            "last",
            law.last,
            seen.last,
            0.08,  # the interval takes 3 %
            label="gradient of the last block over √(d/2), Pre-LN",
        )
        yield kit.follows(
            "post",
            law.post,
            seen.post,
            0.07,  # the interval takes 2 %, L/d as much
            label="gradient of the last block over √(d/2), Post-LN",
        )

    def rivals(self, setting, law):
        block = law.block
        deepest = max(self.depths)
        yield kit.rival(
            "(3/2)^l",
            "each block adds half of the variance that it reads",
            id="exponential",
            stream=(1 + ADDED) ** block,
        )
        yield kit.rival(
            "(1 + 1/2L)^l", "blocks are often divided by √L", stream=(1 + ADDED / deepest) ** block
        )
        yield kit.rival(
            "(1 + L/2)^(−½) for every block",
            "the bound for the last block has 1/√L",
            id="by_depth",
            gradient=law["last"] + 0 * law.gradient,
        )
        yield kit.rival(
            "the same gradient at every block",
            "residual connections pass gradients on as they are",
            id="all_alike",
            gradient=xarray.full_like(law.gradient, (1 + ADDED) ** -0.5),
            last=law.post,
        )
        yield kit.rival(
            "Post-LN like Pre-LN", "normalization divides gradients in both", post=law["last"]
        )

    def controls(self, seen):
        yield kit.control(
            "Post-LN in the place of Pre-LN",
            "its stream is normalized at every block",
            id="post",
            gradient=seen.post_gradient,
            last=seen.post,
        )
        yield kit.control(
            "Pre-LN in the place of Post-LN",
            "its last block adds to a stream that has grown",
            id="pre",
            post=seen["last"],
        )
        yield kit.control(
            "no normalization", "nothing is normalized", id="plain", stream=seen.plain_stream
        )
        yield kit.control(
            "blocks divided by √l", "a block adds 1/2l", id="damped", stream=seen.damped_stream
        )

    def figure(self, law, seen, rivals):
        blocks = np.array(self.axes()["block"], float)
        damped = seen.damped_stream.mean("seed").values
        wrong = {"(3/2)^l": rivals["exponential"].stream} if rivals else {}
        depths = np.array(self.depths, float)
        yield kit.curves(
            "The stream grows like 1 + l/2",
            law.stream,
            seen.stream,
            over="block",
            x="block l",
            y="variance of the stream",
            rivals=wrong,
            more=(kit.context_curve(blocks, damped, "divided by √l"),),
            log="xy",
            ylim=(0.8, 100),
        )
        yield kit.curves(
            "A block's gradient does not depend on the depth",
            law.gradient,
            seen.gradient,
            over="shallow",
            by="depth",
            x="block l",
            y="gradient / √(d/2)",
            name="L = {}",
            log="xy",
        )
        yield kit.curves(
            "Last block: Pre-LN falls with depth, Post-LN does not",
            law["last"],
            seen["last"],
            over="depth",
            x="depth L",
            y="gradient / √(d/2)",
            more=(
                kit.observed_curve(
                    depths, seen.post.mean("seed").values, "Post-LN", kind="points", shade=0.7
                ),
                kit.predicted_curve(depths, np.full_like(depths, float(law.post[0]))),
            ),
            log="xy",
        )
