"""Markov chains on a line or on finitely many states, exactly: stationary laws, exit times, spectral gaps."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import linalg, sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.types import Values

ROUNDING = 1e-8  # by which a row may miss its sum
TAIL = 1e-12  # density at the ends of a grid over the largest, at most
ENDLESS = 1e14  # steps that rounding cannot tell from for ever
STEEPEST = 300.0  # half the fall of βf between two nodes, beyond which rates overflow
COARSE = 1e-6  # by which a row's sum may exceed one: more says that nodes are too far apart


class ExitMoments(NamedTuple):
    """How long a killed chain lives, in steps.

    Attributes:
        mean: of the time until it is killed, from each state, shape ``(n,)``.
        variation: standard deviation over mean, from each state, shape ``(n,)``; one for an exponential time.
        rate: −log of the largest eigenvalue, at which the chance to be alive decays in the end.
        residual: relative change of the eigenvalue's gap in the last iteration.
    """

    mean: Float[np.ndarray, " n"]
    variation: Float[np.ndarray, " n"]
    rate: float
    residual: float


@checked
def gibbs(
    f: Callable[[Values], Values], beta: float, grid: Float[Values, " n"]
) -> Float[np.ndarray, " n"]:
    """Return the masses of ``exp(−βf)`` on an even grid, with sum one.

    Sums over an even grid converge faster than any power of its spacing where the density vanishes at both ends.

    Args:
        f: a potential on arrays.
        beta: β, the inverse temperature.
        grid: increasing nodes at even distances, ``(n,)``.

    Raises:
        UserError: a β or a grid that is none, a potential without a value for each node, and densities that do not
            vanish at the ends, since f does not confine or the grid truncates the tail.

    >>> nodes = np.linspace(-8, 8, 65)
    >>> bool(abs(gibbs(lambda x: x**2 / 2, 2.0, nodes) @ nodes**2 - 0.5) < 1e-12)  # variance 1/β
    True
    """
    return _gibbs("gibbs", f, beta, grid)


def _gibbs(name: str, f: Callable[[Values], Values], beta: float, grid: Values) -> Values:
    nodes = _even(name, grid)
    inverse = _positive(name, beta, "β")
    exponents = -inverse * _potential(name, f, nodes)
    if not np.isfinite(exponents).all():
        raise UserError(f"{name}: expected a finite potential on the grid, got values that are not")
    weights = np.exp(exponents - exponents.max())  # largest exponent 0: no overflow
    ends = max(weights[0], weights[-1])
    if ends > TAIL:
        raise UserError(
            f"{name}: expected a density exp(−βf) that vanishes at both ends of the grid, got {ends:.2g} of the "
            f"largest at one; take a wider grid than [{nodes[0]:g}, {nodes[-1]:g}], or a potential that confines"
        )
    return weights / weights.sum()


@checked
def transfer_matrix(
    grid: Float[Values, "n *d"],
    drift: Float[Values, "n *d"],
    variance: float,
    weights: Float[Values, " n"] | None = None,
    *,
    killed: bool = False,
) -> Float[np.ndarray, "n n"]:
    """Return the matrix of ``X' = X + drift(X) + N(0, variance I)`` on the nodes of a quadrature rule.

    ``P_ij = w_j N(x_j; x_i + drift_i, variance)``. With even nodes closer than 0.9 standard deviations or Gauss's, sums
    replace integrals to nine digits. As the rows of a chain that cannot leave they are divided by their sums; with
    ``killed`` a walker that steps out of the region of the nodes is gone, and rows sum to the chance to stay.

    Args:
        grid: nodes; ``(n,)`` on the line, else ``(n, d)``.
        drift: mean step from each node, such as −ε∇f, of the same shape.
        variance: of a step in each direction, such as 2ε/β.
        weights: of the quadrature rule, ``(n,)``; of an even grid on the line where left out. A node of weight zero is
            a place to start from and no place to be.
        killed: see above.

    Raises:
        UserError: shapes that do not agree, a variance that is not positive, nodes too far apart for it.

    >>> nodes = np.linspace(-9, 9, 65)
    >>> law = stationary(transfer_matrix(nodes, -0.5 * nodes, 1.0))
    >>> round(float(law @ nodes**2), 9)  # variance of X' = X/2 + N: 1/(1 − 1/4)
    1.333333333
    """
    nodes = np.asarray(grid, float)
    drift = np.asarray(drift, float)
    if weights is None:
        masses = np.full(len(nodes), _even("transfer_matrix", nodes)[1] - nodes[0])
    else:
        masses = np.asarray(weights, float)
    if not (
        nodes.shape == drift.shape and nodes.ndim in (1, 2) and masses.shape == nodes.shape[:1]
    ):
        raise UserError(
            f"transfer_matrix: expected nodes, drift and weights that go together, got shapes {nodes.shape}, "
            f"{drift.shape} and {masses.shape}"
        )
    variance = _positive("transfer_matrix", variance, "a variance")
    places = nodes.reshape(len(nodes), -1)
    means = places + drift.reshape(places.shape)
    # ‖x_j − x_i − drift_i‖², shape (n, n), one coordinate at a time
    squares = sum(
        (mean[:, None] - place) ** 2 for mean, place in zip(means.T, places.T, strict=True)
    )
    scale = (2 * np.pi * variance) ** (-places.shape[1] / 2)  # (2π variance)^{−d/2}
    matrix = np.exp(squares / (-2 * variance)) * (scale * masses)
    sums = matrix.sum(1)
    if sums.max() > 1 + COARSE or sums.min() <= 0:
        raise UserError(
            f"transfer_matrix: expected rows that sum to at most one, got {sums.min():.3g} to {sums.max():.3g}: nodes "
            f"too far apart for a standard deviation of {variance**0.5:.3g}, or far from where a step leads; take more "
            "nodes"
        )
    # rows over their sums: the mass that steps off the grid is spread over it
    return matrix if killed else matrix / sums[:, None]


@checked
def exit_moments(transitions: Float[Values, "n n"]) -> ExitMoments:
    """Return mean and variation of the time at which a killed chain ends, and the rate at which it does in the end.

    With K the matrix of those transitions after which it lives, the mean is ``m = (I − K)⁻¹ 1``, the second moment
    ``2(I − K)⁻¹m − m``, and the rate ``−log ρ(K)``, by inverse iteration.

    Args:
        transitions: K, not negative, rows of sum at most one, ``(n, n)``.

    Raises:
        UserError: a matrix that is no such K, or a chain of which a part is never killed.

    >>> moments = exit_moments(np.array([[0.75]]))  # a geometric time
    >>> float(moments.mean[0]), round(float(moments.variation[0]), 4), round(moments.rate, 4)
    (4.0, 0.866, 0.2877)
    """
    matrix = _square("exit_moments", transitions)
    sums = matrix.sum(1)
    if sums.max() > 1 + COARSE:
        raise UserError(
            f"exit_moments: expected rows of sum at most one, got {sums.max():.6g}; take the transitions after which "
            "the chain lives"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", linalg.LinAlgWarning)  # said below, in a sentence
        factors = linalg.lu_factor(np.eye(len(matrix)) - matrix, check_finite=False)  # I − K
        # m = 1 + K m: one step, then the chain from where it led
        mean = linalg.lu_solve(factors, np.ones(len(matrix)), check_finite=False)
    if not (np.isfinite(mean).all() and mean.min() > 1 - COARSE and mean.max() < ENDLESS):
        raise UserError(
            "exit_moments: expected a chain that is killed some time wherever it starts, got one that is not; drop the "
            "states from which it is never killed"
        )
    # E T² = 1 + 2Km + K E T² from T = 1 + T'; (I − K)⁻¹ of 2m − 1 is 2(I − K)⁻¹m − m
    second = 2 * linalg.lu_solve(factors, mean) - mean
    vector = mean / mean.max()
    gap = 1 / mean.max()  # a first estimate of 1 − ρ(K)
    change = 1.0
    for _ in range(500):
        # inverse iteration: the top eigenvalue of (I − K)⁻¹ is 1/(1 − ρ)
        vector = linalg.lu_solve(factors, vector)
        size = vector.max()
        last = change
        change = abs(1 - gap * size)
        gap = 1 / size
        vector = vector / size
        if change < 1e-14 or last <= change < 1e-9:  # rounding is reached
            break
    variation = np.sqrt(np.maximum(second - mean**2, 0)) / mean
    # −log ρ from 1 − ρ, which keeps its digits where ρ is near one
    rate = -float(np.log1p(-gap)) if gap < 1 else np.inf  # a chain that leaves in its first step
    return ExitMoments(mean, variation, rate, float(change))


@checked
def spectral_gap(
    f: Callable[[Values], Values], beta: float, grid: Float[Values, " n"], modes: int = 1
) -> float:
    """Return the rate at which ``dX = −f'dt + √(2/β) dW`` on the line forgets its start.

    The generator on an even grid of spacing h jumps at rates ``exp(−β(f_j − f_i)/2)/(βh²)`` to neighbours; made
    symmetric by the root of exp(−βf) it is tridiagonal. Its error is of order h².

    Args:
        f: a potential on arrays.
        beta: β, the inverse temperature.
        grid: increasing nodes at even distances, ``(n,)``.
        modes: which eigenvalue, 1 for the smallest that is not zero.

    Raises:
        UserError: as :func:`gibbs`, a grid so coarse that rates overflow, or no such eigenvalue.

    >>> round(spectral_gap(lambda x: 3 * x**2 / 2, 2.0, np.linspace(-6, 6, 3001)), 3)  # f″ on a parabola
    3.0
    """
    _gibbs("spectral_gap", f, beta, grid)
    nodes = _even("spectral_gap", grid)
    if not 1 <= modes < len(nodes):
        raise UserError(f"spectral_gap: expected modes from 1 to {len(nodes) - 1}, got {modes}")
    rate = 1 / (beta * (nodes[1] - nodes[0]) ** 2)
    rise = np.diff(_potential("spectral_gap", f, nodes)) * beta / 2  # β(f_{i+1} − f_i)/2
    if np.abs(rise).max() > STEEPEST:
        raise UserError(
            f"spectral_gap: expected a β|f'| times the grid's spacing of at most {2 * STEEPEST:g}, got "
            f"{2 * np.abs(rise).max():.3g}: take more nodes, or a grid that ends where the density does"
        )
    diagonal = np.zeros(len(nodes))
    diagonal[:-1] += rate * np.exp(-rise)  # rates of leaving each node, to the right and
    diagonal[1:] += rate * np.exp(rise)  # to the left
    beside = np.full(len(nodes) - 1, -rate)  # −√(q_ij q_ji): the exponentials cancel
    values = linalg.eigh_tridiagonal(
        diagonal, beside, eigvals_only=True, select="i", select_range=(modes, modes)
    )
    return float(values[0])


@checked
def stationary(transitions: Values) -> Float[np.ndarray, " n"]:
    """Return the one stationary law of a chain, ``π P = π``, from a dense or sparse matrix.

    States that the chain leaves for ever have mass zero. Dense matrices are solved as ``π (I − P + E/n) = 1ᵀ/n`` with
    E all ones, sparse ones by a sparse LU factorization without the heaviest state: the error is rounding over the
    spectral gap.

    Args:
        transitions: P, rows from states to states, not negative, each row with sum one; shape ``(n, n)``.

    Raises:
        UserError: a matrix that is not stochastic, or a reducible chain, with several sets of states that it never
            leaves, whose stationary law depends on the start.

    >>> stationary(np.array([[0.9, 0.1], [0.3, 0.7]])).round(3).tolist()  # 1 → 2 at 0.1, 2 → 1 at 0.3
    [0.75, 0.25]
    """
    matrix = _square("stationary", transitions)
    rows = np.asarray(matrix.sum(1)).ravel()
    worst = np.abs(rows - 1).max()
    if not worst <= ROUNDING:
        raise UserError(
            f"stationary: expected rows of sum one, got one that is off by {worst:.2g}; divide each row by its sum"
        )
    closed = _closed_class(matrix)
    law = np.zeros(matrix.shape[0])
    if sparse.issparse(matrix):
        rows_of_class: Values = sparse.csr_array(matrix)[closed]
        law[closed] = _sparse_law(rows_of_class[:, closed])
    else:
        law[closed] = _dense_law(matrix[np.ix_(closed, closed)])
    return law


def _square(name: str, transitions: Values) -> Values:
    """Return the matrix as it is where sparse, else in NumPy, after a look at its shape and signs."""
    matrix = transitions if sparse.issparse(transitions) else np.asarray(transitions, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise UserError(
            f"{name}: expected a square matrix of transitions, got shape {matrix.shape}"
        )
    values = sparse.coo_array(matrix).data if sparse.issparse(matrix) else matrix
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise UserError(
            f"{name}: expected chances that are finite and not negative, got others; rows are where it comes from"
        )
    return matrix


def _closed_class(matrix: Values) -> Values:
    """Return the states of the one set that the chain never leaves, in order."""
    graph = sparse.csr_array(matrix)
    graph.eliminate_zeros()
    count, labels = csgraph.connected_components(graph, directed=True, connection="strong")
    rows, columns = graph.nonzero()
    leaves = labels[rows] != labels[columns]
    # a strong component without an edge out is closed
    closed = np.setdiff1d(np.arange(count), labels[rows][leaves])
    if len(closed) > 1:
        raise UserError(
            f"stationary: expected a chain with one stationary law, got a reducible one with {len(closed)} sets of "
            "states that it never leaves; take the rows and columns of one of them"
        )
    return np.flatnonzero(labels == closed[0])


def _dense_law(matrix: Values) -> Values:
    size = len(matrix)
    system = np.eye(size) - matrix + 1 / size  # π(I − P) = 0 and πE/n = 1ᵀ/n in one regular system
    law = linalg.solve(system.T, np.full(size, 1 / size))
    return np.maximum(law, 0) / np.maximum(law, 0).sum()


def _sparse_law(matrix: Values) -> Values:
    """Fix the mass of one state and solve for the others; twice, the second time with the heaviest state."""
    size = matrix.shape[0]
    law = np.ones(size)
    if size == 1:
        return law
    state = 0
    for _ in range(2):
        others = np.delete(np.arange(size), state)
        # balance of the others with mass one here: (I − P_oo)ᵀ π_o = P_{state,o}
        system = sparse.csc_array(sparse.eye_array(size - 1) - matrix[others][:, others].T)
        into = matrix[[state]][:, others].toarray().ravel()
        law = np.insert(splu(system).solve(into), state, 1.0)
        law = np.maximum(law, 0) / np.maximum(law, 0).sum()
        state = int(law.argmax())
    return law


def _potential(name: str, f: Callable[[Values], Values], nodes: Values) -> Values:
    """Return a potential's values, one for each node."""
    values = np.asarray(f(nodes), float)
    if values.shape != nodes.shape:
        raise UserError(
            f"{name}: expected a potential that takes all nodes, of shape {nodes.shape}, to as many values, got shape "
            f"{values.shape}"
        )
    return values


def _positive(name: str, number: float, what: str) -> float:
    value = float(number)
    if not (np.isfinite(value) and value > 0):
        raise UserError(f"{name}: expected {what} above zero, got {value:g}")
    return value


def _even(name: str, grid: Values) -> Values:
    """Return the nodes of an even grid, refused where they are none."""
    nodes = np.asarray(grid, float)
    gaps = np.diff(nodes) if nodes.ndim == 1 else np.zeros(0)
    if len(gaps) < 2 or not (gaps[0] > 0 and np.allclose(gaps, gaps[0], rtol=1e-6, atol=0)):
        raise UserError(
            f"{name}: expected an increasing even grid of at least three nodes, got shape {nodes.shape}; take "
            "np.linspace, or give the weights of another rule where there are any"
        )
    return nodes
