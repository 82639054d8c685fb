"""Ge's lemma for matrix factorization, ‖ΔΔᵀ‖² ≤ 2‖XXᵀ − M‖², is sharp.

M is UUᵀ, and Δ is X − UR for the rotation R that brings U nearest to X. With E = XXᵀ − M and f = ¼‖E‖² holds the
identity ∇²f[Δ, Δ] = ½‖ΔΔᵀ‖² − (3/2)‖E‖² + 4⟨∇f, Δ⟩. So at a critical point that is no minimum the curvature along Δ is
negative. The constant 2 is attained where XᵀU = 0 and XᵀX = UᵀU = cI.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.landscapes import nearest_root
from steepest.nn.types import Values


class Setting(NamedTuple):
    """Pairs of X and U."""

    pairs: Values  # (2, pairs, n, r)
    orthogonal: Values  # the same, where XᵀU = 0 and XᵀX = UᵀU = cI, (2, pairs, n, r)


@kit.claim
class GeLemma(kit.Claim[Setting]):
    """Random X and roots U, and such whose columns are orthogonal."""

    columns: kit.Count = kit.param(3, "r, columns of X and U", scope=kit.choices(2, 3))
    dimension: kit.Count = kit.param(7, "n, rows", scope=kit.between(6, 9))
    pairs: kit.Count = kit.param(4000, "pairs of X and U")

    kind = "theorem"
    says = {"‖ΔΔᵀ‖² ≤ 2‖XXᵀ − M‖²": "lemma", "is sharp": "sharp"}
    tiny = {"columns": 2, "dimension": 4, "pairs": 100}
    full = {"columns": 4, "dimension": 12}
    out_of_scope = {"dimension": 5}

    def axes(self):
        return {"term": ("‖ΔΔᵀ‖²", "‖E‖²", "⟨∇f, Δ⟩")}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        n = self.dimension
        r = self.columns
        frames = np.linalg.qr(rng.normal(size=(self.pairs, n, min(n, 2 * r))))[0]
        sizes = rng.uniform(0.5, 2, (self.pairs, 1, 1))
        orthogonal = np.stack([frames[..., :r] * sizes, frames[..., -r:] * sizes])
        return Setting(rng.normal(size=(2, self.pairs, n, r)), orthogonal)

    def hypotheses(self, setting):
        advice = "X and U side by side must fit, for the pairs that are orthogonal"
        yield kit.assume("dimension", self.dimension, ">=", 2 * self.columns, advice)

    def predict(self, setting):
        return kit.law(identity=("term", [0.5, -1.5, 4.0]), constant=2.0)

    def observe(self, setting, key):
        terms, ratio, turned = _identity(*setting.pairs)
        return kit.seen(
            terms=("pair term", terms[:, :3]),
            second=("pair", terms[:, 3]),
            ratio=("pair", ratio),
            turned_ratio=("pair", turned),
            orthogonal_ratio=("pair", _identity(*setting.orthogonal)[1]),
        )

    def derive(self, law, seen):
        """Return what the identity is off, relative to the largest term."""
        off = abs(seen.second - (seen.terms * law.identity).sum("term"))
        return {"identity_off": off / abs(seen.terms).max("term")}

    def judge(self, law, seen):
        yield kit.agrees(
            "identity",
            seen.identity_off,
            1e-12,
            label="∇²f[Δ, Δ] − ½‖ΔΔᵀ‖² + (3/2)‖E‖² − 4⟨∇f, Δ⟩, E = XXᵀ − M",
        )
        yield kit.at_most(
            "lemma", law.constant, seen.ratio, each=True, label="‖ΔΔᵀ‖²/‖E‖² of random pairs"
        )
        yield kit.follows(
            "sharp",
            law.constant,
            seen.orthogonal_ratio,
            1e-10,
            each=True,
            label="‖ΔΔᵀ‖²/‖E‖² where XᵀU = 0 and XᵀX = UᵀU = cI",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "½‖ΔΔᵀ‖² − ‖E‖² + 4⟨∇f, Δ⟩",
            "then the lemma's 2 would be just what is needed",
            identity=("term", [0.5, -1.0, 4.0]),
        )
        yield kit.rival(
            "‖ΔΔᵀ‖² ≤ 1.207 ‖E‖²",
            "the constant of the lemma for ‖Δ‖² σ_r(M) (Tu et al. 2016)",
            id="local_constant",
            constant=1 / (2 * (np.sqrt(2) - 1)),
        )
        yield kit.rival("the lemma's constant is 3", "as much as the proof can bear", constant=3.0)

    def controls(self, seen):
        yield kit.control(
            "Δ to a root that is not the nearest",
            "the lemma is about the nearest root",
            ratio=seen.turned_ratio,
            orthogonal_ratio=seen.ratio,
        )

    def figure(self, law, seen, rivals):
        random = np.sort(seen.ratio)
        shares = np.linspace(0, 1, random.size)
        constant = float(law.constant)
        local = float(rivals["local_constant"].constant)
        yield kit.panel(
            "Ge's constant 2 is sharp",
            "‖ΔΔᵀ‖² / ‖XXᵀ − M‖²",
            "share of pairs below",
            kit.observed_curve(random, shares, "random pairs", kind="steps"),
            kit.observed_curve(
                np.sort(seen.orthogonal_ratio), shares, "XᵀU = 0, XᵀX = UᵀU = cI", shade=0.7
            ),
            kit.predicted_curve((constant, constant), (0, 1), f"{constant:g}"),
            kit.rival_curve((local, local), (0, 1), f"{local:.4g}"),
        )


def _identity(x: Values, root: Values) -> tuple[Values, Values, Values]:
    """Return the terms of Ge's identity at pairs of X and U, and the lemma's ratio for two roots.

    Returns:
        ``(terms, ratio, turned)``: ``‖ΔΔᵀ‖²``, ``‖E‖²``, ``⟨∇f, Δ⟩`` and ``∇²f[Δ, Δ]``, shape ``(pairs, 4)``, by the
        definitions; ``‖ΔΔᵀ‖²/‖E‖²`` with the nearest root, and with U as it comes, ``(pairs,)``.
    """
    delta = x - nearest_root(x, root)
    transposed = lambda a: np.swapaxes(a, -1, -2)
    squared = lambda a: (a**2).sum((-2, -1))
    residual = x @ transposed(x) - root @ transposed(root)
    cross = x @ transposed(delta)
    outer = delta @ transposed(delta)
    slope = (residual @ x * delta).sum((-2, -1))
    # f(X + tΔ) = ¼‖E + t(XΔᵀ + ΔXᵀ) + t²ΔΔᵀ‖², differentiated twice at t = 0
    second = squared(cross + transposed(cross)) / 2 + (residual * outer).sum((-2, -1))
    terms = np.stack([squared(outer), squared(residual), slope, second], -1)
    other = x - root
    turned = squared(other @ transposed(other)) / squared(residual)
    return terms, squared(outer) / squared(residual), turned
