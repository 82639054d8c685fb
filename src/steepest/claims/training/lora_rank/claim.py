"""With 1/√r scaling, a LoRA adapter's first SGD step changes outputs more the lower its rank r is.

In root mean square, the first step of an adapter BA of rank r changes outputs by γ²η√(r(r+1)a + rb) under SGD, and by
γη√(rc + r(r−1)e) under Adam. The factor γ multiplies the adapter, A starts from Gaussian weights and B from zeros, η is
the step size, and a, b, c and e are known from the inputs and errors of the batch. Under SGD with γ ∝ 1/√r, the change
is nearly the same at each rank above r* = b/a, an effective rank of the inputs. Under Adam with γ ∝ 1/r, the change is
nearly the same above an r* of its own. Below r* the change falls as r grows.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training.lora_rank import experiment, theory
from steepest.claims.training.lora_rank.experiment import DigitsLayer
from steepest.claims.training.lora_rank.point import LoraRankPoint
from steepest.claims.training.lora_rank.theory import Batch, Sizes

KINDS = ("white", "spread", "digits")
POWERS = (0.0, 1.0)  # of the variances of the first two kinds


class Setting(NamedTuple):
    """The batches of each kind of inputs, and inputs of other examples."""

    batches: tuple[Batch, ...]
    inputs_elsewhere: tuple[kit.Values, ...]
    digits: DigitsLayer


@kit.claim
class LoraRank(kit.Claim[Setting]):
    """Adapters of a linear layer on Gaussian inputs and in a ReLU network on digits, with SGD and Adam of optax."""

    ranks: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4, 8, 32),
        "r of the adapters",
        scope=kit.choices((1, 2, 4, 8, 32), (1, 3, 6, 16, 40), (2, 4, 10, 24)),
    )
    inputs: kit.Count = kit.param(48, "n of the layer", scope=kit.between(40, 64))
    outputs: kit.Count = kit.param(16, "outputs of the layer", scope=kit.between(12, 24))
    examples: kit.Count = kit.param(
        24, "m of the batch", unit="examples", scope=kit.between(16, 32)
    )
    draws: kit.Count = kit.param(2000, "draws of each adapter, a seed")
    seeds: kit.Seeds = kit.param(8, "groups of draws")

    kind = "theorem"
    says = {
        "a LoRA adapter's first SGD step changes outputs more the lower its rank r is": "sgd",
        "by γη√(rc + r(r−1)e) under Adam": "adam",
    }
    tiny = {"ranks": (1, 2, 4), "inputs": 10, "outputs": 4, "examples": 6, "draws": 20, "seeds": 3}
    full = {"draws": 4000}
    out_of_scope = {"ranks": (1, 100), "inputs": 48}
    precision = "float32"
    point = LoraRankPoint

    def axes(self):
        return {"kind": KINDS, "r": self.ranks}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        sizes = (self.inputs, self.outputs, self.examples)
        drawn = [experiment.drawn(rng, *sizes, power) for power in POWERS]
        elsewhere = [experiment.drawn(rng, *sizes, power).x for power in POWERS]
        digits = DigitsLayer(rng, *sizes)
        return Setting((*drawn, digits.batch()), (*elsewhere, digits.elsewhere), digits)

    def hypotheses(self, setting):
        yield kit.assume(
            "largest rank over inputs",
            max(self.ranks) / self.inputs,
            "<=",
            1,
            "more than n directions there are not: lower --ranks",
        )
        yield kit.assume("errors of digits", float(abs(setting.batches[-1].y).max()), ">", 0)

    def predict(self, setting):
        of_kinds = [theory.sizes(batch) for batch in setting.batches]
        rank = np.array(self.ranks, float)
        return kit.law(
            # outputs move ∝ γ² by descent, with γ = r^(−½), and ∝ γ by Adam, with γ = 1/r
            sgd=("kind r", [theory.by_descent(kind, rank) / rank**2 for kind in of_kinds]),
            adam=("kind r", [theory.by_adam(kind, rank) / rank**2 for kind in of_kinds]),
        )

    def observe(self, setting, key):
        risks = [*map(experiment.linear, setting.batches[:2]), setting.digits.risk]

        def changes(ranks: jax.Array, keys: jax.Array) -> list[dict[str, jax.Array]]:
            def of_seed(risk: Any, batch: Batch, other: kit.Values, key: jax.Array) -> Any:
                shape = (self.draws, max(self.ranks), self.inputs)
                down = jax.random.normal(key, shape) / self.inputs**0.5
                step = lambda down: experiment.first_steps(
                    risk, batch.x, other, self.outputs, ranks, down
                )
                return jax.tree.map(lambda values: values.mean(0), jax.vmap(step)(down))

            return [
                jax.lax.map(partial(of_seed, risk, batch, other), keys)
                for risk, batch, other in zip(
                    risks, setting.batches, setting.inputs_elsewhere, strict=True
                )
            ]

        keys = jax.random.split(key, self.seeds)
        measured = kit.compiled(changes)(jnp.asarray(self.ranks, jnp.float32), keys)
        names = ("sgd", "adam", "sgd_elsewhere", "adam_elsewhere")
        stacked = {
            name: np.stack([np.asarray(kind[name], float) for kind in measured], 1)
            for name in names
        }
        return kit.seen(**{name: ("seed kind r", values) for name, values in stacked.items()})

    def judge(self, law, seen):
        yield kit.follows(
            "sgd",
            law.sgd,
            seen.sgd,
            0.2,  # of the square; the interval takes 0.1 at rank one, whose changes are of fourth order in normals
            label="SGD with γ = 1/√r: mean square change of outputs",
        )
        yield kit.follows(
            "adam",
            law.adam,
            seen.adam,
            0.06,  # the interval takes 0.03
            label="Adam with γ = 1/r: mean square change of outputs",
        )

    def rivals(self, setting, law):
        of_kinds = [theory.sizes(batch) for batch in setting.batches]
        rank = np.array(self.ranks, float)
        last = max(self.ranks)
        at_ranks = lambda change: ("kind r", [change(sizes) / rank**2 for sizes in of_kinds])
        largest = lambda array: array.isel(r=-1, drop=True) + 0 * array

        def without(name: str) -> Any:
            return lambda sizes: theory.by_descent(sizes._replace(**{name: 0.0}), rank)

        def one_sign(sizes: Sizes) -> kit.Values:
            return theory.by_adam(sizes._replace(e=sizes.e * np.pi / 2), rank)

        yield kit.rival(
            "SGD with γ = 1/√r changes outputs alike at every rank",
            "γ ∝ 1/√r was chosen for this",
            id="same_at_every_rank",
            sgd=largest(law.sgd),
        )
        yield kit.rival(
            "Adam with γ = 1/r changes outputs alike at every rank",
            "γ ∝ 1/r was chosen for this",
            id="adam_alike",
            adam=largest(law.adam),
        )
        yield kit.rival(
            "the change grows like √r before γ",
            "the r terms are independent",
            sgd=largest(law.sgd) * last / law.r,
            adam=largest(law.adam) * last / law.r,
        )
        yield kit.rival("SGD without b", "AᵀA is its mean", sgd=at_ranks(without("b")))
        yield kit.rival("Adam without 2/π", "a sign is worth its gradient", adam=at_ranks(one_sign))

    def controls(self, seen):
        yield kit.control(
            "the change at inputs of other examples",
            "a and e are of the batch's own inputs",
            sgd=seen.sgd_elsewhere,
            adam=seen.adam_elsewhere,
        )

    def figure(self, law, seen, rivals):
        largest = lambda array: array.isel(r=-1, drop=True)
        panels = []
        for name, title in (
            ("sgd", "SGD with γ = 1/√r: alike only above r*"),
            ("adam", "Adam with γ = 1/r: the same"),
        ):
            panels.append(
                kit.curves(
                    title,
                    law[name] / largest(law[name]),
                    seen[name] / largest(law[name]),
                    over="r",
                    by="kind",
                    x="rank r",
                    y="mean square change / mean square change at the largest rank",
                    log="xy",
                )
            )
        return tuple(panels)
