"""Extremes of networks on a square, exactly; narrow and residual networks trained on a disc and on ‖x‖."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.expressivity._random_networks import unbatched
from steepest.geometry import Layer, planar_regions, preactivations, relu_layers, residual_layers
from steepest.kit.points import Arrays, bound
from steepest.nn.data import digits
from steepest.nn.losses import logistic
from steepest.nn.networks import ResidualBlocks, folding, residual_outputs

SQUARE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
DEEP = 4  # hidden layers of the trained chains
WIDEST = 4  # all chains are this wide, with zeros beyond their own width
LARGEST = 6  # width in the diagram
SQUARES = (1.2, 1.4, 1.6, 1.8, 2.0)  # half sides, around the disc
ROUNDING = 1e-9  # of the range: what a maximum inside may exceed the boundary's by


class Extremes(NamedTuple):
    """Extremes of a network on a square."""

    top: float
    bottom: float
    edge_top: float
    edge_bottom: float

    @property
    def excess(self) -> float:
        """By how much the inside exceeds the boundary, over the range; 0 for a constant."""
        spread = self.top - self.bottom
        if spread <= 0:
            return 0.0
        return max(self.top - self.edge_top, self.edge_bottom - self.bottom) / spread

    @property
    def enclosed(self) -> bool:
        """Whether some of {f > 0} is inside, and nothing of it on the boundary."""
        return self.top > 0 >= self.edge_top


def extremes(layers: Sequence[Layer], half: float = 1.0) -> Extremes:
    """Return the extremes on [−half, half]² and on its edge: at corners of regions, as a network is affine in each."""
    regions = planar_regions(layers, half * SQUARE)
    values = regions.values()[..., 0]
    # f is affine in each region: its extremes are at vertices, also on the edge
    edge = np.abs(np.abs(regions.vertices).max(-1) - half) < 1e-9 * half
    return Extremes(values.max(), values.min(), values[edge].max(), values[edge].min())


def bounded(layers: Sequence[Layer]) -> float:
    """Return 1 where one of several squares around the disc encloses a region of {f > 0}, else 0."""
    return float(any(extremes(layers, half).enclosed for half in SQUARES))


class Chain(NamedTuple):
    """Weights of a chain of DEEP layers; shapes ``(…, WIDEST, 2)``, ``(…, DEEP − 1, WIDEST, WIDEST)`` and so on."""

    first: kit.Values
    others: kit.Values
    biases: kit.Values
    readout: kit.Values
    offset: kit.Values


def chain_outputs(params: Chain, x: kit.Values) -> jax.Array:
    """Return f(x) for inputs ``(m, 2)``, shape ``(m,)``."""

    def layer(h: jax.Array, weights: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        matrix, bias = weights
        return jax.nn.relu(h @ matrix.T + bias), None

    first = jax.nn.relu(x @ params.first.T + params.biases[0])
    h, _ = jax.lax.scan(layer, first, (params.others, params.biases[1:]))
    return h @ params.readout + params.offset


def chain_starts(rng: np.random.Generator, widths: kit.Values) -> Chain:
    """Draw chains of these widths: zeros beyond them, which descent leaves at zero."""
    lanes = len(widths)
    on = np.arange(WIDEST) < widths[:, None]
    both = on[:, None, :, None] & on[:, None, None, :]
    gain = np.sqrt(2.0 / widths)
    return Chain(
        on[:, :, None] * rng.standard_normal((lanes, WIDEST, 2)),
        gain[:, None, None, None] * both * rng.standard_normal((lanes, DEEP - 1, WIDEST, WIDEST)),
        0.3 * on[:, None] * np.abs(rng.standard_normal((lanes, DEEP, WIDEST))),
        gain[:, None] * on * rng.standard_normal((lanes, WIDEST)),
        np.zeros(lanes),
    )


def residual_starts(rng: np.random.Generator, lanes: int, blocks: int) -> ResidualBlocks:
    """Draw residual networks of two inputs and one hidden neuron a block, by the law of the library's."""
    return ResidualBlocks(
        rng.standard_normal((lanes, blocks, 1, 2)) / 2**0.5,
        rng.standard_normal((lanes, blocks, 1)),
        rng.standard_normal((lanes, blocks, 2, 1)) / blocks**0.5,
        rng.standard_normal((lanes, 2)) / 2**0.5,
        np.zeros(lanes),
    )


def chain_layers(params: Chain) -> list[Layer]:
    """Return one trained chain as layers of NumPy."""
    matrices = [params.first, *params.others, np.asarray(params.readout)[None]]
    return relu_layers(matrices, [*params.biases, np.asarray(params.offset)[None]])


def running_maximum(directions: int) -> list[Layer]:
    """Return the network of width three that computes max_k ⟨u_k, x⟩ on the unit ball, u_k evenly spaced.

    A layer keeps x, shifted to be positive, and ``t_k = σ(M_{k−1} − ⟨u_k, x⟩)``; the maximum so far is ``M_k = t_k +
    ⟨u_k, x⟩``, linear in what is kept. It is ``‖x‖`` up to ``1 − cos(π/K)``.
    """
    angles = 2 * np.pi * np.arange(directions) / directions
    u = np.stack([np.cos(angles), np.sin(angles)], 1)
    shift = np.ones(2)  # kept are x + shift, as |x_i| ≤ 1
    matrices = [np.vstack([np.eye(2), 0 * u[:1]])]  # M_0 − ⟨u_0, x⟩ with M_0 = ⟨u_0, x⟩
    biases = [np.append(shift, 0.0)]
    for last, new in itertools.pairwise(u):
        step = last - new  # M − ⟨new, x⟩ = t + ⟨last − new, x⟩
        matrices.append(np.vstack([np.eye(3)[:2], np.append(step, 1.0)]))
        biases.append(np.append(np.zeros(2), -step @ shift))
    matrices.append(np.append(u[-1], 1.0)[None])
    biases.append(np.array([-u[-1] @ shift]))
    return relu_layers(matrices, biases)


def distance_to_norm(layers: Sequence[Layer]) -> float:
    """Return the largest |f(x) − ‖x‖| over points of the unit disc, 0.01 apart in radius and 0.003 on the circle."""
    radius = np.linspace(0, 1, 101)
    turns = np.linspace(0, 2 * np.pi, 2049)
    circle = np.stack([np.cos(turns), np.sin(turns)], 1)
    inner = (radius[:-1, None, None] * circle[::8]).reshape(-1, 2)
    x = np.concatenate([inner, circle])
    return float(np.abs(preactivations(layers, x)[-1][:, 0] - np.linalg.norm(x, axis=1)).max())


def blocks_layers(params: ResidualBlocks) -> list[Layer]:
    """Return one trained residual network as layers of NumPy."""
    inner, bias, outer, readout, offset = (np.asarray(part) for part in params)
    return residual_layers(inner, bias, outer, readout, float(offset))


def principal_components(rng: np.random.Generator, number: int) -> tuple[kit.Values, kit.Values]:
    """Return two principal components of images of digits, of variance one together, and ±1 for zeros and others."""
    images = digits()
    x = np.asarray(images.x)
    x = x - x.mean(0)
    _, _, directions = np.linalg.svd(x, full_matrices=False)
    scores = x @ directions[:2].T
    chosen = rng.permutation(len(x))[:number]
    zero = np.where(np.asarray(images.y).argmax(1) == 0, 1.0, -1.0)
    return scores[chosen] / scores.std(), zero[chosen]


def share_right(layers: list[Layer], x: kit.Values, y: kit.Values) -> float:
    """Return the share of inputs on the right side."""
    return float((np.sign(preactivations(layers, x)[-1][:, 0]) == y).mean())


def folding_error(folds: int) -> float:
    """Return the largest |f(x) − ‖x‖| of a folding; the points of the circle include the edges of its wedge."""
    return distance_to_norm(blocks_layers(folding(folds)))


def adam(risk: Callable[[Any], jax.Array], start: Any, steps: int, lr: float) -> Any:
    """Return where so many steps of Adam end, whose step size falls from lr to zero like a cosine.

    A bare loop, which compiles in a fraction of the time of one that records.
    """

    def step(i: jax.Array, state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        params, first, second = state
        slope = jax.grad(risk)(params)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slope)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, second, slope)
        size = lr * (1 + jnp.cos(jnp.pi * i / steps)) / 2
        # both corrections of averages that begin at zero: √(1 − β₂^t)/(1 − β₁^t)
        size = size * jnp.sqrt(1 - 0.999 ** (i + 1)) / (1 - 0.9 ** (i + 1))
        move = lambda p, m, v: p - size * m / (jnp.sqrt(v) + 1e-8)
        return jax.tree.map(move, params, first, second), first, second

    zeros = jax.tree.map(jnp.zeros_like, start)
    return jax.lax.fori_loop(0, steps, step, (start, zeros, zeros))[0]


class Tasks(NamedTuple):
    """What chains are trained on, a lane each.

    Attributes:
        inputs: shape ``(lanes, m, 2)``.
        targets: ‖x‖ or ±1, shape ``(lanes, m)``.
        norm: whether it is ‖x‖, learned in the mean of the sixth power and not by the logistic loss, ``(lanes,)``.
    """

    inputs: kit.Values
    targets: kit.Values
    norm: kit.Values


def train(
    starts: tuple[Chain, ResidualBlocks],
    tasks: Tasks,
    x: kit.Values,
    y: kit.Values,
    steps: int,
    lr: float,
) -> tuple[Chain, ResidualBlocks]:
    """Train chains on their tasks, and residual networks of one hidden neuron a block on labels ±1, as one program.

    Args:
        starts: weights of all chains and of all residual networks, lanes first.
        tasks: of the chains.
        x: inputs of the residual networks, shape ``(m, 2)``.
        y: their labels, shape ``(m,)``.
        steps: of Adam.
        lr: its first step size.

    Returns:
        weights at the end, as in ``starts``.
    """

    def chain(start: Chain, task: Tasks) -> Chain:
        def risk(params: Chain) -> jax.Array:
            f = chain_outputs(params, task.inputs)
            # a high power is nearer to the largest error
            far = (f - task.targets) ** 6
            return jnp.mean(jnp.where(task.norm, far, logistic(task.targets * f)))

        return adam(risk, start, steps, lr)

    def skipping(start: ResidualBlocks, x: kit.Values, y: kit.Values) -> ResidualBlocks:
        risk = lambda params: jnp.mean(logistic(y * residual_outputs(params, x)))
        return adam(risk, start, steps, lr)

    def both(
        starts: Any, tasks: Tasks, x: kit.Values, y: kit.Values
    ) -> tuple[Chain, ResidualBlocks]:
        chains, blocks = starts
        others = jax.vmap(skipping, in_axes=(0, None, None))(blocks, x, y)
        return jax.vmap(chain)(chains, tasks), others

    return jax.tree.map(np.asarray, kit.compiled(both)(starts, tasks, x, y))


@dataclass(frozen=True)
class NarrowPoint(kit.Point):
    """Extremes inside the square, of random networks of one width and depth."""

    width: Annotated[int, kit.Within(1, LARGEST)]
    depths: kit.Count
    networks: kit.Seeds
    c_b: Annotated[float, kit.Within(1e-6, 1e3)]

    batched = ("width", "c_b")
    diagram = {"width": "1,2,3,4,5,6", "depths": "1,2,3,5,8"}
    base = {"networks": 100}
    labels = {"share": "share of networks with an extremum inside"}
    diagram_remarks = (
        "A hundred random networks a point, on [−1, 1]². At widths 1 and 2 none has its maximum or minimum inside.",
        "From width 3 on the theorem says nothing. At width 3 few of the deep have one, as many are constant; from "
        "width 5 on the share grows with the depth.",
    )

    def predict(self, setting):
        return kit.Prediction(excess=ROUNDING)

    def observe(self, setting, key):
        on = jnp.arange(LARGEST) < self.width
        weights = []
        biases = []
        for layer in range(self.depths):
            key, for_weights, for_biases = jax.random.split(key, 3)
            inputs = 2 if layer == 0 else LARGEST
            fan_in = 2.0 if layer == 0 else self.width
            normal = jax.random.normal(for_weights, (self.networks, LARGEST, inputs))
            present = on[:, None] & (on if layer else jnp.ones(2, bool))
            weights.append(jnp.sqrt(2.0 / fan_in) * present * normal)
            normal = jax.random.normal(for_biases, (self.networks, LARGEST))
            biases.append(jnp.sqrt(self.c_b) * on * normal)
        key, for_readout = jax.random.split(key)
        readout = on * jax.random.normal(for_readout, (self.networks, LARGEST))
        excess = jax.pure_callback(
            _excesses,
            jax.ShapeDtypeStruct((self.networks,), np.float64),
            weights,
            biases,
            readout,
            vmap_method="sequential",
        )
        return {"excess": excess}

    def run_conditions(self, observed):
        advice = "wider networks may have extremes inside"
        yield kit.assume("width", self.width, "<=", 2, advice)

    def judge(self, predicted, observed):
        limit = float(predicted["excess"])
        yield bound(
            "excess",
            observed["excess"].max(),
            at_most=limit,
            label="largest excess of the inside over the boundary, over the range",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {"share": float((observed["excess"] > ROUNDING).mean())}


def _excesses(
    weights: Sequence[kit.Values], biases: Sequence[kit.Values], readout: kit.Values
) -> kit.Values:
    """Return each network's excess, shape ``(networks,)``."""
    return np.array([extremes(one).excess for one in unbatched(weights, biases, readout)])
