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
    if hasattr(claim, "wrong_theories"):
        claim.wrong_theories(setting, predicted)
        claim.changed_worlds(observed)
        checks = claim.checks(predicted, observed)
    else:
        claim.rivals(setting, predicted)
        claim.controls(observed)
        checks = claim.judge(predicted, observed)
    claim.panels(predicted, observed)
    return judge_numbers(assumptions, checks)
