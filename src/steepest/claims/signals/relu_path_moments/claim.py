"""Input derivatives of random ReLU networks are exponentially sensitive to depth over width.

For n_0 inputs and hidden layers of widths n_l, the second moment of an input–output derivative is 2/n_0 at every width.
The fourth moment grows by 1 + 5/n_l per layer for Gaussian weights; for other laws the factor depends on their
kurtosis. The logarithm of the squared norm of a hidden Jacobian column is near N(−β/2, β) with β = 5 Σ 1/n_l: the
typical derivative vanishes while the mean square stays.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray
from scipy.special import polygamma, psi
from scipy.stats import kstest, norm

from steepest import kit
from steepest.nn.networks import Columns, derivative_moments, log_column_moments, sample_columns
from steepest.nn.types import Values

POWERS = ("second", "fourth")
MOMENTS = ("mean", "variance")
WIDER = 2  # times the width, in a changed world


class LawRun(NamedTuple):
    """Networks of one law of the weights, in groups."""

    moments: Values  # of derivatives, (groups, depth, 2)
    mean: Values  # of the logarithm, (groups, layers)
    variance: Values  # (groups, layers)
    last: (
        Values  # the logarithm after all layers, (groups × networks,), −∞ of a column that vanishes
    )
    vanished: float  # share of columns


@kit.claim
class ReluPathMoments(kit.Claim[None]):
    """Jacobians of networks with explicit weights and the gates of their own forward pass."""

    laws: tuple[str, ...] = kit.param(
        ("gaussian", "rademacher", "uniform"),
        "laws of the weights",
        unit="names",
        scope=kit.choices(("gaussian", "rademacher", "uniform")),
    )
    width: kit.Count = kit.param(
        16, "width of all layers, for the moments", unit="neurons", scope=kit.between(16, 24)
    )
    depth: kit.Count = kit.param(
        3,
        "hidden layers, for the moments",
        unit="layers",
        scope=kit.choices(
            3,
            4,
            why="of deeper ones the fourth moment is in networks too rare to draw, two depths do not tell a law",
        ),
    )
    unequal: tuple[kit.Count, ...] = kit.param(
        (8, 32, 8),
        "hidden widths of a network of its own, with Gaussian weights, for the moments",
        unit="neurons",
        scope=kit.choices((8, 32, 8), (8, 8, 32), (8, 24, 8)),
    )
    networks: kit.Count = kit.param(2000, "random networks in each group, for the moments")
    log_width: kit.Count = kit.param(
        32, "width of all layers, for the logarithms", unit="neurons", scope=kit.between(32, 48)
    )
    aspects: tuple[kit.Positive, ...] = kit.param(
        (0.25, 0.5, 1.0),
        "hidden layers over width, for the logarithms",
        scope=kit.choices((0.25, 0.5, 1.0), (0.2, 0.4, 0.8), (0.3, 0.9)),
    )
    log_networks: kit.Count = kit.param(200, "random networks in each group, for the logarithms")
    columns: kit.Count = kit.param(16, "input coordinates that are differentiated")
    groups: kit.Seeds = kit.param(20, "groups over which intervals are taken")

    kind = "theorem"
    says = {
        "exponentially sensitive to depth over width": ("fourth_moment", "log_mean", "log_variance")
    }
    ragged = ("last", "shallow")
    tiny = {
        "depth": 2,
        "networks": 50,
        "aspects": (0.125, 0.25),
        "log_networks": 20,
        "columns": 4,
        "groups": 4,
    }
    full = {"depth": 4, "networks": 10_000, "log_width": 64, "log_networks": 400}
    out_of_scope = {"log_width": 8}

    @property
    def depths(self) -> Values:
        """Return the hidden layers at which logarithms are judged."""
        return np.maximum(1, np.round(self.log_width * np.array(self.aspects)).astype(int))

    def axes(self):
        return {
            "weights": self.laws,
            "depth": tuple(range(1, self.depth + 1)),
            "power": POWERS,
            "moment": MOMENTS,
            "layers": tuple(int(depth) for depth in self.depths),
        }

    def check_fields(self) -> None:
        if "gaussian" not in self.laws:
            raise kit.UserError(
                f"the logarithm is exact for Gaussian weights, which --laws must name, got {self.laws}; "
                "try gaussian uniform"
            )

    def hypotheses(self, setting):
        dead = self.groups * self.log_networks * max(self.depths) * 0.5**self.log_width
        yield kit.assume(
            "width for the logarithms", self.log_width, ">=", 32, "the law is for large widths"
        )
        yield kit.assume(
            "expected number of dead layers", dead, "<=", 0.01, "choose a larger --log-width"
        )
        yield kit.assume(
            "largest hidden layers / width",
            max(self.aspects),
            "<=",
            1,
            "the theorem is for bounded β",
        )
        yield kit.assume(
            "differentiated coordinates", self.columns, "<=", min(self.width, self.log_width)
        )

    def predict(self, setting):
        second, fourth = np.moveaxis(self._moments(self.laws), -1, 0)
        beta = 5 * self.depths / self.log_width  # 5 Σ 1/n_l
        exact = np.array(log_column_moments((self.log_width,) * (max(self.depths) + 2)))
        unequal = derivative_moments((self.width, *self.unequal, self.width))
        return kit.law(
            second_moment=("weights depth", second),
            fourth_moment=("weights depth", fourth),
            unequal=unequal.fourth,
            log_mean=("layers", -beta / 2),
            log_variance=("layers", beta),
            exact=("moment layers", exact[:, self.depths - 1]),
            distance=0.1,
        )

    def _moments(self, laws: tuple[str, ...]) -> Values:
        """Return both moments by laws and depths, ``(laws, depth, 2)``."""
        widths = [(self.width,) * (layers + 2) for layers in range(1, self.depth + 1)]
        return np.array([[derivative_moments(ends, law) for ends in widths] for law in laws])

    def observe(self, setting, key):
        for_unequal, for_wide, *seeds = jax.random.split(key, len(self.laws) + 2)
        runs = [self._run(*lane, 1) for lane in zip(self.laws, seeds, strict=True)]
        moments, means, variances, ends, vanished = (
            np.stack(parts) for parts in zip(*runs, strict=True)
        )
        wide = self._run("gaussian", for_wide, WIDER)
        # half as many: their matrices are padded to the widest layer
        unequal = self.grouped_moments(for_unequal, "gaussian", self.unequal, self.networks // 2)
        dims = "weights seed layers"
        return kit.seen(
            second=("weights seed depth", moments[..., 0]),
            fourth=("weights seed depth", moments[..., 1]),
            unequal=("seed", np.asarray(unequal)[:, -1, 1]),
            log_mean=(dims, means[..., self.depths - 1]),
            log_variance=(dims, variances[..., self.depths - 1]),
            means=("weights seed layer", means),
            variances=("weights seed layer", variances),
            last=("weights network", ends[:, 1]),
            shallow=("weights network", ends[:, 0]),
            wide_fourth=("seed depth", wide.moments[..., 1]),
            wide_mean=("seed layers", wide.mean[:, self.depths - 1]),
            wide_variance=("seed layers", wide.variance[:, self.depths - 1]),
            vanished=("weights", vanished),
        )

    def _run(self, law: str, key: kit.Key, times: int) -> LawRun:
        """Draw networks of one law, whose hidden layers are some ``times`` as wide."""
        one, two = jax.random.split(key)
        hidden = (times * self.width,) * self.depth
        moments = self.grouped_moments(one, law, hidden, self.networks // times)
        hidden = (times * self.log_width,) * int(max(self.depths))
        networks = self.log_networks // times**2  # wide ones take as much longer
        sample = self.sample(two, law, self.log_width, hidden, networks)
        shape = (self.groups, networks, *sample.norms.shape[1:])
        norms = np.asarray(sample.norms, float).reshape(shape)
        logs = np.log(np.where(norms > 0, norms, np.nan))
        # of all columns, which one network shares
        variance = np.nanvar(logs, 1, ddof=1).mean(-1)
        first = np.nan_to_num(logs[..., 0].reshape(-1, logs.shape[2]), nan=-np.inf)
        return LawRun(
            np.asarray(moments)[:, 1:],
            np.nanmean(logs, (1, 3)),
            variance,
            first[:, self.depths[[0, -1]] - 1].T,
            (norms <= 0).mean(),
        )

    def grouped_moments(
        self, key: kit.Key, law: str, hidden: tuple[int, ...], networks: int
    ) -> jax.Array:
        """Return second and fourth moments of derivatives by layers, ``(groups, depth + 1, 2)``."""
        sample = self.sample(key, law, self.width, hidden, networks)
        both = np.stack([sample.squares, sample.fourths], axis=-1)
        return jnp.asarray(both.reshape(self.groups, -1, len(hidden) + 1, 2)).mean(1)

    def sample(
        self, key: kit.Key, law: str, width: int, hidden: tuple[int, ...], networks: int
    ) -> Columns:
        """Return Jacobians at a Gaussian input, in single precision, between layers of this width."""
        for_x, key = jax.random.split(key)
        x = jax.random.normal(for_x, (width,), jnp.float32)
        columns = min(self.columns, width)
        widths = (width, *hidden, width)
        return sample_columns(key, self.groups * networks, widths, x, law, columns=columns)

    def run_conditions(self, observed):
        vanished = observed["vanished"].max()
        yield kit.assume(
            "share of columns that vanish", vanished, "<=", 1e-4, "choose a larger --log-width"
        )

    def derive(self, law, seen):
        """Return the upper end of the band of the Kolmogorov distance from the normal law, at the last layer."""
        limit = norm(float(law.log_mean[-1]), np.sqrt(float(abs(law.log_variance[-1]))))
        # Dvoretzky, Kiefer and Wolfowitz: P(sup |F_n − F| > r) ≤ 2 exp(−2nr²), here 5 %
        radius = np.sqrt(np.log(40) / (2 * seen.sizes["network"]))
        apart = [kstest(logs, limit.cdf).statistic + radius for logs in seen["last"].values]
        return {"apart": xarray.DataArray(apart, {"weights": seen.weights}, "weights")}

    def judge(self, law, seen):
        gaussian = self.laws.index("gaussian")
        logs = {"mean": seen.log_mean, "variance": seen.log_variance}
        exact = [
            kit.follows(
                f"log_{name}_exact",
                law.exact.sel(moment=name, drop=True),
                array.isel(weights=gaussian, drop=True),
                0.12,
                label=f"gaussian: {name} of the log, exact",
            )
            for name, array in logs.items()
        ]
        yield kit.follows("second_moment", law.second_moment, seen.second, 0.05, label="E(∂z)²")
        yield kit.follows("fourth_moment", law.fourth_moment, seen.fourth, 0.1, label="E(∂z)⁴")
        yield kit.follows(
            "unequal_fourth_moment",
            law.unequal,
            seen.unequal,
            0.1,  # the formula is exact: what the interval needs, as for equal widths
            label=f"gaussian: E(∂z)⁴, hidden widths {'–'.join(map(str, self.unequal))}",
        )
        yield kit.follows(
            "log_mean",
            law.log_mean,
            seen.log_mean,
            0.25,
            over="weights layers",
            label="mean of the log of a column's squared norm",
        )
        yield kit.follows(
            "log_variance",
            law.log_variance,
            seen.log_variance,
            0.25,
            over="weights layers",
            label="variance of the log of a column's squared norm",
        )
        yield kit.at_most(
            "log_distance",
            law.distance,
            seen.apart,
            over="weights",
            label="distance of the log to N(−β/2, β), upper end of its band",
        )
        yield from exact

    def rivals(self, setting, law):
        first = 5 / self.log_width
        gaussian = self._moments(("gaussian",) * len(self.laws))
        leading = np.stack([law.log_mean, law.log_variance])
        yield kit.rival(
            "mean and variance of the log stay as after one layer",
            "the second moment does not depend on depth",
            id="one_layer",
            log_mean=0 * law.log_mean - first / 2,
            log_variance=0 * law.log_variance + first,
            fourth_moment=law.fourth_moment.isel(depth=0, drop=True) + 0 * law.fourth_moment,
        )
        yield kit.rival(
            "L over the mean width, in place of Σ 1/n_l",
            "the ratio of depth to width, with the mean of the widths",
            unequal=self.of_the_mean_width(),
        )
        yield from self.rivals_of_logarithm(law)
        yield kit.rival(
            "E(∂z)² = 1/n_0",
            "He's factor of 2 forgotten",
            second_moment=law.second_moment / 2,
            fourth_moment=law.fourth_moment / 4,
        )
        yield kit.rival(
            "N(−β/2, β) without corrections",
            "it is the limit of large widths",
            accepted="the next order of β, where the interval is as wide",
            exact=("moment layers", leading),
        )
        yield kit.rival(
            "the formula for Gaussian weights for every law",
            "the law does not matter in wide networks",
            fourth_moment=("weights depth", gaussian[..., 1]),
        )

    def of_the_mean_width(self) -> float:
        """Return the fourth moment of a network whose hidden layers all have the mean of the unequal widths."""
        mean = round(float(np.mean(self.unequal)))
        hidden = (mean,) * len(self.unequal)
        return derivative_moments((self.width, *hidden, self.width)).fourth

    def rivals_of_logarithm(self, law):
        """Return wrong theories of the logarithm alone."""
        # mean and variance of log χ² of one degree
        log_chi = (psi(0.5) + np.log(2), polygamma(1, 0.5))
        yield kit.rival(
            "the log has mean zero", "the squared norm has mean one", log_mean=1e-3 * law.log_mean
        )
        yield kit.rival(
            "the log of one squared derivative",
            "as printed: the law of the column's norm for one squared derivative",
            log_mean=law.log_mean + log_chi[0],
            log_variance=law.log_variance + log_chi[1],
            exact=law.exact + xarray.DataArray(np.array(log_chi), dims="moment"),
        )
        yield kit.rival(
            "β = 5.5 Σ 1/n_l",
            "its own next order is as large",
            accepted="β to ten percent: its own next order is as large at this width",
            log_mean=1.1 * law.log_mean,
            log_variance=1.1 * law.log_variance,
        )

    def controls(self, seen):
        yield kit.control(
            f"networks {WIDER} times as wide, Gaussian weights",
            "depth over width is half as large there",
            id="wider",
            fourth=seen.wide_fourth,
            log_mean=seen.wide_mean,
            log_variance=seen.wide_variance,
        )
        yield kit.control(
            "deep networks for shallow ones, and the other way round",
            "moments grow with depth",
            id="other_depth",
            fourth=(seen.fourth.dims, seen.fourth.values[..., ::-1]),
            last=seen.shallow,
        )

    def figure(self, law, seen, rivals):
        depth = np.array(law.depth)
        layers = np.arange(1, seen.sizes["layer"] + 1)
        beta = 5 * layers / self.log_width
        scale = self.width**2 / 4
        shades = np.linspace(0, 1, len(self.laws))
        fourth = []
        spread = []
        for i, (name, shade) in enumerate(zip(self.laws, shades, strict=True)):
            moments = scale * seen.fourth[i].mean("seed")
            fourth += [
                kit.observed_curve(depth, moments, name, shade=shade, kind="points"),
                kit.predicted_curve(depth, scale * law.fourth_moment[i], shade=shade),
            ]
            variance = seen.variances[i].mean("seed")
            spread.append(kit.observed_curve(layers, variance, f"variance, {name}", shade=shade))
        yield kit.panel(
            f"Fourth moment of a derivative, width {self.width}",
            "hidden layers",
            "(n_0²/4) E (∂z)⁴",
            *fourth,
        )
        yield kit.panel(
            f"The logarithm drifts, width {self.log_width}",
            "layer",
            "log of squared norm",
            *spread,
            kit.observed_curve(layers, seen.means[0].mean("seed"), f"mean, {self.laws[0]}"),
            kit.predicted_curve(layers, beta, "β, −β/2"),
            kit.predicted_curve(layers, -beta / 2),
            kit.rival_curve(
                layers, np.full(len(layers), 5 / self.log_width), "variance of one layer"
            ),
        )
