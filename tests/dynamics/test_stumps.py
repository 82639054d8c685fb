"""Decision stumps by brute force, and edges by dense products."""

import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.nn.data import breast_cancer
from steepest.programs import decision_stumps


def by_hand(x):
    """Every feature, every threshold midway between neighbouring values, as a dense matrix."""
    columns = []
    for feature in x.T:
        values = np.unique(feature)
        columns += [np.where(feature > t, 1.0, -1.0) for t in 0.5 * (values[1:] + values[:-1])]
    return np.array(columns).T


@pytest.mark.parametrize("ties", [False, True])
def test_the_matrix_is_every_cut_once(ties):
    x = np.random.default_rng(0).normal(size=(20, 3))
    x = np.round(x) if ties else x
    stumps = decision_stumps(x)
    np.testing.assert_array_equal(stumps.matrix(), by_hand(x))
    assert stumps.size == sum(len(np.unique(feature)) - 1 for feature in x.T)


def test_edges_columns_and_new_inputs_agree_with_the_matrix():
    x = np.asarray(breast_cancer().x)
    stumps = decision_stumps(x)
    signed = np.random.default_rng(1).normal(size=len(x))
    np.testing.assert_allclose(
        stumps.edges(jnp.array(signed)), signed @ stumps.matrix(), atol=1e-11
    )
    for number in range(0, stumps.size, 1500):
        np.testing.assert_array_equal(stumps.column(number), stumps.matrix([number])[:, 0])
        np.testing.assert_array_equal(
            stumps.classify(number, jnp.asarray(x)), stumps.column(number)
        )


@pytest.mark.parametrize(
    "x", [np.ones((3, 2)), np.ones(3), np.array([[np.nan], [1.0]]), np.ones((0, 2))]
)
def test_bad_input_is_refused_in_one_sentence(x):
    with pytest.raises(UserError, match="stumps: (expected|x must be)"):
        decision_stumps(x)
