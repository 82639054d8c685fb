"""Steps and examples to a risk: integrals against closed forms and recursions, runs against loops."""

import numpy as np
import pytest
from scipy.integrate import quad

from steepest.claims.training.critical_batch import experiment, theory

RNG = np.random.default_rng(0)
CURVATURES = np.array([1.0, 0.5, 0.2])
SQUARES = np.array([0.6, 0.9, 1.5])
NOISE = 0.7
TARGET = 0.2


def recursion(batch, share, sizes=None):
    """Return steps to the target by the mean of all runs, with a share of best steps or with given sizes."""
    squares = SQUARES
    first = CURVATURES @ squares
    before = first
    count = 0
    while True:
        gradient = CURVATURES**2 @ squares
        bent = CURVATURES**3 @ squares + NOISE * (CURVATURES**2).sum() / batch
        size = share * gradient / bent if sizes is None else sizes
        squares = squares * (1 - size * CURVATURES) ** 2 + size**2 * NOISE * CURVATURES / batch
        after = CURVATURES @ squares
        if after <= TARGET * first:
            return count + np.log(before / (TARGET * first)) / np.log(before / after)
        before = after
        count += 1
        if count > 1000:
            return np.inf


def test_needs_with_equal_curvatures():
    """There all is known: φS_min = ½ log(1/target), and the noise scale is that of equal curvatures."""
    needs = theory.needs(np.full(4, 0.5), np.full(4, 2.0), NOISE, TARGET, 0.1)
    assert needs.steps == pytest.approx(np.log(1 / TARGET) / 2 / 0.1, rel=1e-5)
    # tr HΣ = σ² Σλ², and ‖g‖² = λ²D e^{−2λτ}
    wanted = NOISE * 4 * 0.25 / (4 * 0.25 * 2.0) * (1 / TARGET - 1) / (2 * 0.5) / 0.1
    assert needs.examples == pytest.approx(wanted, rel=1e-5)
    assert needs.simple == pytest.approx(needs.examples / needs.steps)
    assert needs.early == pytest.approx(NOISE / (0.5 * 2.0))


def test_needs_by_quadrature():
    needs = theory.needs(CURVATURES, SQUARES, NOISE, TARGET, 1.0)

    def squares(time):
        return SQUARES * np.exp(-2 * CURVATURES * time)

    times = np.linspace(0, 20, 200_001)
    risks = np.exp(-2 * CURVATURES * times[:, None]) @ (CURVATURES * SQUARES)
    end = np.interp(-TARGET * risks[0], -risks, times)
    along = lambda time: (CURVATURES**3 @ squares(time)) / (CURVATURES**2 @ squares(time))
    rest = lambda time: NOISE * (CURVATURES**2).sum() / (CURVATURES**2 @ squares(time))
    assert needs.steps == pytest.approx(quad(along, 0, end)[0], rel=1e-5)
    assert needs.examples == pytest.approx(quad(rest, 0, end)[0], rel=1e-5)


@pytest.mark.parametrize("batch", [1, 4, 30])
def test_law_is_the_limit_of_small_shares(batch):
    """The mean over all runs tends to it, in proportion to the share."""
    deviations = []
    for share in (0.02, 0.01):
        needs = theory.needs(CURVATURES, SQUARES, NOISE, TARGET, share)
        deviations.append(recursion(batch, share) / (needs.steps + needs.examples / batch) - 1)
    assert abs(deviations[0]) < 0.02
    assert deviations[1] == pytest.approx(deviations[0] / 2, abs=2e-3)


def test_steps_and_examples_make_a_hyperbola():
    needs = theory.needs(CURVATURES, SQUARES, NOISE, TARGET, 0.02)
    batch = 7
    steps = needs.steps + needs.examples / batch
    examples = batch * steps
    assert (steps / needs.steps - 1) * (examples / needs.examples - 1) == pytest.approx(1)


def test_best_steps_by_trying():
    """The mean risk after a step, over the noise, is a parabola in its size, tried at many."""
    errors = RNG.standard_normal((2, 5, 3))
    jitter = np.array([0.3, 0.1])
    best = experiment.best_steps(errors, CURVATURES, jitter)
    sizes = np.linspace(0, 3, 3001)
    for group in range(2):
        after = [
            ((errors[group] * (1 - size * CURVATURES)) ** 2 @ CURVATURES).mean()
            + size**2 * jitter[group]
            for size in sizes
        ]
        assert sizes[np.argmin(after)] == pytest.approx(best[group], abs=1e-3)


def test_steps_one_by_one():
    shape = (2, 3)
    counts = experiment.steps(
        np.random.default_rng(1), CURVATURES, SQUARES, NOISE, 5, 0.3, TARGET, shape
    )
    rng = np.random.default_rng(1)
    errors = np.tile(np.sqrt(SQUARES), (*shape, 1))
    first = CURVATURES @ SQUARES
    risks = [np.full(2, first)]
    while (risks[-1] > TARGET * first).any() or len(risks) < counts.max() + 1:
        drawn = np.sqrt(NOISE * CURVATURES / 5) * rng.standard_normal(errors.shape)
        for group in range(2):
            gradients = CURVATURES * errors[group]
            downhill = np.mean([g @ g for g in gradients])
            bent = np.mean([g @ (CURVATURES * g) for g in gradients])
            size = 0.3 * downhill / (bent + NOISE * (CURVATURES**2).sum() / 5)
            errors[group] = errors[group] - size * (gradients + drawn[group])
        risks.append((errors**2 @ CURVATURES).mean(1))
    for group in range(2):
        path = np.array(risks)[:, group] / first
        crossed = int(np.argmax(path <= TARGET))
        assert crossed - 1 < counts[group] <= crossed
        within = np.log(path[crossed - 1] / TARGET) / np.log(path[crossed - 1] / path[crossed])
        assert counts[group] == pytest.approx(crossed - 1 + within)


@pytest.mark.parametrize("batch", [3, 40])
def test_steps_of_many_runs_are_those_of_the_mean(batch):
    counts = experiment.steps(RNG, CURVATURES, SQUARES, NOISE, batch, 0.1, TARGET, (1, 10_000))
    assert counts[0] == pytest.approx(recursion(batch, 0.1), rel=0.01)


def test_fading_noise_keeps_the_noise_scale():
    """With equal curvatures a step then multiplies the risk by 1 − (2φ − φ²)/(1 + B/b), B being the first scale."""
    curvatures = np.full(6, 0.8)
    squares = np.full(6, 0.5)
    first_scale = NOISE / (0.8 * 0.5)
    counts = experiment.steps(
        RNG, curvatures, squares, NOISE, 2, 0.1, TARGET, (1, 5000), fading=True
    )
    factor = 1 - (0.2 - 0.01) / (1 + first_scale / 2)
    assert counts[0] == pytest.approx(np.log(TARGET) / np.log(factor), rel=0.02)


def test_constant_steps_by_the_recursion():
    sizes = np.geomspace(0.02, 0.6, 40)
    by_loops = min(recursion(0.5, 1.0, size) for size in sizes)
    fast = experiment.constant_steps(CURVATURES, SQUARES, NOISE, 0.5, TARGET)
    assert fast == pytest.approx(by_loops, rel=0.02)


def test_critical_batch_of_exact_counts():
    batches = np.array([4.0, 16.0, 64.0])
    counts = np.array([[10 + 300 / batches], [20 + 40 / batches]])
    np.testing.assert_allclose(experiment.critical(batches, counts), [[30.0], [2.0]])
