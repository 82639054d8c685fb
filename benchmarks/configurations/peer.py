"""neural-tangents, in its own environment (``../kernels/requirements.txt``): the numbers of all configurations.

    PYTHON -m benchmarks.configurations.peer FILE.npz

Runs with the interpreter of that environment; ``run.py`` reads the file: arrays ``id|name``, and ``id|!`` with what was
raised instead.
"""

import sys
import time
import warnings

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
warnings.filterwarnings("ignore")


def computed(configuration):
    """Return the arrays of a configuration, or what it raised."""
    try:
        return {name: np.asarray(array, float) for name, array in configuration().items()}
    except Exception as trouble:
        return {"!": np.array(f"{type(trouble).__name__}: {trouble}")}


def main(file):
    from benchmarks.configurations.theirs import activations, functions, layers

    arrays = {}
    for module in (layers, activations, functions):
        for identity, configuration in module.CONFIGURATIONS.items():
            started = time.perf_counter()
            for name, array in computed(configuration).items():
                arrays[f"{identity}|{name}"] = array
            print(f"{time.perf_counter() - started:6.2f} s {identity}", file=sys.stderr, flush=True)
    np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
