"""Results of the small claims, and their atlas."""

import warnings
from pathlib import Path

import pytest

from steepest import atlas
from steepest.running import run
from steepest.store import Store
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
        return atlas.build(stored, tmp_path_factory.mktemp("site") / "atlas").parent
