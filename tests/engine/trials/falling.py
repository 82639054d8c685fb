"""A claim in a file of its own, with a scope in which it holds, fails, crashes and leaves its range, at no cost."""

FALLING = '''"""A ball falls by half g t² from every height."""

import jax
import numpy as np

from steepest import kit
from steepest.core.errors import UserError


@kit.claim
class Falling(kit.Claim[None]):
    """Noisy readings of how far a ball fell."""

    gravity: kit.Positive = kit.param(9.8, "g", unit="m/s²", scope=kit.between(1.0, 20.0))
    drag: float = kit.param(0.0, "what the law leaves out", scope=kit.between(0.0, 1.0))
    readings: kit.Count = kit.param(9, "times", scope=kit.between(5, 12))
    medium: str = kit.param("air", "where", scope=kit.choices("air", "water"))
    seeds: kit.Seeds = kit.param(4, "repetitions")

    kind = "theorem"
    says = {"falls by half g t²": "distance"}
    statement = "d = g t^2 / 2"
    source = "Galileo"
    full = {"seeds": 8}
    tiny = {"seeds": 3}

    def check_fields(self):
        if self.medium == "water" and self.drag > 0.3:
            raise UserError("water has less drag; try --drag 0.1")

    def axes(self):
        return {"time": np.linspace(0.5, 2, self.readings).tolist()}

    def hypotheses(self, setting):
        return [kit.assume("gravity", self.gravity, ">=", 2.0, "choose a larger --gravity")]

    def predict(self, setting):
        return kit.law(distance=("time", self.gravity * np.array(self.axes()["time"]) ** 2 / 2))

    def observe(self, setting, key):
        if self.gravity > 12:
            raise RuntimeError("the solver gave up\\nat length")
        time = np.array(self.axes()["time"])
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        noise = 1 + 0.002 * rng.standard_normal((self.seeds, time.size))
        fell = self.gravity * time**2 / 2 * (1 - self.drag / 3)
        return kit.seen(distance=("seed time", fell * noise), held=("seed time", noise))

    def judge(self, law, seen):
        yield kit.follows("distance", law.distance, seen.distance, 0.1, over="time")

    def rivals(self, setting, law):
        yield kit.rival("g t²", "a factor", id="whole", distance=law.distance * 2)

    def controls(self, seen):
        yield kit.control("held", "a ball that is held does not fall", distance=seen.held)

    def figure(self, law, seen, rivals):
        yield kit.curves("It falls", law.distance, seen.distance, over="time")
'''


def write_falling(folder, name="falling", **changed):
    """Write the claim into a file, some words of it changed, and return the file."""
    text = FALLING
    for old, new in changed.items():
        assert WORDS[old] in text
        text = text.replace(WORDS[old], new)
    path = folder / f"{name}.py"
    path.write_text(text, "utf-8")
    return path


WORDS = {
    "drag": 'kit.param(0.0, "what the law leaves out", scope=kit.between(0.0, 1.0))',
    "version": '    kind = "theorem"\n',
    "refusal": 'if self.medium == "water" and self.drag > 0.3:',
    "observe": "        if self.gravity > 12:\n",
}
"""What :func:`write_falling` can change."""
