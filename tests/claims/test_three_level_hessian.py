"""What the three-level claim rests on: the share of the class part under a common feature, and that errors are seen."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import load
from steepest.engine.run import run
from steepest.measurement.quantities import three_levels


@pytest.mark.parametrize("classes", [3, 5, 10])
def test_the_class_part_has_this_share_of_an_outlier(classes):
    """One feature for all classes, wrong labels equally likely: C² to (C − 1)² − 1, hence C/(2(C − 1))."""
    kind = load("three-level-hessian")
    y = np.arange(classes)
    u = np.linalg.qr(np.c_[np.ones(classes), np.eye(classes)[:, :-1]])[0][
        :, 1
    ]  # a direction orthogonal to ones
    # p_i − e_c' is e_i − e_c' up to the probability of an error, which is 1e-12 here
    sharp = three_levels(lambda u: u.sum(0), 30.0 * np.eye(classes), y)
    of_classes, of_cross = ((rows @ u) ** 2 for rows in (sharp.classes, sharp.cross))
    share = of_classes.sum() / (of_classes.sum() + of_cross.sum())
    assert share == pytest.approx(float(kind(classes=classes).predict(None)["share"]), rel=1e-6)


def test_a_wrong_decomposition_fails(monkeypatch):
    """With class means of the other convention the parts no longer add up, and the claim says so."""
    module = __import__(
        "steepest.claims.curvature.three_level_hessian.experiment", fromlist=["three_levels"]
    )
    wrong = lambda vjp, outputs, labels: three_levels(vjp, outputs, (labels + 1) % 3)
    monkeypatch.setattr(module, "three_levels", wrong)
    small = load("three-level-hessian")(classes=3, seeds=3, n=60, width=8, depth=2, steps=200)
    checks = run(small).checks
    assert next(c for c in checks if c.name.startswith("sum of the parts")).verdict.value == "fails"
    assert jnp.isfinite(checks[0].measured)
