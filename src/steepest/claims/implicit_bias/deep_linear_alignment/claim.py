"""Trained on separable data, the layers of a deep linear network become rank one and aligned.

Their product tends slowly to the separator of the largest ℓ2 margin. Gradient flow on separable data, with a loss that
has an exponential tail, conserves W_{l+1}ᵀW_{l+1} − W_l W_lᵀ. So all L layers grow together. The part of each layer
outside its first singular direction stays bounded, and neighbouring layers share this direction. The product W_L ⋯ W_1
turns to the ℓ2 maximum-margin separator, as a single layer would, but later. Where the support vectors leave out a
direction of the inputs, this part of W_1 does not vanish. It only becomes small compared with the largest singular
value σ₁, which grows like log(1/R)^(1/L), with R the risk. So 1 − cosine falls like log(1/R)^(−2/L), where a single
layer has log(1/R)^(−2).
"""

from itertools import pairwise
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.dynamics import flow
from steepest.nn.data import separable
from steepest.nn.losses import log_margin_risk, logistic, margin_risk
from steepest.nn.networks import Mlp, deep_linear
from steepest.nn.types import Values
from steepest.programs import MarginProgram, hard_margin

READINGS = 18
SLOPE = 5  # readings at the end over which the power of a set is fitted
WHOLE = 1e-5  # relative difference of margins up to which an example is a support vector
LATE = (
    7  # readings at the end over which ranks are followed: the last third of log(1/R), in decades
)


class Setting(NamedTuple):
    """Separable sets and starts, one per seed, with their margin programs."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    start: tuple  # layers {"w": (seeds, n_{l+1}, n_l)}
    programs: list[MarginProgram]


@kit.claim
class DeepLinearAlignment(kit.Claim[Setting]):
    """A linear network of equal widths on synthetic separable sets."""

    depth: Annotated[int, kit.Within(2)] = kit.param(
        3, "L, layers", unit="layers", scope=kit.between(2, 4)
    )
    width: Annotated[int, kit.Within(2)] = kit.param(
        8, "width of every hidden layer", unit="neurons", scope=kit.between(6, 12)
    )
    n: kit.Count = kit.param(20, "examples", scope=kit.between(14, 24))
    dimension: Annotated[int, kit.Within(2)] = kit.param(
        8, "dimension of the inputs, d", scope=kit.between(6, 10)
    )
    margin: kit.Positive = kit.param(
        0.5, "margin of the sets by construction", unit="length", scope=kit.between(0.4, 0.8)
    )
    flipped: kit.Fraction = kit.param(
        0.0, "part of their labels that is flipped, which ends separability"
    )
    scale: kit.Positive = kit.param(
        0.02, "variance C_W of the start's weights", scope=kit.between(0.01, 0.03)
    )
    horizon: kit.Positive = kit.param(
        10_000.0, "fall of the logarithm of the risk", scope=kit.between(1e4, 2e4)
    )
    seeds: kit.Seeds = kit.param(25, "sets and starts")

    kind = "limit"
    says = {
        "become rank one": "rank_one",
        "and aligned": "alignment",
        "Their product tends slowly to the separator of the largest ℓ2 margin": "direction_power",
    }
    tiny = {"width": 3, "n": 4, "dimension": 6, "horizon": 100.0, "seeds": 3}
    full = {"n": 40, "width": 16, "seeds": 50}
    out_of_scope = {"flipped": 0.3}

    @property
    def falls(self) -> Values:
        """Return by how much log R has fallen at the readings."""
        return np.geomspace(1e-3, self.horizon, READINGS)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the names of the hidden layers."""
        return tuple(f"layer {i}" for i in range(1, self.depth))

    def axes(self):
        return {
            "late": tuple(self.falls[-LATE:]),
            "hidden": self.hidden,
            "pair": tuple(f"layers {i}, {i + 1}" for i in range(1, self.depth)),
            "unknown": tuple(range(self.dimension)),
            "row": tuple(range(self.width)),
            "column": tuple(range(self.width)),
        }

    def network(self) -> Mlp:
        """Return the network."""
        widths = (self.dimension, *[self.width] * (self.depth - 1), 1)
        return deep_linear(widths, c_w=self.scale)

    def setting(self, key):
        x, y, start = jax.tree.map(np.asarray, kit.compiled(self.draw)(key))
        programs = [hard_margin(a, b) for a, b in zip(x, y, strict=True)]
        return Setting(x, y, start, programs)

    def draw(self, key: kit.Key) -> tuple:
        """Draw the sets, flip labels, draw the starts and turn the last layer of those with a risk above log 2."""
        for_data, for_flips, for_start = jax.random.split(key, 3)
        one = lambda k: separable(k, self.n, self.dimension, self.margin)
        x, y = jax.vmap(lambda k: (one(k).x, one(k).y))(kit.keys(for_data, self.seeds))
        y = jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)
        start = jax.vmap(self.network().init)(kit.keys(for_start, self.seeds))
        sign = jnp.where(self.risks(start, x, y) < jnp.log(2), 1.0, -1.0)
        start = (*start[:-1], {"w": sign[:, None, None] * start[-1]["w"]})
        return x, y, start

    def risks(self, params: tuple, x: jax.Array, y: jax.Array) -> jax.Array:
        """Logistic risk of every seed."""
        return jax.vmap(lambda p, x, y: margin_risk(logistic, self.network().apply, x, y)(p))(
            params, x, y
        )

    def hypotheses(self, setting):
        margins = [program.margin for program in setting.programs]
        risks = np.asarray(kit.compiled(self.risks)(setting.start, setting.x, setting.y))
        yield kit.assume(
            "smallest maximal margin", min(margins), ">", 0, "the data are not separable"
        )
        yield kit.assume(
            "largest risk at the start", float(risks.max()), "<", np.log(2), "lower --scale"
        )
        yield kit.assume(
            "sets whose support vectors do not span the inputs",
            int(self.loose(setting).sum()),
            ">=",
            3,
            "their median is judged; lower --n or raise --dimension",
        )

    def loose(self, setting: Setting) -> Values:
        """Return which sets have support vectors that do not span the inputs, ``(seeds,)``."""
        spanned = []
        for x, y, program in zip(setting.x, setting.y, setting.programs, strict=True):
            margins = y * (x @ program.direction)
            support = margins <= margins.min() * (1 + WHOLE)
            spanned.append(np.linalg.matrix_rank(x[support]))
        return np.array(spanned) < self.dimension

    def predict(self, setting):
        imbalance = imbalances(setting.start)
        late = self.falls[-LATE:]
        layers = self.depth - 1
        return kit.law(
            direction=("seed unknown", [program.direction for program in setting.programs]),
            alignment=("pair", np.ones(layers)),
            # σ₁^L grows like log(1/R), and σ₂ stays bounded
            ratio=("hidden late", np.tile(late ** (-1 / self.depth), (layers, 1))),
            imbalance=("seed pair row column", imbalance),
            allowed=("hidden seed", allowed(imbalance)),
            direction_power=-2 / self.depth,
        )

    def observe(self, setting, key):
        params, arrived = self.follow(setting)
        left, sizes, right = zip(
            *(np.linalg.svd(layer["w"], full_matrices=False) for layer in params), strict=True
        )
        ends = [(u[..., 0], v[..., 0, :]) for u, v in zip(left, right, strict=True)]
        product = params[0]["w"]
        for layer in params[1:]:
            product = layer["w"] @ product
        product = product[..., 0, :]
        first, second = (np.stack([s[..., i] for s in sizes[:-1]]) for i in (0, 1))
        cosines = np.stack([(v * u).sum(-1) ** 2 for (u, _), (_, v) in pairwise(ends)])
        unit = product / np.linalg.norm(product, axis=-1, keepdims=True)
        ratio = second / first
        return kit.seen(
            directions=("seed reading unknown", unit),
            late_direction=("seed end unknown", unit[:, -SLOPE:]),
            early_direction=("seed end unknown", unit[:, :SLOPE]),
            loose=("seed", self.loose(setting)),
            first=("hidden seed reading", first),
            second=("hidden seed reading", second),
            ratio=("hidden seed late", ratio[..., -LATE:]),
            early_ratio=("hidden seed late", ratio[..., :LATE]),
            cosines=("pair seed reading", cosines),
            alignment=("pair seed", cosines[..., -1]),
            first_alignment=("pair seed", cosines[..., 0]),
            norms=("layer seed reading", np.stack([np.linalg.norm(s, axis=-1) for s in sizes])),
            imbalance=(
                "seed pair row column",
                imbalances(jax.tree.map(lambda leaf: leaf[:, -1], params)),
            ),
            arrived=("seed", arrived),
        )

    def follow(self, setting: Setting) -> tuple[tuple, Values]:
        """Return layers at all readings, ``(seeds, readings, n_{l+1}, n_l)`` each, and which flows arrived."""
        net = self.network()

        def one(x: jax.Array, y: jax.Array, start: tuple) -> tuple:
            risk = margin_risk(logistic, net.apply, x, y)
            log_risk = log_margin_risk(logistic, net.apply, x, y)
            path = flow(risk, start, self.falls, "log-risk", log_risk, {"params": lambda p: p})
            return path.observed["params"], path.ok

        paths = kit.compiled(jax.vmap(one))(setting.x, setting.y, setting.start)
        return jax.tree.map(np.asarray, paths)

    def run_conditions(self, observed):
        arrived = observed["arrived"].mean()
        yield kit.assume("flows that reached the horizon", arrived, "==", 1, "lower --horizon")

    def derive(self, law, seen):
        """Return how far the product is from the separator, with which power, and how far imbalances have moved."""
        moved = abs(seen.imbalance - law.imbalance).max(("pair", "row", "column"))
        size = (seen.norms.isel(reading=-1) ** 2).max("layer")
        away = lambda directions: 1 - (directions * law.direction).sum("unknown")
        ends = np.maximum(abs(away(seen.late_direction)), 1e-300).values[seen.loose.values]
        falls = np.log(self.falls[-SLOPE:])
        slopes = [np.polyfit(falls, np.log(row), 1)[0] for row in ends]
        return {
            "away": away(seen.directions),
            "direction_power": xarray.DataArray(np.median(slopes or [0.0])),
            "moved": moved / size,
        }

    def judge(self, law, seen):
        ratios = [
            kit.power(
                f"rank_one_{i}" if i else "rank_one",
                law.ratio[i].drop_vars("hidden"),
                seen.ratio[i].drop_vars("hidden"),
                0.01,
                over="late",
                label=f"σ₂/σ₁ against log(1/R), {name}",
            )
            for i, name in enumerate(self.hidden)
        ]
        yield kit.follows(
            "direction_power",
            law.direction_power,
            seen.direction_power,
            0.1,
            absolute=True,
            label="power of log(1/R) with which 1 − cosine falls, median of sets not spanned",
        )
        yield from ratios
        yield kit.at_most(
            "second_value",
            law.allowed,
            seen.second.isel(reading=-1) ** 2,
            over="hidden",
            each=True,
            label="σ₂², at most what the start allows",
        )
        yield kit.follows(
            "alignment",
            law.alignment,
            seen.alignment,
            # 1 − alignment is of the order of the bound on σ₂² over σ₁², 1e-4 at the horizon
            1e-3,
            each=True,
            label="alignment ⟨v_{l+1}, u_l⟩²",
        )
        yield kit.agrees("imbalance", seen.moved, 1e-6, label="imbalance, change relative to ‖W‖²")

    def rivals(self, setting, law):
        means = np.einsum("sn,snd->sd", setting.y, setting.x)
        sparse = [
            hard_margin(a, b, "l1").direction for a, b in zip(setting.x, setting.y, strict=True)
        ]
        unit = lambda w: np.asarray(w) / np.linalg.norm(w, axis=-1, keepdims=True)
        yield kit.rival(
            "1 − cosine falls like log(1/R)^(−2) at any depth",
            "it is the rate of one layer, and of sets whose support vectors span the inputs",
            direction_power=-2.0,
        )
        yield kit.rival(
            "1 − cosine falls like log(1/R)^(−2/(L − 1))",
            "hidden layers are one less",
            direction_power=-2 / (self.depth - 1),
        )
        yield from self.rivals_of_layers(law)
        yield kit.rival(
            "class-mean difference",
            "the first step goes there",
            direction=("seed unknown", unit(means)),
        )
        yield kit.rival(
            "ℓ1 margin",
            "products of weights are said to be sparse",
            direction=("seed unknown", unit(sparse)),
        )
        yield kit.rival(
            "layers in balance",
            "small starts tend to balance",
            imbalance=0 * law.imbalance,
            allowed=0 * law.allowed,
        )

    def rivals_of_layers(self, law):
        """Return wrong theories of the singular values and vectors of the layers."""
        yield kit.rival(
            "σ₂ grows with σ₁", "all of a layer is multiplied by the same", ratio=law.ratio**0.0
        )
        yield kit.rival(
            "σ₂ grows like the root of σ₁",
            "differences of squares are conserved",
            ratio=law.ratio**0.5,
        )
        yield kit.rival(
            "σ₂/σ₁ falls like 1/log(1/R)",
            "it is the product that grows like log(1/R)",
            ratio=law.ratio**self.depth,
        )
        yield kit.rival(
            "independent singular vectors",
            "random matrices have them",
            id="independent",
            alignment=law.alignment / self.width,
        )

    def controls(self, seen):
        yield kit.control(
            f"the first {LATE} readings for the last ones",
            "layers have not grown yet",
            id="early",
            ratio=seen.early_ratio,
            alignment=seen.first_alignment,
            late_direction=seen.early_direction,
        )

    def figure(self, law, seen, rivals):
        fall = self.falls
        shades = [i / self.depth for i in range(self.depth)]
        ranks = [
            kit.observed_curve(
                fall, seen.second[i] / seen["first"][i], f"layer {i + 1}", shade=shades[i]
            )
            for i in range(self.depth - 1)
        ]
        late = fall[-LATE:]
        largest = float(seen.away.max("seed")[-LATE])
        slowest = largest * (late / late[0]) ** (-2 / self.depth)
        settled = float(seen.ratio[0, :, -1].mean()) * (late / late[-1]) ** (-1 / self.depth)
        aligned = [
            kit.observed_curve(fall, cosines, f"layers {i + 1}, {i + 2}", shade=shades[i])
            for i, cosines in enumerate(seen.cosines)
        ]
        grown = [
            kit.observed_curve(fall, seen.norms[i], f"layer {i + 1}", shade=shades[i])
            for i in range(self.depth)
        ]
        yield kit.panel(
            "Hidden layers become rank one",
            "fall of log R",
            "σ₂/σ₁",
            *ranks,
            kit.predicted_curve(late, settled, "∝ log(1/R)^(−1/L)"),
            log="xy",
        )
        yield kit.panel(
            "Neighbours align",
            "fall of log R",
            "⟨v, u⟩²",
            *aligned,
            kit.predicted_curve(fall, 0 * fall + 1, "1"),
            kit.rival_curve(fall, 0 * fall + 1 / self.width, "independent"),
            log="x",
        )
        yield kit.panel("All layers grow together", "fall of log R", "‖W_l‖", *grown, log="xy")
        yield kit.panel(
            "The product turns to the separator",
            "fall of log R",
            "1 − cosine",
            kit.observed_curve(fall, seen.away),
            kit.predicted_curve(late, slowest, "∝ log(1/R)^(−2/L)"),
            kit.rival_curve(late, slowest[0] * (late / late[0]) ** -2.0, "∝ log(1/R)^(−2)"),
            log="xy",
        )


def imbalances(params: tuple) -> Values:
    """Return ``W_{l+1}ᵀW_{l+1} − W_l W_lᵀ`` of every pair of neighbours, shape ``(seeds, pairs, width, width)``."""
    weights = [np.asarray(layer["w"]) for layer in params]
    differences = [b.swapaxes(1, 2) @ b - a @ a.swapaxes(1, 2) for a, b in pairwise(weights)]
    return np.stack(differences, 1)


def allowed(imbalance: Values) -> Values:
    """Return what the start allows σ₂² of each hidden layer to become, shape ``(layers, seeds)``.

    From ``W_l W_lᵀ = W_{l+1}ᵀW_{l+1} − D_l``, with W_L of rank one: ``λ₂`` gains at most ``λ_max(−D_l)`` a layer.
    """
    gains = np.linalg.eigvalsh(-imbalance)[..., -1]  # (seeds, pairs)
    return np.cumsum(gains[:, ::-1], 1)[:, ::-1].T
