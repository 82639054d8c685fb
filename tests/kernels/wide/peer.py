"""Kernels of neural-tangents 0.6.5 for two inputs, as they were computed in float64 on a processor.

Inputs are ``inputs(shape)``, every layer with weights has W_std = √1.4 and no biases. Each entry has the NNGP of the
pairs (0, 0), (0, 1), (1, 1), then the NTK of the same pairs.
"""

import numpy as np

C_W = 1.4


def inputs(shape, n=2):
    """The inputs of both, the same to the last digit."""
    size = n * int(np.prod(shape))
    return np.cos(np.arange(size) ** 2 * 0.37).reshape(n, *shape)


KERNELS = {
    # serial(Conv(3×3, SAME), Erf, AvgPool((3, 2), (2, 2), SAME, normalize_edges=True), Conv, Erf, GlobalAvgPool, Dense)
    "pool, edges left out": (
        [0.022848397346341816, -0.004874192714764281, 0.01625474599118454],
        [0.0712424655424999, -0.014827463530935336, 0.05080553289396891],
    ),
    # the same with normalize_edges=False
    "pool, edges counted": (
        [0.014896369514256588, -0.006833263880143965, 0.009368620872122127],
        [0.04641243719212812, -0.020760878031662872, 0.029371563822096845],
    ),
    # AvgPool((3, 2), (1, 1), CIRCULAR) in its place
    "pool, around": (
        [0.031718410613144676, -0.014380797717203861, 0.01464549335139117],
        [0.09824770264581105, -0.04372351385020998, 0.04590429475870292],
    ),
    # SumPool((2, 3), (1, 2), SAME) in its place, and GlobalSumPool for GlobalAvgPool
    "sum pools": (
        [56.807254863440996, -23.20184891650488, 29.13115539004075],
        [192.24548126921286, -72.30104856077914, 103.45542662649902],
    ),
}


def agree(name, kernels):
    """Compare both kernels of two inputs with the peer's."""
    upper = np.triu_indices(2)
    nngp, ntk = KERNELS[name]
    np.testing.assert_allclose(kernels.nngp[upper], nngp, rtol=1e-10)
    np.testing.assert_allclose(kernels.ntk[upper], ntk, rtol=1e-10)
