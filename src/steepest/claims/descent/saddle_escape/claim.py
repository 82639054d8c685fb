"""Random starts avoid strict saddles, but a chain of them costs descent exponential time; with noise it is linear.

On −‖x‖₂² + ‖x‖₄⁴ each of the 3^d critical points but 2^d is a strict saddle or a maximum, and no random start ends
there. In a chain of saddles every room that descent must leave takes ρ times as long as the one before, because the
coordinates that are to leave later have shrunk all the while. Noise keeps them at its own size: then all later rooms
take equally long, about log(1/ν) steps.
"""

from dataclasses import dataclass
from itertools import product
from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
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

SMALL = 2  # dimension in which all critical points of Ge's example are looked at
SETTLED = 2  # rooms before the noise decides, which its checks leave out


class Setting(NamedTuple):
    """Starts that theory and experiment both see."""

    chain: np.ndarray  # starts in the chain, (seeds, LONGEST)
    wells: list[np.ndarray]  # starts on Ge's example, (starts, d) for each dimension


@dataclass(frozen=True)
class SaddleEscape(Claim):
    """A chain of eight saddles, with and without noise, and Ge's example in several dimensions."""

    gain: Positive = 0.5  # g, half the curvature that leads out of a room [1]
    loss: Positive = 1.0  # ℓ, half the curvature that pulls later coordinates to zero [1]
    lr: Positive = 0.25  # η, step size [1]
    # rooms that are judged without noise [1]
    rooms: Annotated[int, Within(1, LONGEST)] = 4
    # ν, standard deviation of the noise of every step [1]
    noises: tuple[Positive, ...] = (1e-2, 1e-3, 1e-4)
    seeds: Seeds = 128  # random starts in the chain [1]
    steps: Count = 3000  # of descents in the chain [steps]
    dimensions: tuple[Count, ...] = (2, 5)  # d of Ge's example [1]
    starts: Count = 1000  # random starts on Ge's example [1]

    kind = "theorem"
    point = ChainPoint
    headline = ("minima", "growth", "noisy_room", "noisy_flat")
    statement = (
        r"\frac{T_{i+1}}{T_i}\to\rho=1+\frac{\log\frac{1}{1-2\eta\ell}}{\log(1+2\eta g)},\qquad "
        r"\text{with noise }\nu:\quad T_i=\frac{\log(1/\nu)}{\log(1+2\eta g)}+O(1)\ \text{ for all later } i"
    )
    source = "Lectures of J. Lee and of Ge in the notes [@vodrahalli2019]; [@lee2016]; [@du2017]"
    corrections = ()
    remarks = (
        "Lee: “the randomness in the initialization is enough to avoid saddlepoints, but not in polynomial time”. Time "
        "is exponential in the number of saddles, which is the dimension here.",
        "The function is a shorter one than that of Du et al.: rooms open by a smooth step in the coordinate before, "
        "not by splines. Descent runs on its gradient, by automatic differentiation.",
        "The times of all rooms are predicted from the start, to a few steps: the opening of a door is followed in the "
        "one coordinate that opens it, and of a noisy coordinate the mean logarithm is taken.",
        "Without noise four rooms are judged: in the fifth the coordinate has shrunk by 2^−1270, below the smallest "
        "double. In floating point it is zero then, and descent stays at the saddle for ever.",
        "The noise is Gaussian and added to every coordinate; the lecture says SGD, whose noise may vanish at saddles.",
    )
    full = {"seeds": 400, "starts": 10_000, "dimensions": (2, 5, 8)}
    tiny = {"seeds": 3, "rooms": 3, "steps": 500, "starts": 60, "noises": (1e-2, 1e-3, 1e-4)}
    out_of_scope = {"lr": 0.5}

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        wells = [rng.normal(size=(self.starts, d)) for d in self.dimensions]
        return Setting(
            draw_starts(rng, self.seeds),
            # descent with η = 0.05 stays bounded from there
            [np.clip(starts, -1.5, 1.5) for starts in wells],
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        shrink = 2 * self.lr * self.loss
        return [
            assume("2ηℓ", shrink, between=(0, 1), note="choose a smaller --lr"),
            assume("4ηg at the wells", 4 * self.lr * self.gain, "<", 1, "choose a smaller --lr"),
            assume("rooms", self.rooms, ">=", 3, "a ratio of rooms is judged"),
            assume("sizes of noise", len(self.noises), ">=", 2),
            assume("largest noise", max(self.noises), "<=", 0.05, "rooms must be larger"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        numbers = (self.gain, self.loss, self.lr)
        quiet = chain_times(setting.chain[:, : self.rooms], *numbers)
        noisy = [chain_times(setting.chain, *numbers, noise) for noise in self.noises]
        zeros = np.array([4 - 2 * np.count_nonzero(p) for p in _lattice(SMALL)]) / 2
        return Prediction(
            ratio=chain_ratio(*numbers),
            times=("seed room", quiet),
            noisy=("noise seed room", noisy),
            flat=0.0,
            spectrum=("saddle eigenvalue", self.spectra()),
            wells_index=("point", zeros),
            level=("dimension", -np.array(self.dimensions) / 4),
            minima=("dimension", 2.0 ** np.array(self.dimensions)),
        )

    def spectra(self) -> np.ndarray:
        """Return the eigenvalues of the Hessian at the saddle of each room and at the minimum, increasing."""
        spectra = []
        for left in range(self.rooms + 1):
            waiting = self.rooms - left
            leaving = [-2 * self.gain] if waiting else []
            later = [2 * self.loss] * (waiting - 1)
            # w'' = g (12 x²/32 − 2) is 4g at ±4
            spectra.append(sorted([*leaving, *later, *([4 * self.gain] * left)]))
        return np.array(spectra)

    def observe(self, setting: Setting, key: Key) -> Observation:
        noises = np.array([0.0, *self.noises])
        lanes = noises.size * self.seeds
        seeds = jax.random.split(key, lanes)

        def every(starts: jax.Array, seeds: Key, noise: jax.Array) -> jax.Array:
            one = lambda start, seed, noise: exits(
                start, seed, noise, self.gain, self.loss, self.lr, self.steps
            )
            return jax.vmap(one)(starts, seeds, noise)

        starts = np.tile(setting.chain, (noises.size, 1))
        first = np.asarray(compiled(every)(starts, seeds, np.repeat(noises, self.seeds)))
        first = first.reshape(noises.size, self.seeds, LONGEST).astype(float)
        times = np.diff(first, axis=-1, prepend=0.0)
        certificates = strict_saddles(saddle_chain(self.gain, self.loss), chain_saddles(self.rooms))
        lattice = _lattice(SMALL) * 0.5**0.5
        wells = strict_saddles(lambda x: (x**4).sum() - (x**2).sum(), lattice)
        ends = [ends_on_wells(starts, 0.05, 600) for starts in setting.wells]
        blocked = [starts * (np.arange(starts.shape[1]) > 0) for starts in setting.wells]
        still = [ends_on_wells(starts, 0.05, 600) for starts in blocked]
        return Observation(
            left=("noise seed room", first),
            times=("seed room", times[0, :, : self.rooms]),
            noisy=("noise seed room", times[1:]),
            gradient=("saddle", [point.gradient for point in certificates]),
            spectrum=("saddle eigenvalue", [point.eigenvalues for point in certificates]),
            wells_index=("point", [point.index for point in wells]),
            wells_gradient=("point", [point.gradient for point in wells]),
            value=("dimension start", [_value(x) for x in ends]),
            blocked_value=("dimension start", [_value(x) for x in still]),
            minima=("dimension", [len(np.unique(np.sign(x), axis=0)) for x in ends]),
            blocked_minima=("dimension", [len(np.unique(np.sign(x), axis=0)) for x in still]),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        slopes = np.concatenate([observed["gradient"], observed["wells_gradient"]])
        return [
            assume("‖∇f‖ at the critical points", slopes.max(), "<", 1e-12),
            assume(
                "rooms left without noise",
                (observed["left"][0, :, : self.rooms] > 0).mean(),
                "==",
                1,
                "choose more --steps",
            ),
            assume(
                "rooms left with noise",
                (observed["left"][1:] > 0).mean(),
                "==",
                1,
                "choose more --steps",
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        times = observed["times"]
        noisy = observed["noisy"][..., SETTLED:]
        checks = [
            agreement(
                "minima",
                np.abs(observed["value"] - predicted["level"][:, None]).max(),
                1e-12,
                label="Ge's example: f at the ends of random starts, off −d/4",
            ),
            agreement(
                "all_minima",
                np.abs(observed["minima"] - predicted["minima"]).max(),
                0.0,
                label="Ge's example: minima found, off 2^d",
            ),
            agreement(
                "wells_index",
                np.abs(observed["wells_index"] - predicted["wells_index"]).max(),
                0.0,
                label="Ge's example, d = 2: directions that lead down, at all critical points",
            ),
            agreement(
                "chain_spectrum",
                np.abs(observed["spectrum"] - predicted["spectrum"]).max(),
                1e-10,
                label="chain: eigenvalues of the Hessian at all saddles",
            ),
            equal(
                "growth",
                float(predicted["ratio"]),
                times[:, -1] / times[:, -2],
                # whole steps, a few hundred in the last room but one
                0.01,
                label=f"time in room {self.rooms} over time in room {self.rooms - 1}",
            ),
            equal(
                "room_times",
                predicted["times"][:, 1:].ravel(),
                times[:, 1:].ravel(),
                # a few steps, as whole steps add up to when a room is entered
                0.03,
                aggregate="all",
                label="time in a room, from the second",
            ),
        ]
        for i, noise in enumerate(self.noises):
            mean = predicted["noisy"][i, :, SETTLED:].mean(1)
            checks.append(
                equal(
                    "noisy_room" if i == len(self.noises) // 2 else f"noisy_room_{i}",
                    mean,
                    noisy[i].mean(1),
                    0.05,
                    label=f"time in a room, noise {noise:g}",
                )
            )
        middle = len(self.noises) // 2
        room = np.arange(SETTLED + 1, LONGEST + 1)
        checks.append(
            exponent(
                "noisy_flat",
                float(predicted["flat"]),
                room,
                noisy[middle],
                0.1,
                label="time in a room against its number, with noise",
            )
        )
        totals = {
            "noise": observed["left"][1 + middle, :, self.rooms - 1],
            "none": observed["left"][0, :, self.rooms - 1],
        }
        checks.append(
            order("noise_helps", ["noise", "none"], totals, label="steps to pass the rooms")
        )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        room = np.arange(1, self.rooms + 1)
        first = predicted["times"][:, :1]
        flow = 1 + self.loss / self.gain
        ratio = float(predicted["ratio"])
        grow = np.log1p(2 * self.lr * self.gain)
        simple = np.log(1 / np.array(self.noises)) / grow
        geometric = first * ratio ** (room - 1)
        later = self.spectra()
        for left, row in enumerate(later):
            row[: self.rooms - left] = -2 * self.gain
        return [
            Rival(
                "polynomial",
                predicted.replace(ratio=1.0, times=("seed room", first + 0 * room)),
                "each saddle alone takes a logarithm",
                label="all rooms take equally long without noise",
            ),
            Rival(
                "flow",
                predicted.replace(ratio=flow, times=("seed room", first * flow ** (room - 1))),
                "the limit of small steps",
                label="ρ = 1 + ℓ/g",
            ),
            Rival(
                "shrinking_alone",
                predicted.replace(ratio=ratio - 1, times=("seed room", geometric)),
                "it forgets that what had shrunk before must be regained too",
                label="ρ = log(1/(1 − 2ηℓ))/log(1 + 2ηg), or times ρ^i from the first on",
            ),
            Rival(
                "bare_logarithm",
                predicted.replace(
                    noisy=(
                        "noise seed room",
                        np.broadcast_to(simple[:, None, None], predicted["noisy"].shape),
                    )
                ),
                "the leading term alone",
                label="a noisy room takes log(1/ν)/log(1 + 2ηg)",
            ),
            Rival(
                "linear_rooms",
                predicted.replace(flat=1.0),
                "a total like d² would be polynomial too",
                label="noisy rooms take longer in proportion to i",
            ),
            Rival(
                "all_later_lead_down",
                predicted.replace(spectrum=("saddle eigenvalue", later)),
                "they are to leave as well",
                label="at each saddle all later coordinates lead down",
            ),
            Rival(
                "index_of_nonzero",
                predicted.replace(wells_index=("point", SMALL - predicted["wells_index"])),
                "the origin is the deepest, were signs exchanged",
                label="the index is the number of nonzero coordinates",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        middle = 1 + len(self.noises) // 2
        swapped = observed["left"].copy()
        swapped[[0, middle]] = swapped[[middle, 0]]
        return [
            Control(
                "on_a_stable_manifold",
                observed.replace(
                    value=("dimension start", observed["blocked_value"]),
                    minima=("dimension", observed["blocked_minima"]),
                ),
                "they never see the direction that leads out",
                label="starts with one coordinate zero",
            ),
            Control(
                "exchanged",
                observed.replace(left=("noise seed room", swapped)),
                "it is the noise that helps",
                label="noise and none exchanged",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        room = np.arange(1, self.rooms + 1)
        all_rooms = np.arange(1, LONGEST + 1)
        shades = np.linspace(0.3, 1, len(self.noises))
        mean = predicted["times"].mean(0)
        curves = [
            observed_curve(room, observed["times"], "no noise"),
            predicted_curve(room, mean, "predicted"),
            rival_curve(room, mean[0] * (1 + self.loss / self.gain) ** (room - 1), "ρ = 1 + ℓ/g"),
        ]
        totals = [
            observed_curve(room, np.cumsum(observed["times"].mean(0)), "no noise", kind="points"),
            predicted_curve(room, np.cumsum(mean), "predicted"),
        ]
        for i, noise in enumerate(self.noises):
            look = {"kind": "points", "shade": shades[i]}
            steps = observed["noisy"][i].mean(0)
            theory = predicted["noisy"][i].mean(0)
            curves.append(observed_curve(all_rooms, steps, f"noise {noise:g}", **look))
            curves.append(predicted_curve(all_rooms, theory))
            totals.append(observed_curve(all_rooms, np.cumsum(steps), f"noise {noise:g}", **look))
            totals.append(predicted_curve(all_rooms, np.cumsum(theory)))
        place = np.arange(self.starts)
        ends = [
            observed_curve(
                place,
                np.sort(observed["value"][i]) - predicted["level"][i],
                f"random starts, d = {d}",
                kind="points",
                shade=float(i),
            )
            for i, d in enumerate(self.dimensions)
        ]
        blocked = np.sort(observed["blocked_value"][0]) - predicted["level"][0]
        return (
            panel(
                "Without noise each room takes ρ times as long",
                "room",
                "steps",
                *curves,
                log="y",
            ),
            panel(
                "Steps to pass the chain: exponential, or linear",
                "rooms",
                "steps in all",
                *totals,
                log="y",
            ),
            panel(
                "Random starts end at minima",
                "start, in order",
                "f at the end − lowest f",
                *ends,
                rival_curve(place, blocked, "one coordinate zero"),
            ),
        )


def _lattice(dimension: int) -> np.ndarray:
    """Return all vectors of −1, 0 and 1, ``(3^d, d)``."""
    return np.array(list(product((-1.0, 0.0, 1.0), repeat=dimension)))


def _value(x: np.ndarray) -> np.ndarray:
    """Return −‖x‖₂² + ‖x‖₄⁴ of each row."""
    return (x**4).sum(1) - (x**2).sum(1)
