"""Configurations of neural-tangents and ours: none is left out, and what is recorded is what we compute."""

import ast

import pytest

from benchmarks.configurations import run
from benchmarks.configurations.names import NAMES, THEIRS, uses
from benchmarks.configurations.reasons import REASONS

STAX = """
ABRelu Abs Aggregate AggregateImplementation AttentionMechanism AvgPool Bool Conv ConvLocal ConvTranspose Cos Dense
Diagonal DotGeneral Dropout Elementwise ElementwiseNumerical Erf Exp ExpNormalized FanInConcat FanInProd FanInSum FanOut
Flatten Gabor Gaussian Gelu GlobalAvgPool GlobalSelfAttention GlobalSumPool Hermite Identity ImageResize Index LayerNorm
LeakyRelu MaskedArray Monomial Padding Polynomial PositionalEmbedding Rbf RectifiedMonomial Relu Sigmoid_like Sign Sin
Slice SumPool layer parallel repeat requires serial supports_masking unmask_fn
"""
PREDICT = """
Gaussian ODEState gp_inference gradient_descent gradient_descent_mse gradient_descent_mse_ensemble max_learning_rate
"""
OTHERS = """
Kernel NtkImplementation batch empirical_kernel_fn empirical_nngp_fn empirical_ntk_fn empirical_ntk_vp_fn linearize
monte_carlo_kernel_fn taylor_expand experimental.empirical_ntk_fn_tf experimental.get_apply_fn_and_params
"""
WITHOUT_NUMBERS = {
    "nt.NtkImplementation",
    "nt.experimental.empirical_ntk_fn_tf",
    "nt.experimental.get_apply_fn_and_params",
    "predict.Gaussian",
    "stax.AggregateImplementation",
    "stax.AttentionMechanism",
    "stax.Padding",
    "stax.PositionalEmbedding",
}
"""Names of choices, whose values are written as strings or numbers, of an answer, and of another framework."""
SOME = (
    "dense/standard parameterization, biases",
    "convolution/stride, circular padding",
    "branches/product",
    "activation/two slopes",
    "predict/coupled outputs, finite times",
    "empirical/positions, channels traced",
)


def test_every_public_name_of_the_peer_has_an_entry():
    modules = {"stax": STAX, "predict": PREDICT, "nt": OTHERS}
    names = {f"{module}.{name}" for module, of_it in modules.items() for name in of_it.split()}
    assert set(NAMES) == names


def test_every_name_that_computes_has_a_configuration():
    used = set().union(*uses().values())
    assert used == set(NAMES) - WITHOUT_NUMBERS


def test_both_sides_and_the_kept_numbers_have_the_same_configurations():
    identities = set(run.OURS)
    assert identities == set(uses()) == set(run.peers())
    assert identities == {row.identity for row in run.judged()}
    for path in THEIRS.glob("*.py"):  # no identity stands twice in a table
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            keys = [k.value for k in getattr(node, "keys", []) if isinstance(k, ast.Constant)]
            assert len(keys) == len(set(keys))


def test_what_is_not_equal_has_a_reason():
    unequal = {row.identity for row in run.judged() if row.verdict != "equal"}
    assert unequal <= set(REASONS)


def test_where_numbers_differ_and_a_third_way_decides_ours_are_right():
    for row in run.judged():
        if row.errors is not None and row.errors[0] is not None:
            assert row.errors[0] <= 1e-9, row


@pytest.mark.parametrize("identity", SOME)
def test_verdicts_are_those_that_are_recorded(identity):
    assert run.compare(identity, run.peers()[identity]).verdict == recorded()[identity]


@pytest.mark.parametrize("group", sorted({identity.split("/")[0] for identity in run.OURS}))
def test_all_verdicts_of_a_group_are_those_that_are_recorded(group):
    verdicts = {row.identity: row.verdict for row in run.run(f"{group}/")}
    assert verdicts == {i: verdict for i, verdict in recorded().items() if i in verdicts}


def recorded():
    return {row.identity: row.verdict for row in run.judged()}
