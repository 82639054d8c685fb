"""The worst error of wide trained ReLU students is about 4.5 times their root mean square error.

Both errors rise with the width of the student if the teacher has few neurons, and fall with it if the teacher has many.
Errors are over the sphere, the mean error is the root mean square. In the source the worst error goes up while the mean
error falls: a trade of robustness for generalization. Neither of the two teachers shows this trade. A narrow student
usually finds the teacher's three neurons and is then nearly exact; a wide student hardly moves its own neurons, and
interpolates by its tangent kernel. Twenty neurons of a teacher do not fit into eight of a student, and the kernel does
better than these eight.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.features.worst_error.experiment import (
    POINTS,
    Lessons,
    errors,
    sphere,
    teach,
    train,
)
from steepest.claims.features.worst_error.theory import kernel_errors
from steepest.nn.types import Values

Even = Annotated[int, kit.Within(4, 1024)]
PLACES = {"few": 0, "many": 1}  # of the teachers


@kit.claim
class WorstError(kit.Claim[Lessons]):
    """ReLU students of two layers on samples of two teachers; the worst error by ascent over the sphere."""

    widths: tuple[Even, ...] = kit.param(
        (8, 32, 128),
        "widths of the students",
        unit="neurons",
        scope=kit.choices((8, 32, 128), (8, 48, 128), (6, 32, 128)),
    )
    teachers: tuple[kit.Count, kit.Count] = kit.param(
        (3, 20),
        "neurons of the teachers",
        unit="neurons",
        scope=kit.choices(
            (3, 20),
            (2, 20),
            (3, 30),
            why="the narrowest student must hold the one and not the other",
        ),
    )
    n: kit.Count = kit.param(60, "samples", scope=kit.between(50, 75, "more take wider students"))
    dimension: kit.Count = kit.param(
        5,
        "dimension of the inputs",
        scope=kit.choices(5, why="in others the kernel takes wider students"),
    )
    steps: kit.Count = kit.param(800, "steps of Adam", unit="steps")
    seeds: kit.Seeds = kit.param(20, "samples and teachers")

    kind = "empirical law"
    says = {
        "about 4.5 times their root mean square error": kit.literal("ratio", value=4.5),
        "Both errors rise with the width of the student if the teacher has few neurons": (
            "few_worst",
            "few_mean",
        ),
        "fall with it if the teacher has many": ("many_worst", "many_mean"),
    }
    tiny = {"widths": (8, 32), "n": 40, "steps": 200, "seeds": 4}
    full = {"widths": (8, 32, 128, 512), "steps": 5000, "seeds": 32}
    out_of_scope = {"widths": (64, 128)}
    precision = "float32"

    @property
    def ends(self) -> tuple[int, int]:
        """Return the narrowest and the widest student."""
        return self.widths[0], self.widths[-1]

    def axes(self):
        return {
            "teacher": self.teachers,
            "width": self.widths,
            "end": self.ends,
            "wider": self.widths[1:],
        }

    def check_fields(self) -> None:
        if any(width % 2 for width in self.widths):
            raise kit.UserError(f"neurons start in pairs; choose even --widths, got {self.widths}")
        if list(self.widths) != sorted(set(self.widths)) or len(self.widths) < 2:
            raise kit.UserError(f"--widths are increasing, got {self.widths}; try 8 32 128")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        largest = max(self.teachers)
        signs = rng.choice([-1.0, 1.0], (self.seeds, 1, largest))
        has = np.array([np.arange(largest) < size for size in self.teachers])
        return Lessons(
            sphere(rng, self.seeds, self.n, self.dimension),
            sphere(rng, self.seeds, largest, self.dimension),
            signs * has,
        )

    def hypotheses(self, setting):
        narrow = self.widths[0]
        few, many = self.teachers
        yield kit.assume(
            "narrowest width − few neurons", narrow - few, ">=", 0, "it must hold them"
        )
        yield kit.assume("many neurons − narrowest width", many - narrow, ">", 0, "it must not")

    def predict(self, setting):
        rng = np.random.default_rng(0)
        limits = np.array(
            [
                [kernel_errors(rng, x, lambda z, s=s, t=t: teach(z, t, s)) for s in signs]
                for x, t, signs in zip(*setting, strict=True)
            ]
        )
        trend = np.array([1.0, -1.0])[:, None] * np.array([0.0, 1.0])
        return kit.law(
            limit=("teacher", limits[..., 0].mean(0)),
            ratio=("teacher", (limits[..., 0] / limits[..., 1]).mean(0)),
            worst_trend=("teacher end", trend),
            mean_trend=("teacher end", trend),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        labels = np.array(
            [
                [teach(points, teacher, s) for s in several]
                for points, teacher, several in zip(*setting, strict=True)
            ]
        )
        hidden, last = train(rng, setting, labels, self.widths, self.steps)
        points = sphere(rng, POINTS, self.dimension)
        few = points[: self.n]
        trained = self._errors(points, setting, (hidden, last))
        untrained = self._errors(points, setting, (hidden, 0 * last))
        tested = self._errors(few, setting, (hidden, last), climbs=0)
        return kit.seen(
            worst=("seed teacher width", trained[..., 0]),
            root_mean_square=("seed teacher width", trained[..., 1]),
            untrained=("seed teacher width", untrained[..., 0]),
            untrained_mean=("seed teacher width", untrained[..., 1]),
            tested=("seed teacher width", tested[..., 0]),
        )

    def _errors(
        self, points: Values, setting: Lessons, students: tuple[Values, Values], **options: int
    ) -> Values:
        """Return worst and root mean square error of all students, ``(seeds, teachers, widths, 2)``."""
        results = np.empty((*students[1].shape[:3], 2))
        for seed, teacher, width in np.ndindex(results.shape[:3]):
            student = (students[0][seed, teacher, width], students[1][seed, teacher, width])
            target = (setting.teachers[seed], setting.signs[seed, teacher])
            results[seed, teacher, width] = errors(points, student, target, **options)
        return results

    def derive(self, law, seen):
        """Return logarithms of the narrowest and the widest students' errors, and the worst over the mean."""
        part = lambda array, axis, places: (
            array.isel(width=places)
            .rename(width=axis)
            .assign_coords({axis: list(self.axes()[axis])})
        )
        ratio = seen.worst / seen.root_mean_square
        return {
            "worst_ends": part(np.log(seen.worst), "end", [0, -1]),
            "mean_ends": part(np.log(seen.root_mean_square), "end", [0, -1]),
            "ratio": part(ratio, "wider", slice(1, None)),
            "widest": seen.worst.isel(width=-1, drop=True),
        }

    def judge(self, law, seen):
        orders = [
            kit.ranks(
                f"{name}_{kind}",
                law[f"{kind}_trend"].isel(teacher=place, drop=True),
                seen[f"{kind}_ends"].isel(teacher=place, drop=True),
                over="end",
                label=f"{kind} error over the sphere, {self.teachers[place]} neurons to learn: logarithms by width",
            )
            for name, place in PLACES.items()
            for kind in ("worst", "mean")
        ]
        yield from orders
        yield kit.follows(
            "ratio",
            law.ratio,
            seen.ratio,
            0.25,  # of few neurons it is larger by a tenth where the student is not yet wide
            over="teacher wider",
            label="worst error over the root mean square, of all students but the narrowest",
        )
        yield kit.follows(
            "limit",
            law.limit,
            seen.widest,
            0.25,  # by chance 0.1, and 128 neurons are no kernel
            over="teacher",
            label="worst error of the widest student, beside kernel regression's worst error",
        )

    def rivals(self, setting, law):
        rise = abs(law.worst_trend)
        yield kit.rival(
            "the worst grows, the mean falls",
            "the source: robustness is traded for generalization",
            id="as_said",
            worst_trend=rise,
            mean_trend=-rise,
        )
        yield kit.rival(
            "both fall", "a wider student is a better one", worst_trend=-rise, mean_trend=-rise
        )
        yield kit.rival(
            "both grow",
            "a wider student has more freedom between its samples",
            worst_trend=rise,
            mean_trend=rise,
        )
        yield kit.rival(
            "√(2 log 2n) times the mean",
            "errors at as many points as there are samples are independent and normal",
            ratio=np.sqrt(2 * np.log(2 * self.n)) + 0 * law.ratio,
            limit=law.limit / law.ratio * np.sqrt(2 * np.log(2 * self.n)),
        )
        yield kit.rival(
            "√n times the mean",
            "what n samples leave free has about n dimensions",
            ratio=np.sqrt(self.n) + 0 * law.ratio,
        )

    def controls(self, seen):
        exchanged = {"teacher": slice(None, None, -1)}
        swap = lambda array: array.copy(data=array.isel(exchanged).values)
        yield kit.control(
            "teachers exchanged",
            "what is learned decides where errors go",
            worst=swap(seen.worst),
            root_mean_square=swap(seen.root_mean_square),
        )
        yield kit.control(
            f"largest error at {self.n} random points",
            "nobody looks for the worst point",
            id="no_search",
            worst=seen.tested,
        )
        yield kit.control(
            "students at the start",
            "the error is the teacher",
            worst=seen.untrained,
            root_mean_square=seen.untrained_mean,
        )

    def figure(self, law, seen, rivals):
        widths = np.array(self.widths)
        panels = []
        for place, size in enumerate(self.teachers):
            worst = seen.worst.isel(teacher=place).mean("seed")
            limit = np.full(len(widths), float(law.limit[place]))
            square = seen.root_mean_square.isel(teacher=place).mean("seed")
            panels.append(
                kit.panel(
                    f"{size} neurons to learn: worst and mean error {'fall' if place else 'rise'}",
                    "neurons of the student",
                    "error over the sphere",
                    kit.observed_curve(widths, worst, "worst"),
                    kit.observed_curve(widths, square, "root mean square", shade=0.6),
                    kit.predicted_curve(widths, limit, "worst, kernel"),
                    kit.predicted_curve(
                        widths, limit / float(law.ratio[place]), "mean, kernel", shade=0.6
                    ),
                    log="xy",
                )
            )
        return tuple(panels)
