"""Trainings as practitioners write them: what a monitor is given, and steps that yield the loss of each.

The first twenty are those on which monitors failed when others tried them; the last twenty were written before any
monitor had run on them.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

N = 64
CLASSES = 5


@dataclass(frozen=True)
class SetUp:
    """What a training hands to a monitor, and its steps.

    Attributes:
        model: a module.
        steps: trains when it is read, and yields the loss of each step.
        loss: handed over for measuring; None where the model returns its own, or there is none.
        data: likewise.
        options: of the monitor.
    """

    model: nn.Module
    steps: Iterator[Any]
    loss: Any = None
    data: Any = None
    options: dict[str, Any] = field(default_factory=dict)


BUILDERS: dict[str, Callable[[], SetUp]] = {}


def set_up(name: str) -> Callable:
    """Enter a builder of a set-up under its name."""

    def enter(builder: Callable[[], SetUp]) -> Callable[[], SetUp]:
        BUILDERS[name] = builder
        return builder

    return enter


def images(channels: int = 1, side: int = 8) -> tuple[Tensor, Tensor]:
    """Return images whose class is in their mean."""
    y = torch.randint(0, CLASSES, (N,))
    return torch.randn(N, channels, side, side) + y[:, None, None, None] / 2, y


def rows(width: int = 10) -> tuple[Tensor, Tensor]:
    """Return rows of numbers whose class is in their mean."""
    y = torch.randint(0, CLASSES, (N,))
    return torch.randn(N, width) + y[:, None] / 2, y


def words(length: int = 12, count: int = 20) -> Tensor:
    """Return sequences in which each word is the one before plus one."""
    start = torch.randint(0, count, (N, 1))
    return (start + torch.arange(length)) % count


def batches(*tensors: Tensor, size: int = 16) -> Iterator[tuple[Tensor, ...]]:
    """Yield shuffled batches for ever."""
    while True:
        for chosen in torch.randperm(len(tensors[0])).split(size):
            yield tuple(tensor[chosen] for tensor in tensors)


def ordinary(
    model: nn.Module, loss: Any, data: Any, optimizer: Any = None, **options: Any
) -> SetUp:
    """Train by the loss of outputs and targets."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), 3e-3)

    def steps() -> Iterator[Tensor]:
        for x, y in batches(*data):
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            yield value

    return SetUp(model, steps(), loss, data, {"optimizer": optimizer, **options})


def dense(inputs: int = 10, outputs: int = CLASSES) -> nn.Module:
    """Return a small network."""
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs))


def convolutional(channels: int = 1) -> nn.Module:
    """Return a small network with batch normalization."""
    return nn.Sequential(
        nn.Conv2d(channels, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(32, CLASSES),
    )


class Decoder(nn.Module):
    """A small language model."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.1)
        self.blocks = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 20, bias=False)
        if tied:
            self.head.weight = self.words.weight

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.blocks(self.words(x), mask=mask, is_causal=True))


def next_word(logits: Tensor, x: Tensor) -> Tensor:
    """Return the cross-entropy of each next word."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten())


# ------------------------------------------------------------------------- on which monitors failed


@set_up("convolutions with batch norm")
def _() -> SetUp:
    return ordinary(convolutional(), nn.functional.cross_entropy, images())


@set_up("LSTM that returns (logits, hidden)")
def _() -> SetUp:
    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(20, 16)
            self.recur = nn.LSTM(16, 16, batch_first=True)
            self.head = nn.Linear(16, 20)

        def forward(self, x: Tensor) -> tuple[Tensor, Any]:
            states, hidden = self.recur(self.words(x))
            return self.head(states), hidden

    x = words()
    return ordinary(Reader(), lambda out, y: next_word(out[0], y), (x[:, :-1], x[:, 1:]))


@set_up("batches padded to different lengths")
def _() -> SetUp:
    model = Decoder()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x = words()
    padded = [(x[:16, :6], x[:16, 1:7]), (x[16:32, :9], x[16:32, 1:10])]

    def steps() -> Iterator[Tensor]:
        while True:
            for inputs, targets in padded:
                optimizer.zero_grad()
                value = next_word(model(inputs), targets)
                value.backward()
                optimizer.step()
                yield value

    return SetUp(model, steps(), next_word, padded, {"optimizer": optimizer})


@set_up("loss that sums")
def _() -> SetUp:
    return ordinary(dense(), nn.CrossEntropyLoss(reduction="sum"), rows())


@set_up("sparse embeddings")
def _() -> SetUp:
    model = nn.Sequential(nn.EmbeddingBag(20, 8, sparse=True), nn.Linear(8, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return ordinary(model, nn.functional.cross_entropy, (words(), rows()[1]), optimizer)


@set_up("straight-through quantizer")
def _() -> SetUp:
    class Quantized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(10, 16)
            self.last = nn.Linear(16, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            z = torch.tanh(self.first(x))
            return self.last(z + (z.round() - z).detach())

    return ordinary(Quantized(), nn.functional.cross_entropy, rows())


@set_up("outputs (n, 1), targets (n,)")
def _() -> SetUp:
    x, _ = rows()
    return ordinary(dense(outputs=1), nn.functional.mse_loss, (x, x.sum(1)))


@set_up("torch.compile")
def _() -> SetUp:
    model = torch.compile(dense(), backend="eager")
    return ordinary(model, nn.functional.cross_entropy, rows())


@set_up("DataParallel")
def _() -> SetUp:
    return ordinary(nn.DataParallel(dense()), nn.functional.cross_entropy, rows())


@set_up("two optimizers in a list")
def _() -> SetUp:
    model = dense()
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    both = [torch.optim.SGD(matrices, 0.1, momentum=0.9), torch.optim.AdamW(others, 3e-3)]
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        for inputs, targets in batches(x, y):
            model.zero_grad()
            value = nn.functional.cross_entropy(model(inputs), targets)
            value.backward()
            for optimizer in both:
                optimizer.step()
            yield value

    return SetUp(model, steps(), nn.functional.cross_entropy, (x, y), {"optimizer": both})


@set_up("low-rank adapters beside frozen weights")
def _() -> SetUp:
    class Adapted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = dense().requires_grad_(False)
            self.down = nn.Linear(10, 2, bias=False)
            self.up = nn.Linear(2, CLASSES, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x: Tensor) -> Tensor:
            return self.body(x) + self.up(self.down(x))

    model = Adapted()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-2)
    return ordinary(model, nn.functional.cross_entropy, rows(), optimizer)


@set_up("OneCycle")
def _() -> SetUp:
    model = dense()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=1000)
    made = ordinary(model, nn.functional.cross_entropy, rows(), optimizer)

    def steps() -> Iterator[Tensor]:
        for value in made.steps:
            schedule.step()
            yield value

    return SetUp(model, steps(), made.loss, made.data, made.options)


@set_up("batches ((a, b), y)")
def _() -> SetUp:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(10, CLASSES)
            self.b = nn.Linear(10, CLASSES)

        def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
            return self.a(pair[0]) + self.b(pair[1])

    model = Two()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    a, y = rows()
    b, _ = rows()

    def steps() -> Iterator[Tensor]:
        for first, second, targets in batches(a, b, y):
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(model((first, second)), targets)
            value.backward()
            optimizer.step()
            yield value

    return SetUp(
        model, steps(), nn.functional.cross_entropy, [((a, b), y)], {"optimizer": optimizer}
    )


@set_up("batches in dictionaries, the model returns its loss")
def _() -> SetUp:
    class OwnLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = dense()

        def forward(self, inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.body(inputs)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    model = OwnLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        for inputs, labels in batches(x, y):
            optimizer.zero_grad()
            value = model(inputs=inputs, labels=labels)["loss"]
            value.backward()
            optimizer.step()
            yield value

    return SetUp(model, steps(), None, [{"inputs": x, "labels": y}], {"optimizer": optimizer})


@set_up("binary cross-entropy over several labels")
def _() -> SetUp:
    x, _ = rows()
    return ordinary(
        dense(), nn.functional.binary_cross_entropy_with_logits, (x, (x[:, :CLASSES] > 0).float())
    )


@set_up("label smoothing and class weights")
def _() -> SetUp:
    loss = nn.CrossEntropyLoss(weight=torch.arange(1.0, CLASSES + 1), label_smoothing=0.1)
    return ordinary(dense(), loss, rows())


@set_up("classes at each place, (n, C, T)")
def _() -> SetUp:
    model = nn.Sequential(nn.Conv1d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, CLASSES, 1))
    x = torch.randn(N, 3, 7)
    return ordinary(model, nn.functional.cross_entropy, (x, x.argmax(1)))


@set_up("windows of one text")
def _() -> SetUp:
    text = words(60)[0]
    x = torch.stack([text[i : i + 12] for i in range(40)])
    return ordinary(Decoder(), next_word, (x[:, :-1], x[:, 1:]))


@set_up("table with duplicate rows")
def _() -> SetUp:
    x, y = rows()
    return ordinary(dense(), nn.functional.cross_entropy, (x[:8].repeat(8, 1), y[:8].repeat(8)))


@set_up("policy gradient")
def _() -> SetUp:
    policy = dense(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), 1e-2)

    def steps() -> Iterator[Tensor]:
        while True:
            state = torch.randn(32, 4)
            drawn = torch.distributions.Categorical(logits=policy(state))
            action = drawn.sample()
            reward = torch.where(action == (state[:, 0] > 0), 1.0, -1.0)
            value = -(drawn.log_prob(action) * reward).mean()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            yield value

    return SetUp(policy, steps(), options={"optimizer": optimizer, "stationary": False})


# ------------------------------------------------------- written before any monitor had run on them


@set_up("gradients of four batches are added")
def _() -> SetUp:
    model = dense()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        drawn = batches(x, y)
        while True:
            optimizer.zero_grad()
            total = torch.zeros(())
            for _ in range(4):
                inputs, targets = next(drawn)
                value = nn.functional.cross_entropy(model(inputs), targets) / 4
                value.backward()
                total = total + value.detach()
            optimizer.step()
            yield total

    return SetUp(model, steps(), nn.functional.cross_entropy, (x, y), {"optimizer": optimizer})


@set_up("bfloat16 by autocast")
def _() -> SetUp:
    model = dense()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                value = nn.functional.cross_entropy(model(inputs), targets)
            value.backward()
            optimizer.step()
            yield value

    return SetUp(model, steps(), nn.functional.cross_entropy, (x, y), {"optimizer": optimizer})


@set_up("weights in bfloat16")
def _() -> SetUp:
    x, y = rows()
    return ordinary(dense().bfloat16(), nn.functional.cross_entropy, (x.bfloat16(), y))


@set_up("moving average of weights")
def _() -> SetUp:
    made = ordinary(dense(), nn.functional.cross_entropy, rows())
    averaged = torch.optim.swa_utils.AveragedModel(made.model)

    def steps() -> Iterator[Tensor]:
        for value in made.steps:
            averaged.update_parameters(made.model)
            yield value

    return SetUp(made.model, steps(), made.loss, made.data, made.options)


@set_up("LBFGS with a closure")
def _() -> SetUp:
    model = dense()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=4)
    x, y = rows()

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(model(x), y)
        value.backward()
        return value

    def steps() -> Iterator[Tensor]:
        while True:
            yield optimizer.step(closure)

    return SetUp(model, steps(), nn.functional.cross_entropy, (x, y), {"optimizer": optimizer})


@set_up("generator and discriminator")
def _() -> SetUp:
    generator = dense(4, 2)
    critic = dense(2, 1)
    of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
    of_critic = torch.optim.Adam(critic.parameters(), 1e-3)
    real = torch.randn(N, 2) + 2

    def steps() -> Iterator[Tensor]:
        ones = torch.ones(N, 1)
        zeros = torch.zeros(N, 1)
        entropy = nn.functional.binary_cross_entropy_with_logits
        while True:
            false = generator(torch.randn(N, 4))
            of_critic.zero_grad()
            value = entropy(critic(real), ones) + entropy(critic(false.detach()), zeros)
            value.backward()
            of_critic.step()
            of_generator.zero_grad()
            entropy(critic(false), ones).backward()
            of_generator.step()
            yield value

    return SetUp(critic, steps(), options={"optimizer": of_critic, "stationary": False})


@set_up("contrastive views")
def _() -> SetUp:
    encoder = dense(10, 8)
    optimizer = torch.optim.AdamW(encoder.parameters(), 3e-3)
    x, _ = rows()

    def steps() -> Iterator[Tensor]:
        for (chosen,) in batches(x):
            first, second = (
                nn.functional.normalize(encoder(chosen + 0.1 * torch.randn_like(chosen)), dim=1)
                for _ in range(2)
            )
            value = nn.functional.cross_entropy(first @ second.T / 0.2, torch.arange(len(chosen)))
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            yield value

    return SetUp(encoder, steps(), options={"optimizer": optimizer})


@set_up("variational autoencoder")
def _() -> SetUp:
    class Variational(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = dense(10, 8)
            self.decode = dense(4, 10)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            mean, log_variance = self.encode(x).chunk(2, 1)
            drawn = mean + torch.randn_like(mean) * (log_variance / 2).exp()
            return self.decode(drawn), mean, log_variance

    def loss(outputs: tuple[Tensor, Tensor, Tensor], x: Tensor) -> Tensor:
        copy_of_x, mean, log_variance = outputs
        divergence = (mean**2 + log_variance.exp() - log_variance - 1).sum(1) / 2
        return ((copy_of_x - x) ** 2).sum(1).mean() + divergence.mean()

    x, _ = rows()
    return ordinary(Variational(), loss, (x, x))


@set_up("student of a frozen teacher")
def _() -> SetUp:
    model = dense()
    teacher = dense().requires_grad_(False).eval()
    x, _ = rows()
    targets = teacher(x).softmax(1)
    return ordinary(model, nn.functional.cross_entropy, (x, targets))


@set_up("tied embeddings")
def _() -> SetUp:
    x = words()
    return ordinary(Decoder(tied=True), next_word, (x[:, :-1], x[:, 1:]))


@set_up("masked loss, ignore_index")
def _() -> SetUp:
    x = words()
    targets = torch.where(torch.rand(x.shape) < 0.15, x, -100)
    loss = lambda logits, y: nn.functional.cross_entropy(
        logits.flatten(0, 1), y.flatten(), ignore_index=-100
    )
    return ordinary(Decoder(), loss, (x, targets))


@set_up("clipped gradients and weight norm")
def _() -> SetUp:
    model = nn.Sequential(
        nn.utils.parametrizations.weight_norm(nn.Linear(10, 32)), nn.Tanh(), nn.Linear(32, CLASSES)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        for inputs, targets in batches(x, y):
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(model(inputs), targets)
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            yield value

    return SetUp(model, steps(), nn.functional.cross_entropy, (x, y), {"optimizer": optimizer})


@set_up("checkpointed activations")
def _() -> SetUp:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(10, 32), nn.GELU())
            self.head = nn.Linear(32, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=False))

    return ordinary(Checkpointed(), nn.functional.cross_entropy, rows())


@set_up("mixture of experts with a balance loss")
def _() -> SetUp:
    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(10, 3)
            self.experts = nn.ModuleList(dense() for _ in range(3))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            weights = self.gate(x).softmax(1)
            outputs = torch.stack([expert(x) for expert in self.experts], 1)
            return (weights[:, :, None] * outputs).sum(1), 3 * (weights.mean(0) ** 2).sum()

    return ordinary(
        Experts(), lambda out, y: nn.functional.cross_entropy(out[0], y) + 0.01 * out[1], rows()
    )


@set_up("graph convolution over all vertices")
def _() -> SetUp:
    adjacency = (torch.rand(N, N) < 0.1).float() + torch.eye(N)
    adjacency = adjacency / adjacency.sum(1, keepdim=True)

    class Convolved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(10, 16)
            self.last = nn.Linear(16, CLASSES)
            self.register_buffer("adjacency", adjacency)

        def forward(self, x: Tensor) -> Tensor:
            return self.adjacency @ self.last(torch.relu(self.adjacency @ self.first(x)))

    model = Convolved()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x, y = rows()

    def steps() -> Iterator[Tensor]:
        while True:
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(model(x), y)
            value.backward()
            optimizer.step()
            yield value

    return SetUp(model, steps(), nn.functional.cross_entropy, [(x, y)], {"optimizer": optimizer})


@set_up("implicit layer, gradient penalty")
def _() -> SetUp:
    model = dense(10, 1)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x, _ = rows()
    y = x[:, :1] ** 2

    def steps() -> Iterator[Tensor]:
        for inputs, targets in batches(x, y):
            inputs = inputs.clone().requires_grad_()
            outputs = model(inputs)
            (slope,) = torch.autograd.grad(outputs.sum(), inputs, create_graph=True)
            value = nn.functional.mse_loss(outputs, targets) + 0.01 * (slope**2).sum(1).mean()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            yield value

    return SetUp(model, steps(), nn.functional.mse_loss, (x, y), {"optimizer": optimizer})


@set_up("weights that are frozen half-way")
def _() -> SetUp:
    made = ordinary(convolutional(), nn.functional.cross_entropy, images())

    def steps() -> Iterator[Tensor]:
        for step, value in enumerate(made.steps):
            if step == 10:
                made.model[0].requires_grad_(False)
            yield value

    return SetUp(made.model, steps(), made.loss, made.data, made.options)


@set_up("another model for each fold, one monitor")
def _() -> SetUp:
    made = ordinary(dense(), nn.functional.cross_entropy, rows())
    fresh = copy.deepcopy(made.model.state_dict())

    def steps() -> Iterator[Tensor]:
        for step, value in enumerate(made.steps):
            if step == 12:
                made.model.load_state_dict(fresh)
            yield value

    return SetUp(made.model, steps(), made.loss, made.data, made.options)


@set_up("complex weights")
def _() -> SetUp:
    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.filter = nn.Parameter(torch.randn(6, dtype=torch.complex64))
            self.head = nn.Linear(10, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=10))

    return ordinary(Spectral(), nn.functional.cross_entropy, rows())


@set_up("inputs of integers and a mask in a tuple")
def _() -> SetUp:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(20, 16)
            self.head = nn.Linear(16, CLASSES)

        def forward(self, pair: tuple[Tensor, Tensor]) -> Tensor:
            x, mask = pair
            return self.head((self.words(x) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))

    model = Masked()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    x = words()
    _, y = rows()
    mask = (torch.rand(x.shape) < 0.7).float()
    mask[:, 0] = 1.0

    def steps() -> Iterator[Tensor]:
        for inputs, masks, targets in batches(x, mask, y):
            optimizer.zero_grad()
            value = nn.functional.cross_entropy(model((inputs, masks)), targets)
            value.backward()
            optimizer.step()
            yield value

    return SetUp(
        model, steps(), nn.functional.cross_entropy, [((x, mask), y)], {"optimizer": optimizer}
    )
