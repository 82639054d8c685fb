"""Sweeps of the small claims that are only made up: whatever a page may have to show, without computing it."""

import csv
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from steepest import catalogue
from steepest.core.panels import Map, observed_curve, panel, predicted_curve

WORDS = ("holds", "fails", "inconclusive", "out-of-range", "crashed")
HOSTILE = "</script><script>alert(3)</script><!-- & \u2028"


@dataclass(frozen=True)
class Made:
    """Has what a page needs of a sweep."""

    claim: str
    key: str
    across: tuple[float, ...]
    up: tuple[float, ...]
    preset: str = "quick"
    fixed: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    scattered: bool = False
    causes: int = 2
    log: bool = True
    stale: bool = False

    @property
    def plan(self):
        return SimpleNamespace(entry=catalogue.entry(self.claim), stale=self.stale)

    @property
    def labels(self):
        return {"rate": "rate"}

    @property
    def command(self):
        return f"steepest sweep {self.claim} --rate {self.across[0]:g}:{self.across[-1]:g}"

    @property
    def axes(self):
        return tuple(
            f"{name}: {v[0]:g} to {v[-1]:g}, {len(v)} values, {how}"
            for name, v, how in (
                ("rate", self.across, "log" if self.log else "linear"),
                ("bias", self.up, "linear"),
            )
        )

    @property
    def places(self):
        if self.scattered:
            return np.array(self.across), np.array(self.up)
        x, y = np.meshgrid(self.across, self.up, indexing="ij")  # the last field varies first
        return x.ravel(), y.ravel()

    @property
    def total(self):
        return len(self.places[0])

    @property
    def measured(self):
        x, y = self.places
        return np.where(self.verdict < 3, x * (1 + y) + 0.01 * np.sin(9 * x * y), np.nan)

    @property
    def verdict(self):
        """Words by the distance to a boundary, some broken off, the last not there yet."""
        x, y = self.places
        found = np.digitize(np.log(x) + y, [-1.0, 0.0, 0.5, 1.5]).astype(float)
        found[-1] = np.nan
        return found

    @property
    def said(self):
        return ["" if math.isnan(v) else WORDS[int(v)] for v in self.verdict]

    @property
    def points(self):
        return tuple({"verdict": word} if word else None for word in self.said)

    @property
    def counts(self):
        return dict(Counter(filter(None, self.said)))

    @property
    def crashes(self):
        return {f"reason {i}: {HOSTILE}": self.causes - i for i in range(self.causes)}

    def table(self):
        x, y = self.places
        rate = self.measured
        theirs = x * (1 + y)
        columns = {
            "rate_measured": rate,
            "rate_predicted": theirs,
            "rate_low": 0.9 * rate,
            "rate_high": 1.1 * rate,
        }
        because = [f"because {HOSTILE}" if word == "crashed" else "" for word in self.said]
        told = {"rate": x.tolist(), "bias": y.tolist(), "verdict": self.said, "reason": because}
        return told | {name: column.tolist() for name, column in columns.items()}

    @property
    def panels(self):
        shape = (len(self.across), len(self.up))
        grid = lambda v: np.array(v) if self.scattered else np.reshape(v, shape).T
        x = np.array(self.across)
        table = self.table()
        edge = (predicted_curve(x, 0.5 - np.log(x) / 4, f"where it ends {HOSTILE}"),)
        look = {
            "x": "what is kept [1/step]",
            "y": "what is added [1/step]",
            "across": self.across,
            "up": self.up,
        }
        look |= {"curves": edge, "xscale": "log" if self.log else "linear"}
        maps = [Map("Verdict", values=grid(self.verdict), label="verdict", words=WORDS, **look)]
        for side in ("measured", "predicted"):
            maps.append(
                Map(
                    f"rate, {side}",
                    values=grid(table[f"rate_{side}"]),
                    label="rate",
                    limits=(0, 9),
                    **look,
                )
            )
        line = panel(
            "rate along rate",
            "rate",
            "rate",
            observed_curve(x, x, "bias = 0"),
            predicted_curve(x, 1.1 * x),
            log="x",
        )
        return (*maps, line)

    def to_csv(self, path):
        table = self.table()
        with open(path, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(table)
            rows.writerows(zip(*table.values(), strict=True))
        return Path(path)


def made(claim="plain-decay", key="0123456789abcdef", columns=24, rows=16, **other):
    """A sweep over a grid."""
    across = np.geomspace(0.05, 5, columns)
    up = np.linspace(0, 0.9, rows)
    return Made(claim, key, tuple(across.tolist()), tuple(up.tolist()), **other)


def by_claim(sweeps):
    """Made-up sweeps as the atlas gathers them."""
    claims = dict.fromkeys(sweep.claim for sweep in sweeps)
    return {claim: [sweep for sweep in sweeps if sweep.claim == claim] for claim in claims}
