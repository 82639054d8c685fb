"""Generated damage to a folder of tiles: said and computed again, or refused in a sentence, and never believed."""

import contextlib
import shutil
import signal
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.core.errors import UserError
from steepest.kernels.tiled import open_tiled, tiled_gram
from steepest.kernels.tiled._compute import DamagedTile
from tests.engine import test_damage as damage
from tests.kernels.test_tiled import SMOOTH, inputs, limit

NETWORK = limit(SMOOTH[0], **SMOOTH[1])
SETTINGS = {"tile": 3, "tolerance": 1e-4}
HARMS = tuple(harm for harm in damage.HARMS if "folder_" not in harm.__name__)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "gram"
    tiled_gram(NETWORK, inputs(7), folder, **SETTINGS)
    return folder


@settings(damage.SAMPLE)
@given(data=st.data())
def test_damage_to_tiles_is_never_believed(whole, tmp_path, data):
    root = tmp_path / "gram"
    wanted = open_tiled(whole)
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(whole, root)
    before = signal.signal(signal.SIGALRM, damage.hangs)
    signal.alarm(damage.PATIENCE)
    files = sorted(path for path in root.rglob("*") if path.is_file())
    for path in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=2, unique=True)):
        with contextlib.suppress(ValueError):  # the first harm left nothing that can be edited
            data.draw(st.sampled_from(HARMS))(data.draw, path, root)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedTile)
            with contextlib.suppress(UserError):
                open_tiled(root).ntk.toarray()
            found = tiled_gram(NETWORK, inputs(7), root, **SETTINGS)
    except UserError as trouble:
        assert "\n" not in str(trouble)
        return
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert found.complete
    assert found.error == wanted.error
    for kernel in ("nngp", "ntk"):
        ours, true = getattr(found, kernel), getattr(wanted, kernel)
        np.testing.assert_allclose(ours.toarray(), true.toarray(), rtol=0, atol=1e-14)
