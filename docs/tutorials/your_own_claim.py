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
# # Your own claim, and how to ship it
#
# You have a formula, from a paper or your own. Does it hold, and would you notice if it did not? A claim answers
# both, and takes one file.
#
# **You will** write a claim about noisy gradient descent, see it refused for lack of power, make it fail by one sign,
# give it a rival, run the checklist of `steepest check`, and pack it as a wheel that others can install.
#
# **It takes** twenty minutes. The cells run for less than twenty seconds on one core.
#
# **You need** `pip install -U steepest setuptools`. The last part builds a package with setuptools and pip, without the
# network. Everything is written to a temporary folder.

# %%
import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import steepest
from steepest.app.cli import main as command_line

temporary = TemporaryDirectory()
before = Path.cwd()
os.chdir(temporary.name)

# %% [markdown]
# ## A file to start from
#
# ```sh
# steepest new my_claim.py
# steepest run my_claim.py
# ```
#
# `steepest new` writes a claim that runs as it is. It is the shortest way to your own: change one part after the
# other, and run it after each change. From Python, `command_line([...])` is the same command.

# %%
command_line(["new", "my_claim.py"])
template = steepest.run("my_claim.py")
print(f"{template.about['says']}\n{template.verdict}: {template.reason}")

# %% [markdown]
# ## A claim of your own
#
# Here is ours. Descent with a constant step η on the parabola ½λw², where each gradient carries fresh noise of
# variance σ², does not converge. It ends on a floor:
#
# > E w² → ησ² / (λ(2 − ηλ)).
#
# The derivation is one line. In the steady state v = (1 − ηλ)² v + η²σ², and you solve for v. But a derivation can
# have a wrong sign, and a program can have a wrong factor. So the file keeps the two apart:
#
# * `predict` has the formula, and never sees the experiment;
# * `observe` runs the descents, and never sees the formula;
# * `judge` compares them, within a margin of three percent;
# * `hypotheses` says where the formula applies;
# * the *fields* are the parameters of the experiment, each with a comment that has its unit in brackets.

# %%
source = r'''"""Noise leaves descent a floor: with constant steps on a parabola E w² tends to ησ²/(λ(2 − ηλ)).

Each gradient carries fresh noise of variance σ², so that w ← (1 − ηλ) w − ηξ. In the steady state the mean square v
obeys v = (1 − ηλ)² v + η²σ².
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check, Claim, Count, Hypothesis, Key, Observation, Panel, Positive, Prediction, Rival, Seeds,
    assume, compiled, equal, keys, observed_curve, panel, predicted_curve,
)


@dataclass(frozen=True)
class NoiseFloor(Claim):
    """Noisy descents on one parabola, each from its minimum."""

    lr: Positive = 0.5  # η, step size [1/curvature]
    curvature: Positive = 1.0  # λ, second derivative of the risk [1]
    noise: Positive = 1.0  # σ, standard deviation of the noise of a gradient [1]
    steps: Count = 4000  # steps of each descent; the first tenth is not averaged [steps]
    seeds: Seeds = 30  # descents [1]

    kind = "limit"
    statement = r"\mathbb E\,w_t^2 \to \frac{\eta\sigma^2}{\lambda(2-\eta\lambda)}"
    source = "a line of algebra"
    full = {"seeds": 300}
    tiny = {"seeds": 3, "steps": 100}
    out_of_scope = {"lr": 2.5}

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        return [assume("ηλ", self.lr * self.curvature, between=(0, 2), note="choose a smaller --lr")]

    def predict(self, setting: None) -> Prediction:
        return Prediction(floor=self.lr * self.noise**2 / (self.curvature * (2 - self.lr * self.curvature)))

    def observe(self, setting: None, key: Key) -> Observation:
        def descent(key: Key) -> jax.Array:
            def step(w: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
                w = w - self.lr * (self.curvature * w + noise)
                return w, w**2

            noise = self.noise * jax.random.normal(key, (self.steps,))
            return jax.lax.scan(step, jnp.zeros(()), noise)[1]

        squares = compiled(jax.vmap(descent))(keys(key, self.seeds))
        return Observation(square=("seed step", squares))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        late = observed["square"][:, self.steps // 10 :].mean(1)
        return [equal("floor", predicted["floor"], late, 0.03, label="mean of w² in the steady state")]

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        return []

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        steps = np.arange(1, self.steps + 1)
        mean = np.cumsum(observed["square"].mean(0)) / steps
        shown = np.unique(np.geomspace(1, self.steps, 200).astype(int)) - 1
        descents = observed_curve(steps[shown], mean[shown], "descents")
        theory = predicted_curve(steps[shown], np.full(len(shown), predicted["floor"]), "ησ²/(λ(2−ηλ))")
        return (panel("Noise leaves a floor", "step", "mean of w² so far", descents, theory, log="x"),)
'''
path = Path("noise_floor.py")
path.write_text(source, "utf-8")
first = steepest.run(path)
print(f"{first.verdict}: {first.reason}")
for check in first.checks:
    print(f"{check.name}: predicted {check.predicted:.4f}, measured {check.measured:.4f}")

# %% [markdown]
# ## Why is it inconclusive?
#
# The numbers agree, and yet the verdict is not "holds". Nothing was tried that could fail. The same check would also
# agree if its margin were ten times too wide, and nobody would see it. A claim must bring something that its judge
# refuses.
#
# ## Make it fail
#
# The quickest way to trust a judge is to lie to it. Change one sign in the formula and run the file again.

# %%
path.write_text(source.replace("(2 - self.lr", "(2 + self.lr"), "utf-8")
lie = steepest.run(path)
print(f"{lie.verdict}: {lie.reason}")
for check in lie.checks:
    print(f"{check.name}: predicted {check.predicted:.4f}, measured {check.measured:.4f}")

# %% [markdown]
# That fails, as it must. If your claim survives such a lie, look at its margin first.
#
# ## Add a rival
#
# A wrong sign is a bad rival, as nobody would believe it. A good rival is a theory that somebody does believe. Here
# it is the *diffusion limit*. Replace descent by a stochastic differential equation, and the floor is ησ²/(2λ). That
# is right as ηλ → 0, and it is in many papers. Is it wrong enough at our step size for these data to tell?
#
# A rival is another prediction for the same experiment, with the reason why one might believe it.

# %%
with_rival = source.replace(
    "        return []\n",
    """        diffusion = predicted.replace(floor=self.lr * self.noise**2 / (2 * self.curvature))
        return [Rival("diffusion", diffusion, "it is right as ηλ → 0", "ησ²/(2λ), of the diffusion")]
""",
)
path.write_text(with_rival, "utf-8")
claim = steepest.run(path)
print(f"{claim.verdict}: {claim.reason}")
claim

# %% [markdown]
# Now it holds, and the table says what it would have noticed. Does the rival stay rejected where it is nearly right?
# Smaller steps forget more slowly, so the descents get longer in proportion.

# %%
for lr, steps in ((0.5, 4000), (0.1, 20_000), (0.02, 100_000)):
    run = steepest.run(path, lr=lr, steps=steps)
    print(f"lr={lr}: {run.verdict}, {run.reason}")

# %% [markdown]
# At a small step the two formulas differ by less than the margin, and the verdict says so: no power. That is no
# defect of the claim. It is what this experiment can know. The default step is one at which the two differ.
#
# ## Does it keep the contract?
#
# ```sh
# steepest check noise_floor.py
# ```
#
# This is the checklist for all claims, those of the library too. It looks for fields without a unit, for a prediction
# that can reach the experiment and for checks that nothing can fail, and it runs the claim twice to see the same
# bits.

# %%
code = command_line(["check", str(path)])
print(f"exit code {code}")

# %% [markdown]
# ## Ship it
#
# A file works for you. Others want to install it. A package registers its claims under the entry-point group
# `steepest.claims`, and then `steepest list` shows them with the name of the package. You need a folder, the file in
# it, and one `pyproject.toml`.

# %%
package = Path("package")
(package / "noise_claims").mkdir(parents=True)
(package / "noise_claims" / "__init__.py").write_text('"""Claims about noise."""\n', "utf-8")
(package / "noise_claims" / "floor.py").write_text(with_rival, "utf-8")
(package / "pyproject.toml").write_text(
    """[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[project]
name = "noise-claims"
version = "1.0"
dependencies = ["steepest"]

[project.entry-points."steepest.claims"]
sgd-noise-floor = "noise_claims.floor"

[tool.setuptools]
packages = ["noise_claims"]
""",
    "utf-8",
)
print(*sorted(str(file.relative_to(package)) for file in package.rglob("*.*")), sep="\n")

# %% [markdown]
# The name left of the equals sign is what people will type. Build the wheel, and install it. You would upload it to a
# package index, or give the file to a colleague; here it goes to a folder of its own.
#
# ```sh
# pip wheel ./package --no-deps --wheel-dir wheels
# pip install wheels/noise_claims-1.0-py3-none-any.whl
# steepest list
# steepest run sgd-noise-floor
# ```

# %%
find = importlib.util.find_spec
packs = find("pip") and find("setuptools") and int(version("setuptools").partition(".")[0]) > 70
if packs:
    quiet = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels, installed = Path("wheels"), Path("installed")
    offline = ["--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*quiet, "wheel", *offline, "--wheel-dir", str(wheels), f"./{package}"], check=True
    )
    (wheel,) = wheels.glob("*.whl")
    subprocess.run(
        [*quiet, "install", "--no-deps", "--target", str(installed), str(wheel)], check=True
    )
    print(f"{wheel.name}, {wheel.stat().st_size} bytes")
    # a new process, as a reader would start one, that finds the folder
    search = os.pathsep.join([str(installed.absolute()), *sys.path])
    listing = subprocess.run(
        [sys.executable, "-m", "steepest", "list", "--chapter", "noise-claims"],
        env={**os.environ, "PYTHONPATH": search, "PYTHONIOENCODING": "utf-8"},
        check=True,
        capture_output=True,
        encoding="utf-8",
    )
    print(listing.stdout)
else:
    print("this part needs pip and setuptools: python -m pip install -U setuptools")

# %% [markdown]
# That is how a paper ships its claims. Readers run them with their own seeds and their own fields, and get pages like
# ours with `steepest atlas`. A package that breaks costs its readers one sentence, and not their other claims.

# %%
# nothing is left behind
os.chdir(before)
temporary.cleanup()

# %% [markdown]
# ## What a claim must not do
#
# Choose seeds, margins or settings until it holds. If your claim fails, find out why: a bug of yours, a hypothesis
# that is not met, a wrong constant in the source, or a true finding. Then say so in `remarks`, raise `version`, and
# judge it on seeds that you have not seen.
#
# ## Where next
#
# * [Write a claim of your own](../authoring.md) lists every part of the file, and what makes a good rival.
# * `examples/plugin` is a package with a claim about momentum, with a figure and two rivals.
# * [A phase diagram on a cluster](phase_diagram.py) works for your file too: `steepest sweep noise_floor.py`.
# * [A claim on your own network](../subjects.md) says how others put your claim to their models.
