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
                read = open_tiled(root).ntk.toarray()
                np.testing.assert_array_equal(read, wanted.ntk.toarray())
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


@pytest.mark.parametrize("place", [-1, -20, 115, 70])
def test_no_byte_of_a_tile_is_read_that_is_not_as_it_was_written(whole, tmp_path, place):
    """Of the checksum, of the entries, and of the header, whose brackets may not close."""
    root = tmp_path / "gram"
    shutil.copytree(whole, root)
    path = root / "tiles" / "00001-00002.npy"
    data = bytearray(path.read_bytes())
    data[place] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"00001-00002\.npy is damaged"):
        open_tiled(root).ntk.toarray()


@pytest.mark.parametrize("stage", ["inputs", "tile"])
def test_a_full_disk_is_one_sentence_and_what_is_finished_stays(tmp_path, monkeypatch, stage):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    name = "numpy.save" if stage == "inputs" else "numpy.lib.format.write_array"
    with monkeypatch.context() as patch:
        patch.setattr(name, full)
        with pytest.raises(UserError, match="No space left on device.* call tiled_gram again"):
            tiled_gram(NETWORK, inputs(7), tmp_path / "gram", **SETTINGS)
    assert [path for path in tmp_path.rglob(".new-*")] == []
    assert tiled_gram(NETWORK, inputs(7), tmp_path / "gram", **SETTINGS).complete
