"""Quantities fall like 1/n, one in each network."""

from dataclasses import dataclass

import numpy as np

from steepest.claim import (
    Claim,
    Control,
    Count,
    Observation,
    Prediction,
    Rival,
    Seeds,
    equal,
    numpy_generator,
    observed_curve,
    panel,
)


@dataclass(frozen=True)
class Plain(Claim):
    """Noise of two per cent around a law, in the older form of a claim."""

    widths: tuple[Count, ...] = (10, 20, 40, 80)  # n [neurons]
    seeds: Seeds = 8  # repetitions [1]

    kind = "theorem"
    statement = "y = 1/n"
    source = "this test"
    headline = ("each_0", "each_1", "each_2", "each_3")
    tiny = {"seeds": 3}
    out_of_scope = {}

    def predict(self, setting):
        return Prediction(y=("width", 1 / np.array(self.widths)))

    def observe(self, setting, key):
        noise = 1 + 0.02 * numpy_generator(key).standard_normal((self.seeds, len(self.widths)))
        widths = np.array(self.widths)
        return Observation(
            y=("seed width", noise / widths),
            steps=("seed width", noise * np.sqrt(widths)),
            risk=("seed width", -noise / widths**2),
            same=("seed", np.full(self.seeds, 3.0)),
        )

    def judge(self, predicted, observed):
        laws = zip(predicted["y"], observed["y"].T, strict=True)
        return [equal(f"each_{i}", law, measured, 0.05) for i, (law, measured) in enumerate(laws)]

    def rivals(self, setting, predicted):
        return [Rival("half", predicted.replace(y=("width", predicted["y"] / 2)))]

    def controls(self, observed):
        flat = observed.replace(y=("seed width", np.full_like(observed["y"], 0.03)))
        return [Control("no_width", flat)]

    def panels(self, predicted, observed):
        return (panel("It falls", "n", "y", observed_curve(self.widths, observed["y"])),)
