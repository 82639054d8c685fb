"""Tests of a claim run where it has changed, or what its tests import, or where they are named; every night all do."""

from pathlib import Path

import pytest

from tests.contract import green


@pytest.hookimpl(tryfirst=True)  # before the marks are selected
def pytest_collection_modifyitems(config, items):
    if config.option.keyword or any(path.is_relative_to(HERE) for path in _asked(config)):
        return
    unchanged = {*green.names()} - {*green.tested()}
    theirs = {path: name for name in unchanged for path in green.files_of(name)}
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        of_all = item.path.name == green.ALL_CLAIMS and params.get("name") in unchanged
        if of_all or item.path in theirs:
            item.add_marker(pytest.mark.nightly)


HERE = Path(__file__).parent


def _asked(config):
    """Return the files and folders that were asked for."""
    return [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
