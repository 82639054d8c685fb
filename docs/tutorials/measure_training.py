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
# # Measure a training run
#
# Your network trains, and the loss falls. Is the step size near its limit, or far below it? Does the curvature rise?
# Has the network learned, or memorized? These are questions about *your* run, and theory has numbers for them.
#
# **You will** train a small JAX network with a monitor beside it, read what it found, measure the trained network,
# and put a claim of the theory to it. The same lines for torch stand at the end.
#
# **It takes** fifteen minutes. The cells run for less than half a minute on one core.
#
# **You need** Steepest (`pip install .` in its folder), and torch if you want the last part. The data are the digits
# of scikit-learn, which it brings along.

# %%
import importlib.util
import os
from pathlib import Path
from tempfile import TemporaryDirectory

# the programs here are tiny: compile them quickly instead of well
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from sklearn.datasets import load_digits

import steepest
from steepest.app.cli import main as command_line

temporary = TemporaryDirectory()
before = Path.cwd()
os.chdir(temporary.name)

# %% [markdown]
# ## A training like yours
#
# Nothing here is from Steepest. There are images, labels, a function `apply` of parameters and inputs, a loss that is
# the mean over a batch, and a step of descent. Bring your own instead: any function of JAX will do.

# %%
images, digits = load_digits(return_X_y=True)
shuffle = np.random.default_rng(0).permutation(len(images))
images = (images[shuffle] / 16).astype(np.float32)
images = images - images.mean(0)
targets = np.eye(10, dtype=np.float32)[digits[shuffle]]
train = jnp.asarray(images[:300]), jnp.asarray(targets[:300])
held_out = jnp.asarray(images[300:]), jnp.asarray(targets[300:])


def initial(seed: int = 0, width: int = 32) -> list[dict]:
    """Draw weights of two hidden layers."""
    sizes = [64, width, width, 10]
    keys = jax.random.split(jax.random.key(seed), 3)
    shapes = zip(keys, sizes[1:], sizes[:-1], strict=True)
    return [
        {"w": jax.random.normal(key, (fan_out, fan_in)) / fan_in**0.5, "b": jnp.zeros(fan_out)}
        for key, fan_out, fan_in in shapes
    ]


def apply(params: list[dict], x: jax.Array) -> jax.Array:
    """Return ten outputs for each image."""
    for layer in params[:-1]:
        x = jnp.tanh(x @ layer["w"].T + layer["b"])
    return x @ params[-1]["w"].T + params[-1]["b"]


def loss(outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Return half of the squared distance, averaged over the images."""
    return 0.5 * ((outputs - targets) ** 2).sum(-1).mean()


LR = 0.3
optimizer = optax.sgd(LR)


@jax.jit
def step(params: list[dict], state: optax.OptState) -> tuple[list[dict], optax.OptState]:
    """Take one step of full-batch descent."""
    gradient = jax.grad(lambda params: loss(apply(params, train[0]), train[1]))(params)
    updates, state = optimizer.update(gradient, state, params)
    return optax.apply_updates(params, updates), state


params = initial()
weights = sum(leaf.size for leaf in jax.tree.leaves(params))
print(f"{len(train[0])} images to train on, {len(held_out[0])} held out, {weights} weights")

# %% [markdown]
# ## One line in the loop
#
# A `Monitor` measures when its schedule asks for it, and appends one line of JSON to a file each time. Give it the
# loss, a fixed part of your data, and the step size, so that it can compare the curvature with its limit. In your
# loop there is one line more.
#
# `budget=None` lets it measure as often as the schedule says. Without it, measuring takes a hundredth of the time of
# training, and a training as short as this one would have no curvature.

# %%
monitor = steepest.Monitor(
    "run.jsonl", loss, train, ["risk", "sharpness"], every=50, budget=None, lr=LR
)
state = optimizer.init(params)
for index in range(801):
    monitor(index, (apply, params))
    params, state = step(params, state)
print(f"{len(Path('run.jsonl').read_text().splitlines())} lines in run.jsonl")

# %% [markdown]
# ## What happened?
#
# ```sh
# steepest watch run.jsonl
# ```
#
# `watch` reads the file, while it grows or when it is complete. It opens with findings, at most five. A `!` is to act
# on, a `?` to know, and a `✓` is as it should be.

# %%
run = steepest.watch("run.jsonl")
for finding in run.findings:
    print(finding.sign, finding.text)
run

# %% [markdown]
# The *sharpness* is the largest eigenvalue λ_max of the Hessian of the loss. On a quadratic, descent is stable up to
# the step size 2/λ_max. So a run with step size η has the limit 2/η. Look at the two curves in one picture: nobody
# told the network about 2/η, and still the sharpness goes there.

# %%
sharpness = run.columns["sharpness"]
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
axes.plot(run.steps, sharpness, marker="o", markersize=3)
axes.annotate(
    "sharpness", (run.steps[4], sharpness[4]), (0, -14), textcoords="offset points", color="C0"
)
axes.axhline(2 / LR, color="0.4", linewidth=1)
axes.annotate("2/η", (0, 2 / LR), (0, 4), textcoords="offset points", color="0.4")
axes.set_xlabel("step")
axes.set_ylabel("largest eigenvalue")
print(
    f"sharpness over 2/η: {sharpness[0] * LR / 2:.2f} at the start, {sharpness[-1] * LR / 2:.2f} at the end"
)

# %% [markdown]
# This is the *edge of stability*. Long runs of full-batch descent often end there. It is no alarm: the loss still
# falls in the long run, though not at every step. But it says who decides: at the edge the step size sets the
# curvature. With a smaller η the line lies higher, and the sharpness has farther to go.
#
# ## Measure the trained network
#
# `steepest.measure` takes one network at one moment, and looks at more of it. The arguments are the same. Held-out
# examples are those that it did not see.
#
# ```sh
# steepest measure my_model.py:build --lr 0.3
# ```

# %%
report = steepest.measure((apply, params), loss, train, lr=LR, held_out=held_out)
for finding in report.findings:
    print(f"{finding.sign} {finding.text}\n    evidence: {finding.evidence}")
report

# %% [markdown]
# Each reading says what it means and how well it is known. A number has an interval over examples, or a residual, or
# it is exact for these examples. Read one by its name.

# %%
for name in ("risk", "risk on held-out examples", "sharpness"):
    reading = report[name]
    print(f"{reading.name}: {reading.value:.4g}; {reading.interpretation}")

# %% [markdown]
# A reading may be absent, and then a note says what it would need.

# %%
for reading in report.quantities:
    if np.isnan(reading.value):
        print(f"{reading.name}: {reading.interpretation}")

# %% [markdown]
# ## Put a claim to it
#
# Findings describe. A claim *tests*: it predicts a number for your network, runs the experiment on it, and judges
# with the margins that it uses for ours. Some claims can be put to a network of yours, and `stable-step` is one. It
# says that near the start the largest stable step is 2/λ_max of the tangent kernel.
#
# It needs a function that builds your network. An argument called `seed` lets it build several.
#
# ```sh
# steepest run stable-step --subject my_model.py:build --seeds 3
# ```


# %%
def build(seed: int = 0) -> dict:
    """Return the untrained network, its loss and its data."""
    return {"model": (apply, initial(seed)), "loss": loss, "data": train}


result = steepest.run("stable-step", subject=build, seeds=3)
print(f"{result.claim} {result.reason}")
for check in result.checks:
    low, high = check.interval.low, check.interval.high
    print(
        f"{check.name}: predicted {check.predicted:g}, measured {check.measured:.4f} [{low:.4f}, {high:.4f}]"
    )
for rival in result.rivals:
    print(f"{'rejected' if rival.rejected else 'not rejected'}: {rival.name}")

# %% [markdown]
# The verdict is about your network and your data, at the seeds that were tried. If a hypothesis does not hold for it,
# the verdict is *out of range*, and the number is shown all the same.
#
# ## The same in torch
#
# Give the module instead of the pair, and the optimizer instead of the step size. The cell runs if torch is
# installed.
#
# ```python
# monitor = steepest.Monitor("torch.jsonl", loss, (x[:300], y[:300]), optimizer=optimizer)
# for index in range(steps):
#     monitor(index, model)
#     train(model)
# ```

# %%
if importlib.util.find_spec("torch"):
    import torch

    torch.manual_seed(0)
    x, y = (torch.tensor(np.asarray(part)) for part in train)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    torch_loss = lambda outputs, targets: 0.5 * ((outputs - targets) ** 2).sum(-1).mean()
    torch_optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    torch_monitor = steepest.Monitor(
        "torch.jsonl", torch_loss, (x, y), every=25, budget=None, optimizer=torch_optimizer
    )
    for index in range(201):
        torch_monitor(index, model)
        torch_optimizer.zero_grad()
        torch_loss(model(x), y).backward()
        torch_optimizer.step()
    for finding in steepest.watch("torch.jsonl").findings:
        print(finding.sign, finding.text)
else:
    print("torch is not installed; pip install 'steepest[torch]'")

# %% [markdown]
# ## Share it
#
# A log can become a page, one HTML file with the curves, that asks for no network.

# %%
code = command_line(["watch", "run.jsonl", "--page", "run.html"])
print(f"exit code {code}, run.html has {Path('run.html').stat().st_size // 1000} kB")

# nothing is left behind
os.chdir(before)
temporary.cleanup()

# %% [markdown]
# ## Where next
#
# * [Measure your own network](../measuring.md): every quantity, Adam and weight decay, Lightning and transformers,
#   how a network scales with width, and what changed between two reports.
# * [A claim on your own network](../subjects.md): which claims take yours, and what they need.
# * `examples/training` has four trainings as people write them, with their commands.
# * [From activation to prediction](activation_to_prediction.py): say what a network will answer before you train it.
