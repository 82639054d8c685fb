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
    # serial(Conv, Erf, Conv, Erf, ImageResize((-1, 4, 7, -1), "linear"), GlobalAvgPool, Dense); behind one convolution
    # its kernels have height and width the other way round, and this layer does not heed that
    "resize, linear": (
        [0.024207990777587254, -0.009376013665646636, 0.011457457261461064],
        [0.07769420317721158, -0.028892378191711858, 0.03793409021306704],
    ),
    # the same with ImageResize((-1, 9, 3, -1), "nearest")
    "resize, nearest": (
        [0.041508531145708905, 0.004269767326218506, 0.030249049089494457],
        [0.1324206072224543, 0.012895454481124377, 0.09664368017213423],
    ),
    # serial(Conv, Erf, Index(Slice[:, 1:5:2, ::-1]), Conv, Erf, GlobalAvgPool, Dense)
    "select": (
        [0.035542770889356486, -0.01508582833432852, 0.03416434558765069],
        [0.11739475026000287, -0.045504244567969684, 0.11113854434001996],
    ),
    # serial(Conv, Erf, Index(Slice[:, 2]), Conv(3), Erf, Flatten, Dense)
    "select a row": (
        [0.46104148199194755, -0.0566221021669503, 0.4465798384559646],
        [1.5667987187636117, -0.17030566061178815, 1.5024541363304045],
    ),
    # serial(Conv, Erf, Aggregate(aggregate_axis=2), Dense, Erf, GlobalAvgPool, Dense), pattern COLUMNS transposed
    "aggregate": (
        [0.05603430345495776, -0.019266541011576335, 0.025183272742326204],
        [0.19329829129369125, -0.06033351413544409, 0.09446798953386151],
    ),
    # serial(Conv, LayerNorm((1, 2, 3)), Erf, Conv, LayerNorm((1, 2, 3)), Erf, GlobalAvgPool, Dense), eps=1e-12
    "layer norm, all": (
        [0.036103985529919405, -0.013384810005125815, 0.0183849692847959],
        [0.1259995961874226, -0.04222685493185292, 0.07108824698164604],
    ),
    # serial(Conv, LayerNorm((2, 3)), Erf, GlobalAvgPool, Dense)
    "layer norm, columns": (
        [0.041498566716432164, -0.01589762407584812, 0.017876964959560065],
        [0.08883344439753633, -0.03258484540378177, 0.040424404213655174],
    ),
    # serial(Conv, Erf, Dropout(0.8), Conv, Erf, Dropout(0.8), GlobalAvgPool, Dense), of which 0.8 are kept
    "dropout": (
        [0.02813494640198998, -0.008367225308689026, 0.016553476897788136],
        [0.09214674315937742, -0.025691178452560505, 0.05557604062135142],
    ),
    # serial(Conv, Erf, Dropout(0.7), AvgPool((2, 2), (2, 2)), Conv, Erf, Flatten, Dense)
    "dropout, pool": (
        [0.16246211646946002, -0.03431312426925269, 0.12271698021439689],
        [0.5132448399332212, -0.1039894756334876, 0.3865360985941587],
    ),
    # of a sequence of six: serial(Conv(3), Erf, Dropout(0.7), GlobalSelfAttention of linear scaling, Erf,
    # GlobalAvgPool, Dense), where W_std of keys, queries, values and output is √1.4
    "dropout, attention": (
        [0.30337728047440476, -0.09648168971194272, 0.31219691470368793],
        [1.2894406618604723, -0.39339874030444316, 1.346962647887032],
    ),
    # of a sequence of six: serial(Conv(3), GlobalSelfAttention of linear scaling with pos_emb_type="SUM",
    # val_pos_emb=True, W_pos_emb_std=0.6, Erf, GlobalAvgPool, Dense)
    "embedding": (
        [0.3762130401062114, -0.05239468854520527, 0.359021821389421],
        [1.604398467962694, -0.21272032851694198, 1.5662020862541548],
    ),
    # the same with pos_emb_decay_fn=lambda d: exp(-0.3 d), of squared distances
    "embedding, decay": (
        [0.4863411511141889, 0.078449668347185, 0.46358346826519053],
        [2.1286248079094188, 0.3181188001170784, 2.047609749491518],
    ),
    # of a sequence of six: serial(Conv(3), GlobalSelfAttention of linear scaling with attention_mechanism="IDENTITY",
    # Erf, GlobalAvgPool, Dense)
    "attention, identity": (
        [0.2963277047896616, -0.13652471789499665, 0.2564133238395725],
        [1.582327322200694, -0.5794883949931007, 1.8848302226830969],
    ),
    # the same with attention_mechanism="RELU"
    "attention, relu": (
        [0.39141592594325775, -0.17539490955044573, 0.40048973837902685],
        [1.9874838244607524, -0.7513745819224336, 2.4808919091604666],
    ),
    # the same with attention_mechanism="ABS"
    "attention, abs": (
        [0.4890180985015093, -0.2229075639690775, 0.5883445588426248],
        [2.432519910057025, -0.9567402239129487, 3.2759623494163326],
    ),
    # the same with linear_scaling=False and attention_mechanism="IDENTITY"
    "attention, identity over the root": (
        [0.3087111519968819, -0.041428665687513154, 0.2963618097906845],
        [4.713619675599855, -0.34082708038199383, 6.4447958085869335],
    ),
    # serial(Conv, Erf, FanOut(2), parallel(Conv, Conv(1×1)), FanInConcat(axis=1), Erf, Conv, Erf, GlobalAvgPool, Dense)
    "stack": (
        [0.010923713635376371, -0.004166600342034997, 0.005433959891368014],
        [0.047919152098275096, -0.017222611230264604, 0.024908174903282714],
    ),
}
COLUMNS = np.cos(np.arange(25) ** 2 * 0.7).reshape(5, 5).T


def agree(name, kernels):
    """Compare both kernels of two inputs with the peer's."""
    upper = np.triu_indices(2)
    nngp, ntk = KERNELS[name]
    np.testing.assert_allclose(kernels.nngp[upper], nngp, rtol=1e-10)
    np.testing.assert_allclose(kernels.ntk[upper], ntk, rtol=1e-10)
