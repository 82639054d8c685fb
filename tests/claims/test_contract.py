"""The contract over every claim of the catalogue, and over the template that ``steepest new`` writes."""

import importlib.util
import sys
import time

import jax
import pytest

from steepest.claims import catalogue, load, write_template
from steepest.running import execute
from tests.claims import contract

NAMES = list(catalogue())


@pytest.fixture(scope="module")
def results():
    """The quick preset of each claim, run once for the whole suite, with its CPU time."""
    cache = {}

    def run(name):
        if name not in cache:
            start = time.process_time()
            result = execute(name, load(name)(), "quick", 0, lambda stage: None)
            cache[name] = result, time.process_time() - start
        return cache[name]

    return run


@pytest.mark.parametrize("name", NAMES)
def test_is_well_described(name):
    contract.is_well_described(load(name))
    contract.is_thin(load(name))
    contract.keeps_prediction_and_observation_apart(load(name))
    contract.limits_are_refused(load(name))


@pytest.mark.parametrize("name", NAMES)
def test_quick_preset(name, results):
    before = jax.config.jax_enable_x64
    result, seconds = results(name)
    contract.leaves_no_trace(before)
    contract.judges_honestly(result)
    contract.draws(load(name), result)
    # 20 s of wall time on two free cores, measured as CPU time so that busy neighbours do not fail the test
    assert seconds <= 40, f"{name} took {seconds:.0f} s of CPU time"


@pytest.mark.parametrize("name", NAMES)
def test_goes_out_of_range(name):
    contract.goes_out_of_range(load(name))


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bits(name, results):
    contract.same_bits(load(name), results(name)[0])


def test_the_template_passes_the_contract(tmp_path):
    path = write_template("my-claim", "drafts", tmp_path)
    spec = importlib.util.spec_from_file_location("my_claim", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["my_claim"] = module
    spec.loader.exec_module(module)
    kind = module.MyClaim
    contract.is_well_described(kind)
    contract.is_thin(kind)
    contract.keeps_prediction_and_observation_apart(kind)
    contract.limits_are_refused(kind)
    contract.goes_out_of_range(kind)
    result = execute("my-claim", kind(), "quick", 0, lambda stage: None)
    assert result.verdict.value == "holds"
    contract.draws(kind, result)


def test_a_template_never_overwrites(tmp_path):
    from steepest.errors import UserError

    write_template("my-claim", "drafts", tmp_path)
    with pytest.raises(UserError, match="already"):
        write_template("my-claim", "drafts", tmp_path)
    with pytest.raises(UserError, match="already"):
        write_template("catapult", "drafts", tmp_path)
    with pytest.raises(UserError, match="lower-case"):
        write_template("My Claim", "drafts", tmp_path)
