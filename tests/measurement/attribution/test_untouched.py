"""Attribution changes nothing of a reader's: bit for bit, whatever the model keeps, also where it is refused."""

from contextlib import suppress

import pytest

from steepest.core.errors import UserError
from steepest.measurement import attribute, gradient_features
from tests.measurement import readers
from tests.measurement.test_untouched import changes_by, everything_loaded, prepared

assert everything_loaded
REFUSED = {
    "own-loss",  # has no outputs by themselves
    "recurrent",  # returns several things
    "own-noise",
    "own-noise-refused",
    "loader",  # these shuffle
    "sampler",
    "batch-sampler",
}


def by_attribution(case, optimizer, folder):
    gradients = gradient_features(case.model, case.data, dimension=20)
    attribute(gradients, gradients)


def refused_or_answered(case, optimizer, folder):
    with suppress(UserError):
        by_attribution(case, optimizer, folder)


@pytest.mark.parametrize("name", readers.CASES)
def test_nothing_changes(name, tmp_path):
    assert changes_by(refused_or_answered, name, tmp_path) == []


@pytest.mark.parametrize("name", readers.CASES)
def test_what_is_a_function_of_weights_and_examples_is_attributed(name, tmp_path):
    case, optimizer = prepared(name)
    if name in REFUSED:
        with pytest.raises(UserError):
            by_attribution(case, optimizer, tmp_path)
    else:
        by_attribution(case, optimizer, tmp_path)
