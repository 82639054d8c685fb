"""Generated damage to stored results and points: it is said, left out or computed again, and never believed."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import warnings
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from steepest.app.listing import known_claims, last_verdict
from steepest.core.errors import UserError
from steepest.core.panels import panels_to_json
from steepest.core.records import canonical_digest
from steepest.engine import crew, fingerprint, sweeps
from steepest.engine.records import Records
from steepest.engine.run import run
from steepest.engine.store import Damaged, Question, Store
from steepest.site.pages import _diagrams
from tests.small import small_catalogue

EXAMPLES = int(os.environ.get("STEEPEST_EXAMPLES", "30"))
"""Damages of each test; more of them, and random ones, look for new faults by hand."""

PATIENCE = 60
"""Seconds after which an example hangs."""

SAMPLE = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="STEEPEST_EXAMPLES" not in os.environ,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

AXES = {"rate": "0.25,0.5", "seed": "0:3"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Results of two claims, two of the first, and the points of a sweep: what is damaged is a copy of it."""
    stamp = cache(fingerprint.stamp)  # the code stays as it is, so its digests are taken once
    with small_catalogue(tmp_path_factory.mktemp("claims")), pytest.MonkeyPatch.context() as patch:
        for module in ("fingerprint", "run", "sweeps._pieces"):
            patch.setattr(f"steepest.engine.{module}.stamp", stamp)
        root = tmp_path_factory.mktemp("whole") / "results"
        for name, options in (("plain-decay", {}), ("plain-decay", {"seed": 1}), ("growing", {})):
            run(name, store=Store(root), **options)
        plan = sweeps.plan("plain-decay", AXES)
        sweeps.work(plan, root).run()
        yield root


@pytest.fixture(scope="module")
def true(whole):
    """What is read where nothing is damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_all(whole)


# ------------------------------------------------------------------------------------------------ damage


def truncate(draw, text):
    return text[: draw(st.integers(0, len(text)))]


def flip(draw, text):
    place = draw(st.integers(0, max(0, len(text) - 1)))
    change = draw(st.integers(1, 255))
    return text[:place] + bytes(old ^ change for old in text[place : place + 1]) + text[place + 1 :]


def insert(draw, text):
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.binary(min_size=1, max_size=20)) + text[place:]


def replace(draw, text):
    odd = [b"", b"null", b"[]", b"{}", b'"x"', b"0", b"\xff\xfe", b"[" * 100_000, b"NaN", b"PK\3\4"]
    odd += [b"9" * 5000, b'{"a": -1e999}', b'{"digest": "\\ud800"}', b'{"a":' * 50_000]
    return draw(st.sampled_from(odd))


def repeat(draw, text):
    return text + text


VALUES = [None, True, 0, -1, 1e300, float("nan"), float("inf"), "", "holds", "fails", [], {}, [{}]]
VALUES += ["\ud800", "[/]", "\x1b[2J\0", 2**70, [[1]], {"a": 1}]


def edit(draw, record):
    """Change, remove or add one thing somewhere in a JSON object."""
    parent = record
    name = draw(st.sampled_from(list(record)))
    while isinstance(parent[name], dict | list) and parent[name] and draw(st.integers(0, 4)):
        parent = parent[name]
        name = draw(
            st.sampled_from(list(parent) if isinstance(parent, dict) else range(len(parent)))
        )
    how = draw(st.sampled_from(["value", "remove", "add"]))
    if how == "value":
        parent[name] = draw(st.sampled_from(VALUES))
    elif how == "remove":
        del parent[name]
    elif isinstance(parent, list):
        parent.append(draw(st.sampled_from(VALUES)))
    else:
        parent["more"] = draw(st.sampled_from(VALUES))


def edited(draw, text):
    """The JSON with one thing changed, as a person with an editor does it: the checksum stays."""
    record = {"all": json.loads(text)}
    edit(draw, record)
    return json.dumps(record.get("all")).encode()


def duplicated(draw, text):
    """A key twice, the second time with another value: readers take the last."""
    start = text.index(b"{") + 1
    inner = text.rindex(b"}")
    pairs = [b'"verdict": "fails"', b'"seed": 7', b'"digest": "0"', b'"plan": {}', b'"point": 1']
    pair = draw(st.sampled_from(pairs))
    if draw(st.booleans()):
        return text[:start] + pair + b"," + text[start:]
    return text[:inner] + b"," + pair + text[inner:]


def rewrite(draw, path, whole):
    """Other bytes in a file."""
    text = path.read_bytes()
    ways = [truncate, flip, insert, replace, repeat]
    if path.suffix == ".json":
        ways += [edited, edited, duplicated]
    path.write_bytes(draw(st.sampled_from(ways))(draw, text))


def remove(draw, path, whole):
    path.unlink()


def as_a_folder(draw, path, whole):
    path.unlink()
    path.mkdir()


def dangling(draw, path, whole):
    path.unlink()
    path.symlink_to("nowhere")


def linked_to_itself(draw, path, whole):
    path.unlink()
    path.symlink_to(path.name)


def as_a_pipe(draw, path, whole):
    """What opens and never ends: a pipe that nobody writes to, a socket, a device."""
    path.unlink()
    kind = draw(st.sampled_from(["pipe", "socket", "device"]))
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        here = Path.cwd()
        with socket.socket(socket.AF_UNIX) as end:
            try:
                os.chdir(path.parent)  # the name of a socket may be short only
                end.bind(path.name)
            finally:
                os.chdir(here)


def swapped(draw, path, whole):
    """A file exchanged with its like in another place."""
    likes = (other for other in whole.rglob(path.name) if other != path)
    others = sorted(other for other in likes if other.is_file() and not other.is_symlink())
    if others:
        shutil.copyfile(draw(st.sampled_from(others)), path)


def folder_swapped(draw, path, whole):
    """A whole folder exchanged with another result's or point's."""
    others = sorted(other.parent for other in whole.rglob(path.name) if other.parent != path.parent)
    if others:
        shutil.rmtree(path.parent)
        shutil.copytree(draw(st.sampled_from(others)), path.parent)


def folder_replaced(draw, path, whole):
    """A file or a link where a folder should be."""
    shutil.rmtree(path.parent)
    if draw(st.booleans()):
        path.parent.write_bytes(b"mine")
    else:
        path.parent.symlink_to("nowhere")


def extra(draw, path, whole):
    """Something beside it that is not ours."""
    names = ["0" * 16, "notes.txt", ".new-x-1", "\udcff", "points", "figure.svg", "more.json"]
    other = path.parents[draw(st.integers(0, 1))] / draw(st.sampled_from(names))
    if not other.exists():
        if draw(st.booleans()):
            other.mkdir()
        else:
            other.write_bytes(b"{}")


HARMS = (rewrite, rewrite, rewrite, remove, as_a_folder, dangling, linked_to_itself, swapped)
HARMS += (as_a_pipe, folder_swapped, folder_replaced, extra)


def harm(draw, root):
    """Damage one or two files of a store."""
    files = sorted(path for path in root.rglob("*") if path.is_file())
    for path in draw(st.lists(st.sampled_from(files), min_size=1, max_size=2, unique=True)):
        if path.is_file() and not path.is_symlink():
            with contextlib.suppress(ValueError):  # the first harm left nothing that can be edited
                draw(st.sampled_from(HARMS))(draw, path, root)


# ----------------------------------------------------------------------------------------------- reading


def comparable(result):
    """All that a result says, arrays and panels included, as text."""
    arrays = {name: (values.dtype.str, values.tolist()) for name, values in result.arrays.items()}
    rivals = [
        (rival.id, rival.why, {name: values.tolist() for name, values in rival.prediction.items()})
        for rival in result.rival_predictions
    ]
    return repr((result.to_json(), arrays, rivals, panels_to_json(result.panels)))


def without_times(text):
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "then", text)
    return re.sub(r"(['\"]seconds['\"]): [0-9.e-]+", r"\1: 0", text)


def read_all(root, times=True):
    """A digest of every result and point that any reader of a store finds, by where it was found."""
    texts = {place: text if times else without_times(text) for place, text in read_texts(root)}
    return {place: hashlib.sha256(text.encode()).hexdigest() for place, text in texts.items()}


def read_texts(root):
    """Everything that is found, where it was found; one place is never read in two ways."""
    found = {}
    store = Store(root)
    for folder, result in store:
        found["store", folder.relative_to(root)] = comparable(result)
        assert store.find(Question.of(result)) is not None
    records = Records(root)
    for entry in known_claims(records):
        for result in store.of_claim(entry.name):
            key = Question.of(result).key
            assert found["store", Path(entry.name, key)] == comparable(result)
        verdict = last_verdict(entry, records)
        if verdict:
            found["list", entry.name] = verdict
        for seed in (0, 1):
            result = crew.stored(entry, store, "quick", seed)
            if result is not None:
                found["stored", entry.name, seed] = comparable(result)
    for name, swept in _diagrams.gather(root).items():
        for one in swept:
            found["plan", name, one.key] = json.dumps(one.plan.to_json())
            for key, point in zip(one.plan.keys, one.points, strict=True):
                if point is not None:
                    found["point", key] = json.dumps(point)
    return found.items()


@pytest.fixture
def copied(whole, tmp_path):
    """Make a copy of the store for each example, under one path: what a plan says of its place stays true."""

    def copy():
        signal.alarm(PATIENCE)
        shutil.rmtree(tmp_path / "results", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "results")
        return tmp_path / "results"

    before = signal.signal(signal.SIGALRM, hangs)
    yield copy
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def hangs(number, frame):
    raise AssertionError(f"an example takes more than {PATIENCE} s")


@SAMPLE
@given(data=st.data())
def test_damage_is_never_believed(copied, true, data):
    """What is read from a damaged store is true, and the rest is left out with a sentence."""
    root = copied()
    harm(data.draw, root)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = read_all(root)
    assert not {place for place, digest in found.items() if true.get(place) != digest}
    assert all(issubclass(warning.category, Damaged) for warning in said)
    assert all("\n" not in str(warning.message) for warning in said)


@settings(SAMPLE, max_examples=EXAMPLES // 3)
@given(data=st.data())
def test_what_is_damaged_is_computed_again(copied, whole, data):
    """A run and a sweep on a damaged store end with what a whole store holds."""
    root = copied()
    harm(data.draw, root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Damaged)
        for name, seed in (("plain-decay", 0), ("plain-decay", 1), ("growing", 0)):
            run(name, seed=seed, store=Store(root))
        try:
            sweeps.work(sweeps.plan("plain-decay", AXES), root).run()
        except UserError:  # the user's own file lies where plans are kept
            assert not (root / "plain-decay" / "sweeps").is_dir()
            return
        assert read_all(root, times=False) == read_all(whole, times=False)


def sign(path):
    """Give a file the checksum of what it says, as another program might write it."""
    if path.name == "panels.json":
        record = json.loads((path.parent / "result.json").read_bytes())
        record["files"]["panels.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
        path = path.parent / "result.json"
    else:
        record = json.loads(path.read_bytes())
    if path.name == "point.json":
        text = json.dumps(record["point"], separators=(",", ":")).encode()
        digest = hashlib.sha256(text).hexdigest()[:16]
        path.write_bytes(b'{"digest": "' + digest.encode() + b'", "point": ' + text + b"}")
    elif path.name == "result.json":
        record.pop("digest", None)
        record["digest"] = canonical_digest(record)
        path.write_text(json.dumps(record))
    else:
        record["digest"] = canonical_digest(record["plan"])
        path.write_text(json.dumps(record))


@SAMPLE
@given(data=st.data())
def test_what_another_program_signed_is_read_or_left_out(copied, data):
    """No checksum tells these: whatever they hold, no reader may break off over them."""
    root = copied()
    path = data.draw(st.sampled_from(sorted(root.rglob("*.json"))))
    record = json.loads(path.read_bytes())
    part = {"point.json": "point", "result.json": None, "panels.json": None}.get(path.name, "plan")
    edit(data.draw, {"all": record} if part is None else record[part])
    path.write_text(json.dumps(record))
    with contextlib.suppress(TypeError, AttributeError):  # no object is left to sign
        sign(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Damaged)
        read_all(root)
        sweeps.work(sweeps.plan("plain-decay", AXES), root)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("checks", 0, "predicted"), ""),
        (("checks", 0, "name"), None),
        (("checks", 0, "interval", "low"), []),
        (("hypotheses", 0, "threshold"), "x"),
        (("rivals", 0, "by"), [[]]),
        (("controls", 0, "by"), "faster"),
        (("says", 0, "checks"), [None]),
        (("seconds",), ""),
    ],
)
def test_a_signed_result_whose_fields_have_other_types_is_left_out(copied, place, value):
    """Pages and lists would break off over each of them."""
    root = copied()
    path = next(iter(sorted(root.rglob("result.json"))))
    record = json.loads(path.read_bytes())
    part = record
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    path.write_text(json.dumps(record))
    sign(path)
    with pytest.warns(Damaged):
        stored = dict(Store(root))
    assert path.parent not in stored
