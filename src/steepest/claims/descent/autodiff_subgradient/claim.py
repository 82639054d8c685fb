"""At kinks, automatic differentiation can return a vector outside Clarke's subdifferential.

For instance, relu(x) − relu(−x) equals x, and gets the slope 2 relu'(0) at 0 instead of 1. Random directions repair
this: a one-sided derivative in a random direction has a gradient that lies in the subdifferential. Clarke's
subdifferential obeys the chain rule only as an inclusion. A backward pass multiplies one element of each factor, and
the product need not be an element of the subdifferential of the whole program. The wrong number is known: the chain
rule gives it, with the slope s that the library takes for a function, such as relu, at its kink (a tie). One-sided
derivatives do obey a chain rule.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._kinks import PRIMITIVES, SLOPES, Relu, identity
from steepest.landscapes import directional_gradient

ROUNDING = 1e-10

OUTSIDE = SLOPES != 0.5  # the mean of both sides is an element wherever no ReLU feeds another


def absolute(x: jax.Array, relu: Relu) -> jax.Array:
    """Return |x|."""
    return (relu(x) + relu(-x)).sum()


def nothing(x: jax.Array, relu: Relu) -> jax.Array:
    """Return zero: a ReLU of a ReLU changes nothing."""
    return (relu(x) - relu(relu(x))).sum()


PROGRAMS = {"σ(x) − σ(−x)": identity, "σ(x) + σ(−x)": absolute, "σ(x) − σ(σ(x))": nothing}


class Setting(NamedTuple):
    """Networks of pairs of neurons that share a hyperplane, and points on 1, 2, … of the hyperplanes.

    Attributes:
        w: normals of the hyperplanes, shape ``(nets, pairs, d)``, whole numbers.
        outer: output weights v > 0 of the neurons on one side, ``(nets, pairs)``.
        back: c > 0: the other neuron of a pair has the input weights −c w and the output weight −1, ``(nets, pairs)``.
        shift: b, so that the neurons of a pair see w·x + b and −c (w·x + b), ``(nets, ties, pairs)``.
        points: x, ``(nets, ties, d)``.
    """

    w: np.ndarray
    outer: np.ndarray
    back: np.ndarray
    shift: np.ndarray
    points: np.ndarray


@kit.claim
class AutodiffSubgradient(kit.Claim[Setting]):
    """Three programs of one number, and two-layer networks at points on their kinks."""

    pairs: Annotated[int, kit.Within(1)] = kit.param(
        3, "pairs of neurons, and the input dimension", scope=kit.between(2, 6)
    )
    nets: kit.Seeds = kit.param(10, "random networks")
    offset: kit.NonNegative = kit.param(0.0, "how far points are moved off the kinks")
    kind = "theorem"
    says = {
        "automatic differentiation can return a vector outside Clarke's subdifferential": (
            "networks",
            "outside",
        ),
        "gets the slope 2 relu'(0) at 0 instead of 1": "slopes",
        "a one-sided derivative in a random direction has a gradient that lies in the subdifferential": (
            "repaired",
            "repaired_programs",
        ),
    }
    tiny = {"nets": 3}
    full = {"pairs": 8, "nets": 200}
    out_of_scope = {"offset": 0.5}

    def axes(self):
        return {
            "program": tuple(PROGRAMS),
            "primitive": tuple(PRIMITIVES),
            "side": ("left", "right"),
            "tie": tuple(range(1, self.pairs + 1)),
            "pair": tuple(range(self.pairs)),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        size = self.pairs
        normals = []
        while len(normals) < self.nets:
            w = rng.integers(-3, 4, (size, size)).astype(float)
            if abs(np.linalg.det(w)) > 0.5:  # whole numbers: independent hyperplanes
                normals.append(w)
        w = np.array(normals)
        points = rng.integers(-3, 4, (self.nets, size, size)).astype(float)
        on_plane = np.tri(size, dtype=bool)  # point k lies on the first k hyperplanes
        away = rng.choice([-2.0, -1.0, 1.0, 2.0], (self.nets, size, size))
        shift = np.where(on_plane, 0, away) - np.einsum("npd,nkd->nkp", w, points)
        return Setting(
            w,
            rng.integers(1, 4, (self.nets, size)).astype(float),
            rng.integers(1, 4, (self.nets, size)).astype(float),
            shift,
            points + self.offset / np.sqrt(2),
        )

    def hypotheses(self, setting):
        before = np.einsum("npd,nkd->nkp", setting.w, setting.points) + setting.shift
        ties = (before == 0).sum(2)
        yield kit.assume(
            "least number of hyperplanes through a point",
            ties.min(),
            ">=",
            1,
            "a kink is needed; take --offset 0",
        )

    def predict(self, setting):
        tied, elsewhere = _split(setting)
        # v on one side of a hyperplane, and (−1)(−c) = c on the other: slopes along its normal
        sides = np.stack([setting.outer, setting.back])
        low = sides.min(0)[:, None]
        high = sides.max(0)[:, None]
        # v σ(z) − σ(−cz) has the slope s v + s c in z, where σ'(0) is s
        at_ties = np.multiply.outer(SLOPES, sides.sum(0))[:, :, None]
        return kit.law(
            # σ(x) − σ(−x), σ(x) + σ(−x), σ(x) − σ(σ(x)): the chain rule says s + s, s − s, s − s²
            slopes=("program primitive", [2 * SLOPES, 0 * SLOPES, SLOPES - SLOPES**2]),
            sides=("program side", [[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]]),
            network=("primitive seed tie pair", np.where(tied, at_ties, elsewhere)),
            # Clarke's set: as the normals are independent, it is a box in the slopes along them
            low=("seed tie pair", np.where(tied, low, elsewhere)),
            high=("seed tie pair", np.where(tied, high, elsewhere)),
            # 0 and v + c are both min(v, c) away from the sides v and c
            outside=("seed tie", np.where(tied, low / high, 0).max(-1)),
        )

    def observe(self, setting, key):
        for_directions, *_ = kit.keys(key, 3)
        # slopes along the normals: the gradient is Σ_p t_p w_p, so that t solves wᵀ t = gradient
        inverse = np.linalg.inv(np.swapaxes(setting.w, 1, 2))
        along = lambda g: np.einsum("npd,...nkd->...nkp", inverse, np.asarray(g))
        gradients = kit.compiled(self.differentiate)(tuple(setting), for_directions)
        at_kink, beside = np.asarray(gradients["programs"])
        return kit.seen(
            slopes=("program primitive", at_kink),
            slopes_beside=("program primitive", beside),
            sides=("program side", gradients["sides"]),
            network=("primitive seed tie pair", along(gradients["networks"])),
            repaired=("seed tie pair", along(gradients["repaired"])),
        )

    def differentiate(
        self, nets: tuple[jax.Array, ...], directions: kit.Key
    ) -> dict[str, jax.Array]:
        """Return slopes of the programs at and beside their kink, and gradients of the networks at their points."""

        def network(
            w: jax.Array, outer: jax.Array, back: jax.Array, shift: jax.Array
        ) -> Callable[[jax.Array, Relu], jax.Array]:
            def output(x: jax.Array, relu: Relu) -> jax.Array:
                preactivations = w @ x + shift
                return outer @ relu(preactivations) - relu(-back * preactivations).sum()

            return output

        def gradients(relu: Relu) -> jax.Array:
            slope_at = lambda w, v, c, b, x: jax.grad(network(w, v, c, b))(x, relu)
            return jax.vmap(jax.vmap(slope_at, (None, None, None, 0, 0)))(*nets)

        def repaired(*of: jax.Array) -> jax.Array:
            *net, x, u = of
            return directional_gradient(network(*net), x, u)

        zero = jnp.zeros(1)
        around = jax.random.normal(directions, nets[-1].shape)
        side = lambda program, u: directional_gradient(program, zero, jnp.array([u]))[0]
        relus = [relu for relu, _ in PRIMITIVES.values()]
        slopes = lambda x: [[jax.grad(f)(x, relu)[0] for relu in relus] for f in PROGRAMS.values()]
        return {
            "programs": jnp.array([slopes(zero), slopes(zero + 0.5)]),
            "sides": jnp.array([[side(f, u) for u in (-1.0, 1.0)] for f in PROGRAMS.values()]),
            "networks": jnp.stack([gradients(relu) for relu in relus]),
            "repaired": jax.vmap(jax.vmap(repaired, (None, None, None, 0, 0, 0)))(*nets, around),
        }

    def derive(self, law, seen):
        """Return how far gradients lie outside of Clarke's set."""
        wrong = overshoot(seen.network, law.low, law.high).isel(primitive=OUTSIDE)
        return {
            "outside": wrong.rename(primitive="extreme").drop_vars("extreme").max("pair"),
            "left_outside": overshoot(seen.repaired, law.low, law.high),
        }

    def judge(self, law, seen):
        deviations = (
            ("slopes", seen.slopes - law.slopes, "slopes at 0 of three programs off 2s, 0, s − s²"),
            (
                "networks",
                seen.network - law.network,
                "networks at kinks: slopes along the normals off the chain rule with s",
            ),
            (
                "outside",
                seen.outside - law.outside,
                "s = 0 or 1: distance to Clarke's set over its largest slope, off theory",
            ),
            ("repaired", seen.left_outside, "repaired: distance to Clarke's set, relative"),
            (
                "repaired_programs",
                seen.sides - law.sides,
                "repaired: slopes of the programs on both sides off the true ones",
            ),
        )
        yield from (
            kit.agrees(id, abs(off), ROUNDING, label=label) for id, off, label in deviations
        )

    def rivals(self, setting, law):
        slopes_where = lambda name, values: xarray.where(law.program == name, values, law.slopes)
        always, zero, composed = PROGRAMS
        yield kit.rival(
            "the backward pass returns an element of the subdifferential",
            "the notes: something that contains the gradient",
            id="element",
            slopes=slopes_where(always, 1.0),
            network=law.low,
            outside=0 * law.outside,
        )
        yield kit.rival(
            "the slope ½ at ties is always right",
            "it is for one hidden layer",
            slopes=slopes_where(composed, 0.0),
        )
        yield kit.rival(
            "σ(x) + σ(−x) is treated as |x|",
            "jnp.abs has the slope 1 at 0",
            slopes=slopes_where(zero, 1.0),
        )

    def controls(self, seen):
        of_zero = seen.slopes.isel(primitive=0, drop=True)
        yield kit.control(
            "programs beside the kink",
            "there the backward pass is right",
            slopes=seen.slopes_beside,
        )
        yield kit.control(
            "the backward pass with s = 0 in the place of the repair",
            "it is not repaired",
            id="backward",
            repaired=seen.network.isel(primitive=0, drop=True),
            sides=of_zero,
        )
        yield kit.control(
            "s = ½ in the place of 0 and 1",
            "the mean of two sides is an element",
            network=seen.network.isel(primitive=list(SLOPES).index(0.5), drop=True),
        )

    def figure(self, law, seen, rivals):
        s = np.linspace(0, 1, 51)
        high = law.high.values
        tied = _on_kinks(law)
        columns = []
        for i, name in enumerate(("s = 0", "s = ½", "s = 1", "repaired")):
            slopes = seen.repaired if name == "repaired" else seen.network[(0, 2, 3)[i]]
            value = (slopes.values / high)[tied]
            columns.append(
                kit.observed_curve(np.full(value.size, i), value, name, kind="points", shade=i / 3)
            )
        least = (law.low.values / high)[tied].min()
        slopes = lambda row: kit.observed_curve(
            SLOPES, seen.slopes[row], "backward pass", kind="points"
        )
        axes = ("s, slope of the primitive at a tie", "slope by automatic differentiation")
        yield kit.panel(
            "x = σ(x) − σ(−x): the slope at 0 is 2s",
            *axes,
            slopes(0),
            kit.predicted_curve(s, 2 * s, "2s"),
            kit.context_curve((0, 1), (1, 1), "true slope"),
        )
        yield kit.panel(
            "0 = σ(x) − σ(σ(x)): ½ is wrong too",
            *axes,
            slopes(2),
            kit.predicted_curve(s, s - s**2, "s(1 − s)"),
            kit.context_curve((0, 1), (0, 0), "true slope"),
        )
        yield kit.panel(
            "Networks at kinks: elements lie in the band",
            "s = 0, ½, 1 and repaired",
            "slope across a kink / largest side",
            *columns,
            kit.context_curve((-0.3, 3.3), (1, 1), "larger side"),
            kit.context_curve((-0.3, 3.3), (least, least), "smallest of smaller sides"),
        )


def _on_kinks(law: xarray.Dataset) -> np.ndarray:
    """Return which hyperplanes pass through each point, ``(nets, ties, pairs)``: point k lies on the first k."""
    return np.broadcast_to(law.pair.values < law.tie.values[:, None], law.high.shape)


def _split(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return which hyperplanes pass through each point, and the slopes along the normals of the others.

    Both have the shape ``(nets, ties, pairs)``.
    """
    before = np.einsum("npd,nkd->nkp", setting.w, setting.points) + setting.shift
    of_side = np.where(before > 0, setting.outer[:, None], setting.back[:, None])
    return before == 0, np.where(before == 0, 0.0, of_side)


def overshoot(slopes: Any, low: Any, high: Any) -> Any:
    """Return how far slopes along the normals lie outside of the box between low and high, relative to high."""
    return np.maximum(np.maximum(low - slopes, slopes - high), 0) / high
