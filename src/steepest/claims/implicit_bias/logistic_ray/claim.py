"""On any data, the weights of logistic regression move out along one ray from a finite offset.

The offset is a finite optimum on one part of the data, and the ray has the largest margin on the other part. The data
split uniquely into a maximal part that can be separated without an error elsewhere, and the rest, which spans a
subspace S. In S the flow ends at the finite optimum of the rest; off S it leaves like log t along the maximal margin of
the separable part. Separable data are the case S = 0.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.logistic_ray.experiment import (
    COARSE,
    FINE,
    LATE,
    Paths,
    Setting,
    excess,
    follow,
    velocity,
)
from steepest.nn.data import Dataset, digits
from steepest.nn.types import Values
from steepest.programs import hard_margin, logistic_split, split_coordinates

PIXELS = 64
RESOLVED = 1e-6  # relative distance from an optimum that counts as none


@kit.claim
class LogisticRay(kit.Claim[Setting]):
    """Examples with random labels in a subspace, separable ones off it; and even against odd digits."""

    apart: kit.Count = kit.param(
        15, "examples off the subspace, separable there", scope=kit.between(8, 20)
    )
    rest: kit.Count = kit.param(
        40,
        "examples in the subspace, with random labels",
        scope=kit.between(30, 60, "fewer may be separable there"),
    )
    dimension: kit.Count = kit.param(6, "d of the inputs", scope=kit.between(5, 8))
    inside: kit.Count = kit.param(3, "dimension of the subspace S", scope=kit.between(2, 4))
    margin: kit.Positive = kit.param(
        0.5,
        "margin of the separable examples off S, by construction",
        unit="length",
        scope=kit.between(0.4, 0.8, "a small one delays all of the limit"),
    )
    flipped: kit.Fraction = kit.param(
        0.0, "part of their labels that is flipped, which ends their separability"
    )
    horizon: Annotated[float, kit.Within(16, 45)] = kit.param(
        40.0, "log(1 + t) at which the flows end"
    )
    seeds: kit.Seeds = kit.param(24, "synthetic data sets")

    kind = "limit"
    says = {
        "move out along one ray": ("velocity", "speed", "digits_velocity"),
        "a finite offset": ("offset", "digits_offset"),
    }
    tiny = {"seeds": 3, "apart": 6, "rest": 12, "dimension": 4, "inside": 2, "horizon": 16.0}
    full = {"seeds": 50}
    out_of_scope = {"flipped": 0.3}

    @property
    def log_times(self) -> Values:
        """Return readings of log(1 + t)."""
        return np.linspace(1.0, self.horizon, int(self.horizon))

    @property
    def middle(self) -> Values:
        """Return which readings the distance in S is fitted on."""
        part = self.log_times / self.horizon
        return (part >= 3 / 8) & (part <= 5 / 8)

    def axes(self):
        times = np.exp(self.log_times)
        return {
            "middle": tuple(times[self.middle]),
            "late": tuple(times[-LATE:]),
            "unknown": tuple(range(self.dimension)),
            "pixel": tuple(range(PIXELS)),
        }

    def setting(self, key):
        images = digits()
        parity = np.asarray(images.y).argmax(1) % 2
        x, y = (
            np.asarray(part)
            for part in kit.compiled(jax.vmap(self.draw))(kit.keys(key, self.seeds))
        )
        sets = [*zip(x, y, strict=True), (np.asarray(images.x), np.where(parity == 0, 1.0, -1.0))]
        splits = [logistic_split(inputs, labels) for inputs, labels in sets]
        turned = [
            np.asarray(split_coordinates(split, inputs))
            for split, (inputs, _) in zip(splits, sets, strict=True)
        ]
        part = np.stack([split.part for split in splits[:-1]])
        real = Dataset(turned[-1], sets[-1][1], "digits, even against odd")
        return Setting(np.stack(turned[:-1]), y, part, real, splits)

    def draw(self, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        """Draw one synthetic set, turned by a random rotation."""
        for_x, for_y, for_turn, for_flips = jax.random.split(key, 4)
        off = jnp.arange(self.apart + self.rest) < self.apart
        x = jax.random.normal(for_x, (off.size, self.dimension))
        y = jax.random.rademacher(for_y, (off.size,), float)
        pushed = y * (self.margin + jnp.abs(x[:, self.inside]))
        x = x.at[:, self.inside].set(pushed) * (
            off[:, None] | (jnp.arange(self.dimension) < self.inside)
        )
        turn = jnp.linalg.qr(jax.random.normal(for_turn, (self.dimension, self.dimension)))[0]
        wrong = off & (jax.random.uniform(for_flips, y.shape) < self.flipped)
        return x @ turn.T, jnp.where(wrong, -y, y)

    def hypotheses(self, setting):
        sizes = [split.part.mean() for split in setting.splits]
        yield kit.assume(
            "smallest separable part",
            min(sizes),
            ">",
            0,
            "nothing is separable: all of the limit is finite",
        )
        yield kit.assume(
            "largest separable part",
            max(sizes),
            "<",
            1,
            "all is separable: there is no offset in S",
        )
        yield kit.assume(
            "largest error of the dimension of S, of the sets",
            max(abs(dimension - self.inside) for dimension in setting.inside[:-1]),
            "==",
            0,
            "the rest is separable too; raise --rest",
        )

    def predict(self, setting):
        turned = [
            (split.turn.T @ split.offset, split.turn.T @ split.direction / split.margin)
            for split in setting.splits
        ]
        offsets, rays = zip(*turned, strict=True)
        margins = np.array([split.margin for split in setting.splits[:-1]])
        times = np.exp(self.log_times)
        return kit.law(
            offset=("seed unknown", np.array(offsets[:-1])),
            velocity=("seed unknown", np.array(rays[:-1])),
            speed=1.0,
            approach=("middle", 1 / times[self.middle]),
            # off S: Ṙ = −‖∇R‖² with ‖∇R‖ ≈ γR, so that the separable part has R = 1/γ²t
            excess=("seed late", 1 / np.multiply.outer(margins**2, times[-LATE:])),
            real_offset=("pixel", offsets[-1]),
            real_velocity=("pixel", rays[-1]),
        )

    def observe(self, setting, key):
        of_part = setting.part[..., None]
        worlds = np.concatenate([setting.x, setting.x * of_part, setting.x * ~of_part])
        paths = follow(worlds, np.tile(setting.y, (3, 1)), self.log_times, FINE)
        weights, of_part_alone, of_rest_alone = np.split(paths.weights, 3)
        real = setting.real
        whole = follow(np.asarray(real.x)[None], np.asarray(real.y)[None], self.log_times, COARSE)
        part = self._real_part(setting)
        arrived = [paths.arrived, whole.arrived, part.arrived]
        dims = "seed reading unknown"
        return kit.seen(
            in_s=("unknown", np.arange(self.dimension) < self.inside),
            in_real_s=("pixel", np.arange(real.d) < setting.inside[-1]),
            weights=(dims, weights),
            part_weights=(dims, of_part_alone),
            rest_weights=(dims, of_rest_alone),
            excess=("seed reading", excess(setting, weights)),
            part_excess=("seed reading", excess(setting, of_part_alone)),
            real_weights=("reading pixel", whole.weights[0]),
            real_part_weights=("reading pixel", part.weights[0]),
            arrived=("flow", np.concatenate(arrived)),
        )

    def _real_part(self, setting: Setting) -> Paths:
        """Return the flow on the images of the separable part alone."""
        part = setting.splits[-1].part
        real = setting.real
        x = np.asarray(real.x)[part]
        return follow(x[None], np.asarray(real.y)[part][None], self.log_times, COARSE)

    def run_conditions(self, observed):
        arrived = observed["arrived"].mean()
        yield kit.assume("flows that reached the horizon", arrived, "==", 1, "lower --horizon")

    def derive(self, law, seen):
        """Return distances to the offsets, velocities' distances to the rays, and what is judged along time."""
        distance = _apart(seen.weights, law.offset, "unknown", seen.in_s)
        moving = seen.weights[:, 0].copy(data=velocity(self.log_times, seen.weights.values))
        real = seen.real_weights[0].copy(data=velocity(self.log_times, seen.real_weights.values))
        fitted = distance.isel(reading=np.flatnonzero(self.middle)).rename(reading="middle")
        late = seen.excess.isel(reading=slice(-LATE, None)).rename(reading="late")
        return {
            "away": distance,
            "real_away": _apart(seen.real_weights, law.real_offset, "pixel", seen.in_real_s),
            "speed": (moving * law.velocity).sum("unknown") / (law.velocity**2).sum("unknown"),
            "turned": _apart(moving, law.velocity, "unknown"),
            "real_turned": _apart(real, law.real_velocity, "pixel"),
            "approach": fitted.assign_coords(middle=law.middle),
            "late_excess": late.assign_coords(late=law.late),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "offset",
            seen.away.isel(reading=-1),
            RESOLVED,
            label="distance to the offset in S, relative",
        )
        yield kit.power(
            "approach",
            law.approach,
            seen.approach,
            # An example of margin m over the maximal one adds t^(1 − m), which bends one set by up to 1/(e log t) =
            # 0.02 times its weight; the interval over the sets takes another 0.02.
            0.05,
            over="middle",
            label="distance to the offset against t",
        )
        yield kit.agrees(
            "velocity",
            seen.turned,
            # near-support vectors, relative t^(1 − m), still turn it by the order of 1/log t = 0.025
            0.2,
            label="velocity dw/d log t: distance to ū/γ, relative",
        )
        yield kit.follows("speed", law.speed, seen.speed, 0.02, label="velocity along ū/γ over 1/γ")
        yield kit.follows(
            "part_risk",
            law.excess,
            seen.late_excess,
            0.05,
            over="late",
            label="risk of the part R_P over 1/(γ²t)",
        )
        yield kit.agrees(
            "digits_offset",
            seen.real_away.isel(reading=-1),
            RESOLVED,
            label="digits: distance to the offset in S, relative",
        )
        yield kit.agrees(
            "digits_velocity",
            seen.real_turned,
            0.01,
            label="digits: velocity, distance to ū/γ, relative",
        )

    def rivals(self, setting, law):
        sets = list(zip(setting.x, setting.y, setting.part, strict=True))
        whole = [hard_margin(x[part], y[part]) for x, y, part in sets]
        margins = np.array([program.margin for program in whole])
        through = [program.direction / program.margin for program in whole]
        x = np.asarray(setting.real.x)
        y = np.asarray(setting.real.y)
        part = setting.splits[-1].part
        real = hard_margin(x[part], y[part])
        everyone = [_offset_of_all(x, y, self.inside) for x, y, _ in sets]
        yield kit.rival(
            "the optimum in S of all examples",
            "it is the minimum in S of the risk that the flow descends",
            offset=("seed unknown", everyone),
            real_offset=("pixel", _offset_of_all(x, y, setting.inside[-1])),
        )
        yield kit.rival(
            "the part's own separator",
            "it ignores that the ray must not disturb the rest",
            velocity=("seed unknown", through),
            excess=("seed late", 1 / np.multiply.outer(margins**2, law.late.values)),
            real_velocity=("pixel", real.direction / real.margin),
        )
        yield kit.rival(
            "the distance in S falls like t^−½",
            "the risk is 1/t above its infimum, and strongly convex in S",
            approach=law.approach**0.5,
        )

    def controls(self, seen):
        yield kit.control(
            "the flow on only the separable part",
            "nothing holds the ray in its place",
            weights=seen.part_weights,
            excess=seen.part_excess,
            real_weights=seen.real_part_weights,
        )
        yield kit.control(
            "the flow on only the rest",
            "nothing pulls, and the offset comes like any strongly convex one",
            weights=seen.rest_weights,
        )

    def figure(self, law, seen, rivals):
        time = self.log_times
        early = slice(0, 25)
        size = lambda array, dim: (array**2).sum(dim)
        along = (seen.weights * law.velocity).sum("unknown") / size(law.velocity, "unknown")
        real_along = (seen.real_weights * law.real_velocity).sum("pixel")
        margins = 1 / (law.excess * law.late).isel(late=0, drop=True)
        part_risk = seen.excess * margins * np.exp(xarray.DataArray(time, dims="reading"))
        yield kit.panel(
            "In S the flow ends at the optimum of the rest",
            "log(1 + t)",
            "relative distance",
            kit.observed_curve(time[early], seen.away[:, early], "flow"),
            kit.rival_curve(time[early], np.exp(-time[early] / 2), "1/√t"),
            kit.predicted_curve(time[early], np.exp(-time[early]), "1/t"),
            log="y",
        )
        yield kit.panel(
            "Off S it leaves like log t",
            "log(1 + t)",
            "γ ⟨w, ū⟩",
            kit.observed_curve(time, along),
            kit.predicted_curve(time, time, "log t"),
        )
        yield kit.panel(
            "The risk of the part falls like 1/(γ² t)",
            "log(1 + t)",
            "t R_P γ²",
            kit.observed_curve(time, part_risk.transpose("seed", "reading")),
            kit.predicted_curve(time, 0 * time + 1, "1"),
        )
        yield kit.panel(
            "Even against odd digits",
            "log(1 + t)",
            "γ ⟨w, ū⟩",
            kit.observed_curve(time, real_along / size(law.real_velocity, "pixel"), "flow"),
            kit.predicted_curve(time, time, "log t"),
            kit.rival_curve(time, 0 * time, "finite optimum"),
        )


def _offset_of_all(x: Values, y: Values, inside: int) -> Values:
    """Return the finite optimum in S, the first coordinates, of all examples, zero off S."""
    offset = logistic_split(x[:, :inside], y).offset
    return np.append(offset, np.zeros(x.shape[1] - inside))


def _apart(
    vector: xarray.DataArray,
    other: xarray.DataArray,
    dim: str,
    part: xarray.DataArray | float = 1.0,
) -> xarray.DataArray:
    """Return the distance of vectors along an axis, in some of its coordinates, over the length of the other."""
    norm = lambda array: np.sqrt((array**2).sum(dim))
    return norm((vector - other) * part) / norm(other)
