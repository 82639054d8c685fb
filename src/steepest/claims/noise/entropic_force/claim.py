"""Noise with covariance αH drives SGD along a valley of minima to where the trace of H is smaller.

H is the Hessian of the loss, with eigenvalues λ, and α a constant. Noise on the labels is such a noise. To first order
in the step size γ, the weights keep an equilibrium of height γα/2 on the walls of a valley, whatever their steepness.
So the mean force along the valley is −γα/2 times the slope of Σλ. With two different α it may point to the sharper
side.
"""

from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.noise.entropic_force.experiment import (
    Balance,
    BalancePoint,
    Valley,
    balance_law,
    balance_walk,
    slow_law,
    spread,
    valley_walk,
    walls,
)
from steepest.nn.types import Values

BURN = 400  # steps in which θ̂ is held until the walls are in equilibrium
FAIR, UNFAIR = (0.2, 0.2), (0.05, 0.4)  # α of the tanh walls, equal and not
PAIRS = ("unequal α", "equal α")
FRESH = (1, 0)  # whether the label's error is drawn anew at each step


class Setting(NamedTuple):
    """The valleys that are walked: the claim's valley, tanh walls with unequal and equal α, and two more.

    These two are the claim's valley with the weights held in place, and with noise that is the same however steep the
    wall.
    """

    start: Values  # (5,) θ̂ at first
    tanh: Values  # (5,) which walls
    alphas: Values  # (5, 2)
    held: Values  # (5,)
    power: Values  # (5,) of λ in the covariance of the noise


@kit.claim
class EntropicForce(kit.Claim[Setting]):
    """A product of two numbers with noisy labels; a valley between two walls that grow steeper along it."""

    lr: Annotated[float, kit.Within(0, open=True)] = kit.param(
        0.05,
        "step size γ",
        scope=kit.between(0.04, 0.06, "smaller ones hardly move in so many steps"),
    )
    noise: kit.Positive = kit.param(
        0.5, "standard deviation σ of the labels", scope=kit.between(0.3, 0.6)
    )
    start: Annotated[float, kit.Within(1, open=True)] = kit.param(
        3.0, "first factor u at the start; the other is 1/u", scope=kit.between(2.0, 3.5)
    )
    alphas: tuple[kit.Positive, ...] = kit.param(
        (0.2, 0.2),
        "noise over curvature, α, of the two walls",
        scope=kit.choices((0.2, 0.2), (0.15, 0.15), (0.3, 0.3)),
    )
    place: float = kit.param(
        2.5, "where in the valley the walkers start, θ̂", scope=kit.between(1.5, 3.0)
    )
    walkers: kit.Count = kit.param(48, "walkers in each group")
    seeds: kit.Seeds = kit.param(16, "groups of walkers")
    balance_marks: tuple[kit.Count, ...] = kit.param(
        (250, 1000, 2000, 4000, 6000), "steps at which D is read", unit="steps"
    )
    valley_marks: tuple[kit.Count, ...] = kit.param(
        (200, 1000, 2000, 3800, 6000), "steps at which θ̂ is read", unit="steps"
    )

    kind = "limit"
    says = {
        "Noise with covariance αH drives SGD along a valley of minima to where the trace of H is smaller": (
            "place",
            "change",
        ),
        "Noise on the labels is such a noise": "balance",
    }
    tiny = {
        "walkers": 4,
        "seeds": 3,
        "balance_marks": (20, 40, 60, 80, 100),
        "valley_marks": (20, 40, 60, 80, 100),
    }
    full = {"walkers": 512}
    out_of_scope = {"alphas": (0.05, 0.4)}
    point = BalancePoint

    def axes(self):
        return {
            "mark": self.balance_marks,
            "reading": self.valley_marks,
            "pair": PAIRS,
            "wall": ("first", "second"),
        }

    def check_fields(self) -> None:
        if len(self.alphas) != 2:
            raise kit.UserError(
                f"alphas are one α for each of the two walls, such as 0.2 0.2; got {[*self.alphas]}"
            )
        for name in ("balance_marks", "valley_marks"):
            marks = [*getattr(self, name)]
            if sorted(set(marks)) != marks:
                raise kit.UserError(f"{name} must be increasing steps, got {marks}")

    def setting(self, key):
        return Setting(
            np.array([self.place, 0.0, 0.0, self.place, self.place]),
            np.array([0.0, 1.0, 1.0, 0.0, 0.0]),
            np.array([self.alphas, UNFAIR, FAIR, self.alphas, self.alphas]),
            np.array([0.0, 0.0, 0.0, 1.0, 0.0]),
            np.array([1.0, 1.0, 1.0, 1.0, 0.0]),
        )

    def hypotheses(self, setting):
        heights, slopes = walls(np.float64(self.place), 0.0, np)
        slowness = self.lr * max(self.alphas) * np.abs(slopes / heights).max()
        yield kit.assume(
            "larger α over the smaller",
            max(self.alphas) / min(self.alphas),
            "==",
            1,
            "the force is towards smaller tr H only where all directions have one α",
        )
        yield kit.assume(
            "γ times the larger λ at the start",
            self.lr * max(*heights, (self.start**2 + self.start**-2) / 2),
            "<",
            1,
            "the walls have no steady state; lower --lr",
        )
        yield kit.assume(
            "γα|∇λ|/λ, the slow motion in units of the fast",
            slowness,
            "<",
            0.1,
            "the walls are not in equilibrium while θ̂ moves; lower --lr or --alphas",
        )

    def predict(self, setting):
        imbalance = self.start**2 - self.start**-2
        places = [
            slow_law(*lane, lr=self.lr, marks=self.valley_marks)
            for lane in zip(setting.start[:3], setting.tanh[:3], setting.alphas[:3], strict=True)
        ]
        heights, _ = walls(np.float64(self.place), 0.0, np)
        return kit.law(
            balance=("mark", balance_law(imbalance, self.lr, self.noise, self.balance_marks)),
            place=("reading", places[0]),
            change=("pair", [_rise(places[1][-1]), _rise(places[2][-1])]),
            spread=("wall", spread(heights, setting.alphas[3], self.lr)),
        )

    def observe(self, setting, key):
        balance, valley = kit.compiled(self.run)(setting, key)
        groups = (self.seeds, self.walkers)
        balance = Balance(*[np.asarray(part) for part in balance])
        deviation = np.abs(balance.imbalance / balance.product - 1)
        imbalance = balance.imbalance.reshape(len(FRESH), *groups, -1).mean(2)
        places = np.asarray(valley.place).reshape(len(setting.start), *groups, -1)
        traces = 2 * walls(places[1:3, ..., -1], 1.0, np)[0].sum(0)  # (2, groups, walkers)
        return kit.seen(
            balance=("seed mark", imbalance[0]),
            stale_balance=("seed mark", imbalance[1]),
            deviation=("label walker mark", deviation),
            place=("seed reading", places[0].mean(1)),
            even_place=("seed reading", places[4].mean(1)),
            change=("pair seed", traces.mean(2) - 6),
            spread=("wall seed", np.asarray(valley.spread)[3].reshape(*groups, 2).mean(1).T),
        )

    def run(self, setting: Setting, key: kit.Key) -> tuple[Balance, Valley]:
        """Walk all walkers: of the product, shape ``(2, walkers, marks)``; of the valleys, ``(5, walkers, marks)``."""
        for_balance, for_valley = jax.random.split(key)
        count = self.seeds * self.walkers
        marks = np.array(self.balance_marks)
        product = lambda fresh, key: balance_walk(
            self.start, 1 / self.start, self.lr, self.noise, marks, key, fresh=fresh
        )
        walk = lambda lane, key: valley_walk(
            *lane, lr=self.lr, burn=BURN, marks=np.array(self.valley_marks), key=key
        )
        lanes = len(setting.start)
        of_valleys = kit.keys(for_valley, lanes * count).reshape(lanes, count)
        valleys = jax.vmap(jax.vmap(walk, (None, 0)))(tuple(setting), of_valleys)
        products = jax.vmap(jax.vmap(product, (None, 0)), (0, None))
        return products(np.array(FRESH), kit.keys(for_balance, count)), valleys

    def judge(self, law, seen):
        exact = kit.agrees(
            "exact", seen.deviation, 1e-11, label="D against D₀ Π(1 − γ²r²), largest relative error"
        )
        yield kit.idle(exact, "algebra of one step, true of any residuals")
        yield kit.follows(
            "balance",
            law.balance,
            seen.balance,
            0.03,  # the mean of 512 walkers is known to half a per cent, at the end to one
            label="imbalance D over the steps",
        )
        yield kit.follows(
            "place",
            law.place,
            seen.place,
            0.02,
            absolute=True,
            label="place θ̂ in the valley over the steps",
        )
        yield kit.follows(
            "spread", law.spread, seen.spread, 0.015, label="⟨θ̄²⟩ at either wall, θ̂ held"
        )
        yield kit.follows(
            "change",
            law.change,
            seen.change,
            0.05,
            label="change of tr H between tanh walls, α = 0.05 and 0.4, and 0.2 at both",
        )

    def rivals(self, setting, law):
        marks = np.array(self.valley_marks)
        imbalance = self.start**2 - self.start**-2
        plain = imbalance * (1 - self.lr**2 * self.noise**2) ** np.array(self.balance_marks)
        lanes = zip(setting.start[:3], setting.tanh[:3], setting.alphas[:3], strict=True)
        small = [slow_law(start, tanh, alphas / 2, self.lr, marks) for start, tanh, alphas in lanes]
        mean = np.full(2, np.mean(UNFAIR))
        of_mean = _rise(slow_law(0.0, 1.0, mean, self.lr, marks)[-1])
        still = 1e-9 * np.sign(law.change)
        yield kit.rival(
            "no force along the valley",
            "gradient flow conserves the imbalance and stays where the risk is least",
            balance=("mark", np.full(len(self.balance_marks), imbalance)),
            place=("reading", np.full(marks.size, self.place)),
            change=still,
        )
        yield kit.rival("without the noise of uv around 1", "E r² = σ²", balance=("mark", plain))
        yield kit.rival(
            "⟨θ̄²⟩ = γα/4",
            "the lecture's γα/4",
            place=("reading", small[0]),
            change=("pair", [_rise(small[1][-1]), _rise(small[2][-1])]),
            spread=law.spread / 2,
        )
        yield kit.rival(
            "γα/2 at any step",
            "the walls' height does not depend on their steepness",
            spread=("wall", np.full(2, self.lr * self.alphas[0] / 2)),
        )
        yield kit.rival(
            "the mean of the two α for both walls",
            "tr H falls whatever the noise",
            id="one_alpha",
            change=("pair", [of_mean, float(law.change[1])]),
        )

    def controls(self, seen):
        yield kit.control(
            "a wrong label that stays",
            "it is fitted, and then there is no noise",
            balance=seen.stale_balance,
        )
        yield kit.control(
            "noise of one covariance at all walls",
            "steep walls are then lower than flat ones",
            place=seen.even_place,
        )
        yield kit.control(
            "unequal α for equal ones and the other way round",
            "which wall has the larger α decides",
            id="other_pair",
            change=("pair seed", seen.change.values[::-1]),
        )
        yield kit.control(
            "either wall for the other",
            "the height depends on γλ",
            spread=("wall seed", seen.spread.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        marks = np.array(self.balance_marks)
        fine = np.unique(np.linspace(0, marks[-1], 60).astype(int))
        imbalance = self.start**2 - self.start**-2
        steps = np.array(self.valley_marks)
        walk = np.unique(np.linspace(0, steps[-1], 60).astype(int))
        place = slow_law(self.place, 0.0, np.array(self.alphas), self.lr, walk)
        quarter = slow_law(self.place, 0.0, np.array(self.alphas) / 2, self.lr, walk)
        sums = []
        for alphas in (UNFAIR, FAIR):
            path = slow_law(0.0, 1.0, np.array(alphas), self.lr, walk)
            sums.append(2 * walls(path, 1.0, np)[0].sum(0))
        yield kit.panel(
            "Noisy labels balance two factors",
            "step",
            "D = u² − v²",
            kit.predicted_curve(fine, balance_law(imbalance, self.lr, self.noise, fine)),
            kit.rival_curve(fine, np.full(fine.size, imbalance), "gradient flow"),
            kit.observed_curve(marks, seen.balance.mean("seed"), "walkers", kind="points"),
        )
        yield kit.panel(
            "Along a valley",
            "step",
            "place θ̂",
            kit.predicted_curve(walk, place),
            kit.rival_curve(walk, quarter, "half the force"),
            kit.context_curve(walk, np.full(walk.size, 1 / 3), "least tr H"),
            kit.observed_curve(steps, seen.place.mean("seed"), "walkers", kind="points"),
        )
        yield kit.panel(
            "Two different α",
            "step",
            "tr H",
            kit.predicted_curve(walk, sums[0], "α = 0.05 and 0.4, rising"),
            kit.predicted_curve(walk, sums[1], "α = 0.2 and 0.2, falling"),
            kit.observed_curve(
                np.full(2, steps[-1]), 6 + seen.change.mean("seed").values, "walkers", kind="points"
            ),
        )


def _rise(place: float) -> float:
    """Return the change of tr H from θ̂ = 0, where it is 6, between the tanh walls."""
    return 2 * float(walls(np.float64(place), 1.0, np)[0].sum()) - 6
