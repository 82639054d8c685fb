"""The least weights on n random neurons that fit labels y have the squared norm yᵀ(E K)⁻¹y as n grows.

Features are divided by √n, and E K is the expected kernel of the neurons. The square comes from above, in the mean over
networks. So a ball of weights makes a ball of functions that grows with the width, but not without end. For Gaussian
features and m inputs the mean is yᵀ(E K)⁻¹y n/(n − m − 1) exactly.
"""

import jax
import numpy as np

from steepest import kit
from steepest.claims.kernels._bounded_neurons import SETS, BoundedNeurons, Setting
from steepest.claims.kernels.kernel_ball.experiment import least_weights
from steepest.claims.kernels.kernel_ball.theory import least_weights_law
from steepest.nn.activations import activation
from steepest.nn.types import Values

BALL = (2.5, 4, 8, 16)  # neurons for each input
IMAGES = 128  # that are drawn; the first of them are fitted


@kit.claim
class KernelBall(BoundedNeurons):
    """Random hidden layers on orthonormal inputs and on digits of unit length, and labels of digits."""

    inputs: kit.Count = kit.param(16, "m", scope=kit.between(12, 20))
    fits: kit.Seeds = kit.param(2000, "networks")

    kind = "limit"
    says = {"have the squared norm yᵀ(E K)⁻¹y as n grows": ("ball", "ball_digits")}
    tiny = {"inputs": 4, "fits": 20}
    full = {"fits": 10_000}
    out_of_scope = {"activation": "relu"}

    @property
    def neurons(self) -> tuple[int, ...]:
        """Return the even numbers of neurons on which least weights are sought."""
        return tuple(2 * round(ratio * self.inputs / 2) for ratio in BALL)

    def axes(self):
        return {"set": SETS, "neurons": self.neurons}

    def setting(self, key):
        return self.draw(key, max(IMAGES, self.inputs))

    def predict(self, setting):
        m = self.inputs
        neurons = np.array(self.neurons)
        second, fourth = self.moments()
        excesses = (fourth / second**2 - 3, 0.0)  # features of digits are not independent
        fitted = [
            least_weights_law(kernel[:m, :m], setting.y[:m], neurons, excess)
            for kernel, excess in zip(setting.expected, excesses, strict=True)
        ]
        return kit.law(least=("set neurons", fitted))

    def observe(self, setting, key):
        rng = kit.numpy_generator(jax.random.split(key, 5)[4])
        return kit.seen(
            least=("set network neurons", self.least(setting, rng)),
            least_of_pairs=("set network neurons", self.least(setting, rng, copies=2)),
        )

    def least(self, setting: Setting, rng: np.random.Generator, copies: int = 1) -> list[Values]:
        """Return the square of the least weights that fit the labels, on each set, ``(networks, neurons)``."""
        m = self.inputs
        sigma = kit.compiled(activation(self.activation).function)
        return [
            least_weights(sigma, x[:m], setting.y[:m], self.neurons, self.fits, rng, copies)
            for x in setting.inputs
        ]

    def judge(self, law, seen):
        orthonormal, images = SETS
        of = lambda array, name: array.sel(set=name, drop=True)
        yield kit.follows(
            "ball",
            of(law.least, orthonormal),
            of(seen.least, orthonormal),
            0.05,  # the interval is 2 %, the next order of the kurtosis 1 %
            label="orthonormal inputs: least weights that fit, squared",
        )
        yield kit.follows(
            "ball_digits",
            of(law.least, images),
            of(seen.least, images),
            (0.93, 1.25),  # features that are not Gaussian have heavier tails together
            label="digits: least weights that fit, squared",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "least weights squared ∝ 1/n",
            "more neurons share the work, each with 1/n of it",
            least=law.least[:, 0] * law.neurons[0] / law.neurons,
        )
        yield kit.rival(
            "least weights yᵀ(E K)^(−1)y at every n",
            "features tend to the features of the kernel",
            least=law.least * (law.neurons - self.inputs - 1) / law.neurons,
        )
        yield kit.rival(
            "least weights yᵀ(E K)^(−1)y (1 + m/n)",
            "E K_n^(−1) is (E K)^(−1)(1 + m/n), and on",
            least=law.least
            * (law.neurons - self.inputs - 1)
            / law.neurons
            * (1 + self.inputs / law.neurons),
        )

    def controls(self, seen):
        yield kit.control(
            "neurons of which two at a time are equal",
            "half as many are different",
            least=seen.least_of_pairs,
        )
        yield kit.control(
            "features that are not divided by √n, as large at the least n",
            "their ball does grow without end",
            id="not_scaled",
            least=seen.least * seen.neurons[0] / seen.neurons,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "The least weights that fit tend to the kernel's",
            law.least,
            seen.least,
            over="neurons",
            by="set",
            x="neurons n",
            y="‖u‖²",
            log="xy",
        )
