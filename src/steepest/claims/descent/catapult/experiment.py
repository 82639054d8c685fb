"""One point of the catapult: a two-layer linear network at one step size and width."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import Trajectory, descend
from steepest.kernels import ntk_top
from steepest.kit.points import Arrays, bound, equal
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params

DIVERGED = 1e12  # loss from which descent counts as diverged
LAZY_STEP = 1.5  # γλ₀ of ReLU networks whose test errors are compared
THROWN_STEP = 3.0  # and of those that are thrown
TEST_STEPS = 100  # of both, or as many in the time η · steps of the first


def linear_network(dimension: int, width: int) -> Mlp:
    """Return the network v·(U x)/√(m d)."""
    return mlp((dimension, width, 1), "linear", parameterized="ntk", bias=False)


def output_and_ntk(
    net: Mlp, params: Params, scale: jax.Array | float = 1.0
) -> tuple[jax.Array, jax.Array]:
    """Return the output at the one example, x = (1, …, 1), times a scale, and its tangent kernel ‖∇z‖²."""
    x = jnp.ones((1, net.widths[0]))
    output, slope = jax.value_and_grad(lambda p: scale * net.apply(p, x)[0])(params)
    return output, optax.tree.norm(slope, squared=True)


def descend_linear(
    net: Mlp,
    start: Params,
    multiple: jax.Array | float,
    steps: int,
    record: int = 1,
    scale: jax.Array | float = 1.0,
    target: float = 0.0,
) -> Trajectory:
    """Descend on ½(z − y)², y = target, at the step size γ = multiple/λ₀, and record γλ."""
    lr = multiple / output_and_ntk(net, start, scale)[1]
    return descend(
        lambda params: 0.5 * (output_and_ntk(net, params, scale)[0] - target) ** 2,
        start,
        optax.sgd(lr),
        steps,
        record=record,
        observe={"steepness": lambda params: lr * output_and_ntk(net, params, scale)[1]},
        ceiling=DIVERGED,
    )


def two_layers(noise: jax.Array) -> Params:
    """Return initial weights from normal numbers ``(…, width, dimension + 1)``: U, and v as the last column."""
    return ({"w": noise[..., :-1]}, {"w": jnp.swapaxes(noise[..., -1:], -1, -2)})


def risks_over_widths(
    noise: jax.Array, widths: tuple[int, ...], multiple: float, steps: int
) -> jax.Array:
    """Return the risk at every step of networks of several widths, ``(widths, seeds, steps + 1)``.

    All are the widest network with zeros in place of the neurons beyond their width, which no step changes: one
    program then serves every width m, with √(M/m) to turn the widest network's 1/√(M d) into 1/√(m d).

    Args:
        noise: normal numbers, shape ``(seeds, widest or more, dimension + 1)``; narrow networks are the first neurons
            of wide ones.
        widths: m of each.
        multiple: γλ₀.
        steps: of each descent.
    """
    widest = max(widths)
    net = linear_network(noise.shape[-1] - 1, widest)

    def over_seeds(width: jax.Array) -> jax.Array:
        present = jnp.arange(widest)[:, None] < width
        start = two_layers(jnp.where(present, noise[:, :widest], 0.0))
        scale = jnp.sqrt(widest / width)
        one = lambda start: descend_linear(net, start, multiple, steps, scale=scale).risk
        return jax.lax.map(one, start)

    return jax.lax.map(over_seeds, jnp.array(widths, float))


def relu_outputs(u: kit.Values, v: kit.Values, x: kit.Values) -> kit.Values:
    """Return the outputs √(2/m) v·relu(√(2/d) U x) of several networks, ``(networks, images)``.

    Args:
        u: first layers, shape ``(networks, m, d)``.
        v: second layers, shape ``(networks, m)``.
        x: images of each network, shape ``(networks, images, d)``.
    """
    hidden = np.maximum(np.float32((2 / x.shape[2]) ** 0.5) * x @ u.swapaxes(1, 2), 0)
    return np.float32((2 / v.shape[1]) ** 0.5) * (hidden @ v[..., None])[..., 0]


def relu_slopes(
    u: kit.Values, v: kit.Values, x: kit.Values, y: kit.Values
) -> tuple[kit.Values, kit.Values]:
    """Return the gradients of ½ mean (z − y)² by both layers, by hand; the arguments are as above."""
    inner = np.float32((2 / x.shape[2]) ** 0.5)
    outer = np.float32((2 / v.shape[1]) ** 0.5)
    before = inner * x @ u.swapaxes(1, 2)
    active = np.maximum(before, 0)
    # derivative with respect to Σ_j v_j relu(·): the residual over n, times √(2/m)
    error = (outer * (active @ v[..., None])[..., 0] - y) * outer / np.float32(x.shape[1])
    back = ((before > 0) * error[..., None]).swapaxes(1, 2) @ x
    return inner * back * v[..., None], (error[:, None] @ active)[:, 0]


def relu_tops(u: kit.Values, v: kit.Values, x: kit.Values) -> kit.Values:
    """Return the largest eigenvalue of the tangent kernel over the number of images, ``(networks,)``."""
    inner = 2 / x.shape[2]
    outer = 2 / v.shape[1]
    before = inner**0.5 * x @ u.swapaxes(1, 2)
    active = np.maximum(before, 0)
    gates = (before > 0) * v[:, None]
    gram = lambda rows: rows @ rows.swapaxes(1, 2)
    # Θ = (2/m)[Σ_j σ_jσ_j' + (2/d) x·x' Σ_j v_j² g_jg_j'], the parts of v and of U
    kernel = outer * (gram(active) + inner * gram(x) * gram(gates))
    return np.linalg.eigvalsh(kernel / x.shape[1])[:, -1]


def errors_of_steps(
    rng: np.random.Generator,
    images: kit.Values,
    labels: kit.Values,
    shape: tuple[int, int, int],
    *,
    silent: bool = False,
) -> tuple[kit.Values, kit.Values]:
    """Train ReLU networks on images that are drawn, and return shares of the others that they get wrong.

    Lazy networks, ``(networks,)``, and catapulted ones of the same start after as many steps, and after as long a time
    η · steps, ``(networks, 2)``.

    Args:
        rng: of images and starts.
        images: all of them, shape ``(n, d)``.
        labels: ±1, shape ``(n,)``.
        shape: networks, their width, and training images of each.
        silent: whether neurons start in pairs of opposite output weights, so that networks put out nothing.
    """
    networks, width, count = shape
    order = np.stack([rng.permutation(len(images)) for _ in range(networks)])
    images = images.astype(np.float32)[order]
    labels = labels.astype(np.float32)[order]
    x = images[:, :count]
    y = labels[:, :count]
    start_u = rng.standard_normal((networks, width, x.shape[2]), np.float32)
    start_v = rng.standard_normal((networks, width), np.float32)
    if silent:
        start_u[:, width // 2 :] = start_u[:, : width // 2]
        start_v[:, width // 2 :] = -start_v[:, : width // 2]
    tops = relu_tops(start_u, start_v, x)

    def wrong(multiple: float, reads: tuple[int, ...]) -> kit.Values:
        u = start_u.copy()
        v = start_v.copy()
        lr = (multiple / tops).astype(np.float32)
        shares = {}
        for step in range(1, max(reads) + 1):
            by_u, by_v = relu_slopes(u, v, x, y)
            u -= lr[:, None, None] * by_u
            v -= lr[:, None] * by_v
            if step in reads:
                outputs = relu_outputs(u, v, images[:, count:])
                # what is not finite is wrong too
                shares[step] = 1 - (outputs * labels[:, count:] > 0).mean(1)
        return np.stack([shares[step] for step in reads], 1)

    in_time = round(TEST_STEPS * LAZY_STEP / THROWN_STEP)
    with np.errstate(over="ignore", invalid="ignore"):  # narrow networks may diverge
        return wrong(LAZY_STEP, (TEST_STEPS,))[:, 0], wrong(THROWN_STEP, (TEST_STEPS, in_time))


@dataclass(frozen=True)
class CatapultPoint(kit.Point):
    """The phase over γλ₀ and width: 0 lazy (the loss never exceeds its start), 1 catapult, 2 divergent."""

    multiple: kit.Positive
    width: kit.Count
    dimension: kit.Count
    steps: kit.Count
    seeds: kit.Seeds

    batched = ("multiple",)
    diagram = {"multiple": "linear:0.5:5:37", "width": "log:8:2048:9"}
    base = {"steps": 300, "seeds": 10}
    labels = {"log_growth": "log₁₀ of largest loss / loss at the start"}
    diagram_remarks = (
        "Each seed counts 0 if the loss never exceeds its start, 1 if it does and descent converges, 2 if it diverges; "
        "shown is the mean over seeds. The theorem is for m → ∞: narrow networks may leave it.",
    )

    def predict(self, setting):
        phase = float(self.multiple > 2) + float(self.multiple > 4)
        return kit.Prediction(phase=phase, flatness=2.0)

    def observe(self, setting, key):
        return jax.vmap(self.outcome)(kit.keys(key, self.seeds))

    def outcome(self, key: kit.Key) -> Mapping[str, jax.Array]:
        """Return how one network's descent ends: its largest loss, the γλ at its end, whether it diverged."""
        net = linear_network(self.dimension, self.width)
        x = jnp.ones((1, self.dimension))
        start = net.init(key)
        lr = self.multiple / ntk_top(net.apply, start, x)
        risk = lambda params: 0.5 * jnp.mean(net.apply(params, x) ** 2)
        path = descend(risk, start, optax.sgd(lr), self.steps, ceiling=DIVERGED)
        return {
            "growth": jnp.nanmax(path.risk) / path.risk[0],
            "flatness": lr * ntk_top(net.apply, path.params, x),
            "diverged": path.diverged,
        }

    def run_conditions(self, observed):
        distance = min(abs(self.multiple - line) for line in (2, 4))
        advice = "the theorem says nothing on the lines"
        yield kit.assume("distance of γλ₀ from 2 and 4", distance, ">", 0, advice)

    def judge(self, predicted, observed):
        diverged = observed["diverged"]
        phase = np.where(diverged, 2.0, np.where(observed["growth"] > 1, 1.0, 0.0))
        checks = [equal("phase", predicted["phase"], phase, (-0.25, 0.25), absolute=True)]
        if predicted["phase"] < 2:
            end = np.where(
                diverged, np.nan, observed["flatness"]
            )  # there is no end where it diverged
            limit = float(predicted["flatness"])
            checks.append(
                bound("final_flatness", end, at_most=limit, aggregate="all", label="γλ at the end")
            )
        return checks

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        growth = np.log10(observed["growth"][~observed["diverged"]])
        return {"log_growth": float(growth.mean()) if growth.size else float("nan")}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"multiple", "width"}:
            return ()
        widths = np.array([1.0, 1e6])
        curves = []
        for multiple in (2.0, 4.0):
            line = np.full(2, multiple)
            ends = (line, widths) if x == "multiple" else (widths, line)
            curves.append(kit.predicted_curve(*ends, f"γλ₀ = {multiple:g}"))
        return tuple(curves)
