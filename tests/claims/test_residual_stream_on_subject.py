"""The residual stream of a reader's network: its blocks, what they do to it, and what the law says."""

import numpy as np
import pytest

from steepest.claims.training.residual_stream import on_subject
from steepest.claims.training.residual_stream.on_subject import Call, StreamOnSubject
from steepest.core.errors import UserError
from steepest.core.words import Verdict
from steepest.kit.subjects import Networks
from steepest.measurement import Builder
from steepest.measurement.adapters import subject as attach
from tests.claims.on_subject import asked, broken, rejections
from tests.extras import need

torch = need("torch")
nn = torch.nn
RNG = np.random.default_rng(0)
X = torch.as_tensor(RNG.standard_normal((12, 20)), dtype=torch.float32)
Y = torch.as_tensor(RNG.integers(0, 3, 12))
WIDTH = 96


class Block(nn.Module):
    """A ReLU block of variance one half, which reads through a normalization, or is normalized with what it adds to."""

    def __init__(self, width, kind="pre"):
        super().__init__()
        self.kind = kind
        self.norm = nn.LayerNorm(width)
        self.first = nn.Linear(width, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        for layer in (self.first, self.second):
            nn.init.normal_(layer.weight, std=width**-0.5)

    def forward(self, x):
        if self.kind == "post":
            return self.norm(x + self.second(self.first(x).relu()))
        added = self.second(self.first(self.norm(x)).relu())
        return added if self.kind == "plain" else x + added


class Residual(nn.Module):
    """Blocks in a list, between an embedding and a normalization with a linear layer."""

    def __init__(self, depth, width=WIDTH, kind="pre"):
        super().__init__()
        self.embed = nn.Linear(20, width)
        self.parts = nn.ModuleList(Block(width, kind) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.read = nn.Linear(width, 3)

    def forward(self, x):
        x = self.embed(x)
        for part in self.parts:
            x = part(x)
        return self.read(self.norm(x))


def builder(depth=6, width=WIDTH, kind="pre"):
    """Return a reader's function."""

    def build(seed=0):
        torch.manual_seed(seed)
        return Residual(depth, width, kind), nn.functional.cross_entropy, (X, Y)

    return build


def attached(model):
    return attach(model, nn.functional.cross_entropy, (X, Y), check=False)


def test_blocks_are_the_chain_of_one_kind():
    torch.manual_seed(0)
    model = Residual(5, 8)
    subject = attached(model)
    blocks = on_subject.blocks_of(model, subject)
    assert blocks == ("parts.0", "parts.1", "parts.2", "parts.3", "parts.4")
    assert on_subject.norms_of(model, subject, blocks) == tuple(f"{name}.norm" for name in blocks)


def test_blocks_of_an_encoder_of_torch():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    model = nn.Sequential(nn.Unflatten(1, (5, 4)), nn.Linear(4, 8), encoder, nn.Flatten())
    subject = attached(model.eval())
    blocks = on_subject.blocks_of(model, subject)
    assert blocks == tuple(f"2.layers.{i}" for i in range(3))
    norms = on_subject.norms_of(model, subject, blocks)
    assert norms == tuple(f"{block}.norm{i}" for block in blocks for i in (1, 2))


def test_a_network_without_blocks_is_refused():
    layers = [nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 3)]
    model = nn.Sequential(*layers)
    with pytest.raises(UserError, match="has no blocks of one kind"):
        on_subject.blocks_of(model, attached(model))


def test_a_model_of_jax_is_refused():
    def apply(params, x):
        return x @ params

    def loss(outputs, targets):
        return (outputs**2).mean()

    def build():
        return (apply, np.ones((20, 3))), loss, (X.numpy(), Y.numpy())

    with pytest.raises(UserError, match="modules of torch"):
        asked("residual-stream", build)


def test_a_block_passes_the_stream_on_and_adds_to_it():
    before = RNG.standard_normal((40, 30))
    added = RNG.standard_normal((40, 30))
    added -= before * (before * added).sum() / (before**2).sum()  # at right angles
    passed = on_subject.passage(Call("", before, before + added))
    assert passed.passed_on == pytest.approx(1)
    assert passed.written == pytest.approx(passed.read + passed.added)


def test_gradients_are_those_of_single_examples():
    torch.manual_seed(0)
    model = Residual(3, 8)
    squares = on_subject.gradient_squares(model, attached(model), ("parts.0", "parts.2"))
    expected = np.zeros(2)
    for x, y in zip(X, Y, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[None]), y[None]).backward()
        for place, part in enumerate((model.parts[0], model.parts[2])):
            expected[place] += sum(float((w.grad**2).sum()) for w in part.parameters()) / len(X)
    np.testing.assert_allclose(squares, expected, rtol=1e-4)


def test_divided_blocks_are_those_of_a_linear_stream():
    torch.manual_seed(0)
    model = Residual(3, 8)
    subject = attached(model)
    x = model.embed(X).detach()
    for part in model.parts:
        x = x + part.second(part.first(x / 2).relu()).detach()
    norms = tuple(f"parts.{i}.norm" for i in range(3))
    with on_subject.divided(model, norms, 2.0):
        (last,) = on_subject.recorded(model, subject, ["parts.2"])
    np.testing.assert_allclose(last.behind, x.numpy(), rtol=1e-4, atol=1e-5)
    (again,) = on_subject.recorded(model, subject, ["parts.2"])
    assert not np.allclose(again.behind, x.numpy())


def test_the_law_is_what_factors_of_single_blocks_multiply_to():
    share = 0.3
    depth = 12
    fields = {"depths": (depth,), "seeds": 3}
    claim = StreamOnSubject(**fields).on(Builder.of(builder()))
    start = np.array([2.0, 2.0, 2.0])
    law = claim.predict(Networks([], [], {"added": share * 2.0, "start": start}))
    variance = [1.0]
    for _ in range(depth):
        variance.append(variance[-1] + share)
    ahead = [  # square of what reaches the stream behind block l, from the last block on
        np.prod([1 + share / variance[k - 1] for k in range(block + 1, depth + 1)])
        for block in range(1, depth + 1)
    ]
    blocks = np.array(claim.axes()["block"])
    np.testing.assert_allclose(law["stream"][0], np.array(variance)[blocks])
    np.testing.assert_allclose(law["gradient"][1], np.sqrt(np.array(ahead)[blocks - 1] / ahead[0]))


def test_relu_blocks_follow_the_law():
    result = asked("residual-stream", builder(), seeds=16, examples=3)
    assert result.verdict == Verdict.HOLDS, result.reason
    assert all(rejections([*result.rivals, *result.controls]).values())
    assert {control.id for control in result.controls} == {"unnormalized"}


def test_a_stream_that_is_normalized_does_not_grow():
    result = asked("residual-stream", builder(6, 32, "post"), seeds=4, examples=3)
    assert result.verdict == Verdict.FAILS
    assert "stream" in {check.id for check in result.checks if check.verdict == Verdict.FAILS}


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (builder(6, 16, "plain"), "part of the stream that block one passes on"),
        (builder(3, 16), "blocks of the stream"),
    ],
)
def test_other_networks_are_out_of_range(build, said):
    result = asked("residual-stream", build, seeds=3, examples=2)
    assert result.verdict == Verdict.OUT_OF_RANGE
    assert any(said in line for line in broken(result))
