"""One run of a claim without the engine, for tests of its fields."""

from steepest.claim import seeded
from steepest.core.checks import judge_numbers


def judged(claim, seed=0):
    """Return a claim's verdict and reason, and try its rivals, controls and panels; stop where it is out of range."""
    for_setting, for_observation = seeded(seed)
    setting = claim.setting(for_setting)
    hypotheses = claim.hypotheses(setting)
    if not all(one.holds for one in hypotheses):
        return judge_numbers(hypotheses, ())
    predicted = claim.predict(setting)
    observed = claim.observe(setting, for_observation)
    assumptions = [*hypotheses, *claim.run_conditions(observed)]
    claim.rivals(setting, predicted)
    claim.controls(observed)
    claim.panels(predicted, observed)
    return judge_numbers(assumptions, claim.judge(predicted, observed))
