"""Derivatives of random ReLU networks are exponentially sensitive to the ratio of depth to width.

At every width the second moment of an input–output derivative is 2/n_0 and the fourth grows by 1 + 5/n_l a layer
(Gaussian weights; other laws need their kurtosis). The logarithm of the squared norm of a hidden Jacobian column is
near N(−β/2, β) with β = 5 Σ 1/n_l: the typical derivative vanishes while its mean square stays.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import polygamma, psi
from scipy.stats import kstest, norm

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
    equal,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.nn.networks import Columns, derivative_moments, log_column_moments, sample_columns


@dataclass(frozen=True)
class ReluPathMoments(Claim):
    """Jacobians of networks with explicit weights and the gates of their own forward pass."""

    laws: tuple[str, ...] = ("gaussian", "rademacher", "uniform")  # laws of the weights [name]
    width: Count = 16  # width of all layers, for the moments [neurons]
    depth: Count = 3  # hidden layers, for the moments [layers]
    # hidden widths of a network of its own, with Gaussian weights, for the moments [neurons]
    unequal: tuple[Count, ...] = (8, 32, 8)
    networks: Count = 2000  # random networks in each group, for the moments [1]
    log_width: Count = 32  # width of all layers, for the logarithms [neurons]
    # hidden layers over width, for the logarithms [1]
    aspects: tuple[Positive, ...] = (0.25, 0.5, 1.0)
    log_networks: Count = 200  # random networks in each group, for the logarithms [1]
    columns: Count = 16  # input coordinates that are differentiated [1]
    groups: Seeds = 20  # groups, over which intervals are taken [1]

    kind = "theorem"
    statement = (
        r"\mathbb{E}\Big(\frac{\partial z}{\partial x_p}\Big)^{2}=\frac{2}{n_0},\quad "
        r"\mathbb{E}\Big(\frac{\partial z}{\partial x_p}\Big)^{4}=\frac{12}{n_0^2}\prod_{l=1}^{L}"
        r"\Big(1+\frac{5}{n_l}\Big),\quad "
        r"\log\frac{n_0}{n_L}\|u_L\|^2\approx\mathcal{N}\Big(-\frac{\beta}{2},\beta\Big),\;\beta=5\sum_l\frac{1}{n_l}"
    )
    source = "Lecture of 30 November in [@hanin2022]; [@hanin2020b]"
    corrections = (
        "The notes state the lognormal law for one squared derivative. It holds for the squared norm of a hidden "
        "column; the last layer multiplies one derivative by the square of another random number (χ² of one degree for "
        "Gaussian weights), whose logarithm does not become small. The factor 2/n_0 is missing too.",
        "The exercise leaves the constant of the fourth moment open; it is 12 for Gaussian weights. exp(5 Σ 1/n_l) is "
        "the leading term of the exact product, and other laws change the product: by the factor 1 + 1/n_1 instead of "
        "1 + 5/n_1 in the first layer of Rademacher weights, for instance.",
        "That gates are fair coins independent of even functions of the weights needs more than symmetry: z = 0 must "
        "have probability zero. With Rademacher weights and x = (1, 1) half of the first layer's preactivations "
        "vanish, and the second moment is not 2/n_0. It is, if no whole-number combination of x vanishes.",
    )
    remarks = (
        "Beyond aspect ratios of about 1/4 the mean of the fourth power is carried by networks too rare to be drawn, "
        "so there the logarithm is judged. The margin of 25 % for β leaves room for its own next order, a relative "
        "correction near 4.4/n for Gaussian weights (14 % at width 32).",
        "The logarithm of a network with a dead layer is −∞; widths are such that none is expected.",
        "The interval of the Kolmogorov distance is that of Dvoretzky, Kiefer, Wolfowitz and Massart.",
        "Version 1 had equal widths only. Version 2 adds a network of unequal ones, whose mean width is that of the "
        "others and whose fourth moment is larger by a third, and changes nothing else.",
    )
    version = 2
    tiny = {
        "depth": 2,
        "networks": 50,
        "aspects": (0.125, 0.25),
        "log_networks": 20,
        "columns": 4,
        "groups": 4,
    }
    out_of_scope = {"log_width": 8}
    full = {"depth": 4, "networks": 10_000, "log_width": 64, "log_networks": 400}

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        dead = self.groups * self.log_networks * max(self.depths) * 0.5**self.log_width
        return [
            assume(
                "width for the logarithms", self.log_width, ">=", 32, "the law is for large widths"
            ),
            assume(
                "expected number of dead layers", dead, "<=", 0.01, "choose a larger --log-width"
            ),
            assume(
                "largest hidden layers / width",
                max(self.aspects),
                "<=",
                1,
                "the theorem is for bounded β",
            ),
            assume(
                "differentiated coordinates", self.columns, "<=", min(self.width, self.log_width)
            ),
        ]

    @property
    def depths(self) -> np.ndarray:
        """Return the hidden layers at which logarithms are judged."""
        return np.maximum(1, np.round(self.log_width * np.array(self.aspects)).astype(int))

    def predict(self, setting: None) -> Prediction:
        ends = [(self.width,) * (layers + 2) for layers in range(self.depth + 1)]
        moments = [[derivative_moments(widths, law) for widths in ends] for law in self.laws]
        unequal = derivative_moments((self.width, *self.unequal, self.width))
        beta = 5 * np.arange(1, max(self.depths) + 1) / self.log_width
        return Prediction(
            moments=("law depth power", moments),
            unequal=("power", unequal),
            mean=("layer", -beta / 2),
            variance=("layer", beta),
            exact=("moment layer", log_column_moments((self.log_width,) * (max(self.depths) + 2))),
        )

    def observe(self, setting: None, key: Key) -> Observation:
        moments = []
        means = []
        variances = []
        last = []
        for_unequal, *seeds = jax.random.split(key, len(self.laws) + 1)
        for law, k in zip(self.laws, seeds, strict=True):
            one, two = jax.random.split(k)
            hidden = (self.width,) * self.depth
            moments.append(self.grouped_moments(one, law, hidden, self.networks))
            hidden = (self.log_width,) * int(max(self.depths))
            sample = self.sample(two, law, self.log_width, hidden, self.log_networks)
            logs = jnp.log(sample.norms).reshape(
                self.groups, self.log_networks, *sample.norms.shape[1:]
            )
            means.append(logs.mean((1, 3)))
            variances.append(logs.var(1, ddof=1).mean(-1))
            last.append(logs[:, :, -1, 0].ravel())
        return Observation(
            moments=("law group depth power", jnp.stack(moments)),
            unequal=(
                "group power",
                # half as many: their matrices are padded to the widest layer
                self.grouped_moments(for_unequal, "gaussian", self.unequal, self.networks // 2)[
                    :, -1
                ],
            ),
            mean=("law group layer", jnp.stack(means)),
            variance=("law group layer", jnp.stack(variances)),
            last=("law network", jnp.stack(last)),
        )

    def grouped_moments(
        self, key: Key, law: str, hidden: tuple[int, ...], networks: int
    ) -> jax.Array:
        """Return second and fourth moments of derivatives by layers, ``(groups, depth + 1, 2)``."""
        sample = self.sample(key, law, self.width, hidden, networks)
        both = jnp.stack([sample.squares, sample.fourths], axis=-1)
        return both.reshape(self.groups, -1, len(hidden) + 1, 2).mean(1)

    def sample(
        self, key: Key, law: str, width: int, hidden: tuple[int, ...], networks: int
    ) -> Columns:
        """Return Jacobians at a Gaussian input, in single precision, between layers of this width."""
        for_x, key = jax.random.split(key)
        x = jax.random.normal(for_x, (width,), jnp.float32)
        columns = min(self.columns, width)
        widths = (width, *hidden, width)
        return sample_columns(key, self.groups * networks, widths, x, law, columns=columns)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, law in enumerate(self.laws):
            checks += self.judge_moments(i, law, observed["moments"][i] / predicted["moments"][i])
            checks += self.judge_logarithm(i, law, predicted, observed)
        shape = "–".join(map(str, self.unequal))
        checks.append(
            equal(
                "unequal_fourth_moment",
                1.0,
                observed["unequal"][:, 1] / predicted["unequal"][1],
                0.1,  # the formula is exact: what the interval needs, as for equal widths
                label=f"gaussian: E(∂z)⁴ / exact, hidden widths {shape}",
            )
        )
        return checks

    def judge_moments(self, i: int, law: str, ratio: np.ndarray) -> list[Check]:
        """Compare moments with the exact ones; their ratio has shape ``(groups, depth + 1, 2)``."""
        second = equal(
            f"second_moment_{i}",
            1.0,
            ratio[:, -1, 0],
            0.05,
            label=f"{law}: E(∂z)² n_0/2, {self.depth} layers",
        )
        fourth = [
            equal(
                f"fourth_moment_{i}_{which}",
                1.0,
                ratio[:, layers, 1],
                0.1,
                label=f"{law}: E(∂z)⁴ / exact, {layers} layers",
            )
            for which, layers in ends(1, self.depth)
        ]
        return [second, *fourth]

    def judge_logarithm(
        self, i: int, law: str, predicted: Prediction, observed: Observation
    ) -> list[Check]:
        """Compare mean, variance and distribution of the logarithm with the normal law."""
        deepest = int(max(self.depths))
        judged = [("mean", f"log_mean_{i}", deepest)]
        for which, layers in ends(int(min(self.depths)), deepest):
            judged.append(("variance", f"log_variance_{i}_{which}", layers))
        checks = [
            equal(
                id,
                predicted[name][layers - 1],
                observed[name][i, :, layers - 1],
                0.25,
                label=f"{law}: {name} of the log, {layers} layers",
            )
            for name, id, layers in judged
        ]
        checks.append(self.judge_distribution(i, law, predicted, observed["last"][i]))
        if law != "gaussian":
            return checks
        return checks + [
            equal(
                f"log_{name}_exact_{i}",
                predicted["exact"][j, -1],
                observed[name][i, :, -1],
                0.1,
                label=f"gaussian: {name} of the log, exact",
            )
            for j, name in enumerate(("mean", "variance"))
        ]

    def judge_distribution(
        self, i: int, law: str, predicted: Prediction, logs: np.ndarray
    ) -> Check:
        """Compare the distribution of the logarithm at the last layer with the normal law."""
        radius = np.sqrt(np.log(40) / (2 * len(logs)))
        limit = norm(predicted["mean"][-1], np.sqrt(predicted["variance"][-1]))
        distance = kstest(logs, limit.cdf).statistic
        return bound(
            f"log_distance_{i}",
            np.array([max(0, distance - radius), distance, distance + radius]),
            at_most=0.1,
            aggregate="all",
            note="95 % band of an empirical distribution",
            label=f"{law}: distance of the log to N(−β/2, β)",
        )

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        gaussian = [
            derivative_moments((self.width,) * (layers + 2)) for layers in range(self.depth + 1)
        ]
        one = (psi(0.5) + np.log(2), polygamma(1, 0.5))  # mean and variance of log χ² of one degree
        layers = ("layer", np.full_like(predicted["mean"], 5 / self.log_width))
        return [
            Rival(
                "one_layer",
                predicted.replace(variance=layers),
                "the second moment does not depend on depth",
                label="the variance of the log is that of one layer",
            ),
            Rival(
                "mean_width",
                predicted.replace(unequal=("power", self.of_the_mean_width())),
                "the ratio of depth to width, with the mean of the widths",
                label="L over the mean width, in place of Σ 1/n_l",
            ),
            Rival(
                "no_drift",
                predicted.replace(mean=("layer", 0 * predicted["mean"])),
                "the squared norm has mean one",
                label="the log has mean zero",
            ),
            Rival(
                "one_derivative",
                predicted.replace(
                    mean=("layer", predicted["mean"] + one[0]),
                    variance=("layer", predicted["variance"] + one[1]),
                    exact=("moment layer", predicted["exact"] + np.array(one)[:, None]),
                ),
                "as printed: the law of the column's norm for one squared derivative",
                label="the log of one squared derivative",
            ),
            Rival(
                "ten_percent_more",
                predicted.replace(
                    mean=("layer", 1.1 * predicted["mean"]),
                    variance=("layer", 1.1 * predicted["variance"]),
                ),
                "its own next order is as large",
                label="β = 5.5 Σ 1/n_l",
                accepted="β to ten percent: its own next order is as large at this width",
            ),
            Rival(
                "half_the_gates",
                predicted.replace(moments=("law depth power", predicted["moments"] / [2, 4])),
                "He's factor of 2 forgotten",
                label="E(∂z)² = 1/n_0",
            ),
            Rival(
                "leading_order_exact",
                predicted.replace(
                    exact=("moment layer", np.stack([predicted["mean"], predicted["variance"]]))
                ),
                "it is the limit of large widths",
                label="N(−β/2, β) without corrections",
                accepted="the next order of β, where the interval is as wide",
            ),
            Rival(
                "gaussian_always",
                predicted.replace(moments=("law depth power", [gaussian] * len(self.laws))),
                "the law does not matter in wide networks",
                label="the formula for Gaussian weights for every law",
            ),
        ]

    def of_the_mean_width(self) -> np.ndarray:
        """Return the moments of a network whose hidden layers all have the mean of the unequal widths."""
        mean = round(float(np.mean(self.unequal)))
        hidden = (mean,) * len(self.unequal)
        return np.array(derivative_moments((self.width, *hidden, self.width)))

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        depth = np.arange(self.depth + 1)
        layers = np.arange(1, len(predicted["mean"]) + 1)
        fourth = []
        spread = []
        for i, law in enumerate(self.laws):
            shade = i / max(1, len(self.laws) - 1)
            scale = self.width**2 / 4
            fourth += [
                observed_curve(
                    depth,
                    scale * observed["moments"][i, ..., 1].mean(0),
                    law,
                    shade=shade,
                    kind="points",
                )
            ]
            fourth += [predicted_curve(depth, scale * predicted["moments"][i, :, 1], shade=shade)]
            spread += [
                observed_curve(
                    layers, observed["variance"][i].mean(0), f"variance, {law}", shade=shade
                )
            ]
        mean = observed["mean"][0].mean(0)
        return (
            panel(
                f"Fourth moment of a derivative, width {self.width}",
                "hidden layers",
                "(n_0²/4) E (∂z)⁴",
                *fourth,
            ),
            panel(
                f"The logarithm drifts, width {self.log_width}",
                "layer",
                "log of squared norm",
                *spread,
                observed_curve(layers, mean, f"mean, {self.laws[0]}"),
                predicted_curve(layers, predicted["variance"], "β, −β/2"),
                predicted_curve(layers, predicted["mean"]),
                rival_curve(
                    layers, np.full(len(layers), 5 / self.log_width), "variance of one layer"
                ),
            ),
        )


def ends(first: int, last: int) -> tuple[tuple[str, int], ...]:
    """Return the two ends of a range of layers by name; one where they are the same.

    >>> ends(1, 3)
    (('first', 1), ('last', 3))
    """
    return (("first", first), ("last", last)) if first < last else (("last", last),)
