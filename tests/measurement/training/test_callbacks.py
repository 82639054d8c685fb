"""A monitor along the loops of Lightning and of transformers, with the real packages."""

import json
import sys

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, measure, read_log, watch
from steepest.measurement.training._callbacks import Guarded, unwrapped
from tests.extras import need

torch = need("torch")
nn = torch.nn
X = torch.randn(48, 8, generator=torch.Generator().manual_seed(0))
Y = torch.randint(0, 3, (48,), generator=torch.Generator().manual_seed(1))


def steps(file):
    return [record["step"] for record in read_log(file)]


def lightning(name):
    package = need(name)

    class Classifier(package.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, 3))
            self.modes = []

        def forward(self, x):
            return self.net(x)

        def training_step(self, batch, index):
            self.modes.append(self.net.training)
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-2)

    def fit(callbacks, accumulate=2):
        torch.manual_seed(7)
        module = Classifier()
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=4)
        quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
        trainer = package.Trainer(
            max_epochs=1,
            accelerator="cpu",
            accumulate_grad_batches=accumulate,
            callbacks=callbacks,
            **dict.fromkeys(quiet, False),
        )
        trainer.fit(module, loader)
        return module

    return fit


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning(tmp_path, name):
    fit = lightning(name)
    monitor = Monitor(tmp_path / "log", nn.functional.cross_entropy, (X, Y), every=1, budget=None)
    module = fit([monitor.lightning()])
    assert steps(tmp_path / "log") == [
        0,
        1,
        2,
        3,
        4,
        5,
        6,
    ]  # of the optimizer: 12 batches, two a step
    assert all(module.modes) and module.net.training
    records = read_log(tmp_path / "log")
    assert "has not taken a step" in records[0]["not_measured"]["optimizer"]
    assert records[1]["lr"] == 1e-2
    assert records[1]["quantities"]["loss of the batch"]["value"] > 0
    assert records[1]["quantities"]["preconditioned sharpness"]["theory"].endswith("38/η")
    alone = fit([])
    for one, other in zip(module.parameters(), alone.parameters(), strict=True):
        assert torch.equal(one, other)  # dropout drew the same
    risk = nn.functional.cross_entropy(module.eval()(X), Y).item()
    assert records[-1]["quantities"]["risk"]["value"] == pytest.approx(risk, rel=1e-5)


@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
def test_lightning_measures_a_part_and_survives_what_fails(tmp_path, capsys):
    fit = lightning("lightning.pytorch")
    options = {"every": 3, "budget": None, "lr": 0.5}
    part = Monitor(tmp_path / "part", nn.functional.cross_entropy, (X, Y), ["risk"], **options)
    wrong = Monitor(
        tmp_path / "wrong", nn.functional.cross_entropy, (X[:, :5], Y), ["risk"], **options
    )
    absent = Monitor(tmp_path / "absent", nn.functional.cross_entropy, (X, Y), ["risk"], **options)
    fit(
        [
            part.lightning(lambda module: module.net),
            wrong.lightning(),
            absent.lightning(lambda m: m.no),
        ]
    )
    assert steps(tmp_path / "part") == [0, 3, 6] and "optimizer" not in part.options
    said = capsys.readouterr().err
    assert said.count("is recorded: Classifier cannot be evaluated") == 1
    assert said.count("steepest: the monitor is off: AttributeError") == 1
    assert not (tmp_path / "absent").exists()


def language_model():
    transformers = need("transformers")
    need("accelerate")
    torch.manual_seed(0)
    sizes = {"n_positions": 8, "n_embd": 8, "n_layer": 1, "n_head": 1}
    config = transformers.GPT2Config(vocab_size=12, bos_token_id=0, eos_token_id=0, **sizes)
    ids = torch.randint(0, 12, (16, 6), generator=torch.Generator().manual_seed(2))
    return transformers, transformers.GPT2LMHeadModel(config), ids


@pytest.mark.filterwarnings("ignore")
def test_huggingface(tmp_path):
    transformers, model, ids = language_model()
    batches = [{"input_ids": rows, "labels": rows} for rows in ids.split(8)]
    monitor = Monitor(tmp_path / "log", data=batches, every=1, budget=None)
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        max_steps=3,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
    )
    rows = [{"input_ids": row, "labels": row} for row in ids]
    callbacks = [monitor.huggingface()]
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, callbacks=callbacks)
    trainer.train()
    records = read_log(tmp_path / "log")
    assert [record["step"] for record in records] == [0, 1, 2, 3]
    assert records[1]["lr"] == pytest.approx(1e-2 * 2 / 3)  # the schedule's, of the step to come
    assert records[3]["lr"] == 0 and "not_measured" not in records[3]
    entry = records[2]["quantities"]["preconditioned sharpness"]
    assert entry["compared"] == pytest.approx(38 / records[2]["lr"])
    assert model.training
    with torch.no_grad():
        risk = model.eval()(input_ids=ids, labels=ids).loss.item()
    assert records[-1]["quantities"]["risk"]["value"] == pytest.approx(risk, rel=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_trainer_with_its_defaults_has_losses_gradients_and_a_last_measurement(
    tmp_path, smoothing
):
    transformers, model, ids = language_model()
    losses = []

    class Trainer(transformers.Trainer):
        def training_step(self, *given, **named):
            losses.append(float(super().training_step(*given, **named)))
            return torch.tensor(losses[-1])

    monitor = Monitor(tmp_path / "log", data=[{"input_ids": ids, "labels": ids}])
    arguments = transformers.TrainingArguments(
        str(tmp_path / "out"),
        max_steps=12,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        label_smoothing_factor=smoothing,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        **({"logging_steps": 1} if smoothing else {}),
    )
    rows = [{"input_ids": row, "labels": row} for row in ids]
    hooks = dict(model._forward_hooks)
    Trainer(model, arguments, train_dataset=rows, callbacks=[monitor.huggingface()]).train()
    assert dict(model._forward_hooks) == hooks
    records = read_log(tmp_path / "log")
    assert "risk" in records[-1]["quantities"]
    assert records[-1]["step"] == 12
    recorded = {r["step"]: r["quantities"].get("loss of the batch") for r in records}
    # of two batches whose gradients are accumulated; smoothed ones only the trainer's own lines tell, a step later
    each = np.add(losses[::2], losses[1::2])
    late = 1 if smoothing else 0
    for step in (2, 3):
        assert recorded[step]["value"] == pytest.approx(each[step - 1 - late], rel=1e-4)
    assert records[3]["quantities"]["gradient norm of the batch"]["value"] > 0


@pytest.mark.filterwarnings("ignore")
def test_a_model_with_its_own_loss(tmp_path):
    """One dictionary is one batch, and so is a BatchEncoding, which is no dict."""
    transformers, model, ids = language_model()
    model.eval()
    one = {"input_ids": ids, "labels": ids}
    values = [
        measure(model, None, data, what=["risk", "sharpness"])["sharpness"].value
        for data in (one, [one], [transformers.BatchEncoding(one)])
    ]
    assert values == pytest.approx(3 * [values[0]], rel=1e-6)
    weights = dict(model.named_parameters())
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        loss = torch.func.functional_call(model, weights, (), one).loss
    gradient = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    torch.manual_seed(0)
    vectors = [torch.randn_like(weight) for weight in weights.values()]
    for _ in range(200):  # a power iteration of its own
        size = sum(v.square().sum() for v in vectors).sqrt()
        vectors = [v / size for v in vectors]
        vectors = [
            v.detach() + 3 * w  # shifted, as eigenvalues may be negative
            for v, w in zip(
                torch.autograd.grad(gradient, list(weights.values()), vectors, retain_graph=True),
                vectors,
                strict=True,
            )
        ]
    largest = float(sum(v.square().sum() for v in vectors).sqrt()) - 3
    assert values[0] == pytest.approx(largest, rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_a_classifier_of_transformers_by_its_logits(tmp_path):
    """The wrapper of docs/measuring.md, with which margins and a constant guess exist."""
    transformers = need("transformers")
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    config = transformers.BertConfig(
        vocab_size=12, max_position_embeddings=8, num_labels=3, **sizes
    )
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    ids = torch.randint(1, 12, (12, 6), generator=torch.Generator().manual_seed(2))  # 0 pads
    labels = torch.arange(12) % 3
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    model.eval()(input_ids=ids, labels=labels).loss.backward()
    optimizer.step()

    class Logits(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, inputs):
            return self.model(**inputs).logits

    data = [({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, labels)]
    what = ["risk", "sharpness", "margins"]
    monitor = Monitor(tmp_path / "log", nn.functional.cross_entropy, data, what, budget=None)
    guarded = Guarded(monitor, Logits)
    guarded.begin(optimizer)
    guarded(0, model)
    quantities = read_log(tmp_path / "log")[0]["quantities"]
    assert quantities["risk"]["compared"] == pytest.approx(np.log(3), rel=1e-6)
    assert quantities["preconditioned sharpness"]["compared"] is not None
    assert "error rate" in quantities


@pytest.mark.filterwarnings("ignore")
def test_a_model_without_a_loss_says_so():
    _, model, ids = language_model()
    with pytest.raises(UserError, match="returned no loss from .'input_ids'."):
        measure(model.eval(), None, {"input_ids": ids}, what=["risk"])
    with pytest.raises(UserError, match="got a batch of type tuple"):
        measure(nn.Linear(8, 3), None, (X, Y), what=["risk"])


def test_packages_that_are_not_installed(tmp_path, monkeypatch):
    monitor = Monitor(tmp_path / "log", nn.functional.cross_entropy, (X, Y))
    for name in ("lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match="Lightning is not installed; pip install lightning"):
        monitor.lightning()
    with pytest.raises(UserError, match="transformers is not installed"):
        monitor.huggingface()


def test_the_optimizer_inside():
    inner = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)

    class Wrapper:
        optimizer = inner

    assert unwrapped(Wrapper()) is inner and unwrapped(inner) is inner
    assert unwrapped("something else") == "something else"


def test_a_step_of_the_optimizer_is_measured_once(tmp_path):
    model = nn.Linear(8, 3)
    monitor = Monitor(
        tmp_path / "log", nn.functional.cross_entropy, (X, Y), ["risk"], every=1, budget=None
    )
    guarded = Guarded(monitor, None)
    for step in (0, 1, 1, 1, 2):
        guarded(step, model)
    guarded(2, model, now=True)
    assert steps(tmp_path / "log") == [0, 1, 2]


def test_the_end_is_measured_though_it_is_not_due(tmp_path):
    model = nn.Linear(8, 3)
    monitor = Monitor(tmp_path / "log", nn.functional.cross_entropy, (X, Y), ["risk"], every=10)
    guarded = Guarded(monitor, None)
    for step in range(8):
        guarded(step, model)
    guarded(7, model, now=True)
    records = read_log(tmp_path / "log")
    assert [record["step"] for record in records if "risk" in record["quantities"]] == [7]


def test_the_end_is_measured_though_its_step_has_a_record_without(tmp_path):
    model = nn.Linear(8, 3)
    monitor = Monitor(
        tmp_path / "log", nn.functional.cross_entropy, (X, Y), ["risk"], every=4, budget=1e-9
    )
    guarded = Guarded(monitor, None)
    for step in range(9):
        guarded(step, model, loss=torch.tensor(1.0))
    assert "risk" not in read_log(tmp_path / "log")[-1]["quantities"]
    guarded(8, model, now=True)
    last = watch(tmp_path / "log").records[-1]
    assert last["step"] == 8 and {"risk", "loss of the batch"} <= set(last["quantities"])


def test_a_step_size_of_zero_has_no_limit(tmp_path):
    model = nn.Linear(8, 3)
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    monitor = Monitor(
        tmp_path / "log", nn.functional.cross_entropy, (X, Y), every=1, budget=None, optimizer=sgd
    )
    first = monitor(0, model)
    sgd.param_groups[0]["lr"] = 0.0
    second = monitor(1, model)
    assert first["quantities"]["sharpness"]["compared"] == pytest.approx(20)
    assert second["quantities"]["sharpness"]["compared"] is None
    assert second["lr"] == 0 and "not_measured" not in second
    assert json.loads((tmp_path / "log").read_text().splitlines()[1])["lr"] == 0
    assert np.isfinite(second["quantities"]["sharpness"]["value"])
