"""NTK networks grow lazy with width: features move like n^(-1/2); in mean-field and µP they keep moving.

Networks are trained until the loss first falls below a fixed value. In the NTK parameterization the output changes by
order one, each hidden pre-activation by n^(-1/2) and the tangent kernel by no more than that; in the mean-field
parameterization and µP, where the last layer starts smaller and steps are larger, all three change by order one.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    bound,
    compiled,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
)
from steepest.core.intervals import fit_exponent
from steepest.kernels import empirical_ntk, ntk_top
from steepest.nn.data import Dataset, digits, signs
from steepest.nn.losses import mean_risk, squared
from steepest.nn.networks import ByLayer, Mlp, Parameterization, mlp, parameterization, step_scale
from steepest.nn.types import Params

CHANGES = ("output", "first layer", "second layer", "kernel")
IDS = ("output", "first", "second", "kernel")  # of their checks
REFERENCES = 3  # networks whose kernel sets the step size
REPEATS = 8  # narrow networks for each seed, at most
FEW = 8  # examples on which tangent kernels are compared


class Setting(NamedTuple):
    """Two classes of digits, and the step size of each parameterization in units of ``step_scale``."""

    data: Dataset
    rates: list[float]


@dataclass(frozen=True)
class LazyOrRich(Claim):
    """Two-hidden-layer tanh networks on two classes of digits, full-batch descent to a fixed loss."""

    parameterizations: tuple[str, ...] = ("ntk", "mup")  # how the width enters [name]
    widths: tuple[Count, ...] = (64, 192, 512)  # width n of both hidden layers [neurons]
    examples: Count = 20  # images of the digits 3 and 8 [1]
    target: Positive = 0.02  # loss at which training stops; an output of zero has 0.5 [1]
    step: Positive = 0.05  # step size as a share of 2/λ_max of the reference kernel [1]
    reference: Count = 256  # width at which λ_max is taken [neurons]
    most: Count = 3000  # steps after which a network is given up [steps]
    seeds: Seeds = 40  # initial networks at the largest width, up to eight times as many below [1]

    kind = "limit"
    statement = (
        r"\text{NTK:}\;\; \Delta f=\Theta(1),\;\; \Delta z^{(l)}_i=\Theta(n^{-1/2}),\;\;"
        r"\frac{\|\Delta\Theta\|}{\|\Theta\|}=O(n^{-1/2});\qquad \mu\mathrm{P:}\;\; \text{all }\Theta(1)"
    )
    source = (
        "ORF 543, lecture on pathologies of the NTK regime; Chizat and Bach 2019; Yang and Hu 2021"
    )
    remarks = (
        "Changes are root mean squares over examples and neurons; the kernel's is the Frobenius norm of the change "
        "over that of the initial kernel.",
        "The theorem bounds the kernel's change by n^(-1/2); perturbation theory says n^(-1), and the exponent "
        "measured beside the bound, −1.03 to −1.08, is near that. As a check of its own, at ± 0.1, it was inconclusive "
        "in most quick runs and is not part of the verdict.",
        "Without biases the mean-field parameterization and µP are the same networks with the same steps, written "
        "differently; the full preset runs both.",
    )
    tiny = {"widths": (50, 60, 80), "examples": 8, "target": 0.2, "reference": 50, "seeds": 3}
    full = {
        "parameterizations": ("ntk", "mean-field", "mup"),
        "widths": (64, 128, 256, 512, 1024, 2048, 4096),
        "seeds": 10,
    }
    out_of_scope = {"step": 1.5}
    precision = "float32"

    def setting(self, key: Key) -> Setting:
        raw = signs(digits((3, 8), self.examples))
        pixels = np.asarray(raw.x)
        data = Dataset(pixels - pixels.mean(0), np.asarray(raw.y), "centred digits")
        nets = [self.net(data, name, self.reference) for name in self.parameterizations]
        starts = _draw(nets, [REFERENCES] * len(nets), [key] * len(nets))
        tops = [
            _mean_top(net.widths, _multiplier(net), start, data.x)
            for net, start in zip(nets, starts, strict=True)
        ]
        rates = [
            self.step * 2 / (float(top) * step_scale(net))
            for net, top in zip(nets, tops, strict=True)
        ]
        return Setting(data, rates)

    def net(self, data: Dataset, parameterized: str, width: int) -> Mlp:
        return _network((data.d, width, width, 1), parameterization(parameterized))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume(
                "step size / (2/λ_max)",
                self.step,
                "<",
                1,
                "choose a --step below 1: above, descent catapults",
            ),
            assume(
                "smallest width", min(self.widths), ">=", 50, "the exponents are for wide networks"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        lazy = [name in ("ntk", "standard") for name in self.parameterizations]
        return Prediction(
            slopes=(
                "parameterization change",
                [(0, -0.5, -0.5, -1) if stays else (0, 0, 0, 0) for stays in lazy],
            ),
            kernel_bound=("parameterization", [-0.5 if stays else np.inf for stays in lazy]),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        # narrow networks scatter more and cost less: several for each seed
        several = [min(REPEATS, max(self.widths) // n) for n in self.widths]
        counts = [self.seeds * many for many in several]
        change = []
        steps = []
        loss = []
        for name, rate in zip(self.parameterizations, setting.rates, strict=True):
            nets = [self.net(setting.data, name, n) for n in self.widths]
            starts = _draw(nets, counts, [key] * len(nets))
            ends = [
                self.train(net, start, setting, rate)
                for net, start in zip(nets, starts, strict=True)
            ]
            change.append([changes.mean(1) for changes, _, _ in ends])
            steps.append([taken.mean(1) for _, taken, _ in ends])
            loss.append([last.max(1) for _, _, last in ends])
        return Observation(
            change=("parameterization seed width change", np.swapaxes(change, 1, 2)),
            steps=("parameterization seed width", np.swapaxes(steps, 1, 2), "steps"),
            loss=("parameterization seed width", np.swapaxes(loss, 1, 2)),
        )

    def train(
        self, net: Mlp, start: Params, setting: Setting, rate: float
    ) -> tuple[np.ndarray, ...]:
        """Train networks to the target and return changes, steps and losses, ``(seeds, networks a seed, …)``."""
        lr = rate * step_scale(net)
        data = setting.data
        ends = _train(
            net.widths, _multiplier(net), start, data.x, data.y, lr, self.target, self.most
        )
        return tuple(np.reshape(end, (self.seeds, -1, *end.shape[1:])) for end in ends)

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest loss at the end / target",
                observed["loss"].max() / self.target,
                "<=",
                1,
                "raise --most",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, name in enumerate(self.parameterizations):
            limit = float(predicted["kernel_bound"][i])
            for j, what in enumerate(CHANGES[:3] if np.isfinite(limit) else CHANGES):
                slope = float(predicted["slopes"][i, j])
                change = observed["change"][i, :, :, j]
                checks.append(
                    exponent(
                        f"change_{i}_{IDS[j]}",
                        slope,
                        self.widths,
                        change,
                        0.1,
                        label=f"{name}: change of the {what} against width",
                    )
                )
            if np.isfinite(limit):
                slopes = [
                    fit_exponent(self.widths, row)[0] for row in observed["change"][i, :, :, 3]
                ]
                checks.append(
                    bound(
                        f"kernel_bound_{i}",
                        slopes,
                        at_most=limit,
                        label=f"{name}: exponent of the kernel's change",
                    )
                )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        dims = "parameterization change"
        slopes = predicted["slopes"]
        lazy = np.tile((0, -0.5, -0.5, -1), (len(slopes), 1))
        return [
            Rival(
                "all_lazy",
                predicted.replace(slopes=(dims, lazy)),
                "wide networks are kernels",
                label="every parameterization is lazy",
            ),
            Rival(
                "all_rich",
                predicted.replace(slopes=(dims, 0 * slopes)),
                "the loss is the same at the end",
                label="every parameterization learns features",
            ),
            Rival(
                "root_everywhere",
                predicted.replace(slopes=(dims, 0 * slopes - 0.5)),
                "so fluctuates an average over n neurons",
                label="every change falls like n^(-1/2)",
            ),
            Rival(
                "kernel_faster",
                predicted.replace(kernel_bound=("parameterization", predicted["kernel_bound"] - 1)),
                "the bound and perturbation theory multiplied",
                label="the kernel's change falls like n^(-3/2) or faster",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths = np.array(self.widths)
        mean = observed["change"].mean(1)
        drawn = []
        for j, what in enumerate(CHANGES):
            curves = []
            for i, name in enumerate(self.parameterizations):
                shade = i / max(1, len(self.parameterizations) - 1)
                line = mean[i, 0, j] * (widths / widths[0]) ** predicted["slopes"][i, j]
                curves += [
                    observed_curve(widths, mean[i, :, j], name, kind="points", shade=shade),
                    predicted_curve(widths, line, f"n^{predicted['slopes'][i, j]:g}", shade=shade),
                ]
            drawn.append(panel(f"Change of the {what}", "width n", "change", *curves, log="xy"))
        return tuple(drawn)


def _network(widths: tuple[int, ...], parameterized: Parameterization) -> Mlp:
    return mlp(widths, "tanh", parameterized=parameterized, bias=False)


def _multiplier(net: Mlp) -> np.ndarray:
    """Return the exponents a of a network's multipliers n^-a: as an array, so that one program serves them all."""
    return np.array(parameterization(net.parameterization or "").multiplier, np.float32)


def _multiplied(widths: tuple[int, ...], multiplier: jax.Array) -> Mlp:
    """Return the network with these multipliers; it is given its initial parameters."""
    return _network(widths, Parameterization("given", ByLayer(*multiplier), ByLayer(0, 0, 0), 0))


def _draw(nets: list[Mlp], counts: list[int], seeds: list[Key]) -> list[Params]:
    """Return initial networks of each kind, as many as its count, from one program."""

    def draw(seeds: list[Key]) -> list[Params]:
        every = zip(nets, counts, seeds, strict=True)
        return [jax.vmap(net.init)(keys(seed, count)) for net, count, seed in every]

    return compiled(draw)(seeds)


@partial(compiled, static_argnums=0)
def _mean_top(widths, multiplier, starts, x):
    """Return the mean over networks of the largest eigenvalue of the initial tangent kernel over n."""
    net = _multiplied(widths, multiplier)
    return jax.vmap(lambda p: ntk_top(net.apply, p, x))(starts).mean()


@partial(compiled, static_argnums=0)
def _train(widths, multiplier, starts, x, y, lr, target, most):
    """Return changes ``(seeds, 4)``, steps and loss at the first step at which the loss is below the target."""
    net = _multiplied(widths, multiplier)
    look = jax.value_and_grad(mean_risk(squared, net.apply, x, y))
    rms = lambda x: jnp.sqrt(jnp.mean(x**2))

    def one(start: Params) -> tuple:
        going = lambda state: (
            (state[1] < most) & (state[2] > target)
        )  # a loss that is not a number stops

        def step(state: tuple) -> tuple:
            moved = jax.tree.map(lambda p, g: p - lr * g, state[0], state[3])
            return moved, state[1] + 1, *look(moved)

        end, steps, loss, _ = jax.lax.while_loop(going, step, (start, 0, *look(start)))
        ends = jax.tree.map(lambda a, b: jnp.stack([a, b]), start, end)
        features = [rms(z[1] - z[0]) for z in jax.vmap(lambda p: net.preactivations(p, x))(ends)]
        kernels = jax.vmap(lambda p: empirical_ntk(net.apply, p, x[:FEW]))(ends)
        kernel = jnp.linalg.norm(kernels[1] - kernels[0]) / jnp.linalg.norm(kernels[0])
        return jnp.stack([features[2], *features[:2], kernel]), steps, loss

    return jax.lax.map(one, starts)
