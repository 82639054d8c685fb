"""Which interpolant a diagonal network ends at, over the scale of its start and the sparsity of the truth."""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from steepest.arrays import Prediction
from steepest.claims._cell import Cell, Seen
from steepest.judging import Check, Hypothesis, bound, equal, require
from steepest.margins import min_norm_interpolation
from steepest.measures import relative_distance
from steepest.types import Key

RESOLVED = 1e-4  # the distance to which the flow is compared with the program; below it all distances are one
ENDS = {"sparse": "ℓ1", "weighted": "weighted ℓ2"}
RATIO = "log₁₀ of distance to ℓ1 / distance to weighted ℓ2"


def limits(
    x: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], shape: Float[np.ndarray, " d"]
) -> tuple[np.ndarray, np.ndarray]:
    """The interpolants of least ℓ1 norm and of least ℓ2 norm with weights 1/θ₀², kept: no α changes them."""
    return _limits(x.tobytes(), y.tobytes(), shape.tobytes(), str(x.dtype), len(y))


@lru_cache(4096)
def _limits(x: bytes, y: bytes, shape: bytes, dtype: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    inputs, targets, start = (np.frombuffer(each, dtype) for each in (x, y, shape))
    inputs = inputs.reshape(rows, -1)
    found = [min_norm_interpolation(inputs, targets, norm).beta for norm in ("l1", start**-2.0)]
    for beta in found:
        beta.setflags(write=False)
    return found[0], found[1]


class DiagonalDiagram(Cell):
    """Distances of the flow's end to the ℓ1 and to the weighted ℓ2 solution, over α and the number of nonzeros."""

    batched = ("alphas", "nonzero")
    diagram = {"alphas": "log:1e-3:1e2:16", "nonzero": "1,2,3,4,6,8,10"}
    base = {"alphas": (0.1,)}
    contours = {f"{RATIO} predicted": (0.0, "as far from ℓ1 as from weighted ℓ2")}
    remarks = (
        "Distances are relative; those below 10⁻⁴, to which flow and program are compared, count as 10⁻⁴.",
        "The line is where the program's solution is as far from the ℓ1 as from the weighted ℓ2 solution, in the "
        "geometric mean over the regression problems.",
    )

    def setting(self, key: Key) -> Any:
        return self.claim.setting(key)

    def predict(self, setting: Any) -> Prediction:
        return self.claim.predict(setting)

    def observe(self, setting: Any, key: Key) -> dict[str, Any]:
        beta, risk, _ = self.claim.ends(setting, key)
        return {"beta": beta, "risk": risk, "rank": jax.vmap(jnp.linalg.matrix_rank)(setting.x)}

    def premises(self, observed: Seen) -> list[Hypothesis]:
        rank = observed["rank"].min()
        return [
            require("smallest rank of X", rank, ">=", self.claim.n, "choose --n at most --dimension"),
            *self.claim.premises(observed),
        ]

    def judge(self, predicted: Prediction, observed: Seen) -> list[Check]:
        beta, program = observed["beta"][:, 0], predicted["beta"][:, 0]
        apart = relative_distance(beta, program)
        checks = [bound("distance to the program", apart, at_most=RESOLVED, over="each")]
        logs = {end: [log_distance(each, predicted[end]) for each in (program, beta)] for end in ENDS}
        checks += [paired(f"log₁₀ distance to {name}", *logs[end]) for end, name in ENDS.items()]
        return [*checks, paired(RATIO, *np.subtract(logs["sparse"], logs["weighted"]))]


def log_distance(beta: Float[np.ndarray, "seeds d"], end: Float[np.ndarray, "seeds d"]) -> np.ndarray:
    """The logarithm (base ten) of the relative distance, shape ``(seeds,)``."""
    return np.log10(np.maximum(relative_distance(beta, end), RESOLVED))


def paired(name: str, predicted: Float[np.ndarray, " seeds"], measured: Float[np.ndarray, " seeds"]) -> Check:
    """Equal means to 0.05, of problems that are the same on both sides: their scatter is none of the disagreement."""
    centre = predicted.mean()
    return equal(name, centre, centre + (measured - predicted), 0.05, absolute=True)
