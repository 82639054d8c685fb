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
# # Kernels for users of neural-tangents
#
# You know `kernel_fn`, `empirical_ntk_fn` and `predict`. What are they called here, what is different, and what is
# missing?
#
# **You will** see each of your calls beside ours, run ours, and check it in the same cell against a closed form or
# another way to the same number.
#
# **It takes** fifteen minutes. The cells run for about a minute on one core.
#
# **You need** Steepest (`pip install .` in its folder), and not neural-tangents, whose last release does not import
# on the JAX of today.

# %% [markdown]
# ## Their call, ours
#
# | neural-tangents | Steepest |
# |---|---|
# | `stax.serial(stax.Dense(n), stax.Relu(), …, stax.Dense(1))` | `mlp((d, n, …, 1), "relu", parameterized="ntk")` |
# | `W_std` and `b_std` of each `stax.Dense` | `c_w=W_std**2`, `c_b=b_std**2` of `mlp` |
# | `init_fn`, `apply_fn` | `net.init(key)`, `net.apply(params, x)` |
# | `kernel_fn(x1, x2, ("nngp", "ntk"))` | `gram(net.limit(), x1, x2)`, with an error |
# | `stax.Elementwise(f)`, `stax.ElementwiseNumerical(f, deg)` | any function of JAX as activation, with an error |
# | `stax.Conv(n, (3, 3), padding="SAME")`, … in `stax.serial` | `network(conv(n), "relu", …, shape=(h, w, c))` |
# | `stax.AvgPool((2, 2))`, whose stride is one | `pool(2, stride=1)`; `pool(2)` has the stride of its window |
# | `stax.GlobalAvgPool`, `stax.Flatten` | `global_pool()`, `flatten()` |
# | `normalize_edges=True` | `pool(…, count_edges=False)` |
# | `stax.SumPool`, `stax.GlobalSumPool` | `sum_pool(2, stride=1)`, `global_sum_pool()` |
# | `stax.LayerNorm()` before an activation | `layer_norm()`, after one too; `mlp(…, normalize=True)` |
# | `stax.LayerNorm(axis=(1, 2, 3))` | `layer_norm("all")` |
# | `stax.Dropout(rate)`, of which `rate` is kept | `dropout(1 - rate)`, `net.apply(params, x, key=key)` |
# | `stax.FanOut`, `stax.parallel`, `stax.FanInSum` | `add(identity, serial(…))`; `mlp(…, skip=…)` |
# | `stax.FanInConcat`, `stax.FanInProd` | `concatenate(…, space=…)`, also before an activation; `multiply(…)` |
# | `stax.ConvLocal`, `stax.ConvTranspose` | `conv(n, shared=False)`, `conv(n, stride=2, transposed=True)` |
# | `stax.Aggregate` | `aggregate(matrix, axis)` |
# | `pattern=` of each input, also lists of edges | `aggregate()`, `gram(…, graphs=A)`, `adjacency(edges, n)` |
# | `stax.ImageResize`, `stax.Index` | `resize((h, w))`, cubic too; `select(0)` |
# | `stax.GlobalSelfAttention(…, linear_scaling=True)` | `attention(n, heads=…, key=…)`, softmax included |
# | `attention_mechanism="RELU"`, `pos_emb_type="SUM"` | `attention(…, weights="relu")`, `positional_embedding(c)` |
# | `linear_scaling=False`, without softmax only | `attention(…, scale="1/sqrt(d)", tied=False)`: `gram_over_heads` |
# | outputs with positions of their own | `gram_positions(net.limit(), x1, x2)` |
# | `mask_constant`, a number that stands for what is missing | `gram(…, mask=…)`, True where a position exists |
# | `diagonal_axes` of `kernel_fn` | `gram_diagonal(net.limit(), x)` |
# | kernels of a truncated `stax.serial`, one for each layer | `gram_layers(net.limit(), x)`: all of them in one pass |
# | `jax.grad` of `kernel_fn` | `jax.grad` of `gram`, or of `kernel_function(net.limit(), like)` for one pair |
# | none: W_std and b_std are fixed | `jax.grad` by `c_w`, `c_b`, branch weights; `fit` learns these by likelihood |
# | `nt.empirical_ntk_fn(f)(x1, x2, params)` | `empirical_ntk(f, params, x1, x2)` |
# | `nt.monte_carlo_kernel_fn(init_fn, apply_fn, key, n)` | `sampled_gram(net, x, key, count=n)`, with standard errors |
# | `nt.predict.gradient_descent_mse(k, y)` | `kernel_dynamics(k)`: `flow` (to `np.inf` too), `train`, `test` |
# | the mean over k outputs in its loss | `kernel_dynamics(k, loss="mean over outputs", outputs=…)` |
# | `diag_reg`, relative or absolute | `kernel_dynamics(k, regularization=…, relative=True)` |
# | none: time is continuous there | `kernel_dynamics(k).descent(lr, steps, momentum)` |
# | `nt.predict.gradient_descent(loss, k, y)` | `kernel_training(k, loss, y)`: `flow`, `descent`, `test` |
# | `nt.predict.gradient_descent_mse_ensemble(kernel_fn, x, y)` | `kernel_dynamics(k).ensemble(…)` |
# | `nt.predict.max_learning_rate(k, y_train_size, momentum)` | `kernel_dynamics(k).largest_step(momentum)` |
# | `nt.predict.gp_inference(k, y, diag_reg)` | `gaussian_process(k, y, noise)`, `kernel_ridge(k, y, λ)` |
# | none: labels as numbers | `laplace(k, labels)`: probabilities of classes |
# | `nt.batch(kernel_fn, batch_size, device_count)` | not needed; `tiled_gram(…, devices=…)` beyond memory |
# | `nt.linearize(f, params)` | `linearize(f, params)` |
# | `nt.taylor_expand(f, params, 3)` | `taylor_expand(f, params, 3)` |
# | `nt.empirical_nngp_fn(f)(x1, x2, params)` | `empirical_nngp(f, params, x1, x2)` |
#
# Missing: normalization over the batch, and the tangent kernel of a jump, which is infinite. A layer of your own takes
# one file: `examples/own_layer.py`.

# %%
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from sklearn.datasets import load_digits

from steepest.core.errors import UserError
from steepest.kernels import (
    diagnose,
    empirical_ntk,
    fit,
    gaussian_process,
    gram,
    gram_layers,
    gram_over_heads,
    kernel_dynamics,
    kernel_function,
    kernel_ridge,
    kernel_training,
    laplace,
    linearize,
    log_marginal_likelihood,
    recommended_width,
    sampled_gram,
    tiled_gram,
)
from steepest.nn.activations import activation
from steepest.nn.layers import attention, conv, dense, flatten, global_pool, network
from steepest.nn.losses import cross_entropy
from steepest.nn.networks import mlp

jax.config.update("jax_enable_x64", True)


def compare(what: str, ours, reference) -> None:
    """Print the largest difference of two arrays, relative to the largest number."""
    difference = np.abs(np.asarray(ours) - np.asarray(reference)).max() / np.abs(reference).max()
    print(f"{what}: differ by {difference:.0e}")


rng = np.random.default_rng(0)
x = rng.normal(size=(60, 20))
new = rng.normal(size=(10, 20))
y = np.sin(x[:, 0])

# %% [markdown]
# ## kernel_fn
#
# One definition gives the finite network and its limit. We write variances where you wrote standard deviations: C_W
# is `W_std**2`. The first layer divides by the input dimension in both libraries.
#
# ReLU has a closed form, the arc-cosine kernels of Cho and Saul. Here it is by hand, layer by layer.

# %%
net = mlp((20, 256, 256, 1), "relu", parameterized="ntk", c_w=2.0, bias=False)
kernels = gram(net.limit(), x)


def relu_by_hand(x: np.ndarray, depth: int, c_w: float) -> tuple[np.ndarray, np.ndarray]:
    """Return NNGP and NTK of a ReLU network without biases."""
    nngp = c_w * x @ x.T / x.shape[1]
    ntk = nngp
    for _ in range(depth):
        size = np.sqrt(np.outer(np.diag(nngp), np.diag(nngp)))
        angle = np.arccos(np.clip(nngp / size, -1, 1))
        slopes = c_w * (np.pi - angle) / (2 * np.pi)
        nngp = c_w * size * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
        ntk = nngp + slopes * ntk
    return nngp, ntk


for name, ours, by_hand in zip(("NNGP", "NTK"), kernels[:2], relu_by_hand(x, 2, 2.0), strict=True):
    compare(name, ours, by_hand)
print(f"error that gram gives: {kernels.error:.0e}")

# %% [markdown]
# `gram` computes only one half of a symmetric matrix, and depth costs hardly anything per entry: the whole recursion
# is tabulated once as a function of two norms and an angle. The error that you get is that of the table. For kinked
# activations the rounding of the angle between nearly parallel inputs comes on top, and the docstring says how much.
#
# ## Convolutions and pooling
#
# A network of layers is described once too: `init` and `apply` are those of the finite network, and `limit` gives
# what `gram` needs. Padding is zero, circular or none. Behind `global_pool` every position of one image meets every
# position of the other; behind `flatten` only equal positions count, and between strides and small pools just the
# pairs that the output depends on are computed.
#
# How good is such a kernel? We let two of them learn the ten digits from 50 images of scikit-learn, by ridge
# regression of one-hot labels, and count the errors on 150 others.

# %%
digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.target))[:200]
images = (digits.images[order, :, :, None] / 16).astype(np.float32)
labels = np.eye(10)[digits.target[order]]
convolutional = network(
    *[conv(64), "relu"] * 2,
    global_pool(),
    dense(1),
    shape=(8, 8, 1),
    parameterized="ntk",
    c_w=2.0,
    c_b=0.01,
)
connected = mlp((64, 512, 512, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.01)
pooled = gram(convolutional.limit(), images)
for name, kernel in (
    ("convolutional network, global pooling", pooled.ntk),
    ("fully connected network", gram(connected.limit(), images.reshape(200, -1)).ntk),
):
    train = kernel[:50, :50]
    weights = np.linalg.solve(train + 1e-3 * np.trace(train) / 50 * np.eye(50), labels[:50])
    guesses = (kernel[50:, :50] @ weights).argmax(1)
    print(f"{name}: {(guesses != labels[50:].argmax(1)).sum()} of 150 wrong")

# %% [markdown]
# Averaging over all positions knows that a digit that moves stays the same digit; this is one draw of images, so take
# the counts as an example ([Few images](few_images.py) measures it). Where a layer has no known limit the
# description says which one, and what to do; the finite network works all the same.

# %%
twice = network(conv(8), "relu", "relu", flatten(), dense(1), shape=(8, 8, 1), parameterized="ntk")
print(twice.apply(twice.init(jax.random.key(0)), images).shape)
try:
    twice.limit()
except UserError as sentence:
    print(sentence)

# %% [markdown]
# `gram_layers` gives the kernels behind each layer in one pass, with the name of the layer. Where positions are left,
# each position of one image meets each position of the other. The first layer is linear in the covariance of patches,
# and the last is what `gram` gives.

# %%
few = images[:3].astype(float)
behind = gram_layers(convolutional.limit(), few)
for layer in behind:
    print(f"{layer.name}: {layer.ntk.shape}, error at most {layer.error:.0e}")
padded = np.pad(few[..., 0], ((0, 0), (1, 1), (1, 1)))
patches = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2)).reshape(3, 8, 8, 9)
by_patches = 0.01 + 2.0 / 9 * np.einsum("ipqs,jrts->ijpqrt", patches, patches)
compare("behind the first layer", behind[0].nngp, by_patches)
compare("behind the last", behind[-1].nngp, gram(convolutional.limit(), few).nngp)

# %% [markdown]
# Inputs need not be equally long. Fill them up, and say by a mask which positions exist: convolutions read zeros at the
# others, and neither pools nor attention count them. Where layers pad with zeros a sequence that is filled up is then
# the shorter sequence, whatever it is filled up with. `apply` takes the same mask, so that the finite network agrees.
# Strides are exact too if both lengths leave the same remainder by the stride.

# %%
reads = [conv(16), "relu", conv(16), "relu", global_pool(), dense(1)]
options = {"parameterized": "ntk", "c_w": 2.0}
sequences = rng.normal(size=(4, 12, 3))
lengths = np.array([12, 9, 9, 5])
exists = np.arange(12) < lengths[:, None]
filled = gram(network(*reads, shape=(12, 3), **options).limit(), sequences, mask=exists)
shorter = gram(network(*reads, shape=(9, 3), **options).limit(), sequences[1:3, :9])
compare("NTK of the two sequences of length 9", filled.ntk[1:3, 1:3], shorter.ntk)

# %% [markdown]
# Attention divides products of queries and keys by √d in practice. Its weights then stay random, another draw in each
# head, and the kernel is a mean over heads. `gram_over_heads` draws heads of infinitely wide keys and gives the mean
# with standard errors, the terms of queries and keys in the tangent kernel included. Blunt heads, whose products are
# nearly zero, average over positions, which has a kernel in closed form.


# %%
def attends(sharpness: float):
    """Return the limit of a network with one layer of attention over √d."""
    heads = attention(16, heads=4, key=16, scale="1/sqrt(d)", tied=False, sharpness=sharpness)
    return network(dense(16), heads, global_pool(), dense(1), shape=(12, 3), **options).limit()


averaged = network(*[dense(16)] * 3, global_pool(), dense(1), shape=(12, 3), **options)
blunt = gram_over_heads(attends(1e-12), sequences, jax.random.key(0), heads=2, count=2)
compare("NNGP of blunt heads and of an average", blunt.nngp, gram(averaged.limit(), sequences).nngp)
drawn = gram_over_heads(attends(1.0), sequences, jax.random.key(0), heads=32, count=8)
share = (drawn.ntk_error / np.sqrt(np.outer(np.diag(drawn.ntk), np.diag(drawn.ntk)))).max()
print(f"256 sharper heads: standard errors of the NTK up to {share:.1%}")

# %% [markdown]
# `kernel_function` gives the entry of `gram` for one pair of inputs, as a function of JAX. Its gradient tells in which
# direction two images become more alike, and is finite at equal inputs too. It takes masks of both inputs,
# `kernel(one, two, mask, other_mask)`, and `jax.vmap` maps over them. `examples/kernels`
# has recipes for scikit-learn, tinygp, GPJax and GPyTorch.

# %%
kernel = kernel_function(convolutional.limit(), images)
one = jnp.asarray(images[0], float)
print(
    f"entry of gram {gram(convolutional.limit(), images[:2]).ntk[0, 1]:.5f}, function {kernel(one, images[1]).ntk:.5f}"
)
towards = jax.jit(jax.grad(lambda x: kernel(x, one).nngp))(one)
print("gradient at equal images is finite:", bool(jnp.isfinite(towards).all()))

# %% [markdown]
# ## Biases, the one trap
#
# In the NTK parameterization of `stax.Dense` a bias enters as `b_std * b`, so training it adds `b_std**2` to the
# tangent kernel in every layer. Ours enters as b with variance C_b, and training it adds 1. The covariances agree,
# and the tangent kernels do not. If you need theirs, say so: the limit is data, and `t_b` is that number.

# %%
limit = mlp((20, 256, 256, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.25).limit()
theirs = replace(limit, layers=tuple(layer._replace(t_b=layer.c_b) for layer in limit.layers))
ours, as_stax = gram(limit, x), gram(theirs, x)
compare("NNGP of both conventions", ours.nngp, as_stax.nngp)
compare("NTK of both conventions", ours.ntk, as_stax.ntk)

one_layer = replace(theirs, layers=theirs.layers[:1])
compare("one layer as stax has it, by hand", gram(one_layer, x).ntk, 2.0 * x @ x.T / 20 + 0.25)

# %% [markdown]
# ## Activations without a closed form
#
# `stax.ElementwiseNumerical` takes a degree, and says nothing of its error. Here any function will do, and the error
# comes with the kernel. For one hidden layer of tanh, NumPy's rule of Gauss and Hermite is another way to an entry.

# %%
tanh = mlp((20, 256, 1), "tanh", parameterized="ntk", c_w=1.5, bias=False)
probabilities = gram(tanh.limit(), x)
covariance = 1.5 * x[:2] @ x[:2].T / 20
nodes, masses = np.polynomial.hermite_e.hermegauss(150)
pairs = np.linalg.cholesky(covariance) @ np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
weights = np.outer(masses, masses).ravel() / masses.sum() ** 2
compare("one entry of tanh", probabilities.nngp[0, 1], 1.5 * np.tanh(pairs).prod(0) @ weights)
print(f"error that gram gives: {probabilities.error:.0e}")

# %% [markdown]
# ## empirical_ntk_fn
#
# The arguments come in another order, and the result has another normalization. With several outputs
# `trace_axes=(-1,)` gives the *mean* over outputs there, and `outputs="trace"` the *sum* here. `outputs="all"` has
# the axes (n, k, m, k) where theirs has (n, m, k, k). A linear model has its Gram matrix as tangent kernel.

# %%
linear = lambda w, x: x @ w
compare("one output", empirical_ntk(linear, jnp.ones(20), x), x @ x.T)
compare(
    "sum over three outputs",
    empirical_ntk(linear, jnp.ones((20, 3)), x, outputs="trace"),
    3 * x @ x.T,
)
print("all pairs of outputs:", empirical_ntk(linear, jnp.ones((20, 3)), x, outputs="all").shape)

# %% [markdown]
# ## monte_carlo_kernel_fn
#
# The mean of finite networks tends to the limit, and its statistical error tells whether it is there. It needs no
# limit: take it where the description refuses one. `recommended_width` says how wide one network must be instead.

# %%
drawn = sampled_gram(net, x[:6], jax.random.key(1), count=100)
away = np.abs(drawn.ntk - kernels.ntk[:6, :6]) / drawn.ntk_error
single = empirical_ntk(net, net.init(jax.random.key(1)), x[:6])
one = np.abs(single - kernels.ntk[:6, :6]).max() / kernels.ntk[:6, :6].max()
print(f"one network of width 256: off by {one:.0%} of the largest entry")
print(
    f"mean of 100: at most {away.max():.1f} standard errors from the limit, in {away.size} entries"
)
print(
    "width for one network within 5 %:",
    recommended_width(activation("relu"), 2.0, 0.0, 1.0, 2, 0.05),
)

# %% [markdown]
# ## predict.gradient_descent_mse
#
# The risk is ½ the mean of (f − y)², as there. `flow` is their continuous time, with `learning_rate * t` as the time.
# `train` and `test` turn progress into outputs. A matrix exponential checks it.

# %%
dynamics = kernel_dynamics(kernels.ntk)
cross = gram(net.limit(), new, x)
times = [0.1, 1.0, 10.0]
flow = dynamics.flow(times)
outputs = dynamics.train(flow, y)
by_hand = [y - scipy.linalg.expm(-kernels.ntk / len(x) * time) @ y for time in times]
compare("flow on the training inputs", outputs, by_hand)
late = dynamics.test(dynamics.flow([np.inf]), cross.ntk, y)[0]
compare("the end of the flow, new inputs", late, cross.ntk @ np.linalg.solve(kernels.ntk, y))

# %% [markdown]
# With k outputs their loss is a mean over all entries, which makes training k times slower: give
# `loss="mean over outputs", outputs=k`. Their `diag_reg` is
# called `regularization`, and `relative=True` makes it a multiple of the mean of the diagonal.

# %%
three = np.sin(x[:, :3])
slower = kernel_dynamics(kernels.ntk, loss="mean over outputs", outputs=3)
compare(
    "a mean over three outputs is a third of the time",
    slower.train(slower.flow(times), three),
    dynamics.train(dynamics.flow(np.array(times) / 3), three),
)
regularized = kernel_dynamics(kernels.ntk, regularization=1e-2, relative=True)
ridge = kernel_ridge(kernels.ntk, y, 1e-2 * np.trace(kernels.ntk) / len(x))
late = regularized.test(regularized.flow([np.inf]), cross.ntk, y)[0]
compare("the regularized end is kernel ridge", late, ridge.predict(cross.ntk))

# %% [markdown]
# `predict.gradient_descent` takes other losses. Here it is `kernel_training`, and a loss is a function of outputs and
# targets. With the squared loss it must give the same again. `error` is measured, by a second integrator.

# %%
squares = kernel_training(kernels.ntk, lambda f, y: 0.5 * jnp.mean((f - y) ** 2), y).flow(times)
compare("the same by integration", squares.train, outputs)
print(f"error that the integration gives: {squares.error:.0e}")
classes = (y > 0).astype(int)
training = kernel_training(kernels.ntk, cross_entropy, classes, start=np.zeros((60, 2)))
path = training.flow(times)
print("cross-entropy at these times:", path.risk.round(3).tolist())
print("outputs on new inputs, times, inputs, classes:", path.test(cross.ntk).shape)

# %% [markdown]
# Your network is trained by steps, and not by a flow. Near the largest stable step the two are far apart. `descent`
# has the closed form for steps, with momentum if you like. A loop of five steps checks it.

# %%
lr = 0.95 * dynamics.largest_step()
stepped = dynamics.train(dynamics.descent(lr, [5]), y)[0]
f = np.zeros(len(x))
for _ in range(5):
    f = f - lr * kernels.ntk @ (f - y) / len(x)
compare("five steps and the loop", stepped, f)
compare(
    "five steps and the flow of the same time", dynamics.train(dynamics.flow([5 * lr]), y)[0], f
)

# %% [markdown]
# ## max_learning_rate
#
# It is 2/λ_max of Θ/n, and 2(1 + β)/λ_max with momentum β, as there.

# %%
by_hand = 2 * len(x) / np.linalg.eigvalsh(kernels.ntk)[-1]
compare("largest step", dynamics.largest_step(), by_hand)
for factor in (0.99, 1.01):
    end = dynamics.train(dynamics.descent(factor * by_hand, [3000]), y)[0]
    print(f"{factor} of it, 3000 steps: largest output {np.abs(end).max():.3g}")

# %% [markdown]
# ## gradient_descent_mse_ensemble
#
# Mean and covariance over random starts, at any time. It needs the covariance at the start over training and new
# inputs together. At the end of training the mean is kernel regression, and what is left is the covariance of what
# was never learned.

# %%
both = gram(net.limit(), np.concatenate([x, new])).nngp
ensemble = dynamics.ensemble(dynamics.flow([0.0, np.inf]), y, both, cross.ntk)
compare("covariance at the start", ensemble.covariance[0], both[60:, 60:])
a = cross.ntk @ np.linalg.inv(kernels.ntk)
by_hand = both[60:, 60:] - a @ both[:60, 60:] - (a @ both[:60, 60:]).T + a @ both[:60, :60] @ a.T
compare("covariance at the end", ensemble.covariance[1], by_hand)

# %% [markdown]
# ## gp_inference
#
# Their `diag_reg` is relative to the mean of the diagonal, unless you say otherwise. Our `noise` is a variance. The
# result has the likelihood of the data besides.

# %%
noise = 1e-3 * np.trace(kernels.nngp) / len(x)  # diag_reg=1e-3
posterior = gaussian_process(kernels.nngp, y, noise)
regular = kernels.nngp + noise * np.eye(len(x))
compare("posterior mean", posterior.mean(cross.nngp), cross.nngp @ np.linalg.solve(regular, y))
by_hand = both[60:, 60:] - cross.nngp @ np.linalg.solve(regular, cross.nngp.T)
compare("posterior covariance", posterior.covariance(cross.nngp, both[60:, 60:]), by_hand)
compare(
    "kernel ridge",
    kernel_ridge(kernels.nngp, y, noise).predict(cross.nngp),
    posterior.mean(cross.nngp),
)
print(
    f"log likelihood {float(posterior.log_likelihood):.2f}; residual of the solve {posterior.solution.residual:.0e}"
)

# %% [markdown]
# Noise may differ among inputs, `(n,)`, among outputs, `(1, k)`, or both, `(n, k)`. For labels instead of numbers there
# is `laplace`: the Gaussian at the mode of the posterior, with probabilities of classes and their intervals.

# %%
levels = noise * np.array([[1.0, 10.0, 100.0]])
several = gaussian_process(kernels.nngp, three, levels).variance(cross.nngp, np.diag(both)[60:])
alone = gaussian_process(kernels.nngp, three[:, 2], levels[0, 2])
compare(
    "the third output's variance", several[:, 2], alone.variance(cross.nngp, np.diag(both)[60:])
)
classified = laplace(10 * kernels.nngp, np.sign(y))
probabilities = classified.predict(10 * cross.nngp, 10 * np.diag(both)[60:])
print(f"gradient at the mode: {classified.mode.residual:.0e}")
for p, low, high in list(
    zip(probabilities.mean, probabilities.lower, probabilities.upper, strict=True)
)[:3]:
    print(f"probability of a positive label: {p:.2f}, 95 % of its law in [{low:.2f}, {high:.2f}]")

# %% [markdown]
# ## batch
#
# `gram` works in tiles already, and any number of rows will do. For a matrix larger than memory, `tiled_gram` keeps
# the tiles in a folder, those of networks of layers too. A kill costs the tile in flight, `devices` shares tiles among
# the devices of one machine, and `submit` hands them to a cluster.

# %%
with TemporaryDirectory() as folder:
    tiled = tiled_gram(net.limit(), x, folder, tile=25)
    compare("tiles on disk", tiled.ntk.toarray(), kernels.ntk)
    print(f"{len(list(Path(folder).iterdir()))} files, complete: {tiled.complete}")

# %% [markdown]
# ## linearize
#
# The linearized network has the tangent kernel of its center, wherever its parameters go.

# %%
params = net.init(jax.random.key(0))
moved = jax.tree.map(lambda w: w + 0.1, params)
compare(
    "kernel of the linearized network, moved",
    empirical_ntk(linearize(net, params), moved, x[:10]),
    empirical_ntk(net, params, x[:10]),
)

# %% [markdown]
# ## Learn C_W and C_b
#
# `gram` takes coefficients that JAX traces, so the marginal likelihood has derivatives by them. `fit` climbs it.


# %%
def limit_of(c):
    """Return the limit of a network with these coefficients."""
    return mlp((20, 9, 9, 1), "erf", parameterized="ntk", c_w=c["c_w"], c_b=c["c_b"]).limit()


def likelihood(c, noise):
    """Return the log marginal likelihood of these coefficients."""
    return log_marginal_likelihood(gram(limit_of(c), x).nngp, jnp.asarray(y), noise)


chosen = {"c_w": 1.0, "c_b": 0.1}
print(
    "derivatives:",
    jax.tree.map(lambda v: round(float(v), 2), jax.jit(jax.grad(likelihood))(chosen, 0.1)),
)
fitted = fit(limit_of, chosen, x, y)
print(
    "log likelihood:",
    round(float(likelihood(chosen, 0.1)), 1),
    "→",
    round(fitted.log_likelihood, 1),
)
print({name: round(value, 3) for name, value in fitted.hyperparameters.items()}, fitted.converged)

# %% [markdown]
# ## When a kernel has no inverse
#
# A Gram matrix may be singular to rounding. `diagnose` says which rows are to blame, and what to do.

# %%
print(diagnose(kernels.ntk))
print(diagnose(gram(net.limit(), np.vstack([x, x[:1]])).ntk))

# %% [markdown]
# ## What people asked for
#
# [The issues](https://github.com/google/neural-tangents/issues) of its repository say what its users lacked. What would
# their authors get here?
#
# | issues | asked for | here |
# |---|---|---|
# | 171, 190, 209 | to install it today | Python 3.11 to 3.13 with the JAX of today, tried before each release |
# | 29, 182 | pooling that takes no terabytes | memory that pairs of pixels do not fill; 17 to 28 times less time |
# | 99, 119 | a flax module's kernel | `empirical_ntk` of any function; limits of our own layers only: no converter |
# | 36, 76, 88 | no NaN | gradients finite at equal and opposite inputs; a bound of the error; rows of zeros too |
# | 73, 197, 198 | singular kernels | `diagnose` names the rows; `flow(np.inf)` leaves out what has no eigenvalue |
# | 30, 100, 134 | empirical kernels in little memory | blocks; the Jacobian of all weights is never held |
# | 28, 130, 166, 196 | any number of rows, devices | any number; `tiled_gram` on disk, with `devices` or a cluster |
# | 27, 65, 117, 192 | max pooling, softmax, recurrence | softmax attention over d and √d; the rest by `sampled_gram` |
# | 86 | sparse graphs | `aggregate` takes a sparse matrix and makes it dense, as all pairs of nodes count |
# | 7, 68 | several outputs, parameterizations | `outputs="all"`, `"trace"`; `parameterized="standard"`, `"ntk"`, … |
# | 132, 181 | C_w and C_b by likelihood | `fit`, or `jax.grad` of `log_marginal_likelihood` |

# %% [markdown]
# ## Where next
#
# * [From activation to prediction](activation_to_prediction.py): the same functions in one story, against trained
#   networks.
# * `steepest show ntk-dynamics` and `steepest run ntk-dynamics`: is the recursion true of a wide network, step by
#   step?
# * [Benchmarks](../benchmarks.md) compare speed and error with neural-tangents, and
#   [every name](../benchmarks.md#configurations-of-neural-tangents-one-by-one).
