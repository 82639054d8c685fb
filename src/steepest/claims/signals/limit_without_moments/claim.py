"""Outputs of wide networks with σ = exp become Gaussian, though their covariance has no finite mean.

With two hidden layers of n neurons, the limit is a Gaussian process with the kernel K of the layerwise recursion, which
maps K_ab to C_W exp((K_aa + K_bb)/2 + K_ab). So the limit needs no bound on the growth of σ. But given the first layer,
the covariance of the outputs has the mean C_W exp(2S), with S a mean of n lognormal numbers, and E exp(2S) = ∞ at every
width. A single network then makes up nearly all of a sum over many networks. So averages over neurons have moments only
under a bound on the growth of σ.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.signals._three_inputs import (
    FREQUENCIES,
    NAMES,
    characteristic,
    entries_of,
    frequencies,
    three_images,
)
from steepest.claims.signals.limit_without_moments.experiment import (
    C_W,
    draw_wide,
    largest_shares,
    of_variance,
)

HIDDEN = 2
GENTLE = 0.8  # largest variance of the first layer: its limit is seen at hundreds of neurons
STEEP = 4.0  # the same where the infinite mean is seen in hundreds of networks
SUMS = 10  # of such networks in each group
WIDTHS = (8, 16, 32)  # of these
NARROW = 16  # of a changed world


class Setting(NamedTuple):
    """Three images, scaled, and the frequencies u of the characteristic function E cos(u·z)."""

    inputs: kit.Values  # (3, 64)
    frequencies: kit.Values  # (13, 3)


@kit.claim
class LimitWithoutMoments(kit.Claim[Setting]):
    """Outputs of random networks with exponential neurons on three images of digits."""

    width: kit.Count = kit.param(
        512,
        "n of networks near their limit",
        unit="neurons",
        scope=kit.between(512, 800, "fewer are farther from the limit, more take longer"),
    )
    networks: Annotated[int, kit.Within(2)] = kit.param(
        400, "networks in a group near their limit, and in each sum of narrow ones"
    )
    seeds: Annotated[int, kit.Within(4)] = kit.param(10, "groups of networks")

    kind = "limit"
    says = {
        "Outputs of wide networks with σ = exp become Gaussian": (
            "exponential_law",
            "exponential_median",
        ),
        "their covariance has no finite mean": "exponential_mean",
    }
    tiny = {"networks": 20, "seeds": 4}
    out_of_scope = {"width": 64}

    def axes(self):
        return {"entry": NAMES, "frequency": FREQUENCIES, "width": WIDTHS}

    def setting(self, key):
        inputs = of_variance(three_images(), GENTLE)
        return Setting(inputs, frequencies(exponential_kernel(inputs, HIDDEN)))

    def hypotheses(self, setting):
        yield kit.assume("width n", self.width, ">=", 256, "the law is for n → ∞; raise --width")

    def predict(self, setting):
        kernel = exponential_kernel(setting.inputs, HIDDEN)
        return kit.law(
            exponential=("frequency", characteristic(kernel, setting.frequencies)),
            typical=("entry", kernel),
            largest=("width", np.ones(len(WIDTHS))),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        worlds = {
            "": (lambda z: z, self.width),
            "_narrow": (lambda z: z, NARROW),
            "_square": (lambda z: z**2 / 2, self.width),
        }
        measured = {}
        for name, (log_neuron, width) in worlds.items():
            shape = self.seeds, self.networks, width
            cosine, median = draw_wide(log_neuron, *setting, shape, rng)
            measured[f"exponential{name}"] = ("seed frequency", cosine)
            measured[f"typical{name}"] = ("seed entry", median)
        shares = largest_shares(STEEP, WIDTHS, self.seeds * SUMS, self.networks, rng)
        deep, shallow = (share.reshape(self.seeds, SUMS, -1) for share in shares)
        axes = "seed draw width"
        return kit.seen(**measured, largest=(axes, deep), largest_shallow=(axes, shallow))

    def judge(self, law, seen):
        yield kit.follows(
            "exponential_law",
            law.exponential,
            seen.exponential,
            0.04,
            absolute=True,
            label=f"characteristic function at three inputs, {self.width} neurons",
        )
        yield kit.follows(
            "exponential_median",
            law.typical,
            seen.typical,
            0.08,  # at 512 neurons the next order takes 0.04, sampling 0.02
            label=f"median covariance of an output over networks, {self.width} neurons",
        )
        yield kit.follows(
            "exponential_mean",
            law.largest,
            seen.largest,
            0.1,  # in one sum of twenty two networks are as large, and the interval takes 0.03
            absolute=True,
            label="share of the largest network in the mean variance of many",
        )

    def rivals(self, setting, law):
        u = setting.frequencies
        bare = exponential_kernel(setting.inputs, HIDDEN, bare=True)
        short = exponential_kernel(setting.inputs, HIDDEN - 1)
        yield kit.rival(
            "σ = exp: K ↦ C_W exp K",
            "σ = exp as a kernel of its own, the variances forgotten",
            exponential=("frequency", characteristic(bare, u)),
            typical=("entry", bare),
        )
        yield kit.rival(
            "σ = exp: one layer short",
            "a network with two hidden layers has three matrices",
            exponential=("frequency", characteristic(short, u)),
            typical=("entry", short),
        )
        yield kit.rival(
            "σ = exp: no network counts among many",
            "the proposition without its hypothesis: averages over neurons have bounded means",
            largest=0 * law.largest,
        )

    def controls(self, seen):
        yield kit.control(
            f"σ = exp, {NARROW} neurons",
            "they are far from the limit",
            id="narrow_exponentials",
            exponential=seen.exponential_narrow,
            typical=seen.typical_narrow,
        )
        yield kit.control(
            "σ = exp(z²/2) for σ = exp",
            "E σ² = ∞, so that there is no K",
            exponential=seen.exponential_square,
            typical=seen.typical_square,
        )
        yield kit.control(
            "σ = exp with one hidden layer",
            "the covariance is a mean of lognormal numbers, which have moments",
            largest=seen.largest_shallow,
        )


def exponential_kernel(inputs: np.ndarray, hidden: int, *, bare: bool = False) -> np.ndarray:
    """Return K of the outputs, ``(6,)``.

    E exp(z + z') is exp of half the variance of the sum: ``K_ab ← C_W exp((K_aa + K_bb)/2 + K_ab)``.

    Args:
        inputs: shape ``(3, n_0)``.
        hidden: layers.
        bare: whether the variances are forgotten, exp(K_ab), a wrong theory.
    """
    kernel = C_W * inputs @ inputs.T / inputs.shape[1]
    for _ in range(hidden):
        half = np.diag(kernel) / 2
        variances = 0.0 if bare else half[:, None] + half
        kernel = C_W * np.exp(variances + kernel)
    return entries_of(kernel)
