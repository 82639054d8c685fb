# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---


# %% [markdown]
# # Few images, and what an architecture knows
#
# With fifty labelled images, how much is it worth to know that a picture stays what it is when it moves?
#
# **You will** compute the kernels of an infinitely wide convolutional network on images of digits, put them beside that
# of a fully connected network and a Gaussian kernel, and say how sure the comparison is. The question is one of the
# theory's: a network's architecture is what it believes before it has seen anything, and a kernel is that belief as a
# matrix. Whoever has few examples lives by beliefs.
#
# **It takes** ten minutes. The cells run for about half a minute on one core.
#
# **You need** Steepest (`pip install .` in its folder). The images come with scikit-learn, which it brings.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import t as student
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from steepest.kernels import gram, kernel_ridge
from steepest.nn.layers import conv, dense, global_pool, network
from steepest.nn.networks import mlp

digits = load_digits()
chosen = np.random.default_rng(0).permutation(len(digits.target))[:400]
images = (digits.images[chosen, :, :, None] / 16).astype(np.float32)
labels = digits.target[chosen]

# %% [markdown]
# ## Four kernels
#
# A network of infinitely many channels is known by two kernels: the covariance of its outputs at the start (NNGP; a
# Gaussian process), and the tangent kernel (NTK), with which it is trained. Its architecture is in them. Behind
# `global_pool` each position of one image meets each position of the other, so that a digit that moved is the same
# digit. The fully connected network sees numbers in no order: exchange two pixels in all images, and its kernel is what
# it was. The Gaussian kernel knows a distance, and whoever uses it chooses its width.
#
# All entries come in one call. Convolutions keep pairs of positions with the same displacement together, pooling wants
# them all, and `gram` computes as many as the output depends on; the error that it gives is a bound.
#
# :::{idea} displacement
# :::

# %%
layers = [layer for _ in range(3) for layer in (conv(64), "relu")]
convolutional = network(
    *layers, global_pool(), dense(1), shape=(8, 8, 1), parameterized="ntk", c_w=2.0, c_b=0.01
)
connected = mlp((64, 512, 512, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.01)
rows = images.reshape(len(images), -1)
pooled = gram(convolutional.limit(), images)
size = np.median(((rows[:, None] - rows[None]) ** 2).sum(-1))
candidates = {
    "convolutional, NTK": [pooled.ntk],
    "convolutional, NNGP": [pooled.nngp],
    "fully connected, NTK": [gram(connected.limit(), rows).ntk],
    "Gaussian": [rbf_kernel(rows, gamma=factor / size) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)],
}
print(f"error of the convolutional kernels, at most: {pooled.error:.0e} of the diagonal")

# %% [markdown]
# ## One split
#
# Ridge regression of one-hot labels, and the largest output is the answer. The ridge, and the width of the Gaussian
# kernel, are chosen on a fifth of the training images, so that no kernel is tuned on what it is tested on. That costs
# all of them alike, as a fifth of few is not much to choose by.

# %%
RIDGES = 10.0 ** np.arange(-6, 1)


def right(kernel: np.ndarray, train: np.ndarray, test: np.ndarray, ridge: float) -> float:
    """Return the share of the test images that a kernel trained on others gets right."""
    own = kernel[np.ix_(train, train)].astype(float)
    penalty = ridge * np.trace(own) / len(train)
    fits = [kernel_ridge(own, 2.0 * (labels[train] == digit) - 1, penalty) for digit in range(10)]
    across = kernel[np.ix_(test, train)].astype(float)
    answers = np.argmax([fit.predict(across) for fit in fits], axis=0)
    return float((answers == labels[test]).mean())


def score(kernels: list[np.ndarray], train: np.ndarray, test: np.ndarray) -> float:
    """Choose kernel and ridge on a fifth of the training images, and test."""
    fifth = len(train) // 5
    choices = [(kernel, ridge) for kernel in kernels for ridge in RIDGES]
    held = [right(kernel, train[fifth:], train[:fifth], ridge) for kernel, ridge in choices]
    kernel, ridge = choices[int(np.argmax(held))]
    return right(kernel, train, test, ridge)


order = np.random.default_rng(1).permutation(len(labels))
for name, kernels in candidates.items():
    print(f"{name}: {score(kernels, order[:50], order[100:]):.3f} right of 300, trained on 50")

# %% [markdown]
# ## Is it luck?
#
# One split tells little: which fifty images one happens to have matters as much as the kernel. So we draw ten times,
# with the same images for all kernels, and compare on each draw: what makes a draw hard is hard for all, and drops out
# of the difference. The interval is Student's, for the mean difference, at a level of 0.95. Draws share test images,
# which makes it a little too narrow for the world of all digits; it is about these.

# %%
COUNTS = (25, 50, 100)
LEVEL = 0.95
scores = {name: np.zeros((len(COUNTS), 10)) for name in candidates}
for draw in range(10):
    order = np.random.default_rng(100 + draw).permutation(len(labels))
    for i, count in enumerate(COUNTS):
        for name, kernels in candidates.items():
            scores[name][i, draw] = score(kernels, order[:count], order[100:])

best = scores["convolutional, NTK"]
for name in ("convolutional, NNGP", "fully connected, NTK", "Gaussian"):
    for i, count in enumerate(COUNTS):
        gap = best[i] - scores[name][i]
        half = student.ppf((1 + LEVEL) / 2, 9) * gap.std(ddof=1) / 10**0.5
        print(
            f"{count} images, convolutional NTK over {name}: {gap.mean():+.3f}, between {gap.mean() - half:+.3f} and "
            f"{gap.mean() + half:+.3f}"
        )

# %% [markdown]
# The same as a picture. Bars are intervals of each mean alone; they overlap more than the differences above suggest, as
# they hold the luck of the draw that all kernels share.

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.6))
for name, values in scores.items():
    mean = values.mean(1)
    half = student.ppf((1 + LEVEL) / 2, 9) * values.std(1, ddof=1) / 10**0.5
    axes.errorbar(COUNTS, mean, half, marker="o", capsize=3, label=name)
axes.set_xscale("log")
axes.set_xticks(COUNTS, map(str, COUNTS))
axes.set_xlabel("training images")
axes.set_ylabel("share of 300 that is right")
axes.legend()
figure.tight_layout()

# %% [markdown]
# ## What it says, and what not
#
# Read the intervals, not the means: where one covers zero, these draws cannot tell the two apart. The architecture is
# what matters: the convolutional kernel is ahead of the connected one and of the Gaussian at every number of images
# that we tried. Of the two kernels of one architecture the tangent kernel, which is what training means in this limit,
# is not the better one; with the fewest images it is the covariance at the start that wins, and with more they part no
# longer.
#
# All this is about ten digits of few pixels and these kernels. It does not say that a trained network of finite width
# would do the same: its features move, and `steepest run lazy-or-rich` shows when they do. Nor does it say that pooling
# always helps. A kernel that cannot tell where something stands cannot learn a question about places.
#
# ## Where next
#
# * [Kernels for users of neural-tangents](neural_tangents.py): strides, branches, graphs, tiles on disk.
# * `examples/kernels`: such a kernel in scikit-learn, tinygp, GPJax and GPyTorch, which learn its coefficients.
