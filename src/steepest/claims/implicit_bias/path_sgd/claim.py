"""Path-SGD ignores how the weights into and out of each ReLU neuron are balanced.

A ReLU network's function does not change when the weights into a neuron are multiplied by a factor and the weights out
of it are divided by the same factor. Gradient descent's path through the functions does change; the path of Path-SGD,
which is steepest descent in the path norm, does not. From unbalanced weights Path-SGD errs less on test images than
gradient descent does at the same training risk.
"""

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.claims.implicit_bias._few_digits import few_digits, homogeneous, without_biases
from steepest.dynamics import descend, logarithmic, path_sgd
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.types import Params, Values

RULES = ("Path-SGD", "gradient descent")


class Setting(NamedTuple):
    """Images for training and for testing, and the factors of the hidden neurons; one per seed."""

    x: Values  # (seeds, n, 64), centred
    y: Values  # (seeds, n), classes
    test_x: Values  # (seeds, test, 64)
    test_y: Values  # (seeds, test)
    factors: Values  # (seeds, hidden neurons)


@kit.claim
class PathSgd(kit.Claim[Setting]):
    """Few digits of ten classes, and a three-layer network from two starts that are one function."""

    n: kit.Count = kit.param(
        100, "training images", unit="images", scope=kit.between(80, 140, "the network must fit")
    )
    test: kit.Count = kit.param(1600, "test images", unit="images")
    activation: str = kit.param("relu", "activation", scope=kit.choices("relu", "leaky_relu(0.2)"))
    shape: tuple[kit.Count, kit.Count] = kit.param(
        (32, 16),
        "hidden widths",
        unit="neurons",
        scope=kit.choices((32, 16), (24, 24), (48, 16)),
    )
    spread: kit.Positive = kit.param(
        4.0,
        "largest factor of a neuron; its logarithm is uniform from −log to log of this",
        scope=kit.between(3, 6, "from less the two starts are alike"),
    )
    lr: kit.Positive = kit.param(
        0.1,
        "step size of both rules",
        unit="1/curvature",
        scope=kit.between(0.08, 0.12, "with less they do not arrive, with more descent leaps"),
    )
    steps: kit.Count = kit.param(500, "steps of both rules", unit="steps")
    compared: kit.Positive = kit.param(
        0.2,
        "mean cross-entropy at which their test errors are compared",
        unit="nats",
        scope=kit.between(0.2, 0.3),
    )
    c_w: kit.Positive = kit.param(
        2.0, "variance of the initial weights × fan-in", scope=kit.choices(1.5, 2.0)
    )
    seeds: kit.Seeds = kit.param(12, "draws of images and initial weights")

    kind = "empirical law"
    says = {
        "ignores how the weights into and out of each ReLU neuron are balanced": "path_sgd_apart",
        "From unbalanced weights Path-SGD errs less": "test_error_rescaled",
    }
    tiny = {"n": 20, "test": 50, "shape": (6, 4), "steps": 40, "compared": 2.2, "seeds": 3}
    full = {"seeds": 16}
    out_of_scope = {"activation": "tanh"}

    @property
    def marks(self) -> Values:
        """Return the steps that are recorded."""
        return logarithmic(self.steps, 40)

    def axes(self):
        return {"step": tuple(self.marks.tolist()), "rule": RULES}

    def setting(self, key):
        for_images, for_factors = jax.random.split(key)
        images = few_digits(for_images, self.seeds, self.n, self.test)
        exponents = kit.numpy_generator(for_factors).uniform(-1, 1, (self.seeds, sum(self.shape)))
        return Setting(*images, self.spread**exponents)

    def hypotheses(self, setting):
        yield homogeneous(self.activation)

    def predict(self, setting):
        # apart is the relative difference of outputs from two balances
        return kit.law(apart=0.0, rule_errors=("rule", [0.0, 1.0]))

    def observe(self, setting, key):
        for_starts, _ = jax.random.split(key)
        # one seed after the other, as products of matrices that are mapped over are slower than many of them
        from_two_starts = lambda seed: self.from_two_starts(*seed)
        every_start = kit.compiled(partial(jax.lax.map, from_two_starts))
        paths = every_start((setting, kit.keys(for_starts, self.seeds)))
        apart, risk, rule_test = map(np.asarray, paths)
        return kit.seen(
            apart=("rule seed step", apart.swapaxes(0, 1)),
            risk=("rule seed start step", risk.swapaxes(0, 1)),
            rule_test=("rule seed start step", rule_test.swapaxes(0, 1)),
        )

    def from_two_starts(self, data: Setting, key: kit.Key) -> tuple[jax.Array, ...]:
        """Return differences of outputs, risks and test errors along both rules' descents from equivalent starts."""
        net = without_biases(self.shape, self.activation, self.c_w)
        start = net.init(key)
        risk = mean_risk(cross_entropy, net.apply, data.x, data.y)
        starts = (start, rescaled(start, data.factors))
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts)
        look = {
            "f": lambda p: net.apply(p, data.x),
            "test": lambda p: (net.apply(p, data.test_x).argmax(1) != data.test_y).mean(),
        }
        paths = []
        for rule in (path_sgd(self.lr), optax.sgd(self.lr)):
            run = lambda p, rule=rule: descend(
                risk, p, rule, self.steps, record=self.marks, observe=look
            )
            path = jax.vmap(run)(stacked)
            f, g = path.observed["f"]
            apart = jnp.linalg.norm(g - f, axis=(1, 2)) / jnp.linalg.norm(f, axis=(1, 2))
            paths.append((apart, path.risk, path.observed["test"]))
        return tuple(jnp.stack(column) for column in zip(*paths, strict=True))

    def run_conditions(self, observed):
        last = observed["risk"][..., -1].max()
        yield kit.assume(
            "largest last risk of both rules", last, "<=", self.compared, "more --steps"
        )

    def derive(self, law, seen):
        return {"at_risk": self.errors_at_risk(seen)}

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
        yield kit.agrees(
            "path_sgd_apart",
            abs(seen.apart.sel(rule=RULES[0]) - law.apart),
            1e-8,
            label="relative difference of Path-SGD's outputs from two balances",
        )
        yield kit.ranks(
            "test_error_rescaled",
            law.rule_errors,
            seen.at_risk.isel(start=1),
            over="rule",
            label=f"test error at risk {self.compared:g}, weights rescaled",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "Path-SGD depends on the balance", "it follows gradients of weights as well", apart=0.01
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
        yield kit.control(
            "gradient descent in the place of Path-SGD",
            "it sees the balance, and a rule does not err less than itself",
            **of_descent,
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


def rescaled(params: Params, factors: jax.Array) -> Params:
    """Return the same function: weights into every hidden neuron times its factor, those out of it divided."""
    sizes = [layer["w"].shape[0] for layer in params]
    parts = [jnp.ones(()), *jnp.split(factors, np.cumsum(sizes[:-2])), jnp.ones(sizes[-1])]
    return tuple(
        {"w": p["w"] * b[:, None] / a} for p, (a, b) in zip(params, pairwise(parts), strict=True)
    )
