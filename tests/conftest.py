"""What holds for every test."""

import os
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

from steepest.core.compiling import KNOWN
from tests.contract import green

# Programs that several tests, or several processes, compile are compiled once, and kept for the next run of the tests.
CACHE = Path(__file__).parent.parent / ".cache" / "compiled"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE))
# Most tests compile for a second and compute for a moment: code is made as fast as it can be, by the generator of loops
# that is quicker at it, in one piece for each program. An option that the compiler does not know would end the process.
# `.ci/nightly` compiles as users do.
FLAGS = ["--xla_backend_optimization_level=0"]
if version("jaxlib").startswith(KNOWN):
    FLAGS += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture(scope="module", autouse=True)
def forget_compiled_programs():
    """Frees the compiled programs after each file.

    Every one keeps some memory maps, and the kernel allows a process 65 530 of them: a suite that compiles thousands
    of programs would end in a segmentation fault of the compiler.
    """
    yield
    jax.clear_caches()


def pytest_configure(config):
    """Digests of code are computed once, here, and read from disk by the processes that test."""
    if not hasattr(config, "workerinput") and not green.EVERY:
        green.tested()


# Tests that README's second command leaves out: `thorough` ones cost most, and quick ones run nearly all their lines;
# `nightly` ones take two seconds and more. `.ci/run` goes on with the thorough ones, `.ci/nightly` with the others.
TIERS = {
    tier: frozenset(Path(__file__).with_name(f"{tier}.txt").read_text("utf-8").splitlines())
    for tier in ("thorough", "nightly")
}


@pytest.hookimpl(tryfirst=True)  # before the marks are selected
def pytest_collection_modifyitems(items):
    """Tests of one file run in one process, for what they share; those of the contract claim by claim."""
    for item in items:
        for tier, tests in TIERS.items():
            if item.nodeid in tests:
                item.add_marker(getattr(pytest.mark, tier))
        claim = getattr(item, "callspec", None) and item.callspec.params.get("name")
        alone = item.path.parent.name == "contract" and claim
        group = f"{item.path}{claim}" if alone else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
