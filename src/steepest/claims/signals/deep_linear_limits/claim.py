"""The infinite-depth and infinite-width limits of random linear networks do not commute.

The logarithm of a unit vector's length after layers of widths n_l is normal, of mean −½ Σ 1/n_l and variance ½ Σ 1/n_l,
up to higher orders in 1/n_l. After L Gaussian n × n matrices the length has the law of (Π χ²_n/n)^{1/2}. It tends to
one when n → ∞ first, to zero when L → ∞ first, and is lognormal in between. Where widths differ, narrow layers count
most: Σ 1/n_l replaces L/n, and no mean width can. The limits of many data and of high dimension do not commute either:
for P data of dimension n_0, the rows of X, the spectrum of XXᵀ/n_0 follows the Marchenko–Pastur law of ratio P/n_0.
"""

import numpy as np
import xarray
from scipy.special import polygamma, psi
from scipy.stats import norm

from steepest import kit
from steepest.kernels import marchenko_pastur_cdf, marchenko_pastur_edges

PARTS = (1 / 3, 2 / 3, 1.0)  # of the largest Σ 1/n_l, at which mean and variance are judged
DEEP_PARTS = (0.5, 0.75, 1.0)  # of the layers of the deep network
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # below the quantiles of the normal law
EIGENVALUES = 9  # between the edges, at which the spectrum is compared
POINTS = 9  # of a curve in the figure


@kit.claim
class DeepLinearLimits(kit.Claim[None]):
    """Unit vectors through products of Gaussian matrices; spectra of sample covariances."""

    widths: tuple[kit.Count, ...] = kit.param(
        (8, 16, 24),
        "width n of all layers",
        unit="neurons",
        scope=kit.choices(
            (8, 16, 24),
            (8, 12, 24),
            (8, 16, 32),
            why="at a smallest width of 10 the mean is within its margin of −L/2n",
        ),
    )
    alternating: tuple[kit.Count, kit.Count] = kit.param(
        (8, 32),
        "widths of layers in turn, of a network of its own",
        unit="neurons",
        scope=kit.choices(
            (8, 32),
            (9, 36),
            (10, 40),
            why="farther apart the narrow layers are nearly all of Σ 1/n_l",
        ),
    )
    aspect: kit.Positive = kit.param(
        3.0,
        "largest Σ 1/n_l",
        scope=kit.between(
            3.0, 4.0, "the less, the more networks the mean takes, relative to its size"
        ),
    )
    shallow: kit.Count = kit.param(
        4, "layers at which the limit of width is judged", unit="layers", scope=kit.between(3, 8)
    )
    deep: kit.Count = kit.param(
        384,
        "layers at which the limit of depth is judged, for the smallest width",
        unit="layers",
        scope=kit.between(350, 450),
    )
    networks: kit.Count = kit.param(160, "random networks in each group")
    groups: kit.Seeds = kit.param(40, "groups, over which intervals are taken")
    alpha: kit.Positive = kit.param(
        0.5, "P/n_0", scope=kit.between(0.3, 0.8, "the theorem is for fewer data than dimensions")
    )
    dimension: kit.Count = kit.param(512, "input dimension n_0", scope=kit.between(400, 600))
    spectra: kit.Seeds = kit.param(10, "sample covariances")

    kind = "limit"
    says = {
        "The infinite-depth and infinite-width limits of random linear networks do not commute": (
            "spread",
            "deep",
        ),
        "is normal": "normal",
        "mean −½ Σ 1/n_l": "mean",
        "variance ½ Σ 1/n_l": "variance",
    }
    tiny = {
        "widths": (8, 12, 16),
        "deep": 80,
        "networks": 20,
        "groups": 4,
        "dimension": 256,
        "spectra": 3,
    }
    full = {"widths": (8, 16, 32, 64), "networks": 400, "deep": 1024, "dimension": 2048}
    out_of_scope = {"alpha": 1.5}

    @property
    def rows(self) -> int:
        """Return P, the number of data."""
        return max(1, round(self.alpha * self.dimension))

    @property
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """Return the widths that layers have in turn, of each network."""
        return (*((width,) for width in self.widths), self.alternating)

    @property
    def ratios(self) -> tuple[float, ...]:
        """Return the judged Σ 1/n_l."""
        return tuple(part * self.aspect for part in PARTS)

    @property
    def depths(self) -> tuple[int, ...]:
        """Return the judged depths of the deep network."""
        return tuple(max(1, round(part * self.deep)) for part in DEEP_PARTS)

    @property
    def grid(self) -> np.ndarray:
        """Return the eigenvalues at which spectra are compared, between the edges of the law."""
        low, high = marchenko_pastur_edges(self.alpha)
        return np.linspace(low, high, EIGENVALUES + 2)[1:-1]

    def rounds(self, turns: tuple[int, ...]) -> tuple[int, ...]:
        """Return how often layers of some widths follow each other at each of the judged Σ 1/n_l."""
        each_round = sum(1 / n for n in turns)
        return tuple(max(1, round(ratio / each_round)) for ratio in self.ratios)

    def axes(self):
        return {
            "network": tuple(" and ".join(map(str, turns)) for turns in self.turns),
            "ratio": self.ratios,
            "width": self.widths,
            "depth": self.depths,
            "share": SHARES,
            "eigenvalue": tuple(self.grid),
        }

    def hypotheses(self, setting):
        narrow = min(self.widths)
        yield kit.assume(
            "α = P/n_0", self.alpha, "<", 1, "the theorem is for fewer data than dimensions"
        )
        yield kit.assume("number of data P", self.rows, ">=", 100, "the law is for large P and n_0")
        yield kit.assume(
            "smallest width",
            min(narrow, *self.alternating),
            ">=",
            8,
            "the logarithm is nearly normal for large widths",
        )
        yield kit.assume(
            "L/n of the limit of depth", self.deep / narrow, ">=", 10, "choose a larger --deep"
        )
        yield kit.assume(
            "widths", len(set(self.widths)), ">=", 3, "an exponent is fitted over them"
        )
        yield kit.assume(
            "ratio of alternating widths",
            max(self.alternating) / min(self.alternating),
            ">=",
            4,
            "means of widths must differ",
        )

    def predict(self, setting):
        n = np.array(self.widths)
        moments = np.array(
            [np.outer(_moments(turns), self.rounds(turns)) for turns in self.turns]
        )  # (network, moment, ratio)
        return kit.law(
            mean=("network ratio", moments[:, 0]),
            variance=("network ratio", moments[:, 1]),
            # log‖θ‖ tends to N(−½ Σ 1/n_l, ½ Σ 1/n_l) as widths grow
            quantiles=("share", norm(-self.aspect / 2, np.sqrt(self.aspect / 2)).ppf(SHARES)),
            below=("share", SHARES),
            factor=("width", 2 / n),  # Var χ²_n/n
            # each layer adds ½ log χ²_n, of variance ¼ ψ'(n/2)
            spread=("width", np.sqrt(self.shallow / 4 * polygamma(1, n / 2))),
            deep=("depth", _moments((min(self.widths),))[0] * np.array(self.depths)),
            spectrum=("eigenvalue", marchenko_pastur_cdf(self.grid, self.alpha)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        narrow = int(np.argmin(self.widths))
        logs = []
        factors = []
        few = []
        paths = []
        deep = np.empty(0)
        for i, turns in enumerate(self.turns):
            rounds = self.rounds(turns)
            layers = max(rounds[-1], self.shallow, self.deep if i == narrow else 0)
            path = self.log_lengths(rng, turns, layers)
            logs.append(_after(path, rounds))
            if len(turns) == 1:
                steps = np.diff(path[..., : rounds[-1]], prepend=0)
                factors.append(np.exp(2 * steps).var((1, 2), ddof=1))
                few.append(path[..., self.shallow - 1])
                shown = np.linspace(0, rounds[-1] - 1, POINTS).astype(int)
                paths.append(path.mean((0, 1))[shown])
            if i == narrow:
                deep = _after(path, self.depths)
        tied = self.log_lengths(rng, self.turns[narrow], self.deep, tied=True)
        return kit.seen(
            logs=("network ratio seed draw", logs),
            tied_logs=("ratio seed draw", _after(tied, self.rounds(self.turns[narrow]))),
            factors=("width seed", factors),
            few=("width seed draw", few),
            deep=("depth seed draw", deep),
            tied_deep=("depth seed draw", _after(tied, self.depths)),
            paths=("width point", paths),
            eigenvalues=("start place", self.eigenvalues(rng)),
        )

    def eigenvalues(self, rng: np.random.Generator) -> np.ndarray:
        """Return spectra of sample covariances, ``(spectra, P)``."""
        data = rng.standard_normal((self.spectra, self.rows, self.dimension))
        return np.linalg.eigvalsh(data @ data.swapaxes(1, 2) / self.dimension)

    def log_lengths(
        self, rng: np.random.Generator, turns: tuple[int, ...], rounds: int, tied: bool = False
    ) -> np.ndarray:
        """Return the logarithm of a vector's length after every round of layers, ``(groups, networks, rounds)``.

        A round has a layer of each width, and the vector starts with the first. Variances are one over a layer's own
        width, so that a factor is (χ²_{n_l}/n_l)^½; one over fan-in does the same to the root mean square.

        Args:
            rng: of the matrices.
            turns: widths of layers in turn.
            rounds: how often they follow each other.
            tied: whether all rounds have the matrices of the first.
        """
        count = self.groups * self.networks
        shapes = list(zip(turns[1:] + turns[:1], turns, strict=True))
        draw = lambda: [rng.standard_normal((count, *shape), np.float32) for shape in shapes]
        v = np.zeros((count, turns[0], 1), np.float32)
        v[:, 0] = 1
        log = np.zeros(count)
        path = np.empty((count, rounds))
        matrices = draw()
        for i in range(rounds):
            if i and not tied:
                matrices = draw()
            for matrix in matrices:
                v = matrix @ v / np.float32(matrix.shape[1] ** 0.5)
                length = np.linalg.norm(v, axis=1, keepdims=True)
                v /= length
                log += np.log(length[:, 0, 0])
            path[:, i] = log
        return path.reshape(self.groups, self.networks, rounds)

    def derive(self, law, seen):
        """Return moments of groups, which logarithms are below the normal law's quantiles, and shares of spectra."""
        grid = xarray.DataArray(self.grid, dims="eigenvalue", coords={"eigenvalue": self.grid})
        return {
            "variance": seen.logs.var("draw", ddof=1),
            "below": seen.logs.isel(ratio=-1, drop=True) <= law.quantiles,
            "spread": seen.few.std("draw", ddof=1),
            "spectrum": (seen.eigenvalues <= grid).mean("place"),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "mean",
            law["mean"],
            seen.logs,
            0.1,  # the interval is 6 % at the smallest Σ 1/n_l
            label="mean of log‖θ‖",
        )
        yield kit.follows(
            "variance",
            law.variance,
            seen.variance,
            0.12,  # the interval is 6 %
            label="variance of log‖θ‖",
        )
        yield kit.share(
            "normal",
            law.below,
            seen.below,
            0.06,  # the limit is 0.03 off at width 8, and the interval is 0.025
            over="network share",
            label="share of log‖θ‖ below a quantile of the normal law",
        )
        yield kit.follows(
            "deep",
            law.deep,
            seen.deep,
            0.025,  # the interval is 1 % at the smallest depth, −L/2n is 4 % off
            label=f"mean of log‖θ‖ of deep networks, n = {min(self.widths)}",
        )
        yield kit.power(
            "spread",
            law.spread,
            seen.spread,
            0.06,
            over="width",
            label=f"spread of log‖θ‖ against width, L = {self.shallow}",
        )
        yield kit.follows(
            "factor", law.factor, seen.factors, 0.05, label="variance of a layer's factor"
        )
        yield kit.follows(
            "spectrum",
            law.spectrum,
            seen.spectrum,
            0.02,
            absolute=True,
            label="share of a spectrum below an eigenvalue",
        )

    def rivals(self, setting, law):
        ratios = np.array(self.ratios)
        z = norm.ppf(SHARES)
        spread = np.sqrt(self.aspect / 2)
        yield kit.rival(
            "log‖θ‖ is N(−L/4n, L/4n)",
            "as printed",
            id="printed_normal",
            quantiles=("share", -self.aspect / 4 + z * spread / np.sqrt(2)),
            mean=law["mean"] / 2,
            variance=law.variance / 2,
            factor=law.factor / 2,
            deep=law.deep / 2,
        )
        yield kit.rival(
            "the mean is −½ Σ 1/n_l at any width",
            "only this term remains at large widths",
            mean=("ratio", -ratios / 2),
            deep=law.deep * (-0.5 / min(self.widths)) / _moments((min(self.widths),))[0],
        )
        yield kit.rival(
            "the length itself is normal",
            "it is a sum of many small parts while Σ 1/n_l is small",
            quantiles=("share", np.log(np.maximum(1 + z * spread, 1e-3))),
        )
        yield self.of_one_width(
            law,
            "mean_width",
            float(np.mean(self.alternating)),
            "the ratio of depth to width, with the mean of the widths",
            "L over the mean width, in place of Σ 1/n_l",
        )
        yield self.of_one_width(
            law,
            "geometric_width",
            float(np.exp(np.mean(np.log(self.alternating)))),
            "lengths multiply, and so do widths",
            "L over the geometric mean width",
        )
        yield kit.rival(
            "‖θ‖ is near one at every depth", "n → ∞ first", quantiles=("share", 0.01 * z)
        )
        yield kit.rival("the spread falls like 1/n", "so falls the variance", spread=law.spread**2)
        yield from self.rivals_of_spectrum(law)

    def of_one_width(
        self, law: xarray.Dataset, id: str, width: float, why: str, label: str
    ) -> kit.Rival:
        """Return what a network of one width and as many layers as the alternating one would do."""
        moments = np.outer(_moments((width, width)), self.rounds(self.alternating))
        replaced = lambda array, values: (array.dims, np.vstack([array.values[:-1], values]))
        mean, variance = map(replaced, (law["mean"], law.variance), moments)
        return kit.rival(label, why, id=id, mean=mean, variance=variance)

    def rivals_of_spectrum(self, law):
        """Return wrong theories of the spectrum of sample covariances."""
        yield kit.rival(
            "the printed density, over 4πx", "as printed", spectrum=law.spectrum * self.alpha / 2
        )
        yield kit.rival(
            "the sample covariance is the identity",
            "n_0 → ∞ first",
            spectrum=("eigenvalue", (self.grid >= 1).astype(float)),
        )

    def controls(self, seen):
        yield kit.control(
            "one matrix in all layers",
            "the factors of a vector's length are no longer independent",
            logs=seen.tied_logs,
            deep=seen.tied_deep,
        )
        yield kit.control(
            f"layers in proportion to the width for {self.shallow} layers",
            "at one L/n the spread does not depend on the width",
            id="as_deep_as_wide",
            few=("width seed draw", seen.logs.isel(ratio=-1).values[: len(self.widths)]),
        )

    def figure(self, law, seen, rivals):
        curves = []
        for i, n in enumerate(self.widths):
            layers = np.linspace(0, self.rounds((n,))[-1] - 1, POINTS).astype(int) + 1
            shade = i / max(1, len(self.widths) - 1)
            curves.append(kit.observed_curve(layers / n, seen.paths[i], f"n = {n}", shade=shade))
        ratio = np.array([0, self.aspect])
        values = np.sort(seen.eigenvalues.values.ravel())
        shares = np.arange(1, len(values) + 1) / len(values)
        grid = np.linspace(0, 1.5 * marchenko_pastur_edges(self.alpha)[1], 400)
        cdf = marchenko_pastur_cdf(grid, self.alpha)
        yield kit.panel(
            "Only L/n matters",
            "L/n",
            "mean of log‖θ‖",
            *curves,
            kit.predicted_curve(ratio, -ratio / 2, "−L/2n"),
            kit.rival_curve(ratio, -ratio / 4, "−L/4n"),
        )
        yield kit.panel(
            f"Spectrum of XXᵀ/n_0, α = {self.alpha:g}",
            "eigenvalue",
            "share below",
            kit.observed_curve(values, shares, "observed", kind="steps"),
            kit.predicted_curve(grid, cdf, "Marchenko–Pastur"),
            kit.rival_curve(grid, cdf * self.alpha / 2, "density as printed"),
        )


def _moments(turns: tuple[float, ...]) -> np.ndarray:
    """Return mean and variance of log‖θ‖ that a round of layers of some widths adds, ``(2,)``."""
    half = np.array(turns) / 2
    # E log χ²_n = ψ(n/2) + log 2 and Var log χ²_n = ψ'(n/2); a layer adds ½ log(χ²_n/n)
    return np.array([(psi(half) - np.log(half)).sum() / 2, polygamma(1, half).sum() / 4])


def _after(path: np.ndarray, rounds: tuple[int, ...]) -> np.ndarray:
    """Return the logarithms after some numbers of rounds, ``(rounds, groups, networks)``."""
    return np.moveaxis(path[..., np.array(rounds) - 1], -1, 0)
