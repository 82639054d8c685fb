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
# # First claim in ten minutes
#
# How do you know that a sentence of deep learning theory is true? You could read its proof. Steepest does something
# else beside that: it predicts a number from the theory, runs the experiment, and compares the two.
#
# **You will** run one claim, read its verdict from top to bottom, hand the judge a wrong number, change a field, and
# break a hypothesis.
#
# **It takes** ten minutes. The cells run for less than half a minute on one core.
#
# **You need** Steepest (`pip install .` in its folder). No network and no accelerator is used.

# %% [markdown]
# ## Which claims are there?
#
# A *claim* is a small program about one statement. `steepest.claims()` lists them without running anything. On the
# command line it is
#
# ```sh
# steepest list
# steepest show catapult
# ```

# %%
import steepest

claims = steepest.claims()
print(f"{len(claims)} claims. This one is called catapult:")
print(claims["catapult"].says)

# %% [markdown]
# The statement is about one network and its step size γ. The *tangent kernel* λ₀ of the network at its start plays
# the role of the largest curvature. Textbooks say that descent is stable up to γλ₀ = 2. The claim says that between 2
# and 4 something happens which the textbooks leave out: the loss grows, descent is thrown to a flatter place, and
# there it converges. Only above 4 it diverges.
#
# ## Run it
#
# ```sh
# steepest run catapult
# ```
#
# In Python the same line returns a result. A notebook shows it as a table with its picture. Everything below is in
# that result, and the next cells take it apart.

# %%
result = steepest.run("catapult")
print(f"{result.claim}: {result.verdict}, {result.reason}")
result

# %% [markdown]
# ## What was assumed?
#
# Read the assumptions first. A theorem says nothing where they do not hold. Those on the setting are checked before
# the experiment runs.

# %%
for hypothesis in result.assumptions:
    print("holds" if hypothesis.holds else "does not hold", "|", hypothesis)

# %% [markdown]
# ## What was predicted, and what was measured?
#
# Each line of the table is a *check*. It has two numbers and two ranges:
#
# * *predicted* comes from the theory alone. The program that predicts cannot see the experiment.
# * *measured* comes from the experiment alone. It cannot see the prediction.
# * the *interval* says where the measured quantity lies: over seeds, from a fit, or between two points of a grid.
# * the *margin* ("agrees if" in the table) is the range that counts as agreement. It stands in the claim's source, so
#   the run cannot choose it.
#
# The rule is the same for every check. If the interval lies inside the margin, the check holds. If they have no point
# in common, it fails. In between nothing is decided.

# %%
for check in result.checks:
    print(
        f"{check.id:>15}: predicted {check.predicted:.4g}, measured {check.measured:.4g}, {check.verdict}"
    )
    interval, margin = check.interval, check.margin
    print(
        f"{'':>15}  [{interval.low:.4g}, {interval.high:.4g}] in [{margin.low:.4g}, {margin.high:.4g}]?"
    )

# %% [markdown]
# Look at `threshold`. Theory predicts where divergence starts. The experiment tried step sizes on both sides of it,
# so it knows the place up to the distance between two of them. That distance is the interval.
#
# Other checks have a margin with one end. `recursion` takes the largest deviation from the recursion, over all steps
# and networks. The deviation may be anything below the margin: only rounding makes it differ from zero.
#
# ## What would have been noticed?
#
# A check that agrees with everything is worth nothing. Beside each check stands how far from the prediction the truth
# would have to be for an interval of this width to miss the margin.

# %%
for check in result.checks:
    print(f"{check.id:>15} would notice an error of {check.would_notice}")

# %% [markdown]
# You need not believe that. The judge is a method, and you may give it any prediction. Here it gets thresholds that
# are wrong by more and more, with the same measurements. Before you run the cell: at which error should it refuse?

# %%
from steepest.claims.descent.catapult.claim import Catapult

claim = Catapult()
for error in (0.0, 0.002, 0.005, 0.02, 0.05):
    wrong = result.predicted.replace(threshold=4.0 * (1 + error))
    checks = {check.id: check for check in claim.checks(wrong, result.observed)}
    print(f"threshold wrong by {error:6.1%}: {checks['threshold'].verdict}")

# %% [markdown]
# ## Which wrong theories were rejected?
#
# An error of a few percent is one way to be wrong. Another is a different theory. Each claim brings its *rivals*:
# theories that are wrong, and near enough to be believed. The same judge must reject them on the same data. A check
# counts only if a rival fails it, or a control (below).

# %%
for rival in result.rivals:
    print(
        f"{'rejected' if rival.rejected else 'NOT rejected'} by {', '.join(rival.by)}: {rival.name}"
    )
    print(f"    why one might believe it: {rival.why}")

# %% [markdown]
# The last part are *controls*: the same measurement on an object for which the law must not hold.

# %%
for control in result.controls:
    print(
        f"{'told apart' if control.rejected else 'NOT told apart'} by {', '.join(control.by)}: {control.name}"
    )

# %% [markdown]
# ## What was changed after looking?
#
# Margins can be chosen until a claim holds. That would prove nothing, so changes are told in the claim's remarks, and
# judged on seeds that were fresh at the time.

# %%
for remark in result.about["remarks"]:
    print("*", remark)

# %% [markdown]
# ## What does the figure show?
#
# Look at the picture of the result again. It is data too, so you can ask it. Dashed lines are predictions, and
# everything else was measured. `result.figure()` draws it as a figure of matplotlib, and `savefig` keeps it.

# %%
for panel in result.panels:
    print(f"{panel.title} ({panel.y} over {panel.x})")
figure = result.figure()
print(
    f"{len(figure.axes)} panels, {figure.get_figwidth():.1f} × {figure.get_figheight():.1f} inches"
)

# %% [markdown]
# ## Change a field
#
# The experiment has parameters. They are the *fields* of the claim, and `steepest show catapult` prints them with
# their units. The field `multiple` is γλ₀ of the networks that are followed step by step, and `seeds` is how many
# networks there are.
#
# ```sh
# steepest run catapult --multiple 3.5 --seeds 16
# ```
#
# What do you expect? Above the first threshold the output grows by the factor γλ₀ − 1 in each step, so a larger step
# size should bring the peak earlier. Theory predicts by how much. Half as many networks should make the interval
# wider, as a mean of fewer numbers is known less well.

# %%
changed = steepest.run("catapult", multiple=3.5, seeds=16)
print(f"{changed.claim}: {changed.verdict}, {changed.reason}")
for name, run in (("before", result), ("after", changed)):
    (check,) = [check for check in run.checks if check.id == "peak_time"]
    share = (check.interval.high - check.interval.low) / check.measured
    print(f"{name:>6}: {check.name}")
    print(
        f"        predicted {check.predicted:.3f}, measured {check.measured:.3f}, the interval is {share:.1%} wide"
    )

# %% [markdown]
# ## Break a hypothesis
#
# At γλ₀ = 5 the statement says nothing about a catapult. What should a program answer then? Not "holds", for nothing
# was tested. Not "fails" either, for nothing was refuted.

# %%
outside = steepest.run("catapult", multiple=5.0)
print(f"multiple=5: {outside.verdict}, {outside.reason}")
print(f"    {outside.hypotheses[0]}: {outside.hypotheses[0].note}")

# %% [markdown]
# *Out of range* is a verdict of its own, and the experiment was not run. On the command line the exit code of a run
# with fields of your own tells the verdicts apart: zero holds, one fails, two is bad input, three is neither. (A claim
# as it stands is compared with its recorded verdict: zero is "as recorded".) A field that does not exist is bad input,
# and you get one sentence.

# %%
from steepest.core.errors import UserError

try:
    steepest.run("catapult", multiples_of_lambda=3.0)
except UserError as sentence:
    print(sentence)

# %% [markdown]
# ## What you know now
#
# *Holds* means: the assumptions were true, every check agreed within its margin, and each check that counts is one
# that a wrong theory or a control failed. It does not mean that the theorem is proved. It means that these data gave
# it a fair chance to fail.
#
# ## Where next
#
# * [Your own claim, and how to ship it](your_own_claim.py): write one, and make it fail.
# * [A phase diagram on a cluster](phase_diagram.py): this claim at many points instead of one.
# * [Measure a training run](measure_training.py): your network instead of ours.
# * `steepest run` without a name takes you on a tour, one claim of each chapter; `steepest run --all` runs every claim.
#   Both end with the atlas, a page for each.
