"""A student as wide as its ReLU teacher usually gets stuck, but one that is twice as wide does not.

Wherever the student is stuck, splitting one of its neurons opens a way down. The risk is exact, for Gaussian inputs and
an orthogonal teacher of fifteen neurons. Most students of fifteen neurons end at strict minima of a few fixed values
above zero, and students of thirty neurons end at zero. At each of these minima one neuron can be split into halves that
move apart, with a negative second derivative along this direction. So with one more neuron the minimum is a saddle. An
objective by fourth Hermite polynomials has no such minima: its ascents, one neuron at a time, all end at the teacher's
neurons.
"""

import jax
import numpy as np

from steepest import kit
from steepest.claims.descent.teacher_student_width.designed import PLACES, TRIES, measure_designed
from steepest.claims.descent.teacher_student_width.experiment import (
    PUSH,
    STUCK,
    WidthPoint,
    descend_student,
    draw_start,
    draw_teacher,
    split,
    split_direction,
)
from steepest.kernels import teacher_risk
from steepest.landscapes import strict_saddles

POINTS = 4  # stuck students that are certified, from the highest risk to the lowest
STRICT = 1e-3  # curvature that counts as positive, or negative; that of rounding is 1e-12, of a split's 1e-6
MOST = (
    2 / 3
)  # share that is most, with half of it for a margin: the talks say that students get stuck, not how often
RARE = 0.3  # of students a little wider: one of 140 was seen stuck, and less than the least that counts as most
FEW = 0.15  # 0 of 56 students leave up to 0.06 possible


@kit.claim
class TeacherStudentWidth(kit.Claim[None]):
    """Students of several widths on a teacher of orthogonal neurons, by descent with momentum on the exact risk."""

    teacher: kit.Count = kit.param(
        15,
        "neurons k of the teacher, and inputs",
        unit="neurons",
        scope=kit.between(14, 17, "smaller teachers are seldom stuck on, larger ones take time"),
    )
    ratio: tuple[kit.Positive, ...] = kit.param(
        (1.0, 1.13, 2.0),
        "widths of the students over k: equal, two neurons more, twice",
        scope=kit.choices((1.0, 1.13, 2.0), (1.0, 1.2, 2.2), (1.0, 1.3, 2.0)),
    )
    small: kit.Count = kit.param(
        5, "neurons of a teacher too small to be stuck on", unit="neurons", scope=kit.between(3, 5)
    )
    lr: kit.Positive = kit.param(
        0.15,
        "step size, with momentum 0.9",
        scope=kit.between(0.1, 0.2, "shorter steps arrive late"),
    )
    steps: kit.Count = kit.param(
        1000, "steps of each descent", unit="steps", scope=kit.between(1000, 1500)
    )
    seeds: kit.Seeds = kit.param(56, "students of each width")
    teachers: kit.Seeds = kit.param(8, "teachers of as many neurons, for the objective by moments")
    inputs: kit.Count = kit.param(30_000, "inputs and labels for each of these")

    kind = "empirical law"
    says = {
        "A student as wide as its ReLU teacher usually gets stuck": ("stuck_equal", "minima"),
        "splitting one of its neurons opens a way down": "split",
        "one that is twice as wide does not": "stuck_wider_1",
    }
    tiny = {
        "teacher": 8,
        "small": 3,
        "ratio": (1.0, 1.25, 2.0),
        "steps": 60,
        "seeds": 6,
        "teachers": 3,
        "inputs": 2000,
    }
    full = {"seeds": 200, "steps": 3000}
    out_of_scope = {"teacher": 4}
    point = WidthPoint

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the students' numbers of neurons."""
        return tuple(round(ratio * self.teacher) for ratio in self.ratio)

    def axes(self):
        return {"width": self.widths, "tries": TRIES, "place": PLACES}

    def hypotheses(self, setting):
        yield kit.assume(
            "neurons of the teacher",
            self.teacher,
            between=(5.5, 20.5),
            note="minima are proved for 6 to 20 neurons; choose --teacher 15",
        )
        yield kit.assume(
            "narrowest student over k", self.ratio[0], "==", 1, "the first is as wide as k"
        )
        yield kit.assume(
            "widest student over k", self.ratio[-1], ">=", 2, "the last is twice as wide"
        )
        yield kit.assume("neurons of the small teacher", self.small, "<=", 5, "minima begin at six")

    def predict(self, setting):
        k = self.teacher
        return kit.law(
            arrived=1.0,
            # M ascents all miss one of k neurons with the chance (1 − 1/k)^M
            reached=("tries", k * (1 - (1 - 1 / k) ** np.array(TRIES))),
            height=("place", [3 / (k + 2), 1.0]),  # Σc⁴ of a random direction, and of a neuron
            # share of students that are stuck: most of the narrowest, none of the others
            stuck=("width", [MOST, *[0.0] * (len(self.ratio) - 1)]),
            small=0.0,
            minima=1.0,  # whether the Hessian is positive definite where they are stuck
            split=1.0,  # whether some split leads down there
            split_factor=4.0,  # second derivative of the risk along the split over uᵀMu
        )

    def observe(self, setting, key):
        k = self.teacher
        for_students, for_designed = jax.random.split(key)
        rng = kit.numpy_generator(for_designed)
        widths = np.array([*self.widths, self.small])
        sizes = np.array([k] * len(self.widths) + [self.small])
        shape = (max(self.widths), k)

        def train(width: jax.Array, size: jax.Array, seeds: jax.Array) -> tuple:
            def one(key: kit.Key) -> tuple:
                start = draw_start(key, shape, width, size)
                return descend_student(start, draw_teacher(size, k), self.lr, self.steps)

            return jax.vmap(one)(seeds)

        def train_all(key: kit.Key) -> tuple:
            seeds = kit.keys(key, len(widths) * self.seeds).reshape(len(widths), self.seeds)
            return jax.lax.map(lambda lane: train(*lane), (widths, sizes, seeds))

        weights, risks, _ = map(np.asarray, kit.compiled(train_all)(for_students))
        teacher = np.eye(k)
        order = np.argsort(-risks[0])
        last = max(int((risks[0] > STUCK).sum()), 1) - 1
        chosen = order[np.linspace(0, last, POINTS).round().astype(int)]
        points = weights[0, chosen, : self.widths[0]]
        # some arrive late: what is certified goes on twice as long
        further = jax.vmap(lambda w: descend_student(w, teacher, self.lr, 2 * self.steps)[0])
        points = np.asarray(kit.compiled(further)(points))
        arrived = np.repeat(weights[0, order[-1:], : self.widths[0]], POINTS, 0)
        critical = strict_saddles(lambda w: teacher_risk(w, teacher)[0], points)
        forms, halves = self.parted(points)
        _, arrived_halves = self.parted(arrived)
        risk_of = kit.compiled(jax.vmap(lambda w: teacher_risk(w, teacher)[0]))
        after = np.asarray(risk_of(np.concatenate([halves, arrived_halves])))
        values = np.array([point.value for point in critical])
        return kit.seen(
            risk=("width seed", risks[:-1]),
            small=("seed", risks[-1]),
            value=("point", values),
            slope=("point", [point.gradient for point in critical]),
            lowest=("point", [point.lowest for point in critical]),
            eigenvalues=("point eigenvalue", [point.eigenvalues for point in critical]),
            # R(s) = R + ½R″s² + …
            split=("point", 2 * (after[:POINTS] - values) / PUSH**2),
            split_form=("point", forms),
            # the same where a student arrived
            arrived_split=("point", 2 * (after[POINTS:] - risks[0, order[-1]]) / PUSH**2),
            **measure_designed(rng, k, self.teachers, self.inputs),
        )

    def parted(self, points: np.ndarray) -> tuple[list[float], np.ndarray]:
        """Return the least uᵀMu over neurons at each point, and the student with that neuron split and parted."""
        forms = []
        halves = []
        for weights in points:
            ways = [split_direction(weights, neuron) for neuron in range(len(weights))]
            best = int(np.argmin([form for form, _ in ways]))
            forms.append(ways[best][0])
            halves.append(split(weights, best, ways[best][1], PUSH))
        return forms, np.stack(halves)

    def run_conditions(self, observed):
        yield kit.assume(
            "largest ‖∇R‖ where students are stuck",
            float(observed["slope"].max()),
            "<=",
            1e-6,
            "raise --steps: they may be slow and not stuck",
        )
        yield kit.assume(
            "least risk there", float(observed["value"].min()), ">", STUCK, "none is stuck"
        )

    def judge(self, law, seen):
        k = self.teacher
        stuck = (seen.risk > STUCK).astype(float)
        checks = []
        for i, (m, ratio) in enumerate(zip(self.widths, self.ratio, strict=True)):
            wide = FEW if ratio >= 2 else RARE
            checks.append(
                kit.share(
                    f"stuck_wider_{i - 1}" if i else "stuck_equal",
                    law.stuck.isel(width=i, drop=True),
                    stuck.isel(width=i, drop=True),
                    wide if i else MOST / 2,
                    label=f"share stuck, m = {m}, k = {k}",
                )
            )
        holds_at_all = lambda id, label, array: kit.follows(
            id, law[id], array.astype(float), 0.25, absolute=True, each=True, label=label
        )
        yield from checks
        yield kit.share(
            "stuck_small",
            law.small,
            (seen.small > STUCK).astype(float),
            FEW,
            label=f"share stuck, m = k = {self.small}",
        )
        yield holds_at_all(
            "minima",
            "stuck points: whether the Hessian is positive definite",
            seen.lowest >= STRICT,
        )
        yield holds_at_all(
            "split", "stuck points: whether a split neuron leads down", seen.split < -STRICT
        )
        yield kit.follows(
            "split_factor",
            law.split_factor,
            seen.split / seen.split_form,
            # of third order in the push: 10⁻⁴ times a number of order ten
            0.002,
            each=True,
            label="second derivative along the split / uᵀMu",
        )
        yield from self.judge_designed(law, seen)

    def judge_designed(self, law, seen):
        """Compare where ascents of the objective by moments end with where its maxima are."""
        yield kit.follows(
            "designed",
            law.arrived,
            seen.arrived.astype(float).mean("start"),
            0.05,  # spurious maxima of the noise: none to one in a thousand with 30 000 inputs
            each=True,
            label="He₄: share of ascents that end at a neuron, each teacher",
        )
        yield kit.follows(
            "designed_reached",
            law.reached,
            seen.reached,
            0.15,  # the interval is up to 8 % after five ascents
            label="He₄: neurons that so many ascents come to",
        )
        yield kit.follows(
            "designed_height",
            law.height,
            seen.height,
            0.12,  # noise lifts ends by 2 to 3 %; the mean over directions has an interval of 5 %
            label="−√(2π) E y He₄ of random directions, and where ascents end",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "width k suffices", "a student of k neurons can be the teacher", stuck=0 * law.stuck
        )
        yield kit.rival(
            "twice the width is stuck as often",
            "Ge conjectures poly(k) neurons",
            stuck=0 * law.stuck + MOST,
        )
        yield kit.rival("small teachers are as hard", "a teacher is a teacher", small=MOST)
        yield kit.rival(
            "stuck means at a saddle", "gradient descent leaves strict saddles slowly", minima=0.0
        )
        yield kit.rival(
            "a split minimum is a minimum",
            "splitting a neuron does not change the function",
            split=0.0,
        )
        yield kit.rival(
            "the second derivative is 2 uᵀMu", "δ(w·x) is taken for δ(w·x/2)", split_factor=2.0
        )
        yield from self.rivals_of_designed(law)

    def rivals_of_designed(self, law):
        """Return wrong theories of the objective by moments, and of where its ascents end."""
        k = self.teacher
        yield kit.rival(
            "as many ascents get stuck as students",
            "the same teacher, and no more neurons",
            arrived=1 - MOST,
        )
        yield kit.rival(
            "2k(1 − (1 − 1/2k)^M) neurons after M ascents",
            "a and −a are different maxima",
            reached=2 * k * (1 - (1 - 1 / (2 * k)) ** law.tries),
        )
        yield kit.rival(
            "a new neuron at each ascent",
            "so it is where neurons that were found are excluded",
            reached=np.minimum(law.tries, k),
        )
        yield kit.rival(
            "Σc⁴ = 1/k of a random direction",
            "squares of overlaps are 1/k on average",
            height=("place", [1 / k, 1.0]),
        )
        yield kit.rival(
            "half of −√(2π) E y He₄ again",
            "a neuron is off on the others, and [z]_+ is |z|/2 + z/2",
            height=law.height / 2,
        )

    def controls(self, seen):
        turned = seen.risk.isel(width=slice(None, None, -1)).values
        yield kit.control(
            "the widest students for those as wide as the teacher, and the reverse",
            "wide students arrive",
            id="widths_exchanged",
            risk=(seen.risk.dims, turned),
        )
        yield kit.control(
            "the large teacher for the small one",
            "it is large enough to be stuck on",
            small=seen.risk.isel(width=0, drop=True),
        )
        yield kit.control(
            "the curvature where one neuron is split", "it may be split", lowest=seen.split
        )
        yield kit.control(
            "students that arrived",
            "at zero risk no split leads down",
            id="arrived",
            split=seen.arrived_split,
        )
        yield from (
            kit.control(
                f"He_{degree} in place of He₄",
                why,
                id=f"he_{degree}",
                **{name: seen[prefix + name] for name in ("arrived", "reached", "height")},
            )
            for degree, prefix, why in (
                (2, "second_", "its mean product with the labels is constant on the sphere"),
                (3, "third_", "its mean product with the labels is zero"),
            )
        )

    def figure(self, law, seen, rivals):
        risks = np.maximum(np.sort(seen.risk.values, axis=1), 1e-12)
        share = np.arange(1, risks.shape[1] + 1) / risks.shape[1]
        count = np.arange(1, seen.sizes["eigenvalue"] + 1)
        order = np.argsort(seen.value.values)
        number = np.arange(1, len(order) + 1)
        form = seen.split_form.values[order]
        ends = [
            kit.observed_curve(risk, share, f"m = {m}", kind="steps", shade=i / len(self.widths))
            for i, (risk, m) in enumerate(zip(risks, self.widths, strict=True))
        ]
        yield kit.panel(
            "Students as wide as the teacher end above zero",
            "risk at the end",
            "share of students at most there",
            *ends,
            kit.context_curve((STUCK, STUCK), (0, 1), "stuck beyond", kind="dashed"),
            log="x",
        )
        yield kit.panel(
            "Where they are stuck all eigenvalues are positive",
            "eigenvalue, by rank",
            "Hessian",
            kit.observed_curve(count, seen.eigenvalues.values),
            log="y",
        )
        yield kit.panel(
            "Split a neuron: a saddle",
            "stuck student, by risk",
            "curvature",
            kit.observed_curve(number, seen.lowest.values[order], "λ_min", kind="points"),
            kit.observed_curve(
                number, seen.split.values[order], "along the split", kind="points", shade=0.6
            ),
            kit.predicted_curve(number, 4 * form, "4 uᵀMu"),
            kit.rival_curve(number, 2 * form, "2 uᵀMu"),
        )
