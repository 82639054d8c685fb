"""Random starts avoid strict saddles, but a chain of saddles can cost descent exponential time.

The time is exponential in the number of saddles. With noise it is linear in that number. On −‖x‖₂² + ‖x‖₄⁴ all of the
3^d critical points except 2^d are strict saddles or maxima, and no random start ends at a saddle or maximum. In a chain
of saddles, descent must leave one room, that is one saddle, after another. Each room takes ρ times as long as the
previous room, because the coordinates of later rooms shrink all the while. Noise of size ν keeps these coordinates at
size ν: then all later rooms take equally long, about log(1/ν) steps.
"""

from itertools import product
from typing import Annotated, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.saddle_escape.experiment import (
    LONGEST,
    ChainPoint,
    draw_starts,
    ends_on_wells,
    exits,
)
from steepest.landscapes import (
    chain_ratio,
    chain_saddles,
    chain_times,
    saddle_chain,
    strict_saddles,
)
from steepest.nn.types import Values

SMALL = 2  # dimension in which all critical points of Ge's example are looked at
SETTLED = 2  # rooms before the noise decides, which its checks leave out


class Setting(NamedTuple):
    """Starts that theory and experiment both see."""

    chain: Values  # starts in the chain, (seeds, LONGEST)
    wells: list[Values]  # starts on Ge's example, (starts, d) for each dimension


@kit.claim
class SaddleEscape(kit.Claim[Setting]):
    """A chain of eight saddles, with and without noise, and Ge's example in several dimensions."""

    gain: kit.Positive = kit.param(
        0.5,
        "g, half the curvature that leads out of a room",
        scope=kit.between(0.5, 0.6, "smaller ones take more steps"),
    )
    loss: kit.Positive = kit.param(
        1.0,
        "ℓ, half the curvature that pulls later coordinates to zero",
        scope=kit.between(0.8, 1.0, "larger ones take more steps"),
    )
    lr: kit.Positive = kit.param(
        0.25,
        "η, step size",
        scope=kit.between(0.2, 0.25, "shorter ones do not tell a noisy room from its leading term"),
    )
    rooms: Annotated[int, kit.Within(1, LONGEST)] = kit.param(
        4, "that are judged without noise", scope=kit.between(3, 4, "the fifth is never left")
    )
    noises: tuple[kit.Positive, ...] = kit.param(
        (1e-4, 1e-3, 1e-2),
        "ν, standard deviation of the noise of every step, increasing",
        scope=kit.choices((1e-4, 1e-3, 1e-2), (3e-5, 3e-4, 1e-2), (1e-4, 1e-2)),
    )
    seeds: kit.Seeds = kit.param(256, "random starts in the chain")
    steps: kit.Count = kit.param(3000, "steps of descents in the chain", unit="steps")
    dimensions: tuple[kit.Count, ...] = kit.param(
        (2, 5), "d of Ge's example", scope=kit.choices((2, 5), (3, 6), (2, 4))
    )
    starts: kit.Count = kit.param(1000, "random starts on Ge's example")

    kind = "theorem"
    says = {
        "Random starts avoid strict saddles": "minima",
        "a chain of saddles can cost descent exponential time": ("growth", "room_times"),
        "With noise it is linear in that number": "noisy_room",
    }
    tiny = {"seeds": 3, "rooms": 3, "steps": 500, "starts": 60, "noises": (1e-4, 1e-3, 1e-2)}
    full = {"seeds": 400, "starts": 10_000, "dimensions": (2, 5, 8)}
    out_of_scope = {"lr": 0.5}
    point = ChainPoint

    def axes(self):
        return {
            "noise": self.noises,
            "room": tuple(range(2, self.rooms + 1)),
            "late": tuple(range(SETTLED + 1, LONGEST + 1)),
            "saddle": tuple(range(self.rooms + 1)),
            "eigenvalue": tuple(range(self.rooms)),
            "point": tuple(range(3**SMALL)),
            "dimension": self.dimensions,
        }

    def check_fields(self) -> None:
        if sorted(set(self.noises)) != list(self.noises):
            raise kit.UserError(
                f"noises are increasing, got {[*self.noises]}; try 0.0001 0.001 0.01"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        wells = [rng.normal(size=(self.starts, d)) for d in self.dimensions]
        return Setting(
            draw_starts(rng, self.seeds),
            # descent with η = 0.05 stays bounded from there
            [np.clip(starts, -1.5, 1.5) for starts in wells],
        )

    def hypotheses(self, setting):
        shrink = 2 * self.lr * self.loss
        yield kit.assume("2ηℓ", shrink, between=(0, 1), note="choose a smaller --lr")
        yield kit.assume(
            "4ηg at the wells", 4 * self.lr * self.gain, "<", 1, "choose a smaller --lr"
        )
        yield kit.assume("rooms", self.rooms, ">=", 3, "a ratio of rooms is judged")
        yield kit.assume("sizes of noise", len(self.noises), ">=", 2)
        yield kit.assume("largest noise", max(self.noises), "<=", 0.05, "rooms must be larger")

    def predict(self, setting):
        numbers = (self.gain, self.loss, self.lr)
        quiet = chain_times(setting.chain[:, : self.rooms], *numbers)
        noisy = [chain_times(setting.chain, *numbers, noise) for noise in self.noises]
        # in d = 2: a direction leads down where its coordinate is at zero, as f″ = −2 there
        zeros = np.array([4 - 2 * np.count_nonzero(p) for p in _lattice(SMALL)]) / 2
        return kit.law(
            growth=chain_ratio(*numbers),
            times=("seed room", quiet[:, 1:]),
            noisy=("noise late", np.array(noisy)[..., SETTLED:].mean(1)),
            spectrum=("saddle eigenvalue", self.spectra()),
            wells_index=("point", zeros),
            level=("dimension", -np.array(self.dimensions) / 4),  # −x² + x⁴ at x² = ½
            minima=("dimension", 2.0 ** np.array(self.dimensions)),
        )

    def spectra(self) -> Values:
        """Return the eigenvalues of the Hessian at the saddle of each room and at the minimum, increasing."""
        spectra = []
        for left in range(self.rooms + 1):
            waiting = self.rooms - left
            leaving = [-2 * self.gain] if waiting else []
            later = [2 * self.loss] * (waiting - 1)
            # w'' = g (12 x²/32 − 2) is 4g at ±4
            spectra.append(sorted([*leaving, *later, *([4 * self.gain] * left)]))
        return np.array(spectra)

    def observe(self, setting, key):
        first = self.descents(setting, key)
        times = np.diff(first, axis=-1, prepend=0.0)
        certificates = strict_saddles(saddle_chain(self.gain, self.loss), chain_saddles(self.rooms))
        wells = strict_saddles(lambda x: (x**4).sum() - (x**2).sum(), _lattice(SMALL) * 0.5**0.5)
        ends = [ends_on_wells(starts, 0.05, 600) for starts in setting.wells]
        blocked = [starts * (np.arange(starts.shape[1]) > 0) for starts in setting.wells]
        still = [ends_on_wells(starts, 0.05, 600) for starts in blocked]
        middle = 1 + len(self.noises) // 2
        kinds = lambda points: [len(np.unique(np.sign(x), axis=0)) for x in points]
        return kit.seen(
            left=("lane seed every", first),
            times=("seed room", times[0, :, 1 : self.rooms]),
            times_with_noise=("seed room", times[middle, :, 1 : self.rooms]),
            noisy=("noise seed late", times[1:, :, SETTLED:]),
            every_time=("lane seed every", times),
            steps=("seed", first[0, :, self.rooms - 1]),
            steps_with_noise=("seed", first[middle, :, self.rooms - 1]),
            gradient=("saddle", [point.gradient for point in certificates]),
            spectrum=("saddle eigenvalue", [point.eigenvalues for point in certificates]),
            wells_index=("point", [point.index for point in wells]),
            wells_gradient=("point", [point.gradient for point in wells]),
            value=("dimension start", [_value(x) for x in ends]),
            blocked_value=("dimension start", [_value(x) for x in still]),
            minima=("dimension", kinds(ends)),
            blocked_minima=("dimension", kinds(still)),
        )

    def descents(self, setting: Setting, key: kit.Key) -> Values:
        """Return the first step at which each room is left, ``(1 + noises, seeds, LONGEST)``, without noise first."""
        noises = np.array([0.0, *self.noises])
        seeds = jax.random.split(key, noises.size * self.seeds)

        def every(starts: jax.Array, seeds: kit.Key, noise: jax.Array) -> jax.Array:
            one = lambda start, seed, noise: exits(
                start, seed, noise, self.gain, self.loss, self.lr, self.steps
            )
            return jax.vmap(one)(starts, seeds, noise)

        starts = np.tile(setting.chain, (noises.size, 1))
        first = kit.compiled(every)(starts, seeds, np.repeat(noises, self.seeds))
        return np.asarray(first).reshape(noises.size, self.seeds, LONGEST).astype(float)

    def run_conditions(self, observed):
        slopes = np.concatenate([observed["gradient"], observed["wells_gradient"]])
        left = observed["left"] > 0
        quiet = left[0, :, : self.rooms].mean()
        yield kit.assume("‖∇f‖ at the critical points", slopes.max(), "<", 1e-12)
        yield kit.assume("rooms left without noise", quiet, "==", 1, "choose more --steps")
        yield kit.assume("rooms left with noise", left[1:].mean(), "==", 1, "choose more --steps")

    def judge(self, law, seen):
        last = seen.times.isel(room=-1, drop=True) / seen.times.isel(room=-2, drop=True)
        faster = seen.steps - seen.steps_with_noise
        yield kit.agrees(
            "minima",
            abs(seen.value - law.level),
            1e-12,
            label="Ge's example: f at the ends of random starts, off −d/4",
        )
        yield kit.agrees(
            "all_minima",
            abs(seen.minima - law.minima),
            0.0,
            label="Ge's example: minima found, off 2^d",
        )
        yield kit.agrees(
            "wells_index",
            abs(seen.wells_index - law.wells_index),
            0.0,
            label="Ge's example, d = 2: directions that lead down, at all critical points",
        )
        yield kit.agrees(
            "chain_spectrum",
            abs(seen.spectrum - law.spectrum),
            1e-10,
            label="chain: eigenvalues of the Hessian at all saddles",
        )
        yield kit.follows(
            "growth",
            law.growth,
            last,
            0.01,  # whole steps, a few hundred in the last room but one
            label=f"time in room {self.rooms} over time in room {self.rooms - 1}",
        )
        yield kit.follows(
            "room_times",
            law.times,
            seen.times,
            # a few steps, as whole steps add up to when a room is entered
            0.04,
            each=True,
            label="time in a room, from the second",
        )
        yield kit.follows(
            "noisy_room",
            law.noisy,
            seen.noisy,
            0.1,  # of 24 steps two, as theory takes a mean logarithm; the interval is 4 %
            label=f"time in a room with noise, from room {SETTLED + 1}",
        )
        yield kit.at_least(
            "noise_helps", 0.0, faster, label="steps to pass the rooms that noise saves"
        )

    def rivals(self, setting, law):
        numbers = (self.gain, self.loss, self.lr)
        first = chain_times(setting.chain[:, :1], *numbers)
        room = np.arange(1, self.rooms)
        flow = 1 + self.loss / self.gain
        ratio = float(law.growth)
        grow = np.log1p(2 * self.lr * self.gain)
        later = self.spectra()
        for left, row in enumerate(later):
            row[: self.rooms - left] = -2 * self.gain
        dims = ("seed", "room")
        yield kit.rival(
            "all rooms take equally long without noise",
            "each saddle alone takes a logarithm",
            id="polynomial",
            growth=1.0,
            times=(dims, first + 0 * room),
        )
        yield kit.rival(
            "ρ = 1 + ℓ/g", "the limit of small steps", growth=flow, times=(dims, first * flow**room)
        )
        yield kit.rival(
            "ρ = log(1/(1 − 2ηℓ))/log(1 + 2ηg), or times ρ^i from the first on",
            "it forgets that what had shrunk before must be regained too",
            id="shrinking_alone",
            growth=ratio - 1,
            times=(dims, first * ratio**room),
        )
        yield kit.rival(
            "a noisy room takes log(1/ν)/log(1 + 2ηg)",
            "only the leading term is kept",
            accepted="what it leaves out is a tenth of the time, and less where steps are short",
            noisy=np.log(1 / law.noise) / grow,
        )
        yield kit.rival(
            "noisy rooms take longer in proportion to i",
            "a total like d² would be polynomial too",
            noisy=law.noisy * law.late / law.late.mean(),
        )
        yield kit.rival(
            "at each saddle all later coordinates lead down",
            "they are to leave as well",
            spectrum=("saddle eigenvalue", later),
        )
        yield kit.rival(
            "the index is the number of nonzero coordinates",
            "the origin is the deepest, were signs exchanged",
            wells_index=SMALL - law.wells_index,
        )

    def controls(self, seen):
        yield kit.control(
            "starts with one coordinate zero",
            "they never see the direction that leads out",
            value=seen.blocked_value,
            minima=seen.blocked_minima,
        )
        yield kit.control(
            "noise and none exchanged",
            "it is the noise that helps",
            times=seen.times_with_noise,
            steps=seen.steps_with_noise,
            steps_with_noise=seen.steps,
        )
        yield kit.control(
            "the largest noise for the smallest, and so on",
            "its size decides",
            noisy=(seen.noisy.dims, seen.noisy.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        room = np.arange(2, self.rooms + 1)
        late = law.late.values
        shades = np.linspace(0.3, 1, len(self.noises))
        mean = law.times.mean("seed").values
        flow = mean[0] * (1 + self.loss / self.gain) ** (room - 2)
        every = seen.every_time.mean("seed").values
        rooms = np.arange(1, self.rooms + 1)
        quiet = np.cumsum(every[0, : self.rooms])
        curves = [
            kit.observed_curve(room, seen.times, "no noise"),
            kit.predicted_curve(room, mean, "predicted"),
            kit.rival_curve(room, flow, "ρ = 1 + ℓ/g"),
        ]
        totals = [
            kit.observed_curve(rooms, quiet, "no noise", kind="points"),
            kit.predicted_curve(room, quiet[0] + np.cumsum(mean), "predicted"),
        ]
        for i, noise in enumerate(self.noises):
            look = {"kind": "points", "shade": shades[i]}
            name = f"noise {noise:g}"
            theory = law.noisy[i].values
            entered = np.cumsum(every[i + 1])
            curves.append(kit.observed_curve(late, seen.noisy[i].mean("seed"), name, **look))
            curves.append(kit.predicted_curve(late, theory))
            totals.append(kit.observed_curve(np.arange(1, LONGEST + 1), entered, name, **look))
            totals.append(kit.predicted_curve(late, entered[SETTLED - 1] + np.cumsum(theory)))
        yield kit.panel(
            "Without noise each room takes ρ times as long", "room", "steps", *curves, log="y"
        )
        yield kit.panel(
            "Steps to pass the chain: exponential, or linear",
            "rooms",
            "steps in all",
            *totals,
            log="y",
        )
        yield self.ends_panel(law, seen)

    def ends_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw where descents on Ge's example end."""
        place = np.arange(self.starts)
        off = np.sort(seen.value.values) - law.level.values[:, None]
        ends = [
            kit.observed_curve(
                place,
                off[i],
                f"random starts, d = {d}",
                kind="points",
                shade=i / len(self.dimensions),
            )
            for i, d in enumerate(self.dimensions)
        ]
        blocked = np.sort(seen.blocked_value[0].values) - float(law.level[0])
        return kit.panel(
            "Random starts end at minima",
            "start, in order",
            "f at the end − lowest f",
            *ends,
            kit.rival_curve(place, blocked, "one coordinate zero"),
        )


def _lattice(dimension: int) -> Values:
    """Return all vectors of −1, 0 and 1, ``(3^d, d)``."""
    return np.array(list(product((-1.0, 0.0, 1.0), repeat=dimension)))


def _value(x: Values) -> Values:
    """Return −‖x‖₂² + ‖x‖₄⁴ of each row."""
    return (x**4).sum(1) - (x**2).sum(1)
