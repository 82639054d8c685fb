"""How often the largest curvature is missed: intervals of ten kinds of networks beside their dense Hessians.

Every network has at most 500 weights; its Hessian is formed in double precision, and products with it are taken in
single precision, as ``measure`` takes them with its defaults (one pair, residuals of a hundredth). *Before* is
the search that ends with the residual, and value ± residual; *after* the one that goes on until a larger eigenvalue
would have shown, and from the value less the residual to the bound. A miss is an eigenvalue above the interval by more
than rounding, 10⁻⁵ of the largest in size. At last, operators whose spectra are made, with several starts.

python benchmarks/largest/run.py [--first 5000] [--networks 100] [--record] in an environment with torch.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))
from networks import KINDS, dense_hessian, network

from steepest.krylov import top_eigenpairs

RECORD = Path(__file__).with_name("record.json")
COLUMNS = ["networks", "number", "missed before", "missed", "products before", "products", "above"]
TOLERANCE = 1e-2
ROUNDING = 1e-5
SIZE = 2000
STARTS = 100
TO_SHOW = [
    "missed before, missed: intervals that the largest eigenvalue of the dense Hessian lies above.",
    "products before, products: with the Hessian, median and mean.",
    "above: median of how far the interval goes beyond the value, of the value.",
]


class Found(NamedTuple):
    """One search beside the truth."""

    before: bool
    after: bool
    products_before: int
    products: int
    above: float


def search(operator: np.ndarray, seed: list[int], largest: float, scale: float) -> Found:
    """Search for the largest eigenvalue in both ways; the operator is a matrix, or a diagonal."""
    single = operator.astype(np.float32)
    product = (lambda v: v @ single) if single.ndim == 2 else (lambda v: v * single)
    start = np.random.default_rng(seed).standard_normal(len(single)).astype(np.float32)
    old = top_eigenpairs(product, start, tolerance=TOLERANCE, missed=None)
    new = top_eigenpairs(product, start, tolerance=TOLERANCE)
    assert new.bound is not None
    least = largest - ROUNDING * scale
    value = float(new.values[0])
    return Found(
        bool(old.values[0] + old.residuals[0] < least),
        bool(new.bound < least),
        old.products,
        new.products,
        (new.bound - value) / abs(value) if value else 0.0,
    )


def of_networks(kind: str, first: int, count: int) -> Iterator[Found]:
    """Yield searches of networks of a kind, one of each."""
    for seed in range(first, first + count):
        hessian = dense_hessian(network(kind, seed))
        hessian = (hessian + hessian.T) / 2
        values = np.linalg.eigvalsh(hessian)
        yield search(hessian, [seed, 1], values[-1], np.abs(values).max())


def spectra() -> dict[str, np.ndarray]:
    """Return spectra that are hard, or odd."""
    bulk = 0.02 * np.random.default_rng(0).standard_normal(SIZE - 10)
    return {
        "ten within a hundredth": np.r_[1 + 1e-3 * np.arange(10), bulk],
        "two, 1 and 1.08": np.r_[1, 1.08, np.zeros(8), bulk],
        "one that occurs ten times": np.r_[np.ones(10), bulk],
        "even": np.linspace(0, 1, SIZE),
        "even and below zero": -np.linspace(1e-3, 1, SIZE),
        "a large negative end": np.r_[-1000, -500, np.linspace(-1, 1, SIZE - 2)],
        "powers of the number": 1 / np.arange(1, SIZE + 1),
        "rank one": np.r_[1, np.zeros(SIZE - 1)],
        "zero": np.zeros(SIZE),
    }


def row(name: str, results: list[Found]) -> list[str]:
    """Return a row of the table."""
    before, after, old, new, above = (
        np.array(column, float) for column in zip(*results, strict=True)
    )
    return [
        name,
        str(len(results)),
        str(int(before.sum())),
        str(int(after.sum())),
        f"{np.median(old):.0f}, {old.mean():.1f}",
        f"{np.median(new):.0f}, {new.mean():.1f}",
        f"{np.median(above):.1g}",
    ]


def main() -> None:
    """Print the tables, and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(*COLUMNS, sep=" | ")
    total: list[Found] = []
    rows = []
    for kind in KINDS:
        results = list(of_networks(kind, options.first, options.networks))
        total += results
        rows.append(row(kind, results))
        print(*rows[-1], sep=" | ", flush=True)
    rows.append(row("all", total))
    print(*rows[-1], sep=" | ", flush=True)
    made = []
    for name, values in spectra().items():
        ends = values.max(), np.abs(values).max()
        seeds = [[options.first + start, 2] for start in range(STARTS)]
        made.append(row(name, [search(values, seed, *ends) for seed in seeds]))
        print(*made[-1], sep=" | ", flush=True)
    if options.record and __doc__:
        tables = [
            {"columns": COLUMNS, "rows": rows},
            {"columns": ["eigenvalues", *COLUMNS[1:]], "rows": made},
        ]
        says = [f"One of each network, seeds from {options.first}.", *TO_SHOW]
        record = {
            "title": "The largest curvature, and whether a larger one is missed",
            "how": " ".join(__doc__.split("\n\n")[1].split()),
            "tables": tables,
            "says": says,
        }
        RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
