"""One step moves the tangent kernel like n^(−3/4) with ReLU, like 1/n with tanh; with mean-field outputs it is out.

A network leaves its kernel when the kernel itself changes. One step of descent with the size 1/λ_max moves every neuron
of the NTK parameterization by n^(-1/2). Its last layer's weights have random signs, so that the kernel of smooth
neurons moves by 1/n only. ReLU neurons whose input changes its sign switch a whole example on or off: a share n^(-1/2)
of them does, with random effect, and these few dominate. The size is predicted too, by an integral over one neuron.
"""

from dataclasses import dataclass
from math import ceil, gamma, pi, sqrt
from typing import Annotated, NamedTuple

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    Within,
    assume,
    bound,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.linalg import sequential
from steepest.nn.data import digits, signs

SMOOTH = ("tanh", "ntk")
KINKED = ("relu", "ntk")
CASES = (KINKED, SMOOTH, ("relu", "mean-field"), ("tanh", "mean-field"), ("relu", "standard"))
REPEATS = (
    1.0,
    0.5,
    0.125,
    0.125,
    0.25,
)  # networks of each case over those of the first: others scatter less
NAMES = ("relu", "tanh", "mean_field_relu", "mean_field_tanh", "standard")
LABELS = (
    "ReLU, NTK",
    "tanh, NTK",
    "ReLU, mean-field",
    "tanh, mean-field",
    "ReLU, standard",
)
SLOPES = (-0.75, -1.0, 0.0, 0.0, -2.0)
# The next order of each is at 128 neurons some per cent, over log 32; the standard one has it at both ends of a
# quotient. A group's mean of squares, whose logarithm is fitted, leans by a half of its variance.
MARGINS = (0.08, 0.12, 0.08, 0.08, 0.25)
WIDE = 512  # from here on the ReLU kernel's change is compared with its leading order
NEURONS = 20_000  # draws of one neuron in the integral of the theory


class Setting(NamedTuple):
    """Images of two digits, centred and of unit length."""

    x: Values  # (m, d)
    y: Values  # (m,)


@dataclass(frozen=True)
class OneStepOutOfTheKernel(Claim):
    """Two-layer networks without biases on images of two digits, one step of full-batch descent on squared loss."""

    widths: tuple[Count, ...] = (128, 256, 512, 1024, 2048, 4096)  # neurons n [neurons]
    examples: Annotated[int, Within(2, 300)] = 20  # images of the digits 3 and 8, m [1]
    step: Annotated[float, Within(0.01, 100)] = 1.0  # step size over 1/λ_max of the kernel [1]
    networks: Count = 16  # networks of each width in a group [1]
    seeds: Seeds = 8  # groups of networks [1]

    kind = "conjecture"
    statement = (
        r"\eta=\frac1{\lambda_{\max}}:\quad \frac{\lVert\Theta_1-\Theta_0\rVert}{\lVert\Theta_0\rVert}\sim"
        r"\begin{cases}c\,n^{-3/4}&\text{ReLU, NTK}\\ c\,n^{-1}&\text{tanh, NTK}\\ c&\text{mean-field}\\"
        r"c\,n^{-2}&\text{standard}\end{cases}\qquad c_{\rm ReLU}^2\lVert\Theta_\infty\rVert^2="
        r"\frac{E|a|^5}{\sqrt{2\pi}}"
        r"\sum_i E\Big[\tfrac12\big(|s_i^+|+|s_i^-|\big)\,4\big(1+2\sum_{k\ne i}\langle x_i,x_k\rangle^2 g_k\big)"
        r"\,\Big|\,\langle w,x_i\rangle=0\Big]"
    )
    source = "The talk of seeds 000, “you exit the NTK in one step, always”; derived here"
    headline = ("relu", "amplitude", "tanh", "mean_field_relu", "mean_field_tanh", "left_relu")
    corrections = (
        "“You exit the NTK in one step, always” holds where outputs are means over neurons (mean-field). Under NTK "
        "scaling one step changes the kernel of 1024 ReLU neurons by about 1 %, and ever less with width.",
    )
    remarks = (
        "Derivation for ReLU, with gates g_k = 1[⟨w, x_k⟩ > 0]. One step changes a neuron's input on x_i by "
        "n^(−1/2) a s_i, s_i = (2/λ) Σ_k r_k g_k ⟨x_k, x_i⟩, r = y − f. Its gate i flips if ⟨w, x_i⟩ is that small, "
        "with the density 1/√(2π) at zero. A flip adds or takes 2a² ⟨x_i, x_k⟩ at (i, i), and at (i, k) and (k, i) "
        "where g_k = 1; both signs are as likely, so that squares add up over neurons. In s⁺ g_i = 1, for gates that "
        "close, in s⁻ g_i = 0. Outputs at the start are Gaussian with the NNGP kernel and independent of one neuron.",
        "It is an argument at leading order and no proof: hence a conjecture.",
        "Smooth neurons: the first derivative of the kernel is odd in the last layer's weights, so that it averages to "
        "1/n; lazy-or-rich says the same of whole trainings of tanh networks. What ReLU changes without flips is 1/n "
        "by the same argument.",
        "Standard: weights N(0, 1) and N(0, 1/n), one step size for both layers. Stable steps are of order 1/n, the "
        "last layer learns alone and hidden neurons hardly move.",
        "The step is 1/λ_max of the sum of squares' kernel: half of what is stable. One hidden layer; deeper networks, "
        "other losses, momentum and Adam are not tried here.",
    )
    full = {
        "widths": (128, 256, 512, 1024, 2048, 4096, 8192, 16384),
        "networks": 32,
        "seeds": 12,
    }
    tiny = {"widths": (128, 256, 512), "examples": 4, "networks": 4, "seeds": 3}
    out_of_scope = {"step": 20.0}

    def check_fields(self) -> None:
        if len(set(self.widths)) < 3:
            raise UserError(
                f"an exponent needs at least three different --widths, got {self.widths}; add some, such as 512"
            )

    def setting(self, key: Key) -> Setting:
        data = signs(digits((3, 8)))
        pixels = np.asarray(data.x)
        chosen = numpy_generator(key).permutation(data.n)[: self.examples]
        centred = (pixels - pixels.mean(0))[chosen]
        unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
        return Setting(unit, np.asarray(data.y)[chosen])

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume("step / (2/λ_max)", self.step / 2, "<", 1, "larger steps are not stable"),
            assume(
                "smallest width", min(self.widths), ">=", 64, "the exponents are of wide networks"
            ),
            assume(
                "largest width", max(self.widths), ">=", WIDE, "the size is compared from there on"
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            slopes=("case", np.array(SLOPES)),
            amplitude=flip_amplitude(setting.x, setting.y, self.step),
            least=0.1,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        rng = numpy_generator(key)
        squares = [
            [
                [
                    self.mean_square(setting, n, *case, rng, ceil(share * self.networks))
                    for n in self.widths
                ]
                for _ in range(self.seeds)
            ]
            for case, share in zip(CASES, REPEATS, strict=True)
        ]
        return Observation(change=("case group width", np.sqrt(squares)))

    def mean_square(
        self,
        setting: Setting,
        n: int,
        activation: str,
        scaling: str,
        rng: np.random.Generator,
        networks: int,
    ) -> float:
        """Return the mean square of so many networks' relative changes."""
        change = [
            relative_change(setting, n, activation, scaling, self.step, rng)
            for _ in range(networks)
        ]
        return float(np.mean(np.square(change)))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks: list[Check] = [
            exponent(
                name,
                float(slope),
                np.array(self.widths, float),
                change,
                margin,
                label=f"{label}: exponent of the kernel's change in one step, in width",
            )
            for name, slope, change, margin, label in zip(
                NAMES, predicted["slopes"], observed["change"], MARGINS, LABELS, strict=True
            )
        ]
        widths = np.array(self.widths, float)
        wide = widths >= WIDE
        kinked = observed["change"][0][:, wide] * widths[wide] ** 0.75
        checks.append(
            equal(
                "amplitude",
                float(predicted["amplitude"]),
                np.sqrt((kinked**2).mean(1)),
                # Squares have a next order of n^(-1/2), whose number depends on the images: up to a tenth of the root.
                0.15,
                label=f"ReLU, NTK: change in one step times n^(3/4), n ≥ {WIDE}",
            )
        )
        for place in (2, 3):
            checks.append(
                bound(
                    f"left_{CASES[place][0]}",
                    observed["change"][place][:, -1],
                    at_least=float(predicted["least"]),
                    label=f"{LABELS[place]}: the kernel's change in one step at n = {self.widths[-1]}",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        slopes = predicted["slopes"]
        smooth = slopes.copy()
        smooth[0] = -1.0
        kernel = slopes.copy()
        kernel[-1] = -1.0
        alike = np.full(len(slopes), -0.5)
        gaussian = 2**2.5 * gamma(3) / sqrt(pi)
        return [
            Rival(
                "always_out",
                predicted.replace(slopes=("case", 0 * slopes)),
                "the talk says so",
                label="every network leaves its kernel in one step",
            ),
            Rival(
                "always_in",
                predicted.replace(slopes=("case", np.array([-0.75, -1, -0.75, -1, -2])), least=1.0),
                "wide networks are kernels",
                label="no wide network leaves its kernel",
            ),
            Rival(
                "kinks_forgotten",
                predicted.replace(slopes=("case", smooth)),
                "so it is for smooth neurons",
                label="1/n with ReLU too",
            ),
            Rival(
                "neurons",
                predicted.replace(slopes=("case", alike)),
                "each neuron moves so far",
                label="every kernel moves like n^(−1/2)",
            ),
            Rival(
                "standard_is_lazy_alike",
                predicted.replace(slopes=("case", kernel)),
                "standard and NTK networks are the same functions at the start",
                label="standard networks: 1/n",
            ),
            Rival(
                "no_output",
                predicted.replace(
                    amplitude=flip_amplitude(setting.x, setting.y, self.step, outputs=False)
                ),
                "the ensemble's mean is zero",
                label="residuals are the labels: outputs at the start forgotten",
                accepted="the two differ by 2 to 5 %, a third of what is judged",
            ),
            Rival(
                "own_entry",
                predicted.replace(
                    amplitude=flip_amplitude(setting.x, setting.y, self.step, partners=False)
                ),
                "it is that example which flips",
                label="a flip changes its example's own entry only",
            ),
            Rival(
                "unit_signs",
                predicted.replace(amplitude=float(predicted["amplitude"]) / sqrt(gaussian)),
                "the size of the last layer's weights is one",
                label="E|a|⁵ = 1",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        quantity = observed.quantity("change")
        swapped = observed["change"][[1, 0, 1, 0, 2]]
        return [
            Control(
                "other_networks",
                observed.replace(change=(quantity.dims, swapped)),
                "the exponents belong to activation and scaling",
                label="tanh for ReLU, ReLU for tanh, NTK for mean-field, mean-field for standard",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths = np.array(self.widths, float)
        size = np.sqrt((observed["change"] ** 2).mean(1))
        leading = float(predicted["amplitude"]) * widths**-0.75
        kernel = panel(
            "One step in the NTK parameterization",
            "width n",
            "‖ΔΘ‖ / ‖Θ‖",
            observed_curve(widths, size[0], "ReLU", kind="points"),
            predicted_curve(widths, leading, "c n^(−3/4), c predicted"),
            observed_curve(widths, size[1], "tanh", kind="points", shade=1.0),
            predicted_curve(widths, size[1][0] * widths[0] / widths, "∝ 1/n"),
            rival_curve(widths, size[0][0] * (widths / widths[0]) ** -0.5, "n^(−1/2)"),
            log="xy",
        )
        scalings = panel(
            "Who is out",
            "width n",
            "‖ΔΘ‖ / ‖Θ‖",
            *(
                observed_curve(widths, size[i], LABELS[i], shade=shade)
                for i, shade in ((2, 0.0), (3, 0.3), (0, 0.6), (4, 1.0))
            ),
            predicted_curve(widths, size[4][0] * (widths / widths[0]) ** -2, "∝ n⁻²"),
            log="xy",
        )
        return (kernel, scalings)


@sequential
def relative_change(
    setting: Setting, n: int, activation: str, scaling: str, share: float, rng: np.random.Generator
) -> float:
    """Return ‖ΔΘ‖/‖Θ‖ of a random two-layer network of n neurons in one step of ``share``/λ_max.

    ``f(x) = α Σ_j a_j σ(⟨w_j, x⟩)`` with w ~ N(0, I), on ½ Σ (f − y)². NTK: α = n^(-1/2), a ~ N(0, 1); mean-field:
    α = 1/n; standard: α = 1, a ~ N(0, 1/n).
    """
    scale = {"ntk": n**-0.5, "mean-field": 1 / n, "standard": 1.0}[scaling]
    w = rng.standard_normal((n, setting.x.shape[1]))
    a = rng.standard_normal(n)
    if scaling == "standard":
        a /= sqrt(n)
    overlaps = setting.x @ setting.x.T
    features, slopes = _neurons(setting.x @ w.T, activation)
    before = _kernel(features, slopes * a, overlaps)
    residual = setting.y - scale * features @ a
    step = share / np.linalg.eigvalsh(scale**2 * before)[-1]
    w += step * scale * a[:, None] * ((slopes.T * residual) @ setting.x)
    a += step * scale * residual @ features
    features, slopes = _neurons(setting.x @ w.T, activation)
    after = _kernel(features, slopes * a, overlaps)
    return float(np.linalg.norm(after - before) / np.linalg.norm(before))


def _neurons(inputs: Values, activation: str) -> tuple[Values, Values]:
    """Return σ and σ′ at all neurons, ``(m, n)``; ReLU times √2, of unit second moment."""
    if activation == "relu":
        gates = sqrt(2) * (inputs > 0)
        return gates * inputs, gates
    height = np.tanh(inputs)
    return height, 1 - height**2


def _kernel(features: Values, slopes: Values, overlaps: Values) -> Values:
    """Return Σ_j σσᵀ + (Σ_j a² σ′σ′ᵀ) ∘ ⟨x, x′⟩, shape ``(m, m)``."""
    return features @ features.T + slopes @ slopes.T * overlaps


@sequential
def flip_amplitude(
    x: Values, y: Values, step: float, *, outputs: bool = True, partners: bool = True
) -> float:
    """Return c of ‖ΔΘ‖/‖Θ‖ ≈ c n^(−3/4) for ReLU in the NTK parameterization, by an integral over one neuron.

    Args:
        x: unit inputs, shape ``(m, d)``.
        y: targets, shape ``(m,)``.
        step: over 1/λ_max.
        outputs: whether the random outputs at the start are part of the residuals.
        partners: whether a flip changes the entries with other examples too.
    """
    rng = np.random.default_rng(0)  # of the integral, not of the experiment
    overlaps = x @ x.T
    cosines = np.clip(overlaps, -1, 1)
    angles = np.arccos(cosines)
    nngp = (np.sqrt(1 - cosines**2) + cosines * (pi - angles)) / pi
    ntk = nngp + cosines * (pi - angles) / pi
    root = np.linalg.cholesky(nngp + 1e-10 * np.eye(len(x)))
    total = 0.0
    for i, input_ in enumerate(x):
        w = rng.standard_normal((NEURONS, x.shape[1]))
        w -= np.outer(w @ input_, input_)  # neurons on the boundary of example i
        gates = (w @ x.T > 0).astype(float)
        residual = y - outputs * rng.standard_normal((NEURONS, len(x))) @ root.T
        gates[:, i] = 0
        opens = (residual * gates) @ overlaps[i]
        closes = opens + residual[:, i]
        changed = 4 * (1 + 2 * partners * (gates @ overlaps[i] ** 2))
        total += np.mean((np.abs(opens) + np.abs(closes)) / 2 * changed)
    pull = 2 * step / np.linalg.eigvalsh(ntk)[-1]
    fifth = 2**2.5 * gamma(3) / sqrt(pi)  # E|a|⁵
    return float(sqrt(fifth * pull * total / sqrt(2 * pi)) / np.linalg.norm(ntk))
