"""Without pooling, sharing filters leaves the kernel as it is, but a shared filter's varies P/P_e times as much.

P is the number of positions and P_e that of independent ones which would vary as much. A filter of each position's own
gives the kernel P independent terms. A shared one reads windows that are alike, and what it reads at one position tells
what it reads at the others.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels import _convolution_covariances as covariances
from steepest.claims.kernels import _convolution_draws as draws
from steepest.claims.kernels.shared_filters import experiment, theory

SHARINGS = experiment.SHARINGS
LAYERS = (1, 2)
PAIRS = ("x with itself", "x with another")


class Setting(NamedTuple):
    """Some digits, ``(images, 8, 8, 1)``."""

    images: kit.Values


@kit.claim
class SharedFilters(kit.Claim[Setting]):
    """Random convolutional networks whose filters are shared, and such whose positions have filters of their own."""

    positions: tuple[kit.Count, ...] = kit.param(
        (3, 12),
        "P of the signals",
        scope=kit.choices((3, 12), (4, 10), (2, 14), why="few and many"),
    )
    correlations: tuple[kit.Fraction, ...] = kit.param(
        (0.1, 0.3, 0.6, 0.9),
        "ρ between any two positions of a signal",
        scope=kit.choices((0.1, 0.3, 0.6, 0.9), (0.05, 0.2, 0.5, 0.8), (0.15, 0.4, 0.7, 0.95)),
    )
    width: kit.Count = kit.param(8, "n", unit="channels", scope=kit.between(4, 16))
    images: kit.Count = kit.param(2, "digits", scope=kit.between(2, 5))
    networks: kit.Count = kit.param(500, "in each group", unit="networks")
    seeds: kit.Seeds = kit.param(16, "groups of networks")

    kind = "theorem"
    says = {
        "leaves the kernel as it is": "kernel",
        "a shared filter's varies P/P_e times as much": ("spread", "digits"),
    }
    statement = (
        r"\mathrm E\,\Theta^{\text{shared}}=\mathrm E\,\Theta^{\text{own}},\qquad "
        r"\frac{\mathrm{Var}\,\Theta^{\text{shared}}}{\mathrm{Var}\,\Theta^{\text{own}}}=\frac{P}{P_e}"
    )
    source = "[@novak2019] for the kernel; how much it varies is derived here"
    remarks = (
        "The network is read through flatten, so that only windows at one position meet in the kernel. With one hidden "
        "convolution its mean is the limit at every width; with two it is at equal inputs, and elsewhere to order 1/n.",
        "On a digit a shared filter's kernel varies about thirty times as much as that of 64 filters of their own. For "
        "that these are 64 times as many weights, and none learns from what another position saw.",
        "Pooled, sharing matters: windows at different positions meet, and the kernel is another.",
        "How much kernels vary is judged at one input and one hidden convolution.",
    )
    history = (
        kit.Version(
            1,
            "mean kernels of one and two hidden convolutions, and how much they vary along ρ and P and on digits",
            "the design compared rates of 1/n; the ratio of the two variances has a closed form",
        ),
    )
    shared = {
        "claim.SharedFilters.middle": "says at which ρ means are looked at, and nothing of the law"
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

    def axes(self) -> dict[str, tuple[object, ...]]:
        return {
            "sharing": SHARINGS,
            "layers": LAYERS,
            "pair": PAIRS,
            "rho": self.correlations,
            "positions": self.positions,
        }

    def setting(self, key: kit.Key) -> Setting:
        return Setting(draws.images(kit.numpy_generator(key), self.images))

    def hypotheses(self, setting: Setting) -> list[kit.Hypothesis]:
        note = "positions that are all equal are one position: lower --correlations"
        return [
            kit.assume("largest correlation of positions", max(self.correlations), "<", 1.0, note)
        ]

    def predict(self, setting: Setting) -> kit.Prediction:
        size = 1 / (self.positions[0] + 1)  # pixels of length one in P + 1 channels
        kernels = [
            [theory.kernel(layers, size, c) for c in (1.0, self.middle)] for layers in LAYERS
        ]
        shared = [[self.times(p, rho) for p in self.positions] for rho in self.correlations]
        digits = [self.of_image(image) for image in setting.images]
        return kit.law(
            kernel=("sharing layers pair", np.array([kernels, kernels])),
            spread=("sharing rho positions", np.stack([shared, np.ones_like(shared)])),
            digits=("sharing", np.mean(digits, axis=0)),
        )

    def times(self, positions: int, rho: float) -> float:
        """Return P/P_e of shared filters."""
        covariance = covariances.equal_correlations(positions, rho)
        return positions * covariances.flattened(covariance) / covariances.AT_ONE_POSITION

    def of_image(self, image: kit.Values) -> tuple[float, float]:
        """Return the same at an image ``(8, 8, 1)``, of shared filters and of such of their own."""
        covariance = covariances.windows(image[..., 0])
        shared = len(covariance) * covariances.flattened(covariance) / covariances.AT_ONE_POSITION
        return shared, theory.of_their_own(np.diag(covariance))

    def observe(self, setting: Setting, key: kit.Key) -> kit.Observation:
        rng = kit.numpy_generator(key)
        few = max(2, self.networks // 2)
        first = self.positions[0]
        pair = experiment.pair_of(draws.signals(first, (self.middle,))[0])

        def means(is_shared: bool, layers: int, pooled: bool = False) -> kit.Values:
            # kernels of two layers vary more, and those of wider networks less
            channels = 2 * layers * self.width
            net = experiment.build(is_shared, layers, channels, pair.shape[1:], pooled)
            return experiment.mean_kernels(rng, net, pair, self.seeds, few)

        def spread(is_shared: bool, inputs: kit.Values) -> kit.Values:
            net = experiment.build(is_shared, 1, self.width, inputs.shape[1:])
            varied = experiment.spreads(rng, net, inputs, self.seeds, self.networks)
            return inputs.shape[1] * self.width * varied / covariances.AT_ONE_POSITION

        def times(inputs: kit.Values) -> kit.Values:
            return np.stack([spread(is_shared, inputs) for is_shared in (True, False)])

        kernels = [[means(is_shared, layers) for layers in LAYERS] for is_shared in (True, False)]
        pooled = [means(True, layers, pooled=True) for layers in LAYERS]
        signals = [draws.signals(count, self.correlations) for count in self.positions]
        pixels = draws.SIDE  # positions of an image are the product of its two sides
        return kit.seen(
            kernel=("sharing layers pair seed", np.array(kernels)),
            kernel_of_pooled=("sharing layers pair seed", np.array([pooled, kernels[1]])),
            spread=("positions sharing rho seed", np.array([times(x) for x in signals])),
            digits=("sharing seed", pixels * times(setting.images).mean(1)),
        )

    def judge(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        # Intervals of means take 0.03, their centres may be off as far by chance, and 1/n is 0.03 with two layers. Of
        # variances, whose law is exact, intervals take 0.1, and their centres may be off as far again.
        return [
            kit.follows("kernel", law.kernel, seen.kernel, 0.08, label="mean of Θ"),
            kit.follows(
                "spread",
                law.spread,
                seen.spread,
                0.2,
                label="variance of Θ over that of P independent positions",
            ),
            kit.follows("digits", law.digits, seen.digits, 0.2, label="the same on digits"),
        ]

    def rivals(self, setting: Setting, law: xarray.Dataset) -> list[kit.Rival]:
        count = law.positions
        pairs = 1 + (count - 1) * law.rho**2
        is_shared = law.sharing == SHARINGS[0]
        ones = xarray.ones_like(law.spread)
        return [
            kit.rival(
                "positions_meet",
                "a filter that is shared reads all positions, so that all of them meet in its kernel",
                label="pairs of positions count where filters are shared",
                kernel=xarray.where(is_shared, self.kernel_of_all_pairs(), law.kernel),
            ),
            kit.rival(
                "independent",
                "positions are independent terms",
                label="sharing changes nothing",
                spread=ones,
                digits=xarray.ones_like(law.digits),
            ),
            kit.rival(
                "one_position",
                "one filter is one draw",
                label="shared filters count as one position",
                spread=xarray.where(is_shared, count * ones, ones),
                digits=xarray.where(is_shared, float(draws.SIDE**2), law.digits),
            ),
            kit.rival(
                "squared_correlations",
                "so vary means of squares whose correlations are ρ²",
                label="P/P_e = 1 + (P − 1)ρ²",
                spread=xarray.where(is_shared, pairs * ones, ones),
            ),
        ]

    def kernel_of_all_pairs(self) -> xarray.DataArray:
        """Return Θ where windows at any two positions meet, ``(layers, pair)``.

        Each window of x is one of x' too, which is x moved by one position; with all others it has correlation ρ.
        """
        first = self.positions[0]
        size = 1 / (first + 1)
        kernels = []
        for layers in LAYERS:
            apart = (first - 1) * theory.kernel(layers, size, self.middle)
            kernels.append([theory.kernel(layers, size, 1.0) + apart] * len(PAIRS))
        return xarray.DataArray(np.array(kernels), dims=("layers", "pair"))

    def controls(self, seen: xarray.Dataset) -> list[kit.Control]:
        exchanged = lambda array: array.isel(sharing=[1, 0]).drop_vars("sharing")
        return [
            kit.control(
                "pooled",
                "windows at different positions meet in its kernel",
                label="pooled networks, where filters are shared",
                kernel=seen.kernel_of_pooled,
            ),
            kit.control(
                "exchanged",
                "the others have filters of their own",
                label="networks with shared filters for those without, and the other way",
                spread=exchanged(seen.spread),
                digits=exchanged(seen.digits),
            ),
        ]

    def figure(
        self, law: xarray.Dataset, seen: xarray.Dataset, rivals: Mapping[str, xarray.Dataset]
    ) -> tuple[kit.Panel, ...]:
        shared = SHARINGS[0]

        def panel(title: str, sharing: str) -> kit.Panel:
            return kit.curves(
                title,
                law.spread.sel(sharing=sharing, drop=True),
                seen.spread.sel(sharing=sharing, drop=True),
                over="rho",
                by="positions",
                x="correlation ρ of positions",
                y="variance, times that of P independent ones",
                name="P = {}",
                ylim=(0, 1.1 * max(self.positions)),
            )

        return (
            panel("Shared filters: the kernel varies more, the more alike positions are", shared),
            panel("Filters of their own: it does not", SHARINGS[1]),
        )
