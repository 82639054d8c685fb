"""Critical initializations against the values of the literature, and depth scales against the recursion."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.kernels import criticality, depth_scales, propagate
from steepest.nn.activations import Activation, activation


@pytest.mark.parametrize(
    ("name", "c_w"),
    [("linear", 1.0), ("relu", 2.0), ("leaky_relu(0.3)", 2 / 1.09), ("leaky_relu(-1)", 1.0)],
)
def test_scale_invariant_activations_keep_every_variance(name, c_w):
    found = criticality(activation(name))
    assert (found.exists, found.any_k, found.universality_class, found.c_b) == (
        True,
        True,
        "scale invariant",
        0.0,
    )
    assert found.c_w == pytest.approx(c_w, rel=1e-14)
    assert np.abs(found.residuals).max() < 1e-13


@pytest.mark.parametrize(
    ("name", "c_w", "decay"), [("tanh", 1.0, 2.0), ("sin", 1.0, 1.0), ("erf", math.pi / 4, 2.0)]
)
def test_odd_saturating_activations_are_critical_at_zero(name, c_w, decay):
    found = criticality(activation(name))
    assert (found.universality_class, found.c_b, found.k_star) == ("K*=0", 0.0, 0.0)
    assert (found.c_w, found.decay) == pytest.approx((c_w, decay), rel=1e-12)
    # The recursion itself decays so: 1/K gains a in every layer.
    inverse = (
        1
        / np.asarray(propagate(activation(name), found.c_w, 0.0, jnp.array([1.0, 1.0, 0.0]), 400))[
            :, 0
        ]
    )
    assert (inverse[400] - inverse[300]) / 100 == pytest.approx(decay, rel=0.02)


@pytest.mark.parametrize(
    ("name", "c_w", "c_b", "k_star"),
    [
        ("gelu", 1.98305826, 0.17292239, (3 + math.sqrt(17)) / 2),
        ("silu", 1.98800468, 0.55514317, 14.3201736),
    ],
)
def test_half_stable_activations(name, c_w, c_b, k_star):
    """Values of Roberts, Yaida and Hanin (2022), section 5.3.4, to all their digits."""
    found = criticality(activation(name))
    assert found.universality_class == "half-stable"
    assert (found.c_w, found.c_b) == pytest.approx((c_w, c_b), abs=5e-9)
    assert found.k_star == pytest.approx(k_star, abs=1e-7)
    assert np.abs(found.residuals).max() < 1e-12


def test_half_stable_attracts_from_one_side_only():
    """GELU: started above, the variance falls towards K*; started below, it falls away."""
    found = criticality(activation("gelu"))
    assert found.decay > 0
    above = found.k_star + 0.01
    below = found.k_star - 0.01
    path = propagate(activation("gelu"), found.c_w, found.c_b, jnp.array([above, below, 0.0]), 200)
    assert found.k_star < path[-1, 0] < above
    assert path[-1, 1] < below
    gain = 1 / (path[-1, 0] - found.k_star) - 1 / (path[0, 0] - found.k_star)
    assert float(gain) / 200 == pytest.approx(found.decay, rel=0.05)


def test_gelu_at_criticality_has_a_second_fixed_point_which_attracts():
    """From small variances the signal never comes to K* = 3.56: it stops at 3.03, where χ∥ and χ⊥ are below 1."""
    found = criticality(activation("gelu"))
    scales = depth_scales(activation("gelu"), found.c_w, found.c_b, start=1.0)
    assert scales.k_star == pytest.approx(3.035, abs=1e-3)
    assert scales.chi_parallel < 1
    assert scales.chi_perpendicular < 1


def test_elu_decays_like_one_over_l_squared():
    """Its second derivative jumps at 0, so K falls by b K^{3/2}: K ≈ 1/(a l)² with a = 1/√(2π)."""
    found = criticality(activation("elu"))
    assert (found.universality_class, found.decay_power) == ("K*=0", 2)
    assert found.decay == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-12)
    root = (
        np.asarray(propagate(activation("elu"), 1.0, 0.0, jnp.array([0.05, 0.05, 0.0]), 200))[:, 0]
        ** -0.5
    )
    assert (root[200] - root[150]) / 50 == pytest.approx(found.decay, rel=0.1)


@pytest.mark.parametrize(
    ("σ", "why"),
    [
        (activation("softplus"), "E σσ'' > 0"),
        (activation("relu_power(2)"), "E σσ'' > 0"),
        (activation("quadratic"), "E σσ'' > 0"),
        (activation("sigmoid"), "C_b = −C_W σ(0)² with σ(0) = 0.5"),
        (Activation("zero", lambda z: 0.0 * z), "zero everywhere"),
    ],
)
def test_no_criticality_with_the_reason(σ, why):
    found = criticality(σ)
    assert not found.exists
    assert why in found.reason
    assert math.isnan(found.c_w)


def test_a_repelling_zero_is_reported_as_such():
    """z + z³/6 solves the three equations at K* = 0, but K grows by K² in every layer."""
    found = criticality(Activation("cubic", lambda z: z + z**3 / 6))
    assert (found.exists, found.universality_class) == (True, "K*=0, unstable")
    assert found.decay == pytest.approx(-1.0)


def test_hard_tanh_decays_more_slowly_than_any_power():
    found = criticality(Activation("hardtanh", lambda z: jnp.clip(z, -1, 1), kinks=(-1.0, 1.0)))
    assert (found.universality_class, found.c_w) == ("K*=0", 1.0)
    assert math.isnan(found.decay)


def test_ordered_phase_rates_are_those_of_the_recursion():
    """tanh, C_W = 1.5, C_b = 0.05: K and the correlation approach K* and 1 as χ∥^l and χ⊥^l."""
    σ = activation("tanh")
    scales = depth_scales(σ, 1.5, 0.05)
    path = np.asarray(propagate(σ, 1.5, 0.05, jnp.array([1.0, 0.5, 0.1]), 80))
    distance = np.abs(path[:, 0] - scales.k_star)
    assert distance[20] / distance[19] == pytest.approx(scales.chi_parallel, rel=1e-3)
    gap = 1 - path[:, 2] / np.sqrt(path[:, 0] * path[:, 1])
    assert scales.correlation == 1.0
    assert gap[80] / gap[79] == pytest.approx(scales.chi_perpendicular, rel=1e-3)
    assert (
        scales.xi_correlation
        == scales.xi_perpendicular
        == pytest.approx(-1 / math.log(scales.chi_perpendicular))
    )


def test_chaotic_phase_has_a_fixed_correlation_below_one():
    """tanh, C_W = 2.5, C_b = 0.05: the recursion stops at c* < 1, at the rate of its slope there."""
    σ = activation("tanh")
    scales = depth_scales(σ, 2.5, 0.05)
    k = scales.k_star
    path = np.asarray(propagate(σ, 2.5, 0.05, jnp.array([k, k, 0.99 * k]), 400))[:, 2] / k
    assert scales.chi_perpendicular > 1 > scales.chi_correlation
    assert scales.xi_perpendicular < 0 < scales.xi_correlation
    assert path[400] == pytest.approx(scales.correlation, abs=1e-5)
    gap = path - scales.correlation
    assert gap[150] / gap[149] == pytest.approx(scales.chi_correlation, rel=1e-3)


def test_chaos_near_the_critical_line_is_seen_whatever_the_precision_of_jax():
    """In single precision no root was found between 0 and 1, and c* was 1 with a negative depth scale."""
    with jax.enable_x64(False):
        single = depth_scales(activation("tanh"), 3.0, 0.3)
        gelu = criticality(activation("gelu"))
    with jax.enable_x64(True):
        double = depth_scales(activation("tanh"), 3.0, 0.3)
        assert gelu == criticality(activation("gelu"))
    assert single == double
    assert single.correlation == pytest.approx(0.8190, abs=1e-4)
    assert single.xi_correlation == pytest.approx(13.05, abs=0.01)


def test_depth_scales_at_the_edges():
    relu = activation("relu")
    tanh = activation("tanh")
    # χ is one up to a rounding that differs between machines, and ξ infinite or of the order of its inverse
    assert depth_scales(relu, 2.0, 0.0).xi_parallel > 1e15
    exploding = depth_scales(relu, 2.5, 0.0)
    assert (exploding.k_star, exploding.chi_parallel) == (math.inf, pytest.approx(1.25))
    assert depth_scales(relu, 1.0, 0.3).k_star == pytest.approx(0.6)
    vanishing = depth_scales(tanh, 0.8, 0.0)
    assert (vanishing.k_star, vanishing.chi_perpendicular) == (0.0, pytest.approx(0.8))
    assert math.isnan(vanishing.correlation)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((-1.0, 0.0), "C_W is a variance"),
        ((1.0, math.inf), "C_b is a variance"),
        ((1.0, 0.0, 0.0), "must be positive"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        depth_scales(activation("tanh"), *arguments)
