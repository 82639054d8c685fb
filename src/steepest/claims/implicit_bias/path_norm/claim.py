"""Path-SGD ignores how the weights into and out of each ReLU neuron are balanced.

Wider networks err less on test images. Their norms scale with width as the norms of split neurons do, plus what larger
initial weights add. A ReLU network's function does not change when the weights into a neuron are multiplied by a factor
and the weights out of it are divided by the same factor. Gradient descent's path through the functions does change; the
path of Path-SGD, which is steepest descent in the path norm, does not. Widening a network beyond what fits the training
set lowers its test error. From small initial weights its norms become the norms of a network whose neurons are split
into equal parts, which changes no function. The path norm of order 2 falls like the width to the power −½, and the path
norm of order 1 and the ℓ2 norm of the weights stay the same. Larger starts add to all three: from the usual start order
2 falls by less, and the other two grow. From unbalanced weights Path-SGD errs less on test images than gradient descent
does at the same training risk.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.dynamics import descend, logarithmic, path_sgd
from steepest.nn.activations import activation
from steepest.nn.data import digits
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params, Values
from steepest.programs import network_margins

RULES = ("Path-SGD", "gradient descent")
NORMS = ("path norm of order 2", "path norm of order 1", "ℓ2 norm of the weights")
IDS = ("order_2", "order_1", "l2")
SPLIT = np.array([-0.5, 0.0, 0.0])  # powers of the width when every neuron is split
ENDS = ("narrowest", "widest")
CLASSES = 10


class Setting(NamedTuple):
    """Images for training and for testing, and the factors of the hidden neurons; one per seed."""

    x: Values  # (seeds, n, 64), centred
    y: Values  # (seeds, n), classes
    test_x: Values  # (seeds, test, 64)
    test_y: Values  # (seeds, test)
    factors: Values  # (seeds, hidden neurons)


@kit.claim
class PathNorm(kit.Claim[Setting]):
    """Few digits of ten classes: a three-layer network from two starts, and two-layer networks of growing width."""

    n: kit.Count = kit.param(
        100, "training images", unit="images", scope=kit.between(80, 140, "the narrowest must fit")
    )
    test: kit.Count = kit.param(1600, "test images", unit="images")
    activation: str = kit.param(
        "relu", "activation of all networks", scope=kit.choices("relu", "leaky_relu(0.2)")
    )
    shape: tuple[kit.Count, kit.Count] = kit.param(
        (32, 16),
        "hidden widths of the network with two starts",
        unit="neurons",
        scope=kit.choices((32, 16), (24, 24), (48, 16)),
    )
    spread: kit.Positive = kit.param(
        4.0,
        "largest factor of a neuron; its logarithm is uniform from −log to log of this",
        scope=kit.between(3, 6, "from less the two starts are alike"),
    )
    rescaled_lr: kit.Positive = kit.param(
        0.1,
        "step size of both rules from the two starts",
        unit="1/curvature",
        scope=kit.between(0.08, 0.12, "with less they do not arrive, with more descent leaps"),
    )
    rescaled_steps: kit.Count = kit.param(500, "steps of both rules", unit="steps")
    compared: kit.Positive = kit.param(
        0.2,
        "mean cross-entropy at which their test errors are compared",
        unit="nats",
        scope=kit.between(0.2, 0.3),
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (16, 40, 100),
        "hidden widths of the two-layer networks, increasing",
        unit="neurons",
        scope=kit.choices((16, 40, 100), (20, 45, 100)),
    )
    c_w: tuple[kit.Positive, ...] = kit.param(
        (0.02, 0.3, 2.0),
        "variances of their initial weights × fan-in, increasing; the two starts have the last one",
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
        "ignores how the weights into and out of each ReLU neuron are balanced": "path_sgd_apart",
        "Wider networks err less": "test_error",
        "as the norms of split neurons do": IDS,
        "plus what larger initial weights add": tuple(f"{id}_start" for id in IDS),
    }
    tiny = {
        "n": 20,
        "test": 50,
        "shape": (6, 4),
        "rescaled_steps": 40,
        "compared": 2.2,
        "total": 0.6,
        "widths": (16, 24, 32),
        "steps": 600,
        "seeds": 3,
    }
    full = {"widths": (16, 32, 64, 128, 256, 512), "seeds": 16}
    out_of_scope = {"activation": "tanh"}

    @property
    def marks(self) -> Values:
        """Return the steps of the two rules that are recorded."""
        return logarithmic(self.rescaled_steps, 40)

    def axes(self):
        return {
            "step": tuple(self.marks.tolist()),
            "width": self.widths,
            "c_w": self.c_w,
            "norm": NORMS,
            "end": ENDS,
            "rule": RULES,
        }

    def setting(self, key):
        data = digits()
        for_images, for_factors = jax.random.split(key)
        shuffle = kit.compiled(jax.vmap(lambda k: jax.random.permutation(k, data.n)))
        places = np.asarray(shuffle(kit.keys(for_images, self.seeds)))[:, : self.n + self.test]
        x = np.asarray(data.x)[places]
        y = np.asarray(data.y).argmax(1)[places]
        x = x - x[:, : self.n].mean(1, keepdims=True)
        exponents = kit.numpy_generator(for_factors).uniform(-1, 1, (self.seeds, sum(self.shape)))
        images = (x[:, : self.n], y[:, : self.n], x[:, self.n :], y[:, self.n :])
        return Setting(*images, self.spread**exponents)

    def hypotheses(self, setting):
        sigma = activation(self.activation).function
        bend = lambda z: jnp.abs(sigma(3 * z) - 3 * sigma(z)).max()
        bent = float(kit.compiled(bend)(np.linspace(-3, 3, 121)))
        yield kit.assume(
            "largest |σ(3z) − 3σ(z)|",
            bent,
            "<=",
            1e-12,
            "choose a positively homogeneous --activation",
        )
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
            apart=0.0,  # relative difference of outputs from two balances
            norms=("norm width", widths ** SPLIT[:, None]),
            growth=(
                "c_w",
                np.array(self.c_w),
            ),  # the powers of the norms stand in the order of the starts
            errors=("end", [1.0, 0.0]),
            rule_errors=("rule", [0.0, 1.0]),
        )

    def observe(self, setting, key):
        for_starts, for_widths = jax.random.split(key)
        # one seed after the other, as products of matrices that are mapped over are slower than many of them
        every_start = kit.compiled(
            lambda *seeds: jax.lax.map(lambda seed: self.from_two_starts(*seed), seeds)
        )
        apart, risk, rule_test = map(
            np.asarray, every_start(setting, kit.keys(for_starts, self.seeds))
        )
        generator = kit.numpy_generator(for_widths)
        trained = [self.trained(width, setting, generator) for width in self.widths]
        total, error, test, norms = (np.stack(column, -1) for column in zip(*trained, strict=True))
        return kit.seen(
            apart=("rule seed step", apart.swapaxes(0, 1)),
            risk=("rule seed start step", risk.swapaxes(0, 1)),
            rule_test=("rule seed start step", rule_test.swapaxes(0, 1)),
            total=("seed c_w width", total),
            error=("seed c_w width", error),
            test=("seed c_w width", test),
            norms=("norm seed c_w width", norms),
        )

    def from_two_starts(self, data: Setting, key: kit.Key) -> tuple[jax.Array, ...]:
        """Return differences of outputs, risks and test errors along both rules' descents from equivalent starts."""
        net = self.net(*self.shape)
        start = net.init(key)
        risk = mean_risk(cross_entropy, net.apply, data.x, data.y)
        starts = (start, rescaled(start, data.factors))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
        look = {
            "f": lambda p: net.apply(p, data.x),
            "test": lambda p: (net.apply(p, data.test_x).argmax(1) != data.test_y).mean(),
        }
        paths = []
        for rule in (path_sgd(self.rescaled_lr), optax.sgd(self.rescaled_lr)):
            run = lambda p, rule=rule: descend(
                risk, p, rule, self.rescaled_steps, record=self.marks, observe=look
            )
            path = jax.vmap(run)(stacked)
            f, g = path.observed["f"]
            apart = jnp.linalg.norm(g - f, axis=(1, 2)) / jnp.linalg.norm(f, axis=(1, 2))
            paths.append((apart, path.risk, path.observed["test"]))
        return tuple(jnp.stack(column) for column in zip(*paths, strict=True))

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

    def net(self, *hidden: int) -> Mlp:
        """Return a network from 64 pixels to ten classes, without biases; its weights act as they are."""
        return mlp((64, *hidden, CLASSES), self.activation, c_w=self.c_w[-1], bias=False)

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
        yield kit.assume(
            "largest last risk of both rules",
            observed["risk"][..., -1].max(),
            "<=",
            self.compared,
            "more --rescaled_steps",
        )

    def derive(self, law, seen):
        """Return powers of norms by start, test errors of the outer widths, and those of the rules at one risk."""
        logs = np.log(self.widths)
        logs = logs - logs.mean()
        slopes = (np.log(seen.norms) * xarray.DataArray(logs, dims="width")).sum("width")
        ends = seen.test.isel(width=[0, -1]).mean("c_w").rename(width="end")
        return {
            "powers": slopes / (logs**2).sum(),
            "ends": ends.assign_coords(end=list(ENDS)),
            "at_risk": self.errors_at_risk(seen),
        }

    def errors_at_risk(self, seen: xarray.Dataset) -> xarray.DataArray:
        """Return test errors where the risk first is as low as wanted, along ``(rule, seed, start)``.

        Between the records around that point they are interpolated in the logarithm of the risk; NaN where it is never
        so low.
        """
        risk = seen.risk.values
        test = seen.rule_test.values
        errors = np.full(risk.shape[:-1], np.nan)
        for at in np.ndindex(errors.shape):
            low = np.flatnonzero(risk[at] <= self.compared)
            if len(low):
                pair = [low[0], max(low[0] - 1, 0)]
                errors[at] = np.interp(
                    np.log(self.compared), np.log(risk[at][pair]), test[at][pair]
                )
        return xarray.DataArray(
            errors, seen.risk.isel(step=0, drop=True).coords, seen.risk.dims[:-1]
        )

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
        yield kit.agrees(
            "path_sgd_apart",
            abs(seen.apart.sel(rule=RULES[0]) - law.apart),
            1e-8,
            label="relative difference of Path-SGD's outputs from two balances",
        )
        yield kit.ranks("test_error", law.errors, seen.ends, over="end", label="test error")
        yield from of_norms
        yield kit.ranks(
            "test_error_rescaled",
            law.rule_errors,
            seen.at_risk.isel(start=1),
            over="rule",
            label=f"test error at risk {self.compared:g}, weights rescaled",
        )

    def rivals(self, setting, law):
        widths = xarray.DataArray(np.array(self.widths, float), dims="width")
        yield kit.rival(
            "Path-SGD depends on the balance", "it follows gradients of weights as well", apart=0.01
        )
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
        yield kit.rival(
            "gradient descent errs less on test images",
            "it arrives at the risk in fewer steps",
            rule_errors=1 - law.rule_errors,
        )

    def controls(self, seen):
        of_descent = {
            name: seen[name].sel(rule=RULES[1], drop=True)
            for name in ("apart", "risk", "rule_test")
        }
        factors = (np.array(self.widths) / self.widths[0]) ** SPLIT[:, None]
        narrow = seen.norms.isel(width=0, drop=True) * xarray.DataArray(
            factors, dims=("norm", "width")
        )
        yield kit.control(
            "gradient descent in the place of Path-SGD",
            "it sees the balance, and a rule does not err less than itself",
            **of_descent,
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
        step = self.marks[1:]
        apart = np.maximum(seen.apart[..., 1:].values, 1e-17)
        starts = [
            (i, j, f"{RULES[i]}, {start}")
            for i in (0, 1)
            for j, start in enumerate(("as drawn", "rescaled"))
        ]
        risk = seen.risk.values
        test = seen.rule_test.values
        rules = [
            kit.observed_curve(
                risk[i, :, j].mean(0), test[i, :, j].mean(0), name, shade=(2 * i + j) / 3
            )
            for i, j, name in starts
        ]
        yield kit.panel(
            "Only gradient descent sees the balance",
            "step",
            "relative difference of outputs",
            *(
                kit.observed_curve(step, apart[i], rule, shade=float(i))
                for i, rule in enumerate(RULES)
            ),
            kit.predicted_curve(step, 0 * step + 1e-8, "margin"),
            log="xy",
        )
        yield kit.panel(
            "From rescaled weights Path-SGD errs less at the same risk",
            "cross-entropy [nats]",
            "test error",
            *rules,
            log="x",
        )
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


def rescaled(params: Params, factors: jax.Array) -> Params:
    """Return the same function: weights into every hidden neuron times its factor, those out of it divided."""
    sizes = [layer["w"].shape[0] for layer in params]
    parts = [jnp.ones(()), *jnp.split(factors, np.cumsum(sizes[:-2])), jnp.ones(sizes[-1])]
    return tuple(
        {"w": p["w"] * b[:, None] / a} for p, (a, b) in zip(params, pairwise(parts), strict=True)
    )


def _log_softmax(outputs: Values) -> Values:
    highest = outputs.max(-1, keepdims=True)
    return outputs - highest - np.log(np.exp(outputs - highest).sum(-1, keepdims=True))
