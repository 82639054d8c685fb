"""Shipped data, and files that users bring: whole, damaged and missing ones."""

import gzip

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from steepest.core.errors import UserError
from steepest.nn.data import (
    Dataset,
    breast_cancer,
    cifar10,
    digits,
    labels,
    mnist,
    on_sphere,
    signs,
)


def test_digits_are_scikit_learns_scaled_to_mean_square_one():
    x, y = load_digits(return_X_y=True)
    data = digits()
    assert (data.n, data.d) == (1797, 64)
    assert (data.x**2).mean() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(data.x / data.x[0, 2], x / x[0, 2], rtol=1e-12)
    np.testing.assert_array_equal(labels(data), y)
    np.testing.assert_array_equal(data.y.sum(1), 1.0)


@pytest.mark.parametrize("classes", [(3, 8), (8, 3), (9, 0, 4)])
def test_columns_come_in_the_order_asked(classes):
    x, y = load_digits(return_X_y=True)
    chosen = np.isin(y, classes)
    data = digits(classes)
    np.testing.assert_array_equal(np.array(classes)[labels(data)], y[chosen])
    np.testing.assert_allclose(
        data.x, x[chosen] / np.sqrt((x**2).mean()), rtol=1e-12
    )  # the scale of the whole set
    assert data.y.shape == (chosen.sum(), len(classes))


def test_the_key_chooses_which_ones(key):
    whole = digits((3, 8))
    first = digits((3, 8), 20)
    drawn = digits((3, 8), 20, key)
    again = digits((3, 8), 20, key)
    np.testing.assert_array_equal(first.x, whole.x[:20])
    np.testing.assert_array_equal(drawn.x, again.x)
    assert not np.array_equal(drawn.x, first.x)
    rows = [np.flatnonzero((np.asarray(whole.x) == row).all(1)) for row in np.asarray(drawn.x)]
    assert (
        len({int(row[0]) for row in rows}) == 20
    )  # without replacement, images with their own labels
    np.testing.assert_array_equal(drawn.y, whole.y[np.array([row[0] for row in rows])])
    everything = digits((3, 8), whole.n, key)
    np.testing.assert_array_equal(everything.y.sum(0), whole.y.sum(0))


@pytest.mark.parametrize("classes", [(), (3,), (3, 3), (3, 10), (-1, 3)])
def test_digits_that_do_not_exist_are_refused(classes):
    with pytest.raises(UserError, match="at least two different classes from 0 to 9"):
        digits(classes)


def test_a_class_named_twice_is_refused():
    with pytest.raises(UserError):
        digits((3, 3, 8))


@pytest.mark.parametrize("n", [0, -1, 358])
def test_more_images_than_there_are_is_refused(n):
    with pytest.raises(UserError, match=f"digits 3,8 has 357 examples, got n = {n}"):
        digits((3, 8), n)


def test_breast_cancer_is_standardized_with_labels_of_one():
    x, y = load_breast_cancer(return_X_y=True)
    data = breast_cancer()
    assert data.x.shape == x.shape
    np.testing.assert_allclose(data.x.mean(0), 0.0, atol=1e-12)
    np.testing.assert_allclose((data.x**2).mean(0), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(data.y, 2.0 * y - 1.0)


def test_signs_and_labels_of_two_classes():
    two = Dataset(
        jnp.zeros((3, 1)), jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), "two", {"fact": 1}
    )
    assert signs(two).y.tolist() == [1.0, -1.0, 1.0]
    assert labels(two).tolist() == [0, 1, 0]
    assert (signs(two).name, signs(two).known) == ("two", {"fact": 1})


def test_inputs_on_the_sphere():
    three = Dataset(
        np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.0]]), np.arange(3.0), "three", {"fact": 1}
    )
    data = on_sphere(three)
    # the mean is (2, 1)
    np.testing.assert_allclose(
        data.x, np.array([[-2, -1], [2, -1], [0, 2]]) / [[5**0.5], [5**0.5], [2]]
    )
    assert (data.y.tolist(), data.name, data.known) == ([0.0, 1.0, 2.0], "three", {"fact": 1})
    with pytest.raises(UserError, match="differ from their mean"):
        on_sphere(Dataset(np.array([[0.0], [1.0], [2.0]]), np.zeros(3), "line"))


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 3)])
def test_signs_need_two_classes(shape):
    with pytest.raises(UserError, match=r"exactly two classes, got targets of shape \(4"):
        signs(Dataset(jnp.zeros((4, 1)), jnp.zeros(shape), "bad"))


# ------------------------------------------------------------------------------------------------ MNIST

IMAGES = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
CLASSES = np.array([7, 0, 9, 1, 7], np.uint8)


def idx(array, magic=b"\0\0\x08"):
    return magic + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def write_mnist(folder, images=IMAGES, classes=CLASSES, stem="train", packed=False):
    for name, raw in (
        (f"{stem}-images-idx3-ubyte", images),
        (f"{stem}-labels-idx1-ubyte", classes),
    ):
        raw = raw if isinstance(raw, bytes) else idx(raw)
        (folder / (f"{name}.gz" if packed else name)).write_bytes(
            gzip.compress(raw) if packed else raw
        )


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("split", "stem"), [("train", "train"), ("test", "t10k")])
def test_mnist_is_read_plain_or_gzipped(tmp_path, packed, split, stem):
    write_mnist(tmp_path, stem=stem, packed=packed)
    data = mnist(tmp_path, split)
    pixels = IMAGES.reshape(5, 12).astype(float)
    np.testing.assert_allclose(data.x, pixels / np.sqrt((pixels**2).mean()), rtol=1e-12)
    np.testing.assert_array_equal(labels(data), CLASSES)
    assert data.y.shape == (5, 10)
    assert data.name == f"MNIST {split}"
    assert mnist(str(tmp_path), split, n=2).x.shape == (2, 12)


def test_mnist_draws_by_the_key(tmp_path, key):
    write_mnist(tmp_path)
    whole = mnist(tmp_path)
    drawn = mnist(tmp_path, n=5, key=key)
    order = np.argsort(drawn.x[:, 1])
    np.testing.assert_array_equal(drawn.x[order], whole.x)
    np.testing.assert_array_equal(drawn.y[order], whole.y)


def test_black_images_are_no_division_by_zero(tmp_path):
    write_mnist(tmp_path, images=np.zeros((5, 2, 2), np.uint8))
    np.testing.assert_array_equal(mnist(tmp_path).x, 0.0)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(
        UserError, match="there is no file .*train-images-idx3-ubyte .*put MNIST's idx files there"
    ):
        mnist(tmp_path)
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(UserError, match="there is no file .*train-labels-idx1-ubyte"):
        mnist(tmp_path)
    with pytest.raises(UserError, match="there is no file .*t10k-images-idx3-ubyte"):
        mnist(tmp_path, "test")


WHOLE = idx(IMAGES)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        WHOLE[:2],
        WHOLE[:4],
        WHOLE[:9],
        WHOLE[:16],
        WHOLE[:-1],
        WHOLE + b"\0",
        idx(IMAGES, b"\0\0\x0d"),  # floats
        idx(IMAGES, b"\x89PN"),
        b"\0\0\x08\0",  # no axes
        b"<html>not found</html>",
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_idx_file_is_refused(tmp_path, raw, packed):
    write_mnist(tmp_path, images=raw, packed=packed)
    with pytest.raises(
        UserError,
        match=r"train-images-idx3-ubyte.* is not a whole idx file of bytes; fetch it again",
    ):
        mnist(tmp_path)


def test_a_damaged_archive_is_refused(tmp_path):
    write_mnist(tmp_path, packed=True)
    path = tmp_path / "train-images-idx3-ubyte.gz"
    whole = path.read_bytes()
    scrambled = whole[:12] + bytes(255 - b for b in whole[12:-8]) + whole[-8:]
    checksum = whole[:-8] + bytes(4) + whole[-4:]
    for raw in (whole[:-9], b"no archive", scrambled, checksum):
        path.write_bytes(raw)
        with pytest.raises(UserError, match="cannot be read .*; fetch it again"):
            mnist(tmp_path)


def test_as_many_labels_as_images(tmp_path):
    write_mnist(tmp_path, classes=CLASSES[:4])
    with pytest.raises(UserError, match="the train files in .* hold 5 images but 4 labels"):
        mnist(tmp_path)


@pytest.mark.parametrize(
    ("images", "classes"),
    [
        (IMAGES, np.array([7, 0, 10, 1, 7], np.uint8)),  # no digit
        (IMAGES, IMAGES),  # images in the place of labels
        (CLASSES, CLASSES),  # labels in the place of images
        (IMAGES[:0], CLASSES[:0]),  # nothing
    ],
)
def test_files_in_each_others_place_are_refused(tmp_path, images, classes):
    write_mnist(tmp_path, images, classes)
    with pytest.raises(UserError):
        mnist(tmp_path)


@pytest.mark.parametrize("loader", [mnist, cifar10])
def test_there_are_two_splits(tmp_path, loader):
    with pytest.raises(UserError, match="split must be train or test, got 'valid'"):
        loader(tmp_path, "valid")


# --------------------------------------------------------------------------------------------- CIFAR-10

ROW = 1 + 3 * 32 * 32


def rows(count, first=0):
    """``count`` images of one grey each, image i of class i mod 10."""
    index = np.arange(first, first + count)
    pixels = np.broadcast_to((10 + index)[:, None], (count, ROW - 1))
    return np.concatenate([(index % 10)[:, None], pixels], 1).astype(np.uint8).tobytes()


def write_cifar(folder, count=2):
    for i in range(5):
        (folder / f"data_batch_{i + 1}.bin").write_bytes(rows(count, i * count))
    (folder / "test_batch.bin").write_bytes(rows(3))


def test_cifar_is_read_from_its_binary_batches(tmp_path, key):
    write_cifar(tmp_path)
    train = cifar10(tmp_path)
    test = cifar10(tmp_path, "test")
    assert train.x.shape == (10, 3072)
    assert test.x.shape == (3, 3072)
    assert labels(train).tolist() == list(range(10))
    assert (train.x**2).mean() == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(train.x[:, 0] / train.x[0, 0], np.arange(10, 20) / 10, rtol=1e-12)
    assert (train.name, test.name) == ("CIFAR-10 train", "CIFAR-10 test")
    drawn = cifar10(tmp_path, n=4, key=key)
    np.testing.assert_array_equal(drawn.x, train.x[labels(drawn)])


def test_bad_cifar_files_are_refused(tmp_path):
    with pytest.raises(
        UserError, match="there is no file .*data_batch_1.bin; put the binary version"
    ):
        cifar10(tmp_path)
    write_cifar(tmp_path)
    with pytest.raises(UserError, match="CIFAR-10 train has 10 examples, got n = 11"):
        cifar10(tmp_path, n=11)
    for raw in (b"", rows(2)[:-1], rows(1) + b"\0"):
        (tmp_path / "data_batch_3.bin").write_bytes(raw)
        with pytest.raises(
            UserError,
            match="data_batch_3.bin is not a CIFAR-10 batch: its size .* no multiple of 3073",
        ):
            cifar10(tmp_path)
    (tmp_path / "data_batch_4.bin").unlink()
    (tmp_path / "data_batch_3.bin").write_bytes(rows(1))
    with pytest.raises(UserError, match="there is no file .*data_batch_4.bin"):
        cifar10(tmp_path)


def test_a_cifar_label_above_nine_is_refused(tmp_path):
    write_cifar(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"\x0a" + rows(1)[1:])
    with pytest.raises(UserError):
        cifar10(tmp_path, "test")
