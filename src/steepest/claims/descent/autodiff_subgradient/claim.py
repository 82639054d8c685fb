"""Automatic differentiation errs at kinks: relu(x) − relu(−x) = x gets the slope 2 relu'(0) at 0, and not 1.

Clarke's subdifferential obeys the chain rule as an inclusion only. A backward pass multiplies one element of each
factor, and the product need not be an element of the subdifferential of the whole. Which wrong number comes out is
known: it is the chain rule with the slope s that the primitive gives at a tie. One-sided derivatives do obey a chain
rule, and the gradient of the one in a random direction is an element.
"""

from collections.abc import Callable
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
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    context_curve,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.landscapes import directional_gradient

ROUNDING = 1e-10

Relu = Callable[[jax.Array], jax.Array]
PRIMITIVES: dict[str, tuple[Relu, float]] = {
    "jax.nn.relu(x)": (jax.nn.relu, 0.0),
    "jnp.where(x > 0, x, 0)": (lambda x: jnp.where(x > 0, x, 0), 0.0),
    "jnp.maximum(x, 0)": (lambda x: jnp.maximum(x, 0), 0.5),
    "jnp.where(x >= 0, x, 0)": (lambda x: jnp.where(x >= 0, x, 0), 1.0),
}
"""Ways to write a ReLU, and the slope s that each gives at a tie."""
SLOPES = np.array([slope for _, slope in PRIMITIVES.values()])
OUTSIDE = SLOPES != 0.5  # the mean of both sides is an element wherever no ReLU feeds another


def identity(x: jax.Array, relu: Relu) -> jax.Array:
    """Return x, the long way."""
    return (relu(x) - relu(-x)).sum()


def absolute(x: jax.Array, relu: Relu) -> jax.Array:
    """Return |x|."""
    return (relu(x) + relu(-x)).sum()


def nothing(x: jax.Array, relu: Relu) -> jax.Array:
    """Return zero: a ReLU of a ReLU changes nothing."""
    return (relu(x) - relu(relu(x))).sum()


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


@dataclass(frozen=True)
class AutodiffSubgradient(Claim):
    """Three programs of one number, two-layer networks at points on their kinks, and a descent from a kink."""

    pairs: Annotated[int, Within(1)] = 3  # pairs of neurons, and the input dimension [1]
    nets: Seeds = 10  # random networks [1]
    offset: NonNegative = 0.0  # how far points are moved off the kinks [1]
    starts: Count = 1000  # random starts of the descent [1]
    steps: Count = 300  # of the descent [steps]
    lr: Positive = 0.1  # η [1]

    kind = "theorem"
    statement = (
        r"f(x)=\sigma(x)-\sigma(-x)=x:\qquad f'_{\mathrm{AD}}(0)=2s,\quad \partial f(0)=\{1\},\qquad s=\sigma'_{"
        r"\mathrm{AD}}(0);\qquad \nabla_u f'(x;u)\in\partial f(x)\ \text{ for almost every }u"
    )
    headline = ("slopes", "networks", "outside", "repaired")
    source = "J. Lee's talk in the notes [@vodrahalli2019], “Computing Subgradients”; [@kakade2018]; [@clarke1983]"
    corrections = (
        "The notes say that automatic differentiation returns a superset of the gradient. It returns one vector, which "
        "need not be in the subdifferential; the superset is the set that the chain rule gives.",
    )
    remarks = (
        "With the slope ½ at ties, as jnp.maximum has it, a network of one hidden layer gets the mean of the gradients "
        "on both sides, which is an element. That is luck: σ(x) − σ(σ(x)) = 0 then gets ¼.",
        "Weights and points of the networks are whole numbers, so that ties are exact. Two neurons share each "
        "hyperplane, as in x = σ(x) − σ(−x). Where the normals of all kinks at a point are independent, s = 0 and 1 "
        "are gradients of cells, and automatic differentiation is right.",
        "That a wrong slope has probability zero is true of random starts: all of them reach the minimum. It is no "
        "comfort to a start at zero, where descent with s = 0 stays for ever.",
        "The repair differentiates the one-sided derivative in a random direction. It costs one more forward pass.",
    )
    tiny = {"nets": 3, "starts": 20, "steps": 150}
    full = {"pairs": 8, "nets": 200, "starts": 20_000}
    out_of_scope = {"offset": 0.5}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
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

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        before = np.einsum("npd,nkd->nkp", setting.w, setting.points) + setting.shift
        ties = (before == 0).sum(2)
        return [
            assume(
                "least number of hyperplanes through a point",
                ties.min(),
                ">=",
                1,
                "a kink is needed; take --offset 0",
            )
        ]

    def predict(self, setting: Setting) -> Prediction:
        tied, elsewhere = _split(setting)
        # v on one side of a hyperplane, and (−1)(−c) = c on the other: slopes along its normal
        sides = np.stack([setting.outer, setting.back])
        return Prediction(
            slopes=("primitive", 2 * SLOPES),
            absolute=("primitive", 0 * SLOPES),
            nothing=("primitive", SLOPES - SLOPES**2),
            network=(
                "primitive net tie pair",
                np.where(tied, np.multiply.outer(SLOPES, sides.sum(0))[:, :, None], 0.0),
            ),
            low=("net tie pair", np.where(tied, sides.min(0)[:, None], 0.0)),
            high=("net tie pair", np.where(tied, sides.max(0)[:, None], 0.0)),
            elsewhere=("net tie pair", elsewhere),
            # 0 and v + c are both min(v, c) away from the sides v and c
            outside=np.where(tied, (sides.min(0) / sides.max(0))[:, None], 0).max(-1).min(),
            stuck=0.0,
            minimum=1.0,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        for_directions, for_starts, for_steps = keys(key, 3)
        # slopes along the normals: the gradient is Σ_p t_p w_p, so that t solves wᵀ t = gradient
        inverse = np.linalg.inv(np.swapaxes(setting.w, 1, 2))

        @compiled
        def differentiate(nets: tuple[jax.Array, ...], directions: Key) -> dict[str, jax.Array]:
            def network(
                w: jax.Array, outer: jax.Array, back: jax.Array, shift: jax.Array
            ) -> Callable[[jax.Array, Relu], jax.Array]:
                def output(x: jax.Array, relu: Relu) -> jax.Array:
                    before = w @ x + shift
                    return outer @ relu(before) - relu(-back * before).sum()

                return output

            def gradients(relu: Relu) -> jax.Array:
                one = lambda w, v, c, b, x: jax.grad(network(w, v, c, b))(x, relu)
                at_all_ties = jax.vmap(one, (None, None, None, 0, 0))
                return jax.vmap(at_all_ties)(*nets)

            def mended(*of: jax.Array) -> jax.Array:
                *net, x, u = of
                return directional_gradient(network(*net), x, u)

            zero = jnp.zeros(1)
            around = jax.random.normal(directions, nets[-1].shape)
            side = lambda program, u: directional_gradient(program, zero, jnp.array([u]))
            programs = (identity, absolute, nothing)
            relus = [relu for relu, _ in PRIMITIVES.values()]
            of_numbers = [[jax.grad(p)(zero, relu)[0] for relu in relus] for p in programs]
            mend = jax.vmap(jax.vmap(mended, (None, None, None, 0, 0, 0)))
            return {
                "numbers": jnp.array(of_numbers),
                "sides": jnp.array([[side(p, u)[0] for u in (-1.0, 1.0)] for p in programs]),
                "networks": jnp.stack([gradients(relu) for relu in relus]),
                "mended": mend(*nets, around),
            }

        @compiled
        def descend_identity(starts: Key, steps: Key) -> dict[str, jax.Array]:
            """Descend on ½(f(x) − 1)² with f = σ(x) − σ(−x) from zero and from random starts."""
            value = lambda x: identity(x, jax.nn.relu)
            from_backward = lambda x, u: jax.grad(value)(x)
            from_side = lambda x, u: directional_gradient(identity, x, u)

            def run(slope: Callable, start: jax.Array) -> jax.Array:
                def step(x: jax.Array, key: Key) -> tuple[jax.Array, jax.Array]:
                    u = jax.random.normal(key, x.shape)
                    after = x - self.lr * (value(x) - 1) * slope(x, u)
                    return after, after[0]

                return jax.lax.scan(step, start, jax.random.split(steps, self.steps))[1]

            zero = jnp.zeros(1)
            random = jax.random.normal(starts, (self.starts, 1))
            return {
                "backward": run(from_backward, zero),
                "mended": run(from_side, zero),
                "random": jax.vmap(lambda start: run(from_backward, start))(random),
            }

        gradient = {
            name: np.asarray(v) for name, v in differentiate(tuple(setting), for_directions).items()
        }
        paths = {name: np.asarray(v) for name, v in descend_identity(for_starts, for_steps).items()}
        along = lambda g: np.einsum("npd,...nkd->...nkp", inverse, g)
        slopes, absolutes, nothings = gradient["numbers"]
        return Observation(
            slopes=("primitive", slopes),
            absolute=("primitive", absolutes),
            nothing=("primitive", nothings),
            sides=("program side", gradient["sides"]),
            network=("primitive net tie pair", along(gradient["networks"])),
            mended=("net tie pair", along(gradient["mended"])),
            backward_path=("step", paths["backward"]),
            mended_path=("step", paths["mended"]),
            random_ends=("start", paths["random"][:, -1]),
            random_paths=("shown step", paths["random"][:8]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        along = observed["network"] - predicted["elsewhere"]
        wrong = _overshoot(predicted, observed["network"])[OUTSIDE]
        arrived = np.abs(observed["random_ends"] - predicted["minimum"]) < 1e-6
        truth = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
        return [
            *(
                agreement(
                    name,
                    np.abs(observed[name] - predicted[name]).max(),
                    ROUNDING,
                    label=label,
                )
                for name, label in (
                    ("slopes", "slope of σ(x) − σ(−x) at 0 − 2s"),
                    ("absolute", "slope of σ(x) + σ(−x) at 0 − 0"),
                    ("nothing", "slope of σ(x) − σ(σ(x)) at 0 − s(1 − s)"),
                )
            ),
            agreement(
                "networks",
                np.abs(along - predicted["network"]).max(),
                ROUNDING,
                label="networks at kinks: slopes along the normals − chain rule with s",
            ),
            equal(
                "outside",
                float(predicted["outside"]),
                wrong.max(-1).min(),
                ROUNDING,
                label="s = 0 or 1: least distance to Clarke's set / its largest slope",
            ),
            agreement(
                "repaired",
                _overshoot(predicted, observed["mended"]).max(),
                ROUNDING,
                label="repaired: largest distance to Clarke's set, relative",
            ),
            agreement(
                "repaired_numbers",
                np.abs(observed["sides"] - truth).max(),
                ROUNDING,
                label="repaired: slopes of the three programs on both sides − the true ones",
            ),
            equal(
                "stuck",
                float(predicted["stuck"]),
                observed["backward_path"][-1],
                ROUNDING,
                absolute=True,
                label="descent from 0 with s = 0 ends at",
            ),
            equal(
                "reaches",
                float(predicted["minimum"]),
                observed["mended_path"][-1],
                1e-6,
                label="repaired descent from 0 ends at",
            ),
            bound(
                "random",
                arrived.mean(),
                at_least=1.0,
                label="share of random starts that reach the minimum",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        element = predicted.replace(
            slopes=("primitive", np.ones(len(SLOPES))),
            outside=0.0,
            network=(
                "primitive net tie pair",
                np.broadcast_to(predicted["low"], predicted["network"].shape),
            ),
        )
        return [
            Rival(
                "element",
                element,
                "the notes: something that contains the gradient",
                label="the backward pass returns an element of the subdifferential",
            ),
            Rival(
                "half_is_safe",
                predicted.replace(nothing=("primitive", 0 * SLOPES)),
                "it is for one hidden layer",
                label="the slope ½ at ties is always right",
            ),
            Rival(
                "like_abs",
                predicted.replace(absolute=("primitive", np.ones(len(SLOPES)))),
                "jnp.abs has the slope 1 at 0",
                label="σ(x) + σ(−x) is treated as |x|",
            ),
            Rival(
                "harmless",
                predicted.replace(stuck=1.0),
                "kinks have measure zero",
                label="a wrong slope at one point does not matter",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        first = observed["network"][0]
        slopes = np.stack([observed["slopes"], observed["absolute"], observed["nothing"]])
        half = np.repeat(observed["network"][list(SLOPES).index(0.5)][None], len(SLOPES), axis=0)
        ends = np.full_like(observed["random_ends"], observed["backward_path"][-1])
        return [
            Control(
                "backward",
                observed.replace(
                    mended=("net tie pair", first),
                    sides=("program side", slopes[:, :2]),
                    mended_path=("step", observed["backward_path"]),
                    random_ends=("start", ends),
                ),
                "it is not repaired",
                label="the backward pass with s = 0, from 0, in the place of the repair and of random starts",
            ),
            Control(
                "half",
                observed.replace(network=("primitive net tie pair", half)),
                "the mean of two sides is an element",
                label="s = ½ in the place of 0 and 1",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        s = np.linspace(0, 1, 51)
        scale = np.maximum(predicted["high"], 1e-300)
        tied = predicted["high"] > 0
        columns = []
        for i, name in enumerate(("s = 0", "s = ½", "s = 1", "repaired")):
            values = observed["mended"] if name == "repaired" else observed["network"][(0, 2, 3)[i]]
            value = ((values - predicted["elsewhere"]) / scale)[tied]
            columns.append(
                observed_curve(np.full(value.size, i), value, name, kind="points", shade=i / 3)
            )
        ratio = (predicted["low"] / scale)[tied]
        step = np.arange(1, self.steps + 1)
        shown = min(60, self.steps)
        return (
            panel(
                "x = σ(x) − σ(−x): the slope at 0 is 2s",
                "s, slope of the primitive at a tie",
                "slope by automatic differentiation",
                observed_curve(SLOPES, observed["slopes"], "backward pass", kind="points"),
                predicted_curve(s, 2 * s, "2s"),
                context_curve((0, 1), (1, 1), "true slope"),
            ),
            panel(
                "0 = σ(x) − σ(σ(x)): ½ is wrong too",
                "s, slope of the primitive at a tie",
                "slope by automatic differentiation",
                observed_curve(SLOPES, observed["nothing"], "backward pass", kind="points"),
                predicted_curve(s, s - s**2, "s(1 − s)"),
                context_curve((0, 1), (0, 0), "true slope"),
            ),
            panel(
                "Networks at kinks: elements lie in the band",
                "s = 0, ½, 1 and repaired",
                "slope across a kink / largest side",
                *columns,
                context_curve((-0.3, 3.3), (1, 1), "larger side"),
                context_curve((-0.3, 3.3), (ratio.min(), ratio.min()), "smallest of smaller sides"),
            ),
            panel(
                "Descent to x = 1",
                "step",
                "x",
                *(
                    context_curve(step[:shown], path[:shown], "random starts" * (not i))
                    for i, path in enumerate(observed["random_paths"])
                ),
                observed_curve(step[:shown], observed["mended_path"][:shown], "repaired, from 0"),
                rival_curve(step[:shown], observed["backward_path"][:shown], "s = 0, from 0"),
            ),
        )


def _split(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Return which hyperplanes pass through each point, and the slopes along the normals of the others.

    Both have the shape ``(nets, ties, pairs)``.
    """
    before = np.einsum("npd,nkd->nkp", setting.w, setting.points) + setting.shift
    of_side = np.where(before > 0, setting.outer[:, None], setting.back[:, None])
    return before == 0, np.where(before == 0, 0.0, of_side)


def _overshoot(predicted: Prediction, slopes: np.ndarray) -> np.ndarray:
    """Return how far slopes along the normals lie outside of Clarke's set, relative to the largest slope of each.

    As the normals are independent, the set is a box in these coordinates: between the slopes of the two sides.
    The shape is ``(…, nets, ties, pairs)``.
    """
    low = predicted["low"] + predicted["elsewhere"]
    high = predicted["high"] + predicted["elsewhere"]
    return np.maximum(np.maximum(low - slopes, slopes - high), 0) / high
