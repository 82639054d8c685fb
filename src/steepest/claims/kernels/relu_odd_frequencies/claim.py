"""Without biases, a ReLU network's tangent kernel on the circle has no odd frequency above one.

A network with one hidden layer is then a linear function plus an even one, since relu(z) = z/2 + |z|/2. Its tangent
kernel has the Fourier coefficients λ_k ∝ (k² + 3)/(k² − 1)² for even frequencies k, and λ_k = 0 for odd k ≥ 3. Such a
network never learns these odd frequencies.
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Values

EVEN = (2, 4, 6, 8, 10)
"""Frequencies at which networks are measured."""
ODD = (3, 5, 7, 9)
POINTS = 40  # equally spaced, even: then odd frequencies are folded on odd ones only


@kit.claim
class ReluOddFrequencies(kit.Claim[None]):
    """Tangent kernels of ReLU networks with one hidden layer, NTK parameterization, at finite width."""

    width: kit.Count = kit.param(
        1024, "n", unit="neurons", scope=kit.between(1024, 1536, "the theorem is for wide networks")
    )
    seeds: kit.Seeds = kit.param(20, "initial networks")

    kind = "theorem"
    says = {
        "has no odd frequency above one": "relu_odd",
        "λ_k ∝ (k² + 3)/(k² − 1)² for even frequencies k": "relu",
    }
    tiny = {"width": 128, "seeds": 4}
    full = {"width": 4096, "seeds": 60}
    out_of_scope = {"width": 32}

    def axes(self):
        return {"frequency": EVEN}

    def hypotheses(self, setting):
        yield kit.assume("width", self.width, ">=", 128, "the kernel is a mean over neurons")

    def predict(self, setting):
        return kit.law(relu=("frequency", relu_spectrum(1.0)[list(EVEN)]))

    def observe(self, setting, key):
        plain, biased = (spectrum / spectrum[:, :1] for spectrum in self._spectra(key))
        return kit.seen(
            relu=("seed frequency", plain[:, list(EVEN)]),
            relu_odd=("seed odd", plain[:, list(ODD)]),
            biased=("seed frequency", biased[:, list(EVEN)]),
            biased_odd=("seed odd", biased[:, list(ODD)]),
        )

    def _spectra(self, key: kit.Key) -> list[Values]:
        """Return v_k · Θ_n v_k at frequencies 0 … 10 for networks without and with biases."""
        angles = 2 * np.pi * np.arange(POINTS) / POINTS
        x = np.stack([np.cos(angles), np.sin(angles)], 1)
        modes = np.cos(np.outer(angles, np.arange(max(EVEN) + 1)))
        modes /= np.linalg.norm(modes, axis=0)
        sizes = (2, self.width, 1)
        nets = [mlp(sizes, "relu", parameterized="ntk", c_w=2.0, bias=b) for b in (False, True)]

        def one(net: Mlp, key: kit.Key) -> jax.Array:
            outputs = lambda params: modes.T @ net.apply(params, jnp.asarray(x))
            jacobian = jax.jacrev(outputs)(net.init(key))
            # v_k·Θv_k = ‖∂(v_k·f)/∂θ‖²
            squares = [
                (leaf.reshape(modes.shape[1], -1) ** 2).sum(1) for leaf in jax.tree.leaves(jacobian)
            ]
            return jnp.stack(squares).sum(0)

        def every(key: kit.Key) -> list[jax.Array]:
            seeds = kit.keys(key, self.seeds)
            return [jax.lax.map(lambda k, net=net: one(net, k), seeds) for net in nets]

        return [np.asarray(spectrum) for spectrum in kit.compiled(every)(key)]

    def judge(self, law, seen):
        # a mean over n neurons, off by some √(1/n), 3 % at n = 1024, and more where λ_k is small beside the others
        yield kit.follows("relu", law.relu, seen.relu, 0.12, label="ReLU without biases: λ_k / λ_0")
        yield kit.agrees(
            "relu_odd",
            abs(seen.relu_odd),
            1e-10,
            label="ReLU without biases: λ_k / λ_0 for odd k ≥ 3",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "ReLU: the last layer's kernel, λ_k ∝ k⁻⁴",
            "the other kernel of a wide network",
            relu=("frequency", relu_spectrum(0.0)[list(EVEN)]),
        )
        yield kit.rival(
            "ReLU: λ_k ∝ k⁻² from k = 2 on",
            "true for large k",
            relu=4 * law.relu[0] / law.frequency**2.0,
        )

    def controls(self, seen):
        yield kit.control(
            "ReLU networks with biases",
            "the kinks no longer come in antipodal pairs",
            relu=seen.biased,
            relu_odd=seen.biased_odd,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Even frequencies fall like k⁻² in the end",
            law.relu,
            seen.relu,
            over="frequency",
            x="frequency k",
            y="λ_k / λ_0",
            rivals={"k⁻⁴": rivals["relu_the_last_layer_s_kernel_lamda_k_k_4"].relu},
            log="xy",
        )


def relu_spectrum(first: float) -> Values:
    """Return λ_k/λ_0, k = 0 … 10, of the kernel of ReLU networks without biases on POINTS points; zero for odd k ≥ 3.

    On the whole circle it is ∝ ∫ cos kθ [sin θ + (1 + first) (π − θ) cos θ] dθ over 0 … π. The first layer's weights
    add the last term: ``first`` is 1 for the tangent kernel and 0 where only the last layer is trained.
    """
    k = np.arange(1000 * POINTS)
    even = k % 2 == 0
    # ∫ cos kθ sin θ dθ = 2/(1 − k²) for even k, zero for odd ones
    of_sine = np.where(even, 2 / np.where(even, 1.0 - k**2, 1), 0.0)
    # ∫ (π − θ) cos mθ = 2/m² for odd m, 0 for even m, but π²/2 for m = 0
    below = np.abs(k - 1)
    triangle = lambda m: np.where(m % 2 == 1, 2 / np.maximum(m, 1.0) ** 2, (m == 0) * np.pi**2 / 2)
    # cos kθ cos θ = ½ [cos (k + 1)θ + cos (k − 1)θ]
    spectrum = of_sine + (1 + first) * (triangle(k + 1) + triangle(below)) / 2
    # on equally spaced points k cannot be told from aPOINTS ± k
    shown = np.arange(max(EVEN) + 1)
    turns = POINTS * np.arange(1, 999)[:, None]
    folded = spectrum[shown] + (spectrum[turns - shown] + spectrum[turns + shown]).sum(0)
    return folded / folded[0]
