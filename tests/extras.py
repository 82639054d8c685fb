"""Optional packages in tests: what needs one that is missing is skipped by name, counted, and listed to be run later.

A test asks for a package by :func:`need`. A module that imports one at its top, as the adapters of torch in ``src`` do,
becomes one skipped item. At the end one line for each extra says how many were skipped and how to run just those::

    python -m pytest @.cache/needs/torch
"""

import functools
import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
LISTS = Path(os.environ.get("STEEPEST_TEST_LISTS", ROOT / ".cache" / "needs"))
"""One file for each extra that was missing in the last run: the tests that need it, one a line."""

EXTRAS = {
    "torch": ("torch",),
    "flax": ("flax", "haiku", "dm_haiku"),
    "dask": ("distributed", "dask"),
    "export": ("pyarrow",),  # pandas comes with xarray, which every claim needs
    "book": (
        "sphinx",
        "docutils",
        "myst_nb",
        "furo",
        "jupytext",
        "nbclient",
        "nbformat",
        "ipykernel",
    ),
    "integrations": (
        "lightning",
        "pytorch_lightning",
        "transformers",
        "accelerate",
        "tensorboard",
        "wandb",
    ),
    "gaussian-processes": ("tinygp", "gpjax", "gpytorch"),
    "test": (
        "hypothesis",
        "beartype",
        "mpmath",
        "diffrax",
        "blackjax",
        "equinox",
        "networkx",
        "yaml",
    ),
}
"""The packages that each extra of the project brings, as they are imported."""
EXTRA_OF = {package: extra for extra, packages in EXTRAS.items() for package in packages}


class MissingPackage(pytest.skip.Exception):
    """A package of an extra is not installed."""

    def __init__(self, package: str) -> None:
        self.extra = EXTRA_OF[package]
        reason = f"needs {package}: pip install 'steepest[{self.extra}]'"
        super().__init__(reason, allow_module_level=True)


def need(name: str) -> Any:
    """Import a module of an optional package, or skip the test, or the whole module, that needs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as trouble:
        missing = missing_package(trouble)
        if missing is None:
            raise
        raise MissingPackage(missing) from None


def missing_package(trouble: BaseException | None) -> str | None:
    """Return the optional package for whose absence something could not be imported, or None."""
    while trouble is not None:
        if isinstance(trouble, ModuleNotFoundError):
            package = (trouble.name or "").partition(".")[0]
            return package if package in EXTRA_OF else None
        trouble = trouble.__cause__ or trouble.__context__
    return None


# ------------------------------------------------------------------------------------------ collection


class NeedsPackage(pytest.Item):
    """Stands for a module that cannot be imported without an optional package."""

    def __init__(self, *, missing: MissingPackage, **options: Any) -> None:
        super().__init__(**options)
        self.missing = missing

    def runtest(self) -> None:
        """Skip: an item, unlike a skipped collection, is counted when several processes share the tests."""
        raise self.missing

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the module is."""
        return self.path, 0, self.name


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Let a module that needs a missing package be one skipped item, and no error."""
    if isinstance(collector, pytest.File):
        collector.collect = functools.partial(_collect, collector, collector.collect)


def _collect(collector: pytest.Collector, collect: Any) -> Iterable[pytest.Item | pytest.Collector]:
    try:
        return list(collect())
    except MissingPackage as found:
        missing = found
    except Exception as trouble:
        package = missing_package(trouble)
        if package is None:
            raise
        missing = MissingPackage(package)
    return [NeedsPackage.from_parent(collector, name=f"needs {missing.extra}", missing=missing)]


# ---------------------------------------------------------------------------------------------- report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Let the report of a skipped test say for which extra it was skipped, across processes."""
    report = yield
    trouble = call.excinfo.value if call.excinfo else None
    if isinstance(trouble, MissingPackage):
        report.needs = trouble.extra
        # what runs it again: the file, where there was nothing in it to collect
        report.rerun = (
            item.nodeid.partition("::")[0] if isinstance(item, NeedsPackage) else item.nodeid
        )
    return report


class SkippedForExtras:
    """Counts, in the process that reports, what was skipped for each extra, and writes the lists."""

    def __init__(self) -> None:
        self.skipped: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note a skipped test."""
        if extra := getattr(report, "needs", None):
            self.skipped.setdefault(extra, []).append(report.rerun)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the lists, and say how to run what is in them."""
        for extra, tests in sorted(self.skipped.items()):
            LISTS.mkdir(parents=True, exist_ok=True)
            path = LISTS / extra
            path.write_text("".join(f"{test}\n" for test in sorted(tests)), "utf-8")
            terminalreporter.write_line(
                f"{len(tests)} skipped, as they need packages of steepest[{extra}]; once it is installed: "
                f"python -m pytest @{os.path.relpath(path)}"
            )


def pytest_configure(config: pytest.Config) -> None:
    """Count where results come together: in the first process, not in the workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkippedForExtras())
