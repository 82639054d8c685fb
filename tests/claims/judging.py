"""One run of a claim without the engine, for tests of its fields."""

from steepest.core.checks import judge_numbers
from steepest.core.experiment import seeded


def judged(claim, seed=0):
    """Return a claim's verdict and reason, and try its rivals, controls and figure; stop where it is out of range."""
    for_setting, for_observation = seeded(seed)
    setting = claim.setting(for_setting)
    hypotheses = tuple(claim.hypotheses(setting))
    if not all(one.holds for one in hypotheses):
        return judge_numbers(hypotheses, ())
    predicted = claim.predict(setting)
    observed = claim.observe(setting, for_observation)
    assumptions = [*hypotheses, *claim.run_conditions(observed)]
    rivals = claim.wrong_theories(setting, predicted)
    claim.changed_worlds(observed)
    checks = claim.checks(predicted, observed)
    claim.draw_figure(predicted, observed, rivals)
    return judge_numbers(assumptions, checks)
