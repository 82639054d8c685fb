"""Nothing depends on there being one device, or on which of several computes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steepest.core.compiling import quick_options
from steepest.core.precision import arithmetic
from tests import devices

ROOT = Path(__file__).parent.parent
SEVERAL = 4


@pytest.fixture(scope="module")
def several():
    """What ``tests/devices.py`` finds where the host pretends to have several devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={SEVERAL}"
    path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": path}
    command = [sys.executable, "-m", "tests.devices"]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["devices"] == SEVERAL
    return printed


@pytest.mark.parametrize("name", devices.CLAIMS)
def test_a_claim_has_the_same_bits_with_several_devices(name, several):
    assert several["claims"][name] == devices.claim_bits(name)


@pytest.mark.parametrize("part", ["kernels", "readings", "sharpness"])
def test_numbers_are_the_same_wherever_weights_and_data_are(part, several):
    first, *others = several[part]
    assert all(bits == first for bits in others)


def test_weights_on_several_devices_are_refused(several):
    assert "one device" in several["refusal"]


def test_options_of_the_cpu_s_compiler_go_to_the_cpu_alone():
    assert quick_options("0.10.2", "cpu")
    assert not quick_options("0.10.2", "gpu")
    assert not quick_options("0.10.2", "tpu")


@pytest.mark.parametrize("double", [True, False])
def test_products_keep_their_precision(double):
    """The compiler is told so, which on the CPU changes nothing and on others the rounding."""
    import jax
    import jax.numpy as jnp

    with arithmetic(double=double):
        program = str(jax.make_jaxpr(lambda a: a @ a)(jnp.ones((2, 2))))
    assert "HIGHEST" in program
    assert ("f64" in program) == double
