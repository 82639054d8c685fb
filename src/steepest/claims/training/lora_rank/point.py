"""One point of the diagram of lora-rank: adapters of one rank on a batch of some white inputs."""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training.lora_rank import experiment, theory
from steepest.kit.points import equal

ROOM = 24
"""The largest rank that the arrays of a point hold."""


@dataclass(frozen=True)
class LoraRankPoint(kit.Point):
    """How much the first step changes outputs, for one rank and one number of examples."""

    ranks: Annotated[int, kit.Within(1, ROOM)]
    examples: kit.Count
    inputs: kit.Count
    outputs: kit.Count
    draws: kit.Count
    seeds: kit.Seeds

    precision = "float32"
    batched = ("ranks",)
    diagram = {"ranks": "log:1:24:10", "examples": "log:1:64:7"}
    base = {"inputs": 16, "outputs": 3, "draws": 1000}
    diagram_remarks = (
        "White inputs of 16 dimensions. Their effective rank grows with the examples of the batch, from 1 to at most "
        "16. Right of the line changes are the same at each rank; left of it smaller ranks change outputs more.",
        "In units of the change at large ranks. More ranks than dimensions are out of range.",
    )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return experiment.drawn(rng, self.inputs, self.outputs, self.examples, 0.0)

    def hypotheses(self, setting):
        yield kit.assume("rank over inputs", self.ranks / self.inputs, "<=", 1, "lower --ranks")

    def predict(self, setting):
        sizes = theory.sizes(setting)
        rank = float(self.ranks)
        return kit.Prediction(
            sgd=theory.by_descent(sizes, rank) / rank**2 / sizes.a,
            adam=theory.by_adam(sizes, rank) / rank**2 / sizes.e,
            units=("optimizer", [sizes.a, sizes.e]),
        )

    def observe(self, setting, key):
        risk = experiment.linear(setting)
        ranks = jnp.reshape(jnp.asarray(self.ranks, float), 1)

        def of_seed(key: jax.Array) -> dict[str, jax.Array]:
            shape = (self.draws, ROOM, self.inputs)
            down = jax.random.normal(key, shape) / self.inputs**0.5

            def step(down: jax.Array) -> dict[str, jax.Array]:
                x = setting.x
                return experiment.first_steps(risk, x, x[:, :1], self.outputs, ranks, down)

            changes = jax.vmap(step)(down)
            return {name: changes[name].mean() for name in ("sgd", "adam")}

        return jax.lax.map(of_seed, kit.keys(key, self.seeds))

    def judge(self, predicted, observed):
        yield equal(
            "sgd",
            predicted["sgd"],
            observed["sgd"] / predicted["units"][0],
            0.2,  # the interval takes half of it at rank one
            label="SGD, γ = 1/√r: mean square change",
        )
        yield equal(
            "adam",
            predicted["adam"],
            observed["adam"] / predicted["units"][1],
            0.06,  # the interval takes half of it
            label="Adam, γ = 1/r: mean square change",
        )

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"ranks", "examples"}:
            return ()
        examples = np.geomspace(1, 1000, 200)
        # of white inputs Γ has the trace m, and Γ² in the mean m(1 + m/n)
        effective = examples / (1 + examples / self.inputs)
        ends = (effective, examples) if x == "ranks" else (examples, effective)
        return (kit.predicted_curve(*ends, "r = r*, about m/(1 + m/n)"),)
