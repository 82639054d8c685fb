"""Small changes of an input's length and direction survive depth at critical initialization.

Critical means χ∥ = χ⊥ = 1: a layer multiplies changes of length by χ∥, and the square of changes of direction by χ⊥.
Away from criticality small changes grow or shrink exponentially with depth. For every activation the infinite-width
recursion of the covariance K has a critical initialization (C_b, C_W, K*), or provably none. Finite networks locate the
critical initialization by the C_W at which a small change of length, or of direction, neither grows nor shrinks. At
this initialization, variance and covariance in the last layer agree with the recursion. Where K* = 0, as for tanh,
variance and covariance fall as a power of depth, not exponentially. Away from criticality, for tanh in its ordered and
chaotic phases, changes along the signal shrink like χ∥ per layer. The square of a change across the signal shrinks or
grows like χ⊥ per layer.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals.critical_tuning.experiment import Case, Scan, Sizes, located, sample
from steepest.kernels import (
    Criticality,
    criticality,
    depth_scales,
    first_layer,
    planar_inputs,
    propagate,
)
from steepest.nn.activations import Activation, activation

DIRECTIONS = ("along", "across")  # the signal


class Setting(NamedTuple):
    """The critical cases with their criticality, scans of C_W around them, and the cases off criticality."""

    criticality: list[Criticality]
    critical: list[Case]
    scans: list[Scan]
    off: Scan


@kit.claim
class CriticalTuning(kit.Claim[Setting]):
    """Pairs of inputs through random networks at their critical initialization and away from it."""

    activations: tuple[str, ...] = kit.param(
        ("relu", "gelu", "tanh"),
        "activations at their critical initialization",
        scope=kit.choices(
            ("relu", "gelu", "tanh"),
            ("relu", "gelu", "sin"),
            ("relu", "silu", "erf"),
            ("leaky_relu(0.2)", "silu", "tanh"),
        ),
    )
    width: kit.Count = kit.param(
        3000, "width n of every layer", unit="neurons", scope=kit.between(2500, 4000)
    )
    depth: kit.Count = kit.param(
        32,
        "layers after the first",
        unit="layers",
        scope=kit.between(24, 40, "corrections of order depth/width grow, and so does the scatter"),
    )
    networks: kit.Seeds = kit.param(320, "random networks for each activation")
    scan: tuple[kit.Positive, ...] = kit.param(
        (0.97, 1.0, 1.03),
        "C_W, over the critical one, of the networks that locate it",
        scope=kit.choices((0.97, 1.0, 1.03), (0.96, 1.0, 1.04), (0.98, 1.01, 1.04)),
    )
    scan_networks: kit.Seeds = kit.param(40, "random networks at each of them")
    small_variance: kit.Positive = kit.param(
        1e-4, "first-layer variance of the scan where K* = 0", scope=kit.between(3e-5, 3e-4)
    )
    off_activation: str = kit.param(
        "tanh", "activation away from criticality", scope=kit.choices("tanh")
    )
    off_c_w: tuple[kit.Positive, ...] = kit.param(
        (1.5, 3.0),
        "its C_W: in the ordered phase, and in the chaotic one",
        scope=kit.choices((1.5, 3.0), (1.4, 2.8)),
    )
    off_c_b: kit.NonNegative = kit.param(0.05, "its C_b", scope=kit.between(0.04, 0.06))
    off_networks: kit.Seeds = kit.param(120, "random networks at each of them")
    perturbation: kit.Positive = kit.param(
        0.005, "relative change of length, and angle, of inputs", scope=kit.between(0.004, 0.007)
    )
    layers: kit.Count = kit.param(8, "layers over which growth is measured", unit="layers")
    early: kit.Count = kit.param(
        2,
        "layers over which growth along the signal is fitted away from criticality",
        unit="layers",
    )

    kind = "limit"
    says = {
        "Small changes of an input's length and direction survive depth at critical initialization": (
            "c_w_along",
            "c_w_across",
        ),
        "Away from criticality small changes grow or shrink exponentially with depth": (
            "growth_along",
            "growth_across",
        ),
    }
    tiny = {
        "activations": ("relu", "tanh"),
        "width": 64,
        "depth": 4,
        "networks": 20,
        "scan_networks": 20,
        "layers": 3,
        "early": 2,
        "off_networks": 20,
    }
    full = {
        "activations": ("linear", "relu", "leaky_relu(0.2)", "tanh", "sin", "erf", "gelu", "silu"),
        "networks": 2000,
        "depth": 64,
    }
    out_of_scope = {"activations": ("sigmoid",)}

    def axes(self):
        return {
            "activation": self.activations,
            "layer": tuple(range(1, self.depth + 2)),
            "off_c_w": self.off_c_w,
            "direction": DIRECTIONS,
        }

    def setting(self, key):
        chosen = [activation(name) for name in self.activations]
        solved = [criticality(sigma) for sigma in chosen]
        critical = []
        scans = []
        for sigma, c in zip(chosen, solved, strict=True):
            if not c.exists:
                continue
            # two inputs of correlation one half; variance K* where that is positive, one elsewhere
            variance = c.k_star if c.k_star > 0 else 1.0
            pair = planar_inputs(variance, c.c_w, c.c_b, (1, 0), (1, np.pi / 3))
            critical.append(Case(sigma, c.c_w, c.c_b, pair))
            at = self.small_variance if c.k_star == 0 else variance
            scans.append(self.scanned(sigma, c.c_w * np.array(self.scan), c.c_b, at))
        sigma = activation(self.off_activation)
        resting = [depth_scales(sigma, c_w, self.off_c_b).k_star for c_w in self.off_c_w]
        off = self.scanned(sigma, np.array(self.off_c_w), self.off_c_b, resting)
        return Setting(solved, critical, scans, off)

    def scanned(
        self, sigma: Activation, c_w: np.ndarray, c_b: float, variance: float | list[float]
    ) -> Scan:
        """Return an input, a longer one and a turned one at each C_W, of this variance in the first layer."""
        small = self.perturbation
        trio = ((1, 0), (1 + small, 0), (1, small))
        pairs = zip(np.broadcast_to(variance, c_w.shape), c_w, strict=True)
        inputs = [np.asarray(planar_inputs(float(k), float(c), c_b, *trio)) for k, c in pairs]
        return Scan(sigma, c_w, c_b, np.stack(inputs))

    def hypotheses(self, setting):
        named = list(zip(self.activations, setting.criticality, strict=True))
        exist = [
            kit.assume(f"{name} has a critical initialization", c.exists, "==", True, c.reason)
            for name, c in named
        ]
        residual = lambda c: float(np.max(np.abs(c.residuals)))
        solve = [
            kit.assume(f"{name}: residual of the three equations", residual(c), "<=", 1e-6)
            for name, c in named
            if c.exists
        ]
        yield from exist
        yield from solve
        yield self.is_wide()

    def is_wide(self) -> kit.Hypothesis:
        """Assume that layers are wide for their number."""
        deep = self.depth / self.width
        return kit.assume("depth/width", deep, "<=", 0.1, "the recursion is for n ≫ depth")

    def predict(self, setting):
        sigma = setting.off.activation
        off = [depth_scales(sigma, c_w, self.off_c_b) for c_w in self.off_c_w]
        return kit.law(
            c_w=("activation", [c.c_w for c in setting.criticality]),
            **self.recursion(setting),
            # a layer multiplies a small change along the signal by χ∥, one across it by χ⊥
            growth_along=("off_c_w", np.log([point.chi_parallel for point in off])),
            growth_across=("off_c_w", np.log([point.chi_perpendicular for point in off])),
        )

    def recursion(self, setting: Setting, factor: float = 1.0) -> dict[str, Any]:
        """Return the recursion from the critical cases' first layers, at their C_W times a factor."""
        paths = []
        for case in setting.critical:
            start = first_layer(case.inputs, case.c_w, case.c_b)
            paths.append(propagate(case.activation, factor * case.c_w, case.c_b, start, self.depth))
        return moments_of(np.array(paths))

    def observe(self, setting, key):
        sizes = Sizes(
            self.networks,
            self.scan_networks,
            self.off_networks,
            self.width,
            self.depth,
            self.layers,
        )
        moments, scanned, off = sample(key, sizes, setting.critical, setting.scans, setting.off)
        tuned = [
            [located(scan.c_w, path) for path in paths]
            for scan, paths in zip(setting.scans, scanned, strict=True)
        ]
        return kit.seen(
            **moments_of(moments, "seed "),
            located=("activation direction draw", tuned),
            scanned=("activation direction scan draw few", np.stack(scanned)),
            perturbation=("direction off_c_w draw few", off),
        )

    def derive(self, law, seen):
        if "perturbation" not in seen:
            return {}
        # a change of length that shrinks to a few percent drowns in the noise of order 1/√width: its first layers
        # are fitted
        return {
            f"slope_{direction}": slopes(
                seen.perturbation.sel(direction=direction, drop=True), last
            )
            for direction, last in zip(DIRECTIONS, (self.early, self.layers), strict=True)
        }

    def judge(self, law, seen):
        checks = [
            kit.follows(
                f"c_w_{direction}",
                law.c_w,
                seen.located.sel(direction=direction, drop=True),
                # the interval is 0.7 %; perturbation and 1/width leave 0.3 %
                0.02,
                label=f"C_W that keeps perturbations {direction} the signal",
            )
            for direction in DIRECTIONS
        ]
        marks = sorted({self.depth // 4, self.depth // 2, self.depth})
        checks += [
            kit.follows(
                name,
                law[name].isel(layer=marks),
                seen[name].isel(layer=marks),
                # depth/width is 1 %, half the interval 2 %, and the mean may lie as far again
                0.08,
                label=f"{name} at a quarter, half and all of the layers",
            )
            for name in ("variance", "covariance")
        ]
        # growth along the signal is fitted over few layers, and its margin is wider
        checks += [
            kit.follows(
                f"growth_{direction}",
                law[f"growth_{direction}"],
                seen[f"slope_{direction}"],
                margin,
                absolute=True,
                label=f"growth {direction} the signal, log χ{sign}",
            )
            for direction, sign, margin in (("along", "∥", 0.03), ("across", "⊥", 0.01))
            if f"slope_{direction}" in seen
        ]
        return checks

    def rivals(self, setting, law):
        # if C_W = 1 preserved the variance of σ(z), every layer would multiply it by C_W
        growing = law.c_w ** (law.layer - 1)
        first = law.isel(layer=0, drop=True)
        gain = (5 / 3) ** 2
        yield kit.rival(
            "C_W = 1 is critical for every activation",
            "it is for linear networks",
            id="unit_weight_variance",
            c_w=1.0,
            variance=first.variance * growing,
            covariance=first.covariance * growing,
        )
        yield kit.rival(
            "C_W = 2 without biases for every activation",
            "it is for ReLU, and GELU resembles it",
            id="he",
            c_w=2.0,
        )
        yield kit.rival(
            "C_W = (5/3)² for every activation",
            "the gain 5/3 that libraries recommend for tanh",
            id="tanh_gain",
            c_w=gain,
        )
        yield kit.rival(
            "the recursion at 1.01 C_W",
            "as near as that, the last layer still tells",
            **self.recursion(setting, factor=1.01),
        )
        yield kit.rival(
            "critical at 1.03 C_W",
            "an activation tuned by eye",
            id="three_percent_more",
            c_w=1.03 * law.c_w,
        )
        yield kit.rival(
            "χ∥ and χ⊥ exchanged",
            "they agree for scale-invariant activations",
            growth_along=law.growth_across,
            growth_across=law.growth_along,
        )

    def controls(self, seen):
        # the middle of the scan is critical
        critical = seen.scanned.isel(activation=0, scan=len(self.scan) // 2)
        names = ("located", "variance", "covariance")
        yield self.heavier(seen)
        yield kit.control(
            "networks of another activation in the place of each",
            "each has a critical initialization of its own",
            id="other_activation",
            **{name: seen[name].roll(activation=1) for name in names},
        )
        yield kit.control(
            f"critical {self.activations[0]} networks away from criticality",
            "there changes neither grow nor shrink",
            id="critical_networks",
            perturbation=critical,
        )

    def heavier(self, seen: xarray.Dataset) -> kit.Control:
        """Return the control of weights that are larger than they are said to be."""
        return kit.control(
            "networks whose C_W is five per cent more than the scan says",
            "they are not what the scan says",
            id="heavier_weights",
            located=seen.located / 1.05,
        )

    def figure(self, law, seen, rivals):
        layers = np.arange(self.depth + 1)
        few = np.arange(self.layers + 1)
        factors = np.array(self.scan)
        shades = np.linspace(0, 1, max(2, len(self.activations)))
        variance = seen.variance.mean("seed")
        curves = []
        scans = []
        growth = []
        for name, shade in zip(self.activations, shades, strict=False):
            of_one = {"activation": name}
            curves += [
                kit.observed_curve(layers, variance.sel(of_one), name, shade=shade),
                kit.predicted_curve(layers, law.variance.sel(of_one).values),
            ]
            path = seen.scanned.sel(direction="across", **of_one)
            rate = np.log(path.isel(few=-1) / path.isel(few=0)).mean("draw") / self.layers
            scans.append(kit.observed_curve(factors, rate, name, shade=shade))
        for i, c_w in enumerate(self.off_c_w):
            for direction, sign in zip(DIRECTIONS, "∥⊥", strict=True):
                path = (
                    seen.perturbation.sel(direction=direction).isel(off_c_w=i).mean("draw").values
                )
                rate = float(law[f"growth_{direction}"][i])
                shade = (2 * i + (sign == "⊥")) / max(1, 2 * len(self.off_c_w) - 1)
                growth += [
                    kit.observed_curve(few, path, f"{sign}, C_W = {c_w:g}", shade=shade),
                    kit.predicted_curve(few, path[0] * np.exp(rate * few)),
                ]
        wrong = float(variance[0, 0]) * float(law.c_w[0]) ** layers[:9]
        rule = kit.rival_curve(layers[:9], wrong, f"{self.activations[0]} by the rule C_W = 1")
        neutral = kit.predicted_curve(factors, 0 * factors, "no growth")
        yield kit.panel(
            "At criticality K is kept, or falls like a power of depth",
            "layer",
            "size of signals, K",
            *curves,
            rule,
            log="y",
        )
        yield kit.panel(
            "Only at the critical C_W do directions neither spread nor merge",
            "C_W / critical C_W",
            "log of their growth, a layer",
            *scans,
            neutral,
        )
        yield kit.panel(
            "Off criticality small changes grow or shrink exponentially",
            "layer",
            "change along ∥, across ⊥",
            *growth,
            log="y",
        )


def moments_of(pairs: np.ndarray, repetitions: str = "") -> dict[str, Any]:
    """Return variance of the first input and covariance of both, from moments ``(activation, …, layer, 3)``."""
    dims = f"activation {repetitions}layer"
    return {"variance": (dims, pairs[..., 0]), "covariance": (dims, pairs[..., 2])}


def slopes(paths: xarray.DataArray, layers: int) -> xarray.DataArray:
    """Return the slope of the logarithm of perturbations over their first layers, by least squares."""
    logs = np.log(paths.isel(few=slice(0, layers + 1)))
    away = xarray.DataArray(np.arange(layers + 1) - layers / 2, dims="few")
    # least squares on centred layers: Σ (l − mean l) log / Σ (l − mean l)²
    return (away * logs).sum("few", skipna=False) / float((away**2).sum())
