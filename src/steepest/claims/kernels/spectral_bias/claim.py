"""Along eigenvector k of the kernel the residual decays as (1 − ηλ_k)^t: smooth parts are learned first.

Wide networks are trained on digits and on a circle, where the eigenvectors of the rotation-invariant kernel are
Fourier modes, towards targets with equal weight on several of them. Beside it stand the statements of Mercer and of
the reproducing property on the circle: eigenvalues are Fourier coefficients, and Σ⟨f, ψ_k⟩²/λ_k is the norm of the
RKHS. The tangent kernel of ReLU networks without biases has λ_k ∝ (k² + 3)/(k² − 1)² for even frequencies k, and none
at all for odd k ≥ 3, which such a network never learns.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    compiled,
    equal,
    idle,
    keys,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend, logarithmic
from steepest.kernels import KernelDynamics, gram, kernel_dynamics
from steepest.nn.data import digits
from steepest.nn.networks import Limit, Mlp, mlp

SETS = ("circle", "digits")
FINE = 4096  # angles of the Fourier coefficients of the kernel
EVEN = (2, 4, 6, 8, 10)  # frequencies at which ReLU networks are measured, and odd ones
ODD = (3, 5, 7, 9)
POINTS = 40  # equally spaced, even: then odd frequencies are folded on odd ones only
FLOOR = 1e-9  # Mercer sums leave out eigenvalues below this part of the largest: rounding there is no longer small


class Setting(NamedTuple):
    """Inputs of both sets, the orthonormal modes that are followed with their eigenvalues, and the kernel's profile."""

    inputs: list[np.ndarray]  # (m, d)
    modes: list[np.ndarray]  # v_k in columns, (m, modes)
    eigenvalues: np.ndarray  # λ_k of Θ/m, (set, mode)
    profile: np.ndarray  # Θ between the first of FINE points on the circle and all of them
    coefficients: np.ndarray  # a of the function Σ a_i Θ(x_i, ·) on the circle, (m,)


@dataclass(frozen=True)
class SpectralBias(Claim):
    """Networks with one hidden layer, NTK parameterization, f − f₀ trained towards a sum of eigenvectors."""

    width: Count = 1024  # n [neurons]
    # followed: frequencies 0, 1, … or the largest eigenvalues [1]
    modes: Annotated[int, Within(2, 8)] = 4
    circle: Annotated[int, Within(8, 256)] = 32  # points on the circle, equally spaced [1]
    digits: Annotated[int, Within(8, 150)] = 24  # images [1]
    multiple: Positive = 0.5  # ηλ_max [1]
    steps: Count = 200  # steps of descent [steps]
    seeds: Seeds = 20  # initial networks [1]

    kind = "theorem"
    headline = tuple(f"{name}_decay_{k}" for name in SETS for k in range(2))
    statement = (
        r"\langle v_k,f_t-y\rangle=(1-\eta\lambda_k)^t\langle v_k,f_0-y\rangle,\quad "
        r"K(x,y)=\sum_k\lambda_k\psi_k(x)\psi_k(y),"
        r"\quad\|f\|_{\mathcal H_K}^2=\sum_k\frac{\langle f,\psi_k\rangle^2}{\lambda_k}"
    )
    source = "Lecture of 31 October in [@hanin2022]; [@jacot2018]"
    corrections = (
        "The notes print the RKHS as T⁻¹L²; it is T^{1/2}L², as their own set {Σ a_k √λ_k ψ_k, a ∈ ℓ²} beside it says, "
        "with ‖f‖² = ‖T^{-1/2}f‖². T⁻¹L² is not even a space of functions when infinitely many λ_k > 0.",
        "The notes call {ψ_k} the orthonormal basis of the RKHS; it is one of L², that of the RKHS is {√λ_k ψ_k}.",
    )
    remarks = (
        "Version 2 adds ReLU networks without biases, whose tangent kernels are measured at finite width and not "
        "their descent. That Fourier coefficients are eigenvalues and add up to the diagonal holds for any kernel "
        "of the difference of angles: these two checks are declared idle. So does the formula of the norm, where "
        "the printed one is rejected: it is algebra, not a test of networks.",
        "A rate is log |⟨v_k, f_t − y⟩/⟨v_k, f_0 − y⟩|/t at the recorded step where the prediction is nearest 1/e.",
        "Outputs are counted from their start, f − f₀, so that every mode starts with the same residual.",
        "On the circle the Gram matrix of m equally spaced points has the eigenvalues Σ_a λ_{k+am}: the integral "
        "operator's, with frequencies folded. Here they agree to rounding.",
    )
    tiny = {"width": 128, "modes": 2, "circle": 8, "digits": 8, "steps": 30, "seeds": 4}
    full = {"width": 4096, "modes": 5, "steps": 800, "seeds": 60}
    out_of_scope = {"multiple": 2.5}
    version = 2

    def network(self, dimension: int, width: int) -> Mlp:
        """Return one hidden layer with biases, which both parities of frequencies need."""
        return mlp((dimension, width, 1), "erf", parameterized="ntk", c_w=2.0, c_b=1.0)

    def limit(self, dimension: int) -> Limit:
        """Return the infinitely wide network."""
        return self.network(dimension, self.width).limit()

    def setting(self, key: Key) -> Setting:
        for_data, for_function = jax.random.split(key)
        m = self.circle
        k = np.arange(self.modes)
        angles = 2 * np.pi * np.arange(m) / m
        fine = 2 * np.pi * np.arange(FINE) / FINE
        around, every = (np.sqrt(2) * np.stack([np.cos(a), np.sin(a)], 1) for a in (angles, fine))
        fourier = np.cos(np.outer(angles, k))
        raw = digits(n=self.digits, key=for_data)
        pixels = np.asarray(raw.x)
        images = pixels - pixels.mean(0)
        if (
            raw.n < raw.d
        ):  # Gaussian weights and descent see no more than scalar products: turned into their span
            images = np.linalg.qr(images.T)[1].T * np.sqrt(raw.n / raw.d)
        dynamics = kernel_dynamics(gram(self.limit(images.shape[1]), images).ntk)
        profile = gram(self.limit(2), every[:1], every).ntk[0]
        eigenvalues = np.stack(
            [_folded(profile, m)[: self.modes], dynamics.eigenvalues[::-1][: self.modes]]
        )
        modes = [
            fourier / np.linalg.norm(fourier, axis=0),
            dynamics.vectors[:, ::-1][:, : self.modes],
        ]
        coefficients = np.asarray(jax.random.normal(for_function, (m,)))
        return Setting([around, images], modes, eigenvalues, profile, coefficients)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        slowest = (self.multiple * setting.eigenvalues[:, -1] / setting.eigenvalues.max(1)).min()
        gap = (setting.eigenvalues[:, :-1] / setting.eigenvalues[:, 1:]).min()
        return [
            assume("ηλ_max", self.multiple, "<", 2, "descent diverges above"),
            assume(
                "steps × slowest ηλ_k",
                self.steps * slowest,
                ">=",
                1,
                "more --steps, or fewer --modes",
            ),
            assume(
                "width / points",
                self.width / max(self.circle, self.digits),
                ">=",
                16,
                "the theorem is for n ≫ m",
            ),
            assume(
                "smallest ratio of neighbouring eigenvalues",
                gap,
                ">",
                1,
                "eigenvectors must be distinct",
            ),
        ]

    @property
    def marks(self) -> np.ndarray:
        """Return the steps that are recorded."""
        return logarithmic(self.steps, 40)

    def steps_of(self, setting: Setting) -> np.ndarray:
        """Return η λ_k, shape (set, mode)."""
        return self.multiple * setting.eigenvalues / setting.eigenvalues.max(1, keepdims=True)

    def predict(self, setting: Setting) -> Prediction:
        m = self.circle
        a = setting.coefficients
        kernel = setting.profile[:: FINE // m][np.subtract.outer(np.arange(m), np.arange(m)) % m]
        return Prediction(
            rates=("set mode", np.log(np.abs(1 - self.steps_of(setting)))),
            spectrum=("eigenvalue", np.sort(_folded(setting.profile, m))),
            diagonal=setting.profile[0],
            norm=a @ kernel @ a,  # by the reproducing property
            relu=("frequency", _relu_spectrum(1.0)),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        paths = []
        kernel = gram(self.limit(2), np.asarray(setting.inputs[0])).ntk
        dynamics: KernelDynamics = kernel_dynamics(kernel)
        kept = dynamics.eigenvalues > FLOOR * dynamics.eigenvalues[-1]
        values = dynamics.eigenvalues[kept]
        psi = np.sqrt(self.circle) * dynamics.vectors[:, kept]
        inner = (
            psi.T @ (kernel @ setting.coefficients) / self.circle
        )  # ⟨f, ψ_k⟩ in L² of the points
        for x, modes, largest in zip(
            setting.inputs, setting.modes, setting.eigenvalues.max(1), strict=True
        ):
            paths.append(self.residuals(x, modes, self.multiple / largest, key))
        relu, biased = self.relu_spectra(key)
        return Observation(
            relu=("seed frequency", relu),
            relu_with_biases=("seed frequency", biased),
            left=("set seed step mode", np.stack(paths)),
            spectrum=("eigenvalue", dynamics.eigenvalues),
            diagonal=("point", psi**2 @ values),
            norm=(inner**2 / values).sum(),
        )

    def relu_spectra(self, key: Key) -> list[np.ndarray]:
        """Return v_k · Θ_n v_k at frequencies 0 … 10 for tangent kernels of ReLU networks, without and with biases."""
        angles = 2 * np.pi * np.arange(POINTS) / POINTS
        x = np.stack([np.cos(angles), np.sin(angles)], 1)
        modes = np.cos(np.outer(angles, np.arange(max(EVEN) + 1)))
        modes /= np.linalg.norm(modes, axis=0)
        nets = [
            mlp((2, self.width, 1), "relu", parameterized="ntk", c_w=2.0, bias=bias)
            for bias in (False, True)
        ]

        def one(net: Mlp, key: Key) -> jax.Array:
            outputs = lambda params: modes.T @ net.apply(params, jnp.asarray(x))
            jacobian = jax.jacrev(outputs)(net.init(key))
            squares = [
                (leaf.reshape(modes.shape[1], -1) ** 2).sum(1) for leaf in jax.tree.leaves(jacobian)
            ]
            return jnp.stack(squares).sum(0)

        every = compiled(
            lambda key: [
                jax.lax.map(lambda k, net=net: one(net, k), keys(key, self.seeds)) for net in nets
            ]
        )
        return [np.asarray(spectrum) for spectrum in every(key)]

    def residuals(self, x: Values, modes: np.ndarray, lr: float, key: Key) -> np.ndarray:
        """Return ⟨v_k, f_t − f_0 − y⟩ over its start, for targets y = √m Σ v_k, shape (seeds, records, modes)."""
        net = self.network(x.shape[1], self.width)
        scale = np.sqrt(len(modes))
        y = scale * modes.sum(1)

        def one(key: Key) -> jax.Array:
            start = net.init(key)
            goal = net.apply(start, x) + y
            residual = lambda params: net.apply(params, x) - goal
            risk = lambda params: 0.5 * jnp.mean(residual(params) ** 2)
            look = {"left": lambda params: -modes.T @ residual(params) / scale}
            path = descend(risk, start, optax.sgd(lr), self.steps, record=self.marks, observe=look)
            return path.observed["left"]

        every = compiled(lambda key: jax.lax.map(one, keys(key, self.seeds)))
        return np.asarray(every(key))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        rates = predicted["rates"]
        marks = self.marks[1:]
        checks = []
        for i, name in enumerate(SETS):
            decay = {}
            for k, rate in enumerate(rates[i]):
                at = int(np.argmin(np.abs(rate * marks + 1)))
                left = observed["left"][i, :, at + 1, k]
                decay[f"{k}"] = -np.log(np.abs(left)) / marks[at]
                checks.append(
                    equal(
                        f"{name}_decay_{k}",
                        -rate,
                        decay[f"{k}"],
                        0.1,
                        label=f"{name}: decay of mode {k}",
                    )
                )
            checks.append(
                order(
                    f"{name}_decay_order",
                    [f"{k}" for k in np.argsort(-rates[i])],
                    decay,
                    label=f"{name}: order of decay",
                )
            )
        top = predicted["spectrum"].max()
        spectrum = np.abs(observed["spectrum"] - predicted["spectrum"]).max() / top
        diagonal = np.abs(observed["diagonal"] / predicted["diagonal"] - 1).max()
        relu = observed["relu"] / observed["relu"][:, :1]
        # a mean over n neurons, off by some √(1/n), 3 % at n = 1024, and more where λ_k is small beside the others
        checks += [
            equal(
                f"relu_{k}",
                float(predicted["relu"][k]),
                relu[:, k],
                0.1,
                label=f"ReLU without biases: λ_{k} / λ_0",
            )
            for k in EVEN
        ]
        return [
            *checks,
            agreement(
                "relu_odd",
                relu[:, ODD].max(1),
                1e-10,
                label="ReLU without biases: largest λ_k / λ_0 for odd k ≥ 3",
            ),
            idle(
                agreement(
                    "circle_spectrum",
                    spectrum,
                    1e-10,
                    label="circle: eigenvalues − folded Fourier coefficients",
                ),
                "it is so for every kernel of the difference of angles",
            ),
            idle(
                agreement(
                    "circle_mercer", diagonal, 1e-6, label="circle: Σ λ_k ψ_k(x)² / K(x, x) − 1"
                ),
                "the spectral theorem for any Gram matrix",
            ),
            equal(
                "circle_norm",
                predicted["norm"],
                observed["norm"],
                1e-6,
                label="circle: ‖f‖² by Mercer",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        rates = predicted["rates"]
        m = self.circle
        instead = lambda values: predicted.replace(rates=("set mode", values))
        kernel = (
            setting.profile[:: FINE // m][np.subtract.outer(np.arange(m), np.arange(m)) % m] / m
        )
        f = m * kernel @ setting.coefficients
        power = lambda matrix: float(f @ matrix @ f) / m
        frequencies = np.maximum(np.arange(max(EVEN) + 1), 1)
        relu = lambda values: predicted.replace(relu=("frequency", values))
        return [
            Rival(
                "last_layer",
                relu(_relu_spectrum(0.0)),
                "the other kernel of a wide network",
                label="ReLU: the last layer's kernel, λ_k ∝ k⁻⁴",
            ),
            Rival(
                "power_law",
                relu(4 * predicted["relu"][2] / frequencies**2.0),
                "true for large k",
                label="ReLU: λ_k ∝ k⁻² from k = 2 on",
            ),
            Rival(
                "one_rate",
                instead(0 * rates + rates.mean(1, keepdims=True)),
                "one risk",
                label="all modes decay at the mean rate",
            ),
            Rival(
                "high_first",
                instead(rates[:, ::-1]),
                "they have the steepest slopes",
                label="high frequencies first",
            ),
            Rival(
                "gradient_flow",
                instead(-self.steps_of(setting)),
                "the limit of small steps",
                label="exp(−ηλ_k t), the flow",
            ),
            Rival(
                "printed_space",
                predicted.replace(norm=power(kernel @ kernel)),
                "as printed: ‖f‖² = ‖Tf‖²",
                label="the RKHS is T⁻¹L²",
            ),
            Rival(
                "square_norm",
                predicted.replace(norm=power(np.eye(m))),
                "the notes' basis {ψ_k} of H_K",
                label="the norm of L²",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "biases",
                observed.replace(relu=observed.quantity("relu_with_biases")),
                "the kinks no longer come in antipodal pairs",
                label="ReLU networks with biases",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        marks = self.marks
        drawn = []
        for i, name in enumerate(SETS):
            curves = []
            mean = predicted["rates"][i].mean()
            for k, rate in enumerate(predicted["rates"][i]):
                shade = k / (self.modes - 1)
                curves += [
                    observed_curve(
                        marks, observed["left"][i, :, :, k].mean(0), f"mode {k}", shade=shade
                    ),
                    predicted_curve(marks, np.exp(rate * marks), shade=shade),
                ]
            curves.append(rival_curve(marks, np.exp(mean * marks), "mean rate"))
            drawn.append(
                panel(
                    f"Each mode at its own rate: {name}",
                    "1 + step",
                    "residual / start",
                    *curves,
                    log="y",
                    ylim=(1e-2, 2),
                )
            )
        k = np.arange(self.circle)
        top = predicted["spectrum"].max()
        return (
            *drawn,
            panel(
                "The circle's spectrum is Fourier's",
                "eigenvalue",
                "λ_k / λ_0",
                observed_curve(
                    k,
                    np.maximum(observed["spectrum"][::-1] / top, 1e-17),
                    "Gram matrix",
                    kind="points",
                ),
                predicted_curve(
                    k, np.maximum(predicted["spectrum"][::-1] / top, 1e-17), "Fourier coefficients"
                ),
                log="y",
            ),
        )


def _folded(profile: np.ndarray, m: int) -> np.ndarray:
    """Return Σ_a λ_{k+am} for k = 0 … m − 1, from the kernel's Fourier coefficients λ over the circle, shape (m,)."""
    return np.fft.fft(profile).real.reshape(-1, m).sum(0) / len(profile)


def _relu_spectrum(first: float) -> np.ndarray:
    """Return λ_k/λ_0, k = 0 … 10, of the kernel of ReLU networks without biases on POINTS points; zero for odd k ≥ 3.

    On the whole circle it is ∝ ∫ cos kθ [sin θ + (1 + first) (π − θ) cos θ] dθ over 0 … π. The first layer's weights
    add the last term: ``first`` is 1 for the tangent kernel and 0 where only the last layer is trained.
    """
    k = np.arange(1000 * POINTS)
    even = k % 2 == 0
    of_sine = np.where(even, 2 / np.where(even, 1.0 - k**2, 1), 0.0)
    # ∫ (π − θ) cos mθ = 2/m² for odd m, 0 for even m, but π²/2 for m = 0
    below = np.abs(k - 1)
    triangle = lambda m: np.where(m % 2 == 1, 2 / np.maximum(m, 1.0) ** 2, (m == 0) * np.pi**2 / 2)
    spectrum = of_sine + (1 + first) * (triangle(k + 1) + triangle(below)) / 2
    # on equally spaced points k cannot be told from aPOINTS ± k
    shown = np.arange(max(EVEN) + 1)
    turns = POINTS * np.arange(1, 999)[:, None]
    folded = spectrum[shown] + (spectrum[turns - shown] + spectrum[turns + shown]).sum(0)
    return folded / folded[0]
