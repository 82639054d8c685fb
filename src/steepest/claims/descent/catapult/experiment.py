"""Two-layer linear networks on one example: their descent at one step size and width, and a point of the diagram."""

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
        noise: normal numbers, ``(seeds, M or more, dimension + 1)``; narrow networks are the first of its neurons.
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
        yield kit.assume(
            "distance of γλ₀ from 2 and 4", distance, ">", 0, "no theorem covers the lines"
        )

    def judge(self, predicted, observed):
        diverged = observed["diverged"]
        phase = np.where(diverged, 2.0, np.where(observed["growth"] > 1, 1.0, 0.0))
        yield equal("phase", predicted["phase"], phase, (-0.25, 0.25), absolute=True)
        if predicted["phase"] < 2:
            end = np.where(diverged, np.nan, observed["flatness"])  # no end where it diverged
            most = float(predicted["flatness"])
            label = "γλ at the end"
            yield bound("final_flatness", end, at_most=most, aggregate="all", label=label)

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        growth = np.log10(observed["growth"][~observed["diverged"]])
        return {"log_growth": float(growth.mean()) if growth.size else float("nan")}

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"multiple", "width"}:
            return ()
        ends = lambda line: {"multiple": np.full(2, line), "width": np.array([1.0, 1e6])}
        return tuple(
            kit.predicted_curve(ends(line)[x], ends(line)[y], f"γλ₀ = {line:g}")
            for line in (2.0, 4.0)
        )
