"""Sharing the filters of a convolution keeps its mean tangent kernel but raises its variance.

The variance over initializations becomes P_o/P_e times as large. There is one convolution, read through flatten, so no
positions are pooled. P_e independent positions would vary as much as the P positions do with shared filters, and P_o
independent positions as much as the P positions do with separate filters. P_o = P where all windows have the same size.
A shared filter reads windows that are alike, and a mean over correlated outputs varies more.
"""

from collections.abc import Callable, Sequence

import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels import _convolution_covariances as covariances
from steepest.claims.kernels import _convolution_draws as draws
from steepest.claims.kernels.shared_filters import experiment, theory

SHARINGS = experiment.SHARINGS
LAYERS = (1, 2)
PAIRS = ("x with itself", "x with another")
KINDS = draws.KINDS
CHANNELS = 32  # of networks whose mean kernels are looked at
AT_ONE_POSITION = covariances.AT_ONE_POSITION


@kit.claim
class SharedFilters(kit.Claim[draws.Setting]):
    """Random convolutional networks with shared filters, and with separate filters for each position."""

    positions: tuple[kit.Count, ...] = kit.param(
        (4, 16),
        "P of the signals",
        scope=kit.choices((4, 16), (4, 20), (5, 20), why="few and many, four times apart"),
    )
    correlations: tuple[kit.Fraction, ...] = kit.param(
        (0.1, 0.3, 0.6, 0.9),
        "ρ between any two positions of a signal",
        scope=kit.choices((0.1, 0.3, 0.6, 0.9), (0.05, 0.2, 0.5, 0.8), (0.15, 0.4, 0.7, 0.95)),
    )
    width: kit.Count = kit.param(
        8, "n of networks whose kernels vary", unit="channels", scope=kit.between(4, 16)
    )
    images: kit.Count = kit.param(2, "digits", scope=kit.between(2, 4))
    networks: kit.Count = kit.param(500, "networks in each group", unit="networks")
    seeds: kit.Seeds = kit.param(16, "groups of networks")

    kind = "theorem"
    says = {
        "keeps its mean tangent kernel": "kernel",
        "becomes P_o/P_e times as large": ("ratio", "digits", "own"),
    }
    tiny = {
        "positions": (2, 3),
        "correlations": (0.1, 0.8),
        "width": 3,
        "images": 1,
        "networks": 40,
        "seeds": 3,
    }
    full = {"networks": 8_000}
    out_of_scope = {"correlations": (0.1, 0.3, 0.6, 1.0)}
    precision = "float32"

    @property
    def middle(self) -> float:
        """Return the ρ at which mean kernels are looked at."""
        return self.correlations[len(self.correlations) // 2]

    def axes(self):
        return {
            "sharing": SHARINGS,
            "layers": LAYERS,
            "pair": PAIRS,
            "kind": KINDS,
            "rho": self.correlations,
            "positions": self.positions,
        }

    def setting(self, key):
        return draws.Setting.draw(kit.numpy_generator(key), self.images)

    def hypotheses(self, setting):
        yield draws.positions_differ(self.correlations)

    def predict(self, setting):
        size = 1 / (self.positions[0] + 1)  # pixels of length one in P + 1 channels
        kernels = [
            [theory.kernel(layers, size, c) for c in (1.0, self.middle)] for layers in LAYERS
        ]
        signals = [
            [covariances.equal_correlations(p, rho) for p in self.positions]
            for rho in self.correlations
        ]
        digits = [
            [covariances.windows(image[..., 0]) for image in images] for images in setting.images
        ]
        of_own = lambda K: theory.of_their_own(np.diag(K))
        ratio_of = lambda K: covariances.flattened(K) / of_own(K)
        return kit.law(
            kernel=("sharing layers pair", np.array([kernels, kernels])),
            ratio=("rho positions", each(ratio_of, signals)),
            own=("rho positions", each(of_own, signals)),
            digits=("kind", each(ratio_of, digits).mean(1)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        half = max(2, self.networks // 2)
        pair = experiment.pair_of(draws.signals(self.positions[0], (self.middle,))[0])

        def means(is_shared: bool, layers: int, is_pooled: bool = False) -> kit.Values:
            net = draws.build(
                CHANNELS, pair.shape[1:], is_pooled=is_pooled, layers=layers, is_shared=is_shared
            )
            return experiment.mean_kernels(rng, net, pair, self.seeds, half)

        def spread(is_shared: bool, inputs: kit.Values) -> kit.Values:
            net = draws.build(self.width, inputs.shape[1:], is_pooled=False, is_shared=is_shared)
            return self.width * experiment.spreads(rng, net, inputs, self.seeds, self.networks)

        kernels = [[means(is_shared, layers) for layers in LAYERS] for is_shared in (True, False)]
        pooled = [means(True, layers, is_pooled=True) for layers in LAYERS]
        signals = [draws.signals(count, self.correlations) for count in self.positions]
        shared = np.array([spread(True, x) for x in signals])  # (P, ρ, groups)
        own = np.array([spread(False, x) for x in signals])
        images = setting.images.reshape(-1, *setting.images.shape[2:])
        by_kind = lambda spreads: spreads.reshape(len(KINDS), -1, self.seeds)
        shared_digits = by_kind(spread(True, images))
        own_digits = by_kind(spread(False, images))
        # a mean over groups below: a ratio to that of single groups would be too large
        over = lambda spreads: spreads.mean(-1, keepdims=True)
        return kit.seen(
            kernel=("sharing layers pair seed", np.array(kernels)),
            kernel_of_pooled=("sharing layers pair seed", np.array([pooled, kernels[1]])),
            ratio=("positions rho seed", shared / over(own)),
            own=("positions rho seed", own),
            digits=("kind seed", (shared_digits / over(own_digits)).mean(1)),
        )

    def judge(self, law, seen):
        # Means: intervals take 0.025, their centres may be off as far by chance, and 1/n may add 0.01 with two. Laws
        # of variances are exact: intervals take 0.1, and centres may be off as far again.
        yield kit.follows("kernel", law.kernel, seen.kernel, 0.06, label="mean of Θ")
        yield kit.follows(
            "ratio", law.ratio, seen.ratio, 0.2, label="variance of Θ, shared over their own"
        )
        yield kit.follows("digits", law.digits, seen.digits, 0.2, label="the same on digits")
        yield kit.follows(
            "own", law.own, seen.own, 0.2, label="n Var Θ/(E Θ)², filters of their own"
        )

    def rivals(self, setting, law):
        count = law.positions
        ones = xarray.ones_like(law.ratio)
        is_shared = law.sharing == SHARINGS[0]
        digits = [
            [covariances.windows(image[..., 0]) for image in images] for images in setting.images
        ]
        squared = lambda K: (K**2).sum() / (np.diag(K) ** 2).sum()
        of_own = lambda K: theory.of_their_own(np.diag(K))
        by_all_positions = lambda K: covariances.flattened(K) * len(K) / AT_ONE_POSITION
        yield kit.rival(
            "the kernel of pooled networks where filters are shared",
            "a filter that is shared reads all positions, as where they are pooled",
            id="positions_meet",
            kernel=xarray.where(is_shared, self.kernel_of_pooled(), law.kernel),
        )
        yield kit.rival(
            "sharing changes nothing",
            "positions are independent terms",
            id="independent",
            ratio=ones,
            digits=xarray.ones_like(law.digits),
        )
        yield kit.rival(
            "shared filters count as one position",
            "one filter is one draw",
            ratio=count * ones,
            digits=("kind", each(lambda K: AT_ONE_POSITION / of_own(K), digits).mean(1)),
        )
        yield kit.rival(
            "Σ_pq K_pq²/Σ_p K_pp² times as much",
            "so vary means of squares whose correlations are ρ²",
            id="squared_correlations",
            ratio=(1 + (count - 1) * law.rho**2) * ones,
            digits=("kind", each(squared, digits).mean(1)),
        )
        yield kit.rival(
            "filters of their own count as P positions, whatever their windows' sizes",
            "each position has a filter of its own",
            id="all_positions",
            digits=("kind", each(by_all_positions, digits).mean(1)),
        )

    def kernel_of_pooled(self) -> xarray.DataArray:
        """Return Θ of pooled networks over Θ of flattened ones' size, ``(layers, pair)``.

        Pooling takes the mean over all pairs of positions. Each window of x is one of x' too, which is x moved by one
        position; with all others it has correlation ρ.
        """
        first = self.positions[0]
        size = 1 / (first + 1)
        kernels = []
        for layers in LAYERS:
            apart = (first - 1) * theory.kernel(layers, size, self.middle)
            mean = (theory.kernel(layers, size, 1.0) + apart) / first
            kernels.append([mean] * len(PAIRS))
        return xarray.DataArray(np.array(kernels), dims=("layers", "pair"))

    def controls(self, seen):
        backwards = slice(None, None, -1)
        yield kit.control(
            "pooled networks, where filters are shared",
            "windows at different positions meet in its kernel",
            kernel=seen.kernel_of_pooled,
        )
        yield kit.control(
            "correlations in the opposite order",
            "they have other correlations of positions",
            ratio=seen.ratio.isel(rho=backwards).drop_vars("rho"),
        )
        yield kit.control(
            "centred images in place of images that are not centred, and the other way",
            "they have other correlations of positions",
            id="other_images",
            digits=seen.digits.isel(kind=backwards).drop_vars("kind"),
        )
        yield kit.control(
            "signals of few positions in place of signals of many, and the other way",
            "they are other signals",
            id="fewer_positions",
            own=seen.own.isel(positions=backwards).drop_vars("positions"),
        )

    def figure(self, law, seen, rivals):
        def panel(title: str, name: str, y: str, top: float | None) -> kit.Panel:
            return kit.curves(
                title,
                law[name],
                seen[name],
                over="rho",
                by="positions",
                x="correlation ρ of positions",
                y=y,
                name="P = {}",
                ylim=(0, top),
            )

        yield panel(
            "Sharing filters makes the kernel vary more, the more alike positions are",
            "ratio",
            "variance, shared over their own",
            1.1 * max(self.positions),
        )
        yield panel(
            "Filters of their own: how alike positions are does not matter",
            "own",
            "n Var Θ/(E Θ)²",
            None,
        )


def each(of: Callable[[kit.Values], float], nested: Sequence[Sequence[kit.Values]]) -> kit.Values:
    """Return a number of each covariance in two nested sequences, ``(rows, columns)``."""
    return np.array([[of(covariance) for covariance in row] for row in nested])
