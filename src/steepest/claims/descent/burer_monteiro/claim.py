"""Ascent on rows of length r solves max-cut's semidefinite program for almost all A if r(r+1)/2 > n.

Here A is the n × n matrix of the program, and there are n rows. If r(r+3)/2 ≤ n, some matrices A trap the ascent at a
value below the best. The program is max ⟨A, Z⟩ over Z ⪰ 0 with a diagonal of ones. Z = XXᵀ turns the program into a
nonconvex problem over unit rows, and ascent replaces each row by the best row given all others. Where the ascent ends,
(Diag(λ) − A)X = 0. A symmetric matrix that vanishes on r dimensions meets r(r + 1)/2 conditions, and there are n
multipliers λ. If there are fewer multipliers than conditions, almost no A has such an X of rank r, and an X of lower
rank is a maximum only if it is the best. With shorter rows, up to r(r + 3)/2 = n, one can construct an A with a maximum
at which Diag(λ) − A has a negative eigenvalue. This maximum is worse than the best, which is a plain cut. Gaussian
matrices do not show such traps: they are solved as soon as r reaches the rank of the best Z.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.descent.burer_monteiro import experiment, theory
from steepest.nn.types import Values

SHARE = 0.5  # of a trap's room that its t takes
BEYOND = 2.0  # the same, of rows that are no maximum
Matrices = tuple[np.ndarray, ...]
"""Gaussian matrices ``(seeds, n, n)`` of each size."""


@kit.claim
class BurerMonteiro(kit.Claim[Matrices]):
    """Gaussian matrices from random starts, at every length of rows, and matrices built to trap rows of each length."""

    sizes: tuple[Annotated[int, kit.Within(12, 60)], ...] = kit.param(
        (13, 14, 20, 27),
        "n, rows",
        scope=kit.choices(
            (13, 14, 20, 27),
            (12, 14, 24, 27),
            (14, 19, 20),
            why="some equal r(r + 3)/2, and the longest rows are long enough",
        ),
    )
    longest: Annotated[int, kit.Within(2, 8)] = kit.param(
        7, "the longest rows", unit="entries", scope=kit.choices(7)
    )
    starts: kit.Count = kit.param(6, "random starts for each length of rows")
    near: kit.Count = kit.param(2, "starts near each trap")
    sweeps: kit.Count = kit.param(400, "sweeps of ascent over all rows")
    seeds: kit.Seeds = kit.param(3, "matrices of each size, and traps")

    kind = "theorem"
    says = {
        "solves max-cut's semidefinite program for almost all A if r(r+1)/2 > n": (
            "solved",
            "certificate",
        ),
        "If r(r+3)/2 ≤ n, some matrices A trap the ascent": "trapped",
    }
    tiny = {"sizes": (12, 13), "longest": 5, "starts": 2, "near": 1, "sweeps": 60}
    full = {"starts": 20, "near": 5, "sweeps": 1000, "seeds": 10}
    out_of_scope = {"longest": 4}

    @property
    def lengths(self) -> Values:
        """Return the lengths of rows from random starts."""
        return np.arange(1, self.longest + 1)

    @property
    def long(self) -> list[int]:
        """Return for each size the place of the first length that is long enough; the last one if none is."""
        long = [[theory.enough(n, int(r)) for r in self.lengths] for n in self.sizes]
        return [row.index(True) if any(row) else len(row) - 1 for row in long]

    def axes(self):
        return {
            "n": self.sizes,
            "length": tuple(self.lengths.tolist()),
            "r": tuple(range(2, self.longest + 1)),
        }

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return tuple(
            np.stack([experiment.gaussian(rng, n) for _ in range(self.seeds)]) for n in self.sizes
        )

    def hypotheses(self, setting):
        entries = self.longest * (self.longest + 1) // 2
        yield kit.assume("r(r + 1)/2 of the longest rows", entries, ">", max(self.sizes))

    def predict(self, setting):
        best = [[theory.max_cut_program(a) for a in matrices] for matrices in setting]
        trapped = [[theory.traps(n, r) for r in range(2, self.longest + 1)] for n in self.sizes]
        return kit.law(
            best=("seed n", np.transpose(best)),
            defect=0.0,
            trapped=("n r", np.array(trapped, float)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        of_sizes = []
        lost = []
        beyond = []
        for n, matrices in zip(self.sizes, setting, strict=True):
            begun = experiment.starts(rng, n, self.longest, self.seeds * self.starts)
            begun = begun.reshape(self.longest, self.seeds, self.starts, n, self.longest)
            ended = experiment.ascend(matrices, begun, self.sweeps)
            of_sizes.append(experiment.ends(matrices, ended))
            lost.append(self.lost(rng, n, SHARE))
            beyond.append(self.lost(rng, n, BEYOND))
        # of (n, length, seed, start)
        value, least, residual = (
            np.stack(part).transpose(2, 0, 1, 3) for part in zip(*of_sizes, strict=True)
        )
        long = (slice(None), np.arange(len(self.sizes)), self.long)
        defect = np.maximum(-least, 0.0)
        return kit.seen(
            value=("seed n length start", value),
            best=("seed n start", value[long]),
            defect=("seed n start", defect[long]),
            residual=("seed n start", residual[long]),
            cut_value=("seed n start", value[:, :, 0]),
            cut_defect=("seed n start", defect[:, :, 0]),
            trapped=("seed n r near", np.stack(lost, 1)),
            beyond=("seed n r near", np.stack(beyond, 1)),
        )

    def lost(self, rng: np.random.Generator, n: int, share: float) -> Values:
        """Return the part of a trap's distance to the best that is left where ascent ends, ``(seeds, r, starts)``."""
        lengths = range(2, self.longest + 1)
        traps = [[experiment.trap(rng, n, r, share) for r in lengths] for _ in range(self.seeds)]
        a = np.array([[made.a for made in row] for row in traps])
        pad = lambda x: np.pad(x, ((0, 0), (0, self.longest - x.shape[1])))
        x = np.array([[pad(made.x) for made in row] for row in traps])[:, :, None]
        noise = experiment.NOISE * rng.standard_normal((*x.shape[:2], self.near, *x.shape[3:]))
        ended = experiment.ascend(a, experiment.unit_rows(x + noise * (x != 0)), self.sweeps)
        best = a.sum((-2, -1))[..., None]  # of the cut that puts all on one side
        trapped = experiment.ends(a, x).value
        return (best - experiment.ends(a, ended).value) / (best - trapped)

    def run_conditions(self, observed):
        yield kit.assume(
            "largest residual of stationary rows",
            float(observed["residual"].max()),
            "<=",
            1e-3,
            "raise --sweeps",
        )

    def derive(self, law, seen):
        """Return the share of random starts that end at the program's value."""
        return {"reached": (seen.value > law.best * (1 - 1e-4)).mean(("seed", "start"))}

    def judge(self, law, seen):
        yield kit.follows(
            "solved",
            law.best,
            seen.best,
            1e-5,
            over="n",
            each=True,
            label="value from random starts of long rows",
        )
        yield kit.agrees(
            "certificate", seen.defect, 1e-3, label="negative part of Diag(λ) − A there"
        )
        yield kit.follows(
            "trapped",
            law.trapped,
            seen.trapped,
            0.01,
            absolute=True,
            each=True,
            label="part of the distance to the best that is left, from near a trap",
        )

    def rivals(self, setting, law):
        n = law.n
        r = law.r
        as_law = lambda holds: holds.transpose("n", "r").astype(float)
        largest = [[len(a) * np.linalg.eigvalsh(a)[-1] for a in of_size] for of_size in setting]
        yield kit.rival(
            "no traps for rows of two entries or more",
            "the notes say it, and Gaussian matrices show none",
            trapped=0 * law.trapped,
        )
        yield kit.rival(
            "traps for all r(r + 1)/2 ≤ n",
            "it is where the theorem ends",
            trapped=as_law(r * (r + 1) <= 2 * n),
        )
        yield kit.rival(
            "traps for r² + r ≤ n", "B has r² entries", trapped=as_law(r * (r + 1) <= n)
        )
        yield kit.rival(
            "traps for r(r + 3)/2 < n",
            "as many equations as unknowns have a solution",
            trapped=as_law(r * (r + 3) < 2 * n),
        )
        yield kit.rival("traps for r < √n", "it is the rule of thumb", trapped=as_law(r**2 < n))
        yield kit.rival(
            "the value of the eigenvalue's bound, n λ_max",
            "all rows have one length together",
            best=("seed n", np.transpose(largest)),
        )

    def controls(self, seen):
        yield kit.control(
            "ascent over cuts",
            "rows of length one cannot turn",
            best=seen.cut_value,
            defect=seen.cut_defect,
        )
        yield kit.control(
            "a negative eigenvalue twice as large as a trap can hold",
            "there the rows are a saddle",
            id="beyond_its_room",
            trapped=seen.beyond,
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Gaussian matrices are solved by short rows",
            None,
            seen.reached,
            over="length",
            by="n",
            x="length r of the rows",
            y="share of starts at the program's value",
            name="n = {}",
            kind="line",
        )
        yield kit.curves(
            "Some matrices trap rows up to r(r + 3)/2 = n",
            law.trapped,
            seen.trapped,
            over="r",
            by="n",
            x="length r of the rows",
            y="part of the loss that is left",
            name="n = {}",
        )
