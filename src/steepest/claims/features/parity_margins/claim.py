"""Parities of an even number of bits have a margin ∝ d^(−1/2) over all ReLU neurons in d dimensions.

Over frozen tangent features their margin falls faster with d: for parities of k bits it tends to ∝ d^(−k/2). On the
cube {±1}^d/√d uniform weights solve both dual problems. By Hölder's inequality the best neurons weigh only the k bits,
and weigh them equally. For the frozen tangent features the kernel's eigenvalue gives the margin. In few dimensions the
frozen features win. If the vectors u(w) of their margin need only E|u(w)|² ≤ 1, the frozen features have the larger
margin for two bits at d = 3, and at d = 4 the two margins are equal. The talk's own tangent space has all |u(w)| ≤ 1,
and a smaller margin.
"""

from math import comb, factorial

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.parity_margins.experiment import measure_margins
from steepest.claims.features.parity_margins.figure import panels_of_margins
from steepest.claims.features.parity_margins.point import ParityMarginsPoint
from steepest.programs import parity_margins


@kit.claim
class ParityMargins(kit.Claim[None]):
    """Programs over neurons and over sampled gates on whole cubes, and sampled correlations in many dimensions."""

    bits: tuple[kit.Count, ...] = kit.param(
        (2, 4),
        "k of the parities",
        unit="bits",
        scope=kit.choices((2, 4), why="a search for the neurons of six bits takes a minute"),
    )
    dimensions: tuple[kit.Count, ...] = kit.param(
        (4, 5, 6, 7),
        "d of the programs on the whole cube",
        unit="bits",
        scope=kit.choices((4, 5, 6, 7), (4, 6, 7), (5, 6, 7), why="a cube has 2^d points"),
    )
    large: tuple[kit.Count, ...] = kit.param(
        (64, 128, 256, 512),
        "d at which inputs are sampled",
        unit="bits",
        scope=kit.choices(
            (64, 128, 256, 512),
            (96, 192, 384),
            (128, 256, 512, 1024),
            why="at fewer the exponents are far from their limit, at more rounding hides them",
        ),
    )
    samples: kit.Count = kit.param(1000, "inputs in a draw")
    gates: kit.Count = kit.param(2000, "gates in a draw; a fifth of them at the largest d")
    gate_dimension: kit.Count = kit.param(
        12,
        "d of the gates whose bound is judged",
        unit="bits",
        scope=kit.between(10, 12, "at fewer the limit is farther, at more the cube is large"),
    )
    groups: kit.Seeds = kit.param(20, "independent draws of inputs and of gates")

    kind = "limit"
    says = {
        "margin ∝ d^(−1/2) over all ReLU neurons": kit.literal("first", power={"dimension": -0.5}),
        "for parities of k bits it tends to ∝ d^(−k/2)": (
            "tangent",
            "program",
            "sampled",
            "exponent",
        ),
    }
    tiny = {
        "dimensions": (4, 5, 6),
        "large": (64, 128, 256),
        "samples": 200,
        "gates": 200,
        "gate_dimension": 8,
        "groups": 3,
    }
    full = {"dimensions": (4, 5, 6, 7, 8), "samples": 10_000, "gates": 4000}
    out_of_scope = {"bits": (3,)}
    point = ParityMarginsPoint

    def axes(self):
        return {"bits": self.bits, "dimension": self.dimensions, "large": self.large}

    def check_fields(self) -> None:
        """Refuse dimensions that do not rise, and cubes that are too large for a program."""
        for name, values in (("dimensions", self.dimensions), ("large", self.large)):
            if sorted(set(values)) != list(values):
                raise kit.UserError(
                    f"an exponent needs increasing --{name}, got {values}; "
                    f"try {'4 5 6' if name == 'dimensions' else '64 128 256'}"
                )
        if max(self.dimensions) > 8 or max(self.bits) > 8:
            raise kit.UserError("a program takes at most 8 bits; try --dimensions 4 5 6 7")
        if not 6 <= self.gate_dimension <= 16:
            raise kit.UserError(
                f"gate dimension must be from 6 to 16, got {self.gate_dimension}; try 12"
            )

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        spare = min(*self.dimensions, *self.large) - max(self.bits)
        furthest = max(self.large)
        # the differences of the kernel that are left, beside the rounding of its values, which are of order d^(−½)
        left = 2e-16 * furthest**-0.5 * furthest ** max(self.bits)
        yield kit.assume(
            "points of each exponent",
            min(len(self.dimensions), len(self.large)),
            ">=",
            3,
            "add --dimensions or --large",
        )
        yield kit.assume("fewest dimensions − most bits", spare, ">=", 0, "lower --bits")
        yield kit.assume(
            "parities of an odd number of bits",
            sum(k % 2 for k in self.bits),
            "==",
            0,
            "these have no margin",
        )
        yield kit.assume(
            "largest distance of an exact exponent over --large from its limit",
            max((_distance(self.large, k) for k in self.bits), default=0.0),
            "<",
            0.03,
            "raise --large: the exponents are limits",
        )
        yield kit.assume("rounding of the correlations", left, "<", 1e-2, "lower --large")

    def predict(self, setting):
        margins = [[parity_margins(d, k) for d in self.dimensions] for k in self.bits]
        wide = [[parity_margins(d, k).tangent for d in self.large] for k in self.bits]
        small = parity_margins(3, 2)
        return kit.law(
            first=("bits dimension", [[margin.first for margin in of_k] for of_k in margins]),
            tangent=("bits dimension", [[margin.tangent for margin in of_k] for of_k in margins]),
            sampled=("bits large", wide),
            exponent=("bits", [-k / 2 for k in self.bits]),
            ratio=small.first / small.tangent,
            # in many dimensions u ∝ (w₂, w₁), and its length has Rayleigh's law: E|u|/√E|u|² = √π/2
            gates=np.sqrt(np.pi) / 2,
        )

    def observe(self, setting, key):
        return measure_margins(
            kit.numpy_generator(key),
            self.bits,
            self.dimensions,
            self.large,
            groups=self.groups,
            gates=self.gates,
            samples=self.samples,
            gate_dimension=self.gate_dimension,
        )

    def derive(self, law, seen):
        """Return the exponent of each draw in many dimensions."""
        x = np.log(seen["large"])
        centred = x - x.mean()
        return {"exponent": (np.log(seen.sampled) * centred).sum("large") / (centred**2).sum()}

    def judge(self, law, seen):
        yield kit.follows(
            "first",
            law.first,
            seen.first,
            1e-6,  # the interior-point solver's own accuracy is 1e-7
            label="margin over all neurons, of a search",
        )
        yield kit.follows(
            "tangent",
            law.tangent,
            seen.tangent,
            0.05,  # the interval takes 0.015 at k = 4, and chance as much
            label="root mean square of drawn frozen features",
        )
        yield kit.follows(
            "program",
            law.tangent,
            seen.program,
            0.05,  # one draw of 10 000 gates has 0.008 of chance at k = 4
            label="largest margin over drawn frozen features",
        )
        yield kit.follows(
            "sampled",
            law.sampled,
            seen.sampled,
            0.01,  # as many inputs leave 0.002 of chance
            label="margin over frozen features in many dimensions",
        )
        yield kit.follows(
            "exponent",
            law.exponent,
            seen.exponent,
            0.04,  # of which 0.023 is the approach to the limit at k = 4
            absolute=True,
            label="the same, exponent in d",
        )
        yield kit.follows("small", law.ratio, seen.ratio, 0.05, label="γ₁/γ₂ of two bits at d = 3")
        yield kit.follows(
            "gates",
            law.gates,
            seen.gates,
            0.02,  # the limit is approached like 1/d, from 0.880 at d = 10 to 12
            label="|u| ≤ 1 over E|u|² ≤ 1, two bits",
        )

    def rivals(self, setting, law):
        yield from self.rivals_of_margins(law)
        yield from self.rivals_of_ratios()

    def rivals_of_margins(self, law):
        """Return wrong theories of the two margins."""
        k = law["bits"]
        d = law["dimension"]
        leading = xarray.DataArray([_leading(count) for count in self.bits], dims="bits")
        at_first = law.sampled.isel(large=0)
        d_over_first = law["large"] / law["large"][0]
        yield kit.rival(
            "γ₁ = 1/(k√d)", "k²d samples are 1/γ₁² samples, as printed", first=1 / (k * np.sqrt(d))
        )
        yield kit.rival(
            "γ₁ = 1/(k√(2πd))", "the limit as k grows", first=1 / (k * np.sqrt(2 * np.pi * d))
        )
        yield kit.rival(
            "γ₂ = √(k! [t^k] κ) d^(−k/2)",
            "the leading term of the eigenvalue, at these d",
            tangent=np.sqrt(leading) * d ** (-k / 2),
        )
        yield kit.rival(
            "γ₂ × √(4/3)",
            "a slip in the constant of the kernel, κ × 4/3",
            tangent=law.tangent * np.sqrt(4 / 3),
            sampled=law.sampled * np.sqrt(4 / 3),
            ratio=law.ratio / np.sqrt(4 / 3),
        )
        yield kit.rival(
            "γ₂ ∝ d^(−(k−1)/2)",
            "each feature is linear on its half-space, which could supply one of the k bits",
            exponent=-(k - 1) / 2,
            sampled=at_first * d_over_first ** (-(k - 1) / 2),
        )
        yield kit.rival(
            "γ₁ ∝ d^(−k/2) too",
            "training both layers changes constants only",
            first=law.first.isel(dimension=0) * (d / d[0]) ** (-k / 2),
        )

    def rivals_of_ratios(self):
        """Return wrong theories of the ratio of two margins."""
        yield kit.rival(
            "γ₁ ≥ γ₂ in every dimension",
            "the space of all neurons contains the frozen features', as Bach's spaces do",
            ratio=1.0,
        )
        yield kit.rival("|u| ≤ 1 costs nothing", "they are called basically equivalent", gates=1.0)
        yield kit.rival(
            "|u| ≤ 1 over E|u|² ≤ 1 is √(2/π)",
            "were one coordinate of the gate to count, not one for each bit",
            gates=np.sqrt(2 / np.pi),
        )

    def controls(self, seen):
        names = ("first", "tangent", "program", "sampled")
        last = seen.isel(bits=-1, dimension=-1)
        yield kit.control(
            "margins of the parities of other bits",
            "each parity has its own constant and its own exponent",
            ratio=last.first / last.tangent,
            gates=last.bounded / last.tangent,
            **{name: seen[name].roll(bits=1) for name in names},
        )
        yield kit.control(
            "frozen features with all |u| ≤ 1",
            "a bound on every gate costs margin",
            tangent=seen.bounded,
        )

    def figure(self, law, seen, rivals):
        return panels_of_margins(law, seen)


def _leading(k: int) -> float:
    """Return k! [t^k] κ, what λ_k d^k falls to: κ is t/4 + t arcsin(t)/2π."""
    half = (k - 2) // 2
    # arcsin t = Σ_h C(2h, h)/(4^h (2h + 1)) t^(2h + 1), with 2h + 1 = k − 1
    return factorial(k) * comb(2 * half, half) / (4**half * (k - 1)) / (2 * np.pi)


def _distance(large: tuple[int, ...], k: int) -> float:
    """Return how far the exponent of √λ_k over these d is from −k/2; zero for odd k and for d < k, ruled out too."""
    if k % 2 or min(large) < k or len(large) < 2:
        return 0.0
    logs = np.log([parity_margins(d, k).tangent for d in large])
    return abs(float(np.polyfit(np.log(large), logs, 1)[0]) + k / 2)
