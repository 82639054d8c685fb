"""From a tiny start, descent on W = UUᵀ finds the fit of least nuclear norm: theorem if measurements commute.

Gradient flow on the squared loss of linear measurements of W = UUᵀ, U square and of full rank, starts at U = αI. If the
measurements commute, its limit is known at every α and tends to the fit of least nuclear norm as α → 0. For others it
does so where that fit is the low-rank truth; with fewer measurements it need not.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, NonNegative, Positive, Seeds, keys
from steepest.descent import entropy, flow, mean_risk, squared
from steepest.judging import Check, Hypothesis, Rival, bound, equal, order, require
from steepest.margins import bregman_interpolation, nuclear_norm_interpolation
from steepest.panels import Panel, panel, rival, seen, theory
from steepest.types import Key

FAMILIES = ("commuting", "Gaussian", "completion", "few")


class Setting(NamedTuple):
    """Measurements of four families, filled up with zeros to one shape."""

    a: jax.Array  # A_i, symmetric, (family, seed, m, d, d)
    y: jax.Array  # ⟨A_i, truth⟩, (family, seed, m)
    truth: jax.Array  # (family, seed, d, d)
    basis: jax.Array  # common eigenvectors of the commuting family, (seed, d, d)


@dataclass(frozen=True)
class NuclearNorm(Claim):
    """Random measurements of matrices of Frobenius norm one; the truth has rank one unless measurements commute."""

    alphas: tuple[Positive, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # α, scales of the start, increasing [1]
    dimension: Count = 8  # d, rows of the square matrices [1]
    commuting: Count = 4  # measurements with common eigenvectors [1]
    gaussian: Count = 18  # Gaussian measurements, enough for the program to find the truth [1]
    entries: Count = 22  # entries seen of a symmetric matrix, mirrored pairs counted once [1]
    few: Count = 8  # Gaussian measurements, too few for the program to find the truth [1]
    twist: NonNegative = 0.0  # angle by which the eigenvectors of the commuting family differ [1]
    seeds: Seeds = 3  # problems of each family [1]
    horizon: Positive = 16.0  # longest log(1 + t) of the flow [1]

    statement = (
        r"\dot U=-\nabla_U\tfrac{1}{2m}\sum_i\bigl(\langle A_i,UU^\top\rangle-y_i\bigr)^2,\ U(0)=\alpha I:\qquad"
        r"\lim_{\alpha\to0}\lim_{t\to\infty}UU^\top=\arg\min_{W\succeq0,\ \langle A_i,W\rangle=y_i}\|W\|_*"
    )
    source = "Gunasekar's lecture (seeds 004); Gunasekar et al. 2017; Li, Ma and Zhang 2018; Li, Luo and Lyu 2021"
    corrections = (
        "The notes say that descent on the factors ends at the minimum of the nuclear norm; that is about the limit of "
        "starts that tend to zero, and from a start of any size it ends elsewhere.",
        "The notes say that Li, Ma and Zhang extend the law to random measurements; they prove that the low-rank truth "
        "is found, under restricted isometry, where the nuclear norm finds it as well.",
    )
    remarks = (
        "For commuting measurements this is a theorem, for all others an empirical law.",
        "For commuting measurements the limit at every α is W = α² exp(Σ ν_i A_i), the fit whose eigenvalues are "
        "nearest to α² in relative entropy. Eigenvalues off the support of the nuclear-norm solution fall like "
        "α^(2(1 − z)), z < 1 those of its dual matrix Σ ν_i A_i. Where the largest z is near one the approach is slow, "
        "so this family is judged by the exact limit and by this exponent, not by a small distance.",
        "The truth of the commuting family has full rank, so that a positive definite fit exists, as the law needs.",
        "Where the program does not find the truth, the empirical law fails: with 8 Gaussian measurements the distance "
        "does not tend to zero with α, and the limit has a larger nuclear norm than the program's. This agrees with Li, "
        "Luo and Lyu 2021, for whom tiny starts prefer low rank. Its check was added after the first run had shown it.",
    )
    full = {"dimension": 10, "commuting": 5, "gaussian": 24, "entries": 32, "few": 10, "seeds": 8}
    beyond = {"twist": 0.3}

    def setting(self, key: Key) -> Setting:
        a, y, truth, basis = jax.jit(jax.vmap(self._problem))(keys(key, self.seeds))
        return Setting(*(part.swapaxes(0, 1) for part in (a, y, truth)), basis)

    def _problem(self, key: Key) -> tuple[jax.Array, ...]:
        d, normal, counts = self.dimension, jax.random.normal, (self.commuting, self.gaussian, self.entries, self.few)
        for_basis, for_twist, for_values, for_sizes, for_rest = keys(key, 5)
        basis = jnp.linalg.qr(normal(for_basis, (d, d)))[0]
        skew = jnp.tril(normal(for_twist, (self.commuting, d, d)), -1)
        turned = basis @ jax.scipy.linalg.expm(self.twist * (skew - skew.transpose(0, 2, 1)))
        first = jnp.einsum("mij,mj,mkj->mik", turned, normal(for_values, (self.commuting, d)), turned)
        rows, columns = jnp.triu_indices(d)
        for_gauss, for_few, for_mask, for_truth = keys(for_rest, 4)
        chosen = jax.random.choice(for_mask, len(rows), (self.entries,), replace=False)
        mask = jnp.zeros((self.entries, d, d)).at[jnp.arange(self.entries), rows[chosen], columns[chosen]].set(1.0)
        found = (first, _gaussian(for_gauss, self.gaussian, d), mask, _gaussian(for_few, self.few, d))
        a = jnp.stack([jnp.pad(one, ((0, max(counts) - len(one)), (0, 0), (0, 0))) for one in found])
        a = (a + a.transpose(0, 1, 3, 2)) / 2
        vectors = normal(for_truth, (3, d))
        spread = (basis * jnp.exp(normal(for_sizes, (d,)))) @ basis.T
        truth = jnp.concatenate([spread[None], vectors[:, :, None] * vectors[:, None]])
        truth /= jnp.linalg.norm(truth, axis=(1, 2), keepdims=True)
        return a, jnp.einsum("fmij,fij->fm", a, truth), truth, basis

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        one = setting.a[0]
        products = jnp.einsum("smij,snjk->smnik", one, one)
        apart = jnp.abs(products - products.transpose(0, 2, 1, 3, 4)).max()
        programs = [[_program(*problem) for problem in zip(setting.a[f], setting.y[f], strict=True)] for f in (1, 2)]
        away = _distance(np.array([[p.matrix for p in row] for row in programs]), np.asarray(setting.truth[1:3]))
        least = min(p.uniqueness for row in programs for p in row)
        return [
            require("largest entry of a commutator", apart, "<=", 1e-10, "choose --twist 0"),
            require("commuting measurements", self.commuting, "<", self.dimension, "choose --commuting below d"),
            require("largest distance of the program from the rank-one truth", away.max(), "<=", 1e-4,
                "raise --gaussian or --entries"),
            require("least sine that proves the program's minimizer unique", least, ">=", 1e-3, "raise --entries"),
        ]  # fmt: skip

    def predict(self, setting: Setting) -> Prediction:
        found = [[_program(*p) for p in zip(a, y, strict=True)] for a, y in zip(setting.a, setting.y, strict=True)]
        limit = np.array([[program.matrix for program in row] for row in found])
        q = np.asarray(setting.basis)
        # Off the common eigenvectors nothing is seen, and the flow stays on them: of all minimizers the diagonal one.
        limit[0] = [_in_basis(np.diag(v.T @ w @ v), v) for w, v in zip(limit[0], q, strict=True)]
        z = np.linalg.eigvalsh([np.tensordot(p.dual, a, 1) for p, a in zip(found[0], setting.a[0], strict=True)])
        potential = entropy()
        seen_by = np.einsum("sji,smjk,ski->smi", q, setting.a[0], q)[:, : self.commuting]  # eigenvalues of the A_i
        with np.errstate(over="ignore"):  # a step of the line search may be too long
            exact = [
                [bregman_interpolation(x, y[: len(x)], potential, np.full(len(v), a**2)).beta for a in self.alphas]
                for x, y, v in zip(seen_by, setting.y[0], q, strict=True)
            ]
        return Prediction(
            limit=("family seed row column", limit),
            exact=("seed alpha row column", [[_in_basis(w, v) for w in row] for row, v in zip(exact, q, strict=True)]),
            slope=("seed", 2 * (1 - np.where(z < 1 - 1e-5, z, -np.inf).max(1))),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        del key

        def follow(a: jax.Array, y: jax.Array, floor: jax.Array, alpha: jax.Array) -> tuple:
            risk = mean_risk(squared, lambda u, a: jnp.tensordot(a, u @ u.T, 2), a, y)
            path = flow(risk, alpha * jnp.eye(self.dimension), jnp.array([self.horizon]), clock="log",
                rtol=1e-7, atol=1e-10, floor=floor)  # fmt: skip
            return path.params @ path.params.T, path.steps

        over_alphas = jax.vmap(follow, (None, None, None, 0))
        over_families = jax.vmap(jax.vmap(over_alphas, (0, 0, None, None)), (0, 0, 0, None))
        # The commuting limits are compared to 1e-4, the others to 1e-2.
        floors, alphas = jnp.array([1e-13, 1e-10, 1e-10, 1e-10]), jnp.array(self.alphas)
        w, steps = jax.jit(over_families)(setting.a, setting.y, floors, alphas)
        misfit = jnp.linalg.norm(jnp.einsum("fsmij,fsaij->fsam", setting.a, w) - setting.y[:, :, None], axis=-1)
        return Observation(
            w=("family seed alpha row column", w),
            steps=("family seed alpha", steps, "steps"),
            residual=("family seed alpha", misfit / jnp.linalg.norm(setting.y, axis=-1)[..., None]),
        )

    def premises(self, observed: Observation) -> list[Hypothesis]:
        largest = observed["residual"].max((1, 2, 3)[: observed["residual"].ndim - 1])
        return [
            require(f"largest relative residual, {name}", value, "<=", limit, "raise --horizon")
            for name, value, limit in zip(FAMILIES, largest, (1e-5, 1e-3, 1e-3, 1e-3), strict=True)
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        away = _distance(observed["w"], predicted["limit"][:, :, None])
        exact = _distance(observed["w"][0], predicted["exact"]).max(1)
        slope = np.polyfit(np.log(self.alphas[:3]), np.log(away[0, :, :3]).T, 1)[0]
        names = [f"α = {alpha:g}" for alpha in self.alphas]
        ends = (0, len(names) // 2, len(names) - 1)
        return [
            bound("commuting: largest distance to the exact limit over all α", exact, at_most=1e-4, over="each"),
            equal("commuting: exponent of the approach minus 2(1 − z)", 0.0, slope - predicted["slope"], within=0.05,
                absolute=True, note="slope over the three smallest α"),
            *(bound(f"{name}: distance to least nuclear norm at {names[0]}", away[f, :, 0], at_most=1e-2)
              for f, name in ((1, "Gaussian"), (2, "completion"))),
            *(order(f"{name}: log distance to least nuclear norm grows with α", [names[i] for i in ends],
                {names[i]: np.log(away[f, :, i]) for i in ends}) for f, name in enumerate(FAMILIES[:3])),
            bound(f"too few: largest distance to least nuclear norm at {names[0]}", away[3, :, 0].max(), at_least=0.05),
        ]  # fmt: skip

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        m = setting.a.shape[2]
        least = [[np.linalg.lstsq(a.reshape(m, -1), y)[0].reshape(a.shape[1:]) for a, y in zip(*row, strict=True)]
            for row in zip(np.asarray(setting.a), np.asarray(setting.y), strict=True)]  # fmt: skip
        everywhere = np.repeat(predicted["limit"][0][:, None], len(self.alphas), 1)
        return [
            Rival("least Frobenius norm", predicted.replace(limit=("family seed row column", least)),
                "it is the law of descent on W itself"),
            Rival("least nuclear norm from every start", predicted.replace(exact=("seed alpha row column", everywhere)),
                "it is what the notes say"),
            Rival("the distance falls like α²", predicted.replace(slope=("seed", 0 * predicted["slope"] + 2)),
                "α² is the size of the start"),
        ]  # fmt: skip

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        alphas, away = np.array(self.alphas), _distance(observed["w"], predicted["limit"][:, :, None])
        law = _distance(predicted["exact"], predicted["limit"][0][:, None])
        sizes, places = np.linalg.eigvalsh(observed["w"][3, 0, 0])[::-1], np.arange(1, self.dimension + 1)
        least = np.linalg.eigvalsh(predicted["limit"][3, 0])[::-1]
        words = "relative distance to least nuclear norm"
        return (
            panel("Commuting: the flow follows the exact law at every start", "α", words, seen(alphas, away[0], "flow",
                kind="points"), theory(alphas, law, "exact law"), log="xy"),
            panel("Enough measurements: least nuclear norm", "α", words, seen(alphas, away[1], "Gaussian"),
                seen(alphas, away[2], "completion", shade=1.0), rival(alphas, 0 * alphas + 1e-2, "margin at the left"),
                log="xy"),
            panel("Too few: something else", "α", words, seen(alphas, away[3], "8 Gaussian"), log="xy"),
            panel(f"Too few, α = {alphas[0]:g}: spectra of limit and program", "rank", "eigenvalue",
                theory(places, least, "least nuclear norm"), seen(places, sizes, "flow", kind="points")),
        )  # fmt: skip


def _gaussian(key: Key, m: int, d: int) -> jax.Array:
    """Symmetric Gaussian measurements, orthonormal: the same equations, but well conditioned for the flow."""
    drawn = jax.random.normal(key, (m, d, d))
    drawn = (drawn + drawn.transpose(0, 2, 1)).reshape(m, d * d)
    return jnp.linalg.qr(drawn.T)[0].T.reshape(m, d, d)


def _program(a: jax.Array, y: jax.Array):
    return nuclear_norm_interpolation(np.asarray(a), np.asarray(y), semidefinite=True)


def _in_basis(eigenvalues: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return (basis * eigenvalues) @ basis.T


def _distance(w: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Relative Frobenius distance along the last two axes."""
    return np.linalg.norm(w - reference, axis=(-2, -1)) / np.linalg.norm(reference, axis=(-2, -1))
