"""A walk with steps twice as long on half of a large circle spends 4/5 of its time on the other half.

Its time at a place is ∝ 1/variance of the steps from there. Steps of mean zero, whose variance σ²(θ) depends on where
they start, have the stationary density 1/σ², up to a constant: Itô's convention, Σ ∂_i∂_j(C_ij p) = 0. On a ring of N
sites the share is exactly 4N/(5N + 4) if four divides N. In two dimensions time is not in general inverse to the trace
of the covariance C: noise along one coordinate whose size depends only on the other coordinate leaves the law uniform.
"""

from typing import Annotated, Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.noise.two_speed_circle.experiment import (
    COARSE,
    NOISES,
    TwoSpeedPoint,
    conducts,
    jumps,
    lattice_share,
    on_the_torus,
    quadrant,
    slow_share,
    waits,
)
from steepest.nn.types import Values
from steepest.noise import stationary

STEP = 2  # of the notes' problem
LONG = 2.5  # a fifth of the steps is not counted: N²/2, about five relaxation times under isotropic noise
ZONES = ("both slow", "one slow", "none slow")
AREAS = np.array([0.25, 0.5, 0.25])  # of the zones
TRACE = AREAS / np.array(
    [2, 5, 8]
)  # density ∝ 1/tr C, where each coordinate's step is set by itself
TRACE /= TRACE.sum()


@kit.claim
class TwoSpeedCircle(kit.Claim[None]):
    """Rings whose exact laws are computed; walkers on a torus under three kinds of noise."""

    sites: tuple[kit.Count, ...] = kit.param(
        (100, 200, 400, 800, 1600),
        "N of the rings with steps 1 and 2; those with two sites more are computed too",
        scope=kit.choices((100, 200, 400, 800, 1600), (80, 240, 720), (60, 120, 600, 1200)),
    )
    steps: tuple[kit.Count, ...] = kit.param(
        (2, 3, 4, 5),
        "lengths k of the longer steps",
        scope=kit.choices((2, 3, 4, 5), (2, 3, 4, 6), why="three lengths do not tell a trend"),
    )
    slow: kit.Fraction = kit.param(
        0.5, "share q of the sites with short steps, where k varies", scope=kit.between(0.3, 0.7)
    )
    fine: kit.Count = kit.param(
        480, "sites where k varies, and twice as many", scope=kit.choices(480, 600, 720)
    )
    coarse: kit.Count = kit.param(
        40, "sites of each ring of the torus", scope=kit.choices(40, 48, 44)
    )
    walkers: kit.Count = kit.param(300, "walkers in each group")
    seeds: kit.Seeds = kit.param(16, "groups of walkers")
    time: kit.Count = kit.param(8000, "length of the walks, in time", unit="steps")
    bias: Annotated[float, kit.Within(-0.5, 0.5)] = kit.param(
        0.0, "chance of a step forward, less ½"
    )

    kind = "limit"
    says = {
        "spends 4/5 of its time on the other half": (kit.literal("limit", value=0.8), "walkers"),
        "time at a place is ∝ 1/variance of the steps": kit.literal(
            "law", "density", power={"step": 2}
        ),
    }
    tiny = {"sites": (40, 80, 160), "steps": (2, 3, 4), "fine": 100, "walkers": 5, "time": 50}
    full = {"sites": (100, 200, 400, 800, 1600, 3200, 6400), "walkers": 1000, "time": 20_000}
    out_of_scope = {"bias": 0.05}
    point = TwoSpeedPoint

    @property
    def all_sites(self) -> tuple[int, ...]:
        """Return sizes of the rings: multiples of four, and the same with two sites more."""
        return (*self.sites, *(sites + 2 for sites in self.sites))

    def axes(self):
        return {"ring": self.all_sites, "step": self.steps, "noise": NOISES, "zone": ZONES}

    def check_fields(self) -> None:
        wrong = [number for number in self.sites if number % 4]
        if wrong or self.coarse % 4 or self.fine % 4:
            raise kit.UserError(
                "sites, fine and coarse must be multiples of 4, for which the exact share is stated; "
                f"got {[*self.sites, self.fine, self.coarse]}"
            )
        if len(self.sites) < 2 or (np.diff(self.sites) <= 0).any():
            raise kit.UserError(
                "sites must be two sizes or more in increasing order, to extrapolate from the last two; "
                f"got {[*self.sites]}; try 100 200 400"
            )

    def hypotheses(self, setting):
        arc = min(self.slow, 1 - self.slow)
        longest = max(
            STEP / (min(*self.sites, self.coarse) / 2), max(self.steps) / max(arc * self.fine, 1e-9)
        )
        yield kit.assume("bias of the steps", abs(self.bias), "==", 0, "steps must have mean zero")
        yield kit.assume(
            "longest step over the shorter arc", longest, "<=", COARSE, "take more sites"
        )

    def predict(self, setting):
        share = lattice_share(self.coarse // 2, self.coarse // 2)
        product = (share**2, 2 * share * (1 - share), (1 - share) ** 2)
        return kit.law(
            rings=("ring", [lattice_share(sites // 2, sites // 2) for sites in self.all_sites]),
            limit=slow_share(0.5, STEP),
            waiting=slow_share(0.5, STEP),
            density=("step", np.square(self.steps)),  # of the slow over the fast part
            walkers=share,
            zones=("noise zone", [product, AREAS, on_the_plane(self.coarse)]),
            plane=("zone", _densities(1, 1, STEP**-2)),
        )

    def observe(self, setting, key):
        size = max(self.sites)
        shape = (self.seeds, self.walkers)
        corners = on_the_torus(kit.numpy_generator(key), shape, self.coarse, self.time, self.bias)
        zones = np.stack([_zones(corners[noise]) for noise in NOISES])
        small = min(self.sites)
        law = stationary(jumps(small // 2, small // 2, STEP, self.bias))
        edges = [
            stationary(conducts(sites // 2, sites // 2, STEP**2))[: sites // 2].sum()
            for sites in self.all_sites
        ]
        rings = [self.share(sites, 0.5, STEP) for sites in self.all_sites]
        waiting = stationary(waits(size // 2, size // 2, STEP**2))[: size // 2].sum()
        return kit.seen(
            site_density=("site", law * small),
            rings=("ring", rings),
            conducting=("ring", edges),
            waiting=waiting,
            conducting_waiting=edges[len(self.sites) - 1],
            density=("step", [self.density(step) for step in self.steps]),
            conducting_density=("step", [self.conducting_density(step) for step in self.steps]),
            walkers=("seed", corners["own"][:, :2].sum(1)),
            cross_walkers=("seed", corners["cross"][:, :2].sum(1)),
            zones=("noise seed zone", zones),
            plane=("lattice zone", [on_the_plane(self.coarse), on_the_plane(2 * self.coarse)]),
        )

    def share(self, sites: int, slow: float, step: int) -> float:
        """Return the exact share of time on the slow part of a ring."""
        short = round(slow * sites)
        return float(stationary(jumps(short, sites - short, step, self.bias))[:short].sum())

    def density(self, step: int) -> float:
        """Return the density on the slow over that on the fast part, extrapolated to N → ∞ from two sizes."""
        once, twice = (self.share(sites, self.slow, step) for sites in (self.fine, 2 * self.fine))
        return _odds(2 * twice - once, round(self.slow * self.fine) / self.fine)

    def conducting_density(self, step: int) -> float:
        """Return the same of a walk with one chance for both ways across an edge."""
        short = round(self.slow * self.fine)
        law = stationary(conducts(short, self.fine - short, step**2))
        return _odds(float(law[:short].sum()), short / self.fine)

    def run_conditions(self, observed):
        yield kit.assume(
            "steps of the walkers over the square of the sites",
            self.time / self.coarse**2,
            ">=",
            LONG,
            "walkers must have forgotten their starts: raise --time",
        )

    def judge(self, law, seen):
        many = len(self.sites)
        before, last = self.sites[-2:]
        of_last = last * seen.rings[many - 1] - before * seen.rings[many - 2]
        # of 4N/(5N + 4) = 4/5 − 0.64/N + 0.512/N² − … the extrapolation leaves −0.512/(N N')
        left = 1 / (before * last)
        plane = 2 * seen.plane[1] - seen.plane[0]
        yield kit.follows(
            "limit",
            law.limit,
            (of_last / (last - before)).drop_vars("ring", errors="ignore"),
            left,
            absolute=True,
            label="share of the slow half, extrapolated to N → ∞",
        )
        yield kit.power(
            "law",
            law.density,
            seen.density,
            0.01,  # the extrapolated ratios are off by 1e-4
            over="step",
            label="density on the slow over the fast part, against the step k",
        )
        yield kit.agrees(
            "rings",
            abs(seen.rings - law.rings),
            1e-9,
            label="share on N sites: distance to 4N/(5N + 4), or 4(N − 2)/(5N − 6)",
        )
        yield kit.agrees(
            "waiting",
            abs(seen.waiting - law.waiting),
            1e-9,
            label="share of a walk that waits: distance to 4/5",
        )
        yield kit.follows(
            "walkers",
            law.walkers,
            seen.walkers,
            0.003,  # the interval is ± 0.001
            absolute=True,
            label=f"walkers' share on {self.coarse} sites",
        )
        yield kit.follows(
            "zones",
            law.zones,
            seen.zones,
            0.007,  # the interval is ± 0.001 to 0.003
            absolute=True,
            label="torus: share of each zone, by what sets the steps",
        )
        yield kit.agrees(
            "plane",
            abs(plane - law.plane),
            0.003,
            label="isotropic noise, exact law extrapolated to N → ∞: distance to 4 : 8 : 1",
        )

    def rivals(self, setting, law):
        N = law.ring
        yield kit.rival(
            "the notes' √2/(√2 + 1)",
            "the notes print it",
            id="printed",
            **_inverse_to(0.5, law),
        )
        yield kit.rival(
            "density ∝ 1/σ, share 2/3",
            "the noise is taken in the middle of the step",
            **_inverse_to(1.0, law),
        )
        yield kit.rival(
            "uniform density, share 1/2",
            "Fick's law: a flux that is a gradient of p leaves the uniform law",
            **_inverse_to(0.0, law),
        )
        yield kit.rival(
            "4/5 at every N, up to 1/N²",
            "the joints of the halves cost two sites of N",
            rings=0.8 * xarray.ones_like(law.rings),
            walkers=0.8,
            zones=("noise zone", [(0.64, 0.32, 0.04), AREAS, law.plane.values]),
        )
        yield kit.rival(
            "4(N − 2)/(5N − 6) for every even N",
            "it holds for N = 2 modulo 4",
            rings=4 * (N - 2) / (5 * N - 6),
        )
        yield kit.rival(
            "on the torus density ∝ 1/tr C",
            "the notes conclude that SGD minimizes tr C",
            zones=("noise zone", [TRACE, TRACE, law.zones[2].values]),
        )
        yield kit.rival(
            "a product of the coordinates' laws under isotropic noise too",
            "each coordinate's walk has long steps on half of its circle",
            id="independent",
            zones=("noise zone", law.zones.values[[0, 1, 0]]),
            plane=("zone", (0.64, 0.32, 0.04)),
        )

    def controls(self, seen):
        yield kit.control(
            "a walk with one chance for both ways across an edge",
            "its variances are the same, but its steps are drawn by edge and have a mean at the joints",
            id="conducting",
            rings=seen.conducting,
            waiting=seen.conducting_waiting,
            density=seen.conducting_density,
        )
        yield kit.control(
            "walkers under another kind of noise",
            "what sets the steps decides",
            walkers=seen.cross_walkers,
            zones=seen.zones.roll(noise=1, roll_coords=False),
        )

    def figure(self, law, seen, rivals):
        density = seen.site_density.values
        place = np.arange(len(density)) / len(density)
        halves = np.array([0.0, 0.5, 0.5, 1.0])
        printed = 2 * np.array([np.sqrt(2), np.sqrt(2), 1, 1]) / (1 + np.sqrt(2))
        many = len(self.sites)
        sizes = np.array(self.all_sites)
        steps = np.array(self.steps)
        zone = np.arange(3)
        left = 0.8 - seen.rings.values
        theory = 0.8 - law.rings.values
        of_noise = seen.zones.mean("seed")
        points = {"kind": "points"}
        yield kit.panel(
            f"Long steps on the second half, N = {len(density)}",
            "place / circumference",
            "density",
            kit.observed_curve(place, density, "exact law by site", **points),
            kit.predicted_curve(halves, np.array([1.6, 1.6, 0.4, 0.4]), "∝ 1/σ²"),
            kit.rival_curve(halves, printed, "the notes' ∝ 1/√σ"),
            ylim=(0, None),
        )
        yield kit.panel(
            "The share tends to 4/5",
            "sites N",
            "4/5 − share",
            kit.observed_curve(sizes[:many], left[:many], "N = 0 mod 4", **points),
            kit.observed_curve(sizes[many:], left[many:], "N = 2 mod 4", shade=1.0, **points),
            kit.predicted_curve(sizes[:many], theory[:many], "4/5 − 4N/(5N + 4)"),
            kit.rival_curve(sizes[:many], 3.2 * (sizes[:many] / 10.0) ** -2, "∝ 1/N²"),
            log="xy",
        )
        yield kit.panel(
            "Density is inverse to the variance",
            "longer step k",
            "density, slow / fast part",
            kit.observed_curve(steps, seen.density, "exact law", **points),
            kit.predicted_curve(steps, law.density, "k²"),
            kit.rival_curve(steps, steps**1.0, "k (Stratonovich)"),
            kit.rival_curve(steps, steps**0.5, "√k (the notes)"),
            log="xy",
        )
        yield kit.panel(
            "On a torus the trace of C has no say",
            "coordinates on their fast half",
            "share of time",
            kit.observed_curve(zone, of_noise.sel(noise="cross"), "set by the other", **points),
            kit.observed_curve(
                zone, of_noise.sel(noise="own"), "set by its own", shade=1.0, **points
            ),
            kit.predicted_curve(zone, law.zones.sel(noise="cross"), "uniform"),
            kit.predicted_curve(zone, law.zones.sel(noise="own"), "product of ∝ 1/σ²"),
            kit.rival_curve(zone, TRACE, "∝ 1/tr C"),
            ylim=(0, None),
        )


def on_the_plane(sites: int) -> Values:
    """Return the exact shares of the three zones under isotropic noise that is long in one quadrant."""
    half = sites // 2
    law = stationary(quadrant(sites)).reshape(2, half, 2, half).sum((1, 3))
    return _zones(law.reshape(1, 4))[0]


def _inverse_to(power: float, law: xarray.Dataset) -> dict[str, Any]:
    """Return what follows from a density inverse to this power of σ."""
    share = 1 / (1 + STEP**-power)
    return {
        "limit": share,
        "waiting": share,
        "walkers": share,
        "rings": share * xarray.ones_like(law.rings),
        "density": law.density ** (power / 2),
    }


def _odds(share: float, slow: float) -> float:
    """Return the density on a part of a ring over that on the other, of the share of time there."""
    return share / (1 - share) * (1 - slow) / slow


def _densities(*densities: float) -> Values:
    """Return the shares of the three zones for these densities."""
    shares = AREAS * np.array(densities)
    return shares / shares.sum()


def _zones(shares: Values) -> Values:
    """Return shares of the three zones of the torus from those of its four corners, ``(seeds, 3)``."""
    return np.stack([shares[:, 0], shares[:, 1] + shares[:, 2], shares[:, 3]], 1)
