"""ge-lemma: the terms of the identity by finite differences."""

import numpy as np
import pytest

from steepest.claims.descent.ge_lemma.claim import _identity
from steepest.landscapes import nearest_root


def test_terms_of_the_identity_by_differences():
    rng = np.random.default_rng(0)
    x, root = rng.normal(size=(2, 1, 4, 2))
    terms, _, _ = _identity(x, root)
    delta = (x - nearest_root(x, root))[0]
    matrix = root[0] @ root[0].T
    value = lambda t: (((x[0] + t * delta) @ (x[0] + t * delta).T - matrix) ** 2).sum() / 4
    step = 1e-4
    assert (value(step) - value(-step)) / 2 / step == pytest.approx(terms[0, 2], rel=1e-6)
    second = (value(step) + value(-step) - 2 * value(0)) / step**2
    assert second == pytest.approx(terms[0, 3], rel=1e-5)
