"""Why some configurations are not equal, one sentence for each: a test asks for them."""

CONVENTION = "a convention: behind both, what exists differs"
HEADS = "no closed form is known; ours is a mean over drawn heads, with standard errors"
REASONS = {
    "branches/sum of activations": "branches whose means are not zero are not independent of each other's means",
    "branches/channels, then an activation": "theirs refuses; ours takes each branch by itself",
    "branches/inputs side by side": "ours has no outputs of more inputs than there were; stack the inputs",
    "normalization/channels, after an activation": "theirs refuses",
    "normalization/channels and the batch": "ours has no batch normalization: outputs then depend on the batch",
    "resize/cubic": "theirs refuses",
    "attention/softmax over the root of d": HEADS,
    "activation/Hermite polynomial, other variances": (
        "theirs is for variance one, whatever the variance is"
    ),
    "activation/rectified monomial": "theirs is NaN on the diagonal",
    "activation/rectified monomial between positions": "theirs is NaN on the diagonal",
    "activation/step, NNGP": "theirs is NaN on the diagonal",
    "activation/sign, tangent kernel": "it is infinite on the diagonal, and NaN here; theirs leaves that part out",
    "activation/tanh by quadrature": "theirs has 60 nodes, and no error to tell",
    "activation/hard tanh by quadrature": "theirs has 200 nodes, which do not see the corners",
    "activation/elu by quadrature": "theirs has 200 nodes, which do not see the corner of its derivative",
    "activation/elu between positions": "theirs has 100 nodes, which do not see the corner of its derivative",
    "mask/convolution, no padding": (
        "an input that is filled up is the shorter input here: windows exist as a whole"
    ),
    "mask/convolution, stride": f"{CONVENTION}, where lengths leave different remainders; else equal",
    "mask/mean over windows": f"{CONVENTION}; ours is the mean over positions that exist",
    "mask/sum over windows": f"{CONVENTION}; ours has a sum wherever it reads a position that exists",
    "mask/mean over windows, edges left out": f"{CONVENTION}; ours is the mean over positions that exist",
    "empirical/structured derivatives": "theirs does not run on the last JAX that imports it",
}
