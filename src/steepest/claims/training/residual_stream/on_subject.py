"""The residual stream of a reader's own network as it is built: variance and gradients, block by block."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import xarray
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.training.residual_stream.claim import ResidualStream
from steepest.core.errors import UserError
from steepest.kit.subjects import Cost, Networks, OnSubject, Plainly
from steepest.measurement.adapters import Subject, in_evaluation, is_torch_module, on_rows

FEWEST = 6  # blocks: of fewer a tilt of the law by the root of depth is inside the margin
LOOKED_AT = 8  # blocks at most, on a logarithmic scale
PASSED_ON = 0.7  # of the stream; behind a normalization of the sum it is 1/√(1 + c)
LEAST_GROWTH = 0.2  # c L: below it a stream that stays is inside the margin


class Passage(NamedTuple):
    """What one block does to the stream, over all examples, positions and neurons.

    Attributes:
        read: mean square of the stream before it.
        written: mean square behind it.
        added: mean square of the difference.
        passed_on: coefficient of the stream before it in the one behind it.
    """

    read: float
    written: float
    added: float
    passed_on: float


class Call(NamedTuple):
    """One call of a block, ``(examples, …)`` both."""

    name: str
    before: NDArray
    behind: NDArray


class Signals(NamedTuple):
    """What is read of one network.

    Attributes:
        stream: mean square behind each block over that before block one, ``(blocks,)``.
        added: mean square of what each block adds, over that of block one, ``(blocks,)``.
        gradient: root mean square over single examples of the gradient's norm in the weights of each block, over that
            of block one, ``(blocks,)``.
    """

    stream: NDArray
    added: NDArray
    gradient: NDArray


@dataclass(frozen=True)
class StreamOnSubject(OnSubject, ResidualStream):
    """Your network as it is built, on a few of your examples."""

    depths: tuple[kit.Count, ...] = kit.param((FEWEST,), "L", unit="blocks")
    seeds: kit.Seeds = kit.param(12, "networks, if your function takes a seed")
    draws: kit.Count = kit.param(24, "other networks, of which block one alone says c")
    examples: kit.Count = kit.param(16, "examples of yours at most")

    says = (
        "The stream of your network has variance 1 + cl behind block l, with the c of block one, and the block's "
        "gradient falls as (1 + cl)^(−½)."
    )
    headline = ("stream", "gradient")
    settable = ("seeds", "draws", "examples")
    not_told = {
        f"{law}.block.halved": "over a few blocks the law grows or falls by less than the margin tells"
        for law in ("stream", "gradient")
    }
    left_out = {
        "last": "it needs networks of several depths",
        "post": "it is of networks of ours that normalize the sum",
    }
    unchecked = (
        "your function returns it as it starts",
        "its blocks read the stream through a normalization",
        "they send back the factor by which they add to it",
    )
    notes = (
        "Blocks are the longest chain of modules of one kind in a container, of which each reads what the last one "
        "wrote, in its shape. Nothing is trained.",
        "c is the mean square of what block one adds, in other networks than those that are asked, over the stream's "
        "mean square before it. Gradients are of the loss of single examples, in all weights of a block.",
        "Attention averages over positions and makes them alike; later blocks then average less away and add up to 1.6 "
        "times what block one adds. Behind twelve blocks of torch's encoder the stream is 15 to 35 % above 1 + cl, and "
        "gradients are up to a fifth off: there the claim does not hold.",
        "With tanh a block sends back more than it adds, and gradients fall faster; with GELU a tenth faster.",
        "The same judge must refuse your network with its normalizations replaced by a division by the size that the "
        "stream has at the start; where no module is called a norm, the blocks in the opposite order.",
    )

    plainly = {
        "stream": Plainly("the variance of the stream over that before the blocks"),
        "gradient": Plainly("the gradient of a block over the first block's"),
    }

    def check_fields(self) -> None:
        """Allow any depth: it is that of the reader's network."""

    def setting(self, key):
        if not is_torch_module(self.build().model):
            raise UserError(
                "residual-stream looks into modules of torch while they run; of a pair of JAX it sees the outputs only"
            )
        networks = self.build_all(most=self.examples)
        model = networks.built[0].model
        blocks = blocks_of(model, networks.subjects[0])
        facts = {"blocks": blocks, "norms": norms_of(model, networks.subjects[0], blocks)}
        return Networks(networks.built, networks.subjects, facts)

    def read(self, networks):
        return {"depths": (len(networks.facts["blocks"]),)}

    def axes(self):
        marks = np.geomspace(2, self.depths[0], LOOKED_AT).round().astype(int)
        return {"block": tuple(np.unique(marks).tolist())}

    def prepare(self, networks, key):
        """Run block one of other networks, and read how large the stream before it is in those that are asked."""
        first = networks.facts["blocks"][0]
        alone = lambda built, subject: passages(built.model, subject, (first,))[0]
        asked = [
            alone(built, subject)
            for built, subject in zip(networks.built, networks.subjects, strict=True)
        ]
        fresh = [alone(built, subject) for built, subject in self.fresh(networks)]
        drawn = fresh or asked
        added = np.array([passage.added for passage in drawn])
        facts = {
            "start": np.array([passage.read for passage in asked]),
            "added": float(added.mean()),
            "unsure": float(added.std(ddof=1) / len(added) ** 0.5) if len(added) > 1 else 0.0,
            "passed_on": float(np.mean([passage.passed_on for passage in asked])),
        }
        return Networks(networks.built, networks.subjects, {**networks.facts, **facts})

    def fresh(self, networks: Networks) -> Iterator[tuple[Any, Subject]]:
        """Build networks of other seeds, each on the same examples; none if the function takes no seed."""
        if not self.several:
            return
        first = networks.subjects[0]
        for place in range(self.count, self.count + self.draws):
            built = self.build(place)
            subject = self.attached(built, like=first)
            subject.batches = first.batches
            yield built, subject

    def hypotheses(self, setting):
        facts = setting.facts
        depth = len(facts["blocks"])
        share = facts["added"] / facts["start"].mean()
        yield kit.assume("blocks of the stream", depth, ">=", FEWEST, "build a deeper network")
        yield kit.assume(
            "part of the stream that block one passes on",
            facts["passed_on"],
            ">=",
            PASSED_ON,
            "these modules add to no stream",
        )
        yield kit.assume(
            "layers of batch normalization in the blocks",
            batch_norms(setting.built[0].model, facts["blocks"]),
            "<=",
            0,
            "single examples have no statistics of a batch",
        )
        yield kit.assume(
            "smallest number of trained weights in a block",
            min(
                sum(name.startswith(f"{block}.") for name in names_of(setting))
                for block in facts["blocks"]
            ),
            ">=",
            1,
        )
        yield kit.assume(
            "growth of the stream that c says, c L",
            float(share * depth),
            ">=",
            LEAST_GROWTH,
            "a stream that hardly grows tells no law from another: build a deeper network",
        )
        yield kit.assume(
            "standard error of c, over c",
            facts["unsure"] / max(facts["added"], 1e-300),
            "<=",
            0.05,
            "choose more --draws",
        )

    def cost(self, networks):
        count = len(networks)
        drawn = self.draws if self.several else 0
        return Cost(
            passes=3 * count + drawn,
            builds=drawn,
            gradients=2 * count * self.examples,  # of single examples, in two worlds
        )

    def predict(self, setting):
        share = setting.facts["added"] / setting.facts["start"]
        grown = lambda block: 1 + np.outer(self.stacked(share), block)
        blocks = np.array(self.axes()["block"], float)
        return kit.law(
            stream=("seed block", grown(blocks)),
            gradient=("seed block", np.sqrt(grown(np.ones(1)) / grown(blocks))),
        )

    def observe(self, setting, key):
        blocks = setting.facts["blocks"]
        places = np.array(self.axes()["block"]) - 1
        worlds: dict[str, list[Signals]] = {"": [], "_unnormalized": []}
        for built, subject, start in zip(
            setting.built, setting.subjects, setting.facts["start"], strict=True
        ):
            worlds[""].append(signals(built.model, subject, blocks))
            with divided(built.model, setting.facts["norms"], float(start) ** 0.5):
                worlds["_unnormalized"].append(signals(built.model, subject, blocks))
        arrays = {}
        for world, networks in worlds.items():
            for name in Signals._fields:
                of_networks = [getattr(network, name)[places] for network in networks]
                arrays[name + world] = ("seed block", self.stacked(of_networks))
        return kit.seen(**arrays)

    def judge(self, law, seen):
        yield kit.follows(
            "stream",
            law.stream,
            seen.stream,
            0.15,  # L/d is up to 5 % of it, c as much, and what is left the interval takes
            label="variance of the stream over that at the start",
        )
        yield kit.follows(
            "gradient",
            law.gradient,
            seen.gradient,
            0.15,  # the same; on smooth activations what is sent back is not quite what is added
            label="gradient of a block over the gradient of block one",
        )

    def rivals(self, setting, law):
        share = (law.stream - 1) / law.block
        yield kit.rival(
            "(1 + c)^l",
            "each block adds a part of the variance that it reads",
            id="exponential",
            stream=(1 + share) ** law.block,
        )
        yield kit.rival(
            "(1 + c)^(−(l − 1)/2)",
            "gradients would fall as fast",
            gradient=(1 + share) ** ((1 - law.block) / 2),
        )
        yield kit.rival(
            "the same gradient at every block",
            "residual connections pass gradients on as they are, or divide all by √L",
            id="all_alike",
            gradient=xarray.ones_like(law.gradient),
        )

    def controls(self, seen):
        if bool((seen.stream_unnormalized != seen.stream).any()):
            return [
                kit.control(
                    "your blocks without their normalization",
                    "then blocks add a part of what they read",
                    id="unnormalized",
                    stream=seen.stream_unnormalized,
                    gradient=seen.gradient_unnormalized,
                )
            ]
        turned = lambda array: array.copy(data=array.values[:, ::-1])
        return [
            kit.control(
                "your blocks from the last to the first",
                "a stream grows with depth",
                stream=turned(seen.stream),
                gradient=turned(seen.gradient),
            )
        ]

    def figure(self, law, seen, rivals):
        blocks = np.array(self.axes()["block"], float)
        mean = lambda array: array.mean("seed").values
        wrong = (
            [kit.rival_curve(blocks, mean(rivals["exponential"].stream), "(1 + c)^l")]
            if rivals
            else []
        )
        yield kit.panel(
            "The stream of your network",
            "block l",
            "variance over that at the start",
            kit.observed_curve(blocks, seen.stream.values, "your network"),
            kit.predicted_curve(blocks, mean(law.stream), "1 + cl"),
            *wrong,
            log="xy",
        )
        yield kit.panel(
            "Gradients of its blocks",
            "block l",
            "gradient / gradient of block one",
            kit.observed_curve(blocks, seen.gradient.values, "your network"),
            kit.predicted_curve(blocks, mean(law.gradient), "(1 + cl)^(−½)"),
            log="xy",
        )
        yield kit.panel(
            "What its blocks add",
            "block l",
            "variance added / variance added by block one",
            kit.observed_curve(blocks, seen.added.values, "your network"),
            kit.predicted_curve(blocks, np.ones_like(blocks), "all alike"),
            log="x",
        )


# --------------------------------------------------------------------------------- what a network is made of


def blocks_of(model: Any, subject: Subject) -> tuple[str, ...]:
    """Find the blocks of the stream by name, first to last: the longest chain of modules of one kind.

    Args:
        model: a module of torch.
        subject: the same with its examples.

    Raises:
        UserError: no chain of two modules or more.
    """
    groups = list(_groups(model))
    names = [name for group in groups for name in group]
    calls = list(recorded(model, subject, names))
    times = [call.name for call in calls]
    chains = []
    for group in groups:
        ran = [call for call in calls if call.name in group]
        once = all(times.count(name) == 1 for name in group)
        if once and _is_chain(ran):
            chains.append(tuple(call.name for call in ran))
    if not chains:
        raise UserError(
            f"{subject.name} has no blocks of one kind, each of which reads what the last one wrote and returns its "
            "shape; put the blocks of its residual stream into an nn.ModuleList or an nn.Sequential, and call each once"
        )
    return max(chains, key=len)


def _groups(model: Any) -> Iterator[tuple[str, ...]]:
    """Yield the names of the parts of each container that are of one kind and have weights, where they are several."""
    for name, container in model.named_modules():
        kinds: dict[type, list[str]] = {}
        for child, part in container.named_children():
            if next(part.parameters(), None) is not None:
                kinds.setdefault(type(part), []).append(f"{name}.{child}" if name else child)
        yield from (tuple(names) for names in kinds.values() if len(names) > 1)


def _is_chain(calls: list[Call]) -> bool:
    """Whether each block reads what the last one wrote, in one shape."""
    if len(calls) < 2 or any(call.before.shape != call.behind.shape for call in calls):
        return False
    return all(np.array_equal(call.behind, after.before) for call, after in pairwise(calls))


def norms_of(model: Any, subject: Subject, blocks: tuple[str, ...]) -> tuple[str, ...]:
    """Find the modules inside the blocks that are called norms, and read and write the shape of the stream."""
    named = [
        name
        for name, part in model.named_modules()
        if "norm" in type(part).__name__.lower()
        and any(name.startswith(f"{block}.") for block in blocks)
    ]
    calls = list(recorded(model, subject, [blocks[0], *named]))
    shape = next(call.before.shape for call in calls if call.name == blocks[0])
    alike = {call.name for call in calls if call.before.shape == call.behind.shape == shape}
    return tuple(name for name in named if name in alike)


def batch_norms(model: Any, blocks: tuple[str, ...]) -> int:
    """Count the layers of batch normalization inside the blocks."""
    return sum(
        "batchnorm" in type(part).__name__.lower()
        and any(name.startswith(f"{block}.") for block in blocks)
        for name, part in model.named_modules()
    )


def names_of(networks: Networks) -> list[str]:
    """Return the names of the arrays of weights that are trained."""
    return [weight.name for weight in networks.subjects[0].weights]


# ------------------------------------------------------------------------------------- what runs through it


def signals(model: Any, subject: Subject, blocks: tuple[str, ...]) -> Signals:
    """Return streams and gradients of one network as it is now."""
    run = passages(model, subject, blocks)
    added = np.array([passage.added for passage in run])
    stream = np.array([passage.written for passage in run]) / run[0].read
    squares = gradient_squares(model, subject, blocks)
    with np.errstate(divide="ignore", invalid="ignore"):  # a world may pass nothing on
        return Signals(stream, added / added[0], np.sqrt(squares / squares[0]))


def passages(model: Any, subject: Subject, blocks: tuple[str, ...]) -> list[Passage]:
    """Return what each block does to the stream of all examples."""
    return [passage(call) for call in recorded(model, subject, blocks)]


def passage(call: Call) -> Passage:
    """Return mean squares of what a block reads, writes and adds."""
    square = lambda array: float((array**2).mean())
    # least squares of what is written on what is read
    along = float((call.before * call.behind).mean())
    before = square(call.before)
    added = square(call.behind - call.before)
    return Passage(before, square(call.behind), added, along / before if before else 0.0)


def gradient_squares(model: Any, subject: Subject, blocks: tuple[str, ...]) -> NDArray:
    """Return the mean square over single examples of the gradient's norm in each block, ``(blocks,)``."""
    places = [
        [weight.place for weight in subject.weights if weight.name.startswith(f"{block}.")]
        for block in blocks
    ]
    count = sum(number for _, number in subject.batches)
    total = np.zeros(len(blocks))
    with in_evaluation(model):
        for row in range(count):
            slope = np.asarray(on_rows(subject, np.array([row])).gradient(), float)
            squares = slope**2
            total += [sum(float(squares[place].sum()) for place in of_block) for of_block in places]
    return total / count


def recorded(model: Any, subject: Subject, names: tuple[str, ...] | list[str]) -> Iterator[Call]:
    """Pass all examples once and yield what these modules read and wrote, in the order of their calls."""
    calls: list[Call] = []

    def watching(name: str) -> Callable[..., None]:
        def hook(part: Any, given: tuple, named: dict, out: Any) -> None:
            before = _first_tensor((*given, *named.values()))
            behind = _first_tensor(out if isinstance(out, tuple | list) else (out,))
            if before is not None and behind is not None:
                calls.append(Call(name, _as_array(before), _as_array(behind)))

        return hook

    with hooked(model, {name: watching(name) for name in names}, with_kwargs=True):
        # weights of its own, as a graph that was kept would call nothing; and not the outputs, as torch's encoder then
        # calls none of its parts
        subject.at(subject.values()).risk()
    yield from calls


@contextmanager
def divided(model: Any, norms: tuple[str, ...], size: float) -> Iterator[None]:
    """Let these modules divide what they read by a number, the same for all, and normalize nothing."""
    divisor = max(size, 1e-30)
    divide = lambda part, given, out: given[0] / divisor
    with hooked(model, dict.fromkeys(norms, divide)):
        yield


@contextmanager
def hooked(model: Any, hooks: Mapping[str, Callable], **how: Any) -> Iterator[None]:
    """Call these functions behind the modules of these names, in evaluation mode."""
    with ExitStack() as stack:
        stack.enter_context(in_evaluation(model))
        for name, hook in hooks.items():
            handle = model.get_submodule(name).register_forward_hook(hook, **how)
            stack.callback(handle.remove)
        yield


def _first_tensor(values: Any) -> Any:
    """Return the first real tensor among some values, or None."""
    return next(
        (
            value
            for value in values
            if hasattr(value, "is_floating_point") and value.is_floating_point()
        ),
        None,
    )


def _as_array(tensor: Any) -> NDArray:
    """Return a copy of a tensor's numbers in double precision."""
    return tensor.detach().float().cpu().numpy().astype(float)
