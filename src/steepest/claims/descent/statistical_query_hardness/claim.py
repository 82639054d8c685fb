"""The gradient of a random network is almost blind to parities of half of the bits.

Its mean tangent kernel predicts how strongly it sees parities of k bits. Gaussian elimination finds these parities from
few examples. The gradient of a loss that is linear in the target depends on the target only through its correlation
with ∂f, the gradient of the output f. The squares of these correlations with all 2^n parities of n bits have a fixed
sum, so only few can be large. Their mean size over random weights is the Krawtchouk transform of the mean tangent
kernel: one number for each k. For half of the bits this number is almost zero. Elimination over the field of two
numbers finds the same parities from n + 30 examples: it uses no statistical queries.
"""

from math import comb
from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.descent.statistical_query_hardness.experiment import (
    bumps,
    eliminations,
    signals,
)
from steepest.claims.descent.statistical_query_hardness.theory import (
    bump_correlations,
    kernel,
    levels,
)

BUMP = 0.7
"""a of the bumps cos(a Σ x_i)."""
EXTRA = 30
"""Examples for elimination beyond n: fewer than one system in 10⁹ is left ambiguous."""
GROUPS = 20
"""Of samples of the bumps, over which intervals are taken."""
BIASED = 0.7
"""P(x_i = 1) of the control."""

Numbers = Annotated[tuple[int, ...], kit.Within(2, 14)]


@kit.claim
class StatisticalQueryHardness(kit.Claim[None]):
    """Gradients of random ReLU networks with biases against all parities, and elimination."""

    n: Numbers = kit.param(
        (4, 6, 8, 10),
        "bits of the inputs, even",
        unit="bits",
        scope=kit.choices((4, 6, 8, 10), (4, 6, 8), (6, 8, 10), (4, 8, 10)),
    )
    neurons: kit.Count = kit.param(
        256, "neurons of each network", unit="neurons", scope=kit.between(256, 512)
    )
    seeds: kit.Seeds = kit.param(16, "networks")
    draws: kit.Count = kit.param(80, "parities that elimination looks for, at each n")
    samples: kit.Count = kit.param(800_000, "points at which bumps are correlated")
    share_of_ones: kit.Fraction = kit.param(0.5, "P(x_i = 1) of the inputs", scope=kit.choices(0.5))

    kind = "theorem"
    says = {
        "almost blind to parities of half of the bits": "half",
        "Its mean tangent kernel predicts how strongly it sees parities of k bits": "level",
        "Gaussian elimination finds these parities": "eliminated",
    }
    tiny = {"n": (4, 6), "neurons": 64, "seeds": 3, "samples": 100_000}
    full = {"n": (4, 6, 8, 10, 12), "neurons": 512, "seeds": 24}
    out_of_scope = {"share_of_ones": 0.7}

    def axes(self):
        most = max(self.n)
        return {
            "n": self.n,
            "bits": tuple(range(1, most + 1)),
            "shared": tuple(range(most // 2 + 1)),
        }

    def check_fields(self) -> None:
        odd = [n for n in self.n if n % 2]
        if odd:
            raise kit.UserError(f"half of the bits are taken, so that n must be even, got {odd[0]}")

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        mean = abs(2 * self.share_of_ones - 1)
        yield kit.assume("|mean of x_i|", mean, "==", 0, "--share-of-ones 0.5")

    def predict(self, setting):
        every = {n: levels(n, kernel(n)) for n in self.n}
        most = max(self.n)
        return kit.law(
            level=("bits", every[most][1:]),
            half=("n", np.array([every[n][n // 2] for n in self.n])),
            bump=("shared", bump_correlations(most // 2, BUMP)),
            eliminated=1.0,
        )

    def observe(self, setting, key):
        for_networks, for_rest = kit.keys(key, 2)
        rng = kit.numpy_generator(for_rest)
        most = max(self.n)
        sizes = list(zip(self.n, kit.keys(for_networks, len(self.n)), strict=True))

        def measured(ones: float) -> dict[int, np.ndarray]:
            return {n: signals(key, n, self.neurons, self.seeds, ones) for n, key in sizes}

        network = measured(0.5)
        biased = measured(BIASED)
        halves = lambda of: np.stack([of[n][:, n // 2] for n in self.n], axis=1)
        solved = lambda extra: np.stack(
            [eliminations(rng, n, n + extra, self.draws) for n in self.n], axis=1
        )
        return kit.seen(
            level=("seed bits", network[most][:, 1:]),
            half=("seed n", halves(network)),
            biased_level=("seed bits", biased[most][:, 1:]),
            biased_half=("seed n", halves(biased)),
            bump=("start shared", bumps(rng, most // 2, BUMP, self.samples, GROUPS)),
            eliminated=("draw n", solved(EXTRA)),
            from_few=("draw n", solved(-2)),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "level",
            law.level,
            seen.level,
            within=0.25,  # a network of 256 neurons scatters by a sixth at the highest levels
            over="bits",
            label="mean signal of parities of k bits over its law",
        )
        yield kit.follows(
            "half", law.half, seen.half, within=0.1, over="n", label="the same of half of the bits"
        )
        yield kit.share(
            "eliminated",
            law.eliminated,
            seen.eliminated,
            within=0.1,
            over="n",
            label=f"parities that elimination finds from n + {EXTRA} examples",
        )
        yield kit.follows(
            "bump",
            law.bump,
            seen.bump,
            within=0.01,
            over="shared",
            absolute=True,
            label="correlations of bumps",
        )

    def rivals(self, setting, law):
        most = max(self.n)
        bits = np.arange(1, most + 1)
        energy = kernel(most)[0]
        ways = np.array([comb(most, k) for k in bits])
        half_ways = np.array([comb(n, n // 2) for n in self.n])
        energies = np.array([kernel(n)[0] for n in self.n])
        without = {n: levels(n, kernel(n, biases=0.0)) for n in self.n}
        apart = 2 * (most // 2 - np.arange(most // 2 + 1))
        yield kit.rival(
            "all 2^n parities have the same signal",
            "their sum is fixed, and nothing prefers one",
            id="alike",
            level=("bits", np.full(most, energy / 2**most)),
            half=("n", energies / 2.0 ** np.array(self.n)),
        )
        yield kit.rival(
            "the bound, all energy at one k",
            "Parseval allows no more",
            id="bound",
            level=("bits", energy / ways),
            half=("n", energies / half_ways),
        )
        yield kit.rival(
            "networks without biases, which see no odd parities",
            "biases start at zero",
            id="no_biases",
            level=("bits", without[most][1:]),
            half=("n", np.array([without[n][n // 2] for n in self.n])),
        )
        yield kit.rival(
            "only the difference of the two sums enters the correlation of bumps",
            "the bumps wave fast",
            id="difference_only",
            bump=("shared", np.exp(-(BUMP**2) * apart / 2) / 2),
        )

    def controls(self, seen):
        yield kit.control(
            f"inputs with P(x_i = 1) = {BIASED:g}",
            "parities of biased bits correlate with each other",
            id="biased",
            level=seen.biased_level,
            half=seen.biased_half,
        )
        yield kit.control(
            "elimination from n − 2 examples",
            "two equations too few leave four parities or more",
            eliminated=seen.from_few,
        )

    def figure(self, law, seen, rivals):
        most = max(self.n)
        wrong = {"bound": rivals["bound"].level, "no biases": rivals["no_biases"].level}
        yield kit.curves(
            f"Few bits take the signal (n = {most})",
            law.level,
            seen.level,
            over="bits",
            x="k, bits of the parity",
            y="mean squared signal",
            rivals=wrong,
            log="y",
        )
        yield kit.curves(
            "Of half of the bits hardly any is left",
            law.half,
            seen.half,
            over="n",
            x="n, bits of the input",
            y="mean squared signal, k = n/2",
            rivals={"all alike": rivals["alike"].half},
            log="y",
        )
        yield kit.curves(
            "Smooth bumps are nearly uncorrelated too",
            law.bump,
            seen.bump,
            over="shared",
            x=f"bits that two sets of {most // 2} share",
            y="E cos(a Σ_S x) cos(a Σ_S' x)",
        )
