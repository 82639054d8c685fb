"""Catapulted ReLU networks err less on few digits, as they forget the output of their random start.

Lazy networks train at the step size γ = 1.5/λ₀, with λ₀ the largest eigenvalue of the tangent kernel at the start.
Catapulted networks train at 3/λ₀ from the same starts, for as many steps or for as long a time γ · steps. Lazy networks
that start with zero output err even less than catapulted networks from a usual start.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.catapult_forgets_start.experiment import LAZY_STEP, errors_of_steps
from steepest.nn.data import digits, signs

IMAGES = 30  # of the two classes
CLOCKS = ("steps", "time")  # in which thrown networks train as long as lazy ones
DRAWS = 2  # of images and networks in each group


@kit.claim
class CatapultForgetsStart(kit.Claim[None]):
    """Test errors of ReLU networks on centred digits of two classes, from usual starts and from silent ones."""

    multiple: kit.Positive = kit.param(
        3.0,
        "γλ₀ of catapulted networks",
        scope=kit.between(2.8, 3.2, "from 3.25 on some networks may diverge"),
    )
    width: kit.Count = kit.param(200, "hidden width", unit="neurons")
    seeds: kit.Seeds = kit.param(32, "groups of images and initial networks")

    kind = "empirical law"
    says = {
        "err less on few digits": "catapult_error",
        "they forget the output of their random start": "start_forgotten",
    }
    tiny = {"width": 20, "seeds": 3}
    full = {"width": 512, "seeds": 40}
    out_of_scope = {"multiple": 1.0}

    def axes(self):
        return {"clock": CLOCKS}

    def hypotheses(self, setting):
        yield kit.assume(
            "γλ₀", self.multiple, between=(2, 4), note="choose --multiple between 2 and 4"
        )

    def predict(self, setting):
        return kit.law(
            test_error=("clock", [1.0, 1.0]),  # over the error of lazy networks, at most
            silent_error=("clock", [1.0, 1.0]),  # of lazy ones that start silent, over thrown ones'
        )

    def observe(self, setting, key):
        data = signs(digits((3, 8)))
        images = np.asarray(data.x)
        images = images - images.mean(0)
        groups = (self.seeds, DRAWS)
        shape = (self.seeds * DRAWS, self.width, IMAGES)
        measured = {}
        for name in ("usual", "silent"):
            rng = kit.numpy_generator(key)  # the same images for both
            lazy, thrown = errors_of_steps(
                rng, images, np.asarray(data.y), shape, self.multiple, silent=name == "silent"
            )
            measured[f"{name}_lazy"] = ("seed draw", lazy.reshape(groups))
            measured[f"{name}_thrown"] = ("seed draw clock", thrown.reshape(*groups, -1))
        return kit.seen(**measured)

    def derive(self, law, seen):
        """Return one and the mean difference of errors over the mean of all, as a single error may vanish."""

        def over(error: xarray.DataArray, other: xarray.DataArray) -> xarray.DataArray:
            return 1 + (error - other) / other.mean(("seed", "draw"))

        return {
            "test_error": over(seen.usual_thrown, seen.usual_lazy),
            "silent_error": over(seen.silent_lazy, seen.usual_thrown),
        }

    def judge(self, law, seen):
        label = f"ReLU on digits: test errors at γλ₀ = {self.multiple:g} over errors at {LAZY_STEP}"
        yield kit.at_most(
            "catapult_error", law.test_error, seen.test_error, over="clock", label=label
        )
        label = "test errors of lazy networks with no output at the start over errors of thrown networks"
        yield kit.at_most(
            "start_forgotten", law.silent_error, seen.silent_error, over="clock", label=label
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "the test error falls to 1/γλ₀, as the curvature may",
            "flatter minima err less, and steps converge fastest at γλ = 1",
            id="as_flat",
            test_error=("clock", [1 / self.multiple] * 2),
        )

    def controls(self, seen):
        yield kit.control(
            "ReLU networks that start with no output",
            "there is no output of the start to forget",
            usual_thrown=seen.silent_thrown,
            usual_lazy=seen.silent_lazy,
        )
        yield kit.control(
            "lazy networks from the usual start for those with no output there",
            "they keep the output of their start",
            id="usual_start",
            silent_lazy=seen.usual_lazy,
        )
