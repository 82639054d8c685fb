"""Class averages and centres are KKT points of p-ReLU networks; descent ends at averages if p < 2, centres if p > 2.

With one example at each of k orthogonal centres, half of each class, split each class into groups and put a neuron at
the average of every group: the network is a KKT point of the margin problem for every p ≥ 1. Such networks differ in
their margin alone: groups of m centres cost m^(p/2), so that one group a class is best below p = 2 and single centres
are best above it; no network has a larger margin. From a very small start descent ends at the better one. Neurons that
weigh the centres of a class unequally are no KKT points, except at p = 2, where all have the same margin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    Within,
    assume,
    bound,
    compiled,
    equal,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend, log_risk_steps
from steepest.linalg import sequential
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import Kinks, KktResiduals, kkt_from_gradients

STEP = 4.0  # of descent on log R
NETWORKS = ("centres", "uneven", "averages")
EXACT = 1e-6  # a residual that counts as none; non-negative least squares leave 1e-9
NO_KKT = 0.1  # the residual of a point that is none is above it
FAR = 0.5  # powers other than 2 are as far from it: near it everything is almost a KKT point


class Setting(NamedTuple):
    """Examples, one at each centre in coordinates along the centres, and starts, one a seed."""

    x: Values  # (K, K)
    y: Values  # (K,), the signs alternate, + first
    starts: Neurons  # w (seeds, h, d), v (seeds, h)


@dataclass(frozen=True)
class PreluKkt(Claim):
    """Two-layer networks Σ v relu⟨w, x⟩^p/‖w‖^{p−1} on k orthonormal examples, half of each class."""

    powers: tuple[Annotated[float, Within(1, 10)], ...] = (1.0, 1.5, 2.0, 3.0, 4.0)  # p [1]
    clusters: tuple[Annotated[int, Within(4, 64)], ...] = (4, 8, 16)  # k, even [1]
    trained_powers: tuple[Annotated[float, Within(1, 10)], ...] = (1.0, 1.5, 3.0, 4.0)  # p [1]
    trained_clusters: tuple[Annotated[int, Within(4, 16)], ...] = (4, 8)  # k of descents, even [1]
    width: Count = 320  # of networks that descend [neurons]
    scale: Positive = 1e-12  # ε, norm of the input weights at the start, about [1]
    steps: Count = 600  # of descent on log R [steps]
    overlap: NonNegative = 0.0  # cosine of two centres [1]
    spread: NonNegative = 0.0  # α, about the distance of an example from its centre [1]
    seeds: Seeds = 5  # independent starts [1]

    kind = "conjecture"
    statement = (
        r"f(x)=\sum_j v_j\frac{\mathrm{relu}\langle w_j,x\rangle^p}{\lVert w_j\rVert^{p-1}},\quad "
        r"w_g\propto\sum_{i\in g}\mu_i\ \text{for groups } g \text{ of centres of one class}:\quad "
        r"\text{KKT for every }p\ge1,\qquad"
        r"\min_i\frac{y_if(\mu_i)}{\lVert\theta\rVert^2}=\frac1{2\sum_g|g|^{p/2}}"
    )
    source = (
        "Second part of the talk [@vidal2024], and its discussion; the margins are our derivation"
    )
    remarks = (
        "A group of m centres with weights w ∝ Σ μ_i has ⟨w, μ_i⟩ = ‖w‖/√m. For margins of one |v|‖w‖ = m^(p/2), and "
        "‖θ‖² = 2 Σ m^(p/2). All multipliers are equal within a group, so that the gradient lies along w. A sum of "
        "m^(p/2) over groups is least for one group if p < 2, and for groups of one if p > 2.",
        "No network of any width has a larger margin than the better of the two: with multipliers λ for all examples, "
        "Σ λ cos^p ≤ 1 over the examples of a class, for every direction, if λ = min(1, (k/2)^(p/2 − 1)), and k λ is "
        "the sum of |v|‖w‖ that it needs (duality of linear programs).",
        "At p = 2 a gradient turns no direction in the span of the centres of its class: neurons with any weights are "
        "KKT points once margins are equal, and all have the margin of the centres. Descent has nothing to decide "
        "there, and is not judged.",
        "At p = 1 the other centres lie on the kink of a neuron at a centre: the conditions hold in Clarke's sense, "
        "with multipliers of their own for kinks, and not with the gradient of the side where the neuron is active.",
        "Descent below 2 needs a very small start and a neuron a class that sees all centres of its class: a neuron "
        "that is dead on a centre is never pulled there, and ends at the average of those that it sees. Neurons that "
        "see m centres grow at a rate ∝ m^(1 − p/2), so that others are left behind slowly. With starts of 0.01 the "
        "margin at the end was 0.86 to 0.99 of that of averages (p = 1 and 1.5, k = 8 and 4, 64 neurons), and 0.89 to "
        "1.00 with 1e-4. The start of 1e-12 was chosen after this was seen and understood. A start without such a "
        "neuron, one of five with 64 neurons and k = 8, ended at 0.92 to 0.96 even from 1e-16. Above 2 the centres win "
        "from any of these starts, to four digits.",
        "Examples must be at the centres. With ten examples about each of eight, 0.1 off them (24 dimensions), neither "
        "network is a KKT point: for p ≥ 1.5 residuals are 0.07 to 0.12 at centres and 0.10 to 0.20 at averages, and "
        "no better at the means of the examples. Descent is by the exponential loss, in steps of log R.",
    )
    corrections = (
        "The discussion expects that for higher p the KKT points are the cluster centres. Class averages, and every "
        "other partition, are KKT points at every p as well: what changes at p = 2 is which has the larger margin.",
    )

    full = {"clusters": (4, 8, 16, 32), "steps": 2000, "seeds": 20}
    tiny = {
        "clusters": (4, 6),
        "trained_clusters": (4,),
        "width": 60,
        "steps": 100,
        "seeds": 3,
    }
    out_of_scope = {"spread": 0.1, "overlap": 0.1}
    headline = ("centres", "averages", "end_0", "end_1", "end_2", "end_3")

    def check_fields(self) -> None:
        for name in ("clusters", "trained_clusters"):
            odd = [k for k in getattr(self, name) if k % 2]
            if odd:
                flag = name.replace("_", "-")
                raise UserError(f"--{flag} must be even, half of each class, got {odd[0]}")

    def setting(self, key: Key) -> Setting:
        largest = max(*self.clusters, *self.trained_clusters)
        d = max(self.trained_clusters)
        for_noise, for_starts = jax.random.split(key)

        def draw(for_noise: Key, seeds: Key) -> tuple[jax.Array, Neurons]:
            noise = jax.random.normal(for_noise, (largest, largest))
            return noise, jax.vmap(two_layer(d, self.width, scale=self.scale).init)(seeds)

        noise, starts = compiled(draw)(for_noise, keys(for_starts, self.seeds))
        # rows are μ_i with products overlap, made of the identity and its mean
        own = np.sqrt(max(1 - self.overlap, 0.0))
        common = (np.sqrt(own**2 + largest * self.overlap) - own) / largest
        centres = own * np.eye(largest) + common
        x = centres + self.spread / np.sqrt(largest) * np.asarray(noise)
        return Setting(x, _signs(largest), jax.tree.map(np.asarray, starts))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        products = setting.x @ setting.x.T
        np.fill_diagonal(products, 0.0)
        powers = np.array([*(p for p in self.powers if p != 2), *self.trained_powers])
        return [
            assume(
                "largest product of two examples",
                np.abs(products).max(),
                "<=",
                1e-12,
                "examples sit at orthogonal centres; set --overlap and --spread to 0",
            ),
            assume(
                "distance of powers from 2, other than 2 itself without descent",
                np.abs(powers - 2).min(initial=np.inf),
                ">=",
                FAR,
                "near p = 2 all mixtures are nearly KKT points, and at 2 ties stay",
            ),
            assume("start ε", self.scale, "<=", 1e-8, "neurons grow apart while they are small"),
            assume(
                "starts without a neuron that sees all centres of its class",
                self.blind(setting.starts),
                "==",
                0,
                "raise --width",
            ),
        ]

    def blind(self, starts: Neurons) -> int:
        """Count starts and problems in which some class has no neuron with positive products with all its centres."""
        count = 0
        for k in self.trained_clusters:
            for first, sign in enumerate((1.0, -1.0)):
                sees = (starts.w[..., first:k:2] > 0).all(-1) & (sign * starts.v > 0)
                count += int((~sees.any(1)).sum())
        return count

    def predict(self, setting: Setting) -> Prediction:
        uneven = self.ratios(lambda k, p: k / (2 + 2 * (k / 2 - 1) ** (p / 2)))
        return Prediction(
            **dict.fromkeys(NETWORKS, 0.0),
            tied=0.0,
            ratio=("power problem", self.ratios(lambda k, p: (k / 2) ** (1 - p / 2))),
            uneven_ratio=("power problem", uneven),
            end=("trained_power trained_problem", np.maximum(self.candidates(), 1.0)),
        )

    def ratios(self, law: Callable[[np.ndarray, float], np.ndarray]) -> np.ndarray:
        """Return a law of k and p at all powers and problems, ``(powers, problems)``."""
        k = np.array(self.clusters, float)
        return np.stack([law(k, power) for power in self.powers])

    def candidates(self) -> np.ndarray:
        """Return the margin of averages over that of centres, for networks that descend."""
        k = np.array(self.trained_clusters)
        return np.stack([(k / 2) ** (1 - power / 2) for power in self.trained_powers])

    def observe(self, setting: Setting, key: Key) -> Observation:
        params = self.descents(setting)
        return self.measure(setting, params)

    def descents(self, setting: Setting) -> Neurons:
        """Descend from all starts: ``w`` has shape (seeds, powers, problems, h, d)."""
        d = max(self.trained_clusters)
        x = jnp.asarray(setting.x[:d, :d])
        y = jnp.asarray(setting.y[:d])

        def one(start: Neurons, power: jax.Array, k: jax.Array) -> Neurons:
            net = two_layer(d, self.width, power=power)
            counts = (jnp.arange(d) < k).astype(float)
            risk = lambda params: jax.nn.logsumexp(-y * net.apply(params, x), b=counts)
            return descend(risk, start, log_risk_steps(STEP), self.steps, record=self.steps).params

        over_problems = jax.vmap(one, (None, None, 0))
        over_powers = jax.vmap(over_problems, (None, 0, None))
        every = compiled(jax.vmap(over_powers, (0, None, None)))
        powers = np.array(self.trained_powers)
        ends = every(setting.starts, powers, np.array(self.trained_clusters))
        return jax.tree.map(np.asarray, ends)

    @sequential
    def measure(self, setting: Setting, params: Neurons) -> Observation:
        """Measure residuals and margins of the candidates, of what is none, and of the trained networks."""
        shape = (len(self.powers), len(self.clusters))
        names = (*NETWORKS, "mixture", "lopsided", "random", "far_side")
        residual = {name: np.zeros(shape) for name in names}
        margin = {name: np.zeros(shape) for name in NETWORKS}
        rng = np.random.default_rng(0)
        for i, power in enumerate(self.powers):
            for j, k in enumerate(self.clusters):
                x = setting.x[:k]
                y = setting.y[:k]
                look = partial(residuals, x=x, y=y, power=power)
                for name in NETWORKS:
                    kkt = look(grouped(x, y, power, name))
                    residual[name][i, j] = kkt.largest
                    margin[name][i, j] = kkt.margin
                    far = look(grouped(x, y, power, name), clarke=False).largest
                    residual["far_side"][i, j] = max(far, residual["far_side"][i, j])
                residual["mixture"][i, j] = look(weighed(x, y, power, all_of_them=True)).largest
                residual["lopsided"][i, j] = look(weighed(x, y, power, all_of_them=False)).largest
                own = y[:, None] == y
                drawn = own * np.abs(rng.standard_normal((k, k)))
                residual["random"][i, j] = look(network(drawn @ x, y, power)).largest
        ends = params.v.shape[:3]
        end = np.zeros(ends)
        trained = np.zeros(ends)
        for place in np.ndindex(*ends):
            power = self.trained_powers[place[1]]
            k = self.trained_clusters[place[2]]
            x = setting.x[:k, : params.w.shape[-1]]
            one = Neurons(params.w[place], params.v[place])
            kkt = residuals(one, x=x, y=setting.y[:k], power=power)
            end[place] = 2 * k * kkt.margin
            trained[place] = kkt.largest
        return Observation(
            **{name: ("power problem", values) for name, values in residual.items()},
            ratio=("power problem", margin["averages"] / margin["centres"]),
            uneven_ratio=("power problem", margin["uneven"] / margin["centres"]),
            end=("seed trained_power trained_problem", end),
            trained=("seed trained_power trained_problem", trained),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        powers = np.array(self.powers)
        two = powers == 2
        checks: list[Check] = []
        for name in NETWORKS:
            checks.append(
                equal(
                    name,
                    float(predicted[name]),
                    observed[name].max(),
                    EXACT,
                    absolute=True,
                    label=f"largest KKT residual, {LABELS[name]}",
                )
            )
        other = observed["mixture"][~two]
        if other.size:
            checks.append(
                bound(
                    "mixtures",
                    other.min(),
                    at_least=NO_KKT,
                    label="least KKT residual of neurons with unequal weights, p ≠ 2",
                )
            )
        if two.any():
            checks.append(
                equal(
                    "tied",
                    float(predicted["tied"]),
                    observed["mixture"][two].max(),
                    EXACT,
                    absolute=True,
                    label="KKT residual of neurons with unequal weights, p = 2",
                )
            )
        for i, power in enumerate(self.powers):
            checks.append(
                equal(
                    f"margin_{i}",
                    predicted["ratio"][i],
                    observed["ratio"][i],
                    EXACT,
                    label=f"margin of averages / that of centres, over (k/2)^(1 − p/2), p = {power:g}",
                    aggregate="all",
                )
            )
        several = np.array(self.clusters) > 4  # of four, two a class, uneven groups are the centres
        if several.any():
            checks.append(
                equal(
                    "uneven_margin",
                    predicted["uneven_ratio"][:, several].ravel(),
                    observed["uneven_ratio"][:, several].ravel(),
                    EXACT,
                    label="margin of uneven groups / that of centres, over the predicted one, all p",
                    aggregate="all",
                )
            )
        for i, power in enumerate(self.trained_powers):
            checks.append(
                equal(
                    f"end_{i}",
                    np.ones(self.seeds),
                    (observed["end"][:, i] / predicted["end"][i]).mean(1),
                    0.03,
                    label=f"margin where descent ends / the larger one, p = {power:g}",
                )
            )
        checks.append(
            bound(
                "trained",
                observed["trained"].max((1, 2)),
                at_most=0.05,
                label="largest KKT residual where descent ends",
            )
        )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        ratio = lambda law: ("power problem", self.ratios(law))
        ends = lambda values: ("trained_power trained_problem", values)
        ones = np.ones_like(predicted["end"])
        return [
            Rival(
                "centres_only",
                predicted.replace(averages=NO_KKT, uneven=NO_KKT),
                "the discussion expects the centres for higher p",
                label="the centres are the only KKT points",
            ),
            Rival(
                "averages_only",
                predicted.replace(centres=NO_KKT, uneven=NO_KKT),
                "ReLU networks are known to end there",
                label="the averages are the only KKT points",
            ),
            Rival(
                "no_ties",
                predicted.replace(tied=NO_KKT),
                "p = 2 as every other power",
                label="unequal weights are no KKT point at p = 2 either",
            ),
            Rival(
                "both_classes",
                predicted.replace(ratio=ratio(lambda k, p: k ** (1 - p / 2))),
                "k counts the centres of both classes",
                label="margins differ by k^(1 − p/2)",
            ),
            Rival(
                "no_square",
                predicted.replace(
                    ratio=ratio(lambda k, p: (k / 2) ** (1 - p)),
                    uneven_ratio=ratio(lambda k, p: k / (2 + 2 * (k / 2 - 1) ** p)),
                ),
                "weights 1/m for each of m centres, and not 1/√m, make an average",
                label="groups of m cost m^p: margins differ by (k/2)^(1 − p)",
            ),
            Rival(
                "other_end",
                predicted.replace(end=ends(np.minimum(self.candidates(), 1.0))),
                "both are KKT points, and a KKT point need be no solution",
                label="descent ends at the smaller margin",
            ),
            Rival(
                "always_centres",
                predicted.replace(end=ends(ones)),
                "examples sit there",
                label="descent ends at centres for every p",
            ),
            Rival(
                "always_averages",
                predicted.replace(end=ends(self.candidates())),
                "simplicity bias: as few directions as fit",
                label="descent ends at averages for every p",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        residual = lambda name: ("power problem", observed[name])
        every = lambda name: observed.replace(
            **dict.fromkeys(NETWORKS, residual(name)),
            trained=(
                observed.quantity("trained").dims,
                np.full_like(observed["trained"], observed[name].min()),
            ),
        )
        controls = [
            Control(
                "lopsided",
                every("lopsided"),
                "margins differ, and the examples with the larger ones may not carry the weights",
                "one neuron a class that weighs a centre twice",
            ),
            Control(
                "random",
                every("random"),
                "nothing made them optimal",
                "neurons with random weights of the centres of their class",
            ),
        ]
        two = np.array(self.powers) == 2
        if two.any():
            tied = np.where(two[:, None], observed["mixture"], observed["mixture"][two])
            controls.append(
                Control(
                    "ties",
                    observed.replace(mixture=("power problem", tied)),
                    "a gradient turns no direction in the span of its centres there",
                    "the same neurons at p = 2",
                )
            )
        if 1.0 in self.powers:
            controls.append(
                Control(
                    "far_side",
                    observed.replace(**dict.fromkeys(NETWORKS, residual("far_side"))),
                    "ReLU has kinks at the centres of other neurons, and one side's gradient is not Clarke's",
                    "the gradients of the active side at kinks of ReLU",
                )
            )
        return controls

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        powers = np.array(self.powers)
        shown = {"centres": "centres", "averages": "averages", "mixture": "weights 2 : 1 : 1 …"}
        points = partial(observed_curve, kind="points")
        half = np.array(self.clusters) / 2
        fine = np.geomspace(half.min(), half.max(), 30)
        fine_powers = np.linspace(min(self.trained_powers), max(self.trained_powers), 60)
        largest = int(np.argmax(self.trained_clusters))
        k = self.trained_clusters[largest]
        averages = (k / 2) ** (1 - fine_powers / 2)
        floor = 1e-16
        return (
            panel(
                "Both are KKT; mixtures only at p = 2",
                "power p",
                "largest residual",
                *(
                    points(powers, np.maximum(observed[name].max(1), floor), label, shade=shade)
                    for shade, (name, label) in zip((0, 0.4, 0.8), shown.items(), strict=True)
                ),
                log="y",
            ),
            panel(
                "Margins cross at p = 2",
                "centres a class k/2",
                "margin of averages / of centres",
                *(
                    points(half, observed["ratio"][i], f"p = {power:g}", shade=shade)
                    for i, (power, shade) in enumerate(
                        zip(self.powers, np.linspace(0, 0.8, len(powers)), strict=True)
                    )
                ),
                *(
                    predicted_curve(fine, fine ** (1 - p / 2), "(k/2)^(1 − p/2)" if i == 0 else "")
                    for i, p in enumerate(self.powers)
                ),
                log="xy",
            ),
            panel(
                f"Descent ends at the larger margin, k = {k}",
                "power p",
                "margin / that of centres",
                points(np.array(self.trained_powers), observed["end"][:, :, largest], "descents"),
                predicted_curve(fine_powers, np.maximum(averages, 1.0), "the larger one"),
                rival_curve(fine_powers, np.minimum(averages, 1.0), "the smaller one"),
                log="y",
            ),
        )


LABELS = {
    "centres": "neurons at all centres",
    "uneven": "one centre alone and the others' average",
    "averages": "neurons at class averages",
}


def _signs(k: int) -> np.ndarray:
    return np.where(np.arange(k) % 2 == 0, 1.0, -1.0)


def network(
    w: np.ndarray, y: np.ndarray, power: float, strength: np.ndarray | float = 1.0
) -> Neurons:
    """Return balanced neurons in these directions with |v|‖w‖ = ``strength`` and signs ``y``."""
    lengths = np.sqrt(np.broadcast_to(strength, len(w)))
    v: Any = lengths * y
    return Neurons(lengths[:, None] * w / np.linalg.norm(w, axis=1)[:, None], v)


def grouped(x: np.ndarray, y: np.ndarray, power: float, name: str) -> Neurons:
    """Return neurons at the averages of groups, with margins of one at orthonormal examples."""
    rows = []
    signs = []
    for sign in (1.0, -1.0):
        own = np.flatnonzero(y == sign)
        groups = {
            "centres": [[i] for i in own],
            "uneven": [own[:1], own[1:]],
            "averages": [own],
        }[name]
        for group in groups:
            row = np.zeros(len(x))
            row[group] = 1.0
            rows.append(row)
            signs.append(sign)
    weights = np.array(rows)
    return network(weights @ x, np.array(signs), power, weights.sum(1) ** (power / 2))


def weighed(x: np.ndarray, y: np.ndarray, power: float, *, all_of_them: bool) -> Neurons:
    """Return neurons that weigh one centre of a class twice: each centre in turn, with equal margins, or the first."""
    weights = (y[:, None] == y) + np.eye(len(y))
    rows = np.arange(len(y)) if all_of_them else np.arange(2)
    return network(weights[rows] @ x, y[rows], power)


def residuals(
    params: Neurons, *, x: np.ndarray, y: np.ndarray, power: float, clarke: bool = True
) -> KktResiduals:
    """Measure KKT residuals, at kinks of ReLU in Clarke's sense or with the gradient of the active side.

    The active side is where the kinks' multipliers set out from.
    """
    products = x @ params.w.T  # (k, h)
    sizes = np.linalg.norm(params.w, axis=1)
    active = np.maximum(products, 0.0)
    unit = params.w / sizes[:, None]
    signed = y[:, None] * params.v
    outputs = active**power * sizes ** (1 - power)
    if power == 1:
        slope = (products >= 0).astype(float)
    else:
        slope = power * (active / sizes) ** (power - 1)
    inner = signed * slope  # of y f in ⟨w_j, x_i⟩
    lengths = (1 - power) * signed * outputs / sizes
    blocks = inner[:, :, None] * x[:, None] + lengths[:, :, None] * unit
    gradients = np.hstack([blocks.reshape(len(x), -1), y[:, None] * outputs])
    kinks = None
    if power == 1 and clarke:
        example, neuron = np.nonzero(products == 0)
        jump = np.zeros((len(example), *blocks.shape[1:]))
        jump[np.arange(len(example)), neuron] = -signed[example, neuron][:, None] * x[example]
        jump = jump.reshape(len(example), params.w.size)
        kinks = Kinks(example, np.hstack([jump, np.zeros((len(example), len(sizes)))]))
    theta = np.append(params.w.ravel(), params.v)
    margins = y * (outputs @ params.v)
    return kkt_from_gradients(theta, margins, gradients, 2.0, kinks)
