"""Real data: what scikit-learn ships, and MNIST or CIFAR-10 from the user's own files."""

import gzip
import zlib
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from steepest.core.compiling import compile_quickly
from steepest.core.errors import UserError
from steepest.core.fields import Count
from steepest.core.given import key as random_keys
from steepest.core.reading import read_bytes
from steepest.core.signatures import checked
from steepest.nn.data._dataset import Dataset
from steepest.nn.types import Key

SHIPPED = {"digits": ("digits.csv.gz", 0), "breast_cancer": ("breast_cancer.csv", 1)}
"""Where scikit-learn keeps its data: name of the file, and lines before the first row; the class is the last column."""


@cache
def _shipped(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and classes of a set of scikit-learn, ``(n, d)`` and ``(n,)``.

    They are read from its files: to import it takes longer than many a claim.
    """
    called, above = SHIPPED[name]
    package = find_spec("sklearn")
    path = Path(package.origin or "").with_name("datasets") / "data" / called if package else None
    if path is None or not path.is_file():  # another release keeps them elsewhere
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return np.asarray(x, float), np.asarray(y, int)
    rows = np.loadtxt(path, delimiter=",", skiprows=above)
    return rows[:, :-1], rows[:, -1].astype(int)


@checked
def digits(
    classes: tuple[int, ...] = tuple(range(10)), n: int | None = None, key: Key | None = None
) -> Dataset:
    """Load scikit-learn's 8×8 handwritten digits with one-hot targets; :func:`signs` turns two classes into labels ±1.

    Pixels are scaled to mean square one over the whole set of 1797 images, so that ‖x‖² is about d = 64.

    Args:
        classes: which digits, in the order of the one-hot columns.
        n: how many images; all of these classes by default.
        key: random key that chooses which ones; the first ones by default.

    Raises:
        UserError: for digits that do not exist or more images than there are.

    >>> data = digits(classes=(3, 8), n=50)
    >>> data.x.shape, data.y.shape
    ((50, 64), (50, 2))
    """
    if len(classes) < 2 or len(set(classes)) != len(classes) or not set(classes) <= set(range(10)):
        raise UserError(f"digits needs at least two different classes from 0 to 9, got {classes}")
    x, y = _shipped("digits")
    x = x / np.sqrt((x**2).mean())
    chosen = np.flatnonzero(np.isin(y, classes))
    column = np.array([classes.index(digit) for digit in y[chosen]])
    targets = np.eye(len(classes))[column]
    return _take(Dataset(x[chosen], targets, f"digits {_span(classes)}"), n, key)


def breast_cancer() -> Dataset:
    """Load scikit-learn's Wisconsin breast-cancer set: 569 examples, 30 standardized features, labels ±1.

    >>> breast_cancer().x.shape
    (569, 30)
    """
    x, y = _shipped("breast_cancer")
    x = (x - x.mean(0)) / x.std(0)
    return Dataset(jnp.asarray(x), jnp.asarray(np.where(y == 1, 1.0, -1.0)), "breast cancer")


@checked
def mnist(
    folder: str | Path, split: str = "train", n: int | None = None, key: Key | None = None
) -> Dataset:
    """Read MNIST or Fashion-MNIST from the idx files in a folder of yours, plain or gzipped; pixels as for digits.

    Args:
        folder: holds ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the ``t10k`` pair (``.gz`` or not).
        split: ``"train"`` or ``"test"``.
        n: how many images.
        key: random key that chooses which ones.

    Raises:
        UserError: for a missing or malformed file.
    """
    stem = {"train": "train", "test": "t10k"}.get(split)
    if stem is None:
        raise UserError(f"split must be train or test, got {split!r}")
    images = _idx(Path(folder), f"{stem}-images-idx3-ubyte")
    labels = _idx(Path(folder), f"{stem}-labels-idx1-ubyte")
    if images.ndim != 3 or labels.ndim != 1 or not len(labels):
        raise UserError(
            f"the {split} files in {folder} are not images and labels; are they in each other's place?"
        )
    if len(images) != len(labels):
        raise UserError(
            f"the {split} files in {folder} hold {len(images)} images but {len(labels)} labels"
        )
    return _images(images, labels, f"MNIST {split}", n, key)


@checked
def cifar10(
    folder: str | Path, split: str = "train", n: int | None = None, key: Key | None = None
) -> Dataset:
    """Read CIFAR-10 from its *binary* version in a folder of yours (the Python version is pickled code).

    Args:
        folder: holds ``data_batch_1.bin`` … ``data_batch_5.bin`` and ``test_batch.bin``.
        split: ``"train"`` or ``"test"``.
        n: how many images.
        key: random key that chooses which ones.

    Raises:
        UserError: for a missing or malformed file.
    """
    names = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}.get(
        split
    )
    if names is None:
        raise UserError(f"split must be train or test, got {split!r}")
    row = 1 + 3 * 32 * 32
    parts = []
    for name in names:
        path = Path(folder) / name
        if not path.is_file():
            raise UserError(f"there is no file {path}; put the binary version of CIFAR-10 there")
        try:
            raw = np.frombuffer(read_bytes(path), np.uint8)
        except OSError as trouble:
            raise UserError(f"{path} cannot be read ({trouble.strerror or trouble})") from None
        if raw.size == 0 or raw.size % row:
            raise UserError(
                f"{path} is not a CIFAR-10 batch: its size {raw.size} is no multiple of {row} bytes"
            )
        parts.append(raw.reshape(-1, row))
    rows = np.concatenate(parts)
    return _images(rows[:, 1:], rows[:, 0], f"CIFAR-10 {split}", n, key)


@checked
def signs(data: Dataset) -> Dataset:
    """Turn two one-hot classes into labels +1 (first column) and −1.

    >>> signs(digits(classes=(3, 8), n=50)).y.shape
    (50,)
    """
    if data.y.ndim != 2 or data.y.shape[1] != 2:
        raise UserError(f"labels ±1 need exactly two classes, got targets of shape {data.y.shape}")
    return Dataset(data.x, data.y[:, 0] - data.y[:, 1], data.name, data.known)


@checked
def on_sphere(data: Dataset) -> Dataset:
    """Centre the inputs on their mean and give each the length one.

    The mean is that of the whole set handed over, so that a choice of examples afterwards does not change them.

    Raises:
        UserError: an input that is the mean itself.

    >>> x = np.asarray(on_sphere(digits((3, 8))).x)
    >>> bool(np.allclose((x**2).sum(1), 1))
    True
    """
    x = np.asarray(data.x, float)
    centred = x - x.mean(0)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    if not (length > 1e-12 * max(1.0, float(np.abs(x).max(initial=0.0)))).all():
        raise UserError(
            "inputs on the sphere must differ from their mean, and one does not; leave it out"
        )
    return Dataset(centred / length, data.y, data.name, data.known)


@checked
def labels(data: Dataset) -> Float[Array, " n"]:
    """Return the class of each example, 0 … C−1, from one-hot targets."""
    return jnp.argmax(data.y, axis=1)


@checked
def balanced(data: Dataset, per_class: int, key: Key) -> Dataset:
    """Draw equally many examples of every class without replacement, sorted by class.

    Args:
        data: one-hot targets, shape ``(n, C)``.
        per_class: how many of each class.
        key: random key of the draw.

    Raises:
        UserError: where a class has fewer examples.

    >>> balanced(digits(), 2, jax.random.key(0)).y.sum(0).tolist()
    [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    """
    chosen = balanced_choices(data, per_class, key[None])[0].ravel()
    name = f"{data.name}, {per_class} a class"
    x = jnp.asarray(np.asarray(data.x)[chosen])
    y = jnp.asarray(np.asarray(data.y)[chosen])
    return Dataset(x, y, name, data.known)


@checked
def balanced_choices(
    data: Dataset, per_class: Count, draws: Array
) -> Int[np.ndarray, "draws C per_class"]:
    """Return which examples :func:`balanced` draws, for several keys in one compiled call.

    Args:
        data: one-hot targets, shape ``(n, C)``.
        per_class: how many of each class.
        draws: random keys, shape ``(draws,)``.

    Raises:
        UserError: where a class has fewer examples.

    >>> balanced_choices(digits(), 2, jax.random.split(jax.random.key(0), 3)).shape
    (3, 10, 2)
    """
    targets = np.asarray(data.y)
    least = int(targets.sum(0).min())
    if not 1 <= per_class <= least:
        raise UserError(
            f"{data.name} has {least} examples of its rarest class, got {per_class} to draw of each"
        )
    classes = targets.argmax(1)
    shuffled = np.asarray(
        _shuffled(classes, random_keys("draws", draws))
    )  # by class, at random within it
    first = np.searchsorted(np.sort(classes), np.arange(targets.shape[1]))
    return shuffled[:, first[:, None] + np.arange(per_class)]


@compile_quickly
def _shuffled(classes: Int[Array, " n"], draws: Key) -> Int[Array, "draws n"]:
    """Return the examples by class, at random within it, one order a key."""
    one = lambda key: jnp.argsort(classes + jax.random.uniform(key, classes.shape))
    return jax.vmap(one)(draws)


def _take(data: Dataset, n: int | None, key: Key | None) -> Dataset:
    if n is None:
        n = data.n
    if not 1 <= n <= data.n:
        raise UserError(f"{data.name} has {data.n} examples, got n = {n}")
    if key is None:  # no operation of JAX, which would compile
        x = data.x[:n]
        y = data.y[:n]
    else:
        chosen = np.asarray(_choice(key, data.n, n))
        x = np.asarray(data.x)[chosen]
        y = np.asarray(data.y)[chosen]
    return Dataset(jnp.asarray(x), jnp.asarray(y), data.name, data.known)


@partial(compile_quickly, static_argnums=(1, 2))
def _choice(key: Key, total: int, n: int) -> Int[Array, " n"]:
    return jax.random.choice(key, total, (n,), replace=False)


def _images(
    images: np.ndarray, classes: np.ndarray, name: str, n: int | None, key: Key | None
) -> Dataset:
    if classes.max() > 9:
        raise UserError(
            f"{name} has ten classes, 0 to 9, got a label {classes.max()}; fetch the files again"
        )
    x = images.reshape(len(images), -1).astype(float)
    scale = np.sqrt((x**2).mean()) or 1.0
    return _take(Dataset(jnp.asarray(x / scale), jax.nn.one_hot(classes, 10), name), n, key)


def _idx(folder: Path, stem: str) -> np.ndarray:
    """Read an idx file: two zero bytes, the type (8: unsigned bytes), the number of axes, the axes, the bytes."""
    for path in (folder / stem, folder / f"{stem}.gz"):
        if path.is_file():
            break
    else:
        raise UserError(
            f"there is no file {folder / stem} (nor with .gz); put MNIST's idx files there"
        )
    try:
        raw = read_bytes(path)
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as trouble:
        raise UserError(f"{path} cannot be read ({trouble}); fetch it again") from None
    axes = raw[3] if len(raw) > 3 and raw[:3] == b"\0\0\x08" else 0
    shape = np.frombuffer(raw[4 : 4 + 4 * axes], ">u4") if len(raw) >= 4 + 4 * axes else ()
    if not axes or len(raw) != 4 + 4 * axes + int(np.prod(shape)):
        raise UserError(f"{path} is not a whole idx file of bytes; fetch it again")
    return np.frombuffer(raw[4 + 4 * axes :], np.uint8).reshape([int(side) for side in shape])


def _span(classes: tuple[int, ...]) -> str:
    return "0-9" if len(classes) == 10 else ",".join(map(str, classes))
