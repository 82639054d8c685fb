"""A diagonal network with initial scale α and weight decay λ generalizes at time (log α + c)/λ.

This is the limit of small λ, in sparse regression without noise, and c comes from a convex program. Long before this
time, the network fits the data and stays at the interpolant of least ℓ2 norm. At time t the network is the interpolant
that a start of size α e^(−λt) would have chosen. This interpolant becomes sparse when the size is small.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.grokking_clock import experiment, theory
from steepest.claims.training.grokking_clock.point import GrokkingClockPoint

READINGS = 81  # of each flow, between which the time of generalizing is read
MISFIT = 0.05  # what training may leave of the labels, relatively, when the error is still large


class Setting(NamedTuple):
    """Regression problems, one per seed, and when errors are read."""

    x: kit.Values  # (seeds, n, d)
    truth: kit.Values  # β*, (seeds, d)
    y: kit.Values  # (seeds, n)
    plateau: kit.Values  # ‖β − β*‖² of the interpolant of least ℓ2 norm, (seeds,)
    times: kit.Values  # (alphas, decays, moments)


@kit.claim
class GrokkingClock(kit.Claim[Setting]):
    """Sparse regression without noise, with more unknowns than equations."""

    alphas: tuple[kit.Positive, ...] = kit.param(
        (3.0, 10.0, 30.0),
        "α, sizes of the start",
        scope=kit.choices((3.0, 10.0, 30.0), (2.0, 8.0, 64.0), (4.0, 20.0, 100.0)),
    )
    decays: tuple[kit.Positive, ...] = kit.param(
        (0.001, 0.004), "λ", scope=kit.choices((0.001, 0.004), (0.002, 0.005), (0.0005, 0.003))
    )
    moments: tuple[float, ...] = kit.param(
        (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
        "λt − log α at which errors are read",
        scope=kit.choices((0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0), (0.2, 0.8, 1.2, 1.6, 2.2, 3.2)),
    )
    n: kit.Count = kit.param(24, "examples", scope=kit.between(22, 26))
    dimension: kit.Count = kit.param(40, "unknowns d", scope=kit.between(36, 44))
    nonzero: kit.Count = kit.param(
        2,
        "nonzero coefficients of the truth",
        scope=kit.between(1, 2, "least ℓ1 norm must find it in every problem"),
    )
    seeds: kit.Seeds = kit.param(6, "regression problems")

    kind = "limit"
    says = {
        "generalizes at time (log α + c)/λ": "time",
        "c comes from a convex program": ("time", "error"),
    }
    tiny = {"alphas": (3.0, 10.0, 30.0), "n": 6, "dimension": 8, "nonzero": 1, "seeds": 3}
    full = {"seeds": 40, "decays": (0.0003, 0.001, 0.004)}
    out_of_scope = {"n": 4, "seeds": 3}
    point = GrokkingClockPoint

    def axes(self):
        return {"alpha": self.alphas, "decay": self.decays, "moment": self.moments}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        x = rng.standard_normal((self.seeds, self.n, self.dimension))
        truth = np.zeros((self.seeds, self.dimension))
        shape = (self.seeds, self.nonzero)
        truth[:, : self.nonzero] = rng.choice([-1, 1], shape) * rng.uniform(0.5, 1.5, shape)
        y = np.einsum("snd,sd->sn", x, truth)
        least = np.einsum("sdn,sn->sd", np.linalg.pinv(x), y)
        logs = np.log(self.alphas)[:, None, None]
        times = (np.array(self.moments) + logs) / np.array(self.decays)[:, None]
        return Setting(x, truth, y, ((least - truth) ** 2).sum(-1), times)

    def hypotheses(self, setting):
        last = np.exp(-2 * max(self.moments))
        errors = [
            theory.error_at(x, y, truth, last, 0.0) / plateau
            for x, truth, y, plateau in zip(*setting[:4], strict=True)
        ]
        yield kit.assume("examples", self.n, "<", self.dimension, "a fit must leave a choice")
        yield kit.assume(
            "largest error of the program at the last moment, over the plateau",
            max(errors),
            "<=",
            0.4,
            "least ℓ1 norm must find the truth: choose more --n",
        )

    def predict(self, setting):
        last = max(self.moments) + 1
        times = np.empty((self.seeds, len(self.alphas), len(self.decays)))
        for seed, column in np.ndindex(self.seeds, len(self.decays)):
            moment = theory.moment_of_half(
                setting.x[seed],
                setting.y[seed],
                setting.truth[seed],
                self.decays[column],
                setting.plateau[seed],
                last,
            )
            # λt = log α + c
            times[seed, :, column] = (np.log(self.alphas) + moment) / self.decays[column]
        return kit.law(
            time=("seed alpha decay", times),
            error=("seed alpha decay moment", self.errors(setting)),
        )

    def errors(self, setting: Setting) -> kit.Values:
        """Return predicted errors over the plateau, ``(seeds, alphas, decays, moments)``."""
        errors = np.empty((self.seeds, *setting.times.shape))
        for seed, row, column, place in np.ndindex(errors.shape):
            decay = self.decays[column]
            time = setting.times[row, column, place]
            errors[seed, row, column, place] = theory.error_at(
                setting.x[seed],
                setting.y[seed],
                setting.truth[seed],
                theory.scale(self.alphas[row], decay, time),
                decay,
            )
        return errors / setting.plateau[:, None, None, None]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        shape = (self.seeds, self.dimension)
        # as many equations, and nothing sparse behind them
        dense = rng.standard_normal(shape) / np.sqrt(self.dimension)
        of_dense = setting._replace(truth=dense, y=np.einsum("snd,sd->sn", setting.x, dense))
        worlds = {
            "": (setting, self.decays),
            "_without": (setting, (0.0,) * len(self.decays)),
            "_dense": (of_dense, self.decays),
        }
        arrays = {}
        for name, (world, decays) in worlds.items():
            flows = self.flows(world, decays)
            arrays["time" + name] = ("seed alpha decay", flows[0])
            arrays["error" + name] = ("seed alpha decay moment", flows[1])
            arrays["misfit" + name] = ("seed alpha decay", flows[2])
        return kit.seen(**arrays)

    def flows(
        self, setting: Setting, decays: tuple[float, ...]
    ) -> tuple[kit.Values, kit.Values, kit.Values]:
        """Follow the flow in every problem.

        Returns:
            When it generalizes, ``(seeds, alphas, decays)``; errors over the plateau, ``(seeds, alphas, decays,
            moments)``; what is left of the labels at the first moment, relatively, ``(seeds, alphas, decays)``.
        """
        times = np.empty((self.seeds, *setting.times.shape[:-1]))
        errors = np.empty((self.seeds, *setting.times.shape))
        misfits = np.empty_like(times)
        for seed, row, column in np.ndindex(times.shape):
            x = setting.x[seed]
            y = setting.y[seed]
            truth = setting.truth[seed]
            asked = setting.times[row, column]
            readings = np.union1d(np.linspace(0, 1.3 * asked[-1], READINGS), asked)
            weights = experiment.path(x, y, self.alphas[row], decays[column], readings)
            least = np.linalg.lstsq(x, y)[0]
            error = ((weights - truth) ** 2).sum(-1) / ((least - truth) ** 2).sum()
            places = np.searchsorted(readings, asked)
            misfit = x @ weights[places[0]] - y
            times[seed, row, column] = experiment.time_of_half(readings, error)
            errors[seed, row, column] = error[places]
            misfits[seed, row, column] = np.linalg.norm(misfit) / np.linalg.norm(y)
        return times, errors, misfits

    def run_conditions(self, observed):
        yield kit.assume(
            "largest relative misfit of training at the first moment",
            float(observed["misfit"].max()),
            "<=",
            MISFIT,
            "choose a larger α or a smaller λ",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "time",
            law.time,
            seen.time,
            0.02,  # the second order in λ is up to 0.5 % in hard problems, as is the reading between times
            label="time at which the error has fallen to a half",
        )
        yield kit.follows(
            "error",
            law.error,
            seen.error,
            0.04,  # the second order in λ is up to 0.02 in hard problems, late
            absolute=True,
            label="error over the error of the interpolant of least ℓ2 norm",
        )

    def rivals(self, setting, law):
        logs = np.log(law.alpha)
        last_scale = np.exp(-2 * (max(self.moments) + 1))
        sparse = [
            theory.error_at(x, y, truth, last_scale, 0.0) / plateau
            for x, truth, y, plateau in zip(*setting[:4], strict=True)
        ]
        yield kit.rival(
            "(log α)/λ",
            "that is the time as α grows",
            id="without_c",
            time=logs / law.decay + 0 * law.time,
        )
        yield kit.rival("c/λ at every scale", "decay takes 1/λ", time=law.time - logs / law.decay)
        yield kit.rival(
            "α e^(−2λt)", "θ² decays at 2λ, and so does the size of the start", time=law.time / 2
        )
        yield kit.rival(
            "least ℓ1 norm from the start",
            "decay favours sparse weights as soon as the data are fitted",
            error=xarray.zeros_like(law.error) + xarray.DataArray(sparse, dims="seed"),
        )

    def controls(self, seen):
        yield kit.control(
            "no decay", "then the scale stays", time=seen.time_without, error=seen.error_without
        )
        yield kit.control(
            "a truth that is not sparse",
            "sparse weights are not nearer to it",
            time=seen.time_dense,
            error=seen.error_dense,
        )

    def figure(self, law, seen, rivals):
        largest = {"decay": max(self.decays)}
        at_largest = lambda errors: errors.sel(largest, drop=True)
        wrong = {"(log α)/λ": at_largest(rivals["without_c"].time)} if rivals else {}
        yield kit.curves(
            "Error falls on one clock, whatever the scale",
            at_largest(law.error),
            at_largest(seen.error),
            over="moment",
            by="alpha",
            x="λt − log α",
            y="error / error of the least-ℓ2 interpolant",
            name="α = {}",
        )
        yield kit.curves(
            f"When it generalizes, at λ = {largest['decay']:g}",
            at_largest(law.time),
            at_largest(seen.time),
            over="alpha",
            x="scale α of the start",
            y="time",
            rivals=wrong,
            log="x",
            ylim=(0, None),
        )
