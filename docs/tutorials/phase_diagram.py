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
# # A phase diagram on a cluster
#
# A theory may hold at the point where you tried it, and nowhere else. Where does it stop? To see that you need many
# points, and many points soon need more than one machine.
#
# **You will** sweep a claim over a plane, see where its phases meet, run the same sweep on a Dask cluster and as a
# job array, and take the numbers to xarray and a figure of your own.
#
# **It takes** fifteen minutes. The cells run for less than half a minute on one core. Most of it is the
# compiler.
#
# **You need** `pip install 'steepest[dask,export]'`. No cluster is needed: one inside of this process stands for it.

# %%
import os
import sys
import time
from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

# the programs here are tiny: compile them quickly instead of well
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import dask
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

import steepest
from steepest.app.cli import main as command_line

temporary = TemporaryDirectory()
before = Path.cwd()
os.chdir(temporary.name)

# %% [markdown]
# ## Which plane?
#
# We take the catapult of [the first tutorial](first_claim.py). Theory says that a network starts in one of three
# phases, by its step size in units of 1/λ₀: lazy below 2, catapulted between 2 and 4, divergent above. That is a
# statement about wide networks. So we sweep the step size *and* the width, and ask how wide is wide.
#
# ```sh
# steepest sweep catapult --over multiple=linear:0.6:4.8:22 --over width=8,64,512
# ```
#
# Each `--over` names a field and its values. Ranges can be `linear` or `log`, lists, or whole numbers like `0:8`;
# with `--sobol` points are drawn instead. Several fields give every combination. In Python a mapping says the same.

# %%
over = {"multiple": "linear:0.6:4.8:22", "width": [8, 64, 512]}
started = time.perf_counter()
phases = steepest.sweep("catapult", over)
seconds = time.perf_counter() - started
print(f"{phases.total} points in {seconds:.1f} s")
for verdict, count in phases.counts.items():
    print(f"{count:4} {verdict}")
phases.figure()

# %% [markdown]
# ## What is a point?
#
# A point is not a run of the whole claim. The claim names a smaller experiment for it, which says what one network
# does at one step size. Points of one width differ in numbers only, so they run side by side as one compiled program.
# Another width is another program. That is why three widths cost three compilations, however many step sizes there
# are.
#
# A point has no rivals, as a rival may be right somewhere. It has the checks of the theory and their verdict. Points
# outside of the hypotheses are *out of range*, and their measurements are shown too.
#
# ## Where does the theory stop?
#
# `columns` is the whole table: fields, verdict, reason, and for each quantity what was measured, what was predicted
# and the ends of the interval. Here are the points that do not hold.

# %%
table = phases.columns
for i in np.flatnonzero(table["verdict"] != "holds"):
    print(
        f"multiple {table['multiple'][i]:.2f}, width {table['width'][i]:3}: {table['verdict'][i]}"
    )
    print(f"    measured phase {table['phase_measured'][i]:.2f}; {table['reason'][i]}")

# %% [markdown]
# ## On a Dask cluster
#
# On real machines you start a scheduler and workers, and name the address:
#
# ```sh
# dask scheduler --port 8786
# dask worker tcp://HOST:8786 --nthreads 1        # on each machine
# steepest sweep catapult --on dask:tcp://HOST:8786
# ```
#
# In Python `on` takes the same address, or anything with `submit`, such as a client. Here two workers live in this
# process, so that the page needs no machines. The code that computes is the same.

# %%
dask.config.set({"temporary-directory": temporary.name})
local = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None)
with local, Client(local) as client:
    clustered = steepest.sweep("catapult", over, on=client)
    print(f"{len(local.workers)} workers, {clustered.total} points: {dict(clustered.counts)}")

# %% [markdown]
# Are these the same numbers? Floating-point sums depend on their order, and many parallel programs give other digits
# on other numbers of workers. Here the plan alone decides which points share a program. So the numbers agree to the
# last bit, on the same kind of machine.


# %%
def same_bits(one: dict, other: dict) -> bool:
    """Tell whether two tables of numbers agree bit by bit, gaps included."""
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in one)


print("the cluster gave the same bits:", same_bits(phases.numbers, clustered.numbers))

# %% [markdown]
# ## As a job array
#
# Many clusters have no Dask, but they have job arrays. Then each job computes one share of the plan and writes it to
# a folder. The shares have no need to know of each other.
#
# ```sh
# #!/bin/bash
# #SBATCH --array=1-3
# steepest sweep catapult --over multiple=linear:0.6:4.8:22 --over width=8,64,512 \
#     --shard $SLURM_ARRAY_TASK_ID/3 --on here --yes --out $SLURM_SUBMIT_DIR/results
# ```
#
# The loop below plays the scheduler. It also plays its bad luck: job 2 never starts.

# %%
for job in (1, 3):
    share = steepest.sweep("catapult", over, shard=(job, 3), out="results")
    stored = sum(share.counts.values())
    print(f"after job {job}: {stored} of {share.total} points are stored")

# %% [markdown]
# There is nothing to merge. Run the same sweep without a share: it reads what is there, and computes what is missing.
# That is also how you go on after a power cut. A point is one small file, written whole or not at all.

# %%
whole = steepest.sweep("catapult", over, out="results")
print(f"{sum(whole.counts.values())} of {whole.total} points are stored")
print("jobs and the rest gave the same bits:", same_bits(phases.numbers, whole.numbers))

# %% [markdown]
# The command line prints the table. Nothing is left to compute, so it only reads.

# %%
command = ["sweep", "catapult", "--over", "multiple=linear:0.6:4.8:22", "--over", "width=8,64,512"]
with redirect_stderr(sys.stdout):
    code = command_line([*command, "--on", "here"])
print(f"exit code {code}")

# %% [markdown]
# ## Take the numbers with you
#
# A sweep goes to a table of pandas, to CSV or Parquet (`--export`), or to xarray, where each swept field is a
# dimension.

# %%
grid = phases.to_xarray()
print(dict(grid.sizes))
print(grid["phase_measured"].sel(width=512, multiple=[1.0, 3.0, 4.6], method="nearest").values)

# %% [markdown]
# The numbers are the phases at three step sizes: zero is lazy, one catapulted, two divergent, as a mean over seeds.
#
# Theory says one thing more about the catapult: the loss rises to the order of the width before it falls. The sweep
# has measured that rise at every point, as the quantity `log_growth`. So ask the grid, and draw one curve for each
# width.

# %%
rise = grid["log_growth_measured"].where(grid["verdict"] != "out-of-range")
widths = grid["width"].values
slope = np.polyfit(np.log10(widths), rise.sel(multiple=3.0).values, 1)[0]
print(f"at γλ₀ = 3 the rise goes like width to the power {slope:.2f}; theory says 1")

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for place, width in enumerate(widths):
    curve = rise.sel(width=width).dropna("multiple")
    axes.plot(curve["multiple"], curve, marker="o", markersize=3, color=f"C{place}")
    end = (curve["multiple"].values[-1], curve.values[-1])
    axes.annotate(f"width {width}", end, (6, -3), textcoords="offset points", color=f"C{place}")
for boundary, phase in ((2.0, "lazy"), (4.0, "catapult")):
    axes.axvline(boundary, color="0.7", linewidth=0.8)
    axes.annotate(phase, (boundary, rise.max()), (-4, -4), textcoords="offset points", ha="right")
axes.set_xlim(0.5, 4.6)
axes.set_xlabel("step size in units of 1/λ₀")
axes.set_ylabel("log₁₀ of largest loss / first loss")
figure.savefig("rise.png")
print(f"rise.png has {Path('rise.png').stat().st_size // 1000} kB")

# %% [markdown]
# The diagram above was `phases.figure()`, which you can save. `steepest atlas` makes pages of all sweeps in
# `results`.

# %%
# nothing is left behind
os.chdir(before)
temporary.cleanup()

# %% [markdown]
# ## Before a long sweep
#
# `steepest sweep … --plan` prints how many points and programs there are, and how long they take, from one point that
# it times. A sweep of more than an hour asks before it starts. A point that crashes is kept with its reason and stops
# nothing; `--retry` tries it again.
#
# ## Where next
#
# * [Sweeps and phase diagrams](../sweeps.md): Slurm, Kubernetes, and the diagrams of our claims.
# * [Your own claim, and how to ship it](your_own_claim.py): two lines give yours a diagram.
# * [Measure a training run](measure_training.py): where is *your* step size in such a picture?
