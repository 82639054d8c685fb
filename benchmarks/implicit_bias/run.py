"""Time to 0.99 of the maximal ℓ2 margin: flow on the risk clock, steps on log R, gradient descent, SVMs, our program.

Two separable sets: breast cancer (569 × 30, standardized, with a column of ones, without which it is not separable)
and digits 3 against 8 (357 × 64, separable as they are). γ̂ is `hard_margin`'s. Everything runs in float64.

Horizons, step sizes and settings of the peers are found before the clock starts; the timed run goes just to its goal:

* the flow, to the first of 40 readings a decade at which it has 0.99 γ̂;
* descents in blocks of 500 steps, to the first block that ends with 0.99 γ̂. Step sizes come from halving. `stable` is
  the largest at which the objective rises at no step of the run, to the goal or to the budget; `fastest` is the one
  that is first at the goal in a trial of 10⁵ steps, or has the largest margin at its end, risen or not;
* scikit-learn's machines get the quickest setting of a list that reaches 0.99 γ̂, or else the one with the largest
  margin. SVC has a free bias: its margin is held against that of its own geometry, `hard_margin(bias=True)`.

A contestant that does not reach the goal runs once, to its budget; how many steps it would need is extrapolated, and
said to be. The others are timed one after the other in each repetition, so that a busy neighbour hits all of them;
medians are compared. The first call of each program, less the second, is its compile time; both flows share a program.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, LinearSVC

from steepest.dynamics import descend, flow
from steepest.nn.data import breast_cancer, digits, signs
from steepest.nn.losses import log_margin_risk, logistic, margin_risk
from steepest.programs import hard_margin, linear_margin

GOAL = 0.99
TRIAL = 100_000  # steps in which step sizes are compared
BLOCK = 500  # steps between two looks at the margin of a timed descent
FACTORS = 2.0 ** np.arange(12, -2, -1)  # step sizes, in units of one over the smoothness
HORIZON = 1e10  # the longest risk clock looked at
TOLERANCES = {"loose": (1e-3, 1e-3), "tight": (1e-6, 1e-8)}  # the second is the claim's
LINEAR = [  # loss, dual, C, tol
    *[("hinge", True, C, tol) for C in (1e2, 1e6, 1e10) for tol in (1e-4, 1e-8)],
    *[
        ("squared_hinge", False, C, tol)
        for C in (1e6, 1e8, 1e10)
        for tol in (1e-4, 1e-6, 1e-8, 1e-10)
    ],
]
KERNEL = [(C, tol) for C in (1e6, 1e8) for tol in (1e-3, 1e-4, 1e-5)]  # C, tol


class Problem:
    """A data set, its maximal margins with and without a free bias, and the logistic risk on it."""

    def __init__(self, name, x, y):
        self.name = name
        self.x = np.asarray(x)
        self.y = np.asarray(y)
        self.best, self.best_with_bias = (
            hard_margin(self.x, self.y, bias=bias).margin for bias in (False, True)
        )
        apply = lambda w, x: x @ w
        self.risk, self.log_risk = (
            make(logistic, apply, x, y) for make in (margin_risk, log_margin_risk)
        )
        self.observe = {
            "margin": lambda w: linear_margin(w, jnp.asarray(x), jnp.asarray(y)) / self.best
        }
        self.start = jnp.zeros(x.shape[1])

    def reached(self, w, bias=None):
        """Margin over the maximal one of the same geometry."""
        best = self.best if bias is None else self.best_with_bias
        return float(
            (self.y * (self.x @ np.asarray(w) + (bias or 0.0))).min() / np.linalg.norm(w) / best
        )

    @cached_property
    def flowed(self):
        """The flow from 0.1 on: readings, log(1 + t), and margins over γ̂."""
        readings = jnp.geomspace(0.1, HORIZON, 1 + 40 * 11)
        path = self.follow(readings, *TOLERANCES["tight"])
        return np.asarray(readings), np.asarray(path.log_time), np.asarray(path.observed["margin"])

    @cached_property
    def goal(self):
        """Reading and log time at which the flow has 0.99 γ̂."""
        readings, log_time, margin = self.flowed
        first = int(np.argmax(margin >= GOAL))
        if margin[first] < GOAL:
            raise SystemExit(f"{self.name}: the flow has not reached {GOAL} at s = {HORIZON:.0e}")
        return float(readings[first]), float(log_time[first])

    def follow(self, readings, rtol, atol):
        settings = {"solver": "stiff", "rtol": rtol, "atol": atol, "max_steps": 20_000}
        return flow(
            self.risk, self.start, readings, "risk", self.log_risk, self.observe, **settings
        )


@dataclass
class Contestant:
    """Something to time: a run that gives steps, weights, and a bias or None; and a part of it that compiles it all."""

    name: str
    setting: str
    run: Callable[[], tuple[int, Any, float | None]]
    warm: Callable[[], Any] | None = None
    lr: float | None = None  # of the stable descents, which may be extrapolated
    compiling: float | None = None
    seconds: list[float] = field(default_factory=list)
    steps: int = 0
    margin: float = -math.inf

    @property
    def missed(self):
        return self.margin < GOAL

    def compile(self):
        if self.warm is not None:
            first = clocked(self.warm)[0]
            second = clocked(self.warm)[0]
            self.compiling = max(first - second, 0.0)

    def time(self, problem):
        spent, (self.steps, w, bias) = clocked(self.run)
        self.margin = problem.reached(w, bias)
        self.seconds.append(spent)


def clocked(run):
    """Seconds and result."""
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def flows(problem):
    readings = jnp.array([problem.goal[0]])

    def run(tolerances):
        path = problem.follow(readings, *tolerances)
        return int(path.steps), np.asarray(path.params), None

    for name, tolerances in TOLERANCES.items():
        setting = f"stiff, rtol {tolerances[0]:.0e}, to s = {problem.goal[0]:.2g}"
        go = partial(run, tolerances)
        yield Contestant(f"flow on the risk clock, {name}", setting, go, go)


def trial(problem, objective, rates):
    """Margins after every step, shape (rates, steps), and whether the objective never rose."""

    def one(lr):
        path = descend(objective, problem.start, optax.sgd(lr), TRIAL, observe=problem.observe)
        return path.observed["margin"], ~risen(path)

    margins, stable = jax.jit(jax.vmap(one))(rates)
    return np.nan_to_num(np.asarray(margins), nan=-np.inf), np.asarray(stable)


def risen(path):
    """Whether the objective rose between two records, by more than rounding, or was lost."""
    return (jnp.diff(path.risk) > 1e-12 * jnp.abs(path.risk[:-1])).any() | path.diverged


def chosen(margins, stable):
    """Places of the largest stable step size, and of the one that is first at the goal or has come furthest."""
    there = margins >= GOAL
    steps = np.where(there.any(1), there.argmax(1), np.inf)
    fastest = steps.argmin() if there.any() else margins[:, -1].argmax()
    return {"stable": int(stable.argmax()), "fastest": int(fastest)}


def descents(problem, name, objective, smoothness, budget, kinds):
    """Constant steps on an objective, in the step sizes asked for."""
    rates = FACTORS / smoothness
    margins, stable = trial(problem, objective, rates)
    if not stable.any():
        raise SystemExit(f"{problem.name}, {name}: no step size of the list is stable")
    places = chosen(margins, stable)

    @partial(jax.jit, static_argnums=2)
    def block(w, lr, watched):
        record = 1 if watched else np.array([BLOCK])
        path = descend(objective, w, optax.sgd(lr), BLOCK, record=record, observe=problem.observe)
        return path.params, path.observed["margin"][-1], risen(path)

    def go(lr, watched):
        w = problem.start
        margin = -math.inf
        steps = 0
        rose = False
        while margin < GOAL and steps < budget and not (watched and rose):
            w, margin, rose = block(w, lr, watched)
            steps += BLOCK
        return steps, w, bool(rose)

    def run(lr):
        steps, w, _ = go(lr, watched=False)
        return steps, np.asarray(w), None

    def warm():
        return jax.block_until_ready(block(problem.start, 0.0, False))

    for kind in kinds:
        lr = float(rates[places[kind]])
        while kind == "stable" and go(lr, watched=True)[2]:  # risen after the trial
            lr /= 2
        said = f"{kind} η = {lr:.3g}"
        yield Contestant(name, said, partial(run, lr), warm, lr if kind == "stable" else None)


def linear_svc(problem, loss, dual, C, tol):
    machine = LinearSVC(
        loss=loss, dual=dual, C=C, tol=tol, fit_intercept=False, max_iter=200_000, random_state=0
    )
    machine.fit(problem.x, problem.y)
    return int(machine.n_iter_), machine.coef_[0], None


def kernel_svc(problem, C, tol):
    machine = SVC(kernel="linear", C=C, tol=tol, max_iter=50_000_000).fit(problem.x, problem.y)
    return int(machine.n_iter_[0]), machine.coef_[0], float(machine.intercept_[0])


def machines(problem):
    """Each machine of scikit-learn in its quickest setting that reaches the goal, or in the best one."""
    for name, fit, settings in (
        ("LinearSVC", linear_svc, LINEAR),
        ("SVC, linear kernel", kernel_svc, KERNEL),
    ):
        tried = []
        for *loss, C, tol in settings:
            said = f"{f'{loss[0]}, '.replace('_', ' ') if loss else ''}C = {C:.0e}, tol {tol:.0e}"
            each = Contestant(name, said, partial(fit, problem, *loss, C, tol))
            each.time(problem)
            tried.append(each)
        best = min(
            tried, key=lambda each: (each.missed, -each.margin if each.missed else each.seconds[0])
        )
        yield Contestant(name, best.setting, best.run)


def program(problem):
    def run():
        return 0, hard_margin(problem.x, problem.y).direction, None

    return Contestant("hard_margin", "Clarabel, then exact on the support", run)


def measure(problem, contestants, repetitions):
    """Fills in the seconds: all in turn in each repetition; those that miss the goal run once."""
    for each in contestants:
        each.compile()
    for repetition in range(repetitions):
        for each in contestants:
            if repetition == 0 or not each.missed:
                each.time(problem)


def table(contestants):
    base = statistics.median(contestants[0].seconds)
    print("| contestant | setting | steps | seconds | ratio | margin / γ̂ | compile |")
    print("|---|---|---|---|---|---|---|")
    for each in contestants:
        middle = statistics.median(each.seconds)
        ratio = "missed" if each.missed else f"{middle / base:.3g}"
        compiling = "" if each.compiling is None else f"{each.compiling:.1f} s"
        steps = f"{each.steps:,}".replace(",", " ") if each.steps else ""
        print(
            f"| {each.name} | {each.setting} | {steps} | {middle:.3g} | {ratio} | {each.margin:.4f} | {compiling} |",
            flush=True,
        )


def extrapolate(problem, each, on_log):
    """How many steps would be needed, if descent stays beside the flow as it did so far; and by gap = C / log t."""
    readings, log_time, margin = problem.flowed
    goal, late = problem.goal
    at, needed = (
        (np.log(readings), np.log(goal / each.lr)) if on_log else (log_time, late - np.log(each.lr))
    )
    beside = np.interp(np.log(each.steps * each.lr), at, margin)
    per_step = math.log10(statistics.median(each.seconds) / each.steps)
    tens = needed / np.log(10)
    print(
        f"EXTRAPOLATED: {each.name}, {each.setting}: 10^{tens:.1f} steps, 10^{tens + per_step:.1f} s, if as the flow; "
        f"after {each.steps:.0e} steps margin / γ̂ = {each.margin:.4g}, and {beside:.4g} on the flow at the same time"
    )
    if not on_log and each.margin > 0:
        constant = (1 - each.margin) * np.log(each.steps * each.lr)
        tens = (constant / (1 - GOAL) - np.log(each.lr)) / np.log(10)
        print(
            f"EXTRAPOLATED: {each.name}, with 1 − margin / γ̂ = {constant:.2f} / log t: 10^{tens:.1f} steps"
        )


def compare(problem, repetitions, budget):
    """The table of one set, and the extrapolations under it."""
    x = problem.x
    y = problem.y
    biased = f"{problem.best_with_bias:.6g} with a bias"
    print(
        f"\n{problem.name}: {x.shape[0]} × {x.shape[1]}, γ̂ = {problem.best:.6g}, {biased}; time to {GOAL} γ̂"
    )
    curvature = float(np.linalg.eigvalsh(x.T @ x / len(y))[-1]) / 4  # L of the logistic risk
    longest = float((x**2).sum(1).max())  # the same for log R, but for a constant
    steps = list(
        descents(
            problem, "steps on log R", problem.log_risk, longest, budget, ("stable", "fastest")
        )
    )
    plain = list(
        descents(problem, "gradient descent", problem.risk, curvature, budget, ("stable",))
    )
    contestants = [*flows(problem), *steps, *plain, *machines(problem), program(problem)]
    measure(problem, contestants, repetitions)
    table(contestants)
    for each in contestants:
        if each.missed and each.lr is not None:
            extrapolate(problem, each, on_log=each in steps)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument(
        "--budget", type=int, default=10**6, help="steps of a descent that does not reach the goal"
    )
    known = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    jax.config.update("jax_enable_x64", True)
    cancer = breast_cancer()
    pair = signs(digits((3, 8)))
    with_ones = jnp.column_stack([cancer.x, jnp.ones(cancer.n)])
    for name, x, y in (
        ("breast cancer with ones", with_ones, cancer.y),
        ("digits 3 against 8", pair.x, pair.y),
    ):
        compare(Problem(name, x, y), known.repetitions, known.budget)


if __name__ == "__main__":
    main()
