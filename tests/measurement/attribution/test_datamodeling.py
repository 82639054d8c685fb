"""The linear datamodeling score beside SciPy, the coverage of its interval, and a network that is trained again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import spearmanr

from steepest.core.errors import UserError
from steepest.measurement import attribute, gradient_features, linear_datamodeling_score

TARGETS = 6
EXAMPLES = 30
SUBSETS = 40
DRAWS = 100


def table(noise=1.0, seed=0, subsets=SUBSETS, targets=TARGETS):
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=(targets, EXAMPLES))
    masks = rng.random((subsets, EXAMPLES)) < 0.5
    return effects, masks, masks @ effects.T + 2 * noise * rng.normal(size=(subsets, targets))


def test_it_is_spearmans_correlation_of_each_target():
    effects, masks, outputs = table()
    score = linear_datamodeling_score(effects, masks, outputs)
    expected = [spearmanr(masks @ effects[t], outputs[:, t]).statistic for t in range(TARGETS)]
    np.testing.assert_allclose(score.by_target, expected)
    assert score.value == pytest.approx(np.mean(expected))
    assert score.interval.low < score.value < score.interval.high


def test_the_interval_covers_the_value_of_many_subsets_and_targets():
    """Each draw has other subsets, other targets and noise that the targets share."""

    def drawn(rng, subsets, targets):
        size = rng.uniform(0.5, 2.5, targets)  # targets differ in how well they are told
        effects = rng.normal(size=(targets, EXAMPLES))
        masks = rng.random((subsets, EXAMPLES)) < 0.5
        shared = rng.normal(size=(subsets, 1))
        noise = 2 * size * (shared + rng.normal(size=(subsets, targets)))
        return effects, masks, masks @ effects.T + noise

    scores = [
        linear_datamodeling_score(*drawn(np.random.default_rng(i), 30, 12)) for i in range(DRAWS)
    ]
    truth = np.mean([score.value for score in scores])
    covered = np.mean([score.interval.low <= truth <= score.interval.high for score in scores])
    assert covered > 0.95 - 4 * np.sqrt(0.95 * 0.05 / DRAWS)
    # nor is it far too wide: three times the scatter of the values at most
    width = np.mean([score.interval.high - score.interval.low for score in scores])
    assert width < 3 * 2 * 1.96 * np.std([score.value for score in scores])


REFUSED = {
    "scores of one target": lambda e, s, o: (e[0], s, o),
    "outputs the other way": lambda e, s, o: (e, s, o.T),
    "outputs of another number of trainings": lambda e, s, o: (e, s, o[:-1]),
    "subsets of other examples": lambda e, s, o: (e, s[:, 1:], o),
    "three subsets": lambda e, s, o: (e, s[:3], o[:3]),
    "a constant output": lambda e, s, o: (e, s, 0 * o),
    "outputs that are not finite": lambda e, s, o: (e, s, o * np.nan),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_wrong_calls_are_refused_in_a_sentence(change):
    with pytest.raises(UserError) as caught:
        linear_datamodeling_score(*change(*table()))
    assert "\n" not in str(caught.value)


def mlp(params, x):
    return (jnp.tanh(x @ params["w"] + params["b"]) @ params["v"])[:, 0]


def train(key, rows, x, y, steps=300):
    keys = jax.random.split(key, 2)
    params = {
        "w": jax.random.normal(keys[0], (x.shape[1], 16)),
        "b": jnp.zeros(16),
        "v": jax.random.normal(keys[1], (16, 1)) / 4,
    }
    risk = lambda params: ((mlp(params, x[rows]) - y[rows]) ** 2).mean() / 2

    def step(params, _):
        slopes = jax.grad(risk)(params)
        return jax.tree.map(lambda p, g: p - 0.2 * g, params, slopes), None

    return jax.lax.scan(step, params, None, steps)[0]


def test_scores_tell_how_a_network_ends_when_it_is_trained_on_halves():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3)).astype(np.float32)
    y = (np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=90)).astype(np.float32)
    data = (x[:60], y[:60])
    targets = (x[60:], y[60:])
    run = jax.jit(jax.vmap(lambda key, rows: train(key, rows, *map(jnp.asarray, data))))
    models = run(jax.random.split(jax.random.key(0), 4), jnp.tile(jnp.arange(60), (4, 1)))
    models = [jax.tree.map(lambda leaf, i=i: leaf[i], models) for i in range(4)]
    options = {"model_output": "value", "checkpoints": models, "dimension": 48}
    attribution = attribute(
        gradient_features((mlp, models[0]), data, **options),
        gradient_features((mlp, models[0]), targets, **options),
    )
    halves = np.stack([rng.permutation(60)[:30] for _ in range(30)])
    keys = jax.random.split(jax.random.key(1), 120)
    again = run(keys, jnp.repeat(jnp.asarray(halves), 4, 0))
    outputs = jax.vmap(mlp, (0, None))(again, x[60:]).reshape(30, 4, -1).mean(1)
    masks = np.zeros((30, 60), bool)
    np.put_along_axis(masks, halves, True, 1)
    score = linear_datamodeling_score(attribution, masks, outputs)
    assert score.interval.low > 0.2
    shuffled = attribution.scores[:, rng.permutation(60)]
    assert linear_datamodeling_score(shuffled, masks, outputs).interval.high < score.interval.low
