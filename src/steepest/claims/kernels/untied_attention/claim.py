"""Attention scaled by 1/d with untied queries and keys becomes average pooling for wide keys.

The squared distance from the mean over positions falls as β²K_pp tr(HKHK)/P²d. Queries and keys have separate random
matrices. Here d is the width of the keys, P the number of positions, K the input's covariance between positions, H the
centring matrix, and β the factor of the logits in the softmax. So in the limit of wide keys a position reads the mean
of all values, whatever the input, and the network has the kernel of average pooling. With logits over √d the attention
weights stay random, and with tied queries and keys they follow the input.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.kernels.untied_attention import experiment, theory
from steepest.claims.kernels.untied_attention.point import UntiedAttentionPoint

KINDS = ("noise", "digits")


class Setting(NamedTuple):
    """An input of each kind, ``(P, C)``."""

    inputs: tuple[kit.Values, ...]


@kit.claim
class UntiedAttention(kit.Claim[Setting]):
    """Heads of softmax attention with random matrices, on noise and on the rows of a digit."""

    widths: tuple[kit.Count, ...] = kit.param(
        (32, 128, 512),
        "d of the keys",
        scope=kit.choices((32, 128, 512), (40, 160, 640), (64, 256, 1024), why="d ≫ β²K"),
    )
    sharpnesses: tuple[kit.Positive, ...] = kit.param(
        (0.25, 1.0), "β", scope=kit.choices((0.25, 1.0), (0.2, 0.8), (0.3, 1.2))
    )
    positions: kit.Count = kit.param(10, "P of noise", scope=kit.between(6, 16))
    channels: kit.Count = kit.param(12, "C of noise", scope=kit.between(8, 24))
    heads: kit.Count = kit.param(150, "heads of a seed", unit="heads")
    seeds: kit.Seeds = kit.param(10, "groups of heads")

    kind = "limit"
    says = {
        "becomes average pooling for wide keys": "distance",
        "distance from the mean over positions falls as β²K_pp tr(HKHK)/P²d": kit.literal(
            "distance", power={"beta": 2, "d": -1}
        ),
    }
    tiny = {
        "widths": (16, 64),
        "sharpnesses": (0.3, 0.6),
        "positions": 4,
        "channels": 5,
        "heads": 20,
        "seeds": 3,
    }
    full = {"heads": 2000}
    out_of_scope = {"sharpnesses": (1.0, 40.0)}
    point = UntiedAttentionPoint

    def axes(self):
        return {"kind": KINDS, "beta": self.sharpnesses, "d": self.widths}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        noise = rng.standard_normal((self.positions, self.channels))
        return Setting((noise, experiment.rows_of_digits(rng, 1)[0]))

    def hypotheses(self, setting):
        variances = [np.trace(theory.covariance(z)) / len(z) for z in setting.inputs]
        logit = max(self.sharpnesses) * max(variances) / min(self.widths) ** 0.5
        yield kit.assume(
            "deviation of logits",
            float(logit),
            "<=",
            0.6,
            "the law is for d ≫ β²K²: raise --widths or lower --sharpnesses",
        )

    def predict(self, setting):
        return kit.law(distance=("kind beta d", self.distances(setting)))

    def distances(self, setting: Setting) -> kit.Values:
        """Return the law of each input, ``(kinds, sharpnesses, widths)``."""
        return np.array(
            [
                [
                    theory.distance(theory.covariance(z), beta, np.array(self.widths, float))
                    for beta in self.sharpnesses
                ]
                for z in setting.inputs
            ]
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)

        def distance(z: kit.Values, beta: float, width: int, power: float, tied: bool) -> float:
            scale = beta / width**power
            drawn = experiment.weights(rng, z, self.heads, width, scale, tied=tied)
            return experiment.distance(drawn, z @ z.T / z.shape[1])

        def every(power: float, tied: bool) -> tuple[str, kit.Values]:
            distances = [
                [
                    [
                        [distance(z, beta, width, power, tied) for width in self.widths]
                        for beta in self.sharpnesses
                    ]
                    for z in setting.inputs
                ]
                for _ in range(self.seeds)
            ]
            return "seed kind beta d", np.array(distances)

        return kit.seen(
            distance=every(1.0, tied=False), tied=every(1.0, tied=True), root=every(0.5, tied=False)
        )

    def judge(self, law, seen):
        yield kit.follows(
            "distance",
            law.distance,
            seen.distance,
            0.2,  # the interval takes 0.08, the next order 0.1 at the narrowest keys
            label="square of the distance from the mean over positions",
        )

    def rivals(self, setting, law):
        middle = float(np.exp(np.log(self.widths).mean()))
        covariances = [theory.covariance(z) for z in setting.inputs]
        not_centred = [np.trace(k @ k) / np.trace(theory.centred(k) @ k) for k in covariances]
        yield kit.rival(
            "distance² ∝ 1/√d",
            "logits fall like 1/√d",
            distance=law.distance * (law.d / middle) ** 0.5,
        )
        yield kit.rival(
            "distance² ∝ 1/d²",
            "queries and keys both shrink",
            distance=law.distance * middle / law.d,
        )
        yield kit.rival(
            "tr K² for tr HKHK",
            "softmax adds to every weight",
            distance=("kind beta d", law.distance.values * np.array(not_centred)[:, None, None]),
        )
        yield kit.rival(
            "distance² ∝ β",
            "the distance is of first order in β",
            id="linear",
            distance=law.distance / law.beta * float(np.mean(self.sharpnesses)),
        )

    def controls(self, seen):
        yield kit.control(
            "tied queries and keys",
            "products of a position's query with keys of like positions do not vanish",
            id="tied",
            distance=seen.tied,
        )
        yield kit.control(
            "products over √d", "logits stay as large at every width", id="root", distance=seen.root
        )

    def figure(self, law, seen, rivals):
        last = {"beta": self.sharpnesses[-1]}
        widths = np.array(self.widths, float)
        worlds = tuple(
            kit.context_curve(widths, seen[name].sel(last).isel(kind=-1).mean("seed").values, label)
            for name, label in (("tied", "digits, tied"), ("root", "digits, over √d"))
        )
        yield kit.curves(
            "Untied attention over d becomes an average",
            law.distance.sel(last, drop=True),
            seen.distance.sel(last, drop=True),
            over="d",
            by="kind",
            x="width d of the keys",
            y="distance² from the mean over positions",
            more=worlds,
            log="xy",
        )
        yield kit.curves(
            "In the square of the sharpness",
            law.distance.isel(d=-1, drop=True),
            seen.distance.isel(d=-1, drop=True),
            over="beta",
            by="kind",
            x="β",
            y="distance²",
            log="xy",
        )
