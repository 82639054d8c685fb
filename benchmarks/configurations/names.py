"""Every public name of neural-tangents 0.6.5 with what it is called here, and the configurations that use it."""

import ast
from collections.abc import Iterator
from pathlib import Path

THEIRS = Path(__file__).parent / "theirs"
MODULES = ("stax", "nt", "predict")

NAMES = {
    "stax.serial": "`network(…)`, or `serial(…)` inside of one",
    "stax.parallel": "the arguments of `add`, `concatenate`, `multiply`",
    "stax.repeat": "`serial(*n * [layer])`",
    "stax.layer": "a subclass of `Layer` with a rule, in one file: `check_layer`",
    "stax.requires": "not needed: the plan of a limit finds out what has to be computed",
    "stax.supports_masking": "not needed: every layer says where its output exists",
    "stax.unmask_fn": "not needed: outputs are zero where nothing exists",
    "stax.MaskedArray": "`mask=…` beside the inputs; outputs are arrays",
    "stax.Bool": "not needed, as `stax.requires`",
    "stax.Diagonal": "not needed, as `stax.requires`",
    "stax.Identity": "`identity`",
    "stax.Dense": "`dense`, or `mlp`; biases: see the tutorial",
    "stax.Conv": "`conv`",
    "stax.ConvLocal": "`conv(…, shared=False)`",
    "stax.ConvTranspose": "`conv(…, transposed=True)`",
    "stax.Padding": '`padding="none"` (VALID), `"zero"` (SAME), `"circular"`',
    "stax.AvgPool": "`pool`; `normalize_edges=True` is `count_edges=False`",
    "stax.SumPool": "`sum_pool`",
    "stax.GlobalAvgPool": "`global_pool`",
    "stax.GlobalSumPool": "`global_sum_pool`",
    "stax.Flatten": "`flatten`",
    "stax.FanOut": "not needed: branches read the same signal",
    "stax.FanInSum": "`add`, with weights too",
    "stax.FanInProd": "`multiply`",
    "stax.FanInConcat": "`concatenate`; inputs of a batch are not joined",
    "stax.LayerNorm": "`layer_norm`; over the batch it is not",
    "stax.Dropout": "`dropout(1 - rate)`: their rate is what is kept",
    "stax.Aggregate": "`aggregate(matrix)`; `aggregate()` with `graphs=` beside each input",
    "stax.AggregateImplementation": "not needed: `adjacency` reads lists of edges, `aggregate` sparse matrices",
    "stax.DotGeneral": "`aggregate(matrix)`; for a number a multiple of the identity",
    "stax.ImageResize": "`resize`",
    "stax.Index": "`select`; of inputs, index the array",
    "stax.Slice": "`slice`, as in `select(slice(1, 4))`",
    "stax.GlobalSelfAttention": "`attention`",
    "stax.AttentionMechanism": '`attention(…, weights="softmax")`, `"identity"` or a function',
    "stax.PositionalEmbedding": "`positional_embedding`, before `attention` or as its `through`",
    "stax.Relu": '`"relu"`',
    "stax.LeakyRelu": '`"leaky_relu(0.2)"`',
    "stax.ABRelu": "`Activation(name, function, kinks=(0.0,))`",
    "stax.Abs": '`"abs"`',
    "stax.Erf": '`"erf"`, or a function with scales in it',
    "stax.Sigmoid_like": "the same function of JAX",
    "stax.Gelu": '`"gelu"`',
    "stax.Sin": '`"sin"`, or a function with scales in it',
    "stax.Cos": '`"cos"`, or a function with scales in it',
    "stax.Gabor": "the same function of JAX",
    "stax.Rbf": "the same function of JAX, `√2 sin(√(2γ) x + π/4)`",
    "stax.Gaussian": '`"gaussian"`, or the same function of JAX',
    "stax.Exp": '`"exp"`, or a function with scales in it',
    "stax.ExpNormalized": "`exp_normalized`, with a finite network",
    "stax.Hermite": "`polynomial(…)`, for any variance",
    "stax.Monomial": '`"polynomial(0,0,0,1)"`',
    "stax.RectifiedMonomial": '`"relu_power(2)"`',
    "stax.Polynomial": "`polynomial(…)`",
    "stax.Sign": "`Activation(name, jnp.sign, kinks=(0.0,))`: `nngp`; its tangent kernel is infinite",
    "stax.Elementwise": "any function of JAX; no covariance has to be known",
    "stax.ElementwiseNumerical": "any function of JAX, with an error",
    "predict.gradient_descent_mse": "`kernel_dynamics(…).flow`, `train`, `test`",
    "predict.gradient_descent": "`kernel_training(…).flow`; momentum β is `friction=(1 - β)/√η`",
    "predict.ODEState": "not needed: ask for all times at once",
    "predict.gradient_descent_mse_ensemble": "`kernel_dynamics(…).ensemble`",
    "predict.gp_inference": "`gaussian_process`, `kernel_ridge`; NTK: `ensemble` at `np.inf`",
    "predict.Gaussian": "`Ensemble`, with `mean` and `covariance`",
    "predict.max_learning_rate": "`kernel_dynamics(…).largest_step`",
    "nt.Kernel": "`Gram`: both kernels and an error; of layers `gram_layers`",
    "nt.NtkImplementation": '`method="jacobian"`, `"vectors"`, `"layerwise"`',
    "nt.batch": "not needed; `tiled_gram` beyond memory",
    "nt.empirical_ntk_fn": "`empirical_ntk`; of equal inputs `empirical_ntk_diagonal`",
    "nt.empirical_nngp_fn": "`empirical_nngp`",
    "nt.empirical_kernel_fn": "both of them",
    "nt.empirical_ntk_vp_fn": "`ntk_product`",
    "nt.linearize": "`linearize`",
    "nt.taylor_expand": "`taylor_expand`, `quadratize`",
    "nt.monte_carlo_kernel_fn": "`sampled_gram`, with standard errors",
    "nt.experimental.empirical_ntk_fn_tf": "not for TensorFlow; `empirical_ntk` takes modules of torch",
    "nt.experimental.get_apply_fn_and_params": "not for TensorFlow",
}


def uses() -> dict[str, set[str]]:
    """Return the names of the peer that each configuration uses, read from the source of ``theirs``."""
    used: dict[str, set[str]] = {}
    for path in sorted(THEIRS.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        helpers = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Dict):
                for key, value in _entries(node):
                    used[key] = set(_names(value, helpers, set()))
    return used


def _entries(table: ast.Dict) -> Iterator[tuple[str, ast.AST]]:
    """Yield the configurations of a table: entries whose key has a group and a name."""
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and "/" in str(key.value):
            yield str(key.value), value


def _names(node: ast.AST, helpers: dict[str, ast.FunctionDef], seen: set[str]) -> Iterator[str]:
    """Yield the public names in a piece of source, those in functions of the same file included."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in helpers and part.id not in seen:
            yield from _names(helpers[part.id], helpers, seen | {part.id})
        if isinstance(part, ast.Attribute):
            yield from _public(part)


def _public(part: ast.Attribute) -> Iterator[str]:
    owner = part.value
    module = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    if module in MODULES and f"{module}.{part.attr}" in NAMES:
        yield f"{module}.{part.attr}"
