"""Random quadratic models and scaled networks: their flows, and what first-order theory needs of them."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from steepest import kit
from steepest.dynamics import flow
from steepest.kernels import FirstOrder, first_order_flow
from steepest.kit.points import Arrays, bound
from steepest.nn.data import balanced_choices, digits
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params

TESTS = 20  # test inputs of a model
FLOOR = 1e-16  # risk at which a flow has arrived: residuals of 1e-8
LAST = 9.0  # log(1 + t) by which it must have
RTOL = 1e-10


class Models(NamedTuple):
    """Random quadratic models, one a seed: the first m inputs are for training, the others for tests."""

    phi: kit.Values  # (seeds, p, m + tests)
    forms: kit.Values  # F(x), symmetric, (seeds, m + tests, p, p)
    y: kit.Values  # (seeds, m)
    start: kit.Values  # θ_0, (seeds, p)


class Networks(NamedTuple):
    """Networks with their images, one a seed."""

    x: kit.Values  # (seeds, m + tests, d)
    y: kit.Values  # (seeds, m)
    start: Params  # with a leading axis over seeds


def draw_models(key: kit.Key, seeds: int, dimension: int, examples: int) -> Models:
    """Draw Gaussian features and forms with entries of variance 1/p, and Gaussian targets and starts."""

    def one(key: kit.Key) -> Models:
        for_phi, for_forms, for_y, for_start = jax.random.split(key, 4)
        count = examples + TESTS
        forms = jax.random.normal(for_forms, (count, dimension, dimension)) / dimension**0.5
        return Models(
            jax.random.normal(for_phi, (dimension, count)) / dimension**0.5,
            (forms + jnp.swapaxes(forms, 1, 2)) / 2,
            jax.random.normal(for_y, (examples,)),
            jax.random.normal(for_start, (dimension,)),
        )

    return jax.vmap(one)(kit.keys(key, seeds))


def follow_model(
    phi: jax.Array,
    forms: jax.Array,
    y: jax.Array,
    start: jax.Array,
    epsilon: jax.Array | float,
    middle: float,
    weights: jax.Array | float = 1.0,
    last: float = LAST,
    rtol: float = RTOL,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return θ at time ``middle``, θ at the end and whether the flow arrived; examples may have weights in the loss."""
    m = len(y)

    def risk(theta: jax.Array) -> jax.Array:
        # f = φᵀθ + (ε/2) θᵀFθ
        outputs = theta @ phi[:, :m] + epsilon / 2 * (forms[:m] @ theta) @ theta
        return 0.5 * jnp.sum(weights * (outputs - y) ** 2)

    times = jnp.array([np.log1p(middle), last])
    looks = {"at": lambda theta: theta}
    path = flow(
        risk, start, times, "log", observe=looks, rtol=rtol, atol=rtol, floor=FLOOR * rtol / RTOL
    )
    return path.observed["at"][0], path.params, path.settled


def model_theory(models: Models, seed: int, time: float = np.inf) -> FirstOrder:
    """Return the first-order flow of one of the models."""
    m = np.shape(models.y)[1]
    phi = np.asarray(models.phi[seed])[:, :m]
    forms = np.asarray(models.forms[seed])[:m]
    return first_order_flow(
        phi, lambda v: forms @ v, np.asarray(models.y[seed]), np.asarray(models.start[seed]), time
    )


def network(inputs: int, width: int) -> Mlp:
    """Return the two-layer network of the second half, both layers trained."""
    return mlp((inputs, width, 1), "tanh", parameterized="ntk", bias=False)


def draw_networks(key: kit.Key, seeds: int, width: int, examples: int, inputs: int) -> Networks:
    """Draw networks, and for each images of threes and eights in their leading principal components."""
    data = digits((3, 8))
    pixels = np.asarray(data.x)
    centred = pixels - pixels.mean(0)
    components = centred @ np.linalg.svd(centred, full_matrices=False)[2][:inputs].T
    components /= np.sqrt((components**2).sum(1).mean() / inputs)  # ‖x‖² is about d
    for_images, for_weights = jax.random.split(key)
    half = (examples + TESTS + 1) // 2
    chosen = balanced_choices(data, half, kit.keys(for_images, seeds))
    # the classes in turn, so that the training part is balanced too
    chosen = np.swapaxes(chosen, 1, 2).reshape(seeds, -1)[:, : examples + TESTS]
    label = np.asarray(data.y) @ np.array([1.0, -1.0])
    init = kit.compiled(jax.vmap(network(inputs, width).init))
    return Networks(
        components[chosen], label[chosen[:, :examples]], init(kit.keys(for_weights, seeds))
    )


def follow_network(
    net: Mlp,
    x: jax.Array,
    y: jax.Array,
    start: Params,
    scale: jax.Array,
    weights: jax.Array | float = 1.0,
) -> tuple[jax.Array, jax.Array]:
    """Train α (f(θ_0 + θ/α) − f(θ_0)) to the end; return its outputs at all inputs, and whether it arrived."""
    m = len(y)
    still = net.apply(start, x)

    def outputs(moved: Params, count: int) -> jax.Array:
        params = jax.tree.map(lambda a, b: a + b / scale, start, moved)
        return scale * (net.apply(params, x[:count]) - still[:count])

    path = flow(
        lambda moved: 0.5 * jnp.sum(weights * (outputs(moved, m) - y) ** 2),
        jax.tree.map(jnp.zeros_like, start),
        jnp.array([LAST]),
        "log",
        rtol=RTOL,
        atol=RTOL,
        floor=FLOOR,
    )
    return outputs(path.params, len(x)), path.settled


def network_theory(
    net: Mlp, networks: Networks
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return outputs at all inputs, ``(seeds, m + tests)`` each: of the linear model, and per 1/α three terms.

    These are what θ^I adds through the features in their span, what it adds outside of it, and ½ θ^FᵀF(x)θ^F.
    """

    def along(start: Params, x: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the Jacobian, ``(m + tests, p)``, and its derivative along v."""
        flat, unravel = ravel_pytree(start)
        jacobian = jax.jacrev(lambda row: net.apply(unravel(row), x))
        return jax.jvp(jacobian, (flat,), (v,))

    expand = kit.compiled(along)
    terms = []
    for seed, (x, y) in enumerate(zip(networks.x, networks.y, strict=True)):
        start = jax.tree.map(lambda leaf, i=seed: np.asarray(leaf)[i], networks.start)
        size = sum(leaf.size for leaf in jax.tree.leaves(start))
        jacobian = np.asarray(expand(start, x, np.zeros(size))[0])
        bend = lambda v, at=(start, x): np.asarray(expand(*at, v)[1])
        m = len(y)
        theory = first_order_flow(
            jacobian[:m].T, lambda v, bend=bend, m=m: bend(v)[:m], y, np.zeros(size)
        )
        terms.append(
            (
                jacobian @ theory.linear,
                jacobian @ theory.inside,
                jacobian @ theory.outside,
                bend(theory.linear) @ theory.linear / 2,
            )
        )
    linear, inside, outside, bent = map(np.array, zip(*terms, strict=True))
    return linear, inside, outside, bent


@dataclass(frozen=True)
class QuadraticPoint(kit.Point):
    """Where first-order theory is nearer to the end of the flow than the linear model, over ε and m."""

    epsilon: kit.Positive
    examples: kit.Count
    dimension: kit.Count
    seeds: kit.Seeds

    batched = ("epsilon",)
    diagram = {"epsilon": "log:2e-3:0.3:15", "examples": "2,4,6,8,10,12,14,16,18"}
    base = {"seeds": 8}
    labels = {"curvature": "log₁₀ of remainder / ε² ‖θ^F − θ₀‖"}
    contours = {"log_share_measured": (0.0, "no nearer than the linear model")}
    diagram_remarks = (
        "Shown is log₁₀ ‖θ_∞ − θ^F − εθ^I‖ / ‖εθ^I‖, the mean over random models with p = 30: where it is negative the "
        "first-order term helps.",
        "The dashed line is where Newton and Kantorovich's condition for the interpolation equations ends, with the "
        "edge 1 − √(m/p) of random features and forms for σ_min: the expansion cannot be trusted to its right.",
        "Flows that do not arrive, or leave to another interpolant, count with what they reached.",
    )

    def setting(self, key):
        return kit.compiled(
            lambda key: draw_models(key, self.seeds, self.dimension, self.examples)
        )(key)

    def predict(self, setting):
        theories = [model_theory(setting, seed) for seed in range(self.seeds)]
        return kit.Prediction(
            linear=("seed parameter", [theory.linear for theory in theories]),
            first=("seed parameter", [theory.inside + theory.outside for theory in theories]),
            start=("seed parameter", np.asarray(setting.start)),
        )

    def observe(self, setting, key):
        def follow(one: Models) -> tuple[jax.Array, jax.Array, jax.Array]:
            return follow_model(
                one.phi, one.forms, one.y, one.start, self.epsilon, 1.0, last=7.5, rtol=1e-8
            )

        _, end, arrived = jax.vmap(follow)(setting)
        return {"end": end, "arrived": arrived}

    def run_conditions(self, observed):
        yield flows_arrived(observed["arrived"])

    def judge(self, predicted, observed):
        first = self.epsilon * predicted["first"]
        beyond = np.linalg.norm(observed["end"] - predicted["linear"] - first, axis=-1)
        share = np.log10(beyond / np.linalg.norm(first, axis=-1))
        label = "log₁₀ of remainder / first-order term"
        yield bound("log_share", share, at_most=0.0, label=label)

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        first = self.epsilon * predicted["first"]
        beyond = np.linalg.norm(observed["end"] - predicted["linear"] - first, axis=-1)
        moved = np.linalg.norm(predicted["linear"] - predicted["start"], axis=-1)
        return {"curvature": float(np.log10(beyond / moved / self.epsilon**2).mean())}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"epsilon", "examples"}:
            return ()
        examples = np.linspace(1, self.dimension - 1, 200)
        share = examples / self.dimension
        # θ^F − θ_0 = Φ⁺y − Φ⁺Φθ_0: E tr(ΦΦᵀ)⁻¹ = m/(1 − m/p) from targets, m from the part of θ_0 that Φ sees
        step = np.sqrt(examples / (1 - share) + examples)
        # F(x_i)v has entries of variance ½/p for |v| = 1: the edge of such matrices, (m, p)
        lipschitz = (1 + np.sqrt(share)) / np.sqrt(2)
        epsilon = (1 - np.sqrt(share)) / (2 * lipschitz * step)  # εL‖θ^F − θ_0‖/σ_min = ½
        ends = (epsilon, examples) if x == "epsilon" else (examples, epsilon)
        return (kit.predicted_curve(*ends, "Newton–Kantorovich, h = ½"),)


def flows_arrived(arrived: np.ndarray) -> kit.Hypothesis:
    """Check that every flow has reached an interpolant, to residuals of 1e-8."""
    return kit.assume(
        "flows that arrived", float(np.mean(arrived)), "==", 1, "choose a smaller --epsilon"
    )
