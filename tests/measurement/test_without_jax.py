"""Who measures a model of torch waits for JAX only where a quantity computes with it."""

import os
import subprocess
import sys

import pytest

from tests.extras import need

MODEL = """
import sys
import torch
from torch import nn
import steepest
from steepest import measurement

torch.manual_seed(0)
x = torch.randn(20, 3)
plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
pooled = nn.Sequential(nn.Unflatten(1, (1, 3)), nn.Conv1d(1, 4, 2), nn.Flatten(), nn.Linear(8, 2))
loss = nn.functional.cross_entropy
data = (x, (x[:, 0] > 0).long())
"""


def loaded(code):
    """Whether JAX is loaded after some code in a process of its own."""
    text = f"{code}\nprint('jax' in sys.modules)"
    # without what commands that other tests have run set for JAX
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment = {**inherited, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.splitlines()[-1] == "True"


def test_the_import_alone_brings_no_jax():
    assert not loaded("import sys, steepest; steepest.measure, steepest.Monitor")


@pytest.mark.parametrize(
    "measured",
    [
        "steepest.measure(plain, loss, data, what=['risk', 'sharpness', 'lowest-curvature', 'blocks'], lr=0.1)",
        "steepest.measure(plain, loss, data, what=['spectrum', 'ntk'])",
        "steepest.measure(pooled, loss, data, what=['risk', 'sharpness', 'margins'], held_out=data)",
        "found = measurement.gradient_features(pooled, data, dimension=9); measurement.attribute(found, found)",
    ],
    ids=["curvature", "kernel", "margins", "attribution"],
)
def test_these_quantities_of_torch_bring_no_jax(measured):
    need("torch")
    assert not loaded(MODEL + measured)


def test_what_computes_with_jax_brings_it_in_double_precision():
    need("torch")
    reading = "steepest.measure(plain.double(), loss, (x.double(), data[1]), what=['norms'])"
    assert loaded(f"{MODEL}{reading}")
    assert loaded(f"{MODEL}{reading}\nimport jax; assert not jax.config.jax_enable_x64")
