"""The falling ball, as a reader's file."""

import pytest

from tests.engine.trials.falling import write_falling


@pytest.fixture
def falling(tmp_path):
    return str(write_falling(tmp_path))
