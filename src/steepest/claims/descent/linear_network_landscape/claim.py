"""Balanced saddles of linear networks: all strict with two layers, some flat with three, left after a power of 1/α.

The balanced critical points of ½‖W_L⋯W_1 − Y‖² carry a set S of the singular pairs of Y. All eigenvalues of their
Hessians are known. With two layers each but the best has a direction of negative curvature. With three or more the
Hessian sees only a wrong order, a pair in S that is smaller than one outside of it; that S is too small it does not
see, at the origin for one. There the risk falls in order L only, and a start of size α waits α^(2 − L), not log(1/α).
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
)
from steepest.claims.descent._tables import padded
from steepest.claims.descent.linear_network_landscape.experiment import (
    DEEPEST,
    LinearNetworkPointOfDiagram,
    time_to_learn,
)
from steepest.landscapes import (
    balanced_weights,
    linear_network_point,
    linear_network_points,
    linear_network_risk,
    mode_time,
    strict_saddles,
)

STEPS = np.geomspace(0.01, 0.04, 6)  # lengths at which the fall from a saddle is measured
MIDDLES = 4  # critical points with the middle layer alone


class Setting(NamedTuple):
    """Critical points and starts that theory and experiment both see."""

    left: np.ndarray  # singular vectors of Y, (d, d)
    right: np.ndarray  # singular vectors of Y, (d, d)
    points: list[tuple[np.ndarray, ...]]  # layers of all critical points, for each depth
    falls: list[
        list[np.ndarray]
    ]  # layers of the saddle on the first pair, and a direction, stacked
    middles: np.ndarray  # W_2 of critical points with W_1 = W_3 = 0, (MIDDLES, h, h)
    starts: np.ndarray  # orthogonal layers, (seeds, layers, d, d)


@dataclass(frozen=True)
class LinearNetworkLandscape(Claim):
    """A target of three different singular values, in random bases, and networks of three depths."""

    singular: tuple[Positive, ...] = (3.0, 1.0, 0.5)  # singular values of Y, the largest first [1]
    depths: tuple[Annotated[int, Within(2, DEEPEST)], ...] = (2, 3, 4)  # layers L [layers]
    # width of all hidden layers, for each depth: wider than Y, as wide, and narrower [neurons]
    hidden: tuple[Count, ...] = (4, 3, 2)
    # α, size of the starts that leave the origin [1]
    sizes: tuple[Positive, ...] = (0.03, 0.01, 0.003, 0.001)
    share: Fraction = 0.5  # of the first mode that must be learned [1]
    seeds: Seeds = 5  # random orthogonal starts [1]

    kind = "theorem"
    point = LinearNetworkPointOfDiagram
    headline = ("lowest_curvature", "index", "mode_time", "two_layers", "exponent_3", "exponent_4")
    statement = (
        r"f=\tfrac12\lVert W_L\cdots W_1-Y\rVert^2:\quad \lambda_{\min}=\min_{u\in S,\,v\notin S} s_u^{1-2/L}(s_u-s_v)"
        r"\wedge 0,\ \text{ and } -\max_{v\notin S}s_v \text{ if } L=2,\ |S|<h;\qquad "
        r"T_{1/2}(\alpha)\simeq\begin{cases}\tfrac1s\log\tfrac{\sqrt s}{\alpha} & L=2\\ "
        r"\tfrac{\alpha^{2-L}}{(L-2)\,s} & L\ge 3\end{cases}"
    )
    source = (
        "Ge's lecture of 27 January in the notes [@vodrahalli2019], “Linear Networks”; [@kawaguchi2016]; "
        "[@saxe2014]"
    )
    remarks = (
        "The lecture says that two layers have no higher-order saddles and three or more do. The table of all "
        "eigenvalues, with the factor s_u^(1 − 2/L), is derived here and compared with automatic differentiation.",
        "Only balanced critical points are looked at (each layer carries s_i^(1/L)), up to rotations, and for three "
        "layers those with W_1 = W_3 = 0 and any W_2: these have the value of the origin and are strict, with "
        "λ_min = −s_1‖W_2‖. So the same value of f can belong to a strict and to a flat saddle.",
        "Networks of two layers are wider than Y here, of three as wide, of four narrower: there the best point has "
        "two of the three pairs, and no direction leads down from it.",
        "“If the product of all layers has rank r, a critical point is a global optimum or a saddle” is not tested "
        "apart: with S of full size the formula says it.",
        "Starts with α e_1e_1ᵀ in every layer follow the equation of one mode to the integrator's tolerance. From α "
        "times random orthogonal layers only the exponent is predicted: near the origin the flow is homogeneous, which "
        "gives α^(2 − L) times a constant of the start. With two layers the second mode, α^(2 − 2s_2/s_1) when "
        "the first is learned, bends the line unless s_2 is well below s_1: s = (3, 2, 1), tried first, gave slopes "
        "3 to 9 % too large for α from 0.1 to 0.003.",
    )
    full = {"seeds": 30, "sizes": (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)}
    tiny = {"sizes": (0.1, 0.05, 0.03), "seeds": 3}
    out_of_scope = {"sizes": (2.0, 1.5, 1.4)}

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the hidden width for each depth; the last one given serves all depths that follow."""
        return tuple(self.hidden[min(i, len(self.hidden) - 1)] for i in range(len(self.depths)))

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        d = len(self.singular)
        orthogonal = lambda *shape: np.linalg.qr(rng.normal(size=shape))[0]
        left, right = orthogonal(2, d, d)
        points = []
        falls = []
        for depth, hidden in zip(self.depths, self.widths, strict=True):
            turns = orthogonal(depth - 1, hidden, hidden)
            turned = lambda layers, turns=turns: _turn(layers, left, right, turns)
            sets = [point.chosen for point in linear_network_points(self.singular, depth, hidden)]
            layers = [
                turned(balanced_weights(self.singular, chosen, depth, hidden)) for chosen in sets
            ]
            points.append(tuple(np.stack(layer) for layer in zip(*layers, strict=True)))
            saddle = balanced_weights(self.singular, (0,), depth, hidden)
            # hidden neuron 1 carries the second pair: first from input 1, last to output 1
            direction = [np.zeros_like(layer) for layer in saddle]
            for move in direction:
                move[1, 1] = 1
            falls.append(
                [np.stack(pair) for pair in zip(turned(saddle), turned(direction), strict=True)]
            )
        width = self.widths[self.middle] if self.middle >= 0 else d
        return Setting(
            left,
            right,
            points,
            falls,
            rng.normal(size=(MIDDLES, width, width)),
            orthogonal(self.seeds, max(self.depths), d, d),
        )

    @property
    def middle(self) -> int:
        """Return which network has three layers, or −1."""
        return self.depths.index(3) if 3 in self.depths else -1

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        gaps = -np.diff(self.singular)
        ends = [(self.share * self.singular[0]) ** (1 / depth) for depth in self.depths]
        return [
            assume(
                "smallest gap between singular values",
                gaps.min(initial=np.inf),
                ">",
                0,
                "give them largest first; equal ones make more critical points",
            ),
            assume("singular values", len(self.singular), ">=", 2),
            assume(
                "largest start α, relative to what is learned",
                max(self.sizes) / min(ends),
                "<=",
                0.1,
                "choose smaller --sizes: the law is for small starts",
            ),
            assume("narrowest hidden layer", min(self.hidden), ">=", 2),
            assume("networks of two layers", self.depths.count(2), "==", 1),
            assume("networks of three layers", self.depths.count(3), "==", 1),
            assume("sizes of starts", len(self.sizes), ">=", 3, "an exponent is fitted over them"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        points = self.all_points(self.depths)
        norms = np.linalg.norm(setting.middles, 2, axis=(1, 2))
        first = self.singular[0]
        times = [
            [mode_time(a, first, depth, self.share) for a in self.sizes] for depth in self.depths
        ]
        return Prediction(
            value=("point", [point.value for point in points]),
            lowest=("point", [point.lowest for point in points]),
            index=("point", [point.index for point in points]),
            # longer ones than any are filled with zeros
            spectrum=(
                "point eigenvalue",
                padded([point.eigenvalues for point in points], fill=0.0),
            ),
            middle=("middle", -first * norms),
            order=("depth", np.array(self.depths, float)),
            time=("depth scale", times),
            exponent=("depth", [2.0 - depth for depth in self.depths]),
            slope=1 / first,
        )

    def all_points(self, depths: tuple[int, ...]) -> list:
        """Return what theory says of the critical points of all networks, as if they had these depths."""
        return [
            linear_network_point(self.singular, point.chosen, other, hidden)
            for depth, hidden, other in zip(self.depths, self.widths, depths, strict=True)
            for point in linear_network_points(self.singular, depth, hidden)
        ]

    def observe(self, setting: Setting, key: Key) -> Observation:
        target = setting.left * np.array(self.singular) @ setting.right.T
        risk = linear_network_risk(target)
        certificates = []
        middles = []
        for i, points in enumerate(setting.points):
            if i != self.middle:
                certificates += strict_saddles(risk, points)
                continue
            zeros = [np.zeros((MIDDLES, *layer.shape[1:])) for layer in (points[0], points[2])]
            own = (zeros[0], setting.middles, zeros[1])
            both = tuple(np.concatenate(pair) for pair in zip(points, own, strict=True))
            all_of_three = strict_saddles(risk, both)
            certificates += all_of_three[:-MIDDLES]
            middles = all_of_three[-MIDDLES:]
        falls = [_fall(target, layers) for layers in setting.falls]
        times, arrived = self.times(setting)
        return Observation(
            value=("point", [point.value for point in certificates]),
            gradient=("point", [point.gradient for point in certificates]),
            lowest=("point", [point.lowest for point in certificates]),
            index=("point", [point.index for point in certificates]),
            spectrum=(
                "point eigenvalue",
                padded([point.eigenvalues for point in certificates], fill=0.0),
            ),
            middle=("middle", [point.lowest for point in middles]),
            middle_gradient=("middle", [point.gradient for point in middles]),
            fall=("depth step", falls),
            # the start on the first mode alone, then the random ones
            time=("depth scale start", times),
            arrived=("depth scale start", arrived),
        )

    def times(self, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        """Return when the first mode is learned, and whether it was: ``(depths, scales, 1 + seeds)`` each."""
        d = len(self.singular)
        layers = max(self.depths)
        alone = np.zeros((1, layers, d, d))
        alone[..., 0, 0] = 1
        shapes = np.concatenate([alone, setting.starts])
        grid = (len(self.depths), len(self.sizes), len(shapes))
        starts = np.broadcast_to(
            np.array(self.sizes)[:, None, None, None, None] * shapes, (*grid, layers, d, d)
        ).reshape(-1, layers, d, d)
        depths = np.broadcast_to(np.array(self.depths)[:, None, None], grid).ravel()
        # in the singular vectors of Y, which changes no time
        target = np.diag(self.singular)
        one = lambda case: time_to_learn(case[0], case[1], target, self.share)
        every = compiled(lambda starts, depths: jax.lax.map(one, (starts, depths)))
        times, arrived = every(starts, depths)
        return np.asarray(times).reshape(grid), np.asarray(arrived).reshape(grid)

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        slopes = np.concatenate([observed["gradient"], observed["middle_gradient"]])
        return [
            assume("‖∇f‖ at the constructed points", slopes.max(), "<", 1e-12),
            assume("share of flows that arrived", observed["arrived"].mean(), "==", 1),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        away = {
            name: np.abs(observed[name] - predicted[name]).max()
            for name in ("value", "lowest", "index", "spectrum")
        }
        scales = np.array(self.sizes)
        random = observed["time"][..., 1:]
        checks = [
            agreement("value", away["value"], 1e-10, label="f at all balanced critical points"),
            agreement("lowest_curvature", away["lowest"], 1e-10, label="lowest curvature there"),
            agreement("index", away["index"], 0.0, label="number of directions that lead down"),
            agreement("spectrum", away["spectrum"], 1e-10, label="all eigenvalues of the Hessian"),
            equal(
                "middle",
                predicted["middle"],
                observed["middle"],
                1e-10,
                aggregate="all",
                label="lowest curvature where W_1 = W_3 = 0",
            ),
            agreement(
                "mode_time",
                np.abs(observed["time"][..., 0] / predicted["time"] - 1).max(),
                # the flow's tolerance is 1e-6 a step
                1e-4,
                label="time to learn one mode, relative error",
            ),
        ]
        for i, depth in enumerate(self.depths):
            checks.append(
                exponent(
                    f"order_{depth}",
                    float(predicted["order"][i]),
                    STEPS,
                    observed["fall"][i],
                    # the next order is t^(2L)/2, at most 8e-4 of s t^L, for two layers
                    0.005,
                    label=f"fall of f along the missing mode, {depth} layers",
                )
            )
            if depth == 2:
                slopes = -np.polyfit(np.log(scales), random[i], 1)[0]
                checks.append(
                    equal(
                        "two_layers",
                        float(predicted["slope"]),
                        slopes,
                        # of the second mode, α^(2 − 2s_2/s_1) is left: 0.9 % at α = 0.03
                        0.02,
                        label="time against log(1/α), two layers, random starts",
                    )
                )
                continue
            checks.append(
                exponent(
                    f"exponent_{depth}",
                    float(predicted["exponent"][i]),
                    scales,
                    random[i].T,
                    0.02,
                    label=f"time against α, {depth} layers, random starts",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        points = self.all_points(self.depths)
        twos = self.all_points(tuple(2 for _ in self.depths))
        levels = np.array(self.singular)
        omitted = [np.delete(levels, point.chosen) for point in points]
        best = np.concatenate(
            [
                values == values.min()
                for values in np.split(predicted["value"], self.edges(predicted))
            ]
        )
        top = np.array([left_out.max(initial=0) for left_out in omitted])
        owner = np.repeat(self.depths, np.diff([0, *self.edges(predicted), top.size]))
        bare = padded(
            [
                _without_factor(point.eigenvalues, levels, point.chosen, depth)
                for point, depth in zip(points, owner, strict=True)
            ],
            fill=0.0,
        )
        scales = np.array(self.sizes)
        depths = np.array(self.depths)[:, None]
        first = levels[0]
        late = 0 * depths + np.log(1 / scales) / first
        power = scales ** (1.0 - depths) / ((depths - 1) * first)
        with np.errstate(divide="ignore"):
            leading = np.where(
                depths == 2, late, scales ** (2.0 - depths) / (np.maximum(depths - 2, 1) * first)
            )
        return [
            Rival(
                "square_of_sum",
                predicted.replace(
                    value=("point", [left_out.sum() ** 2 / 2 for left_out in omitted])
                ),
                "the omitted part as one number",
                label="f = ½(Σ_{i∉S} s_i)²",
            ),
            Rival(
                "strict_everywhere",
                predicted.replace(lowest=("point", np.where(best, 0, -top))),
                "right for two layers with an unused neuron",
                label="λ_min = −max s_v at every saddle",
            ),
            Rival(
                "index_of_two",
                predicted.replace(index=("point", [point.index for point in twos])),
                "as if depth changed the path and not the landscape",
                label="the index of two layers at every depth",
            ),
            Rival(
                "bare_gaps",
                predicted.replace(
                    lowest=("point", np.min(bare, 1)),
                    spectrum=("point eigenvalue", bare),
                ),
                "right for s_u = 1 and for two layers",
                label="λ_min = s_u − s_v at every depth, without s_u^(1 − 2/L)",
            ),
            Rival(
                "order_two",
                predicted.replace(order=("depth", 0 * predicted["order"] + 2)),
                "a saddle has negative curvature",
                label="f falls in second order",
            ),
            Rival(
                "order_of_square",
                predicted.replace(order=("depth", 2 * predicted["order"])),
                "the product is of order t^L, and f is a square",
                label="f falls in order 2L",
            ),
            Rival(
                "flat_middle",
                predicted.replace(middle=("middle", 0 * predicted["middle"] - first)),
                "the size of W_2 alone should not matter to the product, which is zero",
                label="λ_min = −s_1 whatever W_2",
            ),
            Rival(
                "logarithm",
                predicted.replace(
                    time=("depth scale", late), exponent=("depth", 0 * predicted["exponent"])
                ),
                "as from every strict saddle",
                label="log(1/α)/s at every depth",
            ),
            Rival(
                "another_power",
                predicted.replace(
                    time=("depth scale", power),
                    exponent=("depth", predicted["exponent"] - 1),
                    slope=predicted["slope"] / 2,
                ),
                "the gradient at the origin is of order α^(L − 1)",
                label="α^(1 − L)/((L − 1)s), and log(1/α)/2s for two layers",
            ),
            Rival(
                "leading_term",
                predicted.replace(time=("depth scale", leading)),
                "the limit of small starts alone",
                label="α^(2 − L)/((L − 2)s) without the rest",
            ),
        ]

    def edges(self, predicted: Prediction) -> np.ndarray:
        """Return where the critical points of the second, third, … network begin."""
        counts = [
            len(linear_network_points(self.singular, depth, hidden))
            for depth, hidden in zip(self.depths, self.widths, strict=True)
        ]
        return np.cumsum(counts)[:-1]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        edges = self.edges(predicted)
        lowest = []
        order = []
        scales = np.array(self.sizes)
        times = []
        shades = np.linspace(0, 1, len(self.depths))
        values = np.split(predicted["value"], edges)
        measured = np.split(observed["lowest"], edges)
        theory = np.split(predicted["lowest"], edges)
        levels = np.unique(np.round(predicted["value"], 9))
        for i, depth in enumerate(self.depths):
            look = {"kind": "points", "shade": shades[i]}
            words = f"{depth} layers"
            place = np.searchsorted(levels, values[i] - 1e-9)
            rank = np.argsort(place)
            lowest.append(observed_curve(place[rank], measured[i][rank], words, **look))
            lowest.append(
                predicted_curve(place[rank], theory[i][rank], "predicted" if not i else "")
            )
            order.append(observed_curve(STEPS, observed["fall"][i], words, **look))
            order.append(
                predicted_curve(STEPS, self.singular[1] * STEPS**depth, "s₂ t^L" if not i else "")
            )
            times.append(observed_curve(1 / scales, observed["time"][i, :, 0], words, **look))
            times.append(
                predicted_curve(
                    1 / scales, predicted["time"][i], "predicted, one mode" if not i else ""
                )
            )
            times.append(
                observed_curve(
                    1 / scales,
                    observed["time"][i, :, 1:].T,
                    "random starts" if not i else "",
                    shade=shades[i],
                )
            )
        return (
            panel(
                "With three layers or more, some saddles have no negative curvature",
                "critical points, best first",
                "lowest eigenvalue of the Hessian",
                *lowest,
            ),
            panel(
                "Along the missing mode f falls in order L",
                "t, length of the move",
                "fall of f",
                *order,
                log="xy",
            ),
            panel(
                "A flat saddle is left after a power of 1/α",
                "1/α",
                "time",
                *times,
                log="xy",
            ),
        )


def _turn(
    layers: tuple[np.ndarray, ...] | list[np.ndarray],
    left: np.ndarray,
    right: np.ndarray,
    turns: np.ndarray,
) -> list[np.ndarray]:
    """Return the layers in other bases: of the input, of each hidden layer and of the output."""
    after = [*turns, left]
    before = [right, *turns]
    return [a @ layer @ b.T for a, layer, b in zip(after, layers, before, strict=True)]


def _fall(target: np.ndarray, layers: list[np.ndarray]) -> np.ndarray:
    """Return f at a saddle minus f a length t further along a direction, for each t of STEPS."""

    def value(step: float) -> float:
        product = np.eye(len(target))
        for saddle, direction in layers:
            product = (saddle + step * direction) @ product
        return ((product - target) ** 2).sum() / 2

    return np.array([value(0.0) - value(step) for step in STEPS])


def _without_factor(
    spectrum: np.ndarray, levels: np.ndarray, chosen: tuple[int, ...], depth: int
) -> np.ndarray:
    """Return a spectrum with s_u ± s_v for each s_u^(1 − 2/L) (s_u ± s_v)."""
    changed = spectrum.copy()
    for first in levels[list(chosen)]:
        for other in np.delete(levels, chosen):
            for pair in (first + other, first - other):
                at = int(np.argmin(np.abs(spectrum - first ** (1 - 2 / depth) * pair)))
                changed[at] = pair
    return np.sort(changed)
