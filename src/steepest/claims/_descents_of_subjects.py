"""Full-batch descents of a reader's network in NumPy: rules, a pilot by small steps, and the curvature on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.core.errors import UserError
from steepest.krylov import top_eigenpairs
from steepest.measurement import is_cross_entropy
from steepest.measurement.adapters import Subject, rescaled_products

ROOM = 1.5  # least edge over the sharpness at the start, so that descents start below it
PACE = 0.5  # of the largest stable step, with which small steps follow the flow
OFTEN = 5  # steps, after which that is measured again: small initial weights sharpen tenfold in some tens of them
SMALL = 0.01  # of the weights' root mean square, which a small step of Adam moves each of them by at most
# of the risk at the start: below, the curvature of cross-entropy vanishes with the risk (Cohen et al. 2021, appendix C)
FITTED = 0.1
TOLERANCE = 0.01  # of a curvature, relative


Ahead = Callable[[NDArray], NDArray]
"""The gradient at the weights moved by some ``(p,)``."""


class Rule(Protocol):
    """How a gradient becomes what is stepped along; it remembers the gradients that it was given."""

    @property
    def scale(self) -> NDArray | None:
        """Return what each weight's next step is divided by, ``(p,)``; None where that is one."""
        ...

    def along(self, slope: NDArray, ahead: Ahead) -> NDArray:
        """Take the next gradient, and others near it if need be, and return the step, ``(p,)``, for η = 1."""
        ...


@dataclass
class WithMomentum:
    """Descent with momentum, v ← βv + g; without β plain descent; Nesterov's rule steps along g + βv.

    Attributes:
        beta: β.
        nesterov: whether it is Nesterov's rule.
        velocity: v, ``(p,)``; None before the first step.
    """

    beta: float = 0.0
    nesterov: bool = False
    velocity: NDArray | None = None

    @property
    def scale(self) -> None:
        return None

    def along(self, slope: NDArray, ahead: Ahead) -> NDArray:
        del ahead
        if self.velocity is None or not self.beta:
            self.velocity = slope
        else:
            self.velocity = self.beta * self.velocity + slope
        return slope + self.beta * self.velocity if self.nesterov else self.velocity


@dataclass
class ByAdam:
    """Adam without decay: m̂/(√v̂ + ε), both averages corrected for the start.

    Attributes:
        beta1: β₁.
        beta2: β₂.
        epsilon: ε.
        count: gradients so far.
        mean: m, ``(p,)``.
        square: v, ``(p,)``.
    """

    beta1: float
    beta2: float
    epsilon: float
    count: int = 0
    mean: NDArray = field(default_factory=lambda: np.zeros(()))
    square: NDArray = field(default_factory=lambda: np.zeros(()))

    @property
    def scale(self) -> NDArray:
        return np.sqrt(self.square / (1 - self.beta2**self.count)) + self.epsilon

    def along(self, slope: NDArray, ahead: Ahead) -> NDArray:
        del ahead
        self.count += 1
        self.mean = self.beta1 * self.mean + (1 - self.beta1) * slope
        self.square = self.beta2 * self.square + (1 - self.beta2) * slope**2
        return self.mean / (1 - self.beta1**self.count) / self.scale


class Look(NamedTuple):
    """What is seen of a network at some weights; NaN where these, the risk or its curvature are not finite.

    Attributes:
        risk: over the examples.
        curvature: the largest eigenvalue of D^(−½)HD^(−½).
        residual: relative error of that.
        vector: eigenvector, from which the next search starts, ``(p,)``; None before the first.
    """

    risk: float
    curvature: float
    residual: float
    vector: NDArray | None


def look_at(
    now: Subject,
    rng: np.random.Generator,
    vector: NDArray | None,
    products: int,
    scale: NDArray | None = None,
) -> Look:
    """Look at the risk and at the largest curvature, by Lanczos.

    Args:
        now: the network at the weights of interest.
        rng: of the vector that the first search starts from.
        vector: of the look before, ``(p,)``; None for the first.
        products: with the Hessian at most.
        scale: D, ``(p,)``; None for ones.
    """
    risk = now.risk() if np.isfinite(now.values()).all() else np.nan
    if not np.isfinite(risk):
        return Look(np.nan, np.nan, 0.0, vector)
    first = rng.standard_normal(now.size) if vector is None else vector
    operator = now.products if scale is None else rescaled_products(now, scale)
    try:
        top = top_eigenpairs(operator, first.astype(now.dtype), tolerance=TOLERANCE, limit=products)
    except UserError:  # products that are not finite
        return Look(np.nan, np.nan, 0.0, vector)
    value = float(top.values[0])
    residual = float(top.residuals[0]) / abs(value) if value else 0.0
    return Look(risk, value, residual, top.vectors[0])


@dataclass(frozen=True)
class Pilot:
    """What small steps came to.

    Attributes:
        times: sums of the step sizes before each look, ``(looks,)``.
        curvatures: at them, ``(looks,)``.
        end: the time at which the examples were fitted, if the loss is cross-entropy, or all that was walked if they
            were not; infinite for another loss, as whose curvature does not vanish with it.
    """

    times: NDArray
    curvatures: NDArray
    end: float

    @property
    def peak(self) -> float:
        """Return the largest curvature on the way; zero where none is positive."""
        return float(max(0.0, self.curvatures.max(initial=0.0)))

    @property
    def rise(self) -> tuple[int, int]:
        """Return the places of the looks between which curvature rises by the largest factor.

        >>> Pilot(np.arange(5.0), np.array([9.0, 2.0, 6.0, 1.0, 2.0]), np.inf).rise
        (1, 2)
        """
        positive = np.where(self.curvatures > 0, self.curvatures, np.inf)
        lowest = np.minimum.accumulate(positive)
        top = int(np.argmax(self.curvatures / lowest))
        return int(np.argmin(positive[: top + 1])), top

    @property
    def ends(self) -> tuple[float, float]:
        """Return the curvatures at these places."""
        bottom, top = self.rise
        return float(self.curvatures[bottom]), float(self.curvatures[top])

    def edge(self, *, soon: float, fewest: float, beyond: float) -> float:
        """Choose a curvature between the ends of the largest rise, at which descents are to stop.

        Args:
            soon: the largest product of that curvature and of the time after which small steps come to it, so that the
                slowest descent comes there early.
            fewest: the least product of it and of the time until the examples are fitted, so that the fastest descent
                has steps enough; it gives way where small steps would not pass it.
            beyond: the factor by which they are to pass it.
        """
        bottom, top = self.rise
        low, high = self.ends
        between = np.geomspace(low, (low * high) ** 0.5)
        later = slice(bottom, top + 1)
        passed = self.curvatures[later] >= between[:, None]  # by the last look, if not before
        come = self.times[later][passed.argmax(1)]
        in_time = between[between * come <= soon]
        edge = max(in_time.max(initial=0.0), ROOM * low)
        least = fewest / self.end
        return float(least if edge < least < high / beyond else edge)


def small_steps(
    subject: Subject,
    rng: np.random.Generator,
    steps: int,
    products: int,
    *,
    rule: Rule | None = None,
    turn: float = 2.0,
    longest: float = np.inf,
) -> Pilot:
    """Follow the flow of a rule by small steps; of cross-entropy, until the examples are fitted.

    Args:
        subject: the network at its start.
        rng: of the vector that the first search for a curvature starts from.
        steps: at most.
        products: with the Hessian for each curvature at most.
        rule: by which it descends; None for plain descent.
        turn: the product of step size and curvature at which the rule is unstable.
        longest: step size at most.
    """
    rule = rule or WithMomentum()
    values = subject.values().astype(float)
    first = subject.risk()
    logistic = is_cross_entropy(subject)
    vector: NDArray | None = None
    times: list[float] = []
    curvatures: list[float] = []
    time = 0.0
    lr = 0.0
    for step in range(steps):
        now = subject.at(values.astype(subject.dtype))
        slope = np.asarray(now.gradient(), float)
        along = rule.along(slope, partial(slope_near, subject, values))
        if step % OFTEN == 0:
            look = look_at(now, rng, vector, products, rule.scale)
            vector = look.vector
            if not np.isfinite(look.risk) or (logistic and look.risk < FITTED * first):
                break
            times.append(time)
            curvatures.append(look.curvature)
            lr = min(longest, PACE * turn / look.curvature) if look.curvature > 0 else lr
        values -= lr * along
        time += lr
    return Pilot(np.array(times), np.array(curvatures), time if logistic else np.inf)


def slope_near(subject: Subject, values: NDArray, shift: NDArray) -> NDArray:
    """Return the gradient at weights moved by a shift, ``(p,)`` all of them."""
    return np.asarray(subject.at((values + shift).astype(subject.dtype)).gradient(), float)


def walk(
    subject: Subject, rule: Rule, lr: float, steps: int
) -> Iterator[tuple[int, Subject, NDArray]]:
    """Descend with one step size: yield the number of steps taken, the network then and its gradient, from 0 on.

    The rule has taken that gradient, so that its scale is the one of the coming step. Weights are summed in double
    precision; the walk ends where they are not finite.
    """
    values = subject.values().astype(float)
    for step in range(steps + 1):
        if not np.isfinite(values.astype(subject.dtype)).all():
            return
        now = subject.at(values.astype(subject.dtype))
        slope = np.asarray(now.gradient(), float)
        along = rule.along(slope, partial(slope_near, subject, values))
        yield step, now, slope
        values = values - lr * along


def steps_until_fitted(subject: Subject, rule: Rule, lr: float, steps: int, least: int) -> int:
    """Return how many steps a descent by cross-entropy takes before it has fitted its examples, between two bounds."""
    first = subject.risk()
    for step, now, _ in walk(subject, rule, lr, steps):
        if step % OFTEN == 0 and now.risk() < FITTED * first:
            return max(least, step - OFTEN)
    return steps


def marks_of(steps: int, records: int) -> NDArray:
    """Return the steps after which a descent is looked at, evenly spaced from 0 to the last, ``(records + 1,)``."""
    return np.round(np.linspace(0, steps, records + 1)).astype(int)


class Path(NamedTuple):
    """What was seen along a descent, ``(marks,)`` each; NaN once it has diverged.

    Attributes:
        risk: over the examples.
        curvature: the largest, in the coordinates of the rule.
        residual: relative error of that.
        plain: the curvature of the risk itself, of late marks; NaN elsewhere, and for rules that have no scale.
    """

    risk: NDArray
    curvature: NDArray
    residual: NDArray
    plain: NDArray


def descend(
    subject: Subject,
    rule: Rule,
    lr: float,
    marks: NDArray,
    products: int,
    rng: np.random.Generator,
    late: int = 0,
) -> Path:
    """Descend with one step size, and look at the network at the marks.

    Args:
        subject: the network at its start.
        rule: by which it descends, fresh.
        lr: η.
        marks: steps after which to look, each larger than the one before.
        products: with the Hessian for each curvature at most.
        rng: of the vectors that the first searches start from.
        late: how many of the last marks look at the curvature without the rule's scale as well.
    """
    looks: list[tuple[float, float, float, float]] = []
    vector: NDArray | None = None
    of_plain: NDArray | None = None
    for step, now, _ in walk(subject, rule, lr, int(marks[-1])):
        if step < marks[len(looks)]:
            continue
        look = look_at(now, rng, vector, products, rule.scale)
        vector = look.vector
        plain = np.nan
        if rule.scale is not None and len(looks) >= len(marks) - late:
            unscaled = look_at(now, rng, of_plain, products)
            of_plain = unscaled.vector
            plain = unscaled.curvature
        looks.append((look.risk, look.curvature, look.residual, plain))
    missing = len(marks) - len(looks)
    looks += [(np.nan, np.nan, 0.0, np.nan)] * missing
    return Path(*np.array(looks).T)


def still_learning(
    risk: NDArray, marks: NDArray, steps: int, remedy: str = "choose more examples"
) -> kit.Hypothesis:
    """Check, of cross-entropy, that no descent had fitted its examples before it ended.

    Args:
        risk: along each descent, ``(…, marks)``.
        marks: the steps of the marks, of risk's shape or of one that goes with it.
        steps: of the longest descent.
        remedy: what to try beside fewer steps.
    """
    shares = risk / risk[..., :1]
    fitted = shares < FITTED
    begun = int(np.broadcast_to(marks, risk.shape)[fitted].min()) if fitted.any() else steps
    note = f"with cross-entropy the sharpness falls once the examples are fitted: {remedy} or --steps {begun}"
    return kit.assume(
        "smallest risk at the end / at the start", np.nanmin(shares[..., -1]), ">=", FITTED, note
    )
