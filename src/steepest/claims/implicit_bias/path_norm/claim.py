"""Wider networks err less, and from small starts their norms change as the norms of split neurons do.

Widening a network beyond what fits the training set lowers its test error. From small initial weights its norms become
the norms of a network whose neurons are split into equal parts, which changes no function. The path norm of order 2
falls like the width to the power −½, and the path norm of order 1 and the ℓ2 norm of the weights stay the same. Larger
starts add to all three: from the usual start order 2 falls by less, and the other two grow.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.claims.implicit_bias._few_digits import (
    CLASSES,
    few_digits,
    homogeneous,
    without_biases,
)
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.networks import Mlp
from steepest.nn.types import Params, Values
from steepest.programs import network_margins

NORMS = ("path norm of order 2", "path norm of order 1", "ℓ2 norm of the weights")
IDS = ("order_2", "order_1", "l2")
SPLIT = np.array([-0.5, 0.0, 0.0])  # powers of the width when every neuron is split
ENDS = ("narrowest", "widest")


class Setting(NamedTuple):
    """Images for training and for testing, one set per seed."""

    x: Values  # (seeds, n, 64), centred
    y: Values  # (seeds, n), classes
    test_x: Values  # (seeds, test, 64)
    test_y: Values  # (seeds, test)


@kit.claim
class PathNorm(kit.Claim[Setting]):
    """Few digits of ten classes, and two-layer networks of growing width from starts of three sizes."""

    n: kit.Count = kit.param(
        100, "training images", unit="images", scope=kit.between(80, 140, "the narrowest must fit")
    )
    test: kit.Count = kit.param(1600, "test images", unit="images")
    activation: str = kit.param(
        "relu", "activation of all networks", scope=kit.choices("relu", "leaky_relu(0.2)")
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (16, 40, 100),
        "hidden widths of the two-layer networks, increasing",
        unit="neurons",
        scope=kit.choices((16, 40, 100), (20, 45, 100)),
    )
    c_w: tuple[kit.Positive, ...] = kit.param(
        (0.02, 0.3, 2.0),
        "variances of their initial weights × fan-in, increasing",
        scope=kit.choices((0.02, 0.3, 2.0), (0.02, 0.5, 2.0), (0.03, 0.3, 1.5)),
    )
    lr: kit.Positive = kit.param(
        0.05,
        "step size of full-batch descent, the same for every width",
        unit="1/curvature",
        scope=kit.between(
            0.04,
            0.06,
            "larger steps miss the small risks of the comparison, smaller ones take long",
        ),
    )
    momentum: kit.Positive = kit.param(
        0.9, "its heavy-ball momentum", scope=kit.between(0.85, 0.9, "with less it takes long")
    )
    steps: kit.Count = kit.param(8000, "its steps at most", unit="steps")
    total: kit.Positive = kit.param(
        0.1,
        "summed cross-entropy at which widths are compared; below log 2 no image is wrong",
        unit="nats",
        scope=kit.between(0.1, 0.3, "with less it takes long"),
    )
    seeds: kit.Seeds = kit.param(12, "draws of images and initial weights")

    kind = "empirical law"
    says = {
        "Wider networks err less": "test_error",
        "their norms change as the norms of split neurons do": IDS,
        "starts add to all three": tuple(f"{id}_start" for id in IDS),
    }
    tiny = {
        "n": 20,
        "test": 50,
        "total": 0.6,
        "widths": (16, 24, 32),
        "steps": 600,
        "seeds": 3,
    }
    full = {"widths": (16, 32, 64, 128, 256, 512), "seeds": 16}
    out_of_scope = {"activation": "tanh"}

    def axes(self):
        return {
            "width": self.widths,
            "c_w": self.c_w,
            "norm": NORMS,
            "end": ENDS,
        }

    def setting(self, key):
        for_images, _ = jax.random.split(key)
        return Setting(*few_digits(for_images, self.seeds, self.n, self.test))

    def hypotheses(self, setting):
        yield homogeneous(self.activation)
        yield kit.assume(
            "smallest C_W", self.c_w[0], "<=", 0.05, "larger starts add to the norms; lower --c_w"
        )
        yield kit.assume(
            "least ratio of neighbouring C_W",
            min(b / a for a, b in pairwise(self.c_w)),
            ">=",
            3,
            "starts must differ for their norms to",
        )
        yield kit.assume(
            "summed cross-entropy of comparison",
            self.total,
            "<",
            np.log(2),
            "choose a smaller --total",
        )

    def predict(self, setting):
        widths = np.array(self.widths, float)
        return kit.law(
            norms=("norm width", widths ** SPLIT[:, None]),
            growth=(
                "c_w",
                np.array(self.c_w),
            ),  # the powers of the norms stand in the order of the starts
            errors=("end", [1.0, 0.0]),
        )

    def observe(self, setting, key):
        _, for_widths = jax.random.split(key)
        generator = kit.numpy_generator(for_widths)
        trained = [self.trained(width, setting, generator) for width in self.widths]
        total, error, test, norms = (np.stack(column, -1) for column in zip(*trained, strict=True))
        return kit.seen(
            total=("seed c_w width", total),
            error=("seed c_w width", error),
            test=("seed c_w width", test),
            norms=("norm seed c_w width", norms),
        )

    def trained(
        self, width: int, setting: Setting, generator: np.random.Generator
    ) -> tuple[Values, ...]:
        """Return summed risk, training and test errors, ``(seeds, starts)``, and norms over margins, of one width."""
        lanes = (self.seeds, len(self.c_w))
        scale = np.sqrt(np.array(self.c_w))[:, None, None]
        draw = lambda rows, columns: (
            scale * generator.normal(size=(self.seeds, 1, rows, columns)) / np.sqrt(columns)
        )
        flat = lambda array: array.reshape(-1, *array.shape[2:])
        start = ({"w": flat(draw(width, 64))}, {"w": flat(draw(CLASSES, width))})
        each_start = lambda array: np.repeat(array, len(self.c_w), 0)
        x, y, test_x, test_y = map(each_start, setting[:4])

        def train(*lanes: Any) -> Any:
            return jax.lax.map(lambda lane: self.train(width, *lane), lanes)

        ends = kit.compiled(train)(start, x, y, test_x)
        params, outputs, margins, answers = jax.tree.map(np.asarray, ends)
        total = -np.take_along_axis(_log_softmax(outputs), y[..., None], 2).sum((1, 2))
        size = np.median(margins, 1)
        norms = norms_of_two_layers(*(layer["w"] for layer in params))
        norms = norms / np.stack([size, size, np.sqrt(np.abs(size))])
        shaped = lambda values: values.reshape(lanes)
        error = (margins <= 0).mean(1)
        test = (answers != test_y).mean(1)
        return shaped(total), shaped(error), shaped(test), norms.reshape(-1, *lanes)

    def train(
        self, width: int, start: Params, x: jax.Array, y: jax.Array, test_x: jax.Array
    ) -> tuple[Params, jax.Array, jax.Array, jax.Array]:
        """Descend until the risk is as low as wanted.

        Returns weights, outputs on training images, their margins, and answers to test images.
        """
        net = self.net(width)
        slope = jax.value_and_grad(mean_risk(cross_entropy, net.apply, x, y))
        rule = optax.sgd(self.lr, self.momentum)

        def step(state: tuple) -> tuple:
            params, memory, _, steps = state
            risk, gradient = slope(params)
            updates, memory = rule.update(gradient, memory, params)
            return optax.apply_updates(params, updates), memory, risk, steps + 1

        unfinished = lambda state: (self.n * state[2] > self.total) & (state[3] < self.steps)
        state = (start, rule.init(start), jnp.array(jnp.inf), 0)
        params = jax.lax.while_loop(unfinished, step, state)[0]
        outputs = net.apply(params, x)
        return params, outputs, network_margins(outputs, y), net.apply(params, test_x).argmax(1)

    def net(self, width: int) -> Mlp:
        """Return a two-layer network."""
        return without_biases((width,), self.activation, self.c_w[-1])

    def run_conditions(self, observed):
        yield kit.assume(
            "largest training error when compared",
            observed["error"].max(),
            "==",
            0,
            "wider --widths",
        )
        yield kit.assume(
            "largest summed cross-entropy there",
            observed["total"].max(),
            "<=",
            self.total,
            "more --steps",
        )

    def derive(self, law, seen):
        """Return powers of norms by start, and test errors of the outer widths."""
        logs = np.log(self.widths)
        logs = logs - logs.mean()
        slopes = (np.log(seen.norms) * xarray.DataArray(logs, dims="width")).sum("width")
        ends = seen.test.isel(width=[0, -1]).mean("c_w").rename(width="end")
        return {
            "powers": slopes / (logs**2).sum(),
            "ends": ends.assign_coords(end=list(ENDS)),
        }

    def judge(self, law, seen):
        small = seen.norms.isel(c_w=0, drop=True)
        of_norms = []
        for id, norm in zip(IDS, NORMS, strict=True):
            of_norms += [
                kit.power(
                    id,
                    law.norms.sel(norm=norm, drop=True),
                    small.sel(norm=norm, drop=True),
                    # neurons grow unequally: the draft seeds have powers up to 0.05 off
                    0.1,
                    over="width",
                    label=f"{norm} against the width, C_W = {self.c_w[0]:g}",
                ),
                kit.ranks(
                    f"{id}_start",
                    law.growth,
                    seen.powers.sel(norm=norm, drop=True),
                    over="c_w",
                    label=f"rise of the width's exponent in the {norm}, from one start to the next larger",
                ),
            ]
        yield kit.ranks("test_error", law.errors, seen.ends, over="end", label="test error")
        yield from of_norms

    def rivals(self, setting, law):
        widths = xarray.DataArray(np.array(self.widths, float), dims="width")
        yield kit.rival(
            "more parameters, more test error",
            "counting parameters says so",
            errors=1 - law.errors,
        )
        yield kit.rival(
            "norms of weights as drawn",
            "near the kernel weights stay where they were drawn",
            norms=law.norms * widths**0.5,
        )
        yield kit.rival(
            "exponents −¼, ¼ and ¼, about those from the usual start",
            "the lecture says so, and from the usual start it does",
            id="l2_norm_grows",
            norms=law.norms * widths**0.25,
        )
        yield kit.rival(
            "both path norms fall alike",
            "wider networks are said to be simpler",
            norms=law.norms.isel(norm=[0, 0, 2]).assign_coords(norm=list(NORMS)),
        )
        yield kit.rival(
            "the start does not matter", "what is learned is the same", growth=0 * law.growth + 1
        )

    def controls(self, seen):
        factors = (np.array(self.widths) / self.widths[0]) ** SPLIT[:, None]
        narrow = seen.norms.isel(width=0, drop=True) * xarray.DataArray(
            factors, dims=("norm", "width")
        )
        yield kit.control(
            f"C_W = {self.c_w[-1]:g} for all starts",
            "large initial weights add to the norms",
            id="usual_start",
            norms=seen.norms.isel(c_w=-1, drop=True),
        )
        yield kit.control(
            "the narrowest networks, split",
            "splitting changes no function, and its norms have no start",
            id="split",
            norms=narrow,
            test=seen.test.isel(width=0, drop=True),
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Wider networks err less",
            None,
            seen.test,
            over="width",
            by="c_w",
            y="test error",
            name="C_W = {}",
            log="x",
        )
        yield from self.panels_of_norms(seen)

    def panels_of_norms(self, seen: xarray.Dataset) -> list[kit.Panel]:
        """Return each norm over the width, relative to the narrowest network, by start."""
        widths = np.array(self.widths)
        ratios = seen.norms / seen.norms.isel(width=0)
        sizes = np.linspace(0, 0.8, len(self.c_w))
        return [
            kit.panel(
                f"The {norm} changes as in split networks, and larger starts add",
                "width",
                "norm over margin, relative to the narrowest",
                *(
                    kit.observed_curve(
                        widths,
                        ratios[i, :, j].mean("seed"),
                        f"C_W = {c_w:g}",
                        kind="points",
                        shade=shade,
                    )
                    for j, (c_w, shade) in enumerate(zip(self.c_w, sizes, strict=True))
                ),
                kit.predicted_curve(widths, (widths / widths[0]) ** SPLIT[i], "split neurons"),
                kit.rival_curve(
                    widths, (widths / widths[0]) ** (SPLIT[i] + 0.5), "weights as drawn, untrained"
                ),
                log="xy",
            )
            for i, norm in enumerate(NORMS)
        ]


def norms_of_two_layers(first: Values, second: Values) -> Values:
    """Return path norms of order 2 and 1 and the ℓ2 norm of the weights, shape ``(3, lanes)``.

    Args:
        first: weights into the hidden neurons, ``(lanes, neurons, inputs)``.
        second: weights out of them, ``(lanes, outputs, neurons)``.
    """
    squares = (first**2).sum(2), (second**2).sum(1)
    sizes = np.abs(first).sum(2), np.abs(second).sum(1)
    # a path is a weight in and one out: sums over paths factor at each hidden neuron
    order_2 = np.sqrt((squares[0] * squares[1]).sum(1))
    order_1 = (sizes[0] * sizes[1]).sum(1)
    return np.stack([order_2, order_1, np.sqrt(squares[0].sum(1) + squares[1].sum(1))])


def _log_softmax(outputs: Values) -> Values:
    highest = outputs.max(-1, keepdims=True)
    return outputs - highest - np.log(np.exp(outputs - highest).sum(-1, keepdims=True))
