"""ℓ1 recovery needs about δ Gaussian measurements, δ being the descent cone's statistical dimension.

From about δ measurements on, a sparse signal x₀ is the vector of least ℓ1 norm among all with the same measurements.
The signal is recovered if no vector with the same measurements has a smaller ℓ1 norm. Equivalently, the null space of
the measurements misses the cone of descent directions at x₀. For cones and random subspaces the laws are known. For
every number of coordinates, the probability of recovery is exactly one minus twice a sum of intrinsic volumes of the
cone: every second one beyond the number of measurements. This probability passes from zero to one over a range of at
most order √n around the statistical dimension δ.
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.expressivity.compressed_sensing.experiment import (
    CompressedSensingPoint,
    Law,
    Size,
    fewer,
    of_signals,
    sparse,
    sparse_signals,
    thresholds,
)
from steepest.nn.data import digits
from steepest.nn.types import Values
from steepest.programs import statistical_dimension_l1

PIXELS = 64
PROGRAMS = ("either sign", "nonnegative")


class Setting(NamedTuple):
    """Sparse signals of either sign and nonnegative sparse signals, of each sparsity, and digits."""

    signed: Values  # (sparsities, draws, n)
    positive: Values  # (sparsities, draws, n)
    digits: Values  # (images, 64)


@kit.claim
class CompressedSensing(kit.Claim[Setting]):
    """Sparse signals and images of digits, recovered by linear programs as measurements are added one by one."""

    size: Size = kit.param(60, "n, coordinates of a signal", scope=kit.between(50, 80))
    sparsities: tuple[kit.Count, ...] = kit.param(
        (3, 6, 12),
        "s, coordinates that are not zero",
        scope=kit.choices((3, 6, 12), (2, 5, 10), (4, 8, 14)),
    )
    draws: kit.Seeds = kit.param(
        120, "signals with their own measurements, of each sparsity and program"
    )
    measurements: tuple[kit.Count, ...] = kit.param(
        (10, 15, 20, 25, 30, 35),
        "m at which the share of recovered signals is compared",
        scope=kit.choices((10, 15, 20, 25, 30, 35), (8, 16, 24, 32, 40)),
    )
    images: kit.Seeds = kit.param(40, "digits, recovered by either program")
    matrix: Literal["normal", "signs", "coordinates"] = kit.param(
        "normal", "law of the measurements", unit="name", scope=kit.choices("normal")
    )

    kind = "theorem"
    says = {
        "ℓ1 recovery needs about δ Gaussian measurements": "first",
        "δ being the descent cone's statistical dimension": ("first", "digits"),
    }
    tiny = {"size": 16, "sparsities": (2,), "draws": 12, "measurements": (5, 8), "images": 3}
    full = {
        "size": 120,
        "sparsities": (4, 8, 16, 32),
        "measurements": (20, 30, 40, 50, 60, 70),
        "draws": 400,
        "images": 200,
    }
    out_of_scope = {"matrix": "coordinates"}
    point = CompressedSensingPoint

    def axes(self):
        return {"program": PROGRAMS, "sparsity": self.sparsities, "measurement": self.measurements}

    def check_fields(self) -> None:
        if self.images > 1797:
            raise kit.UserError(f"there are 1797 digits, and --images is {self.images}; take fewer")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        nonzero = [min(s, self.size) for s in self.sparsities]
        signed, positive = (
            np.array([sparse_signals(rng, self.draws, self.size, s, sign) for s in nonzero])
            for sign in (False, True)
        )
        images = np.asarray(digits().x)
        return Setting(
            signed, positive, images[rng.choice(len(images), self.images, replace=False)]
        )

    def hypotheses(self, setting):
        yield kit.assume(
            "share of measurements that are normal",
            float(self.matrix == "normal"),
            "==",
            1,
            "the null space of others is not uniformly distributed; choose --matrix normal",
        )
        yield sparse(max(self.sparsities), self.size)
        yield fewer(max(self.measurements), self.size)

    def predict(self, setting):
        laws = [[of_signals(self.size, s, sign) for s in self.sparsities] for sign in (False, True)]
        nonzero = (setting.digits > 0).sum(1)
        images = [[of_signals(PIXELS, int(s), sign) for s in nonzero] for sign in (False, True)]
        places = list(self.measurements)
        return kit.law(
            first=("program sparsity", [_means(one) for one in laws]),
            spread=("program sparsity", [_spreads(one) for one in laws]),
            success=("sparsity measurement", [one.success[places] for one in laws[0]]),
            digits=("program seed", [_means(one) for one in images]),
            width=1.0,
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        basis = np.linalg.qr(rng.standard_normal((self.size, self.size)))[0]
        pixels = np.linalg.qr(rng.standard_normal((PIXELS, PIXELS)))[0]
        own = self.measuring(self.matrix, rng)
        normal = self.measuring("normal", rng)
        single = self.measuring("coordinates", rng)

        def first(rows: Any, groups: Values, sign: bool) -> list[Values]:
            return [thresholds(rows(group.shape[1]), group, sign) for group in groups]

        whole = setting.digits[None]
        signals = (setting.signed, setting.positive)
        signs = (False, True)
        # turned signals have coordinates of either sign: no nonnegative program is right for them
        turned = first(normal, setting.signed @ basis, False)
        return kit.seen(
            first=(
                "program sparsity draw",
                [first(own, group, sign) for group, sign in zip(signals, signs, strict=True)],
            ),
            digits=("program seed", [first(own, whole, sign)[0] for sign in signs]),
            turned=("sparsity draw", turned),
            turned_digits=("seed", first(normal, whole @ pixels, False)[0]),
            single=("sparsity draw", first(single, setting.signed, False)),
        )

    def measuring(self, name: str, rng: np.random.Generator) -> Callable[[int], Any]:
        """Return what gives, for a number of coordinates n, a drawer of measurements ``(n, n)``."""
        draws = {
            "normal": lambda n: rng.standard_normal((n, n)),
            "signs": lambda n: rng.choice([-1.0, 1.0], (n, n)),
            "coordinates": lambda n: np.eye(n)[rng.permutation(n)],
        }
        return lambda n: lambda draw: draws[name](n)

    def derive(self, law, seen):
        """Return which draws m measurements recover, squared distances from the mean, and digits' ratio to theirs."""
        off = (seen["first"] - law["first"]) / law.spread
        return {
            "recovered": (seen["first"] <= law.measurement).astype(float),
            "square": (off**2).mean(("program", "sparsity")),
            "of_digits": seen.digits / law.digits,
        }

    def judge(self, law, seen):
        ones = xarray.ones_like(law.digits.mean("seed")).assign_coords(program=law.program)
        yield kit.follows(
            "first",
            law["first"],
            seen["first"],
            # six standard errors of a mean, as the law's deviation is below 0.45√n
            2.8 * np.sqrt(self.size / self.draws),
            absolute=True,
            label="measurements that recover a sparse signal",
        )
        yield kit.share(
            "success",
            law.success,
            seen.recovered.sel(program=PROGRAMS[0], drop=True),
            3.2 / np.sqrt(self.draws),  # of which the interval at 18 points is half
            label="share recovered at m measurements, signals of either sign",
        )
        yield kit.follows(
            "digits",
            ones,
            seen.of_digits,
            0.06,  # the interval is 2 to 3 %
            label="measurements that recover a digit / predicted",
        )
        yield kit.follows(
            "width",
            law.width,
            seen.square,
            0.4,  # squares of normal numbers: the interval is 15 to 20 %
            label="squared distance from the mean / predicted variance",
        )

    def rivals(self, setting, law):
        swapped = lambda array: (array.dims, array.values[::-1])
        yield from self.rivals_of_formulas(setting)
        yield kit.rival(
            "the law of the other program",
            "the cones are alike",
            first=swapped(law["first"]),
            digits=swapped(law.digits),
        )
        yield kit.rival(
            "a transition of width √n",
            "the order in the theorem, with the constant one",
            spread=0 * law.spread + np.sqrt(self.size),
        )
        yield kit.rival(
            "δ measurements, without the half",
            "the statistical dimension itself",
            accepted="the half is 1 to 5 % of the mean, where these data tell 5 to 10 %",
            first=law["first"] - 0.5,
            digits=law.digits - 0.5,
        )
        yield kit.rival(
            "all or nothing at δ: a tenth of the spread", "the limit n → ∞", spread=0.1 * law.spread
        )

    def rivals_of_formulas(self, setting):
        """Return wrong formulas of the number of measurements in s and n."""
        nonzero = np.array(self.sparsities)
        pixels = (setting.digits > 0).sum(1)

        def counting(rule: Callable[[Any, int], Values]) -> dict[str, Any]:
            return {
                "first": ("sparsity", rule(nonzero, self.size)),
                "digits": ("seed", rule(pixels, PIXELS)),
            }

        yield kit.rival(
            "2 s log(n/s) measurements",
            "its leading term as s/n → 0",
            **counting(lambda s, n: 2 * s * np.log(n / s)),
        )
        yield kit.rival(
            "2 s log(n/s) + 5s/4 measurements",
            "the upper bound of textbooks, attained",
            **counting(lambda s, n: 2 * s * np.log(n / s) + 1.25 * s),
        )
        yield kit.rival(
            "s log n measurements",
            "log n bits for each place",
            **counting(lambda s, n: s * np.log(n)),
        )
        yield kit.rival(
            "2s measurements",
            "places and values are 2s numbers, which 2s measurements determine",
            **counting(lambda s, n: 2.0 * s),
        )

    def controls(self, seen):
        yield kit.control(
            "signals turned at random",
            "they are sparse in a basis other than the norm's",
            id="turned",
            first=seen.turned,
            digits=seen.turned_digits,
        )
        yield kit.control(
            "measurements of single coordinates",
            "the null space of such measurements is spanned by sparse vectors",
            first=seen.single,
        )

    def figure(self, law, seen, rivals):
        first = seen["first"].values
        m = np.arange(self.size + 1)
        curves = []
        for i, s in enumerate(self.sparsities):
            shade = i / len(self.sparsities)
            share = (first[0, i][:, None] <= m).mean(0)
            exact = of_signals(self.size, s).success
            curves += [
                kit.observed_curve(m, share, f"s = {s}", kind="steps", shade=shade),
                kit.predicted_curve(m, exact, shade=shade),
            ]
        rho = np.linspace(0.005, 0.999, 60)
        thresholds = [[statistical_dimension_l1(r, sign) for r in rho] for sign in (False, True)]
        ours = np.array(self.sparsities) / self.size
        order = np.argsort(law.digits[0].values)
        images = np.arange(len(order))
        by_program = []
        of_digits = []
        for i, (name, shade) in enumerate(zip(PROGRAMS, (0.0, 0.6), strict=True)):
            mean = first[i].mean(1) / self.size
            by_program += [
                kit.predicted_curve(rho, thresholds[i], f"ψ(s/n), {name}", shade=shade),
                kit.observed_curve(ours, mean, f"mean, {name}", kind="points", shade=shade),
            ]
            needed = seen.digits[i].values[order]
            of_digits += [
                kit.observed_curve(images, needed, name, kind="points", shade=shade),
                kit.predicted_curve(images, law.digits[i].values[order], "δ + ½", shade=shade),
            ]
        yield kit.panel(
            "Recovery sets in as predicted, m by m", "measurements m", "share recovered", *curves
        )
        yield kit.panel(
            "The threshold",
            "s/n",
            "m/n",
            *by_program,
            kit.rival_curve(rho, 2 * rho * np.log(1 / rho), "2ρ log(1/ρ)"),
            ylim=(0, 1.05),
        )
        yield kit.panel(
            "Digits, sorted by prediction", "image", "measurements of 64 pixels", *of_digits
        )


def _means(laws: list[Law]) -> list[float]:
    """Return the mean of the first number of measurements that suffices, δ + ½."""
    return [one.dimension + 0.5 for one in laws]


def _spreads(laws: list[Law]) -> list[float]:
    """Return its standard deviation, the root of Var(v) − ¼."""
    return [float(np.sqrt(one.variance - 0.25)) for one in laws]
