"""Descent completes a rank-one matrix almost exactly when the known entries connect all rows.

Descent starts from small x. For n rows completion takes about ½n(log n + 0.58) known entries in the mean, at large n.
The matrix uuᵀ is symmetric and has no zeros, and its entries become known in random order. The known entries are the
edges of a graph. They determine the matrix exactly when a walk of even length leads from each row to each other row.
This is so when the graph is connected and has an odd cycle; by the time it is connected it has an odd cycle. Descent on
¼‖P(xxᵀ − uuᵀ)‖², where P selects the known entries, needs nothing more. A small start turns to the top eigenvector of
the known entries, which has the signs of u, and with these signs the only critical point is x = ±u.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.matrix_completion.experiment import (
    CompletionPoint,
    Problems,
    complete_all,
    draw_problems,
)
from steepest.claims.descent.matrix_completion.figure import panels_of_completion
from steepest.claims.descent.matrix_completion.theory import (
    entries_that_determine,
    expected_entries,
)


class Setting(NamedTuple):
    """What theory and experiment both see."""

    problems: tuple[Problems, ...]  # one for each size


@kit.claim
class MatrixCompletion(kit.Claim[Setting]):
    """Symmetric matrices of rank one, of several sizes, entries known in random order; descent without momentum."""

    sizes: tuple[kit.Count, ...] = kit.param(
        (24, 40, 64),
        "n",
        unit="rows",
        scope=kit.choices(
            (24, 40, 64), (20, 40, 80), (24, 32, 48, 64), why="½n(log n + γ) is for large n"
        ),
    )
    densities: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
        "known entries on and above the diagonal by n",
        unit="entries/row",
        scope=kit.choices(
            (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
            (0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0, 4.4, 4.8),
            why="they must reach from no graph connected to all",
        ),
    )
    contrast: kit.Positive = kit.param(
        3.0,
        "largest ratio of two |u_i|",
        scope=kit.between(1.0, 4.0, "weak rows tie others too slowly"),
    )
    start: kit.Positive = kit.param(
        1e-9,
        "size of x at the start",
        unit="|u|",
        scope=kit.between(1e-12, 1e-6, "signs must agree with the signs of the top eigenvector"),
    )
    spike: kit.NonNegative = kit.param(
        0.0, "what is added to |u_1|", scope=kit.choices(0.0, why="it makes all other rows weak")
    )
    steps: kit.Count = kit.param(
        1200, "steps of descent, at most", unit="steps", scope=kit.between(1200, 3000)
    )
    draws: kit.Seeds = kit.param(300, "matrices of each size")

    kind = "limit"
    says = {
        "completes a rank-one matrix almost exactly when the known entries connect all rows": "per_graph",
        "about ½n(log n + 0.58) known entries in the mean": ("needed", "constant", "growth"),
    }
    tiny = {"sizes": (8, 12), "densities": (1.0, 2.0, 4.0), "draws": 4}
    full = {"draws": 1500, "steps": 3000}
    out_of_scope = {"spike": 30.0}
    precision = "float32"
    point = CompletionPoint

    def axes(self):
        return {"size": self.sizes, "density": self.densities}

    def check_fields(self) -> None:
        """Refuse numbers of entries that do not rise, or that are more than a matrix has."""
        if any(np.diff(self.densities) <= 0):
            raise kit.UserError("densities must rise; try 1 2 3 4")
        if max(self.densities) > (min(self.sizes) + 1) / 2:
            raise kit.UserError(
                f"a matrix of {min(self.sizes)} rows has {(min(self.sizes) + 1) / 2:g} entries a row on and above the "
                f"diagonal, and densities reach {max(self.densities):g}; try larger sizes"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return Setting(
            tuple(
                draw_problems(rng, self.draws, size, self.contrast, self.spike)
                for size in self.sizes
            )
        )

    def hypotheses(self, setting):
        sizes = [np.abs(of_size.u) for of_size in setting.problems]
        ratios = [(of_size.max(1) / of_size.min(1)).max() for of_size in sizes]
        fewest, most = self.connected(setting)[:, :, [0, -1]].mean(0).T
        yield kit.assume(
            "largest ratio of two |u_i|", max(ratios), "<=", 5, "weak rows tie others too slowly"
        )
        yield kit.assume("size of the start", self.start, "<=", 1e-5, "choose a smaller --start")
        yield kit.assume("steps of descent", self.steps, ">=", 1000, "raise --steps")
        yield kit.assume(
            "share of graphs that are connected by the fewest entries",
            fewest.max(),
            "<=",
            0.02,
            "let --densities begin lower",
        )
        yield kit.assume(
            "share of graphs that are connected by the most entries",
            most.min(),
            ">=",
            0.95,
            "let --densities reach further",
        )

    def connected(self, setting: Setting) -> np.ndarray:
        """Return which matrices are determined by how many entries, ``(draws, sizes, densities)``."""
        enough = [
            [entries_that_determine(place) for place in of_size.place]
            for of_size in setting.problems
        ]
        entries = np.round(np.outer(self.sizes, self.densities))
        return np.array(enough).T[..., None] <= entries

    def predict(self, setting):
        return kit.law(
            connected=("draw size density", self.connected(setting)),
            needed=("size", expected_entries(self.sizes)),
        )

    def observe(self, setting, key):
        return complete_all(setting.problems, self.densities, self.start, self.steps)

    def derive(self, law, seen):
        """Return the number of entries at which failure ends: the least one and the area under the failures."""
        failures = 1.0 - seen.completes
        # the mean of a positive number is the integral of P(it is larger)
        return {"needed": seen["size"] * (self.densities[0] + failures.integrate("density"))}

    def judge(self, law, seen):
        yield kit.share(
            "per_graph",
            0.0,
            seen.completes != law.connected,
            0.04,  # one in a hundred by signs that chance gets right, and the interval takes 0.01
            over="size",
            label="share of descents that disagree with their own graph",
        )
        yield kit.follows(
            "needed",
            law.needed,
            seen.needed,
            0.1,  # the mean of graphs is within 0.03 of its limit, and the interval takes 0.04
            label="known entries from which a matrix is completed",
        )
        yield kit.follows(
            "constant",
            _constant(law.needed),
            _constant(seen.needed),
            0.25,  # half of it; graphs of such n are within 0.07 of the limit, and the interval takes 0.07
            over="",
            absolute=True,
            label="2/n of the same, less log n, mean over n",
        )
        yield kit.power(
            "growth",
            law.needed,
            seen.needed,
            0.12,  # a number for each row that is the same at all n is 0.24 off
            over="size",
            label="the same, growth with n",
        )

    def rivals(self, setting, law):
        n = law["size"]
        met = [
            [_entries_that_meet(place) for place in of_size.place] for of_size in setting.problems
        ]
        entries = np.round(np.outer(self.sizes, self.densities))
        yield kit.rival(
            "n entries suffice",
            "there are as many equations as unknowns, and nr⁶ entries as printed",
            id="unknowns",
            needed=1.0 * n,
            connected=("size density", entries >= np.array(self.sizes)[:, None]),
        )
        yield kit.rival(
            "every row must be met, if only on the diagonal",
            "a row of which nothing is known can be anything",
            accepted="a graph whose rows are all met is nearly always connected at such n",
            connected=("draw size density", np.array(met).T[..., None] <= entries),
        )
        yield kit.rival(
            "½ n log n", "it is the leading term", id="no_constant", needed=n * np.log(n) / 2
        )
        yield kit.rival(
            "n (log n + γ)",
            "rows are met one at a time, as if an entry met one row and not two",
            needed=2 * law.needed,
        )
        yield kit.rival(
            "a constant times n",
            "a number of entries for each unknown",
            id="per_row",
            needed=n * float((law.needed / n).mean()),
        )
        yield kit.rival(
            "½ n (log n − log log 2)",
            "by then half of the graphs are connected",
            accepted="it is 4 to 6 % less, as much as the limit is off at such n",
            needed=n * (np.log(n) - np.log(np.log(2))) / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "each descent judged against the graph of another matrix",
            "another graph is connected at another number of entries",
            id="other_graphs",
            completes=seen.completes.roll(draw=1),
        )
        yield kit.control(
            "starts as large as u",
            "some rows keep the signs of the start, and rows with wrong signs can settle",
            completes=seen.completes_from_large,
        )
        yield kit.control(
            "entries of one row known after all others",
            "as many entries do not connect a row that none of them meets",
            completes=seen.completes_row_last,
        )

    def figure(self, law, seen, rivals):
        return panels_of_completion(law, seen, rivals)


def _constant(needed: xarray.DataArray) -> xarray.DataArray:
    """Return c of a number ½n(log n + c), the mean over n."""
    n = needed["size"]
    return (2 * needed / n - np.log(n)).mean("size")


def _entries_that_meet(place: np.ndarray) -> int:
    """Return from how many known entries on every row has one."""
    return int(place.min(1).max()) + 1
