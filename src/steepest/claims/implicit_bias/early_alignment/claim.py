"""From a small start the neurons of a ReLU network first turn to the sums of their classes, then grow.

Two-layer ReLU networks on μ-orthogonally separable data, started balanced at scale ε: while all norms stay of order
√ε and the loss is flat, every living neuron turns toward the sum of the positive examples if its output weight is
positive, of the negative ones if it is negative. After a time of order log(1/ε) the norms grow and the loss falls
like 1/(t log t).

On two examples with the cosine μ a neuron that sees only one of them turns to it, and so toward the other, which it
sees after a time of order log(1/μ). Sources bound such times by (log n)/μ or (log n)/√μ.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
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
    Values,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    keys,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import flow
from steepest.nn.data import orthogonal_separability, orthogonally_separable
from steepest.nn.losses import exponential, log_margin_risk, margin_risk
from steepest.nn.networks import Neurons, two_layer
from steepest.programs import hard_margin


class Setting(NamedTuple):
    """Data and initial networks of scale one, one a seed; and as many sets of two examples, repeated to n."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    start: Neurons  # (seeds, h, d) and (seeds, h)
    pairs: Values  # the two examples of each set, of unit length, (seeds, 2, d)


@dataclass(frozen=True)
class EarlyAlignment(Claim):
    """Gradient flow of the exponential loss at several scales of the start."""

    # ε, scales of the start, the first is looked into [1]
    scales: tuple[Positive, ...] = (1e-8, 1e-7, 1e-6, 1e-5)
    width: Count = 30  # neurons h [neurons]
    n: Count = 20  # examples [1]
    dimension: Count = 8  # input dimension d [1]
    mu: Fraction = 0.1  # least y_i y_j cos(x_i, x_j) aimed at by the data [1]
    least_mu: Fraction = 0.003  # smallest μ of the sets of two examples [1]
    flipped: Fraction = 0.0  # part of the labels that is flipped, which ends separability [1]
    seeds: Seeds = 6  # data sets with a network each [1]
    horizon: Positive = 20.0  # log(1 + t) at the end of the flow [1]
    readings: Count = 160  # points of each path [1]

    kind = "limit"
    version = 3  # 1 asked for a cosine of 0.99 and the exponent −1 ± 0.1; 2 did not vary μ
    headline = ("cosine", "growth", "delay")
    statement = (
        r"\frac{w_j}{\lVert w_j\rVert}\to\frac{x_\pm}{\lVert x_\pm\rVert},\quad x_\pm=\sum_{y_i=\pm1}x_i,"
        r"\qquad t\le\frac{1}{2C}\log\frac1\varepsilon,\quad C=\frac{\max\lVert x_\pm\rVert}{n}"
    )
    source = "The talk [@vidal2024]; [@min2024a]"
    corrections = (
        "The window is stated with the constant n max‖x_i‖ for the summed loss; the best constant for the mean loss is "
        "C = max‖x_±‖/n, reached by aligned neurons, and norms² grow at most like exp(2Ct).",
        "The time after which neurons see their whole class is bounded by a multiple of (log n)/μ in the talk and of "
        "(log n)/√μ in the paper. On two examples neither is the law: there it is log(1/μ), by a closed form.",
    )
    remarks = (
        "With two homogeneous layers the risk falls like 1/(t log t): the local exponent −1 − 1/log t is predicted, "
        "and the 1/t of the sources is refuted at these times.",
        "Alignment is of the window only: by log t = 20 the least cosine has fallen to 0.91 to 0.95 at the seeds "
        "looked at, as the network turns to its margin. It is the control.",
        "Version 2 asks for a cosine of 1 − 10⁻⁴ where 0.99 was asked, and adds that norms² stay below ε‖w₀‖² in the "
        "window. Version 3 adds the sets of two examples, over a range of μ, and asks for the risk in the window what "
        "that bound on norms allows, where 1 − 10⁻⁵ was asked.",
        "On two unit examples of one class, repeated to n in all, a neuron that sees only x₁ has tan(θ/2) ∝ exp(−pt), "
        "with θ its angle to x₁ and p the share of x₁ in the n. It meets x₂ at tan θ = μ/|b|, where b sin θ is its "
        "component along what x₂ has beside x₁. No set takes longer than log(2/μ): see alignment-time.",
        "A neuron that is inactive on all examples has no gradient and never moves; one that starts active only on the "
        "other class may die. Neurons that start active on their own class all live.",
    )
    full = {"width": 100, "n": 60, "dimension": 20, "seeds": 15}
    tiny = {
        "scales": (1e-5, 1e-4),
        "least_mu": 0.03,
        "width": 4,
        "n": 6,
        "dimension": 3,
        "seeds": 3,
        "readings": 30,
    }
    out_of_scope = {"flipped": 0.3}

    def setting(self, key: Key) -> Setting:
        return compiled(self.draw)(key)

    def draw(self, key: Key) -> Setting:
        """Draw the data sets, flip labels and draw the networks."""
        for_data, for_start, for_flips = jax.random.split(key, 3)
        one = lambda k: orthogonally_separable(k, self.n, self.dimension, self.mu)
        x, y = jax.vmap(lambda k: (one(k).x, one(k).y))(keys(for_data, self.seeds))
        y = jnp.where(jax.random.uniform(for_flips, y.shape) < self.flipped, -y, y)
        init = two_layer(self.dimension, self.width).init
        # any two directions will do: starts are isotropic
        mus = self.mus
        axes = jnp.eye(2, self.dimension)
        second = mus[:, None] * axes[0] + np.sqrt(1 - mus**2)[:, None] * axes[1]
        pairs = jnp.stack([jnp.broadcast_to(axes[0], second.shape), second], 1)
        return Setting(x, y, jax.vmap(init)(keys(for_start, self.seeds)), pairs)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        mu = compiled(jax.vmap(orthogonal_separability))(setting.x, setting.y)
        turn = np.sqrt(
            self.scales[0]
        )  # tan(angle/2) shrinks like exp(−Ct), so by √ε over the window
        return [
            assume("μ of the data", np.min(mu), ">", 0, "the data are not orthogonally separable"),
            assume(
                "shrinkage √ε of the angles in the window",
                turn,
                "<=",
                0.01,
                "choose a smaller first scale",
            ),
            assume(
                "least μ of two examples / 2√ε",
                self.least_mu / (2 * turn),
                ">",
                1,
                "raise --least_mu, or choose a smaller first scale",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        x = np.asarray(setting.x)
        y = np.asarray(setting.y)
        sums = np.stack(
            [(x * (y == sign)[..., None]).sum(1) for sign in (1, -1)], 1
        )  # (seeds, 2, d)
        rate = np.linalg.norm(sums, axis=-1).max(1) / self.n
        return Prediction(
            targets=("seed class unknown", sums / np.linalg.norm(sums, axis=-1, keepdims=True)),
            window=("seed", np.log(1 / self.scales[0]) / (2 * rate), "time"),
            # |f| ≤ Σ_j ‖w_j‖²‖x‖, with ‖w_j‖² at most ε‖w₀‖²
            outputs=(
                "seed",
                self.scales[0]
                * (np.asarray(setting.start.w) ** 2).sum((1, 2))
                * np.linalg.norm(x, axis=-1).max(1),
            ),
            delay=("seed", 1 / rate, "time"),  # the loss falls when ε² exp(2Ct) is of order one
            alive=1.0,
            # −1 − 1/log t in the middle of the last fifth
            late_exponent=-1 - 1 / (0.9 * self.horizon),
            selection=("seed neuron", self.selection(setting), "time"),
        )

    @property
    def mus(self) -> np.ndarray:
        """Return the cosine of each set of two examples, shape ``(seeds,)``."""
        return np.geomspace(self.least_mu, 0.3, self.seeds)

    @property
    def copies(self) -> np.ndarray:
        """Return which of the two examples stands at each of the n places, shape ``(n,)``."""
        return np.arange(self.n) % 2

    def selection(self, setting: Setting) -> np.ndarray:
        """Return when a neuron that sees one of two examples meets the other, shape ``(seeds, h)``; one for all others.

        While it sees x₁ only, ``dw/dt = p v x₁`` with ``v = ‖w‖``, so that ``dθ/dt = −p sin θ``.
        """
        pairs = np.asarray(setting.pairs)
        starts = np.asarray(setting.start.w)
        directions = starts / np.linalg.norm(starts, axis=-1, keepdims=True)
        cosines = np.einsum("shd,sed->seh", directions, pairs)
        mu = (pairs[:, 0] * pairs[:, 1]).sum(-1)[:, None]
        seen = cosines.max(1)
        unseen = cosines.min(1)
        angle = np.arccos(seen)
        beside = (unseen - mu * seen) / np.sin(angle)
        meets = np.arctan2(mu, -beside)
        share = np.where(cosines.argmax(1) == 0, (self.copies == 0).mean(), self.copies.mean())
        with np.errstate(invalid="ignore", divide="ignore"):
            times = np.log(np.tan(angle / 2) / np.tan(meets / 2)) / share
        return np.where(_one_sided(setting), times, 1.0)

    def observe(self, setting: Setting, key: Key) -> Observation:
        net = two_layer(self.dimension, self.width)
        readings = np.linspace(0, self.horizon, self.readings)

        def follow(
            x: jax.Array, y: jax.Array, start: Neurons, readings: jax.Array, scale: jax.Array
        ) -> tuple:
            params = jax.tree.map(lambda leaf: scale * leaf, start)
            risks = [make(exponential, net.apply, x, y) for make in (margin_risk, log_margin_risk)]
            settings = {"observe": {"w": lambda p: p.w}, "rtol": 1e-4, "atol": 1e-12}
            path = flow(risks[0], params, readings, "log", risks[1], **settings)
            return path.log_risk, path.observed["w"]

        over_scales = jax.vmap(follow, (None, None, None, None, 0))
        over_seeds = compiled(jax.vmap(over_scales, (0, 0, 0, None, None)))
        scales = np.array(self.scales)
        log_risk, every_scale = over_seeds(*setting[:3], readings, scales)
        x, y, start, pairs = jax.tree.map(np.asarray, tuple(setting))
        # a neuron that sees one example has grown by ε^(−1/2) at the last of these times, and is still small
        times = np.log(1 / self.scales[0]) * np.linspace(0, 1, self.readings) ** 2
        repeated = pairs[:, self.copies]
        smallest = np.full_like(scales, self.scales[0])  # as many as above: the program is the same
        _, small = over_seeds(repeated, np.ones_like(y), start, np.log1p(times), smallest)
        toward = np.einsum("srhd,sed->srhe", np.asarray(small)[:, 0], pairs)
        weights = np.asarray(every_scale)[:, 0]  # (seeds, readings, h, d)
        active = np.einsum("srhd,snd->srhn", weights, x) > 0
        own_class = y[:, None] * start.v[..., None] > 0
        return Observation(
            log_time=("reading", readings),
            log_risk=("seed scale reading", log_risk),
            weights=("seed reading neuron unknown", weights),
            positive=("seed neuron", start.v > 0),
            alive=("seed reading neuron", active.any(-1)),
            own=("seed neuron", (active[:, 0] & own_class).any(-1)),
            one_sided=("seed neuron", _one_sided(setting)),
            selection=("seed neuron", _meeting(times, toward), "time"),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        time = np.expm1(observed["log_time"])
        last = (
            np.searchsorted(time, predicted["window"], side="right") - 1
        )  # the last reading inside the window
        seeds = np.arange(len(last))
        turned = _turned(observed, predicted["targets"])[seeds, last]  # (seeds, neurons)
        alive = observed["alive"][seeds, last]
        starts = (observed["weights"][:, 0] ** 2).sum(-1)  # ε²‖w₀‖²
        ends = (observed["weights"][seeds, last] ** 2).sum(-1)
        log_risk = observed["log_risk"]
        falls = np.array([[np.interp(0.1, -path, time) for path in paths] for paths in log_risk])
        delays = [np.polyfit(np.log(1 / np.array(self.scales)), times, 1)[0] for times in falls]
        # of all neurons that see one example, at each μ
        waits = np.stack(
            [
                np.where(observed["one_sided"], times, 0.0).sum(-1)
                for times in (observed["selection"], predicted["selection"])
            ]
        )[:, observed["one_sided"].any(-1)]
        late = slice(-self.readings // 5, None)
        late_time = np.exp(observed["log_time"][late])
        late_risk = np.exp(log_risk[:, 0, late])
        return [
            bound(
                "cosine",
                np.where(alive, turned, 1).min(1),
                # tan(angle/2) has shrunk by √ε = 1e-4 in the stronger class, by ε^(C₋/2C) in the weaker one; cosines
                # are quadratic in it
                at_least=1 - 1e-4,
                label="least cosine of a living neuron at the window's end",
            ),
            equal(
                "alive",
                float(predicted["alive"]),
                (alive & observed["own"]).sum(1) / observed["own"].sum(1),
                0.0,
                label="neurons that start on their class and live",
            ),
            bound(
                "window_risk",
                -np.expm1(log_risk[seeds, 0, last]) / predicted["outputs"],
                at_most=1.0,
                aggregate="all",
                label="fall of the risk in the window / what ‖w‖² ≤ ε‖w₀‖² allows",
            ),
            bound(
                "growth",
                (self.scales[0] * ends / starts).max(1),
                at_most=1.0,
                aggregate="all",
                label="‖w‖² at the window's end over ε‖w₀‖², largest of the neurons",
            ),
            equal("delay", predicted["delay"], delays, 0.1, label="delay of the fall per log(1/ε)"),
            equal(
                "selection",
                np.ones(waits.shape[1]),
                waits[0] / waits[1],
                # exact as ε → 0; readings are at most 0.25 apart where times are 10, which costs 0.2 %
                0.01,
                label="two examples: time until neurons see both / predicted, mean over μ",
            ),
            exponent(
                "late_exponent",
                float(predicted["late_exponent"]),
                late_time,
                late_risk,
                # the next term is of order 1/log² t = 0.003
                0.02,
                label="risk against time in the end",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        weights = observed["weights"]
        late = np.concatenate(
            [weights[:, :1], np.repeat(weights[:, -1:], weights.shape[1] - 1, 1)], 1
        )
        return [
            Control(
                "late",
                observed.replace(weights=(observed.quantity("weights").dims, late)),
                "after the window the network turns to its margin",
                "the neurons at the end of the flow",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        sets = zip(np.asarray(setting.x), np.asarray(setting.y), strict=True)
        best = [hard_margin(x, y).direction for x, y in sets]
        margin = predicted.replace(targets=("seed class unknown", [(w, -w) for w in best]))
        linear = predicted.replace(delay=("seed", predicted["delay"] / 2, "time"))
        first = np.einsum("shd,snd->shn", setting.start.w, setting.x) > 0
        same = np.asarray(setting.y)[:, None] * np.asarray(setting.start.v)[..., None] > 0
        on_own = (first & same).any(-1)
        pure = on_own & ~(first & ~same).any(-1)
        # a power of μ in place of the logarithm, from the largest μ on
        logarithm = np.log1p(2 / self.mus)
        power = lambda order: (self.mus[-1] / self.mus) ** order * logarithm[-1] / logarithm
        waiting = lambda factors: predicted.replace(
            selection=("seed neuron", predicted["selection"] * factors[:, None], "time")
        )
        longest = np.linalg.norm(np.asarray(setting.x), axis=-1).max(1)
        return [
            Rival(
                "long_window",
                predicted.replace(window=("seed", 2 * predicted["window"], "time")),
                "norms, and not their squares, grow like exp(Ct)",
                label="the window is log(1/ε)/C",
            ),
            Rival(
                "longest_example",
                predicted.replace(delay=("seed", 1 / longest, "time")),
                "it is the constant of the source",
                label="C = max‖x_i‖",
            ),
            Rival(
                "mixed_die",
                predicted.replace(alive=pure.sum() / on_own.sum()),
                "the other class pulls them off all examples, as those die that it holds alone",
                label="neurons that start on both classes die",
            ),
            Rival(
                "selection_root",
                waiting(power(0.5)),
                "the bound of the paper",
                label="neurons see both after a time ∝ 1/√μ",
            ),
            Rival(
                "selection_inverse",
                waiting(power(1.0)),
                "the bound of the talk",
                label="neurons see both after a time ∝ 1/μ",
            ),
            Rival(
                "selection_sum",
                waiting(0.5 / np.sqrt((1 + self.mus) / 2)),
                "it is the rate C of the window",
                label="the pull of both examples from the start",
            ),
            Rival(
                "one_over_t",
                predicted.replace(late_exponent=-1.0),
                "it is what the source says",
                label="the risk falls like 1/t",
            ),
            Rival(
                "maximal_margin",
                margin,
                "that is where linear classifiers end",
                label="neurons turn to the maximal margin",
            ),
            Rival(
                "early_fall",
                linear,
                "norms are then still of order √ε",
                label="the fall comes at the window's end",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        few = observed["log_time"] <= 6
        time = np.expm1(observed["log_time"][few])
        window = predicted["window"][0]
        turned = _turned(observed, predicted["targets"])[0].T[:, few]
        norms = np.linalg.norm(observed["weights"][0], axis=-1).T[:, few]
        risks = [
            observed_curve(
                observed["log_time"],
                np.exp(observed["log_risk"][0, i]),
                f"ε = {scale:g}",
                shade=i / len(self.scales),
            )
            for i, scale in enumerate(self.scales)
        ]
        law = np.exp(
            observed["log_risk"][0, 0, -1] + observed["log_time"][-1] - observed["log_time"]
        )
        end = predicted_curve((window, window), (-1, 1), "end of the window")
        one_sided = observed["one_sided"]
        some = one_sided.any(-1)
        waits = [
            np.where(one_sided, times, 0.0).sum(-1)[some] / one_sided.sum(-1)[some]
            for times in (observed["selection"], predicted["selection"])
        ]
        mus = self.mus[some]
        return (
            panel(
                "Neurons turn to the sum of their class",
                "time",
                "cosine",
                observed_curve(time, turned, "neurons"),
                end,
            ),
            panel(
                "Meanwhile norms stay small",
                "time",
                "‖w‖",
                observed_curve(time, norms, "neurons"),
                predicted_curve((window, window), (norms.min(), 1), "end of the window"),
                log="y",
            ),
            panel(
                "The smaller the start, the later the fall; then 1/t",
                "log(1 + t)",
                "risk",
                *risks,
                predicted_curve(observed["log_time"], law, "1/t"),
                log="y",
                ylim=(1e-9, 3),
            ),
            panel(
                "Two examples: the time until both are seen is logarithmic",
                "μ",
                "mean time",
                observed_curve(mus, waits[0], "neurons that see one", kind="points"),
                predicted_curve(mus, waits[1], "closed form"),
                rival_curve(mus, waits[1][-1] * np.sqrt(mus[-1] / mus), "1/√μ"),
                log="xy",
            ),
        )


def _turned(observed: Observation, targets: np.ndarray) -> np.ndarray:
    """Cosine of each neuron with its class's direction, shape (seeds, readings, neurons)."""
    mine = np.where(observed["positive"][..., None], targets[:, :1], targets[:, 1:])
    weights = observed["weights"]
    directions = mine[:, None]
    sizes = np.linalg.norm(weights, axis=-1) * np.linalg.norm(directions, axis=-1)
    products = (weights * directions).sum(-1)
    return np.divide(products, sizes, out=np.zeros_like(products), where=sizes > 0)


def _one_sided(setting: Setting) -> np.ndarray:
    """Which neurons with a positive output weight see exactly one of the two examples, shape ``(seeds, h)``."""
    products = np.einsum("shd,sed->she", np.asarray(setting.start.w), np.asarray(setting.pairs))
    return ((products > 0).sum(-1) == 1) & (np.asarray(setting.start.v) > 0)


def _meeting(times: np.ndarray, products: np.ndarray) -> np.ndarray:
    """Return when a neuron first sees both examples, shape ``(seeds, h)``; infinite where it does not.

    The least of its two products, over the norm that they give, is continued in a straight line from the two readings
    before: at the meeting the second example begins to pull, which is a kink.
    """
    least = (products / np.linalg.norm(products, axis=-1, keepdims=True)).min(-1)
    first = (least > 0).argmax(1)  # of the readings
    before = np.maximum(first - 1, 1)
    seed, neuron = np.indices(first.shape)
    one = least[seed, before - 1, neuron]
    two = least[seed, before, neuron]
    step = times[before] - times[before - 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        met = times[before] + step * two / (one - two)
    return np.where(first > 0, met, np.inf)
