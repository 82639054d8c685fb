"""Neighbouring layers of ReLU networks align in training if they start from small weights.

What a layer learns has one stable rank, the same at the small starts and at the widths that are compared. Layers of
deep linear networks become rank one and aligned (deep-linear-alignment). For ReLU networks the source says that “some
alignment occurs”. Here networks with two hidden layers are trained on two digits, to one risk. From an eighth of the
standard start and less, each layer's leading output direction is the next layer's leading input direction. The squared
norm of a layer grows by the same amount for every start and width, and the learned part has a stable rank ‖W‖_F²/‖W‖₂²
of its own, ρ. The start at scale ε and width h, of squared norm 2hε², lies in all other directions, so the whole layer
has the stable rank ρ(1 + 2hε²/growth). From the standard start hardly anything changes. With coin tosses for labels the
first layer's ρ is about three instead of one, and the second layer's is nearer to one. So a low rank is no sign of true
labels.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.features.relu_alignment.experiment import Layers, runner
from steepest.nn.data import digits, signs
from steepest.nn.types import Values

LAYERS = ("first", "second")
TRUE = 0
RANDOM = 1
SMALL = 0.125  # starts at most so large are small


class Setting(NamedTuple):
    """Images of two digits, centred, of mean square length 64; true labels and coin tosses."""

    x: Values  # (seeds, n, 64)
    y: Values  # (seeds, 2, n)


@kit.claim
class ReluAlignment(kit.Claim[Setting]):
    """Networks 64-h-h-1 with ReLU on the digits 3 and 8, logistic loss, full batch."""

    scales: tuple[kit.Positive, ...] = kit.param(
        (1.0, 0.125, 0.0625, 0.03125),
        "ε, multiples of the standard start N(0, 2/fan-in), decreasing from 1",
        scope=kit.choices((1.0, 0.125, 0.0625, 0.03125), (1.0, 0.12, 0.08, 0.04)),
    )
    widths: tuple[Annotated[int, kit.Within(4, 4096)], ...] = kit.param(
        (20, 80),
        "neurons of each hidden layer h",
        unit="neurons",
        scope=kit.choices(
            (20, 80),
            (24, 90),
            (18, 75),
            why="nearer ones do not tell how the start's share goes with h",
        ),
    )
    examples: Annotated[int, kit.Within(4, 350)] = kit.param(
        60, "images n", scope=kit.between(40, 100, "more take time")
    )
    target: Annotated[float, kit.Within(1e-6, 0.5)] = kit.param(
        0.01, "risk at which layers are compared", scope=kit.between(0.01, 0.05)
    )
    lr: kit.Positive = kit.param(
        0.3, "step size", scope=kit.between(0.25, 0.4, "smaller ones take more steps")
    )
    steps: kit.Count = kit.param(1300, "steps of descent at most", unit="steps")
    record: kit.Count = kit.param(5, "steps between two records", unit="steps")
    seeds: kit.Seeds = kit.param(10, "sets of images, with a network each")

    kind = "empirical law"
    says = {
        "layers of ReLU networks align in training if they start from small weights": (
            "aligned",
            "standard",
        ),
        "What a layer learns has one stable rank": ("learned", "learned_widths"),
    }
    tiny = {
        "scales": (1.0, 0.125, 0.0625),
        "widths": (8, 12),
        "examples": 10,
        "steps": 100,
        "target": 0.3,
        "seeds": 3,
    }
    full = {"widths": (24, 64, 160), "steps": 3000, "seeds": 12}
    out_of_scope = {"scales": (4.0, 2.0)}

    @property
    def small(self) -> tuple[float, ...]:
        """Return the small starts."""
        return tuple(scale for scale in self.scales if scale <= SMALL)

    def axes(self):
        return {"layer": LAYERS, "width": self.widths, "scale": self.scales, "small": self.small}

    def check_fields(self) -> None:
        falling = sorted(set(self.scales), reverse=True)
        if len(self.scales) < 2 or falling != list(self.scales):
            raise kit.UserError(
                f"--scales are decreasing, two at least, got {self.scales}; try 1 0.125 0.0625"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        data = signs(digits((3, 8)))
        pixels = np.asarray(data.x) - np.asarray(data.x).mean(0)
        pixels *= 8 / np.sqrt((pixels**2).sum(1).mean())
        chosen = np.stack([rng.permutation(data.n)[: self.examples] for _ in range(self.seeds)])
        true = np.asarray(data.y)[chosen]
        return Setting(
            pixels[chosen], np.stack([true, rng.choice([-1.0, 1.0], true.shape)], axis=1)
        )

    def hypotheses(self, setting):
        yield kit.assume("first scale", self.scales[0], "==", 1, "the standard start comes first")
        yield kit.assume(
            "small starts", len(self.small), ">=", 2, f"end --scales with two below {SMALL:g}"
        )

    def predict(self, setting):
        start = 2 * np.multiply.outer(self.widths, np.square(self.small))
        shape = (len(LAYERS), *start.shape)
        return kit.law(
            start=("width small", start),  # ‖W_l(0)‖_F² of both hidden layers
            learned=("layer width small", np.ones(shape)),
            widths=("layer width", np.ones((len(LAYERS), len(self.widths)))),
            growth=("width small", np.ones_like(start)),
            aligned=0.95,
            standard=0.8,
            apart=0.5,
        )

    def observe(self, setting, key):
        # true labels from each start, coin tosses from the smallest
        scales = np.array([*self.scales, self.scales[-1]])
        labels = np.array([TRUE] * len(self.scales) + [RANDOM])
        runs = []
        for width in self.widths:
            inputs = setting.x.shape[-1]
            train = runner(width, inputs, self.lr, self.steps, self.record, self.target)
            starts = kit.keys(key, self.seeds)
            runs.append(
                [train(x, y[labels], k, scales) for x, y, k in zip(*setting, starts, strict=True)]
            )
        of = lambda name: np.array([[getattr(run, name) for run in seeds] for seeds in runs])
        arrays = {name: of(name) for name in Layers._fields if name != "risk"}
        tossed = {f"random_{name}": array[:, :, -1] for name, array in arrays.items()}
        return kit.seen(
            risk=("width seed run", of("risk")),
            **{
                name: ("width seed scale layer", array[:, :, :-1]) for name, array in arrays.items()
            },
            **{name: ("width seed layer", array) for name, array in tossed.items()},
        )

    def run_conditions(self, observed):
        left = float(observed["risk"].max()) / self.target
        yield kit.assume(
            "largest risk at which layers are compared / target", left, "<=", 1, "raise --steps"
        )

    def derive(self, law, seen):
        """Return of small starts the stable ranks of what was learned, also over their mean, and how norms grew."""
        from_small = lambda name: seen[name].sel(scale=list(self.small)).rename(scale="small")
        growth = from_small("growth")
        rho = from_small("stable_rank") / (1 + law.start / growth)
        of_layers = growth.mean("layer")
        last = law.start.isel(small=-1, drop=True)
        return {
            "rho": rho,
            "random_rho": seen.random_stable_rank / (1 + last / seen.random_growth),
            "learned": rho / rho.mean("small"),
            "learned_widths": rho.mean("small") / rho.mean(("width", "small")),
            "grown": of_layers / of_layers.mean(("width", "small")),
            "least_aligned": from_small("aligned").min("layer"),
        }

    def judge(self, law, seen):
        standard = (seen.stable_rank / seen.first_rank).sel(scale=1.0, drop=True)
        apart = seen.aligned.sel(scale=1.0, layer="first", drop=True)
        more = seen.random_rho.mean("width") - seen.rho.mean(("width", "small"))
        yield kit.at_least(
            "aligned",
            law.aligned,
            seen.least_aligned,
            over="width small",
            label="small starts: least alignment of neighbouring layers",
        )
        yield kit.at_least(
            "standard",
            law.standard,
            standard.min("layer"),
            over="width",
            label="standard start: stable rank over that at the start, lesser layer",
        )
        yield kit.at_most(
            "standard_aligned",
            law.apart,
            apart,
            label="standard start: alignment of the two hidden layers",
        )
        yield kit.follows(
            "learned",
            law.learned,
            seen.learned,
            0.06,  # the start's largest singular value leaves 2 % at an eighth, ten networks 3 %
            label="stable rank over 1 + 2hε²/growth, over its mean over starts",
        )
        yield kit.follows(
            "learned_widths",
            law.widths,
            seen.learned_widths,
            0.05,  # ten networks leave 0.02
            label="stable rank over 1 + 2hε²/growth, over its mean over widths",
        )
        yield kit.follows(
            "growth", law.growth, seen.grown, 0.15, label="growth of ‖W‖_F² over its mean"
        )
        yield kit.at_least(
            "random_first",
            0.5,
            more.sel(layer="first", drop=True),
            label="ρ of the first layer, random labels − true labels",
        )
        yield kit.at_most(
            "random_second",
            0.0,
            more.sel(layer="second", drop=True),
            label="ρ of the second layer, random labels − true labels",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "the stable rank is the same at any small start",
            "as of layers of deep linear networks",
            start=0 * law.start,
        )
        yield kit.rival(
            "the start adds a share in proportion to ε",
            "starts are added, not their squares",
            start=law.start * law.small.max() / law.small,
        )
        yield kit.rival(
            "the start adds the same at any width",
            "the start's largest singular value does not depend on the width",
            start=law.start / law.width * law.width.max(),
        )
        yield kit.rival(
            "growth and ranks fall like 1/√h",
            "wide layers need not move as far",
            growth=law.growth * (law.width / law.width.mean()) ** -0.5,
            widths=law.widths * (law.width / law.width.mean()) ** -0.5,
        )
        yield kit.rival(
            "fully aligned", "layers of deep linear networks align fully", aligned=0.9999
        )
        yield kit.rival(
            "from the standard start nothing changes at all",
            "wide networks are lazy",
            accepted="the lesser layer keeps 95 to 100 % of the rank, and 80 % is what is judged",
            standard=0.999,
        )

    def controls(self, seen):
        turned = {
            name: (seen[name].dims, seen[name].isel(scale=slice(None, None, -1)).values)
            for name in ("stable_rank", "first_rank", "growth", "aligned")
        }
        tosses = {
            name: seen[f"random_{name}"].expand_dims(scale=seen.scale)
            for name in ("stable_rank", "first_rank", "growth", "aligned")
        }
        standard = {
            name: seen[name].sel(scale=1.0, drop=True).expand_dims(scale=seen.scale)
            for name in ("stable_rank", "growth", "aligned")
        }
        yield kit.control(
            "the standard start for all small ones",
            "hardly anything is learned beside it",
            **standard,
        )
        yield kit.control(
            "the largest start for the smallest one, and so on", "the start decides", **turned
        )
        yield kit.control(
            "random labels from the smallest start, whatever the start",
            "they need more than one direction, and here they have one start",
            id="coin_tosses",
            **tosses,
        )
        yield kit.control(
            "true labels for random ones",
            "their layers are alike",
            random_stable_rank=seen.stable_rank.isel(scale=-1, drop=True),
            random_growth=seen.growth.isel(scale=-1, drop=True),
        )

    def figure(self, law, seen, rivals):
        widest = seen.isel(width=-1).mean("seed")
        rho = widest.rho.mean("small")
        share = 2 * self.widths[-1] * seen.scale**2
        whole = rho * (1 + share / widest.growth)
        ends = (self.scales[-1], self.scales[0])
        panels = [
            kit.panel(
                f"Stable rank of the {layer} layer, h = {self.widths[-1]}",
                "start ε",
                "‖W‖_F² / ‖W‖₂²",
                kit.observed_curve(
                    self.scales, widest.stable_rank.sel(layer=layer), "true labels", kind="points"
                ),
                kit.predicted_curve(
                    self.small,
                    whole.sel(layer=layer, scale=list(self.small)),
                    "ρ (1 + 2hε²/growth)",
                ),
                kit.observed_curve(
                    ends[:1],
                    widest.random_stable_rank.sel(layer=[layer]),
                    "random labels",
                    kind="points",
                    shade=1,
                ),
                kit.rival_curve(ends, (1, 1), "rank one"),
                log="xy",
            )
            for layer in LAYERS
        ]
        aligned = kit.curves(
            "Alignment of the hidden layers",
            None,
            seen.aligned.sel(layer="first"),
            over="scale",
            by="width",
            name="h = {}",
            x="start ε",
            y="|⟨v₂, u₁⟩|",
            log="x",
            ylim=(0, 1.1),
        )
        yield from panels
        yield aligned
