"""What a referee finds: one planted weakness a test."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from steepest import kit
from steepest.core.arrays import Prediction
from steepest.core.words import Verdict
from steepest.engine.referee import Flaw, Severity, _laws, bench_of, judge_arrays, proposals, review
from steepest.engine.run import execute, ready
from steepest.engine.store import Store
from tests.kit.decay import Decay
from tests.referee.plain import Plain, at_each_width
from tests.small import SOURCE

DECAY = Path(__file__).parent.parent / "kit" / "decay.py"


def case(claim):
    asked = ready(claim)
    return bench_of(asked, execute(asked))


def found(claim, flaw):
    """The findings of one kind, by array or check."""
    findings = [finding for finding in judge_arrays(case(claim)) if finding.id is flaw]
    return {finding.array or finding.checks[0]: finding for finding in findings}


def judged_by(base, judged, headline, **attributes):
    """A claim with another judge and headline."""
    return type("Changed", (base,), {"judge": judged, "headline": headline, **attributes})()


# --------------------------------------------------------------------------------------- nothing to find


@pytest.mark.parametrize("claim", [Plain(), Decay()])
def test_a_sound_claim_has_nothing_severe(claim):
    severe = [f for f in judge_arrays(case(claim)) if f.severity is Severity.SEVERE]
    assert severe == []


def test_a_review_of_a_sound_claim_is_not_severe(tmp_path):
    reviewed = review(DECAY, Store(tmp_path), runs=2)
    assert not reviewed.severe
    assert [run.verdict for run in reviewed.runs] == [Verdict.HOLDS, Verdict.HOLDS]


# ------------------------------------------------------------------------------------------------ laws


def of_the_mean(self, law, seen):
    return [kit.follows("mean", law.y.mean(), seen.y.mean("width"), 0.1)]


def test_a_law_that_is_judged_through_its_mean():
    claim = judged_by(Plain, of_the_mean, ("mean",))
    finding = found(claim, Flaw.LAW_NOT_TOLD)["y"]
    assert (finding.severity, finding.axis, finding.checks) == (Severity.SEVERE, "width", ("mean",))
    assert {"flat", "reversed"} <= set(finding.numbers["kinds"])


def test_such_a_check_is_named():
    claim = judged_by(Plain, of_the_mean, ("mean",))
    assert found(claim, Flaw.MEAN_ALONE)["y"].checks == ("mean",)


def test_outside_the_headline_it_is_weak():
    both = lambda self, law, seen: Plain.judge(self, law, seen)[:1] + of_the_mean(self, law, seen)
    claim = judged_by(Plain, both, ("each_0",))
    finding = found(claim, Flaw.LAW_NOT_TOLD).get("y")
    assert finding is None  # each_0 tells them all apart
    level = lambda self, law, seen: [
        kit.follows("level", 3.0, seen.same, 0.1),
        *of_the_mean(self, law, seen),
    ]
    beside = judged_by(Plain, level, ("level",))
    assert found(beside, Flaw.LAW_NOT_TOLD)["y"].severity is Severity.WEAK


def test_a_law_over_axes_that_only_wide_margins_judge():
    def wide(self, law, seen):
        yield kit.follows("follows", law.y, seen.y, 50.0)

    finding = found(judged_by(Decay, wide, ("follows",)), Flaw.LAW_NOT_TOLD)["y"]
    assert finding.severity is Severity.SEVERE
    assert set(finding.numbers["kinds"]) == {"flat", "halved", "reversed", "steeper", "shallower"}


def test_what_the_claim_says_it_cannot_tell_is_a_note():
    def wide(self, law, seen):
        yield kit.follows("follows", law.y, seen.y, 50.0)

    kinds = ("flat", "halved", "reversed", "steeper", "shallower")
    not_told = {f"y.width.{kind}": "few widths" for kind in kinds}
    claim = judged_by(Decay, wide, ("follows",), not_told=not_told)
    assert found(claim, Flaw.LAW_NOT_TOLD)["y"].severity is Severity.NOTE


def test_a_law_that_would_be_undecided_is_no_more_than_weak():
    def loose(self, law, seen):
        return [kit.follows("of_widths", 1.0, seen.y.mean("seed") / law.y, 0.05)]

    finding = found(judged_by(Plain, loose, ("of_widths",)), Flaw.LAW_NOT_TOLD)["y"]
    assert finding.severity is Severity.WEAK
    assert set(finding.numbers["undecided"]) == set(finding.numbers["kinds"])


class Angles(Plain):
    """A law that rises along an axis of repetitions, or of a design, and is judged through its mean."""

    headline = ("mean",)

    def predict(self, setting):
        return kit.law(y=("draw", np.linspace(1, 2, 8)))

    def observe(self, setting, key):
        measured = np.linspace(1, 2, 8) + 0.01 * np.cos(np.arange(8))
        return super().observe(setting, key).replace(y=("draw", measured))

    def judge(self, law, seen):
        return [kit.follows("mean", law.y.mean(), seen.y.mean(), 0.1)]

    def controls(self, seen):
        return []

    def figure(self, law, seen, rivals):
        return ()


class AnglesByDesign(Angles):
    """The same, where the claim gives the axis coordinates."""

    def axes(self):
        return {"draw": range(1, 9)}


@pytest.mark.parametrize(
    ("claim", "severity"), [(Angles(), Severity.WEAK), (AnglesByDesign(), Severity.SEVERE)]
)
def test_an_axis_designs_the_experiment_where_the_claim_gives_it_coordinates(claim, severity):
    finding = found(claim, Flaw.LAW_NOT_TOLD)["y"]
    assert (finding.axis, finding.severity) == ("draw", severity)


def test_a_size_that_nothing_sees():
    def loose(self, law, seen):
        return at_each_width(law, seen, within=0.3)

    finding = found(judged_by(Plain, loose, Plain.headline), Flaw.SIZE_NOT_TOLD)["y"]
    assert finding.severity is Severity.WEAK
    assert finding.numbers["kinds"] == ["x 0.9", "x 1.1"]


def test_an_array_that_no_check_reads():
    class Drawn(Plain):
        def predict(self, setting):
            return super().predict(setting).replace(extra=("width", [1.0, 2, 3, 4]))

    assert found(Drawn(), Flaw.ONLY_DRAWN)["extra"].severity is Severity.NOTE
    assert "extra" not in found(Drawn(), Flaw.LAW_NOT_TOLD)


# ---------------------------------------------------------------------------------------------- worlds


def test_a_headline_that_noise_passes_is_an_identity():
    def parts_of_one(self, law, seen):
        parts = seen.y / seen.y.sum("width")
        return [kit.follows("parts", 1.0, parts.sum("width") + 1e-9 * seen.y.isel(width=0), 0.05)]

    finding = found(judged_by(Plain, parts_of_one, ("parts",)), Flaw.IDENTITY)["parts"]
    assert finding.severity is Severity.SEVERE
    assert finding.numbers["arrays"] == ["y"]


def test_a_residual_far_below_its_tolerance_is_no_identity():
    class Residual(Plain):
        headline = ("residual",)

        def observe(self, setting, key):
            observed = super().observe(setting, key)
            return observed.replace(y=("seed width", 1e-16 * observed["y"]))

        def judge(self, law, seen):
            return [kit.follows("residual", 0.0, seen.y.isel(width=0), 1e-6, absolute=True)]

        def controls(self, seen):
            return []

    assert found(Residual(), Flaw.IDENTITY) == {}
    assert found(Residual(), Flaw.WORLD_NOT_TOLD) == {}


class Still(Plain):
    """A share that is zero, a number that is three, and two sizes of one kind, of which none is judged."""

    headline = ("judged",)

    def observe(self, setting, key):
        shape = (self.seeds, len(self.widths))
        length, breadth = 1 + kit.numpy_generator(key).random((2, self.seeds, 100))
        axes = "seed width"
        seen = super().observe(setting, key)
        return seen.replace(
            share=(axes, np.zeros(shape)),
            number=(axes, np.full(shape, 3)),
            length=("seed sample", length),
            breadth=("seed sample", breadth),
        )

    def controls(self, seen):
        return []


def never(law, seen):
    """No share is above zero."""
    return kit.follows("judged", 0.0, seen.share, 0.0, absolute=True, each=True)


def blind_to_shares(law, seen):
    """No share is above fifty, which none can be."""
    beyond = (seen.share > 50).astype(float)
    return kit.follows("judged", 0.0, beyond, 0.0, absolute=True, each=True)


def always_three(law, seen):
    return kit.follows("judged", 3.0, seen.number, 0.0, each=True)


def whole_numbers(law, seen):
    """A whole number is one, whichever."""
    whole = (seen.number == np.round(seen.number)) & (seen.number < 50)
    return kit.follows("judged", 1.0, whole.astype(float), 0.0, each=True)


def large_enough(law, seen):
    return kit.at_least("judged", 0.9, seen.length.mean("sample"))


def a_square(law, seen):
    """No square is negative."""
    return kit.at_least("judged", 0.0, seen.length.mean("sample") ** 2)


def ordered(seen):
    return (seen.length > seen.breadth).astype(float).mean("sample")


def alike(law, seen):
    """Neither is the larger much more often than the other."""
    return kit.at_most("judged", 0.7, ordered(seen))


def one_or_the_other(law, seen):
    """One of two is the larger."""
    both = seen.length / (seen.length + seen.breadth) + seen.breadth / (seen.length + seen.breadth)
    return kit.follows("judged", 1.0, both + 1e-9 * seen.length, 0.05)


@pytest.mark.parametrize("check", [never, always_three, large_enough, alike])
def test_noise_that_is_a_world_as_the_claim_says_makes_no_identity(check):
    """Noise of size zero, noise above a bound from below, and equal noise in two arrays that are to be alike."""
    claim = judged_by(Still, lambda self, law, seen: [check(law, seen)], ("judged",))
    assert case(claim).own["judged"].verdict is Verdict.HOLDS
    assert found(claim, Flaw.IDENTITY) == {}


@pytest.mark.parametrize("check", [blind_to_shares, whole_numbers, a_square, one_or_the_other])
def test_an_identity_is_one_with_such_noise_too(check):
    claim = judged_by(Still, lambda self, law, seen: [check(law, seen)], ("judged",))
    assert found(claim, Flaw.IDENTITY)["judged"].severity is Severity.SEVERE


@pytest.mark.parametrize("may_be_negative", [True, False])
def test_noise_has_both_signs_where_a_changed_world_has(may_be_negative):
    """That all are positive is an identity of squares, and none of eigenvalues."""

    def judged(self, law, seen):
        positive = (seen.length > 0).astype(float)
        return [kit.follows("judged", 1.0, positive, 0.0, each=True)]

    def controls(self, seen):
        sign = -1.0 if may_be_negative else 1.0
        return [kit.control("turned", "it is another surface", length=sign * seen.length)]

    claim = judged_by(Still, judged, ("judged",), controls=controls)
    assert (found(claim, Flaw.IDENTITY) == {}) is may_be_negative


def test_a_world_turned_round_that_nothing_misses():
    finding = found(judged_by(Plain, of_the_mean, ("mean",)), Flaw.WORLD_NOT_TOLD)["y"]
    assert finding.axis == "width"
    assert set(finding.numbers["kinds"]) == {"shuffled", "reversed", "constant"}


def test_a_check_that_does_not_need_one_of_what_it_reads():
    def also_reads(self, law, seen):
        gap = seen.y.isel(width=0) + 1e-9 * seen.same
        return [kit.follows("each_0", law.y.isel(width=0), gap, 0.05)]

    findings = judge_arrays(case(judged_by(Plain, also_reads, ("each_0",))))
    (finding,) = [f for f in findings if f.id is Flaw.WORLD_NOT_TOLD and f.array == "same"]
    assert (finding.severity, finding.numbers["kinds"]) == (Severity.NOTE, ["noise"])


# -------------------------------------------------------------------------------------------- rankings


def test_a_ranking_that_steps_pass():
    def ranked(self, law, seen):
        yield from Plain.judge(self, law, seen)
        yield kit.ranks("rank", -law.y, seen.risk, over="width")

    finding = found(judged_by(Plain, ranked, ("rank",)), Flaw.CHEAP_NULL)["risk"]
    assert finding.severity is Severity.WEAK
    assert set(finding.numbers["nulls"]) == {"-y", "steps"}


def test_a_ranking_that_says_what_passes_it_is_a_note():
    def ranked(self, law, seen):
        yield kit.ranks("rank", -law.y, -seen.y, over="width", at_hand={"flat": -seen.y})

    class Ranked(Decay):
        def observe(self, setting, key):
            observed = super().observe(setting, key)
            return observed.replace(other=("seed width", 2 * observed["y"]))

    finding = found(judged_by(Ranked, ranked, ("rank",)), Flaw.CHEAP_NULL)["y"]
    assert finding.severity is Severity.NOTE
    assert "other" in finding.numbers["nulls"]


# --------------------------------------------------------------------------------------------- records


def with_a_bound(self, law, seen):
    return [kit.at_most("bound", 1.0, seen.y.mean("width"))]


def test_a_bound_with_room():
    finding = found(judged_by(Plain, with_a_bound, ("bound",)), Flaw.BOUND_WITH_ROOM)["bound"]
    assert finding.severity is Severity.WEAK
    assert finding.numbers["room"] > 0.9


def test_a_bound_over_axes_with_room():
    def judged(self, law, seen):
        yield kit.at_most("bound", 1.0, seen.y, over="width")

    assert "bound" in found(judged_by(Decay, judged, ("bound",)), Flaw.BOUND_WITH_ROOM)


def test_a_check_that_notices_little():
    def judged(self, law, seen):
        return at_each_width(law, seen, within=0.8)[:1]

    finding = found(judged_by(Plain, judged, ("each_0",)), Flaw.NOTICES_LITTLE)["each_0"]
    assert finding.numbers["notices"] > 0.5


@pytest.mark.parametrize(
    ("headline", "severity"), [("count", Severity.SEVERE), ("each_0", Severity.WEAK)]
)
def test_an_interval_that_is_a_point(headline, severity):
    def counted(self, law, seen):
        yield from Plain.judge(self, law, seen)
        yield kit.follows("count", 3.0, seen.same, 0.2)

    finding = found(judged_by(Plain, counted, (headline,)), Flaw.NO_WIDTH)["count"]
    assert finding.severity is severity


def test_an_interval_over_axes_that_is_a_point():
    class Exact(Decay):
        def observe(self, setting, key):
            exact = np.ones((self.seeds, 1)) / setting.widths
            return super().observe(setting, key).replace(y=("seed width", exact))

    assert found(Exact(), Flaw.NO_WIDTH)["follows"].severity is Severity.SEVERE


def test_a_clause_without_a_check():
    (finding,) = [f for f in judge_arrays(case(Decay())) if f.id is Flaw.CLAUSE_NOT_TESTED]
    assert (finding.severity, finding.numbers["clause"]) == (Severity.NOTE, "whatever its width")


def test_a_clause_whose_numbers_nobody_put_before_its_judge():
    findings = [f for f in judge_arrays(case(Decay())) if f.id is Flaw.NUMBER_NOT_JUDGED]
    assert [f.numbers["clause"] for f in findings] == ["fall like 1/n"]
    says = {"fall like 1/n": kit.literal("follows", "y", power={"width": -1})}
    stated = judged_by(Decay, Decay.judge, Decay.headline, says=says)
    assert found_without_array(stated, Flaw.NUMBER_NOT_JUDGED) == []


def sentences(says, **texts):
    """The searches that are missing where a claim says this."""
    asked = ready(Plain())
    result = execute(asked)
    about = {**result.about, "says": says, **texts}
    findings = judge_arrays(bench_of(asked, replace(result, about=about)))
    return [f.numbers["words"] for f in findings if f.id is Flaw.NO_SEARCH]


def test_a_universal_sentence_without_a_search():
    assert sentences("The risk never rises.") == [["never"]]
    assert sentences("No network is wider.") == [["No network is"]]
    assert sentences("It completes from n log n entries on.") == [["from n log n entries on"]]
    assert sentences("Risks fall.", statement="Others are no KKT points.") == [["are no"]]
    assert sentences("Risks fall.", explanation="So it is, always.") == []
    assert sentences("Risks fall like 1/n, whatever the width.") == [["whatever"]]
    assert sentences("It holds at any curvature.") == [["any"]]
    assert sentences("Risks fall like 1/n.") == []


def test_a_universal_clause_with_a_search():
    def searched(self, law, seen):
        yield from Decay.judge(self, law, seen)
        yield kit.excluded("others", 1e-6, seen.y)

    says = {**Decay.says, "never": "others"}
    claim = judged_by(Decay, searched, Decay.headline, says=says)
    assert found_without_array(claim, Flaw.NO_SEARCH) == []
    unsearched = judged_by(Decay, Decay.judge, Decay.headline, says={"never": "follows"})
    (finding,) = found_without_array(unsearched, Flaw.NO_SEARCH)
    assert finding.reproduce.endswith(").kinds")
    assert case(unsearched).kinds["follows"] != "search"
    assert case(claim).kinds["others"] == "search"


def test_universal_words_beside_the_clauses_are_read_too():
    asked = ready(Decay())
    result = execute(asked)
    clauses = tuple(replace(clause, text="falls") for clause in result.clauses[:1])
    about = {**result.about, "says": "It never falls."}
    findings = judge_arrays(bench_of(asked, replace(result, about=about, clauses=clauses)))
    assert [f.numbers["clause"] for f in findings if f.id is Flaw.NO_SEARCH] == ["It never … ."]


def found_without_array(claim, flaw):
    return [finding for finding in judge_arrays(case(claim)) if finding.id is flaw]


def test_a_result_out_of_range_is_not_judged():
    claim = Decay(noise=2.0)
    (finding,) = judge_arrays(case(claim))
    assert finding.id is Flaw.NOTHING_JUDGED


# ------------------------------------------------------------------------------------------------ runs


def file_of(folder, old, new, source=None):
    """A claim's file with something planted in it."""
    text = source or DECAY.read_text("utf-8")
    assert old in text
    path = folder / "planted.py"
    path.write_text(text.replace(old, new), "utf-8")
    return path


def flaws(path, store, runs=6):
    reviewed = review(path, Store(store), runs=runs)
    return {finding.id: finding for finding in reversed(reviewed.findings)}, reviewed


def test_code_that_both_sides_call(tmp_path):
    call = "walsh_eigenvalues([1.0, 0.0, 1.0])\n        "
    text = DECAY.read_text("utf-8").replace("rng = kit", f"{call}rng = kit")
    imports = "from steepest import kit\n"
    text = text.replace(imports, f"{imports}from steepest.kernels import walsh_eigenvalues\n")
    path = file_of(tmp_path, "return kit.law(", f"{call}return kit.law(", text)
    finding = flaws(path, tmp_path / "results", 0)[0][Flaw.SHARED_CODE]
    assert finding.severity is Severity.WEAK
    assert "steepest.kernels.spectra._walsh.walsh_eigenvalues" in finding.numbers["functions"]
    reasons = dict.fromkeys(finding.numbers["functions"], "it is not used")
    reason = f"shared = {reasons}\n    "
    path = file_of(tmp_path, "def axes", f"{reason}def axes", path.read_text("utf-8"))
    assert Flaw.SHARED_CODE not in flaws(path, tmp_path / "results", 0)[0]


def test_a_failure_inside_the_scope(tmp_path):
    path = file_of(tmp_path, "clean = 1", "clean = (1 + (self.noise > 0.03)) * 1")
    by_id, reviewed = flaws(path, tmp_path / "results")
    finding = by_id[Flaw.FAILS]
    assert finding.severity is Severity.SEVERE
    assert finding.numbers["place"] == "inside"
    assert finding.reproduce.startswith("steepest run ")
    assert "--noise 0.04" in finding.reproduce
    assert reviewed.severe


def test_a_failure_at_half_or_double_a_field(tmp_path):
    old = "rates = self.rate + self.bias"
    new = "rates = self.rate + self.bias + 0.2 * (self.rate < 0.3)"
    path = file_of(tmp_path, old, new, SOURCE.format(says="It decays."))
    finding = flaws(path, tmp_path / "results")[0][Flaw.FAILS]
    assert finding.numbers["changes"] == {"rate": 0.25}
    assert finding.numbers["place"] == "off the preset"


def test_a_crash_off_the_preset(tmp_path):
    old = "rates = self.rate + self.bias"
    new = "assert self.rate > 0.3, 'too slow'\n        rates = self.rate + self.bias"
    path = file_of(tmp_path, old, new, SOURCE.format(says="It decays."))
    finding = flaws(path, tmp_path / "results")[0][Flaw.CRASHES]
    assert finding.severity is Severity.SEVERE
    assert "too slow" in finding.numbers["reason"]


def test_an_undecided_setting_is_a_note(tmp_path):
    old = "rates = self.rate + self.bias"
    new = "rates = self.rate + self.bias + 0.026 * (self.rate < 0.3)"
    text = SOURCE.format(says="It decays.").replace("kit.param(4,", "kit.param(3,")
    path = file_of(tmp_path, old, new, text.replace("kit.param(0.001,", "kit.param(0.004,"))
    assert flaws(path, tmp_path / "results")[0][Flaw.UNDECIDED].severity is Severity.NOTE


def test_settings_are_the_ends_of_the_scope_and_just_outside():
    settings = [(proposal.place, dict(proposal.changes)) for proposal in proposals(Decay())]
    assert ("inside", {"noise": 0.01}) in settings
    assert ("inside", {"widths": (8, 16, 64)}) in settings
    assert ("inside", {"widths": (8, 16, 64), "noise": 0.04}) in settings
    assert ("outside", {"noise": 0.046}) in settings
    assert all("seeds" not in changes for _, changes in settings)


def test_settings_without_a_scope_are_halves_and_doubles_cheapest_first():
    settings = [dict(proposal.changes) for proposal in proposals(Plain())]
    assert settings == [{"widths": (5, 10, 20, 40)}, {"widths": (20, 40, 80, 160)}]


def test_runs_at_other_settings_are_kept_apart(tmp_path):
    review(DECAY, Store(tmp_path), runs=1)
    assert len(list(Store(tmp_path).of_claim("decay"))) == 1
    assert len(list(Store(tmp_path / "decay" / "referee").of_claim("decay"))) == 1


# ------------------------------------------------------------------------------------------- by a reader


def test_a_reader_can_judge_wrong_arrays_again():
    bench = case(judged_by(Plain, of_the_mean, ("mean",)))
    assert bench.predict_wrong("y", "reversed", "width") == {"mean": "holds"}
    assert bench.observe_wrong("y", kind="reversed", axis="width") == {"mean": "holds"}
    assert bench.predict_wrong("y", "x 0.9")["mean"] == "fails"
    assert bench.observe_wrong("y")["mean"] != "holds"
    assert bench.rank_by("y", "-steps")["mean"] == "fails"


def test_what_a_judge_refuses_is_told_apart():
    def strict(self, law, seen):
        if np.isclose(law.y[0], 0.09):  # a tenth below the claim's own
            raise ValueError("no such law")
        return Plain.judge(self, law, seen)

    bench = case(judged_by(Plain, strict, Plain.headline))
    assert bench.predict_wrong("y", "x 0.9") == {}
    assert bench.outcome(bench.with_law("y", "x 0.9")).refused


def test_the_referee_leaves_the_precision_as_it_was():
    before = jax.config.read("jax_enable_x64")
    judge_arrays(case(Plain()))
    assert jax.config.read("jax_enable_x64") == before


def test_a_law_that_hardly_differs_between_repetitions_has_no_other_order():
    """It was asked for all the same, and the review ended with a KeyError."""
    predicted = Prediction(step=("seed", np.array([1.0, 1.01])))
    bench = SimpleNamespace(result=SimpleNamespace(predicted=predicted), along=lambda *_: (0, 1))
    assert list(_laws._repeated(bench, "step", "seed", ("step",))) == []
