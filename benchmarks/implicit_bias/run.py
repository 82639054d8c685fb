"""Time to 0.99 of the maximal ℓ2 margin: flow on the risk clock, steps on log R, gradient descent, SVMs, our program.

Two separable sets: breast cancer (569 × 30, standardized, with a column of ones, without which it is not separable)
and digits 3 against 8 (357 × 64, separable as they are). γ̂ is `hard_margin`'s. Everything runs in float64.

Horizons, step sizes and settings of the peers are found before the clock starts; the timed run goes just to its goal:

* the flow, to the first of 40 readings a decade at which it has 0.99 γ̂;
* descents, to their first step with 0.99 γ̂. Step sizes come from halving. `stable` is the largest at which the
  objective never rises in a trial of 10⁵ steps, each of them looked at; `fastest` is the one that is first at the
  goal, or has the largest margin at the end of the trial, risen or not;
* scikit-learn's machines get the quickest setting of a list that reaches 0.99 γ̂, or else the one with the largest
  margin. SVC has a free bias: its margin is held against that of its own geometry, `hard_margin(bias=True)`.

A contestant that does not reach the goal runs once, to its budget; how many steps it would need is extrapolated, and
said to be. The others are timed one after the other in each repetition, so that a busy neighbour hits all of them;
medians are compared. The first call of each, less the median, is its compile time.
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

from steepest.data import breast_cancer, digits, signs
from steepest.descent import descend, flow, log_margin_risk, logarithmic, logistic, margin_risk
from steepest.margins import hard_margin, linear_margin

GOAL = 0.99
TRIAL = 100_000  # steps in which step sizes are compared
FACTORS = 2.0 ** np.arange(14, -3, -1)  # step sizes, in units of one over the smoothness
HORIZON = 1e10  # the longest risk clock looked at
TOLERANCES = {"loose": (1e-3, 1e-3), "tight": (1e-6, 1e-8)}  # the second is the claim's
LINEAR = [  # loss, dual, C, tol
    *[("hinge", True, C, tol) for C in (1e2, 1e6, 1e10) for tol in (1e-4, 1e-8)],
    *[("squared_hinge", False, C, tol) for C in (1e6, 1e8, 1e10) for tol in (1e-4, 1e-6, 1e-8, 1e-10)],
]
KERNEL = [(C, tol) for C in (1e4, 1e10) for tol in (1e-3, 1e-4, 1e-5)]  # C, tol


class Problem:
    """A data set, its maximal margins with and without a free bias, and the logistic risk on it."""

    def __init__(self, name, x, y):
        self.name, self.x, self.y = name, np.asarray(x), np.asarray(y)
        self.best, self.best_with_bias = (hard_margin(self.x, self.y, bias=bias).margin for bias in (False, True))
        apply = lambda w, x: x @ w
        self.risk, self.log_risk = (make(logistic, apply, x, y) for make in (margin_risk, log_margin_risk))
        self.observe = {"margin": lambda w: linear_margin(w, jnp.asarray(x), jnp.asarray(y)) / self.best}
        self.start = jnp.zeros(x.shape[1])

    def reached(self, w, bias=None):
        """Margin over the maximal one of the same geometry."""
        best = self.best if bias is None else self.best_with_bias
        return float((self.y * (self.x @ np.asarray(w) + (bias or 0.0))).min() / np.linalg.norm(w) / best)

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
        return flow(self.risk, self.start, readings, "risk", self.log_risk, self.observe, **settings)


@dataclass
class Contestant:
    """Something to time: a run that gives steps and weights (with a bias or None)."""

    name: str
    setting: str
    run: Callable[[], tuple[int, Any, float | None]]
    once: bool = False  # it did not reach the goal
    first: float = math.nan
    compiled: bool = False
    seconds: list[float] = field(default_factory=list)
    steps: int = 0
    margin: float = math.nan

    def time(self, problem):
        begin = time.perf_counter()
        self.steps, w, bias = self.run()
        spent = time.perf_counter() - begin
        self.margin = problem.reached(w, bias)
        return spent


def flows(problem):
    readings = jnp.array([problem.goal[0]])

    def run(tolerances):
        path = problem.follow(readings, *tolerances)
        return int(path.steps), np.asarray(path.params), None

    for name, tolerances in TOLERANCES.items():
        setting = f"stiff, rtol {tolerances[0]:.0e}, to s = {problem.goal[0]:.2g}"
        yield Contestant(f"flow on the risk clock, {name}", setting, partial(run, tolerances), compiled=True)


def trial(problem, objective, rates):
    """Margins after every step, shape (rates, steps), and whether the objective never rose."""

    def one(lr):
        path = descend(objective, problem.start, optax.sgd(lr), TRIAL, observe=problem.observe)
        rises = jnp.diff(path.risk) > 1e-12 * jnp.abs(path.risk[:-1])  # rounding is no rise
        return path.observed["margin"], ~rises.any() & ~path.diverged

    margins, stable = jax.jit(jax.vmap(one))(rates)
    return np.nan_to_num(np.asarray(margins), nan=-np.inf), np.asarray(stable)


def chosen(margins, stable):
    """Places of the largest stable step size, and of the one that is first at the goal or has come furthest."""
    there = margins >= GOAL
    steps = np.where(there.any(1), there.argmax(1), np.inf)
    fastest = int(steps.argmin()) if np.isfinite(steps).any() else int(margins[:, -1].argmax())
    return {"stable": int(stable.argmax()), "fastest": fastest}, steps


def descents(problem, name, objective, smoothness, budget, kinds):
    """Constant steps on an objective; yields contestants and what is to be extrapolated from."""
    rates = FACTORS / smoothness
    margins, stable = trial(problem, objective, rates)
    places, steps = chosen(margins, stable)
    if not stable.any():
        raise SystemExit(f"{problem.name}, {name}: no step size of the list is stable")
    for kind in kinds:
        place = places[kind]
        missed = not np.isfinite(steps[place])
        count, lr = (budget if missed else int(steps[place])), float(rates[place])
        marks = logarithmic(count, 200) if missed else np.array([count])
        path = jax.jit(lambda lr, n=count, at=marks: descend(objective, problem.start, optax.sgd(lr), n, record=at))

        def run(path=path, lr=lr, count=count):
            return count, np.asarray(path(lr).params), None

        said = f"{kind} η = {lr:.3g}{'' if stable[place] else ' (the objective rises at times)'}"
        yield Contestant(name, said, run, once=missed, compiled=True), lr, kind


def linear_svc(problem, loss, dual, C, tol):
    machine = LinearSVC(loss=loss, dual=dual, C=C, tol=tol, fit_intercept=False, max_iter=200_000, random_state=0)
    machine.fit(problem.x, problem.y)
    return int(machine.n_iter_), machine.coef_[0], None


def kernel_svc(problem, C, tol):
    machine = SVC(kernel="linear", C=C, tol=tol, max_iter=100_000_000).fit(problem.x, problem.y)
    return int(machine.n_iter_[0]), machine.coef_[0], float(machine.intercept_[0])


def machines(problem):
    """Each machine of scikit-learn in its quickest setting that reaches the goal, or in the best one."""
    for name, fit, settings in (("LinearSVC", linear_svc, LINEAR), ("SVC, linear kernel", kernel_svc, KERNEL)):
        tried = []
        for setting in settings:
            each = Contestant(name, ", ".join(str(s) for s in setting), partial(fit, problem, *setting))
            spent = each.time(problem)
            tried.append((each.margin < GOAL, spent if each.margin >= GOAL else -each.margin, each))
        missed, _, best = min(tried, key=lambda each: each[:2])
        best.once = missed
        yield best


def program(problem):
    def run():
        return 0, hard_margin(problem.x, problem.y).direction, None

    return Contestant("hard_margin", "Clarabel, then exact on the support", run)


def measure(problem, contestants, repetitions):
    """Fills in the seconds: all in turn in each repetition; those that miss the goal once, after being compiled."""
    for each in contestants:
        each.first = each.time(problem)
        if each.once:
            each.seconds = [each.time(problem)] if each.compiled else [each.first]
    for _ in range(repetitions):
        for each in contestants:
            if not each.once:
                each.seconds.append(each.time(problem))


def table(problem, contestants):
    base = statistics.median(contestants[0].seconds)
    print("| contestant | setting | steps | seconds | ratio | margin / γ̂ | compile |")
    print("|---|---|---|---|---|---|---|")
    for each in contestants:
        middle = statistics.median(each.seconds)
        ratio = f"{middle / base:.3g}" if each.margin >= GOAL else "missed"
        compiling = f"{each.first - middle:.1f} s" if each.compiled else ""
        steps = f"{each.steps:,}".replace(",", " ") if each.steps else ""
        print(
            f"| {each.name} | {each.setting} | {steps} | {middle:.3g} | {ratio} | {each.margin:.4f} | {compiling} |",
            flush=True,
        )


def extrapolate(problem, each, lr, on_log):
    """How many steps would be needed, if descent stays beside the flow as it did so far; and by gap = C / log t."""
    readings, log_time, margin = problem.flowed
    goal, late = problem.goal
    at, log_steps = (np.log(readings), np.log(goal / lr)) if on_log else (log_time, late - np.log(lr))
    beside = float(np.interp(np.log(each.steps * lr), at, margin))
    per_step = statistics.median(each.seconds) / each.steps
    tens, seconds = log_steps / np.log(10), log_steps / np.log(10) + math.log10(per_step)
    clock = "on the risk clock" if on_log else "in plain time"
    print(
        f"EXTRAPOLATED, {each.name}, {each.setting}: 10^{tens:.1f} steps, 10^{seconds:.1f} s, where the flow has "
        f"{GOAL} {clock}; after {each.steps:.0e} steps the margin is {each.margin:.3g}, and {beside:.3g} on the flow"
    )
    if not on_log and each.margin > 0:
        constant = (1 - each.margin) * np.log(each.steps * lr)
        tens = (constant / (1 - GOAL) - np.log(lr)) / np.log(10)
        print(f"EXTRAPOLATED, {each.name}, by 1 − margin/γ̂ = {constant:.2f} / log t: 10^{tens:.1f} steps")


def compare(problem, repetitions, budget):
    """The table of one set, and the extrapolations under it."""
    x, y = problem.x, problem.y
    print(f"\n{problem.name}: {x.shape[0]} × {x.shape[1]}, γ̂ = {problem.best:.6g}, {problem.best_with_bias:.6g} with a bias")
    curvature = float(np.linalg.eigvalsh(x.T @ x / len(y))[-1]) / 4  # L of the logistic risk
    longest = float((x**2).sum(1).max())  # a bound, up to a constant, of that of log R
    steps = list(descents(problem, "steps on log R", problem.log_risk, longest, budget, ("stable", "fastest")))
    plain = list(descents(problem, "gradient descent", problem.risk, curvature, budget, ("stable",)))
    contestants = [*flows(problem), *(each for each, *_ in steps + plain), *machines(problem), program(problem)]
    measure(problem, contestants, repetitions)
    table(problem, contestants)
    for each, lr, kind in steps + plain:
        if each.once and kind == "stable":
            extrapolate(problem, each, lr, on_log=each.name == "steps on log R")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--budget", type=int, default=10**6, help="steps of a descent that does not reach the goal")
    known = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    jax.config.update("jax_enable_x64", True)
    cancer, pair = breast_cancer(), signs(digits((3, 8)))
    with_ones = jnp.column_stack([cancer.x, jnp.ones(cancer.n)])
    for name, x, y in (("breast cancer with ones", with_ones, cancer.y), ("digits 3 against 8", pair.x, pair.y)):
        compare(Problem(name, x, y), known.repetitions, known.budget)


if __name__ == "__main__":
    main()
