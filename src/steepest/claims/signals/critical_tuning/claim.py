"""Small changes of length and of direction survive depth where χ∥ = χ⊥ = 1, and there alone.

For every activation the infinite-width recursion of the covariance K has a critical initialization (C_b, C_W, K*), or
provably none. It is located in finite networks, by the C_W at which a small change of length, and one of direction,
neither grows nor shrinks. There the last layer holds variance and covariance as the recursion says; away from it, in
order and in chaos, changes along the signal grow or shrink like χ∥ a layer, and changes across it like χ⊥.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    assume,
    compiled,
    equal,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import (
    Criticality,
    criticality,
    depth_scales,
    first_layer,
    planar_inputs,
    propagate,
)
from steepest.nn.activations import Activation, activation
from steepest.nn.networks import sample_grams

GROUPS = 10  # networks are averaged in groups before a logarithm is taken


class Case(NamedTuple):
    """One activation at one initialization, with the inputs that are sent through it, shape ``(m, 2)``."""

    activation: Activation
    c_w: float
    c_b: float
    inputs: Values


class Scan(NamedTuple):
    """One activation at C_W around its critical one, ``(points,)``, with inputs for each, ``(points, 3, 2)``."""

    activation: Activation
    c_w: Values
    c_b: float
    inputs: Values


class Setting(NamedTuple):
    """The critical cases with their criticality, scans of C_W around them, and the cases off criticality."""

    criticality: list[Criticality]
    critical: list[Case]
    scans: list[Scan]
    off: Scan


def perturbations(grams: np.ndarray) -> np.ndarray:
    """Return means over groups of networks of how much longer and how much turned the inputs are.

    Args:
        grams: covariances of the input, a longer one and a turned one, ``(points, networks, layers, 3, 3)``.

    Returns:
        The difference of variances, and the squared distance, ``(direction, point, group, layer)``.
    """
    points, networks = grams.shape[:2]
    size = networks // GROUPS
    grouped = grams[:, : size * GROUPS].reshape(points, GROUPS, size, *grams.shape[2:]).mean(2)
    along = np.abs(grouped[..., 1, 1] - grouped[..., 0, 0])
    across = grouped[..., 0, 0] + grouped[..., 2, 2] - 2 * grouped[..., 0, 2]
    return np.stack([along, across])


@dataclass(frozen=True)
class CriticalTuning(Claim):
    """Pairs of inputs through random networks at their critical initialization and away from it."""

    # activations at their critical initialization [name]
    activations: tuple[str, ...] = ("relu", "tanh", "gelu")
    width: Count = 3000  # width n of every layer [neurons]
    depth: Count = 64  # layers after the first [layers]
    networks: Seeds = 400  # random networks for each activation [1]
    # C_W, over the critical one, of the networks that locate it [1]
    scan: tuple[Positive, ...] = (0.97, 1.0, 1.03)
    scan_networks: Seeds = 48  # random networks at each of them [1]
    small_variance: Positive = 1e-4  # first-layer variance of the scan where K* = 0 [1]
    off_activation: str = "tanh"  # activation away from criticality [name]
    # its C_W: in the ordered phase, and in the chaotic one [1]
    off_c_w: tuple[Positive, ...] = (1.5, 3.0)
    off_c_b: NonNegative = 0.05  # its C_b [1]
    off_networks: Seeds = 160  # random networks at each of them [1]
    perturbation: Positive = 0.005  # relative change of length, and angle, of inputs [1]
    layers: Count = 8  # layers over which growth is measured [layers]
    # layers over which growth along the signal is fitted away from criticality [layers]
    early: Count = 2

    kind = "limit"
    headline = ("c_w_along_0", "c_w_across_0")
    version = 2
    statement = (
        r"K^*=C_b+C_W\,\mathbb{E}\,\sigma^2,\quad \chi_\parallel=\frac{C_W}{2}\,\mathbb{E}\,(\sigma^2)''=1,"
        r"\quad \chi_\perp=C_W\,\mathbb{E}\,\sigma'^2=1"
    )
    source = "Lectures of 14 and 19 September in [@hanin2022]; [@roberts2022]"
    corrections = (
        "The notes label their first example tanh and print K^(l+1) = C_W² K; it is the linear network, and "
        "K^(l) = C_W^l K.",
    )
    remarks = (
        "Margins on the last layer are 8 %: corrections to the recursion are of order depth/width, 2 %, and the mean "
        "of 400 networks is known to 3 %.",
        "Version 1 judged the mean over layers, and networks at the very C_W that the recursion was given, which a "
        "wrong C_W passes as well. Version 2 locates C_W by measured growth, judges the last layer, adds a chaotic "
        "point, and takes its verdicts from seeds 2000 and up.",
        "GELU's critical variance K* = 3.56 attracts only from above; just below lies a second fixed point, 3.04, that "
        "attracts slowly, so ordinary inputs with K near 2 never reach the tabulated K*.",
        "Networks are drawn layer by layer from their exact conditional law (rows of Gaussian weights applied to known "
        "activations are Gaussian), which needs no weight matrices.",
        "For your own activation print steepest.kernels.recommended_initialization(activation); phase_diagram and "
        "predict_signal tell what other choices do.",
    )
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
    out_of_scope = {"activations": ("sigmoid",)}
    full = {
        "activations": ("linear", "relu", "leaky_relu(0.2)", "tanh", "sin", "erf", "gelu", "silu"),
        "networks": 2000,
    }

    def setting(self, key: Key) -> Setting:
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

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        exist = [
            assume(f"{name} has a critical initialization", c.exists, "==", True, c.reason)
            for name, c in zip(self.activations, setting.criticality, strict=True)
        ]
        solve = [
            assume(
                f"{name}: residual of the three equations",
                float(np.max(np.abs(c.residuals))),
                "<=",
                1e-6,
            )
            for name, c in zip(self.activations, setting.criticality, strict=True)
            if c.exists
        ]
        return [
            *exist,
            *solve,
            assume(
                "depth/width", self.depth / self.width, "<=", 0.1, "the recursion is for n ≫ depth"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        sigma = setting.off.activation
        off = [depth_scales(sigma, c_w, self.off_c_b) for c_w in self.off_c_w]
        slopes = np.log([(point.chi_parallel, point.chi_perpendicular) for point in off])
        return Prediction(
            moments=("activation layer moment", self.recursion(setting)),
            critical=("activation value", [(c.c_b, c.c_w, c.k_star) for c in setting.criticality]),
            growth=("point direction", slopes),
        )

    def recursion(
        self, setting: Setting, factor: float = 1.0, c_w: float = 0.0, c_b: float | None = None
    ) -> np.ndarray:
        """Return the recursion from the critical cases' first layers, at their C_W times a factor or at another."""
        paths = []
        for case in setting.critical:
            start = first_layer(case.inputs, case.c_w, case.c_b)
            weights = c_w or factor * case.c_w
            biases = case.c_b if c_b is None else c_b
            paths.append(propagate(case.activation, weights, biases, start, self.depth))
        return np.array(paths)

    def observe(self, setting: Setting, key: Key) -> Observation:
        def covariances(key: Key) -> tuple[jax.Array, list[jax.Array], jax.Array]:
            """Return variances and covariance of each critical case, and covariances of scans and off criticality."""
            for_critical, for_scans, for_off = keys(key, 3)
            seeds = keys(for_critical, len(setting.critical))
            # single precision is enough, and twice as fast, where nothing small is a difference of large numbers
            cases = [
                case._replace(inputs=case.inputs.astype(np.float32)) for case in setting.critical
            ]
            grams = [self.sample(k, case) for k, case in zip(seeds, cases, strict=True)]
            pairs = jnp.stack(grams)[..., (0, 1, 0), (0, 1, 1)]  # K_αα, K_ββ, K_αβ
            scans = [
                self.sample_scan(for_scans, scan, self.scan_networks) for scan in setting.scans
            ]
            return pairs, scans, self.sample_scan(for_off, setting.off, self.off_networks)

        moments, scans, off = compiled(covariances)(key)
        return Observation(
            moments=("activation network layer moment", moments),
            scan_c_w=("activation", [case.c_w for case in setting.critical]),
            scanned=(
                "activation direction scan group layer",
                np.stack([perturbations(np.asarray(scan)) for scan in scans]),
            ),
            perturbation=("direction point group layer", perturbations(np.asarray(off))),
        )

    def sample(self, key: Key, case: Case) -> jax.Array:
        """Return covariances of the inputs in many networks, shape ``(networks, depth + 1, m, m)``."""
        return sample_grams(key, self.networks, *case[:3], self.width, self.depth, case.inputs)

    def sample_scan(self, key: Key, scan: Scan, networks: int) -> jax.Array:
        """Return covariances at each C_W, with the same random numbers, ``(points, networks, layers + 1, 3, 3)``."""

        def at(c_w: Any, inputs: jax.Array) -> jax.Array:
            return sample_grams(
                key, networks, scan.activation, c_w, scan.c_b, self.width, self.layers, inputs
            )

        return jax.lax.map(lambda point: at(*point), (jnp.array(scan.c_w), jnp.array(scan.inputs)))

    def located(self, c_w: float, paths: np.ndarray) -> np.ndarray:
        """Return the C_W where a perturbation neither grows nor shrinks, one a group.

        The logarithm of its growth over all layers is interpolated by a parabola in log C_W.

        Args:
            c_w: the C_W that the scan's factors multiply.
            paths: sizes of the perturbation, ``(scan, group, layer)``.
        """
        growth = np.log(paths[..., -1] / paths[..., 0]).T
        logs = np.log(self.scan)
        neutral = []
        for values in growth:
            second, first, zeroth = np.polyfit(logs, values, 2)
            # the root that stays where the parabola is a line; noise may leave a narrow network without a real one
            root = -2 * zeroth / (first + np.sqrt(max(first**2 - 4 * second * zeroth, 0.0)))
            neutral.append(c_w * np.exp(root))
        return np.array(neutral)

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        return [
            *self.judge_location(predicted, observed),
            *self.judge_last_layer(predicted, observed),
            *self.judge_growth(predicted, observed),
        ]

    def judge_location(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Compare the C_W that keeps small perturbations with the critical one."""
        return [
            equal(
                f"c_w_{what}_{i}",
                predicted["critical"][i, 1],
                self.located(observed["scan_c_w"][i], observed["scanned"][i, direction]),
                # the interval is 0.5 %; perturbation and 1/width leave 0.3 %
                0.02,
                label=f"{name}: C_W that keeps perturbations {what} the signal",
            )
            for i, name in enumerate(self.activations)
            for direction, what in enumerate(("along", "across"))
        ]

    def judge_last_layer(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Compare variance and covariance in the last layer with the recursion."""
        ratio = observed["moments"][:, :, -1] / predicted["moments"][:, None, -1]
        return [
            equal(
                f"{what}_{i}",
                1.0,
                ratio[i, :, moment],
                # depth/width is 2 %, half the interval 3 %, and the mean may lie as far again
                0.08,
                label=f"{name}: {what} in the last layer / recursion",
            )
            for i, name in enumerate(self.activations)
            for moment, what in ((0, "variance"), (2, "covariance"))
        ]

    def judge_growth(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Compare the growth of perturbations away from criticality with the slopes there."""
        checks = []
        for i, c_w in enumerate(self.off_c_w):
            # a change of length that shrinks to a few percent drowns in the noise of order 1/√width: its first layers
            # are fitted, and its margin is wider
            for direction, what, sign, layers, margin in (
                (0, "along", "∥", self.early, 0.03),
                (1, "across", "⊥", self.layers, 0.01),
            ):
                paths = observed["perturbation"][direction, i, :, : layers + 1]
                slopes = np.polyfit(np.arange(layers + 1), np.log(paths).T, 1)[0]
                checks.append(
                    equal(
                        f"growth_{what}_{i}",
                        predicted["growth"][i, direction],
                        slopes,
                        margin,
                        absolute=True,
                        label=f"C_W = {c_w:g}: growth {what}, log χ{sign}",
                    )
                )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        layers = np.arange(self.depth + 1)
        critical = predicted["critical"]

        def tuned(c_w: float | np.ndarray) -> tuple[str, np.ndarray]:
            other = critical.copy()
            other[:, 1] = c_w
            return ("activation value", other)

        def moments(paths: np.ndarray) -> tuple[str, np.ndarray]:
            return ("activation layer moment", paths)

        # If C_W = 1 preserved the variance of σ(z), every layer would multiply it by C_W.
        grown = predicted["moments"][:, :1] * critical[:, 1][:, None, None] ** layers[:, None]
        tanh_gain = (5 / 3) ** 2
        return [
            Rival(
                "unit_weight_variance",
                predicted.replace(moments=moments(grown), critical=tuned(1.0)),
                "it is for linear networks",
                label="C_W = 1 is critical for every activation",
            ),
            Rival(
                "he",
                predicted.replace(
                    moments=moments(self.recursion(setting, c_w=2.0, c_b=0.0)), critical=tuned(2.0)
                ),
                "it is for ReLU, and GELU resembles it",
                label="C_W = 2 without biases for every activation",
            ),
            Rival(
                "tanh_gain",
                predicted.replace(
                    moments=moments(self.recursion(setting, c_w=tanh_gain, c_b=0.0)),
                    critical=tuned(tanh_gain),
                ),
                "the gain 5/3 that libraries recommend for tanh",
                label="C_W = (5/3)² for every activation",
            ),
            Rival(
                "one_percent_more",
                predicted.replace(moments=moments(self.recursion(setting, factor=1.01))),
                "as near as that, the last layer still tells",
                label="the recursion at 1.01 C_W",
            ),
            Rival(
                "five_percent_more",
                predicted.replace(critical=tuned(1.05 * critical[:, 1])),
                "an activation tuned by eye",
                label="critical at 1.05 C_W",
            ),
            Rival(
                "slopes_exchanged",
                predicted.replace(growth=("point direction", predicted["growth"][:, ::-1])),
                "they agree for scale-invariant activations",
                label="χ∥ and χ⊥ exchanged",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        layers = np.arange(self.depth + 1)
        few = np.arange(self.layers + 1)
        factors = np.array(self.scan)
        variance = observed["moments"][..., 0].mean(1)
        curves = []
        growth = []
        scans = []
        for i, name in enumerate(self.activations):
            shade = i / max(1, len(self.activations) - 1)
            curves += [
                observed_curve(layers, variance[i], name, shade=shade),
                predicted_curve(layers, predicted["moments"][i, :, 0]),
            ]
            path = observed["scanned"][i, 1]
            rate = np.log(path[..., -1] / path[..., 0]).mean(1) / self.layers
            scans.append(observed_curve(factors, rate, name, shade=shade))
        for i, c_w in enumerate(self.off_c_w):
            for direction, sign in enumerate(("∥", "⊥")):
                path = observed["perturbation"][direction, i].mean(0)
                rate = predicted["growth"][i, direction]
                shade = (2 * i + direction) / max(1, 2 * len(self.off_c_w) - 1)
                growth += [
                    observed_curve(few, path, f"χ{sign} at C_W = {c_w:g}", shade=shade),
                    predicted_curve(few, path[0] * np.exp(rate * few)),
                ]
        wrong = variance[0, 0] * predicted["critical"][0, 1] ** layers[:9]
        return (
            panel(
                "At criticality the variance survives",
                "layer",
                "K",
                *curves,
                rival_curve(layers[:9], wrong, f"{self.activations[0]} by the rule C_W = 1"),
                log="y",
            ),
            panel(
                "The C_W that keeps directions apart",
                "C_W / critical C_W",
                "log growth across, a layer",
                *scans,
                predicted_curve(factors, 0 * factors, "critical"),
            ),
            panel(
                "Elsewhere perturbations grow or shrink",
                "layer",
                "size of the perturbation",
                *growth,
                log="y",
            ),
        )
