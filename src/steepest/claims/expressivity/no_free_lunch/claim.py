"""With random labels, m samples of N images leave every memorizing learner an error of ½(1 − 1/N)^m.

A memorizing learner repeats the labels that it saw. Its error is the mean share of all N images at which it errs, after
m samples with replacement. Unseen labels are fair coins, whatever the learner does with the seen labels: nearest
neighbours, kernels and trained networks err at half of the unseen images. So for every learner there is a function on
which the learner is no better, and a theory of generalization must state what it assumes about the function. If labels
depend on the image, the same learners err less. On a line with few changes of sign, and on a circle whose labels have a
smooth probability, the nearest neighbour's error is known exactly.
"""

from typing import Annotated, NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.expressivity.no_free_lunch.experiment import (
    kernel,
    nearest,
    network,
    on_the_circle,
    on_the_line,
)
from steepest.claims.expressivity.no_free_lunch.theory import circle_error, line_error, unseen
from steepest.nn.data import digits, on_sphere
from steepest.nn.types import Values

LEARNERS = ("nearest", "kernel", "network")
NAMED = {"nearest": "nearest neighbour", "kernel": "kernel", "network": "trained network"}
REAL = 12  # samples of real labels, for the comparison
LINE = 24  # functions on the line for one on the images: they cost nothing
CIRCLE = 5  # sets of samples on the circle for one function on the images
LEAN = 0.9  # a: labels on the circle have probabilities from 0.05 to 0.95


class Setting(NamedTuple):
    """Images, centred and of unit length, and whether their digit is odd."""

    x: Values  # (N, d)
    real: Values  # (N,), ±1


@kit.claim
class NoFreeLunch(kit.Claim[Setting]):
    """Digits as N points with labels ±1 tossed for each, samples with replacement; also a line of cells."""

    cells: Annotated[int, kit.Within(8, 1797)] = kit.param(
        256,
        "images, and cells of the line, N",
        scope=kit.between(240, 320, "fewer are soon all seen, more take time"),
    )
    samples: tuple[kit.Count, ...] = kit.param(
        (64, 256, 512),
        "drawn with replacement, m",
        scope=kit.choices((64, 256, 512), (40, 120, 360), (100, 200, 400)),
    )
    functions: Annotated[int, kit.Within(30, 5000)] = kit.param(
        400, "independent labellings and samples"
    )
    networks: Annotated[int, kit.Within(10, 10_000)] = kit.param(
        60, "networks of the functions that networks learn too"
    )
    width: Annotated[int, kit.Within(2, 1024)] = kit.param(
        32, "width of the networks", unit="neurons", scope=kit.between(16, 64)
    )
    steps: kit.Count = kit.param(80, "steps of Adam", unit="steps", scope=kit.between(40, 120))
    changes: Annotated[int, kit.Within(1, 64)] = kit.param(
        8, "changes of sign along the line", scope=kit.between(6, 12)
    )
    cycles: Annotated[int, kit.Within(1, 256)] = kit.param(
        50,
        "cycles of the labels' probability around the circle, k",
        scope=kit.between(30, 70, "few are seen by every set of samples, many by none"),
    )
    heads: kit.Fraction = kit.param(0.5, "probability of the label +1")

    kind = "theorem"
    says = {"an error of ½(1 − 1/N)^m": ("nearest", "kernel")}
    tiny = {
        "cells": 32,
        "samples": (8, 32),
        "functions": 300,
        "networks": 40,
        "steps": 20,
        "width": 8,
        "changes": 2,
    }
    full = {"functions": 2000, "networks": 100}
    out_of_scope = {"heads": 0.8}

    def axes(self):
        return {"samples": self.samples}

    def check_fields(self) -> None:
        if len(self.samples) < 2 or sorted(set(self.samples)) != list(self.samples):
            raise kit.UserError(
                f"samples must be at least two increasing numbers, got {self.samples}; try 64 256 512"
            )
        if self.networks > self.functions:
            raise kit.UserError(
                f"networks learn some of the functions: networks must be at most {self.functions}, got {self.networks}"
            )
        if self.changes >= self.cells:
            raise kit.UserError(
                f"a line of {self.cells} cells has {self.cells - 1} borders, got {self.changes} changes; "
                "lower --changes"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        data = on_sphere(digits())
        chosen = rng.permutation(data.n)[: self.cells]
        digit = np.asarray(data.y).argmax(1)
        return Setting(np.asarray(data.x)[chosen], np.where(digit % 2, 1.0, -1.0)[chosen])

    def hypotheses(self, setting):
        cosines = np.triu(setting.x @ setting.x.T, 1)
        unmet = self.networks * self.cells * (1 - 1 / self.cells) ** self.samples[-1]
        yield kit.assume(
            "probability of the label +1, off a half",
            abs(self.heads - 0.5),
            "<=",
            0,
            "labels must be fair coins",
        )
        yield kit.assume(
            "largest cosine of two images", float(cosines.max()), "<", 1 - 1e-6, "two are the same"
        )
        yield kit.assume(
            "cells unseen at the most samples, in all functions of the networks",
            unmet,
            ">=",
            100,
            "nothing is left to err at; lower --samples",
        )

    def predict(self, setting):
        m = np.array(self.samples)
        return kit.law(
            error=("samples", unseen(self.cells, m) / 2),
            line=("samples", [line_error(self.cells, int(k), self.changes) for k in m]),
            circle=("samples", [circle_error(int(k), self.cycles, LEAN) for k in m]),
            half=0.5,
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        shape = (self.functions, self.cells)
        labels = np.where(rng.random(shape) < self.heads, 1.0, -1.0)
        drawn = rng.integers(0, self.cells, (self.functions, max(self.samples)))
        seen_by = np.zeros((self.functions, len(self.samples), self.cells), bool)
        for place, m in enumerate(self.samples):
            for function in range(self.functions):
                seen_by[function, place, drawn[function, :m]] = True
        counts = {"nearest": self.functions, "kernel": self.functions, "network": self.networks}
        arrays: dict[str, tuple[str, Values]] = {}
        for name, count in counts.items():
            # real labels for as many samples as random ones, of networks fewer
            on = min(REAL, count) if name == "network" else count
            real = np.broadcast_to(setting.real, (on, self.cells))
            both = (
                np.concatenate([labels[:count], real]),
                np.concatenate([seen_by[:count], seen_by[:on]]),
            )
            given = self.answers(name, setting.x, *both, key)
            wrong = given[:count] != labels[:count, None]
            wrong_on_real = given[count:] != real[:, None]
            hidden = ~seen_by[:count]
            seeds, pairs = ("draw", "start") if name == "network" else ("seed", "seed")
            # over the mean count, so that a function whose cells were all seen counts as nothing
            unmet = hidden.sum((1, 2)).mean()
            arrays[f"unseen_{name}"] = (seeds, (wrong & hidden).sum((1, 2)) / unmet)
            arrays[f"tossed_{name}"] = (f"{pairs} samples", wrong[:on].mean(-1))
            arrays[f"real_{name}"] = (f"{pairs} samples", wrong_on_real.mean(-1))
        count = LINE * self.functions
        line = on_the_line(rng, count, self.cells, self.samples, self.changes)
        tossed = rng.permutation(arrays["tossed_nearest"][1].repeat(LINE, axis=0))
        around = CIRCLE * self.functions
        circle = on_the_circle(rng, around, self.samples, self.cycles, LEAN)
        rough = on_the_circle(rng, around, self.samples, self.cells, LEAN)
        return kit.seen(
            **arrays,
            line=("walk samples", line),
            tossed_line=("walk samples", tossed),
            circle=("set samples", circle),
            rough_circle=("set samples", rough),
        )

    def answers(
        self, name: str, x: Values, labels: Values, seen_by: Values, key: kit.Key
    ) -> Values:
        """Return what a learner answers everywhere, from what it saw, ``(functions, samples, N)``."""
        if name == "network":
            return network(x, labels, seen_by, key, self.width, self.steps)
        return (nearest if name == "nearest" else kernel)(x, labels, seen_by)

    def judge(self, law, seen):
        middle = len(self.samples) // 2
        checks = [
            kit.follows(
                name,
                law.error,
                seen[f"tossed_{name}"],
                0.08,  # four hundred functions leave 0.04 where most is seen
                label=f"share of all images at which {NAMED[name]} errs",
            )
            for name in ("nearest", "kernel")
        ]
        checks.append(
            kit.follows(
                "line",
                law.line,
                seen.line,
                0.08,
                label=f"line with {self.changes} changes: error of the nearest neighbour",
            )
        )
        checks.append(
            kit.follows(
                "circle",
                law.circle,
                seen.circle,
                0.02,  # the interval is 0.5 %
                label=f"circle with {self.cycles} cycles: error of the nearest neighbour",
            )
        )
        for name in LEARNERS:
            gap = (seen[f"tossed_{name}"] - seen[f"real_{name}"]).isel(samples=middle, drop=True)
            checks += [
                kit.follows(
                    f"unseen_{name}",
                    law.half,
                    seen[f"unseen_{name}"],
                    0.03 if name == "network" else 0.015,
                    absolute=True,
                    label=f"share of the unseen images at which {NAMED[name]} errs",
                ),
                kit.at_least(
                    f"real_{name}",
                    0.0,
                    gap,
                    label=f"{NAMED[name]}, {self.samples[middle]} samples: error on random labels − on odd digits",
                ),
            ]
        return checks

    def rivals(self, setting, law):
        m = law.samples
        first = law.error.isel(samples=0, drop=True)
        yield kit.rival("half of all is wrong", "“error at least half”", error=0.5 + 0 * law.error)
        yield kit.rival(
            "all that was not seen is wrong: (1 − 1/N)^m",
            "what was not seen is not known",
            error=2 * law.error,
        )
        yield kit.rival(
            "½(1 − m/N)", "m samples are m cells", error=(1 - m / self.cells).clip(min=1e-6) / 2
        )
        yield kit.rival(
            "error falls like m^(−1/2)",
            "a capacity of fixed dimension",
            error=first * (m / m[0]) ** -0.5,
        )
        yield kit.rival(
            "error falls like 1/m",
            "a capacity of fixed dimension, without noise",
            error=first * m[0] / m,
        )
        yield kit.rival(
            "a good learner guesses 55 % of the unseen right",
            "neighbours are more alike than strangers",
            id="better_guess",
            half=0.45,
        )
        yield from self.rivals_of_neighbours(law)

    def rivals_of_neighbours(self, law):
        """Return wrong theories of the nearest neighbour's error on the line and on the circle."""
        m = law.samples
        yield kit.rival("line: s/m", "each change costs a gap of 1/m", line=self.changes / m)
        yield kit.rival(
            "line: s/(2m), cells of no length",
            "each change costs a quarter of a gap that is twice as long as others",
            line=self.changes / (2 * m),
        )
        yield kit.rival(
            "circle: ½ − a/π",
            "the answer that is more likely, everywhere",
            circle=0.5 - LEAN / np.pi,
        )
        yield kit.rival(
            "circle: ½ − a²/4 at every m",
            "the neighbour's label has the point's own probability",
            circle=0.5 - LEAN**2 / 4,
        )
        yield kit.rival("line: as on random labels", "no learner beats another", line=law.error)

    def controls(self, seen):
        of_real = {
            **{f"tossed_{name}": seen[f"real_{name}"] for name in LEARNERS},
            **{f"real_{name}": seen[f"tossed_{name}"] for name in LEARNERS},
        }
        yield kit.control(
            "odd digits in place of random labels",
            "labels that depend on the image can be guessed",
            **of_real,
        )
        yield kit.control(
            "random labels in place of few changes",
            "neighbours are then strangers",
            line=seen.tossed_line,
        )
        yield kit.control(
            f"{self.cells} cycles around the circle",
            "neighbours are then strangers",
            id="rough",
            circle=seen.rough_circle,
        )

    def figure(self, law, seen, rivals):
        m = np.array(self.samples, float)
        along = np.geomspace(m[0], m[-1], 60)
        theory = unseen(self.cells, along) / 2
        shades = dict(zip(LEARNERS, (0.0, 0.5, 1.0), strict=True))
        mean = lambda name: seen[name].mean([dim for dim in seen[name].dims if dim != "samples"])
        # side by side: their shares are nearly the same
        aside = dict(zip(LEARNERS, (0.93, 1.0, 1.07), strict=True))
        points = lambda labels: [
            kit.observed_curve(
                m * aside[name], mean(f"{labels}_{name}"), NAMED[name], kind="points", shade=shade
            )
            for name, shade in shades.items()
        ]
        yield kit.panel(
            "Random labels: nobody beats half of what was not seen",
            "samples m (markers side by side)",
            "share wrong",
            *points("tossed"),
            kit.predicted_curve(along, theory, "½(1 − 1/N)^m, half of the unseen"),
            kit.rival_curve(along, theory[0] * (m[0] / along) ** 0.5, "m^(−1/2)"),
            log="x",
            ylim=(0, 0.55),
        )
        yield kit.panel(
            "True labels, odd or even: everybody does better",
            "samples m (markers side by side)",
            "share wrong",
            *points("real"),
            kit.rival_curve(along, theory, "law of random labels"),
            log="x",
            ylim=(0, 0.55),
        )
        yield kit.curves(
            f"A structured class, {self.changes} changes of sign: so does its theory",
            law.line,
            seen.line,
            over="samples",
            x="samples m",
            y="share wrong",
            rivals={"law of random labels": law.error},
            log="x",
            ylim=(0, None),
        )
