"""Noise on each neuron leads networks of squares to the least regularized risk from every start.

At a low temperature τ the risk stays above this least value by τ/2 for each direction that the best network leaves
empty. Without noise, descent gives neurons no new direction. A network of squares, f(x) = (1/N) Σ⟨θ, x⟩², depends on
its neurons only through their second moments M. Descent multiplies all neurons by the same matrix in each step, so M
keeps its rank: started in too few directions, descent ends at the best network of these. Noise on each neuron gives
neurons new directions, and M' = −(BM + MB) + 2τI has one limit, the minimum of a convex free energy. A direction that
the best network leaves empty then holds τ/2, as an oscillator does at temperature τ.
"""

from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.noisy_mean_field.experiment import DIMENSION, Lanes, train
from steepest.claims.features.noisy_mean_field.theory import (
    best,
    moments,
    path,
    regularized,
    slack,
    time_below,
)
from steepest.nn.types import Values

FILLED = (2.0, 1.5, 1.0, 0.5)  # eigenvalues of A that the best network has, the first of them
EMPTY = (-0.2, -0.4, -0.6)  # those that it leaves empty
EMPTIES = (0, 1, 2, 3)
STARTS = (1, 2, 3, 4)
ONE = 1  # empty directions of the target that all starts are tried on
ENDS = 4.5  # time of training


class Setting(NamedTuple):
    """Targets and starts, turned at random.

    Attributes:
        basis: eigenvectors of the targets, in columns, ``(D, D)``.
        targets: A with 0, 1, 2, 3 directions that the best network leaves empty, ``(targets, D, D)``.
        starts: roots R of the second moments R Rᵀ of neurons in 1, …, D directions, ``(starts, D, D)``.
    """

    basis: Values
    targets: Values
    starts: Values


@kit.claim
class NoisyMeanField(kit.Claim[Setting]):
    """Networks of squares with weight decay, on Gaussian inputs in four dimensions; noisy descent of their neurons."""

    neurons: Annotated[int, kit.Within(10, 10**5)] = kit.param(
        300, "N", unit="neurons", scope=kit.between(300, 600, "fewer fluctuate, more take longer")
    )
    temperatures: tuple[kit.Positive, ...] = kit.param(
        (0.01, 0.03, 0.1),
        "τ, increasing: a step h adds noise of variance 2τh to each weight",
        scope=kit.choices(
            (0.01, 0.03, 0.1), (0.008, 0.025, 0.08), why="warmer ones fill empty directions by more"
        ),
    )
    decay: kit.Positive = kit.param(
        0.4,
        "λ of the weight decay λ‖θ‖²/2",
        scope=kit.between(0.2, 0.6, "beyond, directions empty"),
    )
    spread: kit.Positive = kit.param(
        0.5, "standard deviation of the neurons at the start", scope=kit.between(0.3, 0.7)
    )
    step: kit.Positive = kit.param(
        0.015, "h, in time multiplied by N", scope=kit.between(0.01, 0.018, "longer ones diverge")
    )
    seeds: kit.Seeds = kit.param(10, "networks of each kind")

    kind = "limit"
    says = {
        "descent gives neurons no new direction": ("span", "trapped"),
        "leads networks of squares to the least regularized risk": ("moments", "cost", "time"),
        "by τ/2 for each direction that the best network leaves empty": "heat",
    }
    tiny = {"neurons": 40, "temperatures": (0.03, 0.1), "seeds": 3}
    full = {"neurons": 1000, "temperatures": (0.003, 0.01, 0.03, 0.1), "seeds": 20}
    out_of_scope = {"step": 0.1, "seeds": 3}

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return round(ENDS / self.step)

    def axes(self):
        return {
            "empty": EMPTIES,
            "temperature": self.temperatures,
            "start": STARTS,
            "direction": tuple(range(DIMENSION)),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        turn = lambda: np.linalg.qr(rng.standard_normal((DIMENSION, DIMENSION)))[0]
        basis = turn()
        directions = turn()
        starts = [self.spread * directions * (np.arange(DIMENSION) < k) for k in STARTS]
        targets = [basis @ np.diag(eigenvalues(empty)) @ basis.T for empty in EMPTIES]
        return Setting(basis, np.stack(targets), np.stack(starts))

    def hypotheses(self, setting):
        pulls = [slack(eigenvalues(empty), self.decay)[DIMENSION - empty :] for empty in EMPTIES]
        filled = [best(eigenvalues(empty), self.decay)[: DIMENSION - empty] for empty in EMPTIES]
        fastest = 4 * (sum(FILLED) + 2 * max(FILLED))
        yield kit.assume(
            "step times the largest rate of M",
            self.step * fastest,
            "<=",
            1,
            "choose a smaller --step",
        )
        yield kit.assume(
            "least b of an empty direction",
            float(np.concatenate(pulls).min()),
            ">=",
            0.5,
            "choose another --decay",
        )
        yield kit.assume(
            "least second moment of a filled direction",
            float(np.concatenate(filled).min()),
            ">=",
            0.2,
            "choose a smaller --decay",
        )
        yield kit.assume(
            "warmest temperature", max(self.temperatures), "<=", 0.2, "it is for τ → 0"
        )

    def predict(self, setting):
        begin = setting.starts[0] @ setting.starts[0].T
        least = np.array(
            [self.risk(best(eigenvalues(empty), self.decay), empty) for empty in EMPTIES]
        )
        cost = np.empty((len(EMPTIES), len(self.temperatures)))
        times = np.empty_like(cost)
        for at in np.ndindex(cost.shape):
            empty = EMPTIES[at[0]]
            heat = self.temperatures[at[1]]
            A = setting.targets[at[0]]
            warm = moments(eigenvalues(empty), self.decay, heat, self.step)
            filled = DIMENSION - empty
            # equipartition: ½ τ/N for each of k(k + 1)/2 second moments of the filled directions
            stiff = filled * (filled + 1) / 4 / self.neurons
            cost[at] = (self.risk(warm, empty) - least[at[0]]) / heat + stiff
            along = path(begin, A, self.decay, heat, self.step, self.steps)
            over = regularized(along, A, self.decay) - least[at[0]]
            times[at] = time_below(over, (empty + 1) / 2 * heat, self.step)
        coldest = moments(eigenvalues(ONE), self.decay, self.temperatures[0], self.step)
        confined = [self.risk(best(eigenvalues(ONE), self.decay, k), ONE) for k in STARTS]
        return kit.law(
            least=("empty", least),
            cost=("empty temperature", cost),
            heat=("empty", np.array(EMPTIES) / 2),
            time=("empty temperature", times),
            moments=("start direction", np.tile(coldest, (len(STARTS), 1))),
            trapped=("start", np.array(confined) - least[ONE]),
        )

    def risk(self, sizes: Values, empty: int) -> float:
        """Return the regularized risk of second moments in the basis of the target."""
        target = np.diag(eigenvalues(empty))
        return float(regularized(np.diag(sizes), target, self.decay))

    def observe(self, setting, key):
        coldest = self.temperatures[0]
        every = [(empty, 1, heat, False) for empty in EMPTIES for heat in self.temperatures]
        starts = [(ONE, k, coldest, False) for k in STARTS]
        still = [(empty, 1, 0.0, False) for empty in EMPTIES]
        confined = [(ONE, k, 0.0, False) for k in STARTS]
        shared = [(ONE, k, coldest, True) for k in STARTS]
        kinds = every + starts + still + confined + shared
        empties, spans, heats, alike = (np.array(column) for column in zip(*kinds, strict=True))
        lanes = Lanes(setting.targets[empties], setting.starts[spans - 1], heats, alike)
        repeated = Lanes(*(np.concatenate([part] * self.seeds) for part in lanes))
        trained = train(key, repeated, self.neurons, self.decay, self.step, self.steps)
        ends = np.cumsum([len(every), len(starts), len(still), len(confined)])
        split = lambda array: np.split(
            array.reshape(self.seeds, len(kinds), *array.shape[1:]), ends, 1
        )
        risk = split(trained.risk)
        at_end = split(np.einsum("ia,lij,ja->la", setting.basis, trained.moments, setting.basis))
        gained = split(np.linalg.eigvalsh(trained.middle)[:, ::-1])
        read = 3 * self.steps // 5
        grid = (self.seeds, len(EMPTIES), len(self.temperatures), self.steps)
        beyond = lambda values: np.stack(
            [values[:, k - 1, k] / values[:, k - 1, 0] for k in STARTS[:-1]], 1
        )
        return kit.seen(
            risk=("seed empty temperature moment", risk[0].reshape(grid)),
            still=("seed empty moment", risk[2]),
            moments=("seed start direction", at_end[1]),
            shared_moments=("seed start direction", at_end[4]),
            confined=("seed start", risk[3][..., read]),
            noisy=("seed start", risk[1][..., read]),
            gained=("seed narrow", beyond(gained[3])),
            noisy_gained=("seed narrow", beyond(gained[1])),
        )

    def derive(self, law, seen):
        """Return what is over the least risk, in temperatures, and when it is first within τ/2 of where it ends."""
        over = seen.risk - law.least
        late = over.isel(moment=slice(-self.steps // 3, None)).mean("moment", skipna=False)
        bound = (law.empty + 1) / 2 * law.temperature
        above = (over > bound).cumprod("moment")
        steps = above.sum("moment")
        # between steps the logarithm is linear; the end stands for never
        relative = np.log(np.maximum(over / bound, 1e-12))
        last_above = relative.isel(moment=np.maximum(steps - 1, 0))
        first_below = relative.isel(moment=np.minimum(steps, self.steps - 1))
        between = xarray.where(
            (steps > 0) & (steps < self.steps), first_below / (last_above - first_below), 0.0
        )
        return {
            "cost": late / law.temperature,
            "time": self.step * (steps + between),
            "over_confined": seen.confined - law.least.isel(empty=ONE, drop=True),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "span",
            seen.gained,
            1e-8,
            label="without noise, starts in k < 4 directions: eigenvalue k + 1 of M over the largest",
        )
        yield kit.follows(
            "trapped",
            law.trapped,
            seen.over_confined,
            0.05,
            absolute=True,
            label="without noise: regularized risk over the least",
        )
        yield kit.follows(
            "moments",
            law.moments,
            seen.moments,
            0.15,  # the interval takes 0.09
            label="with noise: second moments along the target's eigenvectors, from every start",
        )
        yield kit.follows(
            "cost",
            law.cost,
            seen.cost,
            0.1,  # the interval takes 0.06
            absolute=True,
            label="with noise: regularized risk over the least, in temperatures",
        )
        yield kit.follows(
            "heat",
            law.heat,
            seen.cost.isel(temperature=0, drop=True),
            0.15,  # the interval takes 0.06, the length of steps 0.04, few neurons 0.02
            absolute=True,
            label="the same at the lowest temperature, and τ/2 per empty direction",
        )
        yield kit.follows(
            "time",
            law.time,
            seen.time,
            0.2,  # the interval takes 0.1
            label="time to a risk within τ/2 of where it ends",
        )

    def rivals(self, setting, law):
        empty = xarray.DataArray(np.array(EMPTIES), dims="empty")
        middle = float(np.exp(np.log(law.temperature).mean()))
        doubled = replace(self, decay=2 * self.decay).predict(setting)
        warmer = moments(eigenvalues(ONE), self.decay, 2 * self.temperatures[0], self.step)
        yield kit.rival(
            "every start arrives without noise",
            "over-parameterized networks have no bad minima",
            trapped=0 * law.trapped,
        )
        yield kit.rival(
            "τ per empty direction",
            "noise has variance 2τ",
            cost=law.cost + empty / 2,
            heat=2 * law.heat,
            moments=("start direction", np.tile(warmer, (len(STARTS), 1))),
        )
        yield kit.rival(
            "τ/2 for every direction, filled or empty",
            "equipartition gives τ/2 to each degree of freedom",
            id="every_direction",
            cost=law.cost + (DIMENSION - empty) / 2,
            heat=law.heat + (DIMENSION - empty) / 2,
        )
        yield kit.rival(
            "time ∝ 1/ε⁴",
            "the talk's rate, as if it were reached",
            time=(law.time.mean("temperature") * (law.temperature / middle) ** -4).transpose(
                *law.time.dims
            ),
        )
        yield kit.rival(
            "decay λ‖θ‖²",
            "weight decay is often written without its half",
            least=("empty", doubled["least"]),
            moments=("start direction", doubled["moments"]),
            cost=("empty temperature", doubled["cost"]),
            time=("empty temperature", doubled["time"]),
        )

    def controls(self, seen):
        yield kit.control(
            "the same noise for all neurons",
            "it moves all neurons as one, and gives them one direction at most",
            moments=seen.shared_moments,
        )
        yield kit.control(
            "no noise",
            "from a start in one direction descent does not leave it",
            risk=seen.still.broadcast_like(seen.risk),
        )
        yield kit.control(
            "noise of each neuron's own, where there should be none",
            "noise gives neurons new directions",
            id="noisy",
            gained=seen.noisy_gained,
            confined=seen.noisy,
        )

    def figure(self, law, seen, rivals):
        times = self.step * np.arange(self.steps)
        coldest = self.temperatures[0]
        of_one = lambda array: (array - law.least).isel(empty=ONE).mean("seed")
        cold = of_one(seen.risk).isel(temperature=0)
        read = times[: 3 * self.steps // 5]
        level = lambda value: np.full(len(times), float(value))
        yield kit.panel(
            f"From one direction, {DIMENSION - ONE} needed: noise finds the others",
            "time",
            "risk over the least",
            kit.observed_curve(read, of_one(seen.still)[: len(read)], "no noise", shade=0.8),
            kit.observed_curve(times, cold, f"noise, τ = {coldest:g}"),
            kit.predicted_curve(times, level(law.trapped[0]), "best of one direction"),
            kit.predicted_curve(
                times, level(law.cost[ONE, 0] * coldest), "τ/2 for one empty direction"
            ),
            log="y",
        )
        yield kit.curves(
            "Each empty direction costs half the temperature",
            law.heat,
            seen.cost.isel(temperature=0, drop=True),
            over="empty",
            x="directions that the best network leaves empty",
            y="(risk − least) / τ",
            rivals={"τ/2 for every direction": rivals["every_direction"].heat} if rivals else {},
        )
        yield kit.curves(
            "The time to get there grows like a logarithm",
            law.time,
            seen.time,
            over="temperature",
            by="empty",
            x="temperature τ",
            y="time",
            name="{} empty",
            log="x",
        )


def eigenvalues(empty: int) -> Values:
    """Return those of the target whose best network leaves so many directions empty."""
    return np.array([*FILLED[: DIMENSION - empty], *EMPTY[:empty]])
