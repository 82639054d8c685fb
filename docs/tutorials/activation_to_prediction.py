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
# # From activation to prediction
#
# You have an activation function of your own. How should its networks start, so that signals survive depth? And what
# will a wide one answer after training, before you have trained any?
#
# **You will** go from an activation to its kernel, to a critical initialization, to the outputs after some hundred
# steps of descent on images of digits. Then you train real networks and compare.
#
# **It takes** fifteen minutes. The cells run for less than half a minute on one core.
#
# **You need** Steepest (`pip install .` in its folder). The digits are those of scikit-learn, which it brings along.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax

from steepest.dynamics import descend
from steepest.kernels import (
    covariance_map,
    gram,
    kernel_dynamics,
    recommended_initialization,
    recommended_width,
    variance_map,
)
from steepest.nn.activations import Activation
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp

jax.config.update("jax_enable_x64", True)

# %% [markdown]
# ## An activation of your own
#
# Any elementwise function of JAX will do. If it has corners, name them in `kinks`: every integral is cut there.

# %%
swish = Activation("swish(1.5)", lambda z: z * jax.nn.sigmoid(1.5 * z))
print([round(float(swish(z)), 4) for z in (-2.0, 0.0, 2.0)])

# %% [markdown]
# ## What does it do to two inputs?
#
# In a wide random network the pre-activations of two inputs are a pair of Gaussians (u, v). All that a layer does to
# them is in one function, the *dual activation* E σ(u)σ(v). For this σ no closed form is known, so it is an integral.
# You get it with a bound on its error. NumPy's rule of Gauss and Hermite is another way to the first number.

# %%
covariance = np.array([[1.0, 0.6], [0.6, 1.0]])
dual = covariance_map(swish, covariance)
print(f"E σ(u)σ(v)   = {dual.value.value:.12f}, error at most {dual.value.error:.0e}")
print(f"E σ'(u)σ'(v) = {dual.first.value:.12f}, error at most {dual.first.error:.0e}")
nodes, masses = np.polynomial.hermite_e.hermegauss(100)
pairs = np.linalg.cholesky(covariance) @ np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
weights = np.outer(masses, masses).ravel() / masses.sum() ** 2
print(f"Gauss–Hermite: {np.prod(np.asarray(swish(pairs)), 0) @ weights:.12f}")

# %% [markdown]
# ## Where should its networks start?
#
# Give each weight the variance C_W / fan-in and each bias the variance C_b. In most cases the signal dies out with
# depth or explodes, and so does the gradient. At a *critical* point neither happens. Not every activation has one;
# then the answer says why. Here it has the numbers, the line for torch, and the width that it takes.

# %%
advice = recommended_initialization(swish)
print(advice)
critical = advice.criticality

# %% [markdown]
# Do you believe it? Follow the variance of the pre-activations through ten layers, from theory and in one random
# network, with the recommended C_W and with a fifth more and less.

# %%
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
layers, width = 10, 2000
axes.set_yscale("log")
axes.set_xlim(0, layers + 2)
axes.set_xlabel("layer")
axes.set_ylabel("variance (line: theory, dots: a network)")
for place, factor in enumerate((0.8, 1.0, 1.2)):
    c_w = factor * critical.c_w
    theory = [critical.k_star]
    rng = np.random.default_rng(0)
    z = np.sqrt(critical.k_star) * rng.normal(size=width)
    network = [np.mean(z**2)]
    for _ in range(layers):
        theory.append(critical.c_b + c_w * float(variance_map(swish, theory[-1]).value.value))
        weights = rng.normal(size=(width, width)) * np.sqrt(c_w / width)
        biases = np.sqrt(critical.c_b) * rng.normal(size=width)
        z = weights @ np.asarray(swish(z)) + biases
        network.append(np.mean(z**2))
    axes.plot(theory, color=f"C{place}")
    axes.plot(network, "o", markersize=3, color=f"C{place}")
    label = "critical" if factor == 1 else f"{factor:g} × C_W"
    axes.annotate(
        label, (layers, theory[-1]), (5, -3), textcoords="offset points", color=f"C{place}"
    )
    print(
        f"{label:>10}: variance {theory[0]:.2f} → {theory[-1]:.3g} in theory, {network[-1]:.3g} in one network"
    )

# %% [markdown]
# The dots leave the lines, as one network differs from the mean of all. The advice says by how much: the error grows
# with the depth and falls with the width. So how wide must the network be that we train below?

# %%
needed = recommended_width(swish, critical.c_w, critical.c_b, critical.k_star, 3, 0.05)
print(f"width for a kernel within 5 %, three layers: {needed}")

# %% [markdown]
# ## Data
#
# Two digits, a three and an eight, centred. Each image is scaled so that the first layer has the variance K*, as the
# advice asks.

# %%
data = digits((3, 8), 80)
x = np.asarray(data.x) - np.mean(data.x, axis=0)
x /= np.linalg.norm(x, axis=1, keepdims=True)
x *= np.sqrt(x.shape[1] * (critical.k_star - critical.c_b) / critical.c_w)
y = np.asarray(signs(data).y)
train = slice(0, 60)
test = slice(60, 80)
print(f"{len(y[train])} images to train on, {len(y[test])} to test, {x.shape[1]} pixels")

# %% [markdown]
# ## One definition, two networks
#
# `mlp` defines a finite network. Its `limit()` is the same network at infinite width, and `gram` is its kernel on the
# data: the covariance at the start (NNGP) and the tangent kernel (NTK), with the error of both.


# %%
def network_of(width: int):
    """Return the finite network with two hidden layers of this width, started critically."""
    widths = (x.shape[1], width, width, 1)
    return mlp(widths, swish, parameterized="ntk", c_w=critical.c_w, c_b=critical.c_b)


limit = gram(network_of(512).limit(), x)
print(f"NTK {limit.ntk.shape}, known to {limit.error:.0e} relative to its diagonal")

# %% [markdown]
# ## Predict, then train
#
# With the squared loss and this kernel, descent is a linear recursion. So the outputs after any number of steps have
# a closed form, and so has the largest stable step. We take nine tenths of it. The prediction is made *before* any
# network is trained.

# %%
training = kernel_dynamics(limit.ntk[train, train])
lr = 0.9 * training.largest_step()
marks = np.unique(np.geomspace(1, 301, 25).astype(int)) - 1
progress = training.descent(lr, marks)
predicted = training.test(progress, limit.ntk[test, train], y[train])
print(
    f"largest stable step {training.largest_step():.3g}; predictions {predicted.shape} for steps 0 to {marks[-1]}"
)

# %% [markdown]
# Now train. The random outputs at the start are subtracted, for they are no part of what is learned.


# %%
def answers(width: int, seed: int = 0) -> np.ndarray:
    """Train one network by descent; return its outputs on the test images at the marked steps."""
    net = network_of(width)
    params = net.init(jax.random.key(seed))
    start = net.apply(params, x)
    learned = lambda params, part: net.apply(params, x[part]) - start[part]
    risk = lambda params: 0.5 * jnp.mean((learned(params, train) - y[train]) ** 2)
    outputs = {"test": lambda params: learned(params, test)}
    path = descend(risk, params, optax.sgd(lr), int(marks[-1]), record=marks, observe=outputs)
    return np.asarray(path.observed["test"])


answered = {width: answers(width) for width in (64, 512)}
size = float(np.sqrt(np.mean(answered[512][-1] ** 2)))
accuracy = float(np.mean(np.sign(answered[512][-1]) == y[test]))
difference = {}
for width, outputs in answered.items():
    difference[width] = float(np.sqrt(np.mean((outputs[-1] - predicted[-1]) ** 2)))
    print(
        f"width {width:4}: outputs of size {size:.2f} differ from the prediction by {difference[width]:.3f}"
    )
print(f"accuracy on the test images, width 512: {accuracy:.0%}")

# %% [markdown]
# The wider network is nearer to its prediction. What is left is its finite width: it has fewer neurons than the
# advice asks for.
#
# ## See it
#
# Four of the test images, over the steps of training. Lines were drawn by theory, dots by the wide network.

# %%
figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
axes.set_xscale("log")
axes.set_xlim(1, 800)
axes.set_xlabel("step + 1")
axes.set_ylabel("output (line: theory, dots: a network)")
order = np.argsort(predicted[-1])
for place, image in enumerate(order[[0, 6, 13, 19]]):
    axes.plot(marks + 1, predicted[:, image], color=f"C{place}")
    axes.plot(marks + 1, answered[512][:, image], "o", markersize=3, color=f"C{place}")
    name = "a three" if y[test][image] > 0 else "an eight"
    end = (marks[-1] + 1, predicted[-1, image])
    axes.annotate(name, end, (6, -3), textcoords="offset points", color=f"C{place}")

# %% [markdown]
# ## What this does not say
#
# It is the theory of wide networks in the NTK parameterization, where features hardly move. It says nothing about
# networks that learn features, and a narrow or a long training leaves it. How far it holds is a question for claims:
# `ntk-dynamics` tests this recursion step by step, `lazy-or-rich` says when features move, and `stable-step` tests
# the largest step.
#
# ## Where next
#
# * [Kernels for users of neural-tangents](neural_tangents.py): the same functions, one by one, checked against closed
#   forms.
# * [Measure a training run](measure_training.py): your own network instead of this one.
# * `steepest show critical-tuning` and `steepest run critical-tuning`: the critical initialization as a claim.
