"""The expected kernel of hidden features is positive definite unless the activation is polynomial.

The inputs are distinct unit vectors of which no two are antipodes. On unit inputs the kernel of the activation σ is Σ_j
σ_j² (x·y)^j with Hermite coefficients σ_j. For a polynomial σ the rank of the kernel is the dimension of the
polynomials on the sphere with the degrees and parities of σ. For any other σ the kernel is positive definite as long as
no two inputs are antipodes. On antipodes it is positive definite only if infinitely many even and infinitely many odd
coefficients are nonzero. With a bias, which is one more coordinate, no two distinct inputs are antipodes. As two inputs
approach each other, the smallest eigenvalue falls like the square of their distance, with a known constant.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
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
from steepest.nn.types import Values

SETS = ("sphere", "digits", "antipodes", "antipodes with a bias")
BIASED = 3
BESIDE = 5  # other inputs, beside two that come together
PADDED = 40  # rows of every kernel of the quick preset
ALONE = np.array([1.0, -1.0, *[0.0] * BESIDE])
ANGLES = (3e-3, 1e-2, 3e-2)  # between these two
APART = 0.3  # least angle of others from these two and from their antipodes: ten times the largest
DISTINCT = 2  # the first two sets have neither repeated inputs nor antipodes
POLYNOMIALS = ("polynomial", "linear", "quadratic")


class Setting(NamedTuple):
    """Unit inputs, shape ``(sets, seeds, m, d + 1)``; the last coordinate is the bias, zero where there is none."""

    inputs: Values


@kit.claim
class NtkPositiveDefinite(kit.Claim[Setting]):
    """Random inputs on a sphere, digits projected to it, and antipodal pairs without and with a bias."""

    activations: tuple[str, ...] = kit.param(
        ("relu", "erf", "gelu", "exp"),
        "no polynomials",
        unit="names",
        scope=kit.choices(
            ("relu", "erf", "gelu", "exp"),
            ("gelu", "relu", "abs"),
            why="of tanh and elu, kernels of near inputs take minutes",
        ),
    )
    polynomials: tuple[str, ...] = kit.param(
        ("polynomial(0,1,1)", "polynomial(0,0,0,1)", "polynomial(0,-3,0,1)"),
        "σ",
        unit="names",
        scope=kit.choices(
            ("polynomial(0,1,1)", "polynomial(0,0,0,1)", "polynomial(0,-3,0,1)"),
            ("linear", "quadratic", "polynomial(0,1,0,2)"),
        ),
    )
    pairs: kit.Count = kit.param(
        20, "half the number of inputs m", scope=kit.between(12, 20, "of more, rounding is seen")
    )
    dimension: Annotated[int, kit.Within(2)] = kit.param(
        4, "d, the inputs lie on S^{d−1}", scope=kit.between(4, 6)
    )
    seeds: kit.Seeds = kit.param(5, "draws of the inputs")
    repeated: Annotated[int, kit.Within(0)] = kit.param(0, "inputs that repeat earlier ones")

    kind = "theorem"
    says = {
        "The expected kernel of hidden features is positive definite": ("rank", "nearest"),
        "unless the activation is polynomial": "rank",
    }
    tiny = {"activations": ("relu", "erf"), "pairs": 8, "dimension": 3, "seeds": 3}
    full = {"activations": ("relu", "erf", "gelu", "exp", "sin", "gaussian", "tanh", "elu")}
    out_of_scope = {"repeated": 1}

    @property
    def names(self) -> tuple[str, ...]:
        """Return all activations, polynomials last."""
        return (*self.activations, *self.polynomials)

    def axes(self):
        return {"activation": self.names, "smooth": self.activations, "set": SETS, "angle": ANGLES}

    def check_fields(self) -> None:
        for name in self.names:
            polynomial = name.partition("(")[0] in POLYNOMIALS
            if polynomial != (name in self.polynomials):
                where = "--polynomials" if polynomial else "--activations"
                raise kit.UserError(f"{name} belongs only to {where}: the theorem parts them")

    def setting(self, key):
        raw = np.asarray(digits().x)
        axes = np.linalg.svd(raw - raw.mean(0), full_matrices=False)[2][: self.dimension]
        images = (raw - raw.mean(0)) @ axes.T
        every = lambda key: jax.lax.map(lambda k: self.draw(k, images), kit.keys(key, self.seeds))
        return Setting(np.stack(kit.compiled(every)(key)))

    def draw(self, key: kit.Key, images: Values) -> tuple[jax.Array, ...]:
        """Return unit inputs of each set, shape ``(m, d + 1)``."""
        m = 2 * self.pairs
        for_sphere, for_images = jax.random.split(key)
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

    def hypotheses(self, setting):
        gram = np.abs(np.einsum("...id,...jd->...ij", setting.inputs, setting.inputs))
        gram -= 2 * np.eye(2 * self.pairs)
        # ‖x_i ∓ x_j‖
        nearest = np.sqrt(2 * np.maximum(0, 1 - gram.max((2, 3)))).min(1)
        return [
            kit.assume(
                f"smallest distance of an input from ± another, {name}",
                nearest[i],
                ">",
                1e-6,
                "choose others",
            )
            for i, name in enumerate(SETS[:DISTINCT])
        ]

    def predict(self, setting):
        degrees = [hermite_degrees(activation(name)) for name in self.names]
        constants = [
            [self.together(name, x) for x in setting.inputs[0]] for name in self.activations
        ]
        return kit.law(
            rank=("activation set", [self.ranks(top) for top in degrees]),
            nearest=("smooth seed angle", np.multiply.outer(constants, np.square(ANGLES))),
        )

    def ranks(self, top: tuple[float, float]) -> list[int]:
        """Return the rank on each set, by the largest even and odd degree of σ."""
        m = 2 * self.pairs
        generic = generic_rank(top, self.dimension, m)
        paired = generic_rank(top, self.dimension, m, antipodal=True)
        biased = generic_rank(_all_below(top), self.dimension, m, antipodal=True)
        return [generic, generic, paired, biased]

    def together(self, name: str, inputs: Values) -> float:
        """Return lim λ_min/δ² for two inputs that come together at the first of these, shape ``(m, d + 1)``.

        ½ (k' − sᵀK⁻¹s), where k' = E σ'(w·x)² is the squared norm of the derivative φ' in the direction v, K the kernel
        of the distinct inputs, and s_j = ⟨φ', σ(w·x_j)⟩ = (v·x_j) E σ'(w·x)σ'(w·x_j), of which x itself has none.
        """
        points = _pair(inputs, 0.0)
        others = points[2:]
        kernel = _kernel(name, points)[1:, 1:]
        padded = jnp.asarray(_padded(points))
        slopes = np.asarray(first_layer_kernel(activation(name), padded))[0]  # times x·x_j
        # (v·x_j) E σ'σ' from (x·x_j) E σ'σ'
        shared = slopes[2 : len(points)] * (others @ _tangent(inputs)) / (others @ points[0])
        shared = np.append(0.0, shared)
        return float(slopes[0] - shared @ np.linalg.solve(kernel, shared)) / 2

    def observe(self, setting, key):
        # the changed world: the same kernel with the last input taken for the first
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
        return kit.seen(
            **self.named(spectra),
            **self.named(repeated, "repeated_"),
            nearest=("smooth seed angle", nearest),
        )

    def named(self, spectra: list[Spectrum], prefix: str = "") -> dict[str, tuple[str, Values]]:
        """Return spectra of all activations, sets and seeds as arrays."""
        shape = (len(self.names), len(SETS), self.seeds)
        axes = "activation set seed"
        values = np.reshape([one.values for one in spectra], (*shape, -1))
        return {
            f"{prefix}eigenvalues": (f"{axes} input", values),
            f"{prefix}level": (axes, np.reshape([one.level for one in spectra], shape)),
            f"{prefix}rank": (axes, np.reshape([one.rank for one in spectra], shape)),
        }

    def run_conditions(self, observed):
        last = observed["eigenvalues"].shape[-1] - observed["rank"][..., None]
        places = np.minimum(last, 2 * self.pairs - 1)
        least = np.take_along_axis(observed["eigenvalues"], places, -1)[..., 0]
        gap = (least / observed["level"]).min()
        advice = "choose fewer --pairs"
        yield kit.assume("smallest positive eigenvalue / its error", gap, ">=", 10, advice)

    def derive(self, law, seen):
        """Return smallest eigenvalues of σ that are no polynomials, on distinct inputs, less their error."""
        certain = seen.eigenvalues.isel(input=0) - seen.level
        some = certain.isel(activation=slice(len(self.activations)), set=slice(DISTINCT))
        return {"certain": some.rename(activation="smooth", set="distinct")}

    def judge(self, law, seen):
        closeness = [
            kit.power(
                f"closeness_{i}",
                law.nearest.isel(smooth=i, drop=True),
                seen.nearest.isel(smooth=i, drop=True),
                # the next order is δ, with a factor of the order of one: 0.03 at the largest angle
                0.05,
                over="angle",
                label=f"λ_min against the distance of two inputs, {name}",
            )
            for i, name in enumerate(self.activations)
        ]
        yield kit.agrees("rank", abs(seen["rank"] - law["rank"]), 0.0, label="rank, off the law")
        yield kit.excluded(
            "smallest_eigenvalue",
            0.0,
            seen.certain,
            label="λ_min less all that rounding can do to it, σ no polynomial, distinct inputs",
        )
        yield kit.follows(
            "nearest",
            law.nearest,
            seen.nearest,
            0.06,  # the next order is about half of δ over the distance of the nearest other
            over="smooth angle",
            each=True,
            label="λ_min as two inputs come together",
        )
        yield from closeness

    def rivals(self, setting, law):
        yield from self.rivals_of_eigenvalues(setting, law)
        yield from self.rivals_of_ranks(law)

    def rivals_of_eigenvalues(self, setting, law):
        """Return wrong theories of the smallest eigenvalue as two inputs come together."""
        # κ(1) − κ(cos δ), whatever the inputs
        alone = [
            [_kernel(name, _pair(setting.inputs[0, 0], angle))[0] @ ALONE for angle in ANGLES]
            for name in self.activations
        ]
        first = law.angle / ANGLES[0]
        yield kit.rival(
            "λ_min ∝ the distance",
            "so falls the kernel of ReLU's slopes, of which bounds are published",
            id="linear",
            nearest=law.nearest / first,
        )
        yield kit.rival(
            "λ_min ∝ distance^1.5",
            "it lies between the hidden kernel and the kernel of slopes",
            nearest=law.nearest / first**0.5,
        )
        yield kit.rival(
            "λ_min of only the two inputs",
            "it is the eigenvalue of the two inputs without the others, a bound from above",
            nearest=("smooth angle", alone),
        )

    def rivals_of_ranks(self, law):
        """Return wrong theories of the ranks."""
        many = len(self.activations)
        m = 2 * self.pairs
        definite = law["rank"].values.copy()
        whole = definite.copy()
        distinct = definite.copy()
        blind = definite.copy()
        blind[:, BIASED] = definite[:, BIASED - 1]
        definite[many:] = m
        distinct[:many] = m
        for i, name in enumerate(self.polynomials, many):
            below = _all_below(hermite_degrees(activation(name)))
            whole[i, :BIASED] = self.ranks(below)[:BIASED]
        dims = ("activation", "set")
        yield kit.rival(
            "full rank for polynomials", "there are more weights than inputs", rank=(dims, definite)
        )
        yield kit.rival(
            "all polynomials up to the degree of σ", "parity forgotten", rank=(dims, whole)
        )
        yield kit.rival(
            "definite on antipodes", "the notes ask for distinct inputs only", rank=(dims, distinct)
        )
        yield kit.rival("a bias changes nothing", "the kernel without a bias", rank=(dims, blind))

    def controls(self, seen):
        names = ("eigenvalues", "level", "rank")
        yield kit.control(
            "one input twice",
            "two equal rows: the kernel is singular",
            **{name: seen[f"repeated_{name}"] for name in names},
        )
        yield kit.control(
            "two inputs that come together beside other ones",
            "what lies in the span of the others counts",
            nearest=seen.nearest.roll(seed=1),
        )

    def figure(self, law, seen, rivals):
        order = np.arange(1, 2 * self.pairs + 1)
        count = len(self.activations)
        # polynomials have the last colour of the family, activations those before it
        shades = [*np.linspace(0, 0.75, count), *np.ones(len(self.names) - count)]
        labels = [*self.activations, "polynomials", *[""] * (len(self.names) - count)]
        angles = np.array(ANGLES)
        spectra = []
        for j, title in (
            (0, "Random inputs: only polynomials have eigenvalues zero"),
            (2, "Opposite inputs x and −x: parity decides which fall to zero"),
        ):
            floor = 0 * order + float(seen.level[:, j, 0].max())
            shown = np.maximum(seen.eigenvalues[:, j, 0, ::-1].values, 1e-17)
            curves = [
                kit.observed_curve(order, shown[i], label, shade=shades[i])
                for i, label in enumerate(labels[: len(self.names)])
            ]
            floors = kit.context_curve(order, floor, "rounding: below is zero", kind="dashed")
            spectra.append(
                kit.panel(title, "eigenvalue number", "eigenvalue", *curves, floors, log="y")
            )
        nearest = []
        for i, name in enumerate(self.activations):
            least = seen.nearest[i].mean("seed")
            label = "" if i else "½δ²(k′ − sᵀK⁻¹s)"
            nearest += [
                kit.observed_curve(angles, least, name, shade=shades[i], kind="points"),
                kit.predicted_curve(angles, law.nearest[i].mean("seed"), label),
            ]
        yield from spectra
        yield self._ranks(law, seen)
        yield kit.panel(
            "Two inputs come together: the least eigenvalue falls like δ²",
            "angle between them, δ",
            "smallest eigenvalue",
            *nearest,
            log="xy",
        )

    def _ranks(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw computed ranks over predicted ones; activations of one predicted rank share a point and its name."""
        predicted = law["rank"][:, 0].values
        computed = seen["rank"][:, 0].mean("seed").values
        full = 2 * self.pairs
        ranks = sorted(set(predicted.tolist()), reverse=True)
        points = []
        for place, rank in enumerate(ranks):
            alike = predicted == rank
            names = ", ".join(np.array(self.names)[alike])
            shade = place / max(1, len(ranks) - 1)
            across = predicted[alike]
            points.append(
                kit.observed_curve(across, computed[alike], names, kind="points", shade=shade)
            )
        ends = np.array([0, full])
        return kit.panel(
            "Random inputs: only polynomials lack full rank",
            f"predicted rank, of {full} at most",
            "computed rank",
            *points,
            kit.predicted_curve(ends, ends, "as predicted"),
            kit.rival_curve(ends, 0 * ends + full, "full"),
        )


def _tangent(inputs: Values) -> Values:
    """Return the unit vector at the first input in which it is parted: toward the last input, shape ``(d + 1,)``."""
    tangent = inputs[-1] - (inputs[-1] @ inputs[0]) * inputs[0]
    return tangent / np.linalg.norm(tangent)


def _pair(inputs: Values, angle: float) -> Values:
    """Part the first input into two at an angle around it, with some others below, shape ``(2 + BESIDE, d + 1)``."""
    half = np.array([[angle / 2], [-angle / 2]])
    parted = np.cos(half) * inputs[0] + np.sin(half) * _tangent(inputs)
    candidates = inputs[1:]
    apart = np.abs(candidates @ inputs[0]) < np.cos(APART)
    return np.concatenate([parted, candidates[apart][:BESIDE]])


def _all_below(degrees: tuple[float, float]) -> tuple[float, float]:
    """Return the largest even and odd degree of (1 + x·y)^j: every power below the largest is there too."""
    top = max(degrees)
    return (top, top) if np.isinf(top) else (top, top - 1)


def _padded(points: Values) -> Values:
    """Repeat points until they are as many as the inputs of a set, for which programs are compiled already."""
    return np.resize(points, (max(PADDED, len(points)), points.shape[1]))


def _kernel(name: str, points: Values) -> Values:
    """Return the hidden kernel of an activation between all points, shape ``(m, m)``."""
    kernel = hidden_kernel(activation(name), jnp.asarray(_padded(points)))
    return np.asarray(kernel.value)[: len(points), : len(points)]
