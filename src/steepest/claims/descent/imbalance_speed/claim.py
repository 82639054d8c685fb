"""Imbalance between its layers makes a two-layer linear network learn faster.

Gradient flow on the risk ½‖Y − UVᵀ‖² with target Y keeps the imbalance D = UᵀU − VᵀV of the layers U and V. So D and
the margin of the start bound the least singular values of both layers from below at all times, and hence the rate of
the flow. Descent does not keep D. But if its steps adapt to the layers, the risk still falls exponentially: a step η
multiplies it by at most 1 − η(σ_n²(U) + σ_m²(V)). So imbalance speeds up descent too.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from steepest import kit
from steepest.claims.descent import _two_layers as layers
from steepest.claims.descent._two_layers import Lanes, Starts
from steepest.dynamics import linear_network_rate
from steepest.nn.types import Values

FLOOR = 1e-20  # of the risk, of adaptive descents; below it rounding decides


@kit.claim
class ImbalanceSpeed(kit.Claim[Starts]):
    """Products of 3 × h or 2 × h by h × 2 on Gaussian targets and on digits."""

    hidden: kit.Count = kit.param(6, "h, hidden neurons", unit="neurons", scope=layers.HIDDEN)
    excesses: tuple[kit.NonNegative, ...] = kit.param(
        layers.EXCESSES[0],
        "s, orthonormal rows times this are added to U off the rows of V, increasing",
        scope=kit.choices(*layers.EXCESSES),
    )
    seeds: kit.Seeds = kit.param(8, "random targets and starts of each shape")
    fall: kit.Positive = kit.param(36.0, "log R_0/R at the end of the flows")
    steps: kit.Count = kit.param(3000, "steps of adaptive descents, at most", unit="steps")

    kind = "theorem"
    says = {
        "learn faster": "faster",
        "bound the least singular values of both layers from below": "rate_bound",
        "imbalance speeds up descent too": "adaptive_faster",
    }
    tiny = {"seeds": 3, "excesses": (0.0, 2.0, 4.0), "steps": 600}
    full = {"seeds": 40}
    out_of_scope = {"hidden": 3}

    def axes(self):
        return {
            "excess": self.excesses,
            "near_excess": self.excesses[:2],
            "triple": tuple(" ".join(map(str, classes)) for classes in layers.TRIPLES),
            "adaptive": (self.excesses[0], self.excesses[-1]),
        }

    def setting(self, key):
        return layers.drawn(kit.numpy_generator(key), self.hidden, self.excesses, self.seeds)

    def hypotheses(self, setting):
        yield kit.assume("hidden neurons", self.hidden, ">=", layers.LEAST, layers.HIDDEN.why)
        yield kit.assume("least excess s", self.excesses[0], "==", 0)
        yield kit.assume("excesses", len(self.excesses), ">=", 3)

    def predict(self, setting):
        bounds = partial(_each, lambda *lane: linear_network_rate(*lane).bound)
        return kit.law(
            bound=("start excess", bounds(setting.small)),
            digits_bound=("triple excess", bounds(setting.digits)),
            margin_bound=("start near_excess", bounds(setting.near)),
            through_zero=("start", bounds(setting.against)),
            decrease=1.0,
        )

    def observe(self, setting, key):
        reading = layers.readings(self.fall)
        every, _, arrived = layers.flows([*setting], 4 * [layers.LINEAR], reading)
        shapes = [group.U.shape[:-2] for group in setting]
        parts = np.split(every, np.cumsum([np.prod(shape) for shape in shapes])[:-1])
        small, near, against, digits = (
            part.reshape(*shape, -1) for part, shape in zip(parts, shapes, strict=True)
        )
        # the least of log(R_0/R)/2t bounds the whole path, the last is the mean
        least = lambda time: (reading / (2 * time)).min(-1)
        decrease, taken = self.adaptive(setting.small)
        return kit.seen(
            readings=("reading", reading),
            time=("start excess reading", small),
            arrived=("flow", arrived),
            bound=("start excess", least(small)),
            digits_bound=("triple excess", least(digits)),
            margin_bound=("start near_excess", least(near)),
            through_zero=("start", least(against)),
            mean_rate=("start excess", reading[-1] / (2 * small[..., -1])),
            norm=("start excess", np.linalg.norm(setting.small.U, axis=(-2, -1))),
            decrease=("adaptive start", decrease),
            taken=("adaptive start", taken),
        )

    def adaptive(self, small: Lanes) -> Values:
        """Return what adaptive descents did from starts of the first and last excess, without the rows of zeros."""
        parts = []
        for i, n in zip((0, self.seeds), layers.SHAPES, strict=True):
            U, V, Y = (part[i : i + self.seeds, [0, -1]].swapaxes(0, 1) for part in small)
            parts.append(descend_adaptively(U[:, :, :n], V, Y[:, :, :n], self.steps))
        return np.concatenate(parts, -1)

    def run_conditions(self, observed):
        longest = observed["taken"].max()
        short = "choose more --steps"
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)
        yield kit.assume("most steps of an adaptive descent", longest, "<", self.steps, short)

    def derive(self, law, seen):
        """Return speeds that grow where fewer steps are taken."""
        return {"speed": -np.log(seen.taken)}

    def judge(self, law, seen):
        least = "least log(R_0/R_t)/2t along a flow"
        bounds = (
            ("rate_bound", "bound", "small starts"),
            ("digits_bound", "digits_bound", "digits"),
            ("margin_bound", "margin_bound", "with a margin"),
            ("through_zero", "through_zero", "against the target"),
        )
        for id, name, starts in bounds:
            yield kit.at_least(id, law[name], seen[name], each=True, label=f"{least}, {starts}")
        yield kit.ranks(
            "faster",
            law.bound,
            seen.mean_rate,
            over="excess",
            at_hand={"norm of U at the start": seen.norm},
            label="mean rate grows with what is added to U",
        )
        yield kit.at_least(
            "decrease",
            law.decrease,
            seen.decrease,
            each=True,
            label="adaptive steps: least (1 − R_{t+1}/R_t)/ηc",
        )
        yield kit.ranks(
            "adaptive_faster",
            law.bound.isel(excess=[0, -1]).rename(excess="adaptive"),
            seen.speed,
            over="adaptive",
            label="adaptive steps to the floor, fewer with imbalance",
        )

    def rivals(self, setting, law):
        frozen = partial(_each, lambda U, V, Y: _least(U) + _least(V))
        # at the end of the flow there is no E, so that the margin is σ_min(Y)
        of_target = lambda U, V, Y: linear_network_rate(U, V, Y, margin=_least(Y) ** 0.5).bound
        yield kit.rival(
            "c = σ_n²(U_0) + σ_m²(V_0)",
            "the tangent kernel, if it stayed",
            bound=("start excess", frozen(setting.small)),
            margin_bound=("start near_excess", frozen(setting.near)),
            through_zero=("start", frozen(setting.against)),
        )
        yield kit.rival(
            "the margin is σ_min(Y)",
            "at the end it is σ_min(Y)",
            bound=("start excess", _each(of_target, setting.small)),
            through_zero=("start", _each(of_target, setting.against)),
        )
        yield kit.rival(
            "the error falls like e^(−2ct)",
            "it is the rate of the risk, a square",
            bound=2 * law.bound,
            digits_bound=2 * law.digits_bound,
            margin_bound=2 * law.margin_bound,
        )
        yield kit.rival(
            "1 − R_{t+1}/R_t ≥ 2ηc", "R falls by e^(−2ηc) in the time η of the flow", decrease=2.0
        )

    def controls(self, seen):
        back = lambda name: (seen[name].dims, np.flip(seen[name].values, 1))
        yield kit.control(
            "imbalances in reverse order",
            "the rate must be the rate of the imbalance",
            bound=back("bound"),
            digits_bound=back("digits_bound"),
            mean_rate=back("mean_rate"),
            taken=(seen.taken.dims, seen.taken.values[::-1]),
        )
        yield kit.control(
            "starts against the target", "they have no margin", margin_bound=seen.through_zero
        )

    def figure(self, law, seen, rivals):
        readings = seen.readings.values
        falls = []
        for i, s in enumerate(self.excesses):
            time = seen.time[-1, i].values
            shade = i / (len(self.excesses) - 1)
            falls.append(kit.observed_curve(time, np.exp(-readings), f"s = {s:g}", shade=shade))
            bound = float(law.bound[-1, i])
            span = np.array([0.0, min(time[-1], readings[-1] / (2 * bound))])
            fall = np.exp(-2 * bound * span)
            falls.append(kit.predicted_curve(span, fall, "" if i else "bounds"))
        yield kit.panel(
            "Imbalance speeds the flow up, as the bound says", "time", "R / R_0", *falls, log="y"
        )


def _each(what: Callable[[Values, Values, Values], float], lanes: Lanes) -> Values:
    """Return a number of each lane, without the rows of zeros."""
    values = np.empty(lanes.U.shape[:-2])
    for place in np.ndindex(*values.shape):
        U, V, Y = (part[place] for part in lanes)
        n = int(np.any(Y, axis=1).sum())
        values[place] = what(U[:n], V, Y[:n])
    return values


def _least(layer: Values) -> float:
    """Return the square of a layer's least singular value."""
    return float(np.linalg.svd(layer, compute_uv=False)[-1] ** 2)


def descend_adaptively(
    U: Values, V: Values, Y: Values, steps: int, floor: float = FLOOR
) -> tuple[Values, Values]:
    """Descend with steps η = 1/2L, L = σ_max²(U) + σ_max²(V) + 2‖E‖_F, until R is at the floor.

    Returns:
        ``(least, taken)`` for each start: the least of (1 − R_{t+1}/R_t)/(η_t c_t) over the steps, with c = σ_n²(U) +
        σ_m²(V), and the number of steps to the floor, or all.
    """
    least = np.full(U.shape[:-2], np.inf)
    taken = np.full(U.shape[:-2], steps)
    for step in range(steps):
        error = Y - U @ V.mT
        risk = (error**2).sum((-2, -1)) / 2
        going = risk > floor
        taken = np.where(going, taken, np.minimum(taken, step))
        if not going.any():
            break
        levels_u = np.linalg.svd(U, compute_uv=False)
        levels_v = np.linalg.svd(V, compute_uv=False)
        # ‖E‖_F = √(2R)
        steepest = levels_u[..., 0] ** 2 + levels_v[..., 0] ** 2 + 2 * np.sqrt(2 * risk)
        lr = 1 / (2 * steepest)[..., None, None]
        slowest = levels_u[..., -1] ** 2 + levels_v[..., -1] ** 2
        moved = U + lr * error @ V
        V = V + lr * error.mT @ U
        U = moved
        after = ((Y - U @ V.mT) ** 2).sum((-2, -1)) / 2
        ratio = (1 - after / np.maximum(risk, 1e-300)) / (lr[..., 0, 0] * slowest)
        least = np.where(going, np.minimum(least, ratio), least)
    return least, taken
