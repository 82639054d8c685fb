"""Results of the small claims, and their atlas."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from steepest.engine.run import run
from steepest.engine.store import Store
from steepest.site.pages import build
from tests.site.pages.sweeps import Made, by_claim, made
from tests.small import RUNS, small_catalogue


@pytest.fixture(scope="package")
def catalogue(tmp_path_factory):
    """The small claims instead of the real ones, for the tests of this folder only."""
    with small_catalogue(tmp_path_factory.mktemp("claims")) as root:
        yield root


@pytest.fixture(scope="package")
def stored(catalogue, tmp_path_factory) -> Path:
    """A folder of results; not to be changed."""
    root = tmp_path_factory.mktemp("stored") / "results"
    for name, options in RUNS:
        run(name, store=Store(root), **options)
    return root


@pytest.fixture(scope="package")
def site(stored, tmp_path_factory) -> Path:
    """The atlas of these results; not to be changed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return build(stored, tmp_path_factory.mktemp("site") / "atlas").parent


@pytest.fixture(scope="package")
def sweeps() -> list[Made]:
    """Made-up sweeps: two of a claim with a page of its own, one of a claim without."""
    draws = np.random.default_rng(0).random((2, 40))
    places = [tuple(10 ** (2 * draws[0] - 1.3)), tuple(draws[1])]
    scattered = Made("plain-decay", "aaaaaaaaaaaaaaaa", *places, scattered=True, causes=0)
    return [
        made(causes=12, remarks=("A remark <b> with `code`.",), fixed={"seeds": 8}),
        scattered,
        made("unrun", "b" * 16, 6, 1),
    ]


@pytest.fixture(scope="package")
def swept(stored, sweeps, tmp_path_factory) -> Path:
    """The atlas of the results and of these sweeps; not to be changed."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr("steepest.site.pages._diagrams.gather", lambda results: by_claim(sweeps))
        return build(stored, tmp_path_factory.mktemp("swept") / "atlas").parent
