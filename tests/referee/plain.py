"""Quantities fall like 1/n, one in each network."""

import numpy as np

from steepest import kit


@kit.claim
class Plain(kit.Claim[None]):
    """Noise of two per cent around a law that is judged at one width after the other, by fields without a scope."""

    widths: tuple[kit.Count, ...] = kit.param((10, 20, 40, 80), "n", unit="neurons")
    seeds: kit.Seeds = kit.param(8, "repetitions")

    kind = "theorem"
    says = {"fall like 1/n": ("each_0", "each_1", "each_2", "each_3")}
    statement = "y = 1/n"
    source = "this test"
    tiny = {"seeds": 3}

    def axes(self):
        return {"width": self.widths}

    def predict(self, setting):
        return kit.law(y=("width", 1 / np.array(self.widths)))

    def observe(self, setting, key):
        noise = 1 + 0.02 * kit.numpy_generator(key).standard_normal((self.seeds, len(self.widths)))
        widths = np.array(self.widths)
        return kit.seen(
            y=("seed width", noise / widths),
            steps=("seed width", noise * np.sqrt(widths)),
            risk=("seed width", -noise / widths**2),
            same=("seed", np.full(self.seeds, 3.0)),
        )

    def judge(self, law, seen):
        return at_each_width(law, seen, within=0.05)

    def rivals(self, setting, law):
        return [kit.rival("half", "a factor is forgotten", y=law.y / 2)]

    def controls(self, seen):
        return [kit.control("no width", "nothing depends on width", y=0 * seen.y + 0.03)]

    def figure(self, law, seen, rivals):
        return (kit.curves("It falls", law.y, seen.y, over="width"),)


def at_each_width(law, seen, within):
    """A check of every width by itself."""
    return [
        kit.follows(f"each_{i}", law.y.isel(width=i), seen.y.isel(width=i), within)
        for i in range(law.sizes["width"])
    ]
