"""Faults planted in trainings, each beside the same training in order: what the free numbers say."""

import gc
import math

import numpy as np
import pytest

from steepest.measurement import Monitor, read_log, watch
from steepest.measurement.training import _names as names
from steepest.measurement.training._faults import RULES, Fault
from tests.extras import need

torch = need("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy
mse_loss = nn.functional.mse_loss

STEPS = 200
CLASSES = 6


def examples(n, seed=0):
    """Draw Gaussian inputs with the labels of a fixed linear map."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(CLASSES, 12, generator=torch.Generator().manual_seed(99))
    x = torch.randn(n, 12, generator=draw)
    return x, (x @ rows.T).argmax(1)


def network(*between, after=()):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(12, 64), *between, nn.ReLU(), nn.Linear(64, CLASSES), *after)


def train(folder, model, optimizer, *, fault=lambda step: None, loss=cross_entropy, **options):
    """Train on batches and return what the monitor's log shows; each step is listened to, whatever it costs."""
    x, y = options.get("data", examples(512))
    monitor = Monitor(folder / "log", every=5)
    monitor.own_step.affords = lambda step: True
    draw = torch.Generator().manual_seed(1)
    for step in range(options.get("steps", STEPS)):
        rows = torch.randint(0, len(x), (options.get("batch", 32),), generator=draw)
        fault(step)
        if not options.get("adds_up"):
            optimizer.zero_grad()
        value = loss(model(x[rows]), y[rows])
        value.backward()
        slope = None
        if "clip" in options:
            slope = nn.utils.clip_grad_norm_(model.parameters(), options["clip"])
        optimizer.step()
        monitor(step, model, loss=value, grad_norm=slope)
        if "held_out" in options and step % 20 == 0:
            with torch.no_grad():
                monitor.held_out(step, loss(model(options["held_out"][0]), options["held_out"][1]))
    return watch(folder / "log")


def found(run):
    """Return the signs of what rules of the table say, by their ids."""
    return {one.id: one.sign for one in run.findings if isinstance(one.id, Fault)}


def sgd(model, lr=0.05, **options):
    return torch.optim.SGD(model.parameters(), lr, **options)


def test_a_training_in_order_shows_no_fault(tmp_path):
    for name, between in (("plain", ()), ("normalized", (nn.BatchNorm1d(64), nn.Dropout(0.1)))):
        (tmp_path / name).mkdir()
        model = network(*between)
        adam = torch.optim.AdamW(model.parameters(), 3e-3)
        run = train(tmp_path / name, model, adam, clip=1.0, held_out=examples(300, 5))
        assert found(run) == {}
        assert {names.SIZE, names.RANK, names.IDLE, names.DECAY, names.UNCLIPPED} <= set(run.names)


def test_numbers_of_a_step_are_those_of_a_pass_by_hand(tmp_path):
    """The rank, the size of the outputs and the idle units of the last step, from the weights before it."""
    model = network()
    x, y = examples(64)
    optimizer = sgd(model, 0.1)
    monitor = Monitor(tmp_path / "log", every=1)
    monitor.own_step.affords = lambda step: True
    for step in range(8):
        before = [w.detach().clone() for w in model.parameters()]
        optimizer.zero_grad()
        value = cross_entropy(model(x), y)
        value.backward()
        optimizer.step()
        monitor(step, model, loss=value)
    quantities = read_log(tmp_path / "log")[-1]["quantities"]
    hidden = torch.relu(x @ before[0].T + before[1])
    spectrum = np.linalg.eigvalsh(np.cov(hidden.detach().double().numpy().T))
    rank = spectrum.sum() ** 2 / (spectrum**2).sum()
    assert quantities[names.RANK]["value"] == pytest.approx(rank, rel=1e-4)
    size = (hidden @ before[2].T + before[3]).square().mean().sqrt()
    assert quantities[names.SIZE]["value"] == pytest.approx(float(size), rel=1e-5)
    idle = float((hidden == 0).all(0).float().mean())
    assert quantities[names.IDLE]["value"] == pytest.approx(idle, abs=1 / 64)
    assert quantities[names.LEFT_OVER]["value"] == pytest.approx(0, abs=1e-6)


def test_hooks_are_gone_after_the_step_and_a_module_is_saved_without(tmp_path):
    model = network()
    optimizer = sgd(model)
    x, y = examples(32)
    monitor = Monitor(tmp_path / "log", every=1)
    monitor.own_step.affords = lambda step: True
    hooks = nn.modules.module
    gc.collect()
    monitor(0, model)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    torch.save(model, tmp_path / "saved.pt")  # while hooks listen
    cross_entropy(model(x), y).backward()
    optimizer.step()
    monitor.every = 1000
    monitor(1, model)
    assert not hooks._global_forward_hooks and not hooks._global_forward_pre_hooks
    assert not any(w._backward_hooks for w in model.parameters())
    monitor.every = 1
    monitor(2, model)
    assert hooks._global_forward_hooks
    del monitor  # at the end of a training nobody calls it again
    gc.collect()
    assert not hooks._global_forward_hooks and not hooks._global_forward_pre_hooks


def test_a_module_in_evaluation_mode_is_named(tmp_path):
    model = network(nn.BatchNorm1d(64)).eval()
    assert found(train(tmp_path, model, sgd(model)))[Fault.EVALUATION_MODE] == "!"


def test_frozen_normalizing_layers_are_told(tmp_path):
    model = network(nn.BatchNorm1d(64))
    model[1].eval()
    assert found(train(tmp_path, model, sgd(model)))[Fault.EVALUATION_MODE] == "?"


@pytest.mark.parametrize("clip", [None, 0.5])
def test_gradients_that_are_not_set_to_zero_are_named(tmp_path, clip):
    model = network()
    options = {} if clip is None else {"clip": clip}
    run = train(tmp_path, model, sgd(model, 1e-3), adds_up=True, **options)
    assert found(run)[Fault.GRADIENTS_ADD_UP] == "!"


@pytest.mark.parametrize("each_batch", [False, True])
def test_accumulation_over_batches_is_no_fault(tmp_path, each_batch):
    """Of two batches a step; called after each step, or after each batch."""
    model = network()
    optimizer = sgd(model)
    x, y = examples(512)
    monitor = Monitor(tmp_path / "log", every=1)
    monitor.own_step.affords = lambda step: True
    calls = 0
    for batch in range(80):
        rows = torch.arange(32) + 6 * batch
        cross_entropy(model(x[rows]), y[rows]).backward()
        steps = batch % 2 == 1
        if steps:
            optimizer.step()
        if steps or each_batch:
            monitor(calls, model)
            calls += 1
        if steps:
            optimizer.zero_grad(set_to_none=False)
    assert Fault.GRADIENTS_ADD_UP not in found(watch(tmp_path / "log"))


def test_outputs_that_are_probabilities_are_named(tmp_path):
    model = network(after=(nn.Softmax(-1),))
    run = train(tmp_path, model, sgd(model, 0.3))
    assert found(run)[Fault.PROBABILITIES] == "!"
    floor = math.log(math.e + CLASSES - 1) - 1
    assert run[names.LOSS].values.min() > floor  # of a softmax of what is one on the right class


def test_labels_of_other_examples_are_named(tmp_path):
    model = network()
    x, y = examples(64)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    wrong = y[torch.randperm(64, generator=torch.Generator().manual_seed(3))]
    run = train(tmp_path, model, adam, data=(x, wrong), held_out=examples(300, 5))
    assert found(run)[Fault.DOES_NOT_CARRY_OVER] == "!"


def test_a_network_that_memorizes_is_told(tmp_path):
    model = network()
    x, y = examples(80)
    noisy = torch.where(torch.arange(80) % 3 == 0, (y + 1) % CLASSES, y)
    adam = torch.optim.Adam(model.parameters(), 1e-2)
    run = train(tmp_path, model, adam, data=(x, noisy), held_out=examples(300, 5), steps=400)
    assert Fault.MEMORIZES in found(run) or Fault.DOES_NOT_CARRY_OVER in found(run)


def test_decay_that_dominates_is_named(tmp_path):
    model = network()
    adam = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=10.0)
    assert found(train(tmp_path, model, adam))[Fault.DECAY_DOMINATES] == "!"


def test_dead_units_are_named(tmp_path):
    model = network()
    with torch.no_grad():
        model[0].bias[:40] = -50
    assert found(train(tmp_path, model, sgd(model)))[Fault.DEAD_UNITS] == "!"


def test_dead_channels_are_named(tmp_path):
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(32, 2)]
    model = nn.Sequential(*layers)
    with torch.no_grad():
        model[0].bias[:4] = -50
    x = torch.randn(128, 1, 6, 6)
    data = x, (x.mean((1, 2, 3)) > 0).long()
    run = train(tmp_path, model, sgd(model), data=data)
    assert found(run)[Fault.DEAD_UNITS] == "!"
    assert run.records[-1]["idle"] == {"2": 0.5, "4": 0.0}


def test_saturated_activations_are_told(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 64), nn.Tanh(), nn.Linear(64, CLASSES))
    with torch.no_grad():
        model[0].weight *= 100
    assert found(train(tmp_path, model, sgd(model)))[Fault.SATURATED] == "?"


def test_a_schedule_that_begins_again_is_told(tmp_path):
    model = network()
    optimizer = sgd(model, 0.2)

    def fault(step):
        optimizer.param_groups[0]["lr"] = 1.5 if step > 150 else 0.2 * (1 - step / 160)

    assert Fault.STEP_RAISED in found(train(tmp_path, model, optimizer, fault=fault))


def test_a_clip_to_nothing_is_told(tmp_path):
    model = network()
    run = train(tmp_path, model, sgd(model, 0.1), clip=1e-3)
    assert found(run)[Fault.CLIPPED_AWAY] == "?"
    assert run[names.CLIPPED].values[-1] == 1


def test_weights_that_no_optimizer_holds_are_told(tmp_path):
    model = network()
    run = train(tmp_path, model, torch.optim.SGD(model[2].parameters(), 0.05))
    assert found(run)[Fault.DOES_NOT_MOVE] == "?"


def test_a_layer_that_hardly_moves_beside_the_others_is_told(tmp_path):
    model = network()
    groups = [
        {"params": [model[0].weight], "lr": 1e-6},
        {"params": [model[0].bias, *model[2].parameters()]},
    ]
    run = train(tmp_path, model, torch.optim.SGD(groups, 0.05))
    assert found(run)[Fault.LAYER_APART] == "?"
    assert run.records[-1]["lrs"] == [0.05, 1e-6]


def test_a_step_that_moves_nothing_is_named(tmp_path):
    model = network()
    assert found(train(tmp_path, model, sgd(model, 1e-8)))[Fault.HARDLY_MOVES] == "!"


def test_a_language_model_whose_targets_are_its_inputs_is_named(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 16), nn.Linear(16, 9))
    x = torch.randint(0, 9, (128, 10))
    loss = lambda f, y: cross_entropy(f.flatten(0, 1), y.flatten())
    adam = torch.optim.Adam(model.parameters(), 3e-2)
    run = train(tmp_path, model, adam, data=(x, x), loss=loss)
    assert found(run)[Fault.REPEATS_INPUTS] == "?"


def test_a_regression_has_no_classes_and_no_fault(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
    x, _ = examples(256)
    data = x, torch.sigmoid(x[:, :1])
    assert found(train(tmp_path, model, sgd(model, 0.1), data=data, loss=mse_loss)) == {}


def test_an_evaluation_of_a_step_that_is_behind_begins_no_other_training(tmp_path):
    """Calls count from one, and evaluations from zero."""
    model = network()
    monitor = Monitor(tmp_path / "log", every=1)
    for step in range(6):
        monitor(step + 1, model, loss=1.0)
        monitor.held_out(step, 2.0 - 0.1 * step)
    run = watch(tmp_path / "log")
    assert run.total == 1 and run.steps.tolist() == [1, 2, 3, 4, 5, 6]
    assert run[names.HELD_OUT].values == pytest.approx([2.0, 1.9, 1.8, 1.7, 1.6, 1.5])


def test_each_rule_reads_what_monitors_record():
    known = set(names.FIRST_ORDER)
    assert [rule.reads for rule in RULES if rule.reads not in known] == []
    assert len({rule.id for rule in RULES}) == len(RULES) == len(Fault)


def test_where_a_lower_loss_is_no_progress_nothing_is_concluded_from_it(tmp_path):
    """Losses that rise and leap, of a network whose gradients add up."""
    model = network()
    optimizer = sgd(model, 1e-3)
    x, y = examples(256)
    monitor = Monitor(tmp_path / "log", every=5, stationary=False)
    monitor.own_step.affords = lambda step: True
    for step in range(120):
        (cross_entropy(model(x), y) * (1 + step)).backward()
        optimizer.step()
        monitor(step, model, loss=float(2.0 ** (step / 10)))
    run = watch(tmp_path / "log")
    assert not run.stationary and run.warnings == ()
    assert {finding.id for finding in run.findings if finding.sign != "✓"} == {
        Fault.GRADIENTS_ADD_UP
    }
    assert "loss-went" in {finding.id for finding in run.findings}
