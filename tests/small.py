"""A catalogue of small claims in files of their own, run for real in milliseconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import steepest.claims
from steepest import catalogue

SOURCE = '''"""{says}

What decays keeps decaying, if ``rate`` is below one; <b>markup</b> stays text.
"""

from dataclasses import dataclass

import numpy as np

from steepest.claim import (
    Claim,
    Control,
    Observation,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    bound,
    context_curve,
    equal,
    exponent,
    idle,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)


@dataclass(frozen=True)
class Trial(Claim):
    """A decay whose rate is measured."""

    rate: Positive = 0.5  # what is kept each step [1/step]
    bias: float = 0.0  # what the experiment adds to the rate [1/step]
    spread: float = 0.001  # scatter between seeds [1/step]
    seeds: Seeds = 4  # repetitions [1]
    rivalry: float = 0.2  # how far off the wrong theory is [1/step]

    kind = "theorem"
    statement = r"x_{{t+1}} = \\rho\\, x_t \\;\\Longrightarrow\\; x_t = \\rho^t x_0 < \\Theta(1)"
    source = "A lecture, <i>page</i> 3; figure 1 of [@cohen2021], [@nobody1999], [@zinkevich2003]"
    corrections = ("The source prints ρ + 1; it is ρ & nothing else.",)
    remarks = ("A remark with `code` and <script>alert(1)</script>.",)
    full = {{"seeds": 8}}
    tiny = {{"seeds": 3}}
    out_of_scope = {{"rate": 1.5}}

    def hypotheses(self, setting):
        return [assume("rate below one", self.rate, "<", 1.0, "choose --rate below 1")]

    def predict(self, setting):
        return Prediction(rate=self.rate, path=("step", self.rate ** np.arange(60.0)))

    def observe(self, setting, key):
        rates = self.rate + self.bias + self.spread * np.linspace(-1, 1, self.seeds)
        paths = rates[:, None] ** np.arange(60.0)
        return Observation(rate=("seed", rates), path=("seed step", paths))

    def judge(self, predicted, observed):
        rate = observed["rate"]
        n = np.array([10.0, 20.0, 40.0, 80.0])
        size = n**2 * (1 + 0.01 * np.cos(n))
        note = "a note with <script>alert(2)</script>"
        return [
            equal("rate", predicted["rate"], rate, 0.1, note=note),
            bound("largest_rate", rate.max(), at_most=1.0),
            idle(
                exponent("size", 2.0, n, size, 0.1, label="size against n"),
                "it never sees the rate",
            ),
        ]

    def controls(self, observed):
        grown = observed.replace(rate=("seed", observed["rate"] + 1))
        return [Control("growth", grown, "nothing decays there", "what grows")]

    def rivals(self, setting, predicted):
        wrong = predicted.replace(rate=self.rate - self.rivalry)
        return [Rival("faster", wrong, "it <looks> faster", label="a faster decay")]

    def panels(self, predicted, observed):
        steps = np.arange(60)
        decay = panel(
            "Decay <of> everything",
            "step",
            "size & sign",
            observed_curve(steps, observed["path"], "seeds"),
            predicted_curve(steps, predicted["path"], "ρ^t"),
            rival_curve(steps, 0.9 * predicted["path"], "<script>"),
            log="y",
            ylim=(1e-9, None),
        )
        shifted = [
            observed_curve(np.arange(4), k + np.resize(observed["rate"], 4), shade=k / 3)
            for k in range(4)
        ]
        one = context_curve([0, 3], [1, 1], "one", kind="dashed")
        return (decay, panel("Rates", "seed", "rate", *shifted, one))
'''

CLAIMS = {
    "first_steps/plain_decay.py": "What is multiplied by ρ decays like ρ^t.",
    "first_steps/shifted_decay.py": "What is multiplied by ρ decays like ρ^t, wherever it starts & ends.",
    "first_steps/wide_decay.py": "What is multiplied by a random ρ decays like its mean.",
    "last_steps/growing.py": "What is multiplied by more than one is outside of this theory (Nobody 1999).",
    "last_steps/powerless.py": "Nothing tells this theory from a wrong one.",
    "last_steps/unrun.py": "Nobody has run this one.",
}

RUNS = (
    ("plain-decay", {}),
    ("plain-decay", {"seed": 3}),
    ("plain-decay", {"rate": 0.9, "preset": "full"}),
    ("shifted-decay", {"bias": 0.3}),
    ("wide-decay", {"bias": 0.04, "spread": 0.01}),
    ("growing", {"rate": 1.5}),
    ("powerless", {"rivalry": 0.0}),
)


@contextmanager
def small_catalogue(root: Path) -> Iterator[Path]:
    """The small claims instead of the real ones, from files under ``root``."""
    for path, says in CLAIMS.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(SOURCE.format(says=says), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "ROOT", root)
        patch.setattr(catalogue, "registered", dict)
        patch.setattr(steepest.claims, "__path__", [*steepest.claims.__path__, str(root)])
        forget()
        try:
            yield root
        finally:
            forget()
    catalogue.built_in.cache_clear()


def forget() -> None:
    """Forget the catalogue, and the small claims that were imported."""
    catalogue.built_in.cache_clear()
    chapters = {path.partition("/")[0] for path in CLAIMS}
    for chapter in chapters:
        package = f"steepest.claims.{chapter}"
        vars(steepest.claims).pop(chapter, None)
        for name in [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]:
            del sys.modules[name]
