"""Why a Gram matrix cannot be solved with: gaps, asymmetry, equal inputs, too little precision."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from numpy.typing import NDArray

from steepest.kernels._gram import blocks

EXACT = 3000  # rows up to which all eigenvalues are computed
DUPLICATES = 1000  # pairs that are kept
ROUNDING = (
    100  # times eps and the largest eigenvalue: what may be rounding of a matrix and its factors
)


class Pair(NamedTuple):
    """Two indices: of an entry, or of two inputs."""

    row: int
    column: int


@dataclass(frozen=True)
class Diagnosis:
    """Conditioning and defects of a Gram matrix; printed, it is one sentence with what to do.

    Attributes:
        size: rows.
        dtype: of the entries.
        broken: the first entry that is NaN or infinite; then nothing else is known.
        asymmetric: the entry that differs most from its mirror image, if by more than rounding.
        duplicates: the first 1000 pairs of inputs that are the same up to rounding, K_ii + K_jj − 2 K_ij ≈ 0.
        smallest: eigenvalue; NaN if unknown, which may be for more than 3000 rows.
        largest: eigenvalue.
        regularization: a round number λ with which ``solve`` can do, as K + λ is above rounding; 0 if K is.
    """

    size: int
    dtype: np.dtype
    broken: Pair | None = None
    asymmetric: Pair | None = None
    duplicates: tuple[Pair, ...] = ()
    smallest: float = np.nan
    largest: float = np.nan
    regularization: float = np.nan

    @property
    def rounding(self) -> float:
        """Return the size below which eigenvalues are rounding of the entries and of a factorization."""
        return ROUNDING * float(np.finfo(self.dtype).eps) * self.largest

    @property
    def sound(self) -> bool:
        """Return whether the matrix is symmetric and positive definite beyond rounding."""
        return self.broken is None and self.asymmetric is None and self.smallest > self.rounding

    def __str__(self) -> str:
        name = "the Gram matrix"
        cure = f"set the regularization to at least {self.regularization:.0e}"
        finer = "compute it in float64, or " if self.dtype == np.float32 else ""
        if self.broken:
            i, j = self.broken
            return f"{name} has an entry ({i}, {j}) that is not finite; look at inputs {i} and {j} or drop them"
        if self.asymmetric:
            i, j = self.asymmetric
            return f"{name} is not symmetric, most at ({i}, {j}); take that of one set of inputs with itself"
        if self.smallest < -self.rounding * np.sqrt(self.size):
            why = f"its smallest eigenvalue is {self.smallest:.1e} beside {self.largest:.1e}, more than rounding"
            return f"{name} is not positive definite: {why}, so no kernel gives it; check how it was made, or {cure}"
        if self.duplicates:
            i, j = self.duplicates[0]
            count = "at least " * (len(self.duplicates) == DUPLICATES) + str(
                len(self.duplicates) - 1
            )
            more = "" if count == "0" else f", and so are {count} other pairs"
            why = f"inputs {i} and {j} are the same up to the rounding of {self.dtype}{more}"
            return f"{name} is singular: {why}; drop one of each, or {finer}{cure}"
        if self.sound:
            return f"{name} is positive definite: its eigenvalues go from {self.smallest:.1e} to {self.largest:.1e}"
        value = "" if np.isnan(self.smallest) else f" ({self.smallest:.1e})"
        why = f"its smallest eigenvalue{value} is rounding beside its largest ({self.largest:.1e})"
        return f"{name} is not positive definite to the precision of {self.dtype}: {why}; {finer}{cure}"


def diagnose(gram: Any, quotient: float | None = None) -> Diagnosis:
    """Diagnose conditioning and defects of a Gram matrix, cheap checks first; ``str`` says the first defect.

    Costs a pass over the entries and up to 3000 rows all eigenvalues, beyond that some Lanczos steps.

    Args:
        gram: an array, or what has ``shape``, ``dtype`` and ``matvec``; without ``tiles()`` only eigenvalues are found.
        quotient: a quotient vᵀKv/vᵀv that is known, an upper bound of the smallest eigenvalue.

    >>> print(diagnose(np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]])))
    the Gram matrix is singular: inputs 0 and 2 are the same up to the rounding of float64; drop ...
    >>> diagnose(np.eye(3)).sound
    True
    """
    size = gram.shape[0]
    dtype = np.dtype(gram.dtype)
    for rows, columns, values in _parts(gram):
        wrong = ~np.isfinite(values)
        if wrong.any():
            i, j = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            return Diagnosis(size, dtype, broken=Pair(int(i) + rows.start, int(j) + columns.start))
    asymmetric = asymmetry(gram) if isinstance(gram, np.ndarray) else None
    if asymmetric:
        return Diagnosis(size, dtype, asymmetric=asymmetric)
    smallest, largest = _extremes(gram)
    smallest = float(np.fmin(smallest, np.nan if quotient is None else quotient))
    diagnosis = Diagnosis(
        size, dtype, None, None, tuple(islice(_duplicates(gram), DUPLICATES)), smallest, largest
    )
    # systems are refined with float64 products, so that float32 needs more only where its eigenvalues are unknown
    rounding = ROUNDING * np.finfo(float if np.isfinite(smallest) else dtype).eps * largest
    # λ = −2 λ_min leaves |λ_min| as the smallest eigenvalue
    needed = 0.0 if diagnosis.sound else float(np.fmax(rounding, -2 * smallest))
    return Diagnosis(**{**vars(diagnosis), "regularization": _rounded_up(needed)})


def asymmetry(gram: NDArray) -> Pair | None:
    """Find the entry that differs most from its mirror image, if by more than rounding."""
    worst = 0.0
    place = None
    scale = max((float(np.abs(block).max()) for _, _, block in _parts(gram)), default=0.0)
    for rows, _, values in _parts(gram):
        difference = np.abs(values - gram[:, rows].T)
        if difference.max() > worst:
            i, j = np.unravel_index(int(np.argmax(difference)), difference.shape)
            worst = float(difference.max())
            place = Pair(int(i) + rows.start, int(j))
    return place if worst > ROUNDING * np.finfo(gram.dtype).eps * scale else None


def _parts(gram: Any) -> Iterator[tuple[slice, slice, NDArray]]:
    """Yield rows, columns and entries, a part at a time."""
    if isinstance(gram, np.ndarray):
        for rows in blocks(len(gram), 512):
            yield rows, slice(0, gram.shape[1]), gram[rows]
    elif hasattr(gram, "tiles"):
        yield from gram.tiles()


def _duplicates(gram: Any) -> Iterator[Pair]:
    """Yield pairs i < j with K_ii + K_jj − 2 K_ij within rounding of zero."""
    if not (isinstance(gram, np.ndarray) or hasattr(gram, "tiles")):
        return
    diagonal = gram.diagonal().astype(float)
    small = 32 * np.finfo(gram.dtype).eps
    for rows, columns, values in _parts(gram):
        # ‖φ_i − φ_j‖² = K_ii + K_jj − 2 K_ij in the kernel's feature space
        sums = diagonal[rows, None] + diagonal[None, columns]
        for i, j in zip(*np.nonzero(sums - 2.0 * values <= small * sums), strict=True):
            if (i := int(i) + rows.start) < (j := int(j) + columns.start):
                yield Pair(i, j)


def _extremes(gram: Any) -> tuple[float, float]:
    """Return the smallest and the largest eigenvalue; the smallest is NaN where Lanczos does not find it."""
    if gram.shape[0] <= EXACT and (isinstance(gram, np.ndarray) or hasattr(gram, "toarray")):
        whole = gram if isinstance(gram, np.ndarray) else gram.toarray()
        values = scipy.linalg.eigvalsh(np.asarray(whole, float))
        return float(values[0]), float(values[-1])
    operator = scipy.sparse.linalg.aslinearoperator(gram)
    start = np.random.default_rng(0).standard_normal(gram.shape[0])
    find = lambda which, **limits: float(
        scipy.sparse.linalg.eigsh(
            operator, 1, which=which, v0=start, return_eigenvectors=False, **limits
        )[0]
    )
    largest = find("LA", tol=1e-2)
    try:
        return find("SA", tol=1e-2, ncv=60, maxiter=4), largest
    except scipy.sparse.linalg.ArpackNoConvergence:
        return np.nan, largest


def _rounded_up(value: float) -> float:
    """Round up to one digit."""
    if value == 0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / unit) * unit)
