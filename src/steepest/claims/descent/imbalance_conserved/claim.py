"""Gradient flow on a two-layer linear network conserves its imbalance, which speeds up learning.

The imbalance is D = UᵀU − VᵀV, where U and V are the layers. Gradient descent with step size η loses a share of it, of
order η. On the risk ½‖Y − UVᵀ‖² with target Y the flow keeps D. So D and the margin of the start bound the least
singular values of both layers from below at all times, and hence the rate of the flow. Descent with a fixed step
changes D in proportion to the step. With steps that adapt to the layers, the risk of descent still falls exponentially.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from scipy.integrate import quad

from steepest import kit
from steepest.claims.descent.imbalance_conserved.experiment import (
    LINEAR,
    RELU,
    TANH,
    ScalarPoint,
    descend_adaptively,
    descend_scalars,
    descend_with,
    follow,
)
from steepest.dynamics import linear_network_rate
from steepest.nn.data import digits
from steepest.nn.networks import imbalance
from steepest.nn.types import Values

ROWS = 3  # of the largest U: smaller problems are filled with zeros, which no step changes
SHAPES = (3, 2)  # outputs n, for m = 2 inputs
INPUTS = 2
NOISE = 0.3  # entries of small starts
TRIPLES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (1, 7, 9))  # classes of digits
FLOOR = 1e-20  # of the risk, of adaptive descents
READINGS = 36  # of log R_0/R along the flows, and two early ones
FINER = 10  # times as small are the steps on two numbers, whose loss is predicted to first order
KINDS = {"tanh": TANH, "ReLU": RELU}


class Lanes(NamedTuple):
    """Starts and targets of several flows, U and Y filled up to three rows."""

    U: Values  # (…, 3, hidden)
    V: Values  # (…, 2, hidden)
    Y: Values  # (…, 3, 2)


class Setting(NamedTuple):
    """Starts and targets of all flows; the first half of the starts has three outputs, the second half two."""

    small: Lanes  # (starts, excesses)
    near: Lanes  # with a margin, (starts, 2)
    against: Lanes  # against the target, (starts,)
    digits: Lanes  # (triples, excesses)
    numbers: Lanes  # products of two numbers, (imbalances,)
    bent: Lanes  # for hidden layers that are not linear, (seeds,)


@kit.claim
class ImbalanceConserved(kit.Claim[Setting]):
    """Products of 3 × h or 2 × h by h × 2 on Gaussian targets and on digits, and products of two numbers."""

    hidden: kit.Count = kit.param(
        6,
        "h, hidden neurons",
        unit="neurons",
        scope=kit.between(5, 12, "fewer leave no room off the rows of V"),
    )
    excesses: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 1.0, 2.0, 4.0),
        "s, orthonormal rows times this are added to U off the rows of V, increasing",
        scope=kit.choices(
            (0.0, 1.0, 2.0, 4.0),
            (0.0, 1.2, 3.0),
            (0.0, 1.0, 4.0),
            why="descents with fixed steps start with the second, and a larger one takes smaller steps",
        ),
    )
    seeds: kit.Seeds = kit.param(8, "random targets and starts of each shape")
    imbalances: tuple[kit.NonNegative, ...] = kit.param(
        (0.0, 1.0, 3.0, 10.0),
        "δ = u² − v², two numbers, the first 0",
        scope=kit.choices((0.0, 1.0, 3.0, 10.0), (0.0, 0.5, 2.0, 6.0)),
    )
    targets: tuple[kit.Positive, ...] = kit.param(
        (1.0,), "y, two numbers", scope=kit.choices((0.5,), (1.0,), (2.0,))
    )
    product: kit.Positive = kit.param(
        0.1, "uv at the start, two numbers", scope=kit.between(0.05, 0.2)
    )
    fall: kit.Positive = kit.param(36.0, "log R_0/R at the end of the flows")
    rates: tuple[kit.Positive, ...] = kit.param(
        (0.04, 0.02, 0.01, 0.005),
        "η of descents, decreasing; on two numbers a tenth of it",
        scope=kit.choices(
            (0.04, 0.02, 0.01, 0.005), (0.03, 0.01, 0.003), why="longer steps have another order"
        ),
    )
    time: kit.Positive = kit.param(20.0, "η times the number of steps of these")
    steps: kit.Count = kit.param(3000, "steps of adaptive descents, at most", unit="steps")

    kind = "theorem"
    says = {
        "conserves its imbalance": "conserved",
        "speeds up learning": ("scalar_rate", "rate_bound", "faster"),
        "loses a share of it, of order η": ("drift_exponent", "scalar_loss"),
    }
    ragged = ("bent_path", "diagonal_path")
    tiny = {
        "seeds": 3,
        "excesses": (0.0, 2.0, 4.0),
        "imbalances": (0.0, 1.0),
        "rates": (0.04, 0.02, 0.01),
        "time": 4.0,
        "steps": 600,
    }
    full = {"seeds": 40, "imbalances": (0.0, 0.3, 1.0, 3.0, 10.0, 20.0)}
    out_of_scope = {"hidden": 3}
    point = ScalarPoint

    @property
    def unbalanced(self) -> tuple[float, ...]:
        """Return the imbalances of two numbers but zero."""
        return tuple(delta for delta in self.imbalances if delta > 0)

    @property
    def sharpest_step(self) -> float:
        """Return the largest step on two numbers times their largest curvature at the end."""
        return max(self.rates) / FINER * float(np.hypot(max(self.imbalances), 2 * self.targets[0]))

    def axes(self):
        return {
            "excess": self.excesses,
            "near_excess": self.excesses[:2],
            "triple": tuple(" ".join(map(str, classes)) for classes in TRIPLES),
            "imbalance": self.imbalances,
            "unbalanced": self.unbalanced,
            "rate": self.rates,
            "adaptive": (self.excesses[0], self.excesses[-1]),
            "activation": tuple(KINDS),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        small = []
        near = []
        against = []
        for n in np.repeat(SHAPES, self.seeds):
            target = rng.normal(size=(n, INPUTS))
            U, V, off = self.start(rng, n)
            small.append(_lanes([(U + s * off, V, target) for s in self.excesses]))
            even, close, V, off = self.near(rng, n, 0.75)
            near.append(_lanes([(close + s * off, V, even) for s in self.excesses[:2]]))
            even, far, V, _ = self.near(rng, n, -0.3)
            against.append((far, V, even))
        of_digits = []
        for classes in TRIPLES:
            target = _whitened(classes)
            U, V, off = self.start(rng, ROWS)
            of_digits.append(_lanes([(U + s * off, V, target) for s in self.excesses]))
        numbers = []
        for delta in self.imbalances:
            U = np.zeros((1, self.hidden))
            V = np.zeros((INPUTS, self.hidden))
            size = np.hypot(delta, 2 * self.product)
            U[0, 0] = np.sqrt((size + delta) / 2)
            V[0, 0] = self.product / U[0, 0]
            numbers.append((U, V, np.array([[self.targets[0], 0.0]])))
        bent = []
        for _ in range(self.seeds):
            U, V, off = self.start(rng, ROWS)
            bent.append((U + off, V, rng.normal(size=(ROWS, INPUTS))))
        stacked = lambda rows: Lanes(*map(np.stack, zip(*rows, strict=True)))
        return Setting(
            stacked(small),
            stacked(near),
            _lanes(against),
            stacked(of_digits),
            _lanes(numbers),
            _lanes(bent),
        )

    def start(self, rng: np.random.Generator, n: int) -> tuple[Values, Values, Values]:
        """Draw a small start, and n orthonormal rows off the rows of V."""
        U = NOISE * rng.normal(size=(n, self.hidden))
        V = NOISE * rng.normal(size=(INPUTS, self.hidden))
        return U, V, _off(rng, V, n)

    def near(self, rng: np.random.Generator, n: int, share: float) -> tuple[Values, ...]:
        """Draw a target of nearly equal singular values, a balanced start at a share of it, and rows off those of V.

        The share may be negative: such a start must go through zero.
        """
        left = np.linalg.qr(rng.normal(size=(n, INPUTS)))[0]
        right = np.linalg.qr(rng.normal(size=(INPUTS, INPUTS)))[0]
        frame = np.linalg.qr(rng.normal(size=(self.hidden, INPUTS)))[0].T
        levels = rng.uniform(1, 1.2, INPUTS)
        # but for noise UVᵀ is the share of the target, and UᵀU = VᵀV
        root = np.sqrt(abs(share) * levels)[:, None] * frame
        U = left @ root + 0.02 * rng.normal(size=(n, self.hidden))
        V = np.sign(share) * right @ root + 0.02 * rng.normal(size=(INPUTS, self.hidden))
        return left * levels @ right.T, U, V, _off(rng, V, n)

    def hypotheses(self, setting):
        steepest = np.linalg.norm(setting.small.U[:, 1], 2, axis=(1, 2)).max() ** 2
        yield kit.assume(
            "hidden neurons",
            self.hidden,
            ">=",
            ROWS + INPUTS,
            "fewer leave no room off the rows of V",
        )
        yield kit.assume("least excess s", self.excesses[0], "==", 0)
        yield kit.assume("excesses", len(self.excesses), ">=", 3)
        yield kit.assume(
            "largest step times σ_max²(U)",
            max(self.rates) * steepest,
            "<",
            0.5,
            "choose smaller --rates",
        )
        yield kit.assume(
            "largest step times the curvature, two numbers",
            self.sharpest_step,
            "<",
            0.1,
            "choose smaller --rates or --imbalances",
        )
        yield kit.assume("uv/y at the start, two numbers", self.product / self.targets[0], "<", 1)

    def predict(self, setting):
        y = self.targets[0]
        shares = [_share_lost(delta, y, y - self.product) for delta in self.unbalanced]
        steps = np.array(self.rates) / FINER
        bounds = partial(_each, lambda *lane: linear_network_rate(*lane).bound)
        return kit.law(
            bound=("start excess", bounds(setting.small)),
            digits_bound=("triple excess", bounds(setting.digits)),
            margin_bound=("start near_excess", bounds(setting.near)),
            through_zero=("start", bounds(setting.against)),
            scalar_rate=("imbalance", np.hypot(self.imbalances, 2 * y)),
            drift=("rate", self.rates),
            scalar_loss=("unbalanced rate", np.outer(shares, steps)),
            decrease=1.0,
        )

    def observe(self, setting, key):
        readings = np.concatenate([[0.25, 0.5], np.linspace(1, self.fall, READINGS)])
        time, change, arrived = self.flows(setting, readings)
        # the least of log(R_0/R)/2t bounds the whole path, the last is the mean
        least = lambda name: (readings / (2 * time[name])).min(-1)
        numbers = time["numbers"]
        late = (readings[-1] - readings[-6]) / 2 / (numbers[:, -1] - numbers[:, -6])
        first = Lanes(*(part[:, 1] for part in setting.small))
        drifts = [descend_with(*first, lr, self.time) for lr in self.rates]
        norm = lambda moves: np.linalg.norm(np.stack(moves, 1), axis=(-2, -1))
        steps = np.array(self.rates) / FINER
        y = self.targets[0]
        short = [descend_with(*first, lr, lr)[0] for lr in self.rates]
        numbers_of = (np.array(self.unbalanced), self.product, y, steps)
        adaptive = [self.adaptive(setting, place) for place in (0, -1)]
        largest = [np.abs(change[name]).max((-1, -2)) for name in setting._fields[:-1]]
        moved = np.stack([np.abs(change[name]) for name in KINDS])
        diagonal = np.diagonal(moved, axis1=-2, axis2=-1).max(-1)
        return kit.seen(
            readings=("reading", readings),
            time=("start excess reading", time["small"]),
            arrived=("flow", arrived),
            change=(
                "flow reading",
                np.concatenate([x.reshape(-1, len(readings)) for x in largest]),
            ),
            # no number where R was not reached
            bent_path=("activation seed reading", moved.max((-1, -2))),
            diagonal_path=("activation seed reading", diagonal),
            # a ReLU network may be stuck from its start, and reach none
            diagonal=("activation seed", np.fmax.reduce(diagonal, -1, initial=0.0)),
            bound=("start excess", least("small")),
            digits_bound=("triple excess", least("digits")),
            margin_bound=("start near_excess", least("near")),
            through_zero=("start", least("against")),
            mean_rate=("start excess", readings[-1] / (2 * time["small"][..., -1])),
            norm=("start excess", np.linalg.norm(setting.small.U, axis=(-2, -1))),
            scalar_rate=("imbalance", late),
            drift=("start rate", norm([moves for moves, _ in drifts])),
            unexplained=("start rate", norm([moves - summed for moves, summed in drifts])),
            first_drift=("start rate", norm(short)),
            scalar_loss=("unbalanced rate", descend_scalars(*numbers_of, self.time / steps.min())),
            first_loss=("unbalanced rate", descend_scalars(*numbers_of, 1)),
            decrease=("adaptive start", [decrease for decrease, _ in adaptive]),
            taken=("adaptive start", [taken for _, taken in adaptive]),
        )

    def flows(
        self, setting: Setting, readings: Values
    ) -> tuple[dict[str, Values], dict[str, Values], Values]:
        """Follow all flows in one program; return times and changes of D at the readings, by group, and arrivals.

        Arrivals are those of linear networks.
        """
        linear = setting._asdict()
        bent = linear.pop("bent")
        groups = {**linear, **dict.fromkeys(KINDS, bent)}
        shapes = {name: lanes.U.shape[:-2] for name, lanes in groups.items()}
        counts = [int(np.prod(shape)) for shape in shapes.values()]
        kinds = np.repeat([LINEAR] * len(linear) + list(KINDS.values()), counts)
        flat = lambda part: part.reshape(-1, *part.shape[-2:])
        starts = [
            np.concatenate(list(map(flat, parts))) for parts in zip(*groups.values(), strict=True)
        ]
        follow_lane = lambda lane: follow((lane[0], lane[1]), lane[2], readings, lane[3])
        every = kit.compiled(lambda *lanes: jax.lax.map(follow_lane, lanes))
        paths = every(*starts, kinds)
        U, V = (np.asarray(part) for part in paths.observed["params"])
        change = _imbalance(U, V) - _imbalance(starts[0], starts[1])[:, None]
        time = np.expm1(np.asarray(paths.log_time))

        def by_group(array: Values) -> dict[str, Values]:
            parts = np.split(array, np.cumsum(counts)[:-1])
            named = zip(groups, parts, strict=True)
            return {name: part.reshape(*shapes[name], *part.shape[1:]) for name, part in named}

        return by_group(time), by_group(change), np.asarray(paths.ok)[kinds == LINEAR]

    def adaptive(self, setting: Setting, place: int) -> tuple[Values, Values]:
        """Return what adaptive descents did from the small starts with one excess, without the rows of zeros."""
        U, V, Y = (part[:, place] for part in setting.small)
        halves = [
            descend_adaptively(
                U[i : i + self.seeds, :n],
                V[i : i + self.seeds],
                Y[i : i + self.seeds, :n],
                self.steps,
                FLOOR,
            )
            for i, n in zip((0, self.seeds), SHAPES, strict=True)
        ]
        least, taken = zip(*halves, strict=True)
        return np.concatenate(least), np.concatenate(taken)

    def run_conditions(self, observed):
        longest = observed["taken"].max()
        short = "choose more --steps"
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)
        yield kit.assume("most steps of an adaptive descent", longest, "<", self.steps, short)

    def derive(self, law, seen):
        """Return the part of what descent changes that its gradients do not sum up to, and adaptive speeds."""
        return {"unexplained_part": seen.unexplained / seen.drift, "speed": -np.log(seen.taken)}

    def judge(self, law, seen):
        least = "least log(R_0/R_t)/2t along a flow"
        bounds = {
            "rate_bound": ("bound", "small starts"),
            "digits_bound": ("digits_bound", "digits"),
            "margin_bound": ("margin_bound", "with a margin"),
            "through_zero": ("through_zero", "against the target"),
        }
        yield kit.agrees("conserved", seen.change, 1e-8, label="change of D along the flows")
        yield kit.agrees(
            "relu_diagonal",
            seen.diagonal.sel(activation="ReLU"),
            1e-8,
            label="largest change of D's diagonal along the flow, ReLU",
        )
        yield from (
            kit.at_least(id, law[name], seen[name], each=True, label=f"{least}, {starts}")
            for id, (name, starts) in bounds.items()
        )
        yield kit.ranks(
            "faster",
            law.bound,
            seen.mean_rate,
            over="excess",
            at_hand={"norm of U at the start": seen.norm},
            label="mean rate grows with what is added to U",
        )
        yield kit.follows(
            "scalar_rate",
            law.scalar_rate,
            seen.scalar_rate,
            1e-4,
            label="two numbers: rate at the end",
        )
        yield from self.judge_descent(law, seen)

    def judge_descent(self, law, seen):
        """Judge what descent with fixed steps loses, and how fast descent with adaptive ones is."""
        adaptive = law.bound.isel(excess=[0, -1]).rename(excess="adaptive")
        yield kit.agrees(
            "drift",
            seen.unexplained_part,
            1e-7,  # thousands of steps, each of which rounds
            label="change of D by descent, off η² Σ (G_UᵀG_U − G_VᵀG_V), relative",
        )
        yield kit.power(
            "drift_exponent",
            law.drift,
            seen.drift,
            0.05,  # of the next order, η σ_max², is left: 0.02 measured
            over="rate",
            label="change of D against η",
        )
        yield kit.follows(
            "scalar_loss",
            law.scalar_loss,
            seen.scalar_loss,
            # half the step times the curvature is the next order
            max(0.01, 0.6 * self.sharpest_step),
            label="two numbers: share of δ that descent loses",
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
            adaptive,
            seen.speed,
            over="adaptive",
            label="adaptive steps to the floor, fewer with imbalance",
        )

    def rivals(self, setting, law):
        frozen = partial(_each, lambda U, V, Y: _least(U) + _least(V))
        # at the end of the flow there is no E, so that the margin is σ_min(Y)
        of_target = lambda U, V, Y: linear_network_rate(U, V, Y, margin=_least(Y) ** 0.5).bound
        delta = law.imbalance
        y = self.targets[0]
        yield kit.rival(
            "c = σ_n²(U_0) + σ_m²(V_0)",
            "the tangent kernel, if it stayed",
            bound=("start excess", frozen(setting.small)),
            margin_bound=("start near_excess", frozen(setting.near)),
            through_zero=("start", frozen(setting.against)),
        )
        yield kit.rival(
            "the margin is σ_min(Y)",
            "what it is at the end",
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
            "the rate is 2y whatever the start",
            "the rate of the balanced network",
            scalar_rate=0 * delta + 2 * y,
        )
        yield kit.rival(
            "the rate is δ + 2y", "right where one of them is zero", scalar_rate=delta + 2 * y
        )
        yield from self.rivals_of_descent(law)

    def rivals_of_descent(self, law):
        """Return wrong theories of what steps lose, and of what they gain."""
        y = self.targets[0]
        start = y - self.product
        at_end = start**2 / (2 * np.hypot(law.unbalanced, 2 * y))
        yield kit.rival(
            "descent changes D like η²",
            "each step changes D by η²",
            drift=law.drift**2,
            scalar_loss=law.scalar_loss * law.rate / law.rate.max(),
        )
        yield kit.rival(
            "the share lost is η e²/(2√(δ² + 4y²)) of the first error",
            "the path to the end has less of it",
            id="curvature_of_the_end",
            scalar_loss=at_end * law.rate / FINER,
        )
        yield kit.rival(
            "1 − R_{t+1}/R_t ≥ 2ηc", "R falls by e^(−2ηc) in the time η of the flow", decrease=2.0
        )

    def controls(self, seen):
        back = lambda name: (seen[name].dims, np.flip(seen[name].values, 1))
        yield kit.control(
            "descent in place of the flow",
            "finite steps do not conserve D",
            id="descent",
            change=seen.drift.max(),
        )
        yield kit.control(
            "a single step in place of a time",
            "each step by itself changes D by η²",
            drift=seen.first_drift,
            scalar_loss=seen.first_loss,
        )
        yield kit.control(
            "a hidden layer of tanh",
            "it is not homogeneous",
            id="tanh",
            change=np.nanmax(seen.bent_path.sel(activation="tanh")),
            diagonal=(seen.diagonal.dims, seen.diagonal.values[::-1]),
        )
        yield kit.control(
            "D as if descent conserved it",
            "without η² Σ (…) all of it is left",
            unexplained=seen.drift,
        )
        yield kit.control(
            "imbalances in reverse order",
            "the rate must be that of the imbalance",
            bound=back("bound"),
            digits_bound=back("digits_bound"),
            mean_rate=back("mean_rate"),
            scalar_rate=("imbalance", seen.scalar_rate.values[::-1]),
            taken=(seen.taken.dims, seen.taken.values[::-1]),
        )
        yield kit.control(
            "starts against the target", "they have no margin", margin_bound=seen.through_zero
        )

    def figure(self, law, seen, rivals):
        readings = seen.readings.values
        tiny = 1e-17
        falls = []
        for i, s in enumerate(self.excesses):
            time = seen.time[-1, i].values
            shade = i / (len(self.excesses) - 1)
            falls.append(kit.observed_curve(time, np.exp(-readings), f"s = {s:g}", shade=shade))
            bound = float(law.bound[-1, i])
            span = np.array([0.0, min(time[-1], readings[-1] / (2 * bound))])
            fall = np.exp(-2 * bound * span)
            falls.append(kit.predicted_curve(span, fall, "" if i else "bounds"))
        delta = np.linspace(0, max(self.imbalances), 60)
        y = self.targets[0]
        bent = np.nanmax(seen.bent_path, 1)
        of_relu = np.nanmax(seen.diagonal_path[1], 0) + tiny
        relu = {"kind": "points", "shade": 1.0}
        yield kit.panel(
            "Only the linear network conserves D",
            "log R_0/R",
            "largest change of D",
            kit.observed_curve(readings, seen.change.max("flow") + tiny, "linear"),
            kit.observed_curve(readings, bent[0], "tanh", shade=0.5),
            kit.observed_curve(readings, bent[1], "ReLU", shade=1.0),
            kit.observed_curve(readings, of_relu, "ReLU, diagonal", **relu),
            log="y",
        )
        yield kit.panel(
            "Imbalance speeds the flow up, as the bound says", "time", "R / R_0", *falls, log="y"
        )
        yield kit.panel(
            "Two numbers: the rate at the end",
            "δ = u² − v²",
            "rate",
            kit.observed_curve(self.imbalances, seen.scalar_rate, "flow", kind="points"),
            kit.predicted_curve(delta, np.hypot(delta, 2 * y), "√(δ² + 4y²)"),
            kit.rival_curve(delta, delta + 2 * y, "δ + 2y"),
            kit.rival_curve(delta, 0 * delta + 2 * y, "2y", shade=0.5),
        )
        yield kit.curves(
            "Descent loses D in proportion to its step",
            law.scalar_loss.assign_coords(rate=law.rate / FINER),
            seen.scalar_loss.assign_coords(rate=seen.rate / FINER),
            over="rate",
            by="unbalanced",
            name="δ = {}",
            x="η",
            y="share of δ lost",
            log="xy",
        )


def _lanes(rows: list[tuple[Values, Values, Values]]) -> Lanes:
    """Return starts and targets along one axis, with rows of zeros below, three rows in all."""
    filled = lambda part: np.concatenate([part, np.zeros((ROWS - len(part), part.shape[1]))])
    U, V, Y = zip(*rows, strict=True)
    return Lanes(np.stack(list(map(filled, U))), np.stack(V), np.stack(list(map(filled, Y))))


def _each(what: Callable[[Values, Values, Values], float], lanes: Lanes) -> Values:
    """Return a number of each lane, without the rows of zeros."""
    shape = lanes.U.shape[:-2]
    values = np.empty(shape)
    for place in np.ndindex(*shape):
        U, V, Y = (part[place] for part in lanes)
        n = int(np.any(Y, axis=1).sum())
        values[place] = what(U[:n], V, Y[:n])
    return values


def _off(rng: np.random.Generator, V: Values, n: int) -> Values:
    """Return n orthonormal rows that are orthogonal to the rows of V, as far as there is room."""
    hidden = V.shape[1]
    frame = np.linalg.qr(np.concatenate([V, rng.normal(size=(hidden - len(V), hidden))]).T)[0]
    rows = np.zeros((n, hidden))
    room = frame[:, len(V) : len(V) + n].T
    rows[: len(room)] = room
    return rows


def _whitened(classes: tuple[int, ...]) -> Values:
    """Return the regression of three classes of digits on two whitened principal components, ``(3, 2)``."""
    data = digits(classes)
    x = np.asarray(data.x) - np.asarray(data.x).mean(0)
    left = np.linalg.svd(x, full_matrices=False)[0][:, :INPUTS]
    inputs = np.sqrt(len(x)) * left  # XᵀX/n = I
    return np.asarray(data.y).T @ inputs / len(x)


def _imbalance(U: Values, V: Values) -> Values:
    """Return UᵀU − VᵀV of each."""
    return imbalance(({"w": np.swapaxes(V, -1, -2)}, {"w": U}))[0]


def _least(layer: Values) -> float:
    """Return the square of a layer's least singular value."""
    return float(np.linalg.svd(layer, compute_uv=False)[-1] ** 2)


def _share_lost(delta: float, target: float, error: float) -> float:
    """Return what descent on (y − uv)²/2 loses of δ = u² − v² per step size: ∫ e/√(δ² + 4(y − e)²) de up to the error.

    A step η multiplies δ by 1 − η² e², exactly, and e falls at the rate u² + v² = √(δ² + 4(uv)²).
    """
    lost = lambda e: e / np.hypot(delta, 2 * (target - e))
    return quad(lost, 0, error, epsabs=1e-12)[0]
