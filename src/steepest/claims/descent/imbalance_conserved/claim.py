"""Gradient flow conserves a two-layer linear network's imbalance, which speeds it up; descent loses it in order η.

On ½‖Y − UVᵀ‖² the flow keeps D = UᵀU − VᵀV. So D and the margin of the start bound the least singular values of both
layers for ever, and with them the rate of the flow from below. Descent with a fixed step moves D in proportion to the
step; with steps that adapt to the layers its risk still falls exponentially.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
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
    agreement,
    assume,
    bound,
    compiled,
    exponent,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.descent.imbalance_conserved.experiment import (
    LINEAR,
    RELU,
    TANH,
    ScalarPoint,
    descend_adaptively,
    descend_with,
    follow,
)
from steepest.dynamics import linear_network_rate
from steepest.nn.data import digits
from steepest.nn.networks import imbalance

ROWS = 3  # of the largest U: smaller problems are filled with zeros, which no step changes
SHAPES = (3, 2)  # outputs n, for m = 2 inputs
INPUTS = 2
NOISE = 0.3  # entries of small starts
TRIPLES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (1, 7, 9))  # classes of digits
FLOOR = 1e-20  # of the risk, of adaptive descents


class Setting(NamedTuple):
    """Starts and targets of all flows, one a lane, U and Y filled up to three rows."""

    U: np.ndarray  # (lanes, 3, hidden)
    V: np.ndarray  # (lanes, 2, hidden)
    Y: np.ndarray  # (lanes, 3, 2)
    rows: np.ndarray  # n of each lane
    excess: np.ndarray  # s of each lane, what is added to U; NaN for scalars
    kind: np.ndarray  # activation of each lane
    # 0 small starts, 1 starts with a margin, 2 starts against the target, 3 digits, 4 scalars, 5 not linear
    group: np.ndarray


@dataclass(frozen=True)
class ImbalanceConserved(Claim):
    """Products of 3 × h or 2 × h by h × 2 on Gaussian targets and on digits, and products of two numbers."""

    hidden: Count = 6  # h, hidden neurons [neurons]
    # s, orthonormal rows times this are added to U off the rows of V [1]
    excesses: tuple[NonNegative, ...] = (0.0, 1.0, 2.0, 4.0)
    seeds: Seeds = 8  # random targets and starts of each shape [1]
    imbalances: tuple[NonNegative, ...] = (0.0, 1.0, 3.0, 10.0)  # δ = u² − v², scalars [1]
    targets: tuple[Positive, ...] = (1.0,)  # y, scalars [1]
    product: Positive = 0.1  # uv at the start, scalars [1]
    fall: Positive = 36.0  # log R_0/R at the end of the flows [1]
    # η of descents [1]
    rates: tuple[Positive, ...] = (0.04, 0.02, 0.01, 0.005)
    time: Positive = 20.0  # η times the number of steps of these [1]
    steps: Count = 3000  # of adaptive descents, at most [steps]

    kind = "theorem"
    point = ScalarPoint
    headline = ("conserved", "rate_bound", "faster", "drift_exponent")
    statement = (
        r"\dot D=0,\ D=U^\top U-V^\top V;\qquad R_t\le R_0\,e^{-2(a+b)t},\quad "
        r"a=\max\big(\lambda_n(D)_+,\tfrac12(d_-+\sqrt{d_-^2+4\sigma^2})\big),\ "
        r"b=\max\big(\lambda_m(-D)_+,\tfrac12(-d_++\sqrt{d_+^2+4\sigma^2})\big)"
    )
    source = "Theorem 1 of the talk [@vidal2024]; [@min2021]; [@min2023]"
    corrections = (
        "“In the scalar case it means that u squared is equal to v squared” is the definition of balance, D = 0; the "
        "talk gives no formula of the rate. That here is derived from D and the margin σ = (σ_min(Y) − ‖E_0‖)_+; it "
        "may be weaker than the papers'.",
    )
    remarks = (
        "U is n × h and V is m × h. In the rate λ_n(D) is the n-th largest eigenvalue of D, d_- and d_+ are its "
        "extreme eigenvalues on the span of the rows of U and V, and σ counts as zero in a where n > m and in b where "
        "m > n.",
        "Small starts have no margin: there imbalance alone makes the bound. Starts with a margin are ¾ of a target of "
        "nearly equal singular values, and a little noise; others start at −0.3 of one and must go through zero, where "
        "the tangent kernel nearly vanishes. Digits: three classes, two whitened principal components, where the risk "
        "on the images is a constant plus ½‖Y − UVᵀ‖².",
        "The bound is on the whole path, R_t ≤ R_0 e^(−2ct) at every reading. The rate at the end is σ_n²(U) + σ_m²(V) "
        "there at least, and often more: the slowest direction may hardly be excited.",
        "For n = m Min et al. have a sharper bound, in D's extreme eigenvalues and σ. Its formula is from memory, not "
        "derived here; it held at all readings and on random pairs. With σ = 0 for n ≠ m it is not a bound.",
        "For products of two numbers the rate at the end is √(δ² + 4y²) exactly: the talk's “tight in some particular "
        "architectures”.",
        "The adaptive step 1/2L, L = σ_max²(U) + σ_max²(V) + 2‖E‖_F, and R_{t+1} ≤ (1 − ηc)R_t with c = σ_n²(U) + "
        "σ_m²(V), are ours: half of what the descent lemma gives along ∇R. The talk's own rule is not in the notes.",
        "What is conserved is due to linearity: with tanh D moves as much as the weights, with ReLU only its diagonal "
        "stays.",
    )
    full = {"seeds": 40, "imbalances": (0.0, 0.3, 1.0, 3.0, 10.0, 30.0)}
    tiny = {
        "seeds": 3,
        "excesses": (0.0, 2.0, 4.0),
        "imbalances": (0.0, 1.0),
        "rates": (0.04, 0.02, 0.01),
        "time": 4.0,
        "steps": 600,
    }
    out_of_scope = {"hidden": 3}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        lanes = []
        for n in SHAPES:
            for _ in range(self.seeds):
                target = rng.normal(size=(n, INPUTS))
                U, V, off = self.start(rng, n)
                for s in self.excesses:
                    lanes.append((U + s * off, V, target, n, s, LINEAR, 0))
                even, near, V, off = self.near(rng, n, 0.75)
                for s in self.excesses[:2]:
                    lanes.append((near + s * off, V, even, n, s, LINEAR, 1))
                even, against, V, _ = self.near(rng, n, -0.3)
                lanes.append((against, V, even, n, 0.0, LINEAR, 2))
        for classes in TRIPLES:
            target = _whitened(classes)
            U, V, off = self.start(rng, ROWS)
            for s in self.excesses:
                lanes.append((U + s * off, V, target, ROWS, s, LINEAR, 3))
        for delta in self.imbalances:
            U = np.zeros((1, self.hidden))
            V = np.zeros((INPUTS, self.hidden))
            size = np.hypot(delta, 2 * self.product)
            U[0, 0] = np.sqrt((size + delta) / 2)
            V[0, 0] = self.product / U[0, 0]
            target = np.array([[self.targets[0], 0.0]])
            lanes.append((U, V, target, 1, np.nan, LINEAR, 4))
        for kind in (TANH, RELU):
            for _ in range(self.seeds):
                U, V, off = self.start(rng, ROWS)
                target = rng.normal(size=(ROWS, INPUTS))
                lanes.append((U + off, V, target, ROWS, 1.0, kind, 5))
        U, V, Y, rows, excess, kind, group = zip(*lanes, strict=True)
        return Setting(
            np.stack([_filled(part) for part in U]),
            np.stack(V),
            np.stack([_filled(part) for part in Y]),
            np.array(rows),
            np.array(excess),
            np.array(kind),
            np.array(group),
        )

    def start(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw a small start, and n orthonormal rows off the rows of V."""
        U = NOISE * rng.normal(size=(n, self.hidden))
        V = NOISE * rng.normal(size=(INPUTS, self.hidden))
        return U, V, _off(rng, V, n)

    def near(self, rng: np.random.Generator, n: int, share: float) -> tuple[np.ndarray, ...]:
        """Draw a target of nearly equal singular values, a balanced start at a share of it, and rows off those of V.

        The share may be negative: such a start must go through zero.
        """
        left = np.linalg.qr(rng.normal(size=(n, INPUTS)))[0]
        right = np.linalg.qr(rng.normal(size=(INPUTS, INPUTS)))[0]
        frame = np.linalg.qr(rng.normal(size=(self.hidden, INPUTS)))[0].T
        levels = rng.uniform(1, 1.2, INPUTS)
        root = np.sqrt(abs(share) * levels)[:, None] * frame
        U = left @ root + 0.02 * rng.normal(size=(n, self.hidden))
        V = np.sign(share) * right @ root + 0.02 * rng.normal(size=(INPUTS, self.hidden))
        return left * levels @ right.T, U, V, _off(rng, V, n)

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        steepest = np.linalg.norm(self.small(setting, 1)[0], 2, axis=(1, 2)).max() ** 2
        return [
            assume(
                "hidden neurons",
                self.hidden,
                ">=",
                ROWS + INPUTS,
                "fewer leave no room off the rows of V",
            ),
            assume("least excess s", self.excesses[0], "==", 0),
            assume("excesses", len(self.excesses), ">=", 3),
            assume(
                "largest step times σ_max²(U)",
                max(self.rates) * steepest,
                "<",
                0.5,
                "choose smaller --rates",
            ),
            assume("uv/y at the start, scalars", self.product / self.targets[0], "<", 1),
        ]

    def small(self, setting: Setting, place: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return U, V and Y of the small starts with one of the excesses."""
        chosen = (setting.group == 0) & (setting.excess == self.excesses[place])
        return setting.U[chosen], setting.V[chosen], setting.Y[chosen]

    def predict(self, setting: Setting) -> Prediction:
        linear = setting.group <= 3
        rows = setting.rows[linear]
        lanes = zip(setting.U[linear], setting.V[linear], setting.Y[linear], rows, strict=True)
        rates = [linear_network_rate(U[:n], V, Y[:n]) for U, V, Y, n in lanes]
        square = [_square_bound(rate.imbalance, INPUTS, rate.margin) for rate in rates]
        return Prediction(
            change=0.0,
            bound=("lane", [rate.bound for rate in rates]),
            margin=("lane", [rate.margin for rate in rates]),
            square_bound=("even", np.array(square)[rows == INPUTS]),
            scalar_rate=("imbalance", np.hypot(self.imbalances, 2 * self.targets[0])),
            drift_exponent=1.0,
            decrease=1.0,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        readings = np.concatenate([[0.25, 0.5], np.linspace(1, self.fall, 36)])
        one = lambda lane: follow((lane[0], lane[1]), lane[2], readings, lane[3])
        every = compiled(lambda *lanes: jax.lax.map(one, lanes))
        paths = every(setting.U, setting.V, setting.Y, setting.kind)
        U, V = (np.asarray(part) for part in paths.observed["params"])
        time = np.expm1(np.asarray(paths.log_time))
        change = _imbalance(U, V) - _imbalance(setting.U, setting.V)[:, None]
        linear = setting.group <= 3
        scalar = setting.group == 4
        late = (readings[-1] - readings[-6]) / 2 / (time[:, -1] - time[:, -6])
        starts = self.small(setting, 1)
        drifts = [descend_with(*starts, lr, self.time) for lr in self.rates]
        moved = np.stack([moved for moved, _ in drifts])
        summed = np.stack([summed for _, summed in drifts])
        adaptive = [self.adaptive(setting, place) for place in (0, len(self.excesses) // 2)]
        bent = np.abs(change[setting.group == 5]).reshape(2, self.seeds, readings.size, -1)
        diagonal = np.abs(np.einsum("lrii->lri", change))[setting.group == 5]
        return Observation(
            readings=("reading", readings),
            time=("lane reading", time[linear]),
            excess=("lane", setting.excess[linear]),
            group=("lane", setting.group[linear]),
            rows=("lane", setting.rows[linear]),
            arrived=("lane", np.asarray(paths.ok)[setting.group <= 4]),
            change=("lane reading", np.abs(change[setting.group <= 4]).max((-1, -2))),
            # tanh, then ReLU; NaN where R was not reached
            bent_change=("activation seed reading", bent.max(-1)),
            bent_diagonal=(
                "activation seed reading",
                diagonal.max(-1).reshape(2, self.seeds, readings.size),
            ),
            scalar_rate=("imbalance", late[scalar]),
            drift=("lane rate", np.linalg.norm(moved, axis=(2, 3)).T),
            unexplained=("lane rate", np.linalg.norm(moved - summed, axis=(2, 3)).T),
            decrease=("excess lane", [least for least, _ in adaptive]),
            taken=("excess lane", [taken for _, taken in adaptive]),
        )

    def adaptive(self, setting: Setting, place: int) -> tuple[np.ndarray, np.ndarray]:
        """Return what adaptive descents did from the small starts with one excess, without the rows of zeros."""
        U, V, Y = self.small(setting, place)
        least = []
        taken = []
        for i, n in enumerate(SHAPES):
            own = slice(i * self.seeds, (i + 1) * self.seeds)
            decrease, steps = descend_adaptively(U[own, :n], V[own], Y[own, :n], self.steps, FLOOR)
            least.append(decrease)
            taken.append(steps)
        return np.concatenate(least), np.concatenate(taken)

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume("share of flows that arrived", observed["arrived"].mean(), "==", 1),
            assume(
                "most steps of an adaptive descent",
                observed["taken"].max(),
                "<",
                self.steps,
                "choose more --steps",
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        rate = observed["readings"] / (2 * observed["time"])
        small = observed["group"] == 0
        mean_rate = {
            f"s = {s:g}": rate[small & (observed["excess"] == s), -1] for s in self.excesses
        }
        even = observed["rows"] == INPUTS
        with_margin = predicted["margin"] > 0
        ratio = rate.min(1) / predicted["bound"]
        names = [f"s = {s:g}" for s in (self.excesses[0], self.excesses[len(self.excesses) // 2])]
        taken = dict(zip(names, observed["taken"], strict=True))
        return [
            agreement(
                "conserved",
                np.abs(observed["change"] - predicted["change"]).max(),
                1e-8,
                label="largest change of D along the flows",
            ),
            agreement(
                "relu_diagonal",
                np.nanmax(observed["bent_diagonal"][1]),
                1e-8,
                label="largest change of D's diagonal, ReLU",
            ),
            bound(
                "rate_bound",
                ratio[~with_margin].min(),
                at_least=1.0,
                label="least log(R_0/R_t)/2ct, no margin",
            ),
            bound(
                "margin_bound",
                ratio[with_margin].min(),
                at_least=1.0,
                label="least log(R_0/R_t)/2ct, with a margin",
            ),
            bound(
                "square_bound",
                (rate[even].min(1) / predicted["square_bound"]).min(),
                at_least=1.0,
                label="the same for n = m, with the sharper c",
            ),
            order(
                "faster",
                list(mean_rate),
                mean_rate,
                label="mean rate grows with what is added to U",
            ),
            agreement(
                "scalar_rate",
                np.abs(observed["scalar_rate"] / predicted["scalar_rate"] - 1).max(),
                1e-4,
                label="two numbers: rate at the end off √(δ² + 4y²), relative",
            ),
            agreement(
                "drift",
                (observed["unexplained"] / observed["drift"]).max(),
                1e-9,
                label="change of D by descent, off η² Σ (G_UᵀG_U − G_VᵀG_V), relative",
            ),
            exponent(
                "drift_exponent",
                float(predicted["drift_exponent"]),
                self.rates,
                observed["drift"],
                # of the next order, η σ_max², is left: 0.02 measured
                0.05,
                label="change of D against η",
            ),
            bound(
                "decrease",
                observed["decrease"].min(),
                at_least=float(predicted["decrease"]),
                label="adaptive steps: least (1 − R_{t+1}/R_t)/ηc",
            ),
            order(
                "adaptive_faster",
                names[::-1],
                taken,
                label="adaptive steps to the floor, fewer with imbalance",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        linear = np.flatnonzero(setting.group <= 3)
        frozen = []
        forgotten = []
        for lane in linear:
            n = setting.rows[lane]
            U = setting.U[lane, :n]
            V = setting.V[lane]
            Y = setting.Y[lane, :n]
            frozen.append(_least(U) + _least(V))
            # at the end of the flow there is no E, so that the margin is σ_min(Y)
            least = float(np.linalg.svd(Y, compute_uv=False)[-1])
            forgotten.append(linear_network_rate(U, V, Y, margin=least).bound)
        square = np.array(frozen)[setting.rows[linear] == INPUTS]
        delta = np.array(self.imbalances)
        y = self.targets[0]
        return [
            Rival(
                "kernel_at_start",
                predicted.replace(bound=("lane", frozen), square_bound=("even", square)),
                "the tangent kernel, if it stayed",
                label="c = σ_n²(U_0) + σ_m²(V_0)",
            ),
            Rival(
                "margin_of_target",
                predicted.replace(bound=("lane", forgotten)),
                "what it is at the end",
                label="the margin is σ_min(Y)",
            ),
            Rival(
                "rate_of_risk",
                predicted.replace(
                    bound=("lane", 2 * predicted["bound"]),
                    square_bound=("even", 2 * predicted["square_bound"]),
                ),
                "it is the rate of the risk, a square",
                label="the error falls like e^(−2ct)",
            ),
            Rival(
                "risk_alone",
                predicted.replace(scalar_rate=("imbalance", 0 * delta + 2 * y)),
                "the rate of the balanced network",
                label="the rate is 2y whatever the start",
            ),
            Rival(
                "sum_of_both",
                predicted.replace(scalar_rate=("imbalance", delta + 2 * y)),
                "right where one of them is zero",
                label="the rate is δ + 2y",
            ),
            Rival(
                "square_order",
                predicted.replace(drift_exponent=2.0),
                "each step changes D by η²",
                label="descent changes D like η²",
            ),
            Rival(
                "flow_rate",
                predicted.replace(decrease=2.0),
                "R falls by e^(−2ηc) in the time η of the flow",
                label="1 − R_{t+1}/R_t ≥ 2ηc",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        drift = observed["drift"]
        shape = observed["change"].shape
        tanh = np.nanmax(observed["bent_change"][0])
        small = observed["group"] == 0
        reverse = observed["excess"].copy()
        reverse[small] = np.array(self.excesses)[::-1][
            np.searchsorted(self.excesses, observed["excess"][small])
        ]
        return [
            Control(
                "descent",
                observed.replace(change=("lane reading", np.full(shape, drift.max()))),
                "finite steps do not conserve D",
                label="descent in place of the flow",
            ),
            Control(
                "tanh",
                observed.replace(
                    change=("lane reading", np.full(shape, tanh)),
                    bent_diagonal=("activation seed reading", observed["bent_diagonal"][::-1]),
                ),
                "it is not homogeneous",
                label="a hidden layer of tanh",
            ),
            Control(
                "other_sum",
                observed.replace(unexplained=("lane rate", drift)),
                "without η² Σ (…) all of it is left",
                label="D as if descent conserved it",
            ),
            Control(
                "shuffled_excess",
                observed.replace(
                    excess=("lane", reverse), taken=("excess lane", observed["taken"][::-1])
                ),
                "the order must be that of imbalance",
                label="imbalances in reverse order",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        readings = observed["readings"]
        tiny = 1e-17
        lanes = np.flatnonzero((observed["group"] == 0) & (observed["rows"] == INPUTS))
        falls = []
        for i, lane in enumerate(lanes[: len(self.excesses)]):
            time = observed["time"][lane]
            shade = i / (len(self.excesses) - 1)
            falls.append(
                observed_curve(time, np.exp(-readings), f"s = {self.excesses[i]:g}", shade=shade)
            )
            span = np.array([0.0, min(time[-1], readings[-1] / (2 * predicted["bound"][lane]))])
            falls.append(
                predicted_curve(
                    span,
                    np.exp(-2 * predicted["bound"][lane] * span),
                    "bounds" if not i else "",
                )
            )
        delta = np.linspace(0, max(self.imbalances), 60)
        y = self.targets[0]
        rates = np.array(self.rates)
        drift = observed["drift"]
        bent = np.nanmax(observed["bent_change"], 1)
        return (
            panel(
                "Only the linear network conserves D",
                "log R_0/R",
                "largest change of D",
                observed_curve(readings, observed["change"].max(0) + tiny, "linear"),
                observed_curve(readings, bent[0], "tanh", shade=0.5),
                observed_curve(readings, bent[1], "ReLU", shade=1.0),
                observed_curve(
                    readings,
                    np.nanmax(observed["bent_diagonal"][1], 0) + tiny,
                    "ReLU, diagonal",
                    kind="points",
                    shade=1.0,
                ),
                log="y",
            ),
            panel(
                "Imbalance speeds the flow up, as the bound says",
                "time",
                "R / R_0",
                *falls,
                log="y",
            ),
            panel(
                "Two numbers: the rate at the end",
                "δ = u² − v²",
                "rate",
                observed_curve(self.imbalances, observed["scalar_rate"], "flow", kind="points"),
                predicted_curve(delta, np.hypot(delta, 2 * y), "√(δ² + 4y²)"),
                rival_curve(delta, delta + 2 * y, "δ + 2y"),
                rival_curve(delta, 0 * delta + 2 * y, "2y", shade=0.5),
            ),
            panel(
                "Descent loses D in proportion to its step",
                "η",
                "change of D",
                observed_curve(rates, drift, "descent"),
                predicted_curve(rates, drift.mean(0)[-1] * rates / rates[-1], "∝ η"),
                rival_curve(rates, drift.mean(0)[-1] * (rates / rates[-1]) ** 2, "∝ η²"),
                log="xy",
            ),
        )


def _filled(part: np.ndarray) -> np.ndarray:
    """Return a matrix with rows of zeros below, three rows in all."""
    return np.pad(part, ((0, ROWS - len(part)), (0, 0)))


def _off(rng: np.random.Generator, V: np.ndarray, n: int) -> np.ndarray:
    """Return n orthonormal rows that are orthogonal to the rows of V, as far as there is room."""
    hidden = V.shape[1]
    frame = np.linalg.qr(np.concatenate([V, rng.normal(size=(hidden - len(V), hidden))]).T)[0]
    rows = np.zeros((n, hidden))
    room = frame[:, len(V) : len(V) + n].T
    rows[: len(room)] = room
    return rows


def _whitened(classes: tuple[int, ...]) -> np.ndarray:
    """Return the regression of three classes of digits on two whitened principal components, ``(3, 2)``."""
    data = digits(classes)
    x = np.asarray(data.x) - np.asarray(data.x).mean(0)
    left = np.linalg.svd(x, full_matrices=False)[0][:, :INPUTS]
    inputs = np.sqrt(len(x)) * left  # XᵀX/n = I
    return np.asarray(data.y).T @ inputs / len(x)


def _imbalance(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return UᵀU − VᵀV of each."""
    return imbalance(({"w": np.swapaxes(V, -1, -2)}, {"w": U}))[0]


def _least(layer: np.ndarray) -> float:
    """Return the square of a layer's least singular value."""
    return float(np.linalg.svd(layer, compute_uv=False)[-1] ** 2)


def _square_bound(difference: np.ndarray, n: int, margin: float) -> float:
    """Return the bound on the rate for n = m of Min et al. 2021, in the extreme eigenvalues of D and the margin."""
    up = np.sort(np.linalg.eigvalsh(difference))[::-1]
    down = np.sort(np.linalg.eigvalsh(-difference))[::-1]
    positive = lambda spectrum, k: max(spectrum[k - 1], 0.0)
    spread_up = positive(up, 1) - positive(up, n)
    spread_down = positive(down, 1) - positive(down, n)
    gap = positive(up, n) + positive(down, n)
    half = lambda spread: (np.hypot(spread + gap, 2 * margin) - spread) / 2
    return float(half(spread_up) + half(spread_down))
