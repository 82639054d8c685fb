"""The points of the catalogue: one point of a diagram is the same alone, in a batch, and to an outside eye."""

import ast
import inspect
import textwrap
from dataclasses import fields
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.catalogue import catalogue, load
from steepest.claims.descent.catapult.experiment import linear_network
from steepest.claims.descent.edge_of_stability.experiment import had_time
from steepest.claims.implicit_bias.diagonal_network.experiment import limits
from steepest.claims.signals.depth_scale.experiment import GROUPS, fitted_scale
from steepest.core.checks import conclude_point
from steepest.core.fields import field_types
from steepest.core.words import Verdict
from steepest.engine.run import build
from steepest.engine.sweeps import plan
from steepest.kernels import (
    catapult_map,
    depth_scales,
    first_layer,
    gram,
    ntk_top,
    planar_inputs,
    propagate,
)
from steepest.kit import keys
from steepest.nn.activations import activation
from steepest.nn.data import digits
from steepest.nn.networks import mlp
from steepest.programs import min_norm_interpolation

# What makes a point quick, and four points that differ only in batched fields.
SMALL = {
    "catapult": ({"width": 64, "steps": 100, "seeds": 3}, {"multiple": [1.0, 2.5, 3.0, 4.5]}),
    "depth-scale": (
        {"width": 300, "networks": 60, "layers": 10},
        {"c_w": [0.6, 0.9, 2.8, 4.0], "c_b": [0.05, 0.2, 0.05, 0.1]},
    ),
    "edge-of-stability": (
        {"width": 12, "depth": 1, "n": 40, "steps": 50, "products": 4},
        {"lr": [0.1, 0.3, 0.5, 0.8]},
    ),
    "diagonal-network": (
        {"n": 3, "dimension": 6, "seeds": 3},
        {"alphas": [0.1, 0.3, 1.0, 1.0], "nonzero": [1, 3, 2, 3]},
    ),
    "factorization-landscape": (
        {"escapes": 3},
        {"gaps": [0.3, 0.5, 1.0, 2.0], "radii": [1e-3, 1e-5, 1e-2, 1e-3]},
    ),
    "imbalance-of-two-numbers": (
        {},
        {"imbalances": [0.0, 0.5, 1.0, 3.0], "targets": [1.0, 0.5, 1.0, 2.0]},
    ),
    "quadratic-model": (
        {"examples": 3, "dimension": 10, "seeds": 3},
        {"epsilon": [0.003, 0.01, 0.03, 0.1]},
    ),
    "teacher-student-width": (
        {"teacher": 4, "ratio": 2.0, "steps": 300, "seeds": 28},
        {"lr": [0.15, 0.05, 0.1, 0.01]},
    ),
    "ntk-margin-guarantee": (
        {"dimensions": 2, "width": 256},
        {"epsilons": [0.3, 0.1, 0.2, 0.05]},
    ),
    "parallel-certificate": (
        {"steps": 500},
        {"penalty": [1.0, 2.0, 3.0, 5.0], "noise": [0.5, 1.0, 0.5, 0.0]},
    ),
    "beyond-the-edge": (
        {"width": 12, "depth": 1, "n": 40, "steps": 20, "products": 4},
        {"multiple": [1.2, 1.5, 2.0, 4.0]},
    ),
    "saddle-escape": (
        {"seeds": 20, "steps": 2000},
        {"rooms": [2, 3, 4, 8], "noises": [1e-4, 1e-3, 1e-2, 1e-3]},
    ),
    "matrix-completion": (
        {"sizes": 20, "draws": 12},
        {"densities": [4.5, 1.0, 2.0, 1.7]},
    ),
    "flat-saddle-time": (
        {},
        {"depths": [2, 3, 4, 5], "sizes": [0.1, 0.03, 0.1, 0.1]},
    ),
    "fluctuation-dissipation": (
        {},
        {"shares": [0.1, 0.3, 0.5, 0.6], "batch": [16, 32, 32, 64]},
    ),
    "entropic-force": (
        {"walkers": 64},
        {"lr": [0.02, 0.05, 0.08, 0.05], "noise": [0.5, 0.5, 0.3, 0.2]},
    ),
    "kac-rice": ({"dimensions": 2, "degree": 3, "starts": 100}, {"signs": [0.0, 1.0, 0.5, 0.2]}),
    "linear-regression-rate": (
        {"kappa": 5.0},
        {"step": [1.0, 0.5, 1.5, 2.0], "momentum": [0.1, 0.0, 0.3, 0.5]},
    ),
    "overcomplete-tensor": (
        {"d": 16, "starts": 24, "steps": 30},
        {"ratio": [0.02, 0.1, 0.3, 0.5]},
    ),
    "lqr-policy-gradient": (
        {"states": 2, "inputs": 1},
        {"norm": [0.5, 0.5, 0.9, 0.9], "lr": [0.05, 2.0, 0.1, 0.02]},
    ),
    "annealing-near-convex": (
        {"dimensions": 2, "walkers": 100, "hold": 400},
        {"ratios": [0.5, 1.0, 2.0, 0.25]},
    ),
    "two-speed-circle": ({"fine": 80}, {"steps": [2, 3, 2, 4], "slow": [0.5, 0.3, 0.8, 0.6]}),
    "langevin-gibbs": ({}, {"step": [0.02, 0.05, 0.1, 0.2], "beta": [4.0, 1.0, 8.0, 30.0]}),
    "langevin-metastability": (
        {},
        {
            "plane_beta": [40.0, 4.0, 8.0, 60.0],
            "ratios": [4.0, 0.25, 1.0, 0.1],
            "stiffness": [4.0, 4.0, 2.0, 8.0],
        },
    ),
    "average-regions": (
        {"neurons": 10, "depths": 2, "networks": 300},
        {"c_w": [2.0, 1.0, 3.0, 2.0], "c_b": [1.0, 0.3, 0.1, 3.0], "radius": [1.0, 2.0, 0.5, 1.0]},
    ),
    "narrow-networks": (
        {"depths": 3, "networks": 40},
        {"width": [2, 4, 3, 6], "c_b": [0.1, 0.1, 1.0, 0.1]},
    ),
    "pieces-in-one-dimension": (
        {"depth": 2, "width": 16, "networks": 100},
        {"c_w": [2.0, 1.0, 3.0, 2.0], "c_b": [1.0, 1.0, 0.5, 0.2], "half": [1.0, 2.0, 1.0, 0.5]},
    ),
    "bayesian-deep-linear": (
        {"layers": 2, "widths": 6, "chains": 24, "sweeps": 300, "burn": 50},
        {"sizes": [3.0, 0.5, 1.0, 2.0]},
    ),
    "xor-features": (
        {"dimensions": 4, "steps": 300},
        {"scales": [0.01, 0.1, 0.3, 0.01], "samples": [32.0, 48.0, 32.0, 64.0]},
    ),
    "parity-margins": ({"samples": 50}, {"large": [2, 4, 6, 8], "bits": [2, 2, 4, 6]}),
    "contrastive-transfer": ({"ks": 4, "per_class": 6}, {"amplitudes": [0.1, 0.5, 2.0, 5.0]}),
    "prelu-robustness": (
        {"clusters": 4, "dimension": 4, "each": 4, "width": 24, "steps": 100},
        {"powers": [1.0, 1.5, 3.0, 4.0]},
    ),
    "mean-field-steps": (
        {"examples": 4, "times": (0.6,), "seeds": 200},
        {"widths": [64, 32, 64, 128], "rates": [0.02, 0.05, 0.1, 0.2]},
    ),
    "normalized-network": (
        {"dimension": 4, "width": 20, "seeds": 4},
        {"scales": [0.3, 1.0, 0.5, 0.2], "norms": [1.0, 0.2, 2.0, 0.8]},
    ),
    "width-helps": (
        {"dimension": 2, "room": 8, "starts": 600, "steps": 200},
        {"widths": [6, 4, 8, 3]},
    ),
    "random-projection": (
        {"draws": 8},
        {"points": [16, 64, 128, 256], "dimensions": [128, 256, 512, 1024]},
    ),
    "xor-sample-complexity": (
        {"dimensions": 9, "largest": 64, "steps": 150, "tests": 300, "seeds": 12},
        {"samples": [10, 20, 40, 64]},
    ),
    "sawtooth": ({"error_depths": 5}, {"neurons": [3, 1, 8, 15]}),
    "compressed-sensing": (
        {"size": 16, "draws": 10},
        {"sparsities": [3, 2, 4, 2], "measurements": [9, 4, 9, 7]},
    ),
    "schedule-law": (
        {"dimension": 5, "steps": 30, "runs": 3000, "seeds": 8},
        {"lr": [0.2, 0.1, 0.3, 0.05]},
    ),
    "double-descent": (
        {"examples": 16, "runs": 200, "noise": 0.5},
        {"features": [6, 4, 40, 64]},
    ),
    "batch-step": ({"n": 8, "dimension": 3, "batches": 2}, {"parts": [0.3, 0.6, 0.9, 1.2]}),
    "scaling-rules": (
        {"batches": 16, "steps": 2000, "burn_in": 200, "dimension": 4},
        {"powers": [0.5, 0.0, 0.8, 1.0]},
    ),
    "rare-tokens": ({"vocabulary": 8, "seeds": 8}, {"alpha": [0.5, 0.2, 0.8, 1.0]}),
    "synthetic-data": (
        {"dimension": 4, "examples": 20, "runs": 600},
        {"rounds": [3, 1, 2, 4]},
    ),
    "group-policy-gradient": ({"groups": 8}, {"starts": [0.2, 0.1, 0.15, 0.3]}),
    "in-context-regression": (
        {"lengths": 12, "seeds": 6},
        {"steps": [500, 100, 200, 300]},
    ),
    "modular-margin": (
        {"primes": 5, "neurons": 12, "seeds": 3},
        {"decays": [3e-3, 1e-3, 2e-3, 5e-3]},
    ),
    "grokking-clock": (
        {"decays": 0.004, "n": 10, "dimension": 14, "nonzero": 1, "seeds": 3},
        {"alphas": [3.0, 2.0, 10.0, 5.0]},
    ),
    "sam-edge": (
        {"seeds": 3},
        {"lrs": [0.1, 0.15, 0.08, 0.05], "radii": [0.03, 0.02, 0.05, 0.04]},
    ),
    "adaptive-edge": (
        {"steps": 200, "seeds": 3},
        {"adam_edge": [3000.0, 800.0, 2000.0, 1000.0], "adam_betas": [0.5, 0.9, 0.3, 0.0]},
    ),
    "central-flow": (
        {"stretch": 40, "seeds": 3},
        {"edge": [7.0, 5.0, 6.0, 8.0], "before": [200, 150, 100, 50]},
    ),
    "update-size": (
        {"weights": 200, "steps": 400},
        {"agreement": [0.5, 0.0, 1.0, 2.0], "beta2": [0.95, 0.99, 0.9, 0.98]},
    ),
    "rotational-equilibrium": (
        {"weights": 300, "steps": 600, "seeds": 3},
        {
            "decays": [0.02, 0.01, 0.03, 0.015],
            "beta": [0.5, 0.0, 0.8, 0.9],
            "sizes": [1.0, 0.5, 2.0, 1.5],
        },
    ),
    "bf16-stall": (
        {"weights": 300, "steps": 600, "seeds": 3},
        {"etas": [0.2, 0.1, 0.3, 0.4], "noise": [1.5, 2.0, 3.0, 0.8]},
    ),
    "lora-rank": ({"examples": 6, "draws": 200, "seeds": 6}, {"ranks": [4, 1, 2, 8]}),
    "width-transfer": (
        {"neurons": 256, "seeds": 6},
        {"widths": [32, 16, 24, 64], "part": [0.01, 0.02, 0.03, 0.05]},
    ),
    "residual-stream": ({"width": 48, "networks": 20, "seeds": 6}, {"depths": [8, 10, 12, 14]}),
    "untied-attention": (
        {"positions": 8, "channels": 40},
        {"widths": [64, 32, 128, 256], "sharpnesses": [1.0, 0.5, 2.0, 1.5]},
    ),
}
# Relative and absolute: rounding where the experiment is in double precision; else what single precision grows to in
# so few layers or steps.
AGREE = {
    "catapult": (1e-9, 0),
    "depth-scale": (0, 2e-6),
    "edge-of-stability": (1e-4, 1e-6),
    "diagonal-network": (1e-9, 1e-20),
    "factorization-landscape": (1e-9, 0),
    "imbalance-of-two-numbers": (1e-6, 0),
    "saddle-escape": (0, 0),
    "matrix-completion": (0, 0),
    "flat-saddle-time": (1e-9, 0),
    "parallel-certificate": (1e-9, 1e-12),
    "quadratic-model": (1e-6, 1e-9),
    "teacher-student-width": (1e-3, 1e-6),
    "ntk-margin-guarantee": (1e-6, 0),
    "beyond-the-edge": (1e-4, 1e-6),
    "fluctuation-dissipation": (1e-6, 0),
    "entropic-force": (1e-9, 0),
    "kac-rice": (1e-9, 0),
    "linear-regression-rate": (1e-9, 0),
    "overcomplete-tensor": (1e-2, 1e-3),
    "lqr-policy-gradient": (1e-6, 1e-30),
    "annealing-near-convex": (1e-9, 0),
    "two-speed-circle": (1e-9, 0),
    "langevin-gibbs": (1e-9, 1e-15),
    "langevin-metastability": (1e-9, 0),
    "bayesian-deep-linear": (1e-6, 0),
    "contrastive-transfer": (1e-9, 0),
    # descent multiplies rounding
    "prelu-robustness": (1e-6, 0),
    "mean-field-steps": (1e-9, 0),
    "normalized-network": (1e-6, 1e-9),
    "width-helps": (1e-6, 1e-9),
    "xor-sample-complexity": (1e-6, 1e-9),
    "random-projection": (1e-9, 0),
    # neurons on kinks are pushed to and fro
    "xor-features": (1e-4, 1e-6),
    # a climb ends in steps that shrink, so that rounding does not grow
    "parity-margins": (1e-6, 1e-9),
    "sawtooth": (0, 0),
    "compressed-sensing": (0, 0),
    "pieces-in-one-dimension": (1e-9, 0),
    "average-regions": (1e-9, 0),
    "narrow-networks": (1e-6, 1e-9),
    "schedule-law": (1e-6, 0),
    "double-descent": (1e-9, 0),
    "batch-step": (1e-9, 0),
    "scaling-rules": (1e-9, 0),
    "rare-tokens": (1e-9, 0),
    "synthetic-data": (1e-9, 0),
    "group-policy-gradient": (1e-9, 0),
    "in-context-regression": (1e-9, 0),
    "modular-margin": (1e-9, 0),
    "grokking-clock": (1e-9, 0),
    "sam-edge": (1e-9, 0),
    # steps to and fro multiply rounding
    "adaptive-edge": (1e-1, 0),
    "central-flow": (1e-2, 1e-6),
    "update-size": (1e-5, 0),
    "rotational-equilibrium": (1e-4, 0),
    "bf16-stall": (1e-3, 0),
    "lora-rank": (1e-5, 0),
    "width-transfer": (1e-9, 0),
    "residual-stream": (1e-4, 0),
    "untied-attention": (1e-9, 0),
}
POINTS = {name: load(name).point for name in SMALL}
each_point = pytest.mark.parametrize("name", POINTS)


def point(name, **changes):
    """A point where the claim has the point's base and these fields; a tuple field takes one number."""
    kinds = field_types(load(name))
    values = {
        field: (value,) if kinds[field].many and not isinstance(value, tuple) else value
        for field, value in {**POINTS[name].base, **changes}.items()
    }
    return POINTS[name].of(build(load(name), "quick", values))


def precision(name):
    return jax.enable_x64(POINTS[name].precision == "float64")


def alone(name, key=0, **changes):
    """Setting, prediction and observation of one point."""
    with precision(name):
        for_setting, for_observation = jax.random.split(jax.random.key(key))
        single = point(name, **changes)
        setting = single.setting(for_setting)
        observed = jax.jit(lambda setting, key: dict(single.observe(setting, key)))(
            setting, for_observation
        )
        return single, single.predict(setting), {k: np.asarray(v) for k, v in observed.items()}


def verdict(single, predicted, observed):
    return conclude_point([*single.run_conditions(observed)], [*single.judge(predicted, observed)])[
        0
    ]


def together(name, changes, values, key=0):
    """The same for many points as one compiled computation, as a sweep does it."""
    with precision(name):
        for_setting, for_observation = jax.random.split(jax.random.key(key))
        rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        points = [point(name, **changes, **row) for row in rows]
        settings = [single.setting(for_setting) for single in points]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *settings)
        one = lambda values, setting: dict(
            points[0].traced(values).observe(setting, for_observation)
        )
        out = jax.jit(jax.vmap(one))({k: jnp.asarray(v) for k, v in values.items()}, stacked)
        observed = [{k: np.asarray(v[i]) for k, v in out.items()} for i in range(len(rows))]
        predicted = [single.predict(s) for single, s in zip(points, settings, strict=True)]
        return points, predicted, observed


@pytest.fixture(scope="module")
def batches():
    """The small batch of each claim, computed once."""
    return cache(lambda name: together(name, *SMALL[name]))


def test_every_point_is_tested():
    assert {name for name in catalogue() if load(name).point is not None} == set(SMALL)
    for name, (_, values) in SMALL.items():
        assert set(values) == set(POINTS[name].batched)


@each_point
def test_a_batch_is_its_points(name, batches):
    """Points computed together equal each point alone, with its fields as plain numbers."""
    points, _, observed = batches(name)
    rtol, atol = AGREE[name]
    changes = {k: v[2] for k, v in SMALL[name][1].items()}
    _, predicted, single = alone(name, **SMALL[name][0], **changes)
    assert set(single) == set(observed[2])
    for quantity, value in single.items():
        assert value.dtype == observed[2][quantity].dtype
        np.testing.assert_allclose(
            observed[2][quantity], value, rtol, atol, err_msg=f"{quantity} of {changes}"
        )
    names = [
        {check.id: check.verdict for check in points[2].judge(predicted, o)}
        for o in (single, observed[2])
    ]
    assert names[0] == names[1]


@each_point
def test_checks_have_the_same_ids_everywhere_and_other_numbers(name, batches):
    points, predicted, observed = batches(name)
    lists = [single.judge(p, o) for single, p, o in zip(points, predicted, observed, strict=True)]
    common = set.intersection(*({check.id for check in checks} for checks in lists))
    if name != "catapult":  # its second check is of converged points only
        assert all(
            [check.id for check in checks] == [check.id for check in lists[0]] for checks in lists
        )
    for check in lists[0]:
        if check.id in common:
            measured = [next(c.measured for c in checks if c.id == check.id) for checks in lists]
            assert len(set(measured)) > 1, f"{check.id} is {measured} at every point"
    maps = [
        single.quantities(p, o) for single, p, o in zip(points, predicted, observed, strict=True)
    ]
    assert len({tuple(found) for found in maps}) == 1
    for quantity in maps[0]:
        assert len({found[quantity] for found in maps}) > 1


@each_point
def test_points_where_theory_is_known_hold_and_wrong_theories_fail(name, batches):
    known = {
        "catapult": {"multiple": 3.0, "width": 1024},
        "depth-scale": {"c_w": 0.8, "c_b": 0.05},
        "edge-of-stability": {"lr": 0.36},
        "beyond-the-edge": {"multiple": 1.5, "width": 32},
        "ntk-margin-guarantee": {"dimensions": 2, "epsilons": 0.1},
        "adaptive-edge": {"adam_edge": 6000.0, "adam_betas": 0.5, "seeds": 8},
        "central-flow": {"edge": 7.0, "before": 700, "seeds": 3},
    }
    wrong = {
        "catapult": lambda p: p.replace(phase=0.0),
        "depth-scale": lambda p: p.replace(scale=1.3 * p["scale"]),
        "edge-of-stability": lambda p: p.replace(sharpness=p["sharpness"] / 2),
        "diagonal-network": lambda p: p.replace(
            beta=("seed alpha unknown", p["weighted"][:, None])
        ),
        "factorization-landscape": lambda p: p.replace(rate=p["rate"] + 0.1),
        "imbalance-of-two-numbers": lambda p: p.replace(rate=1.01 * p["rate"]),
        "saddle-escape": lambda p: p.replace(total=2 * p["total"]),
        "matrix-completion": lambda p: p.replace(success=1 - p["success"]),
        "flat-saddle-time": lambda p: p.replace(time=1.01 * p["time"]),
        "parallel-certificate": lambda p: p.replace(columns=p["columns"] + 1),
        "beyond-the-edge": lambda p: p.replace(late=p["late"] * 1.5),
        "quadratic-model": lambda p: p.replace(linear=("seed parameter", p["linear"] + 1)),
        "teacher-student-width": lambda p: p.replace(most=-0.01),
        "ntk-margin-guarantee": lambda p: p.replace(steps=2 * p["steps"]),
        "fluctuation-dissipation": lambda p: p.replace(excess=2 * p["excess"]),
        "entropic-force": lambda p: p.replace(decay=2 * p["decay"]),
        "kac-rice": lambda p: p.replace(total=2 * p["total"], minima=2 * p["minima"]),
        "linear-regression-rate": lambda p: p.replace(rate=p["rate"] / 2),
        "overcomplete-tensor": lambda p: p.replace(share=0.5),
        "lqr-policy-gradient": lambda p: p.replace(share=1 - p["share"]),
        "annealing-near-convex": lambda p: p.replace(excess=2 * p["excess"]),
        "two-speed-circle": lambda p: p.replace(share=p["share"] + 0.1),
        "langevin-gibbs": lambda p: p.replace(bias=2 * p["bias"]),
        "langevin-metastability": lambda p: p.replace(time=2 * p["time"]),
        "bayesian-deep-linear": lambda p: p.replace(scale=1.3 * p["scale"]),
        "contrastive-transfer": lambda p: p.replace(slack=1.0),
        "prelu-robustness": lambda p: p.replace(radius=1.5 * p["radius"]),
        "mean-field-steps": lambda p: p.replace(square=2 * p["square"]),
        "normalized-network": lambda p: p.replace(sign=-p["sign"]),
        "width-helps": lambda p: p.replace(success=1.0),
        "xor-sample-complexity": lambda p: p.replace(kernel_error=p["kernel_error"] - 0.3),
        "xor-features": lambda p: p.replace(cosine=1.1),
        "parity-margins": lambda p: p.replace(ratio=2 * p["ratio"]),
        "sawtooth": lambda p: p.replace(share=1.0),
        "compressed-sensing": lambda p: p.replace(success=1.0 - p["success"]),
        "random-projection": lambda p: p.replace(ratio=1.3 * p["ratio"]),
        "average-regions": lambda p: p.replace(regions=2 * p["regions"]),
        "narrow-networks": lambda p: p.replace(excess=-1.0),
        "pieces-in-one-dimension": lambda p: p.replace(share=p["share"] + 0.1),
        "schedule-law": lambda p: p.replace(cosine=1.1 * p["cosine"]),
        "double-descent": lambda p: p.replace(risk=1.1 * p["risk"]),
        "batch-step": lambda p: p.replace(growth=1.1 * p["growth"]),
        "scaling-rules": lambda p: p.replace(sgd=1.3 * p["sgd"]),
        "rare-tokens": lambda p: p.replace(adam=p["descent"]),
        "synthetic-data": lambda p: p.replace(kept=p["replaced"]),
        "group-policy-gradient": lambda p: p.replace(deviation=p["mean"]),
        "in-context-regression": lambda p: p.replace(least=1.2 * p["least"]),
        "modular-margin": lambda p: p.replace(size=1.02 * p["size"]),
        "grokking-clock": lambda p: p.replace(time=("seed", 1.05 * p["time"])),
        "sam-edge": lambda p: p.replace(fall=1.2 * p["fall"]),
        "adaptive-edge": lambda p: p.replace(product=0.7 * p["product"]),
        "central-flow": lambda p: p.replace(variance=("seed", 2 * p["variance"])),
        "update-size": lambda p: p.replace(adam=1.1 * p["adam"]),
        "rotational-equilibrium": lambda p: p.replace(angle=1.2 * p["angle"]),
        "bf16-stall": lambda p: p.replace(dithered=2 * p["dithered"]),
        "lora-rank": lambda p: p.replace(sgd=1.5 * p["sgd"]),
        "width-transfer": lambda p: p.replace(standard=1.5 * p["standard"]),
        "residual-stream": lambda p: p.replace(stream=1.5 * p["stream"]),
        "untied-attention": lambda p: p.replace(distance=2 * p["distance"]),
    }
    # the flow of the small problems is no worse than that of the large ones
    found = alone(name, **known[name]) if name in known else (each[0] for each in batches(name))
    single, predicted, observed = found
    assert verdict(single, predicted, observed) is Verdict.HOLDS
    checks = tuple(single.judge(wrong[name](predicted), observed))
    assert verdict(single, wrong[name](predicted), observed) is Verdict.FAILS
    for check, right in zip(checks, single.judge(predicted, observed), strict=False):
        if check.id.startswith(("log", "depth_scale", "late", "phase")):
            assert (check.verdict, right.verdict) == (Verdict.FAILS, Verdict.HOLDS)


def test_run_conditions_put_points_out_of_range():
    """Each condition by itself, on observations that are made up."""
    start = np.full((3, 1), 0.9)
    small = np.full((3, 9), 0.01)
    late = np.full((3, 8), 1.0)
    value = lambda start: np.hstack([start, late]) * 2 / 0.36
    edge = point("edge-of-stability", lr=0.36)
    diagonal = point("diagonal-network")
    rank = np.full(6, 10)
    risk = np.zeros((6, 1))
    for holds, single, observed in (
        (True, edge, {"value": value(start), "residual": small}),
        (False, edge, {"value": value(start + 0.2), "residual": small}),
        (False, edge, {"value": value(start), "residual": 30 * small}),
        (True, diagonal, {"rank": rank, "risk": risk}),
        (False, diagonal, {"rank": rank - (np.arange(6) == 3), "risk": risk}),
        (False, diagonal, {"rank": rank, "risk": risk + 1e-9}),
        (True, point("depth-scale", c_w=1.2, c_b=0.05), {}),
        (False, point("depth-scale", c_w=1.8, c_b=0.05), {}),
        (False, point("depth-scale", c_w=2.5, c_b=0.05, width=500), {}),
    ):
        with precision("depth-scale"):
            assert all(condition.holds for condition in single.run_conditions(observed)) is holds, (
                single,
                observed,
            )


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_depth_scale_without_a_resting_variance_is_out_of_range():
    """At C_b = 0 the ordered phase ends at K* = 0, and ReLU explodes above C_W = 2: no number, no warning, no crash."""
    single, predicted, observed = alone(
        "depth-scale", c_w=0.8, c_b=0.0, networks=20, width=100, layers=4
    )
    relu = point("depth-scale", c_w=3.0, c_b=0.1, activation="relu")
    with precision("depth-scale"):
        assert relu.setting(jax.random.key(0)).shape == (3, 2)
        same = {"correlation": np.ones((GROUPS, 17, 2))}
        for each, theory, seen in ((single, predicted, observed), (relu, relu.predict(None), same)):
            assert verdict(each, theory, seen) is Verdict.OUT_OF_RANGE
            assert np.isnan(next(iter(each.judge(theory, seen))).measured)


@pytest.mark.parametrize(
    ("c_w", "c_b"),
    [(0.8, 0.05), (2.0909, 0.4343), (3.3636, 0.5171), (2.7273, 0.1857), (4.0, 0.6), (4.0, 0.0)],
)
def test_depth_scale_measures_its_own_definition(c_w, c_b):
    """At infinite width the starts and the fit give −1/log χ to 5 %, half of the margin, near the line too."""
    with jax.enable_x64(True):
        single = point("depth-scale", c_w=c_w, c_b=c_b)
        scales = depth_scales(activation("tanh"), c_w, c_b)
        x = single.setting(jax.random.key(0))
        assert scales.xi_correlation < single.layers
        correlations = []
        for other in (1, 2):
            start = first_layer(x[jnp.array([0, other])], c_w, c_b)
            path = np.asarray(propagate(activation("tanh"), c_w, c_b, start, single.layers))
            correlations.append(path[:, 2] / np.sqrt(path[:, 0] * path[:, 1]))
        limit = np.repeat(np.stack(correlations, -1)[None], GROUPS, 0)
        difference = limit[..., 0] - limit[..., 1]
        assert fitted_scale(difference, single.floor).mean() == pytest.approx(
            scales.xi_correlation, rel=0.05
        )


@each_point
def test_theory_and_experiment_do_not_meet(name, monkeypatch):
    """``predict`` runs with the experiment forbidden, ``observe`` with the theory, and neither leaves a trace."""
    kind = POINTS[name]
    assert list(inspect.signature(kind.predict).parameters) == ["self", "setting"]
    assert list(inspect.signature(kind.observe).parameters) == ["self", "setting", "key"]
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind.observe)))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not read & {"predict", "judge", "scales"}
    single = point(name, **SMALL[name][0], **{k: v[0] for k, v in SMALL[name][1].items()})

    def forbidden(*_, **__):
        raise AssertionError("theory and experiment met")

    def runs_without(words, run):
        with monkeypatch.context() as patch:
            for word in words & set(vars(kind)):
                patch.setattr(kind, word, forbidden)
            return run()

    with precision(name):
        setting = single.setting(jax.random.key(0))
        key = jax.random.key(1)
        before = dict(vars(single))
        first = runs_without(
            {"path", "ends", "correlations", "outcome", "observe", "judge", "run_conditions"},
            lambda: single.predict(setting),
        )
        # traced and not run: what an experiment reads it reads then
        runs_without(
            {"predict", "judge", "quantities", "hypotheses", "run_conditions"},
            lambda: jax.eval_shape(single.observe, setting, key),
        )
        assert vars(single) == before
        again = single.predict(setting)
        for quantity in first:
            np.testing.assert_array_equal(first[quantity], again[quantity])


@each_point
def test_diagrams_name_fields(name):
    kind = POINTS[name]
    own = [field.name for field in fields(kind)]
    of_claim = {field.name for field in fields(load(name))}
    assert len(kind.diagram) == 2
    assert set(kind.diagram) | set(kind.batched) <= set(own) <= of_claim
    assert set(kind.base) <= of_claim
    assert kind.__doc__
    single = point(name)
    for field in kind.diagram:  # one number each, so that a sweep over only one of them has a point
        assert not isinstance(getattr(single, field), tuple)
    others = [field for field in own if field not in kind.diagram][:2]
    for curve in single.boundaries(*others) if len(others) == 2 else ():
        raise AssertionError(f"{curve.label} is drawn over fields that it does not depend on")


def test_phases_of_the_catapult_end_at_its_lines():
    """In the recursion of two numbers, wide: 0.01 on both sides of each line the loss does what it says."""
    single = point("catapult")
    at = [float(np.asarray(curve.x)[0]) for curve in single.boundaries("multiple", "width")]
    with jax.enable_x64(True):
        risk = lambda multiple: (
            np.asarray(catapult_map(jnp.ones(()), jnp.ones(()), 0.0, multiple, 1e-4, 4000)[0]) ** 2
        )
        assert np.nanmax(risk(at[0] - 0.01)) == risk(at[0] - 0.01)[0]
        assert np.nanmax(risk(at[0] + 0.01)) > 1.05
        assert risk(at[1] - 0.01)[-1] < 1
        assert not risk(at[1] + 0.01)[-1] < 1e12
    flipped = single.boundaries("width", "multiple")
    assert [float(np.asarray(curve.y)[0]) for curve in flipped] == at


def test_the_critical_line_parts_order_and_chaos():
    """1 % of C_W to both sides of the line χ⊥, found from the fixed variance, is on both sides of 1."""
    (curve,) = point("depth-scale").boundaries("c_w", "c_b")
    (flipped,) = point("depth-scale").boundaries("c_b", "c_w")
    np.testing.assert_array_equal(curve.x, flipped.y)
    inside = (np.asarray(curve.y) > 0.02) & (np.asarray(curve.y) < 0.6)
    assert inside.sum() >= 10
    with jax.enable_x64(True):
        for c_w, c_b in zip(
            np.asarray(curve.x)[inside][::8], np.asarray(curve.y)[inside][::8], strict=True
        ):
            chi = [
                depth_scales(activation("tanh"), share * c_w, c_b).chi_perpendicular
                for share in (0.99, 1, 1.01)
            ]
            assert chi[0] < 1 - 1e-3 < 1 + 1e-3 < chi[2]
            assert chi[1] == pytest.approx(1, abs=1e-6)


def test_contours_name_columns_of_the_table(batches):
    """A contour is of a judged quantity's column, or of one that nothing judges."""
    for name, kind in POINTS.items():
        points, predicted, observed = batches(name)
        checks = {c.id for c in points[1].judge(predicted[1], observed[1])}
        columns = {f"{check}_{side}" for check in checks for side in ("measured", "predicted")}
        columns |= {
            f"{other}_measured" for other in points[1].quantities(predicted[1], observed[1])
        }
        assert set(kind.contours) <= columns


def test_kept_programs_are_those_of_the_problem():
    """What does not depend on α is kept by the numbers themselves, and nobody can change it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 9))
    y = rng.normal(size=4)
    shape = rng.uniform(0.5, 2, 9)
    sparse, weighted = limits(x, y, shape)
    np.testing.assert_array_equal(sparse, min_norm_interpolation(x, y, "l1").beta)
    np.testing.assert_array_equal(weighted, min_norm_interpolation(x, y, shape**-2.0).beta)
    assert limits(x.copy(), y, shape)[0] is sparse
    assert not np.allclose(limits(x, 2 * y, shape)[0], sparse)
    with pytest.raises(ValueError, match="read-only"):
        sparse[0] = 1.0


def test_starts_too_far_from_the_fixed_correlation_find_another_scale():
    """What the remark of depth-scale says: from c* ± 0.1 even infinite width gives 1.41 ξ near the line."""
    with jax.enable_x64(True):
        single = point("depth-scale", c_w=3.3636, c_b=0.5171)
        scales = depth_scales(activation("tanh"), 3.3636, 0.5171)
        sigma = activation("tanh")
        k = scales.k_star
        c = scales.correlation
        angles = np.arccos((np.array([c + 0.1, c - 0.1]) * k - 0.5171) / (k - 0.5171))
        x = planar_inputs(k, 3.3636, 0.5171, (1, 0), *((1, angle) for angle in angles))
        paths = [
            np.asarray(
                propagate(
                    sigma, 3.3636, 0.5171, first_layer(x[jnp.array([0, other])], 3.3636, 0.5171), 16
                )
            )
            for other in (1, 2)
        ]
        above, below = (path[:, 2] / np.sqrt(path[:, 0] * path[:, 1]) for path in paths)
        measured = fitted_scale(np.repeat((above - below)[None], GROUPS, 0), single.floor).mean()
    assert measured / scales.xi_correlation == pytest.approx(1.41, abs=0.01)


def test_the_limit_kernel_does_not_explain_the_sharpness_at_the_start():
    """What the remark of the edge's diagram says: 1.9 from the kernel, and more is measured."""
    single = point("edge-of-stability")
    raw = digits(n=single.n)
    x = np.asarray(raw.x - raw.x.mean(0), float)
    limit = mlp((x.shape[1], *[single.width] * single.depth, 10), "tanh", c_w=single.c_w).limit()
    with jax.enable_x64(True):
        top = np.linalg.eigvalsh(np.asarray(gram(limit, x).ntk))[-1] / single.n
    assert top == pytest.approx(1.86, abs=0.01)
    _, _, observed = alone("edge-of-stability", lr=0.1, steps=5, width=64)
    assert observed["value"][:, 0].min() > 1.2 * top


@pytest.mark.parametrize(
    ("width", "multiple", "lazy"), [(8, 2.125, 3), (16, 2.125, 1), (8, 2.5, 1), (32, 2.125, 0)]
)
def test_narrow_networks_are_not_catapulted_where_their_start_is_large(width, multiple, lazy):
    """docs/findings.md: exactly the starts with a γ² z₀² > γλ₀ − 2 never exceed their loss, with a = 1/m."""
    single, _, observed = alone("catapult", width=width, multiple=multiple, seeds=10)
    net = linear_network(single.dimension, width)
    x = jnp.ones((1, single.dimension))
    with jax.enable_x64(True):
        terms = []
        for seed in keys(jax.random.split(jax.random.key(0))[1], single.seeds):
            params = net.init(seed)
            rate = multiple / ntk_top(net.apply, params, x)
            terms.append(float((rate * net.apply(params, x)[0]) ** 2 / width))
    stays = observed["growth"] <= 1
    assert stays.sum() == lazy
    np.testing.assert_array_equal(stays, np.array(terms) > multiple - 2)


@pytest.mark.parametrize("records", [2, 4, 26])
def test_lack_of_time_is_seen_with_any_number_of_records(records):
    rising = np.linspace(0.3, 0.8, records)
    arrived = np.append(np.linspace(0.3, 0.9, records - 1), 1.05)
    late = had_time(np.stack([rising, arrived]), 100)
    assert late.value == 0.5
    assert had_time(arrived[None], 100).holds


@pytest.mark.parametrize("name", catalogue())
def test_a_claims_own_diagram_and_each_of_its_axes_can_be_planned(name):
    kind = load(name)
    ranges = (kind.point or kind).diagram
    for over in [ranges, *({field: words} for field, words in ranges.items())] if ranges else []:
        planned = plan(name, over)
        assert len(set(planned.keys)) == len(planned) > 1
