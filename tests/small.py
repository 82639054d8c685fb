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

import numpy as np

from steepest import kit


@kit.claim
class Trial(kit.Claim[None]):
    """A decay whose rate is measured."""

    rate: kit.Positive = kit.param(0.5, "what is kept each step", unit="1/step")
    bias: float = kit.param(0.0, "what the experiment adds to the rate", unit="1/step")
    spread: float = kit.param(0.001, "scatter between seeds", unit="1/step")
    seeds: kit.Seeds = kit.param(4, "repetitions")
    rivalry: float = kit.param(0.2, "how far off the wrong theory is", unit="1/step")

    kind = "theorem"
    says = {{"{says}": "rate"}}
    statement = r"x_{{t+1}} = \\rho\\, x_t \\;\\Longrightarrow\\; x_t = \\rho^t x_0 < \\Theta(1)"
    source = "A lecture, <i>page</i> 3; figure 1 of [@cohen2021], [@nobody1999], [@zinkevich2003]"
    corrections = ("The source prints ρ + 1; it is ρ & nothing else.",)
    remarks = ("A remark with `code` and <script>alert(1)</script>.",)
    tiny = {{"seeds": 3}}
    full = {{"seeds": 8}}
    out_of_scope = {{"rate": 1.5}}

    def axes(self):
        return {{"step": np.arange(60), "n": (10, 20, 40, 80)}}

    def hypotheses(self, setting):
        return [kit.assume("rate below one", self.rate, "<", 1.0, "choose --rate below 1")]

    def predict(self, setting):
        return kit.law(rate=self.rate, path=("step", self.rate ** np.arange(60.0)))

    def observe(self, setting, key):
        rates = self.rate + self.bias + self.spread * np.linspace(-1, 1, self.seeds)
        n = np.array([10.0, 20.0, 40.0, 80.0])
        return kit.seen(
            rate=("seed", rates),
            path=("seed step", rates[:, None] ** np.arange(60.0)),
            size=("seed n", np.tile(n**2 * (1 + 0.01 * np.cos(n)), (self.seeds, 1))),
        )

    def judge(self, law, seen):
        note = "a note with <script>alert(2)</script>"
        size = kit.power("size", seen.n**2, seen.size, 0.1, over="n", label="size against n")
        return [
            kit.follows("rate", law.rate, seen.rate, 0.1, note=note),
            kit.at_most("largest_rate", 1.0, seen.rate.max("seed")),
            kit.idle(size, "it never sees the rate"),
        ]

    def rivals(self, setting, law):
        why = "it <looks> faster"
        return [kit.rival("a faster decay", why, id="faster", rate=law.rate - self.rivalry)]

    def controls(self, seen):
        return [kit.control("what grows", "nothing decays there", id="growth", rate=seen.rate + 1)]

    def figure(self, law, seen, rivals):
        steps = np.arange(60)
        decay = kit.panel(
            "Decay <of> everything",
            "step",
            "size & sign",
            kit.observed_curve(steps, seen.path, "seeds"),
            kit.predicted_curve(steps, law.path, "ρ^t"),
            kit.rival_curve(steps, 0.9 * law.path, "<script>"),
            log="y",
            ylim=(1e-9, None),
        )
        shifted = [
            kit.observed_curve(np.arange(4), k + np.resize(seen.rate, 4), shade=k / 3)
            for k in range(4)
        ]
        one = kit.context_curve([0, 3], [1, 1], "one", kind="dashed")
        return (decay, kit.panel("Rates", "seed", "rate", *shifted, one))
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
