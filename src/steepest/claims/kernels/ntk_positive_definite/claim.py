"""The expected hidden-feature kernel is positive definite on distinct inputs, unless σ is a polynomial.

On unit inputs the kernel is Σ_j σ_j² (x·y)^j with σ's Hermite coefficients σ_j. For a polynomial its rank is the
dimension of the polynomials on the sphere of the degrees and parities that σ has. For any other σ it is positive
definite as long as no two inputs are antipodes; where they are, it is only if infinitely many even and infinitely many
odd coefficients differ from zero. With a bias, which is one more coordinate, no two distinct inputs are antipodes.
As two inputs come together the smallest eigenvalue falls like the square of their distance, with a known constant.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Within,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import (
    Spectrum,
    first_layer_kernel,
    generic_rank,
    hermite_degrees,
    hidden_kernel,
    resolved_spectrum,
)
from steepest.nn.activations import activation
from steepest.nn.data import digits

SETS = ("sphere", "digits", "antipodes", "biased")
SHOWN = ("sphere", "digits", "antipodes", "antipodes with a bias")
BESIDE = 5  # other inputs, beside two that come together
PADDED = 40  # rows of every kernel of the quick preset
ALONE = np.array([1.0, -1.0, *[0.0] * BESIDE])
ANGLES = np.geomspace(3e-3, 3e-2, 3)  # between these two
DISTINCT = 2  # the first two sets have neither repeated inputs nor antipodes


class Setting(NamedTuple):
    """Unit inputs, shape ``(sets, seeds, m, d + 1)``; the last coordinate is the bias, zero where there is none."""

    inputs: np.ndarray


POLYNOMIALS = ("polynomial", "linear", "quadratic")


@dataclass(frozen=True)
class NtkPositiveDefinite(Claim):
    """Random inputs on a sphere, digits projected to it, and antipodal pairs without and with a bias."""

    activations: tuple[str, ...] = ("relu", "erf", "gelu", "exp")  # no polynomials [name]
    # σ [name]
    polynomials: tuple[str, ...] = (
        "polynomial(0,1,1)",
        "polynomial(0,0,0,1)",
        "polynomial(0,-3,0,1)",
    )
    pairs: Count = 20  # half the number of inputs m [1]
    dimension: Annotated[int, Within(2)] = 4  # d, the inputs lie on S^{d−1} [1]
    seeds: Seeds = 5  # draws of the inputs [1]
    repeated: Annotated[int, Within(0)] = 0  # inputs that repeat earlier ones [1]

    kind = "theorem"
    statement = (
        r"\lambda_{\min}\Big(\mathbb{E}\,\sigma(w\cdot x_i)\,\sigma(w\cdot x_j)\Big)>0"
        r"\quad\text{for } x_i\neq\pm x_j,\ \|x_i\|=1,\ \sigma \text{ no polynomial}"
    )
    source = "Lecture of 10 October in [@hanin2022]"
    corrections = (
        "The notes' proof says that a σ that is no polynomial has every Hermite coefficient σ_k ≠ 0. It has infinitely "
        "many: tanh and erf lack all even ones, ReLU and GELU all odd ones beyond the first. The proof needs no more "
        "than infinitely many, with k → ∞ along these.",
        "Distinct inputs are not enough: in the last step (x_α·x_β)^k → δ_αβ needs x_α ≠ ±x_β. On k antipodal pairs "
        "the kernel of an odd σ has rank k, and that of ReLU k + min(k, d). Definite on all distinct unit inputs are "
        "exactly the σ with infinitely many even and infinitely many odd coefficients.",
        "The last display drops a factor: it is σ_k² Σ_α c_α (x_α·x_β)^k = 0; and the Hilbert space is L² of the "
        "Gaussian on weight space, whose Hermite polynomials have the weight exp(−x²/2).",
    )
    remarks = (
        "An eigenvalue counts as positive when it exceeds all that rounding and quadrature can have done to it (Weyl's "
        "inequality with a bound on the error of every entry).",
        "Digits are centred, projected on the first d principal axes of the whole set and scaled to unit length.",
        "Generic inputs have the rank min(m, N), where N adds the harmonics of degrees j, j−2, … over all j with "
        "σ_j ≠ 0: C(d+p−1, p) for the largest even p, and as much for the largest odd p. So z³ and z³ − 3z (which has "
        "one Hermite coefficient) have the same rank.",
        "Version 2 adds antipodes with a bias, the control with a repeated input, and states eigenvalues in units of "
        "their error. Version 3 adds two inputs that come together.",
        "Two inputs at the angle δ, beside five others, have features that differ by δ times a derivative φ' in weight "
        "space. So λ_min = ½ δ² (‖φ'‖² − what lies in the span of the other features) to leading order. Norm and inner "
        "products of φ' come from the kernel of slopes, E σ'σ'. Even ReLU, whose kernel of slopes falls linearly "
        "with δ (a rival), has δ² here.",
    )
    version = 3  # 1 had no bias and no control; 2 had no inputs that come together
    tiny = {"activations": ("relu", "erf"), "pairs": 8, "dimension": 3, "seeds": 3}
    full = {"activations": ("relu", "erf", "gelu", "exp", "sin", "gaussian", "tanh", "elu")}
    out_of_scope = {"repeated": 1}

    def check_fields(self) -> None:
        for name in self.names:
            polynomial = name.partition("(")[0] in POLYNOMIALS
            if polynomial != (name in self.polynomials):
                where = "--polynomials" if polynomial else "--activations"
                raise UserError(f"{name} belongs to {where} alone: the theorem parts them")

    @property
    def names(self) -> tuple[str, ...]:
        """Return all activations, polynomials last."""
        return (*self.activations, *self.polynomials)

    def setting(self, key: Key) -> Setting:
        raw = np.asarray(digits().x)
        axes = np.linalg.svd(raw - raw.mean(0), full_matrices=False)[2][: self.dimension]
        images = (raw - raw.mean(0)) @ axes.T
        every = lambda key: jax.lax.map(lambda k: self.draw(k, images), keys(key, self.seeds))
        return Setting(np.stack(compiled(every)(key)))

    def draw(self, key: Key, images: np.ndarray) -> tuple[jax.Array, ...]:
        """Return unit inputs of each set, shape ``(m, d + 1)``."""
        m = 2 * self.pairs
        (for_sphere, for_images) = jax.random.split(key)
        x = jax.random.normal(for_sphere, (m, self.dimension))
        chosen = jnp.asarray(images)[
            jax.random.choice(for_images, len(images), (m,), replace=False)
        ]
        sphere, real = (
            points / jnp.linalg.norm(points, axis=1, keepdims=True) for points in (x, chosen)
        )
        half = sphere[: self.pairs]
        again = jnp.arange(m) % (m - self.repeated)
        antipodes = jnp.concatenate([half, -half])
        extended = lambda points, bias: jnp.pad(points, ((0, 0), (0, 1)), constant_values=bias)
        return (
            extended(sphere[again], 0.0),
            extended(real[again], 0.0),
            extended(antipodes, 0.0),
            extended(antipodes, 1.0) / jnp.sqrt(2.0),
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        gram = np.abs(np.einsum("...id,...jd->...ij", setting.inputs, setting.inputs))
        gram -= 2 * np.eye(2 * self.pairs)
        # ‖x_i ∓ x_j‖
        nearest = np.sqrt(2 * np.maximum(0, 1 - gram.max((2, 3)))).min(1)
        return [
            assume(
                f"smallest distance of an input from ± another, {name}",
                nearest[i],
                ">",
                1e-6,
                "choose others",
            )
            for i, name in enumerate(SETS[:DISTINCT])
        ]

    def predict(self, setting: Setting) -> Prediction:
        degrees = [hermite_degrees(activation(name)) for name in self.names]
        m = 2 * self.pairs
        ranks = [
            [
                generic_rank(top, self.dimension, m),
                generic_rank(top, self.dimension, m),
                generic_rank(top, self.dimension, m, antipodal=True),
                generic_rank(_all_below(top), self.dimension, m, antipodal=True),
            ]
            for top in degrees
        ]
        squared = np.array(
            [[self.together(name, x) for x in setting.inputs[0]] for name in self.activations]
        )
        return Prediction(
            rank=("activation set", ranks),
            closeness=2.0,
            nearest=("activation seed angle", squared[..., None] * ANGLES**2),
        )

    def together(self, name: str, inputs: np.ndarray) -> float:
        """Return lim λ_min/δ² for two inputs that come together at the first of these, shape ``(m, d + 1)``.

        ½ (k' − sᵀK⁻¹s), where k' = E σ'(w·x)² is the squared norm of the derivative φ' in the direction v, K the kernel
        of the distinct inputs, and s_j = ⟨φ', σ(w·x_j)⟩ = (v·x_j) E σ'(w·x)σ'(w·x_j), of which x itself has none.
        """
        points = _pair(inputs, 0.0)
        others = points[2:]
        kernel = _kernel(name, points)[1:, 1:]
        padded = jnp.asarray(_padded(points))
        slopes = np.asarray(first_layer_kernel(activation(name), padded))[0]  # times x·x_j
        shared = slopes[2 : len(points)] * (others @ _tangent(inputs)) / (others @ points[0])
        shared = np.append(0.0, shared)
        return float(slopes[0] - shared @ np.linalg.solve(kernel, shared)) / 2

    def observe(self, setting: Setting, key: Key) -> Observation:
        # the control: the same kernel with the last input taken for the first
        again = np.append(np.arange(2 * self.pairs - 1), 0)
        spectra = []
        repeated = []
        for name in self.names:
            for inputs in setting.inputs:
                for x in inputs:
                    kernel = jax.tree.map(np.asarray, hidden_kernel(activation(name), x))
                    same = jax.tree.map(lambda entries: entries[again][:, again], kernel)
                    spectra.append(resolved_spectrum(kernel))
                    repeated.append(resolved_spectrum(same))
        nearest = [
            [
                [np.linalg.eigvalsh(_kernel(name, _pair(x, angle)))[0] for angle in ANGLES]
                for x in setting.inputs[0]
            ]
            for name in self.activations
        ]
        return Observation(
            **self.named(spectra),
            **self.named(repeated, "repeated_"),
            angle=("angle", ANGLES, "radians"),
            nearest=("activation seed angle", nearest),
        )

    def named(self, spectra: list[Spectrum], prefix: str = "") -> dict[str, tuple]:
        """Return spectra of all activations, sets and seeds as quantities."""
        shape = (len(self.names), len(SETS), self.seeds)
        values = np.reshape([s.values for s in spectra], (*shape, -1))
        return {
            f"{prefix}eigenvalues": ("activation set seed input", values),
            f"{prefix}level": (
                "activation set seed",
                np.reshape([s.level for s in spectra], shape),
            ),
            f"{prefix}rank": ("activation set seed", np.reshape([s.rank for s in spectra], shape)),
        }

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        last = observed["eigenvalues"].shape[-1] - observed["rank"][..., None]
        least = np.take_along_axis(
            observed["eigenvalues"], np.minimum(last, 2 * self.pairs - 1), -1
        )[..., 0]
        gap = (least / observed["level"]).min()
        return [
            assume(
                "smallest positive eigenvalue / its error", gap, ">=", 10, "choose fewer --pairs"
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        certain = observed["eigenvalues"][..., 0] / observed["level"]  # (activation, set, seed)
        return [
            *(
                bound(
                    f"smallest_eigenvalue_{i}_{kind}",
                    certain[i, j],
                    at_least=1.0,
                    aggregate="all",
                    label=f"λ_min over all that rounding can do to it, {name}, {kind}",
                )
                for i, name in enumerate(self.activations)
                for j, kind in enumerate(SETS[:DISTINCT])
            ),
            *(
                equal(
                    f"rank_{i}_{kind}",
                    predicted["rank"][i, j],
                    observed["rank"][i, j],
                    0.0,
                    aggregate="all",
                    label=f"rank, {name}, {SHOWN[j]}",
                )
                for i, name in enumerate(self.names)
                for j, kind in enumerate(SETS)
            ),
            *(
                exponent(
                    f"closeness_{i}",
                    float(predicted["closeness"]),
                    observed["angle"],
                    observed["nearest"][i],
                    # the next order is δ, with a factor of the order of one: 0.03 at the largest angle
                    0.05,
                    label=f"λ_min against the distance of two inputs, {name}",
                )
                for i, name in enumerate(self.activations)
            ),
            *(
                equal(
                    f"nearest_{i}",
                    predicted["nearest"][i, :, 0],
                    observed["nearest"][i, :, 0],
                    0.01,  # the next order, 0.003 at this angle, and a factor
                    label=f"λ_min of two inputs at the angle {ANGLES[0]:g}, {name}",
                )
                for i, name in enumerate(self.activations)
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        names = ("eigenvalues", "level", "rank")
        same = {name: observed.quantity(f"repeated_{name}") for name in names}
        return [
            Control(
                "repeated_input",
                observed.replace(**same),
                "two equal rows: the kernel is singular",
                label="one input twice",
            )
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        many = len(self.activations)
        ranks = predicted["rank"]
        m = 2 * self.pairs
        definite = ranks.copy()
        whole = ranks.copy()
        distinct = ranks.copy()
        blind = ranks.copy()
        definite[many:] = m
        distinct[:many] = m
        blind[:, 3] = ranks[:, 2]
        for i, name in enumerate(self.polynomials, many):
            below = _all_below(hermite_degrees(activation(name)))
            whole[i, :3] = [
                generic_rank(below, self.dimension, m, kind == "antipodes") for kind in SETS[:3]
            ]
        # κ(1) − κ(cos δ), whatever the inputs
        alone = [
            [_kernel(name, _pair(setting.inputs[0, 0], angle))[0] @ ALONE for angle in ANGLES]
            for name in self.activations
        ]
        return [
            Rival(
                "linear",
                predicted.replace(closeness=1.0),
                "so falls the kernel of ReLU's slopes, of which bounds are published",
                label="λ_min ∝ the distance",
            ),
            Rival(
                "three_halves",
                predicted.replace(closeness=1.5),
                "between the hidden kernel and that of slopes",
                label="λ_min ∝ distance^1.5",
            ),
            Rival(
                "two_alone",
                predicted.replace(
                    nearest=(
                        "activation seed angle",
                        np.repeat(np.array(alone)[:, None], self.seeds, 1),
                    )
                ),
                "it is the eigenvalue of the two inputs without the others, a bound from above",
                label="λ_min of the two inputs alone",
            ),
            Rival(
                "polynomials_definite",
                predicted.replace(rank=("activation set", definite)),
                "there are more weights than inputs",
                label="full rank for polynomials",
            ),
            Rival(
                "parity_forgotten",
                predicted.replace(rank=("activation set", whole)),
                "parity forgotten",
                label="all polynomials up to the degree of σ",
            ),
            Rival(
                "antipodes_definite",
                predicted.replace(rank=("activation set", distinct)),
                "the notes ask for distinct inputs only",
                label="definite on antipodes",
            ),
            Rival(
                "bias_forgotten",
                predicted.replace(rank=("activation set", blind)),
                "the kernel without a bias",
                label="a bias changes nothing",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        order = np.arange(1, 2 * self.pairs + 1)
        shades = np.linspace(0, 1, len(self.names))
        curves = [
            [
                observed_curve(order, np.maximum(values[j, 0, ::-1], 1e-17), name, shade=shades[i])
                for i, (name, values) in enumerate(
                    zip(self.names, observed["eigenvalues"], strict=True)
                )
            ]
            for j in (0, 2)
        ]
        floors = [
            predicted_curve(order, 0 * order + observed["level"][:, j, 0].max(), "largest error")
            for j in (0, 2)
        ]
        which = np.arange(len(self.names))
        x = 2 * self.pairs
        return (
            panel(
                "Random inputs: only polynomials fall to zero",
                "eigenvalue number",
                "eigenvalue",
                *curves[0],
                floors[0],
                log="y",
            ),
            panel(
                "Antipodal pairs: parity matters",
                "eigenvalue number",
                "eigenvalue",
                *curves[1],
                floors[1],
                log="y",
            ),
            panel(
                "Ranks on random inputs",
                f"activation: {', '.join(self.names)}",
                "rank",
                observed_curve(which, observed["rank"][:, 0].mean(-1), "computed", kind="points"),
                predicted_curve(which, predicted["rank"][:, 0], "predicted"),
                rival_curve(which, 0 * which + x, "full"),
            ),
            panel(
                "Two inputs come together",
                "angle between them",
                "smallest eigenvalue",
                *(
                    observed_curve(ANGLES, nearest.mean(0), name, shade=shades[i], kind="points")
                    for i, (name, nearest) in enumerate(
                        zip(self.activations, observed["nearest"], strict=True)
                    )
                ),
                *(
                    predicted_curve(ANGLES, law.mean(0), "½δ²(k′ − sᵀK⁻¹s)" if i == 0 else "")
                    for i, law in enumerate(predicted["nearest"])
                ),
                log="xy",
            ),
        )


def _tangent(inputs: np.ndarray) -> np.ndarray:
    """Return the unit vector at the first input in which it is parted: toward the last input, shape ``(d + 1,)``."""
    tangent = inputs[-1] - (inputs[-1] @ inputs[0]) * inputs[0]
    return tangent / np.linalg.norm(tangent)


def _pair(inputs: np.ndarray, angle: float) -> np.ndarray:
    """Part the first input into two at an angle around it, with some others below, shape ``(2 + BESIDE, d + 1)``."""
    half = np.array([[angle / 2], [-angle / 2]])
    parted = np.cos(half) * inputs[0] + np.sin(half) * _tangent(inputs)
    return np.concatenate([parted, inputs[1 : 1 + BESIDE]])


def _all_below(degrees: tuple[float, float]) -> tuple[float, float]:
    """Largest even and odd degree of (1 + x·y)^j: every power below the largest is there too."""
    top = max(degrees)
    return (top, top) if np.isinf(top) else (top, top - 1)


def _padded(points: np.ndarray) -> np.ndarray:
    """Repeat points until they are as many as the inputs of a set, for which programs are compiled already."""
    return np.resize(points, (max(PADDED, len(points)), points.shape[1]))


def _kernel(name: str, points: np.ndarray) -> np.ndarray:
    """Return the hidden kernel of an activation between all points, shape ``(m, m)``."""
    kernel = hidden_kernel(activation(name), jnp.asarray(_padded(points)))
    return np.asarray(kernel.value)[: len(points), : len(points)]
