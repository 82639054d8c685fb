"""The tangent kernel of a network with many outputs: its size is bounded, and what it is of is said."""

import numpy as np
import pytest

import steepest
from steepest.core.errors import UserError
from steepest.measurement import _kernel
from tests.extras import need


def measured(side, dtype="float64"):
    torch = need("torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        kind = getattr(torch, dtype)
        module = torch.nn.Conv2d(3, 3, 3, padding=1).to(kind)
        x, y = (torch.rand(3, 3, side, side, dtype=kind) for _ in range(2))
    report = steepest.measure(module, torch.nn.functional.mse_loss, (x, y), what=["ntk"])
    return module, x, report


def test_of_many_outputs_the_largest_eigenvalue_is_that_of_all():
    torch = need("torch")
    module, x, report = measured(8)  # 192 outputs of an example
    top = report["λ_max of the tangent kernel / n"].value
    exact = []
    for example in x:
        jacobian = torch.func.jacrev(
            lambda w, image=example: torch.func.functional_call(module, w, (image[None],)).ravel()
        )(dict(module.named_parameters()))
        rows = torch.cat([leaf.reshape(192, -1) for leaf in jacobian.values()], 1)
        exact.append(float(torch.linalg.eigvalsh(rows @ rows.T)[-1]))
    assert min(abs(np.array(exact) - top) / top) < 1e-2
    said = report["alignment of kernel and targets"].interpretation
    assert "120 of the 192 outputs" in said


def test_of_images_no_more_products_than_of_a_few(monkeypatch):
    calls = []
    whole = _kernel.kernel_matrix
    monkeypatch.setattr(
        _kernel, "kernel_matrix", lambda s, e=None: calls.append(len(e)) or whole(s, e)
    )
    measured(32, "float32")
    assert calls == [_kernel.ENTRIES]


def test_a_kernel_beyond_memory_is_refused_before_it_is_computed():
    class Wide:
        dtype = np.dtype(np.float64)

        def outputs(self):
            return np.zeros((1, 21, 512, 512)), None

    with pytest.raises(UserError):
        _kernel.kernel_matrix(Wide())
