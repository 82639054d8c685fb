"""Tiles on disk against ``gram`` in memory; kills, damage and executors."""

import json
import multiprocessing
import re
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.kernels._gram import gram
from steepest.kernels.tiled._compute import DamagedTile, tiled_gram
from steepest.kernels.tiled._files import MANIFEST, TABLE
from steepest.kernels.tiled._matrix import open_tiled
from steepest.nn.activations import Activation, activation
from steepest.nn.networks import mlp
from tests.extras import need

SPHERE = (
    "relu",
    {"c_w": 2.0, "bias": False},
)  # only the angle matters: a table with one node in the norm
BIASED = "relu", {"c_w": 1.5, "c_b": 0.1}  # a closed form, norms matter: layer by layer
SMOOTH = "tanh", {"c_w": 1.5, "c_b": 0.1}  # no closed form, norms matter: a table with norms


def limit(name="relu", depth=2, **settings):
    return mlp((5, *[10] * depth, 1), name, parameterized="ntk", **settings).limit()


def inputs(n, dtype=float, seed=0):
    """Of lengths that cover the same interval whatever n, so that the tests share their tables."""
    x = np.random.default_rng(seed).standard_normal((n, 5))
    return (x / np.linalg.norm(x, axis=1)[:, None] * np.linspace(1.5, 2.0, n)[:, None]).astype(
        dtype
    )


def computed(*args, **kwargs):
    """The Gram and how many tiles the call computed."""
    told = []
    return tiled_gram(*args, **kwargs, watch=told.append), len(told)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("network", [SPHERE, BIASED, SMOOTH], ids=["angles", "direct", "table"])
@pytest.mark.parametrize("cross", [False, True])
def test_equals_gram_to_rounding(tmp_path, network, cross, dtype):
    net = limit(network[0], **network[1])
    x = inputs(51, dtype)
    other = inputs(31, dtype, 1) if cross else None
    accuracy = {"tolerance": 1e-6 if network is SMOOTH else None}  # a coarser table is made sooner
    wanted = gram(net, x, other, **accuracy)
    found = tiled_gram(net, x, tmp_path / "gram", other, tile=17, **accuracy)
    assert found.shape == wanted.ntk.shape and found.dtype == dtype and found.complete
    assert found.error == pytest.approx(wanted.error, rel=0.5)
    for one, whole in ((found.nngp, wanted.nngp), (found.ntk, wanted.ntk)):
        near = {"rtol": 0, "atol": 30 * np.finfo(dtype).eps * np.abs(whole).max()}
        np.testing.assert_allclose(one.toarray(), whole, **near)
        np.testing.assert_array_equal(one.rows([40, 3, -1]), one.toarray()[[40, 3, -1]])
        np.testing.assert_array_equal(
            one.tile(2, 1), one.toarray()[found.rows[2], found.columns[1]]
        )


@pytest.mark.parametrize("size", [1, 2, 7, 20, 21, 100])
def test_any_size_of_tiles(tmp_path, size):
    net = limit(c_w=2.0, bias=False)
    x = inputs(20)
    wanted = gram(net, x)
    (found, count) = computed(net, x, tmp_path / "gram", tile=size)
    side = -(-20 // min(size, 20))
    assert count == side * (side + 1) // 2 == len(list((tmp_path / "gram/tiles").iterdir()))
    np.testing.assert_allclose(found.ntk.toarray(), wanted.ntk, rtol=1e-14)
    np.testing.assert_array_equal(found.ntk.diagonal(), np.diagonal(found.ntk.toarray()))


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_the_stored_entries(tmp_path, cross, dtype):
    """In float64 whatever the tiles' dtype, one vector or several."""
    x = inputs(51, dtype)
    other = inputs(31, dtype, 1) if cross else None
    found = tiled_gram(limit(**BIASED[1]), x, tmp_path / "gram", other, tile=17).ntk
    for columns in ((), (3,)):
        v = np.random.default_rng(2).standard_normal((found.shape[1], *columns))
        np.testing.assert_allclose(
            found.matvec(v), found.toarray().astype(float) @ v, rtol=1e-12, atol=1e-12
        )
        assert found.matvec(v.astype(np.float32)).dtype == dtype
    with pytest.raises(UserError, match=r"columns, the vector has shape \(7,\)"):
        found.matvec(np.ones(7))


def test_what_is_there_is_not_computed_again(tmp_path):
    net = limit()
    x = inputs(40)
    first, count = computed(net, x, tmp_path / "gram", tile=10)
    times = {path: path.stat().st_mtime_ns for path in first.folder.rglob("*") if path.is_file()}
    _, again = computed(net, x, tmp_path / "gram", tile=10)
    assert (count, again) == (10, 0)
    assert times == {
        path: path.stat().st_mtime_ns for path in first.folder.rglob("*") if path.is_file()
    }
    first.path(1, 2).unlink()
    assert open_tiled(first.folder).missing == [(1, 2)] and not open_tiled(first.folder).complete
    assert computed(net, x, tmp_path / "gram", tile=10)[1] == 1


KILLED = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
from steepest.kernels.tiled._compute import tiled_gram
from tests.kernels.test_tiled import inputs, limit
tiled_gram(limit(), inputs(120), sys.argv[1], tile=10, watch=lambda stage: time.sleep(0.05))
"""


def kill_after(script, folder, count):
    """Run a script that fills a folder, and kill it as soon as so many tiles are there; return those that are."""
    process = subprocess.Popen([sys.executable, "-c", script, str(folder)])
    while process.poll() is None and len(list(folder.glob("tiles/*-*.npy"))) < count:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    return sorted(folder.glob("tiles/0*.npy"))


def test_after_a_kill_only_the_missing_tiles_are_computed(tmp_path):
    folder = tmp_path / "gram"
    there = len(kill_after(KILLED, folder, 8))
    assert 8 <= there < 78 and len(open_tiled(folder).missing) == 78 - there
    found, count = computed(limit(), inputs(120), folder, tile=10)
    assert count == 78 - there and found.complete
    np.testing.assert_allclose(found.ntk.toarray(), gram(limit(), inputs(120)).ntk, rtol=1e-13)


def flip(data):
    return data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]


@pytest.mark.parametrize(
    "damage", [flip, lambda data: data[:-9], lambda data: b"", lambda data: data + b"more"]
)
def test_damaged_tiles_are_reported_and_computed_again(tmp_path, damage):
    found = tiled_gram(limit(), inputs(40), tmp_path / "gram", tile=10)
    wanted = found.ntk.toarray()
    path = found.path(0, 2)
    path.write_bytes(damage(path.read_bytes()))
    assert found.damaged() == [(0, 2)]
    if (
        damage is not flip
    ):  # one bit costs a pass over the data to see; a wrong length is seen at once
        with pytest.raises(UserError, match="damaged"):
            found.ntk.matvec(np.ones(40))
    with pytest.warns(DamagedTile, match="00000-00002"):
        again, count = computed(limit(), inputs(40), tmp_path / "gram", tile=10)
    assert count == 1 and not again.damaged()
    np.testing.assert_array_equal(again.ntk.toarray(), wanted)


@pytest.mark.parametrize("name", ["x.npy", TABLE])
def test_damaged_inputs_are_never_used(tmp_path, name):
    """Not even by workers that have read them before."""
    settings = {
        "limit": limit(SMOOTH[0], **SMOOTH[1]),
        "x": inputs(20),
        "tile": 2,
        "tolerance": 1e-6,
    }
    with ThreadPoolExecutor(1) as pool:
        found = tiled_gram(folder=tmp_path / "gram", submit=pool.submit, **settings)
        wanted = found.ntk.toarray()
        path = found.folder / name
        found.path(0, 1).unlink()
        with path.open("r+b") as file:
            file.seek(150)
            file.write(b"20 wrong bytes, here")
        with pytest.warns(DamagedTile, match=re.escape(name)):
            tiled_gram(folder=tmp_path / "gram", submit=pool.submit, **settings)
    np.testing.assert_allclose(found.ntk.toarray(), wanted, rtol=1e-13)


def test_a_missing_tile_says_so(tmp_path):
    found = tiled_gram(limit(), inputs(40), tmp_path / "gram", tile=10)
    found.path(0, 2).unlink()
    with pytest.raises(UserError, match=r"tile \(0, 2\) .* is missing; call tiled_gram again"):
        found.ntk.tile(2, 0)


MINE = Activation("relu", lambda z: z * activation("erf")(z))  # shares its name with another


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"x": inputs(40, seed=3)}, "x"),
        ({"x": inputs(41)}, "shape and x"),
        ({"x": inputs(40, np.float32)}, "dtype"),
        ({"limit": limit(c_b=0.1)}, "network"),
        ({"limit": limit(MINE)}, "network and activation"),
        ({"tile": 20}, "tile"),
        ({"kernels": ("ntk",)}, "kernels"),
        ({"tolerance": 1e-9}, "tolerance"),
        ({"other": inputs(40)}, "other"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_folder_of_another_gram_is_refused(tmp_path, change, what):
    settings = {"limit": limit(), "x": inputs(40), "folder": tmp_path / "gram", "tile": 10}
    tiled_gram(**settings)
    with pytest.raises(UserError, match=f"holds another Gram matrix .of another .*{what}"):
        tiled_gram(**settings | change)


def test_the_folder_of_another_version_is_refused(tmp_path):
    found = tiled_gram(limit(), inputs(4), tmp_path / "gram")
    path = found.folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "0.0.0"}))
    with pytest.raises(UserError, match="of another version"):
        tiled_gram(limit(), inputs(4), tmp_path / "gram")


def test_folders_that_hold_something_else(tmp_path):
    with pytest.raises(UserError, match=r"no manifest\.json"):
        open_tiled(tmp_path)
    (tmp_path / "x.npy").write_text("mine")
    with pytest.raises(UserError, match="has files but no"):
        tiled_gram(limit(), inputs(4), tmp_path)
    assert (tmp_path / "x.npy").read_text() == "mine"
    with pytest.raises(UserError, match="cannot write"):
        tiled_gram(limit(), inputs(4), tmp_path / "x.npy" / "gram")
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(UserError, match="not readable"):
        open_tiled(tmp_path)


def test_one_kernel_is_half_the_tile_and_a_jump_has_only_one(tmp_path):
    wanted = gram(limit(), inputs(30))
    for kernel in ("nngp", "ntk"):
        found = tiled_gram(limit(), inputs(30), tmp_path / kernel, tile=10, kernels=(kernel,))
        np.testing.assert_allclose(
            getattr(found, kernel).toarray(), getattr(wanted, kernel), rtol=1e-13
        )
        with pytest.raises(UserError, match=f"holds {kernel}, not"):
            _ = found.ntk if kernel == "nngp" else found.nngp
    with pytest.raises(UserError, match=r"kernels=\('nngp',\)"):
        tiled_gram(limit("step"), inputs(30), tmp_path / "step")
    found = tiled_gram(limit("step"), inputs(30), tmp_path / "step", kernels=("nngp",))
    np.testing.assert_allclose(
        found.nngp.toarray(), gram(limit("step"), inputs(30)).nngp, rtol=1e-13
    )


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"tile": 0}, "at least one row"),
        ({"kernels": ()}, "one or both"),
        ({"kernels": ("ntk", "ntk")}, "one or both"),
        ({"kernels": ("nkt",)}, "one or both"),
        ({"other": np.ones((3, 4))}, "same dimension"),
    ],
)
def test_mistakes_leave_no_folder(tmp_path, change, what):
    settings = {"limit": limit(), "x": inputs(4), "folder": tmp_path / "gram"}
    with pytest.raises(UserError, match=what):
        tiled_gram(**settings | change)
    assert not (tmp_path / "gram").exists()


def test_a_table_that_cannot_be_made_leaves_no_folder(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise UserError("cannot meet the tolerance")

    monkeypatch.setattr("steepest.kernels.tiled._compute.storable", refuse)
    with pytest.raises(UserError, match="cannot meet"):
        tiled_gram(limit(), inputs(4), tmp_path / "gram")
    assert not (tmp_path / "gram").exists()


def test_an_activation_of_ones_own_needs_no_name(tmp_path):
    """Workers get a table, also where this process would use its closed form."""
    doubled = Activation("relu", lambda z: 2.0 * z)  # homogeneous, but not what its name says
    found = tiled_gram(limit(doubled, c_b=0.1), inputs(20), tmp_path / "gram", tile=10)
    wanted = gram(limit(doubled, c_b=0.1), inputs(20)).ntk
    np.testing.assert_allclose(
        found.ntk.toarray(), wanted, rtol=0, atol=1e-10 * np.abs(wanted).max()
    )


def check(tmp_path, submit):
    """Another's executor: all tiles, one after damage, none twice."""
    net = limit(**BIASED[1])
    x = inputs(50)
    wanted = gram(limit(**BIASED[1]), inputs(50)).ntk
    found, count = computed(net, x, tmp_path / "gram", tile=20, submit=submit)
    assert count == 6
    np.testing.assert_allclose(found.ntk.toarray(), wanted, rtol=1e-12)
    found.path(0, 1).write_bytes(b"")
    with pytest.warns(DamagedTile):
        assert computed(net, x, tmp_path / "gram", tile=20, submit=submit)[1] == 1
    assert computed(net, x, tmp_path / "gram", tile=20, submit=submit)[1] == 0
    np.testing.assert_allclose(found.ntk.toarray(), wanted, rtol=1e-12)


def test_threads(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        check(tmp_path, pool.submit)


def test_processes(tmp_path):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        check(tmp_path, pool.submit)


def test_a_dask_cluster(tmp_path):
    distributed = need("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dask's, about ports
        cluster = distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            dashboard_address=None,
            local_directory=tmp_path / "dask",
        )
    with cluster, distributed.Client(cluster) as client:
        check(tmp_path, client.submit)


def test_few_tiles_are_on_their_way_and_none_after_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr("steepest.kernels.tiled._compute.IN_FLIGHT", 3)
    pending = []
    most = []

    class Late(Future):
        def result(self, timeout=None):
            pending.remove(self)
            if self.run:
                return self.run()
            raise OSError("the disk is full")

    def submit(function, *arguments, last=10):
        future = Late()
        future.run = (lambda: function(*arguments)) if len(most) != last else None
        pending.append(future)
        most.append(len(pending))
        return future

    with pytest.raises(OSError, match="disk is full"):
        tiled_gram(limit(), inputs(60), tmp_path / "gram", tile=10, submit=submit)
    assert max(most) == 3 and all(future.cancelled() for future in pending)
    assert len(open_tiled(tmp_path / "gram").missing) == 21 - 10
    assert (
        computed(
            limit(), inputs(60), tmp_path / "gram", tile=10, submit=lambda *a: submit(*a, last=-1)
        )[1]
        == 11
    )


def test_workers_without_the_disk_are_noticed(tmp_path):
    done = Future()
    done.set_result(None)
    with pytest.raises(UserError, match="same disk"):
        tiled_gram(limit(), inputs(4), tmp_path / "gram", submit=lambda *arguments: done)
