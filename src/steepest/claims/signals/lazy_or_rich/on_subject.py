"""Lazy or rich, on a reader's own network at several widths."""

from dataclasses import dataclass

import numpy as np

from steepest import kit
from steepest.claims.signals._trained_widths import IDS, SLOPES
from steepest.claims.signals.lazy_or_rich.claim import LazyOrRich
from steepest.core.errors import UserError
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.linalg import top_eigenpairs
from steepest.measurement import kernel_matrix
from steepest.measurement.adapters import Subject, gradient_seconds

# Of plain descent with one step size. The first layer's tangent kernel is of order one, that of the others of order n:
# when the output has moved by order one, after a time 1/n, the first layer has moved by n^(-1) n^(-1/2), as ∂f/∂z is
# of order n^(-1/2) in every neuron, and the others as in the NTK parameterization.
STANDARD = (0, -1.5, -0.5, -1)
OF_SUBJECTS = {"standard": STANDARD, **{k: SLOPES[k] for k in ("ntk", "mup", "mean-field")}}
COLUMNS = 40  # of the tangent kernel, outputs times examples, at most
# by about half of it the exponents are off: dlog(1 + c/n)/dlog n = −c/n, which falls by 1/n from the smallest width on
FIRST = 0.05
TOP = 0.05  # tolerance of the largest eigenvalue, which only sets the step size


PARTS_OF_A_NETWORK = {
    "output": "the output",
    "first": "the first layer, beside the output,",
    "second": "the second layer, beside the output,",
    "kernel": "the tangent kernel, beside the output,",
}


@dataclass(frozen=True)
class LazyOnSubject(OnSubject, LazyOrRich):
    """Your network at several widths, descended with all examples at once until the risk has fallen."""

    parameterizations: tuple[str, ...] = kit.param(
        ("standard",),
        "how the width enters it: standard (weights like 1/√fan-in, and no multipliers), ntk, mup or mean-field",
        unit="name",
    )
    widths: tuple[kit.Positive, ...] = kit.param(
        (1.0, 2.0, 4.0, 8.0), "given to your function as width=", unit="your unit"
    )
    examples: kit.Count = kit.param(40, "examples of yours at most, drawn by class")
    target: kit.Fraction = kit.param(0.2, "share of the risk at the start, at which descent stops")
    step: kit.Positive = kit.param(
        0.2, "step size as a share of 2/λ_max of the Gauss–Newton matrix at the start"
    )
    seeds: kit.Seeds = kit.param(16, "initial networks at each width")

    says = (
        "The hidden layers and the tangent kernel of your network move with the powers of the "
        "width that its parameterization has."
    )
    settable = ("parameterizations", "widths", "examples", "target", "step", "most", "seeds")
    needs = {
        "seed": "as the law is about networks drawn at random",
        "width": "a factor of its hidden widths, as the law is about how changes depend on it",
    }
    unchecked = ("its width enters as in the parameterization that was named",)
    notes = (
        "Descent is ours and plain, with all examples at once and your loss, at a step far below the stable one of "
        "each width, so that it follows gradient flow. Your optimizer and its step sizes are not used.",
        "In the standard parameterization, which is torch's, the first layer is lazier than in the NTK's: it moves "
        "like n^(-3/2), as its kernel does not grow with n and that of the other layers does.",
        "That the first layer's share of the tangent kernel must be small was asked after a network of 64 to 512 "
        "neurons had the exponents −1.3 and −0.65.",
        "First and second layer are the first and the last hidden layer that your network has.",
    )

    plainly = {
        f"change_{law}_{part}": Plainly(f"the power of the width with which {what} changes")
        for law in ("ntk", "mup")
        for part, what in PARTS_OF_A_NETWORK.items()
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        ids = tuple(
            f"change_{self.parameterizations[0].replace('-', '_')}_{what}" for what in IDS[1:]
        )
        object.__setattr__(self, "headline", ids)

    def check_fields(self) -> None:
        if len(self.parameterizations) != 1 or self.parameterizations[0] not in OF_SUBJECTS:
            raise UserError(
                f"--parameterizations takes one of {', '.join(OF_SUBJECTS)}: that of your network; got "
                f"{' '.join(self.parameterizations) or 'none'}"
            )

    def setting(self, key):
        """Build the narrowest networks, and descend with the first, which tells how many steps it takes."""
        networks = self.build_all(most=self.examples, width=min(self.widths))
        first = networks.subjects[0]
        if len(self.hidden(first)) < 1:
            raise UserError(f"{first.name} has no hidden layer whose change could be measured")
        wide = self.at_width(max(self.widths), 0)
        if wide.size <= first.size:
            raise UserError(
                f"{self.builder.where} builds {first.size} weights at width={min(self.widths):g} and {wide.size} at "
                f"width={max(self.widths):g}; let width multiply its hidden widths"
            )
        _, steps = self.descended(first)
        facts = {
            "steps": steps,
            "narrow": self.narrowest(first),
            "slower": gradient_seconds(wide) / gradient_seconds(first),
        }
        return Networks(networks.built, networks.subjects, facts)

    def hidden(self, subject: Subject) -> list[str]:
        """Return the names of the hidden layers, first to last."""
        return list(subject.layers())[:-1]

    def narrowest(self, subject: Subject) -> int:
        """Return the number of neurons, or channels, of the narrowest hidden layer."""
        written = subject.layers()
        return min(written[name].shape[1] for name in self.hidden(subject))

    def at_width(self, width: float, place: int, like: Subject | None = None) -> Subject:
        """Return the network of one width and seed."""
        built = self.build(place, width=width)
        return self.drawn(self.attached(built, like=like), self.examples)

    def hypotheses(self, setting):
        larger = "the exponents are for wide networks: choose larger --widths"
        first = []
        if self.parameterizations == ("standard",):
            shares = [self.first_share(subject) for subject in setting.subjects]
            name = "share of the first layer in the tangent kernel at the smallest width"
            first.append(kit.assume(name, float(np.mean(shares)), "<=", FIRST, larger))
        return [
            *first,
            kit.assume("step size / (2/λ_max)", self.step, "<", 1, "choose a --step below 1"),
            kit.assume(
                "neurons of the narrowest hidden layer at the smallest width",
                setting.facts["narrow"],
                ">=",
                50,
                larger,
            ),
        ]

    def first_share(self, subject: Subject) -> float:
        """Return the share of the first layer's weights in the trace of the tangent kernel."""
        few = self.drawn(subject, self.few(subject))
        shape = few.outputs()[0].shape
        layer = few.weights[0].name.rpartition(".")[0]
        first = [one.place for one in few.weights if one.name.rpartition(".")[0] == layer]
        # pulled back, the unit vector of output o is row o of the Jacobian, ∂f_o/∂θ
        rows = [few.vjp(unit.reshape(shape)) for unit in np.eye(int(np.prod(shape)))]
        # tr Θ = Σ_θ Σ_o (∂f_o/∂θ)², of which each weight has its own part
        squares = (np.array(rows, float) ** 2).sum(0)
        return float(sum(squares[place].sum() for place in first) / squares.sum())

    def few(self, subject: Subject) -> int:
        """Return how many examples the tangent kernel has."""
        return max(2, COLUMNS // max(1, subject.outputs()[0][0].size))

    def cost(self, networks):
        count = self.count * len(self.widths)
        slower = (1 + networks.facts["slower"]) / 2  # than the narrowest, in the mean over widths
        gradients = count * networks.facts["steps"] * slower
        products = count * (2 * 2 * COLUMNS + 20) * slower
        return Cost(
            gradients=gradients, products=products, builds=count, shapes=2 * len(self.widths)
        )

    @property
    def exponents(self) -> list[tuple[float, ...]]:
        return [OF_SUBJECTS[name] for name in self.parameterizations]

    def observe(self, setting, key):
        measured = []
        for width in self.widths:
            like: Subject | None = None
            of_width = []
            for place in range(self.count):
                start = self.at_width(width, place, like)
                like = like or start  # one compiled program for all networks of a width
                end, taken = self.descended(start)
                risk = end.risk() / start.risk()
                of_width.append([*self.changes(start, end), taken, risk])
            measured.append(of_width)
        *changes, steps, loss = np.moveaxis(np.array(measured, float), (0, 1, 2), (2, 1, 0))
        dims = "parameterization seed width"
        return kit.seen(
            change=(f"{dims} what", np.stack(changes, -1)[None]),
            steps=(dims, steps[None], "steps"),
            loss=(dims, loss[None]),
        )

    def descended(self, start: Subject) -> tuple[Subject, int]:
        """Descend until the risk is the target's share of that at the start; return where, and the steps taken."""
        anywhere = np.random.default_rng(0).standard_normal(start.size).astype(start.dtype)
        product = lambda v: start.products(v, "gauss-newton")
        top = top_eigenpairs(product, anywhere, tolerance=TOP, limit=40)
        # 2/λ_max is the edge: beyond it descent on the quadratic model diverges
        lr = self.step * 2 / float(top.values[0])
        now = start
        values = start.values().astype(float)
        goal = self.target * start.risk()
        for step in range(self.most):
            if not now.risk() > goal:  # reached, or no number
                return now, step
            values = values - lr * np.asarray(now.gradient(), float)
            now = start.at(values.astype(start.dtype))
        return now, self.most

    def changes(self, start: Subject, end: Subject) -> list[float]:
        """Return root mean square changes of outputs, first and last hidden layer, and the kernel's relative change."""
        before = start.layers()
        after = end.layers()
        rms = lambda a, b: float(np.sqrt(np.mean((np.asarray(b, float) - a) ** 2)))
        hidden = self.hidden(start)
        of_layers = [rms(before[name], after[name]) for name in (hidden[0], hidden[-1])]
        outputs = rms(start.outputs()[0], end.outputs()[0])
        few = self.few(start)
        first, last = (
            np.asarray(kernel_matrix(self.drawn(one, few)), float) for one in (start, end)
        )
        kernel = float(np.linalg.norm(last - first) / np.linalg.norm(first))
        return [outputs, *of_layers, kernel]

    def run_conditions(self, observed):
        reached = observed["loss"].max() / self.target
        return [kit.assume("largest risk at the end / target", reached, "<=", 1, "raise --most")]

    def controls(self, seen):
        if any(self.exponents[0]):
            return [self.one_width(seen)]
        # of networks that keep moving those of one width tell nothing
        narrower = (seen.width / seen.width[0]) ** -0.5
        lazier = seen.change.where(seen.what == "output", seen.change * narrower)
        return [
            kit.control(
                "changes that fall by n^(-1/2) more than the changes of your network",
                "features must not fall with width",
                id="lazier",
                change=lazier.transpose(*seen.change.dims),
            )
        ]
