"""The parts of lazy-or-rich: one draw for all parameterizations, and its changed world."""

import jax
import numpy as np
import pytest

from steepest.claims.signals._trained_networks import draw, network, scaled
from steepest.claims.signals.lazy_or_rich.claim import LazyOrRich


@pytest.mark.parametrize("name", ["ntk", "mean-field", "mup", "printed"])
def test_one_draw_starts_every_parameterization(name):
    """Scaled weights of variance one have the sizes of the initial networks of the parameterization."""
    net = network(5, name, 64)
    unit = draw(np.random.default_rng(0), net, 50)
    own = jax.vmap(net.init)(jax.random.split(jax.random.key(0), 50))
    for ours, layer in zip(scaled(net, unit), own, strict=True):
        assert ours["w"].shape == layer["w"].shape
        assert ours["w"].std() == pytest.approx(float(layer["w"].std()), rel=0.05)


def test_the_changed_world_is_of_another_law():
    """Mean-field and µP are the same networks with the same steps: neither stands in the place of the other."""
    names = ("ntk", "mean-field", "mup")
    others = LazyOrRich(parameterizations=names).others()
    assert [names[i] for i in others] == ["mup", "ntk", "ntk"]
