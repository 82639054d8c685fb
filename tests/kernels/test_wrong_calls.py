"""Wrong calls end in one sentence or in a right answer, and never in another exception."""

import pytest

from steepest.core.errors import UserError
from tests.kernels.wrong_calls import function_of, wrong_calls


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_wrong_calls_end_in_a_sentence(seed):
    for name, place, arguments in wrong_calls(seed, 36):
        try:
            function_of(name)(*arguments)
        except UserError as refused:
            assert len(str(refused)) > 20, (name, place)
