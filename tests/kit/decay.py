"""Quantities fall like 1/n, and one in four networks succeeds whatever its width."""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit


class Setting(NamedTuple):
    """Nothing is shared but the widths."""

    widths: np.ndarray


@kit.claim
class Decay(kit.Claim[Setting]):
    """Noise of ten per cent around a law."""

    widths: tuple[kit.Count, ...] = kit.param(
        (10, 20, 40, 80),
        "n",
        unit="neurons",
        scope=kit.choices((10, 20, 40, 80), (8, 16, 64)),
    )
    noise: kit.Positive = kit.param(0.02, "relative noise", scope=kit.between(0.01, 0.04))
    bend: kit.NonNegative = kit.param(0.0, "second power that no law has")
    seeds: kit.Seeds = kit.param(8, "independent repetitions")

    kind = "theorem"
    says = {
        "fall like 1/n": ("follows", "exponent"),
        "one in four networks succeeds": "share",
        "whatever its width": None,
    }
    statement = r"y = 1/n"
    source = "this test"
    tiny = {"seeds": 3}
    out_of_scope = {"noise": 2.0}

    def axes(self):
        return {"width": self.widths}

    def setting(self, key):
        return Setting(np.array(self.widths, float))

    def hypotheses(self, setting):
        return [kit.assume("noise", self.noise, "<=", 1.0)]

    def predict(self, setting):
        return kit.law(
            y=("width", 1 / setting.widths), p=("width", np.full(len(setting.widths), 0.25))
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        shape = (self.seeds, len(setting.widths))
        noise = 1 + self.noise * rng.standard_normal(shape)
        clean = 1 / setting.widths + self.bend / setting.widths**2
        success = rng.random((self.seeds, 2000, len(setting.widths))) < 0.25
        return kit.seen(
            y=("seed width", clean * noise),
            success=("seed start width", success),
            flat=("seed width", 0.03 * noise),
            always=("seed start width", np.ones_like(success)),
        )

    def judge(self, law: xarray.Dataset, seen: xarray.Dataset):
        yield kit.follows("follows", law.y, seen.y, 0.1)
        yield kit.power("exponent", law.y, seen.y, 0.1, over="width")
        yield kit.share("share", law.p, seen.success, 0.05)

    def rivals(self, setting, law: xarray.Dataset):
        yield kit.rival("root", "noise averages so", y=law.y * np.sqrt(law.width / 10))
        yield kit.rival("half", "a coin", p=law.p * 2)

    def controls(self, seen: xarray.Dataset):
        yield kit.control("no width", "nothing depends on width", y=seen.flat, success=seen.always)

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "It falls",
            law.y,
            seen.y,
            over="width",
            log="xy",
            y="y",
            rivals={"root": rivals["root"].y} if "root" in rivals else None,
        )
