"""As the hidden widths grow, a random network's outputs become a Gaussian process with kernel K^(L+1).

Given the last hidden layer the outputs are independent Gaussians with a random covariance Σ. As widths grow Σ tends to
K^(L+1) of the layerwise recursion; at finite width its fluctuations, of order 1/n, are the excess kurtosis of an output
and the dependence between two of them.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Values,
    Within,
    assume,
    compiled,
    equal,
    exponent,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
    same_lengths,
)
from steepest.kernels import finite_width, first_layer, homogeneous_kurtosis, propagate
from steepest.nn.activations import Activation, activation, homogeneous_slopes
from steepest.nn.data import digits
from steepest.nn.networks import semidefinite_root

GROUPS = 10  # moments are formed in groups of networks, which play the part of seeds
CHUNK = 50  # networks drawn at once
PAIRS = ((0, 1), (0, 2), (1, 2))


class Case(NamedTuple):
    """One activation at one initialization."""

    activation: Activation
    c_w: float
    c_b: float


class Setting(NamedTuple):
    """The cases, and three images, shape ``(3, 64)``."""

    cases: list[Case]
    inputs: Values


@dataclass(frozen=True)
class NngpLimit(Claim):
    """Outputs of random networks on three images of digits, from narrow to wide."""

    activations: tuple[str, ...] = ("relu", "tanh")  # activations [name]
    c_w: tuple[Positive, ...] = (2.0, 1.5)  # C_W of each [1]
    c_b: tuple[NonNegative, ...] = (0.0, 0.1)  # C_b of each [1]
    # width n of every hidden layer [neurons]
    widths: tuple[Count, ...] = (8, 16, 32, 64, 128, 256, 512)
    hidden: Count = 2  # hidden layers L [layers]
    outputs: Annotated[int, Within(2)] = 32  # outputs n_{L+1} [neurons]
    networks: Count = 5000  # random networks at each width, rounded up to a multiple of 500 [1]

    kind = "limit"
    statement = (
        r"\left(z^{(L+1)}_{i\alpha}\right)\xrightarrow{n\to\infty}\mathrm{GP}\!\left(0,\delta_{ij}K^{(L+1)}\right),"
        r"\quad \frac{\mathbb{E}z^4}{(\mathbb{E}z^2)^2}-3=\frac{3\,\mathrm{Var}\,\Sigma}{K^2}=O(1/n)"
    )
    source = "ORF 543, lecture 9/21; Neal 1996; Lee et al. 2018; Roberts, Yaida and Hanin 2022, chapter 4"
    remarks = (
        "Covariances are compared with the infinite-width kernel at the largest width, where its 1/n shift is far "
        "inside the margin.",
        "Exponent and coefficient of the kurtosis use E z⁴ = 3 E Σ² with each network's own Σ, which integrates the "
        "last layer's weights exactly; the other checks use drawn outputs.",
        "The exponent is fitted from width 32 on: below, the second order in 1/n is visible (for ReLU, exactly).",
    )
    tiny = {"widths": (32, 48, 64), "outputs": 8, "networks": 500}
    full = {
        "activations": ("relu", "tanh", "gelu"),
        "c_w": (2.0, 1.5, 1.9),
        "c_b": (0.0, 0.1, 0.2),
        "networks": 100_000,
    }
    out_of_scope = {"hidden": 60, "widths": (8, 16, 32, 64)}

    def check_fields(self) -> None:
        same_lengths(self, "activations", "c_w", "c_b")

    def setting(self, key: Key) -> Setting:
        cases = [
            Case(activation(a), *c)
            for a, *c in zip(self.activations, self.c_w, self.c_b, strict=True)
        ]
        data = digits((0, 1, 4))
        first = jnp.argmax(data.y, axis=0)  # the first image of each class
        return Setting(cases, data.x[first])

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        aspect = self.hidden / max(self.widths)
        return [
            assume(
                "hidden layers / largest width",
                aspect,
                "<=",
                0.05,
                "depth is fixed while widths grow",
            ),
            assume(
                "widths from 32 on",
                sum(n >= 32 for n in self.widths),
                ">=",
                3,
                "choose wider --widths",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            variance=(
                "activation input",
                [self.variance(case, setting.inputs, self.hidden) for case in setting.cases],
            ),
            covariance=(
                "activation pair",
                [self.covariance(c, setting.inputs, self.hidden) for c in setting.cases],
            ),
            slope=-1.0,
            coefficient=("activation input", self.coefficients(setting, self.hidden)),
            # E z⁴/(3 (E z²)²) at every width where it is known exactly, else not a number
            exact=(
                "activation width",
                [[self.exact(case, n) for n in self.widths] for case in setting.cases],
            ),
            correlation=0.0,
        )

    def variance(self, case: Case, inputs: jax.Array, hidden: int) -> np.ndarray:
        """Return the diagonal of the kernel after some hidden layers, shape ``(3,)``."""
        starts = [first_layer(inputs[jnp.array((i, i))], case.c_w, case.c_b) for i in range(3)]
        return np.array([propagate(*case, start, hidden)[-1, 0] for start in starts])

    def covariance(self, case: Case, inputs: jax.Array, hidden: int) -> np.ndarray:
        """Return the entries of the kernel beside its diagonal, one a pair, shape ``(3,)``."""
        starts = [first_layer(inputs[jnp.array(pair)], case.c_w, case.c_b) for pair in PAIRS]
        return np.array([propagate(*case, start, hidden)[-1, 2] for start in starts])

    def coefficients(self, setting: Setting, hidden: int) -> np.ndarray:
        """Return the excess kurtosis times n, to leading order, shape ``(activations, 3)``."""
        starts = [case.c_b + case.c_w * (setting.inputs**2).mean(1) for case in setting.cases]
        layers = (1,) * hidden
        return np.array(
            [
                [finite_width(*case, float(k), layers).kurtosis[-1] for k in start]
                for case, start in zip(setting.cases, starts, strict=True)
            ]
        )

    def exact(self, case: Case, width: int) -> float:
        solved = homogeneous_slopes(case.activation) is not None and case.c_b == 0
        return homogeneous_kurtosis(case.activation, (width,) * self.hidden) if solved else np.nan

    def observe(self, setting: Setting, key: Key) -> Observation:
        inputs = setting.inputs.astype(jnp.float32)
        chunks = -(-self.networks // (GROUPS * CHUNK))
        seeds = jax.random.split(key, (len(setting.cases), len(self.widths), GROUPS * chunks))
        shape = (max(self.widths), self.hidden, self.outputs)
        widths = jnp.asarray(self.widths)
        moments = [
            _moments(*case, *shape, row, widths, inputs)
            for row, case in zip(seeds, setting.cases, strict=True)
        ]
        grouped = (
            np.stack(moments).reshape(len(moments), len(self.widths), GROUPS, chunks, 7, 3).mean(3)
        )
        names = (
            "conditional",
            "conditional_square",
            "second",
            "fourth",
            "covariance",
            "product",
            "square_product",
        )
        dims = "activation width group input"
        return Observation(**{name: (dims, grouped[..., i, :]) for i, name in enumerate(names)})

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        widths = np.array(self.widths)
        wide = np.array(self.widths) >= 32
        checks = []
        second = observed["second"]
        spread = observed["fourth"] - observed["second"] ** 2
        kurtosis = 3 * (observed["conditional_square"] / observed["conditional"] ** 2 - 1)
        linked = ((observed["square_product"] - second**2) / spread).mean(
            -1
        )  # correlation of squared outputs
        for i, name in enumerate(self.activations):
            leading = predicted["coefficient"][i].mean()
            exact = predicted["exact"][i]  # Var Σ/K² + 1, where it is known
            share = np.where(np.isnan(exact), leading / 3 / widths, exact - 1)
            expected = share / (2 + 3 * share)
            checks += [
                equal(
                    f"variance_{i}",
                    1.0,
                    self.ratio(predicted, observed, i, "variance", "second"),
                    0.05,
                    label=f"{name}: variance / K",
                ),
                equal(
                    f"covariance_{i}",
                    1.0,
                    self.ratio(predicted, observed, i, "covariance"),
                    0.05,
                    label=f"{name}: covariance / K",
                ),
                exponent(
                    f"kurtosis_exponent_{i}",
                    float(predicted["slope"]),
                    widths[wide],
                    kurtosis[i, wide].mean(-1).T,
                    0.1,
                    label=f"{name}: excess kurtosis against width",
                ),
                equal(
                    f"kurtosis_{i}",
                    1.0,
                    (widths[-2:, None, None] * kurtosis[i, -2:]).mean((0, 2)) / leading,
                    0.1,
                    label=f"{name}: n × excess kurtosis / predicted",
                ),
                equal(
                    f"output_correlation_{i}",
                    float(predicted["correlation"]),
                    (observed["product"] / second)[i].mean((0, 2)),
                    0.02,
                    absolute=True,
                    label=f"{name}: correlation of two outputs",
                ),
                equal(
                    f"square_correlation_{i}",
                    1.0,
                    expected @ linked[i] / (expected @ expected),
                    0.2,
                    note="least squares over the widths",
                    label=f"{name}: correlation of their squares / predicted",
                ),
            ]
            if np.isfinite(exact).all():
                drawn = (observed["fourth"] / (3 * second**2))[i].mean(-1)
                checks.append(
                    equal(
                        f"fourth_moment_{i}",
                        1.0,
                        (drawn.T / exact).mean(1),
                        0.05,
                        label=f"{name}: E z⁴/3(E z²)² / exact product",
                    )
                )
        return checks

    def ratio(
        self, predicted: Prediction, observed: Observation, i: int, name: str, measured: str = ""
    ) -> np.ndarray:
        """Return observed over predicted at the largest width, mean over entries, shape ``(groups,)``."""
        return (observed[measured or name][i, -1] / predicted[name][i]).mean(-1)

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        before = self.hidden - 1
        short = predicted.replace(
            variance=(
                "activation input",
                [self.variance(case, setting.inputs, before) for case in setting.cases],
            ),
            covariance=(
                "activation pair",
                [self.covariance(case, setting.inputs, before) for case in setting.cases],
            ),
        )
        one = predicted.replace(
            coefficient=("activation input", predicted["coefficient"] / self.hidden),
            exact=("activation width", predicted["exact"] ** (1 / self.hidden)),
        )
        # (1 + 5/n)^L is the exact product of ReLU; a linear network has (1 + 2/n)^L
        linear = 1 + 0.4 * (predicted["exact"] ** (1 / self.hidden) - 1)
        return [
            Rival(
                "half_the_weights",
                predicted.replace(
                    variance=("activation input", predicted["variance"] / 2),
                    covariance=("activation pair", predicted["covariance"] / 2),
                ),
                "He's factor of 2 forgotten in the last layer",
                label="half the kernel",
            ),
            Rival(
                "linear_network",
                predicted.replace(exact=("activation width", linear**self.hidden)),
                "the gates of ReLU forgotten",
                label="E z⁴/3(E z²)² is Π(1 + 2/n)",
            ),
            Rival(
                "one_layer_short",
                short,
                "a network with L hidden layers has L+1 matrices",
                label="the kernel is K^(L), one layer short",
            ),
            Rival(
                "slow_decay",
                predicted.replace(slope=-0.5),
                "an average over n neurons does",
                label="deviations fall like n^(-1/2)",
            ),
            Rival(
                "one_layer_fluctuates",
                one,
                "the widths before it could already be infinite",
                label="only one layer's fluctuations count",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        dims = observed.quantity("product").dims
        return [
            Control(
                "same_output",
                observed.replace(product=(dims, observed["second"])),
                "an output is not independent of itself",
                label="one output in place of two",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths = np.array(self.widths)
        curves = []
        linked = []
        kurtosis = 3 * (observed["conditional_square"] / observed["conditional"] ** 2 - 1)
        shifts = observed["conditional"].mean(2)
        for i, name in enumerate(self.activations):
            shade = i / max(1, len(self.activations) - 1)
            curves += [
                observed_curve(widths, kurtosis[i].mean((1, 2)), name, kind="points", shade=shade),
                predicted_curve(widths, predicted["coefficient"][i].mean() / widths, shade=shade),
            ]
            linked.append(
                observed_curve(
                    widths, (shifts[i] / predicted["variance"][i]).mean(-1), name, shade=shade
                )
            )
        steep = kurtosis[0, -1].mean() * np.sqrt(widths[-1] / widths)
        return (
            panel(
                "Outputs become Gaussian",
                "width n",
                "excess kurtosis",
                *curves,
                rival_curve(widths, steep, "∝ n^(-1/2)"),
                log="xy",
            ),
            panel(
                "Their variance tends to the kernel",
                "width n",
                "variance / K",
                *linked,
                predicted_curve(widths[[0, -1]], (1, 1), "K"),
                log="x",
            ),
        )


@partial(compiled, static_argnums=(0, 3, 4, 5))
def _moments(activation, c_w, c_b, most, hidden, outputs, seeds, widths, inputs):
    """Return the mean moments of chunks of networks, shape ``(widths, chunks, 7, 3)`` from keys ``(widths, chunks)``.

    Rows of Gaussian weights applied to known features are Gaussian, so layers are drawn without their matrices. Every
    layer holds as many neurons as the widest; those beyond the width are left out, so that one program serves all.
    """

    def chunk(key: Key, width: jax.Array) -> jax.Array:
        def layer(covariance: jax.Array, key: Key) -> tuple[jax.Array, None]:
            z = jax.vmap(semidefinite_root)(covariance) @ jax.random.normal(
                key, (CHUNK, 3, most), inputs.dtype
            )
            features = jnp.where(jnp.arange(most) < width, activation(z), 0.0)
            return c_b + c_w / width * features @ features.swapaxes(1, 2), None

        start = jnp.broadcast_to(c_b + c_w / inputs.shape[1] * inputs @ inputs.T, (CHUNK, 3, 3))
        *before, last = jax.random.split(key, hidden + 1)
        covariance, _ = jax.lax.scan(layer, start.astype(inputs.dtype), jnp.stack(before))
        z = jax.vmap(semidefinite_root)(covariance) @ jax.random.normal(
            last, (CHUNK, 3, outputs), inputs.dtype
        )
        own = jnp.diagonal(covariance, axis1=1, axis2=2)
        across = [(z[:, i] * z[:, j]).mean(1) for i, j in PAIRS]
        pairs = lambda a: (
            (a.sum(2) ** 2 - (a**2).sum(2)) / (outputs * (outputs - 1))
        )  # mean product of two outputs
        moments = (
            own,
            own**2,
            (z**2).mean(2),
            (z**4).mean(2),
            jnp.stack(across, 1),
            pairs(z),
            pairs(z**2),
        )
        return jnp.stack([moment.mean(0) for moment in moments])

    return jax.lax.map(
        lambda one: jax.lax.map(lambda key: chunk(key, one[1]), one[0]), (seeds, widths)
    )
