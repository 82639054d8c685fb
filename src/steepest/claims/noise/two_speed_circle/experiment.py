"""Walks on rings and tori whose steps are longer on one part than on the other: exact laws, and walkers."""

from dataclasses import dataclass
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import sparse

from steepest import kit
from steepest.kit.points import equal

NOISES = ("own", "cross", "isotropic")
"""On the torus: what sets the step of each coordinate. Itself, the other one, or both together for both."""
COARSE = 0.1  # the longest step over the shorter arc, above which no limit is in sight


def jumps(slow: int, fast: int, step: int, bias: float = 0.0) -> sparse.csr_array:
    """Return the transitions of a walk that steps ±1 on ``slow`` sites of a ring and ±``step`` on the ``fast`` rest.

    Args:
        slow: number of sites 0, 1, … with steps ±1.
        fast: number of the others.
        step: length of their steps.
        bias: by which the chance of a step forward exceeds ½.
    """
    start = np.arange(slow + fast)
    length = np.where(start < slow, 1, step)
    return _transitions(start, [(length, 0.5 + bias), (-length, 0.5 - bias)])


def waits(slow: int, fast: int, ratio: float) -> sparse.csr_array:
    """Return the transitions of a walk of steps ±1 that waits, with variance less by ``ratio`` on the slow."""
    start = np.arange(slow + fast)
    chance = 0.5 * np.where(start < slow, 1 / ratio, 1.0)
    return _transitions(start, [(1, chance), (-1, chance)])


def conducts(slow: int, fast: int, ratio: float) -> sparse.csr_array:
    """Return the transitions of a walk whose chance to cross an edge is one number for both ways.

    Noise of the same variance on both parts, but of another kind: the flux is conserved, and the law is uniform.
    """
    start = np.arange(slow + fast)
    edge = 0.5 * np.where(start < slow, 1 / ratio, 1.0)  # from site i to i + 1
    # the chance from i + 1 back to i is that from i to i + 1: a symmetric matrix, a uniform law
    return _transitions(start, [(1, edge), (-1, np.roll(edge, 1))])


def quadrant(sites: int) -> sparse.csr_array:
    """Return the transitions on a torus under isotropic noise: a coordinate drawn by a fair coin steps ±1 or ±2.

    Steps are of length two where both coordinates are on their second half, so that the covariance is σ²/2 times the
    identity with σ a function of both coordinates. States are numbered row by row.
    """
    first, second = np.divmod(np.arange(sites**2), sites)
    length = 1 + ((first >= sites // 2) & (second >= sites // 2))
    ends = []
    for sign in (1, -1):
        ends.append((first + sign * length) % sites * sites + second)
        ends.append(first * sites + (second + sign * length) % sites)
    rows = np.tile(np.arange(sites**2), 4)
    chances = np.full(len(rows), 0.25)
    return sparse.csr_array((chances, (rows, np.concatenate(ends))), (sites**2, sites**2))


def _transitions(start: kit.Values, moves: list) -> sparse.csr_array:
    sites = len(start)
    stays = 1 - sum(np.broadcast_to(chance, sites) for _, chance in moves)
    rows = np.concatenate([start] * (len(moves) + 1))
    columns = np.concatenate([(start + move) % sites for move, _ in moves] + [start])
    chances = [np.broadcast_to(chance, sites) for _, chance in moves]
    return sparse.csr_array((np.concatenate([*chances, stays]), (rows, columns)), (sites, sites))


def lattice_share(slow: int, fast: int) -> float:
    """Return the exact share of time on the slow sites for steps ±1 and ±2.

    Let b_j be the masses of the fast sites, j = 0 … n − 1, with n = ``fast``. They obey b_j = (b_{j−2} + b_{j+2})/2,
    so that b is linear in j for even j and for odd j. From the slow part, whose steps are short, only b_0 and b_{n−1}
    are reached; so the other two ends obey b_1 = b_3/2 and b_{n−2} = b_{n−4}/2: the line of the odd j vanishes at j =
    −1, and that through j = n − 2 vanishes at j = n.

    n even: b_j = β(n − j) for even j and β(j + 1) for odd j. From b_0 = (a + b_2)/2 the last slow site has
    a = β(n + 2), from a = (a' + b_1)/2 the one before it a' = 2β(n + 1), and by a' = (a'' + a + b_0)/2 so has every
    other slow site. With m = ``slow`` the sums are 2β(m(n + 1) − n) and βn(n + 2)/2; for m = n = N/2 the share is
    4N/(5N + 4).

    n odd: both lines of the odd j vanish, and b_j = β for even j, the last slow sites have β, all others 2β. The sums
    are 2β(m − 1) and β(n + 1)/2; for m = n = N/2 the share is 4(N − 2)/(5N − 6).

    The walk has one closed class, hence one stationary law, and this is it.

    >>> lattice_share(50, 50) == 400 / 504, lattice_share(51, 51) == 400 / 504
    (True, True)
    """
    if fast % 2:
        # both sums of the docstring, over β/2
        return 4 * (slow - 1) / (4 * (slow - 1) + fast + 1)
    weight = 4 * (slow * (fast + 1) - fast)
    return weight / (weight + fast * (fast + 2))


def slow_share(slow: Any, step: Any) -> Any:
    """Return the limit of the share: time is inverse to variance, ``q/(q + (1 − q)/k²)``."""
    # Itô's dX = σ(X) dB has ∂²(σ²p) = 0 at rest: p ∝ 1/σ²
    return slow / (slow + (1 - slow) / step**2)


def on_the_torus(
    rng: np.random.Generator, walkers: tuple[int, int], sites: int, steps: int, bias: float
) -> dict[str, Float[np.ndarray, "groups zones"]]:
    """Run walkers on a torus under three noises and return their shares of time by zone, for groups of walkers.

    The first fifth of the steps is not counted. The two coordinates move one after the other, so that the exact laws on
    the lattice are products; but under isotropic noise a fair coin draws the one that moves, as in :func:`quadrant`.

    Args:
        rng: draws starts and signs.
        walkers: groups, and walkers in each.
        sites: of each of the two rings, the first half of them slow.
        steps: of each walker, both coordinates.
        bias: by which the chance of a step forward exceeds ½.

    Returns:
        for each of ``NOISES`` the shares of the zones where both coordinates are slow, the first alone, the second
        alone, none.
    """
    half = sites // 2
    place = rng.integers(0, sites, (2, len(NOISES), *walkers), dtype=np.int32)
    counts = np.zeros((len(NOISES), walkers[0], 4))
    drivers = [np.array([0, 1]), np.array([1, 0])]  # of each coordinate under the first two noises
    lanes = np.arange(2)
    burn = steps // 5
    for step in range(steps):
        signs = np.where(rng.random(place.shape) < 0.5 + bias, 1, -1)
        far = (place[:, 2] >= half).all(0)
        mine = rng.random(walkers) < 0.5  # the first coordinate moves, else the second
        place[:, 2] = (place[:, 2] + np.stack([mine, ~mine]) * signs[:, 2] * (1 + far)) % sites
        for axis in (0, 1):
            fast = place[drivers[axis], lanes] >= half
            place[axis, :2] = (place[axis, :2] + signs[axis, :2] * (1 + fast)) % sites
        if step >= burn:
            zone = 2 * (place[0] >= half) + (place[1] >= half)
            counts += np.stack([(zone == z).sum(-1) for z in range(4)], -1)
    shares = counts / counts.sum(-1, keepdims=True)
    return dict(zip(NOISES, shares, strict=True))


@dataclass(frozen=True)
class TwoSpeedPoint(kit.Point):
    """The exact share of the slow part of one ring, for one length of the longer steps.

    A sweep compiles its points, with step and share traced: so the chain is dense here, and in JAX. A test compares it
    with the sparse one.
    """

    steps: kit.Count
    slow: kit.Fraction
    fine: kit.Count
    bias: Annotated[float, kit.Within(-0.5, 0.5)]

    batched = ("steps", "slow")
    diagram = {"steps": "1,2,3,4,5,6", "slow": "linear:0.1:0.9:17"}
    contours = {"share_predicted": (0.8, "predicted share 4/5")}
    labels = {"share": "share of time on the slow part"}
    diagram_remarks = (
        "The exact law of a walk on 480 sites; the line is where the limit is 4/5. Where the longest step is over a "
        "tenth of the shorter arc the point is out of range.",
    )

    def predict(self, setting):
        return kit.Prediction(share=slow_share(self.slow, self.steps))

    def observe(self, setting, key):
        sites = self.fine
        start = jnp.arange(sites)
        slow = start < jnp.round(self.slow * sites)
        length = jnp.where(slow, 1, self.steps)
        moves = jnp.zeros((sites, sites))
        for sign in (1, -1):
            chance = 0.5 + sign * self.bias
            moves = moves.at[start, (start + sign * length) % sites].add(chance)
        # π (I − P + E/n) = 1ᵀ/n with E all ones
        system = jnp.eye(sites) - moves + 1 / sites
        law = jnp.linalg.solve(system.T, jnp.full(sites, 1 / sites))
        return {"share": jnp.where(slow, law, 0.0).sum()}

    def run_conditions(self, observed):
        arc = self.fine * min(self.slow, 1 - self.slow)
        yield kit.assume("bias of the steps", abs(self.bias), "==", 0, "steps must have mean zero")
        yield kit.assume("longest step over the shorter arc", self.steps / arc, "<=", COARSE)

    def judge(self, predicted, observed):
        # the lattice costs up to 1.6 k/N where the slow part is a tenth
        share = observed["share"]
        yield equal("share", predicted["share"], share, (-0.02, 0.02), absolute=True)
