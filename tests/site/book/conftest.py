"""A small book of small claims, built once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steepest.engine.run import run
from steepest.engine.store import Store
from steepest.site.book._theory import theory_of
from tests.extras import need
from tests.small import small_catalogue

if TYPE_CHECKING:
    from steepest.site.book import Book

FRONT = """# A small book

:::{tally}
:::

[The chapter](chapters/decay.md) and {verdict}`growing`.

```{toctree}
:hidden:

verdicts
chapters/decay
claims/index
formulas
works
```
"""
CHAPTER = """# How things decay

*How fast?* The rate $\\rho$ was {measured}`0.49 <plain-decay rate>`, at most {most}`0.6 <plain-decay rate>`,
and the rival says {rival}`0.3 <plain-decay faster rate>`.
With another rate {measured}`0.25 <plain-decay(rate=0.25) rate>`.
Nobody has run {measured}`7 <unrun rate>`.

$$\\rho^t = \\left(\\frac{1}{2}\\right)^t$$

:::{claim} plain-decay
:checks: rate
:panels: 1
:rival: faster
:::

:::{claim} shifted-decay
:::

:::{claim} unrun
:::

:::{predict} Does it *grow* when $\\rho > 1$?
It does, like n^{−α} of W_{l+k}, and there {verdict}`growing` has no say.
:::

:::{moving} plain-decay
:field: rate
:values: 0.25 0.5 1.5
:::

:::{exercise} Halve the rate.
```sh
steepest run plain-decay --rate 0.25
```
:::

:::{claims} first_steps
:::

:::{claims} shifted-decay
:::

:::{formulas} first_steps
:::

:::{theory} first_steps
:::

:::{theory-roots}
:::

:::{theory-pillars}
:most: 1
:::

:::{idea} valley
:::

:::{toy} parabola
:::

## To take away

**Three formulas.** How $\\rho$ acts once, twice, and
for ever:

$$\\rho$$

$$\\rho^2$$

$$\\rho^\\infty = 0 .$$

**One figure.** It *decays*, in {verdict}`plain-decay`.

**One doubt.** Nobody [knows](../verdicts.md) why {verdict}`growing` is so.
"""
THEORY = {
    "plain-decay": {},
    "shifted-decay": {"extends": {"plain-decay": "From zero to any place."}},
    "growing": {},
    "unrun": {
        "limits": {"shifted-decay": "Nobody has looked."},
        "uses": {"plain-decay": "It decays first."},
    },
}


@pytest.fixture(scope="package")
def catalogue(tmp_path_factory):
    """The small claims instead of the real ones, for the tests of this folder that ask for them."""
    with (
        small_catalogue(tmp_path_factory.mktemp("claims")) as root,
        pytest.MonkeyPatch.context() as patch,
    ):
        for module in ("sphinx", "myst_nb"):
            need(module)
        patch.setattr(
            "steepest.site.book._extension.theory_of_catalogue", lambda: theory_of(THEORY)
        )
        yield root


@pytest.fixture(scope="package")
def results(catalogue, tmp_path_factory) -> Path:
    """A folder of results; not to be changed."""
    root = tmp_path_factory.mktemp("stored") / "results"
    runs = (
        ("plain-decay", {}),
        ("plain-decay", {"rate": 0.25}),
        ("plain-decay", {"rate": 1.5}),
        ("shifted-decay", {}),
        ("growing", {"rate": 1.5}),
    )
    for name, fields in runs:
        run(name, store=Store(root), **fields)
    return root


@pytest.fixture(scope="package")
def docs(tmp_path_factory) -> Path:
    """The sources of the book."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "chapters").mkdir()
    (folder / "index.md").write_text(FRONT, "utf-8")
    (folder / "verdicts.md").write_text("# How to read a verdict\n", "utf-8")
    (folder / "chapters" / "decay.md").write_text(CHAPTER, "utf-8")
    return folder


@pytest.fixture(scope="package")
def book(docs, results, tmp_path_factory) -> Book:
    """The book, without the reference; not to be changed."""
    need("sphinx")
    need("myst_nb")
    from steepest.site.book import build

    out = tmp_path_factory.mktemp("site") / "book"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other packages' deprecations
        return build(docs, results, out, reference=False, execute=False)
