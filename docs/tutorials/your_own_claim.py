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
# give it a rival and a changed world, run the checklist of `steepest check`, and pack it as a wheel that others can
# install.
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
# Here is ours. Descent with a constant step η on the parabola ½w², where each gradient carries fresh noise of variance
# σ², does not converge. It ends on a floor:
#
# > E w² → ησ² / (2 − η).
#
# The derivation is one line. In the steady state v = (1 − η)² v + η²σ², and you solve for v. But a derivation can
# have a wrong sign, and a program can have a wrong factor. So the file keeps the two apart:
#
# * `predict` has the formula, and never sees the experiment. It is a *law*: an array along the axis `lr`;
# * `observe` runs the descents, and never sees the formula;
# * `judge` compares them at every step size, within a margin of five percent;
# * `hypotheses` says where the formula applies;
# * the *fields* are the parameters of the experiment: `kit.param` has the default and what it is, and `scope` where
#   the claim says that it holds;
# * `axes` gives the coordinates of the axes, and `says` the check that judges each part of the first sentence.

# %%
source = r'''"""Noise leaves descent a floor: with constant steps on a parabola E w² tends to ησ²/(2 − η).

Each gradient carries fresh noise of variance σ², so that w ← (1 − η) w − ηξ. In the steady state the mean square v
obeys v = (1 − η)² v + η²σ².
"""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit


@kit.claim
class NoiseFloor(kit.Claim[None]):
    """Noisy descents on one parabola, each from its minimum."""

    lrs: tuple[kit.Positive, ...] = kit.param(
        (0.25, 0.5, 1.0, 1.5),
        "η, step sizes",
        unit="1/curvature",
        scope=kit.choices((0.25, 0.5, 1.0, 1.5), (0.3, 0.6, 1.2)),
    )
    noise: kit.Positive = kit.param(
        1.0, "σ, standard deviation of the noise of a gradient", scope=kit.between(0.5, 2.0)
    )
    steps: kit.Count = kit.param(
        8000, "steps of each descent; the first tenth is not averaged", unit="steps"
    )
    seeds: kit.Seeds = kit.param(30, "descents at each step size")

    kind = "limit"
    says = {"E w² tends to ησ²/(2 − η)": "floor"}
    statement = r"\mathbb E\,w_t^2 \to \frac{\eta\sigma^2}{2-\eta}"
    source = "a line of algebra"
    tiny = {"seeds": 3, "steps": 100}
    full = {"seeds": 300}
    out_of_scope = {"lrs": (1.0, 2.5)}

    def axes(self):
        return {"lr": self.lrs}

    def hypotheses(self, setting):
        yield kit.assume("largest η", max(self.lrs), "<", 2, "choose smaller --lrs")

    def predict(self, setting):
        lr = np.array(self.lrs)
        return kit.law(floor=("lr", lr * self.noise**2 / (2 - lr)))

    def observe(self, setting, key):
        def descent(noise, lr):
            def step(w, noise):
                w = w - lr * (w + noise)
                return w, w**2

            return jax.lax.scan(step, jnp.zeros(()), noise)[1][self.steps // 10 :].mean()

        noise = self.noise * jax.random.normal(key, (self.seeds, self.steps))
        floors = kit.compiled(jax.vmap(jax.vmap(descent, (None, 0)), (0, None)))
        lrs = jnp.array(self.lrs)
        return kit.seen(floor=("seed lr", floors(noise, lrs)))

    def judge(self, law, seen):
        label = "mean of w² in the steady state"
        yield kit.follows("floor", law.floor, seen.floor, 0.05, label=label)

    def figure(self, law, seen, rivals):
        title = "Noise leaves a floor"
        yield kit.curves(title, law.floor, seen.floor, over="lr", x="step size", y="mean of w²")
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
# refuses: a wrong theory, and a *changed world* in which the law must not hold.
#
# ## Make it fail
#
# The quickest way to trust a judge is to lie to it. Change one sign in the formula and run the file again.

# %%
path.write_text(source.replace("(2 - lr)", "(2 + lr)"), "utf-8")
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
# it is the *diffusion limit*. Replace descent by a stochastic differential equation, and the floor is ησ²/2. That
# is right as η → 0, and it is in many papers. Is it wrong enough at our step sizes for these data to tell?
#
# A rival gives only the arrays that it predicts otherwise, with the reason why one might believe it.

# %%
rival = """
    def rivals(self, setting, law):
        diffusion = law.lr * self.noise**2 / 2
        why = "it is right as η → 0"
        yield kit.rival("ησ²/2, of the diffusion", why, floor=diffusion)

    def figure("""
with_rival = source.replace("\n    def figure(", rival)
path.write_text(with_rival, "utf-8")
run = steepest.run(path)
print(f"{run.verdict}: {run.reason}")

# %% [markdown]
# The rival is rejected. What is missing is a world in which the law must not hold. Ours assumes that the noise is
# fresh at each step. So we let the experiment use each noise twice, in two steps that follow each other, and measure
# the floor there too. A judge that does not refuse these data does not look at them.

# %%
control = """
    def controls(self, seen):
        why = "the noise of a step is that of the step before"
        yield kit.control("each noise used twice", why, floor=seen.stale)

    def figure("""
fresh_alone = """kit.seen(floor=("seed lr", floors(noise, lrs)))"""
fresh_and_stale = """kit.seen(
            floor=("seed lr", floors(noise, lrs)),
            stale=("seed lr", floors(jnp.repeat(noise, 2, 1)[:, : self.steps], lrs)),
        )"""
whole = with_rival.replace(fresh_alone, fresh_and_stale).replace("\n    def figure(", control)
path.write_text(whole, "utf-8")
claim = steepest.run(path)
print(f"{claim.verdict}: {claim.reason}")
claim

# %% [markdown]
# Now it holds, and the table says what it would have noticed. The kit has also tried the law flat, reversed and tilted
# along η, and larger and smaller: these data refuse all of them. Does the rival stay rejected where it is nearly
# right? Smaller steps forget more slowly, so the descents get longer in proportion.

# %%
for lrs, steps in (((0.25, 0.5), 8000), ((0.02, 0.04), 200_000)):
    run = steepest.run(path, lrs=lrs, steps=steps)
    print(f"lrs={lrs}: {run.verdict}, {run.reason}")

# %% [markdown]
# At small steps the two formulas differ by less than the margin, and the verdict says so: no power. That is no
# defect of the claim. It is what this experiment can know. The default steps are some at which the two differ.
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
(package / "noise_claims" / "floor.py").write_text(whole, "utf-8")
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
# that is not met, a wrong constant in the source, or a true finding. Then say so in `remarks`, add a version to
# `history`, and judge it on seeds that you have not seen.
#
# ## Where next
#
# * [Write a claim of your own](../authoring.md) lists every part of the file, and what makes a good rival.
# * `examples/plugin` is a package with a claim about momentum, with a figure and two rivals.
# * [A phase diagram on a cluster](phase_diagram.py) works for your file too: `steepest sweep noise_floor.py`.
# * [A claim on your own network](../subjects.md) says how others put your claim to their models.
