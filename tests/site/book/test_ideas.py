"""Drawings of ideas and toys: what they show is so, by other ways of calculating it."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.svm import SVC

from steepest.core.errors import UserError
from steepest.site.book import _html
from steepest.site.book.ideas import IDEAS, TOYS, _descents, _shapes, _spaces, _toys
from tests.site.book.node import printed

ROLES = {"ink", "soft", "rule", "observed", "predicted", "context", "paper", "gap-line"}
DRAWINGS = {**IDEAS, **TOYS}


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_whole_and_has_the_colours_of_the_page(name):
    drawn = DRAWINGS[name]()
    root = ElementTree.fromstring(drawn.svg)
    assert root.attrib["aria-label"]
    assert set(re.findall(r"var\(--([a-z-]+)\)", drawn.svg)) <= ROLES
    assert "nan" not in drawn.svg
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for circle in root.iter("circle"):
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height
    for words in root.iter("text"):
        size = 0.62 * float(words.attrib["font-size"]) * len(words.text)
        ends = {"start": (0, 1), "middle": (0.5, 0.5), "end": (1, 0)}[words.attrib["text-anchor"]]
        assert float(words.attrib["x"]) + ends[1] * size <= width + 20, words.text
        assert float(words.attrib["x"]) - ends[0] * size >= -20, words.text
        assert 0 < float(words.attrib["y"]) <= height, words.text


def test_what_is_not_there_is_refused_by_name():
    with pytest.raises(UserError, match="drawing"):
        _html.idea("vally")
    with pytest.raises(UserError, match="toy"):
        _html.toy("parabolla")


def test_the_line_with_the_largest_margin_is_that_of_a_solver():
    x, y = _spaces.examples()
    solver = SVC(kernel="linear", C=1e6).fit(x, y)
    w = solver.coef_[0]
    assert 1 / np.linalg.norm(w) == pytest.approx(_spaces.MARGIN, rel=1e-3)
    assert abs(w @ _spaces.DIRECTION) / np.linalg.norm(w) == pytest.approx(1, rel=1e-4)


def test_time_on_the_circle_is_that_of_a_chain():
    """A walk on a ring of many sites, with steps of one site on its slow half and of two on the other."""
    sites = 240
    slow = np.arange(sites) < sites // 2
    chain = np.zeros((sites, sites))
    for site in range(sites):
        step = 1 if slow[site] else 2
        chain[site, (site + step) % sites] += 0.5
        chain[site, (site - step) % sites] += 0.5
    values, vectors = np.linalg.eig(chain.T)
    share = np.abs(vectors[:, np.argmin(np.abs(values - 1))].real)
    assert share[slow].sum() / share.sum() == pytest.approx(0.8, abs=0.01)
    # areas of dots
    large = _spaces.SLOW_DOT
    small = _spaces.FAST_DOT
    assert large**2 / (large**2 + small**2) == pytest.approx(0.8)


def test_neurons_end_in_the_direction_of_the_sum():
    examples = np.array([35.0, 75.0, 110.0, 265.0]) * np.pi / 180
    labels = np.array([1.0, 1.0, 1.0, -1.0])
    angles, lengths = _shapes.turning(2.8, examples, labels)
    total = np.exp(1j * examples[:3]).sum()
    assert angles[-1] == pytest.approx(np.angle(total), abs=0.02)
    assert (np.diff(lengths[len(lengths) // 2 :]) > 0).all()


def test_sharpness_stays_at_its_wall():
    for wall in (1.0, 2.0):
        late = _descents.at_the_edge(wall)[-150:]
        assert late.mean() == pytest.approx(wall, rel=0.1)


def test_the_catapult_is_the_recursion_of_two_layers():
    """Descent on two linear layers of numbers, of which the recursion follows error and kernel."""
    rng = np.random.default_rng(0)
    neurons = int(_toys.NEURONS)
    u = rng.standard_normal(neurons)
    v = rng.standard_normal(neurons)
    # a start of error one with a kernel of one, so that the step is the product
    u, v = _with_error(u, v, 1.0)
    kernel = (u @ u + v @ v) / neurons
    lr = 2.6 / kernel
    scale = lr  # errors in units of 1/η
    u, v = _with_error(u, v, 1.0 / scale)
    risks = []
    products = []
    for _ in range(20):
        error = u @ v / neurons**0.5
        risks.append(np.log10((error * scale) ** 2))
        products.append(lr * (u @ u + v @ v) / neurons)
        slope = error / neurons**0.5
        before = u
        u = u - lr * slope * v
        v = v - lr * slope * before
    risk, curvature = _toys.steps_of_catapult(products[0])
    np.testing.assert_allclose(curvature[:20], products, rtol=1e-6)
    np.testing.assert_allclose(risk[:20], np.clip(risks, _toys.LOWEST, _toys.HIGHEST), atol=1e-6)


def _with_error(u, v, error):
    """Return the weights with v changed along u so that the error is as given."""
    wanted = error * len(u) ** 0.5
    return u, v + (wanted - u @ v) / (u @ u) * u


@pytest.mark.parametrize("product", [0.5, 1.9, 2.2, 3.95, 4.2])
def test_the_script_calculates_what_is_drawn(product):
    source = (Path(_html.__file__).parent / "toys.js").read_text("utf-8")
    only = source[: source.index("document.querySelectorAll")]
    asked = f"console.log(JSON.stringify([calculations.parabola({product}), calculations.catapult({product})]))"
    of_parabola, of_catapult = printed(only + asked)
    path = np.array(of_parabola["lines"]["path"])
    np.testing.assert_allclose(path[:, 0], _toys.steps_on_parabola(product))
    risk, curvature = _toys.steps_of_catapult(product)
    np.testing.assert_allclose(np.array(of_catapult["lines"]["risk"])[:, 1], risk, atol=1e-9)
    np.testing.assert_allclose(np.array(of_catapult["lines"]["curvature"])[:, 1], curvature)
