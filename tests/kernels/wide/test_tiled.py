"""Kernels of networks of layers in tiles on disk: the tiles of memory, whoever computes them."""

import multiprocessing
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels import gram, open_tiled, tiled_gram
from steepest.kernels.tiled._networks import describe, limit_of
from steepest.nn.activations import Activation
from steepest.nn.layers import (
    add,
    aggregate,
    concatenate,
    conv,
    dense,
    flatten,
    global_pool,
    identity,
    layer_norm,
    multiply,
    network,
    pool,
)
from tests.kernels.test_tiled import kill_after

SHAPE = (5, 4, 2)


def limit(activation="relu", last=flatten):
    layers = [conv(4), activation, pool(2), conv(4), activation, last(), dense(1)]
    return network(*layers, shape=SHAPE, parameterized="ntk", c_w=1.5, c_b=0.1).limit()


def images(n, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(n, *SHAPE)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("cross", [False, True])
def test_equals_gram(tmp_path, activation, cross, dtype):
    x = images(9, dtype)
    other = images(7, dtype, 1) if cross else None
    wanted = gram(limit(activation), x, other)
    found = tiled_gram(limit(activation), x, tmp_path / "gram", other, tile=4)
    rounding = 1e-6 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found.nngp.toarray(), wanted.nngp, rtol=rounding)
    np.testing.assert_allclose(found.ntk.toarray(), wanted.ntk, rtol=rounding)
    assert found.error == wanted.error


def test_a_description_is_read_as_it_was_written():
    """Every kind of node."""
    everything = network(
        conv(4, 2, stride=2, padding="none"),
        layer_norm(),
        "relu",
        conv(4, shared=False, padding="circular"),
        add(identity, conv(4), weights=(0.5, 1.0)),
        "erf",
        aggregate(np.eye(4)),
        concatenate(conv(4), conv(8)),
        "tanh",
        multiply(conv(3), conv(3)),
        pool(2, 1),
        global_pool(),
        dense(1),
        shape=SHAPE,
        parameterized="ntk",
    ).limit()
    for one in (everything, limit()):
        again = limit_of(describe(one))
        assert (again.nodes, again.spaces, again.shape) == (one.nodes, one.spaces, one.shape)


def test_after_damage_in_other_processes(tmp_path):
    x = images(6)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as workers:
        found = tiled_gram(limit(), x, tmp_path / "gram", tile=3, submit=workers.submit)
        whole = found.ntk.toarray()
        found.path(0, 1).unlink()
        assert not found.complete
        again = tiled_gram(limit(), x, tmp_path / "gram", tile=3, submit=workers.submit)
    np.testing.assert_array_equal(again.ntk.toarray(), whole)
    np.testing.assert_allclose(whole, gram(limit(), x).ntk, rtol=1e-12)


def test_an_activation_of_ones_own_is_refused_before_anything_is_written(tmp_path):
    own = Activation("relu", lambda z: 2.0 * z)
    with pytest.raises(UserError, match="activations by their names"):
        tiled_gram(limit(own), images(3), tmp_path / "gram")
    assert not (tmp_path / "gram").exists()


def test_another_network_or_shape_is_refused(tmp_path):
    tiled_gram(limit(), images(3), tmp_path / "gram")
    with pytest.raises(UserError, match="of another network"):
        tiled_gram(limit("tanh"), images(3), tmp_path / "gram")
    with pytest.raises(UserError, match=r"shape \(n, 5, 4, 2\)"):
        tiled_gram(limit(), images(3).reshape(3, -1), tmp_path / "other")
    with pytest.raises(UserError, match="either submit or devices"):
        tiled_gram(limit(), images(3), tmp_path / "other", devices=[])


def holes(n, seed=0):
    """Masks in which about a quarter of the positions is missing."""
    mask = np.random.default_rng(seed).random((n, *SHAPE[:-1])) > 0.25
    mask[:, 0, 0] = True
    return mask


@pytest.mark.parametrize("cross", [False, True])
def test_with_masks_tiles_are_those_of_gram(tmp_path, cross):
    """Also where only the second set has holes; numbers in them are not read."""
    x = images(4)
    other = images(4, seed=1) if cross else None
    masks = {"other_mask": holes(4)} if cross else {"mask": holes(4)}
    wanted = gram(limit(), x, other, **masks)
    if not cross:
        x[~masks["mask"]] = np.nan
    tiled = tiled_gram(limit(), x, tmp_path / "gram", other, tile=2, **masks)
    np.testing.assert_allclose(tiled.nngp.toarray(), wanted.nngp, rtol=1e-12)
    np.testing.assert_allclose(tiled.ntk.toarray(), wanted.ntk, rtol=1e-12)
    assert tiled.error == wanted.error


def test_with_masks_after_a_kill_the_other_tiles_have_the_same_bits(tmp_path):
    """Of tiles, masks and inputs some are lost; other masks, or none, are another Gram matrix."""
    mask = holes(4)
    x = np.where(mask[..., None], images(4), 0.0)
    whole = tiled_gram(limit(), x, tmp_path / "gram", tile=2, mask=mask)
    before = whole.ntk.toarray()
    whole.path(0, 1).unlink()
    whole.path(1, 1).unlink()
    (tmp_path / "gram" / "mask.npy").unlink()
    again = tiled_gram(limit(), x, tmp_path / "gram", tile=2, mask=mask)
    np.testing.assert_array_equal(again.ntk.toarray(), before)
    with pytest.raises(UserError, match="of another mask"):
        tiled_gram(limit(), x, tmp_path / "gram", tile=2)
    with pytest.raises(UserError, match="of another x and mask"):
        tiled_gram(limit(), images(4), tmp_path / "gram", tile=2, mask=holes(4, 1))
    with pytest.raises(UserError, match="give other too"):
        tiled_gram(limit(), x, tmp_path / "other", other_mask=mask)


KILLED = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
from steepest.kernels import tiled_gram
from tests.kernels.wide.test_tiled import holes, images, limit
tiled_gram(limit(), images(40), sys.argv[1], tile=4, mask=holes(40), watch=lambda stage: time.sleep(0.05))
"""


def test_with_masks_a_killed_process_is_resumed(tmp_path):
    folder = tmp_path / "gram"
    there = {path: path.stat().st_mtime_ns for path in kill_after(KILLED, folder, 5)}
    assert 5 <= len(there) < 55
    mask = holes(40)
    found = tiled_gram(limit(), images(40), folder, tile=4, mask=mask)
    assert found.complete and {path: path.stat().st_mtime_ns for path in there} == there
    wanted = gram(limit(), images(40), mask=mask)
    np.testing.assert_allclose(found.ntk.toarray(), wanted.ntk, rtol=1e-12)


EIGHT = """
import sys
import jax
import numpy as np
from steepest.kernels import tiled_gram
from tests.kernels.wide.test_tiled import images, limit

folder, count = sys.argv[1], int(sys.argv[2])
assert len(jax.devices()) == 8
tiled_gram(limit(), images(9), folder, tile=2, devices=jax.devices()[:count])
"""


def test_eight_devices_give_the_bits_of_one(tmp_path):
    for count in (1, 8):
        subprocess.run(
            [sys.executable, "-c", EIGHT, str(tmp_path / str(count)), str(count)],
            check=True,
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
            },
        )
    one, eight = (open_tiled(tmp_path / str(count)) for count in (1, 8))
    assert eight.complete
    np.testing.assert_array_equal(one.ntk.toarray(), eight.ntk.toarray())
    np.testing.assert_array_equal(one.nngp.toarray(), eight.nngp.toarray())


def test_devices_of_this_process(tmp_path):
    found = tiled_gram(limit(), images(5), tmp_path / "gram", tile=2, devices=jax.devices())
    np.testing.assert_allclose(found.ntk.toarray(), gram(limit(), images(5)).ntk, rtol=1e-12)
