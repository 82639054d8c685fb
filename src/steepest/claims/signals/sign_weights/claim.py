"""Random signs in place of Gaussian weights make the outputs of ReLU networks more nearly Gaussian.

With two hidden layers of n neurons, the excess kurtosis of an output is 18/n − 9/n² under signs beyond the first layer,
and 30/n + 75/n² under Gaussian weights. Both fall like 1/n. So the limit of wide networks does not depend on the law of
the weights, but the first correction does.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.signals._three_inputs import three_images

CHUNK = 1000  # networks drawn at once


@kit.claim
class SignWeights(kit.Claim[kit.Values]):
    """ReLU networks without biases on three images of digits, whose weights beyond the first layer are signs."""

    widths: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32),
        "width n of every hidden layer",
        unit="neurons",
        scope=kit.choices((8, 16, 32), (8, 24, 48), why="narrower ones are off by higher orders"),
    )
    hidden: kit.Count = kit.param(
        2,
        "hidden layers L",
        unit="layers",
        scope=kit.choices(2, 3, why="one layer is off by too little, more need wider ones"),
    )
    networks: Annotated[int, kit.Within(2)] = kit.param(15_000, "networks of each width in a group")
    outputs: kit.Count = kit.param(8, "their outputs", unit="neurons")
    seeds: Annotated[int, kit.Within(4)] = kit.param(10, "groups of networks")

    kind = "theorem"
    says = {"make the outputs of ReLU networks more nearly Gaussian": "sign_kurtosis"}
    tiny = {"networks": 50, "seeds": 4}
    full = {"networks": 40_000}
    out_of_scope = {"hidden": 12}

    def axes(self):
        return {"width": self.widths}

    def setting(self, key):
        return three_images()

    def hypotheses(self, setting):
        yield kit.assume(
            "hidden layers / smallest width",
            self.hidden / min(self.widths),
            "<=",
            0.5,
            "samples do not give the fourth moment beyond: choose wider --widths",
        )

    def predict(self, setting):
        return kit.law(sign_kurtosis=("width", [of_signs(n, self.hidden) for n in self.widths]))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)

        def of(n: int, signs: bool) -> np.ndarray:
            shape = n, self.hidden, self.outputs
            drawn = draw_outputs(setting, shape, self.seeds * self.networks, rng, signs=signs)
            return _excess_kurtosis(drawn.reshape(self.seeds, self.networks, 3, self.outputs))

        names = {"sign_kurtosis": True, "gaussian_kurtosis": False}
        columns = {name: [of(n, signs) for n in self.widths] for name, signs in names.items()}
        return kit.seen(**{n: ("seed width", np.stack(column, 1)) for n, column in columns.items()})

    def judge(self, law, seen):
        yield kit.follows(
            "sign_kurtosis",
            law.sign_kurtosis,
            seen.sign_kurtosis,
            0.3,  # at 32 neurons the kurtosis is a half, and known to 0.1
            label="ReLU, weights that are signs: excess kurtosis",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "signs have the kurtosis of Gaussian weights",
            "the limit does not depend on the law of the weights",
            id="gaussian_kurtosis",
            # E Σ²/(E Σ)² = Π (1 + 5/n_l) under Gaussian weights, as E σ⁴/(E σ²)² − 1 = 5 for ReLU
            sign_kurtosis=3 * ((1 + 5 / law.width) ** self.hidden - 1),
        )

    def controls(self, seen):
        yield kit.control(
            "networks with Gaussian matrices in the place of signs",
            "their fourth moment is 3",
            id="gaussian_weights",
            sign_kurtosis=seen.gaussian_kurtosis,
        )


def of_signs(n: int, hidden: int) -> float:
    """Return the exact excess kurtosis of a ReLU network without biases whose weights beyond the first layer are signs.

    Every z is symmetric, so that with C_W = 2 and K = 1 in all layers 2 E σ(z)² = E z² and 2 E σ(z)⁴ = E z⁴. With
    m = E Σ² and q = E z⁴ a layer does ``m ← (2 q + (n − 1) m)/n`` and ``q ← 3 m − 4 q/n``.
    """
    m = 1.0
    q = 3.0
    for _ in range(hidden):
        features = 2 * q  # 4 E σ⁴
        # E Σ²: n terms 4 E σ⁴, and n(n − 1) pairs 4 E σ_i²σ_j² = E z_i²z_j² = E Σ² before, over n²
        m = (features + (n - 1) * m) / n
        q = 3 * m - 2 * features / n  # E(Σ s_j a_j)⁴ = 3 (Σ a_j²)² − 2 Σ a_j⁴ for signs s
    return q - 3


def draw_outputs(
    inputs: kit.Values,
    shape: tuple[int, int, int],
    count: int,
    rng: np.random.Generator,
    *,
    signs: bool,
) -> np.ndarray:
    """Draw outputs of networks with matrices of signs or of Gaussians, ``(networks, 3, outputs)``.

    The first layer is Gaussian, as 64 pixels are no limit; there are no biases, and C_W = 2.
    """
    width, hidden, outputs = shape
    # the first layer is N(0, K) at its neurons, and needs no matrix
    root = np.linalg.cholesky(2 * inputs @ inputs.T / inputs.shape[1]).astype(np.float32)
    chunks = []
    for first in range(0, count, CHUNK):
        size = min(CHUNK, count - first)
        z = root @ rng.standard_normal((size, 3, width), np.float32)
        for fan_out in (*[width] * (hidden - 1), outputs):
            matrix = size, width, fan_out
            weights = _draw_signs(rng, matrix) if signs else rng.standard_normal(matrix, np.float32)
            z = np.float32(np.sqrt(2 / width)) * np.maximum(z, 0) @ weights
        chunks.append(z)
    return np.concatenate(chunks).astype(float)


def _draw_signs(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    """Draw independent signs ±1, eight from every random byte."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8))[:size]
    return 2 * bits.reshape(shape).astype(np.float32) - 1


def _excess_kurtosis(outputs: np.ndarray) -> np.ndarray:
    """Return the excess kurtosis of every group, mean over inputs, from ``(groups, networks, 3, outputs)``."""
    second = (outputs**2).mean((1, 3))
    fourth = (outputs**4).mean((1, 3))
    return (fourth / second**2 - 3).mean(-1)
