"""The rules of verdicts 9 to 20, each with a mutant that it catches."""

from pathlib import Path

import jax
import numpy as np
import pytest
import xarray

from steepest import kit
from steepest.core.arrays import Observation, Prediction
from steepest.core.laws import Null
from steepest.core.words import Verdict
from steepest.engine.run import run
from steepest.kit._laws import labelled
from steepest.statistics import extrapolate
from tests.kit.decay import Decay

FILE = str(Path(__file__).with_name("decay.py"))
KINDS = {"larger", "smaller", "flat", "halved", "reversed", "steeper", "shallower"}
WIDTHS = np.array([10.0, 20, 40, 80])
RNG = np.random.default_rng(0)


def arrays(**variables):
    """A dataset over widths, from ``name=(axes, values)``."""
    return xarray.Dataset(
        {n: (dims.split(), v) for n, (dims, v) in variables.items()}, {"width": WIDTHS}
    )


@pytest.fixture(scope="module")
def decay():
    return run(FILE)


def judged(changes=None, law=None, seen=None):
    """The verdict on the sample claim with some of its arrays replaced."""
    claim = Decay(**(changes or {}))
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting).replace(**(law or {}))
    observed = claim.observe(setting, jax.random.key(1)).replace(**(seen or {}))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    return judgement, judgement.conclude([], claim.headline)[0]


def test_the_sample_holds(decay):
    assert decay.verdict is Verdict.HOLDS, decay.reason


# --------------------------------------------------------------------------------------------------- 9


@pytest.mark.parametrize("kind", ["flat", "halved", "reversed", "steeper", "shallower"])
def test_rule_9_a_law_that_is_wrong_along_its_axis_fails(kind):
    law = {"y": ("width", kit.wrong_along(1 / WIDTHS, 0, WIDTHS)[kind])}
    assert judged(law=law)[1] is Verdict.FAILS


def test_rule_9_the_kit_tries_them_itself(decay):
    tried = {(null.law, null.kind): null for null in decay.nulls}
    assert set(tried) == {
        *(("y", kind) for kind in KINDS),
        ("p", "larger"),
        ("p", "smaller"),
        ("p", "steeper"),
        ("p", "shallower"),
    }
    assert all(null.rejected and null.headline for null in decay.nulls)


def test_rule_9_a_halved_dependence_is_the_root_about_the_middle():
    np.testing.assert_allclose(
        kit.wrong_along(1 / WIDTHS, 0, WIDTHS)["halved"],
        (WIDTHS * WIDTHS[1:3].prod() ** 0.5) ** -0.5,
    )
    signed = kit.wrong_along(np.array([-1.0, 3.0]), 0, [1, 2])["halved"]
    np.testing.assert_allclose(signed, [0.0, 2.0])


def test_rule_9_names_are_exchanged_and_not_reversed():
    """Reversed, the name in the middle keeps what it has, and two ends that are alike hide what it differs by."""
    wrong = kit.wrong_along(np.array([1.0, 5.0, 1.01]), 0, ["relu", "tanh", "gelu"])
    assert set(wrong) == {"flat", "halved", "exchanged"}
    np.testing.assert_array_equal(wrong["exchanged"], [1.01, 1.0, 5.0])


def test_rule_9_an_exchanged_law_fails_and_says_so():
    named = {"activation": ["relu", "tanh", "gelu"]}
    law = xarray.DataArray([1.0, 5.0, 1.01], named, ["activation"], name="size")
    seen = law + xarray.DataArray([-0.01, 0.0, 0.01], dims=["seed"])
    exchanged = law.copy(data=kit.wrong_along(law.values, 0, named["activation"])["exchanged"])
    assert kit.follows("size", law, seen, 0.1).verdict is Verdict.HOLDS
    assert kit.follows("size", exchanged, seen, 0.1).verdict is Verdict.FAILS
    untold = Null("size", "activation", "exchanged", ()).untold
    assert untold == "which activation has which size"


def test_rule_9_what_survives_leaves_the_claim_undecided():
    """A law of which only the mean along its argument is judged."""
    law = arrays(y=("width", 1 / WIDTHS))
    measured = arrays(
        y=("seed width", np.ones((5, 1)) / WIDTHS * (1 + 0.3 * RNG.standard_normal((5, 4))))
    )
    wide = kit.follows("follows", law.y, measured.y, 50.0)
    assert wide.verdict is Verdict.HOLDS
    flat = kit.follows("follows", law.y.mean() + 0 * law.y, measured.y, 50.0)
    assert (
        flat.verdict is Verdict.HOLDS
    )  # so that the null is not rejected, and the headline has no power

    class Wide(Decay):
        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y, 50.0)

        def rivals(self, setting, law):
            yield kit.rival("thousand", "units", y=law.y / 1000)

        def controls(self, seen):
            yield kit.control("huge", "other units", y=1000 * seen.y)

    claim = Wide()
    claim_headline = ("follows",)
    type(claim).headline = claim_headline
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    verdict, reason = judgement.conclude([], claim_headline)
    assert verdict is Verdict.INCONCLUSIVE
    assert "whether y depends on width" in reason
    silent = [null.kind for null in judgement.nulls if null.law == "y" and not null.rejected]
    assert silent == ["flat", "halved", "reversed", "shallower", "steeper"] or set(silent) >= {
        "flat",
        "reversed",
    }


@pytest.mark.parametrize("dims", [("seed",), ("seed", "width")])
def test_rule_9_a_ratio_to_the_law_is_the_headlines_too(dims):
    """A headline that compares measured over predicted with one names no law, and judges it all the same."""

    class Ratio(Decay):
        def judge(self, law, seen):
            yield kit.follows("follows", 1.0, (seen.y / law.y).mean(dims), 50.0)

    claim = Ratio()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    nulls = claim.judged(predicted, observed, ()).nulls
    of_y = [null for null in nulls if null.law == "y"]
    assert [null.headline for null in of_y] == 7 * [True]
    assert not any(null.headline for null in nulls if null.law == "p")


@pytest.mark.parametrize(
    ("tolerance", "error"), [(0.07, 0.1), (0.15, 0.2), (0.2, 0.3), (0.25, 0.5), (0.45, None)]
)
def test_rule_9_the_smallest_error_that_a_judge_notices_is_what_its_margin_allows(tolerance, error):
    """Without noise a law (1 + ε) y fails for 1 < (1 + ε)(1 - τ), ε > τ / (1 - τ); y / (1 + ε) does for ε > τ."""

    class Exact(Decay):
        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y, tolerance)

        def controls(self, seen):
            yield kit.control("huge", "other units", y=1000 * seen.y)

    Exact.headline = ("follows",)
    claim = Exact(noise=1e-6)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    resolutions = claim.judged(predicted, observed, ()).resolutions
    assert [(one.law, one.error) for one in resolutions] == [("y", error)]


def test_rule_9_intervals_hold_at_all_points_at_once():
    samples = arrays(y=("seed width", 1 + 0.1 * RNG.standard_normal((6, 4)))).y
    wide = kit.follows("a", arrays(y=("width", np.ones(4))).y, samples, 0.5)
    (alone,) = [p for p in wide.points if p.where == {"width": 10.0}]
    narrow = kit.follows("a", 1.0, samples.isel(width=0), 0.5)
    assert alone.high - alone.low > 1.3 * (narrow.interval.high - narrow.interval.low)


def test_rule_9_a_bent_line_is_no_power_law():
    bent = arrays(
        y=("seed width", (1 / WIDTHS + 8 / WIDTHS**2) * (1 + 0.001 * RNG.standard_normal((8, 4))))
    ).y
    slope = np.polyfit(np.log(WIDTHS), np.log(bent.mean("seed")), 1)[0]
    check = kit.power("exponent", float(slope), bent, 0.02, over="width")
    assert check.verdict is Verdict.INCONCLUSIVE
    straight = arrays(y=("seed width", WIDTHS**slope * (1 + 0.001 * RNG.standard_normal((8, 4))))).y
    assert (
        kit.power("exponent", float(slope), straight, 0.02, over="width").verdict is Verdict.HOLDS
    )


def test_rule_9_two_points_are_no_power_law():
    two = arrays(y=("seed width", np.ones((4, 4)))).y.isel(width=[0, 1])
    assert kit.power("exponent", 0.0, two, 0.1, over="width").verdict is Verdict.INCONCLUSIVE


# -------------------------------------------------------------------------------------------------- 10


def test_rule_10_each_clause_has_its_verdict(decay):
    verdicts = {clause.text: clause.verdict for clause in decay.clauses}
    assert verdicts == {
        "fall like 1/n": "holds",
        "one in four networks succeeds": "holds",
        "whatever its width": "not tested",
    }


def test_rule_10_a_clause_whose_check_fails_fails():
    judgement, verdict = judged(seen={"success": ("seed start width", np.ones((8, 2000, 4), bool))})
    assert verdict is Verdict.FAILS
    assert [c.verdict for c in judgement.says] == ["holds", "fails", "not tested"]


# -------------------------------------------------------------------------------------------------- 11


def test_rule_11_what_no_changed_world_fails_is_an_identity():
    class Identity(Decay):
        def controls(self, seen):
            yield kit.control("always", "no chance", success=seen.always)

    claim = Identity()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    verdict, reason = judgement.conclude([], claim.headline)
    assert verdict is Verdict.INCONCLUSIVE
    assert "no changed world fails" in reason


# -------------------------------------------------------------------------------------------------- 12


def test_rule_12_what_is_at_hand_ranks_too():
    order = arrays(
        law=("width", WIDTHS),
        y=("seed width", np.sqrt(WIDTHS) + 0.01 * RNG.standard_normal((5, 4))),
    )
    at_hand = {
        "steps": arrays(s=("seed width", -np.ones((5, 1)) * WIDTHS)).s,
        "risk": arrays(s=("seed width", np.ones((5, 1)) * np.array([3.0, 1, 2, 0]))).s,
    }
    check = kit.ranks("order", order.law, order.y, over="width", at_hand=at_hand)
    assert check.verdict is Verdict.HOLDS
    assert check.also_passed_by == ("steps",)
    against = kit.ranks("order", -order.law, order.y, over="width")
    assert against.verdict is Verdict.FAILS


# -------------------------------------------------------------------------------------------------- 13


def test_rule_13_twelve_of_twelve_is_no_point():
    """Wilson's interval of 12 of 12 begins at 0.757: Student's was [1, 1], and held within 0.1."""
    all_of_them = xarray.DataArray(np.ones(12, bool), dims=["seed"])
    check = kit.share("share", 1.0, all_of_them, 0.1)
    assert check.verdict is Verdict.INCONCLUSIVE
    assert check.interval.low < 0.8


def test_rule_13_counts_that_agree_are_no_point():
    """Eight networks with three outliers each leave room for one in three with four."""
    counts = arrays(y=("seed width", np.full((8, 4), 3))).y
    check = kit.follows("count", 3.0, counts, 0.5, over="width", absolute=True)
    assert check.verdict is Verdict.HOLDS
    assert check.interval.high > 3.25
    assert (
        kit.follows("count", 3.0, counts, 0.1, over="width", absolute=True).verdict
        is Verdict.INCONCLUSIVE
    )


def test_rule_13_a_number_that_happens_to_be_whole_is_no_count():
    exact = arrays(y=("seed width", np.ones((8, 4)))).y
    assert kit.follows("ratio", 1.0, exact, 0.01, over="width").verdict is Verdict.HOLDS


def test_rule_13_copies_are_no_repetitions():
    """A thousand starts of five data sets that agree with each other are five shares."""
    happened = np.repeat(np.array([1, 1, 0, 1, 0], bool)[:, None], 200, axis=1)
    check = kit.share("share", 0.6, xarray.DataArray(happened, dims=["seed", "start"]), 0.1)
    assert check.verdict is Verdict.INCONCLUSIVE


# -------------------------------------------------------------------------------------------------- 14


def test_rule_14_settings_are_drawn_in_the_scope():
    scope = kit.scope_of(Decay)
    rng = np.random.default_rng(1)
    assert set(scope) == {"widths", "noise"}
    drawn = [scope["noise"].draw(rng) for _ in range(50)]
    assert all(value in scope["noise"] for value in drawn)
    assert len(set(drawn)) > 20
    assert scope["widths"].draw(rng) in ((10, 20, 40, 80), (8, 16, 64))
    assert 0.5 not in scope["noise"]


def test_rule_14_a_scope_of_factors_is_drawn_in_the_logarithm():
    rng = np.random.default_rng(1)
    drawn = [kit.between(1, 1000).draw(rng) for _ in range(400)]
    assert 0.4 < np.mean(np.array(drawn) < 32) < 0.6
    assert all(isinstance(value, int) for value in drawn)


# -------------------------------------------------------------------------------------------------- 15


def test_rule_15_an_extrapolation_that_moves_is_out_of_range():
    steps = np.array([0.8, 0.4, 0.2, 0.1])
    exact = extrapolate(1 + 0.3 * steps + 0.2 * steps**2, steps, (1, 2))
    assert all(h.holds for h in kit.converged("limit", exact, 0.01))
    wrong = extrapolate(1 + 0.3 * np.sqrt(steps), steps, (1, 2))
    assert not all(h.holds for h in kit.converged("limit", wrong, 0.02))


# -------------------------------------------------------------------------------------------------- 16


def test_rule_16_what_both_sides_call_is_listed(tmp_path, decay):
    text = Path(FILE).read_text("utf-8").replace("class Decay", "class Circular")
    text = text.replace(
        "from steepest import kit\n",
        "from steepest import kit\nfrom steepest.kernels import walsh_eigenvalues\n",
    )
    text = text.replace(
        "        rng = kit", "        walsh_eigenvalues([1.0, 0.0, 1.0])\n        rng = kit"
    )
    text = text.replace(
        "        return kit.law(",
        "        walsh_eigenvalues([1.0, 0.0, 1.0])\n        return kit.law(",
    )
    (tmp_path / "circular.py").write_text(text)
    shared = run(str(tmp_path / "circular.py")).shared
    assert "steepest.kernels.spectra._walsh.walsh_eigenvalues" in shared
    assert decay.shared == ()


# -------------------------------------------------------------------------------------------------- 17


def test_rule_17_a_bound_with_room_is_consistent():
    measured = arrays(y=("seed width", 1 + 0.01 * RNG.standard_normal((5, 4)))).y
    near = kit.at_most("bound", 1.2, measured, over="width")
    far = kit.at_most("bound", 4.0, measured, over="width")
    assert (near.consistent, far.consistent) == (False, True)
    assert near.verdict is far.verdict is Verdict.HOLDS
    assert kit.at_most("bound", 0.5, measured, over="width").verdict is Verdict.FAILS


def test_rule_17_a_headline_of_room_is_undecided():
    class Room(Decay):
        def judge(self, law, seen):
            yield kit.at_most("share", 100.0, seen.y, over="width")

        def rivals(self, setting, law):
            return ()

        def controls(self, seen):
            yield kit.control("huge", "other units", y=1e6 * seen.y)

    claim = Room()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, ())
    assert [c.verdict for c in judgement.says] == ["not tested", "consistent", "not tested"]
    verdict, reason = judgement.conclude([], ("share",))
    assert verdict is Verdict.INCONCLUSIVE
    assert "room" in reason


# -------------------------------------------------------------------------------------------------- 18


def test_rule_18_a_search_says_how_many_tries_and_the_nearest_miss():
    residuals = xarray.DataArray(np.geomspace(1e-3, 1, 400), dims=["try"])
    check = kit.excluded("others", 1e-6, residuals)
    assert check.verdict is Verdict.HOLDS
    assert check.measured == pytest.approx(1e-3)
    assert "400 tries" in check.interval.how
    with_one = xarray.concat([residuals, xarray.DataArray([1e-9], dims=["try"])], "try")
    assert kit.excluded("others", 1e-6, with_one).verdict is Verdict.FAILS


# -------------------------------------------------------------------------------------------------- 20


def clause_of(says, **changes):
    """The one clause of the sample claim with these numbers, and the verdict."""
    kind = type("Said", (Decay,), {"says": {"fall like 1/n": says}})
    claim = kind(**changes)
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    (clause,) = judgement.says
    return clause.verdict, judgement.conclude([], clause.checks)[0]


@pytest.mark.parametrize(
    ("numbers", "clause", "verdict"),
    [
        ({"power": {"width": -1}}, "holds", Verdict.HOLDS),
        ({"power": {"width": -1}, "value": 1.0}, "holds", Verdict.HOLDS),
        ({"power": {"width": -1}, "value": 1.0, "at": {"width": [10, 20]}}, "holds", Verdict.HOLDS),
        ({"power": {"width": -1}, "value": 1.3}, "contradicted", Verdict.INCONCLUSIVE),
        ({"power": {"width": -0.7}}, "contradicted", Verdict.INCONCLUSIVE),
        (
            {"power": {"width": -0.5}, "at": {"width": [40, 80]}},
            "contradicted",
            Verdict.INCONCLUSIVE,
        ),
        ({"value": 0.1, "at": {"width": 10}}, "holds", Verdict.HOLDS),
        ({"value": 0.12, "at": {"width": 10}}, "contradicted", Verdict.INCONCLUSIVE),
    ],
)
def test_rule_20_the_sentence_is_judged_as_it_stands(numbers, clause, verdict):
    assert clause_of(kit.literal("follows", "y", **numbers)) == (clause, verdict)


def test_rule_20_a_power_that_the_data_leave_open_is_a_limit():
    """Eight-fold widths move 1/n^0.9 by a tenth to both sides, which is the margin."""
    near = kit.literal("follows", "y", power={"width": -0.9})
    assert clause_of(near) == ("a limit, not reached", Verdict.HOLDS)


def test_rule_20_all_numbers_of_a_clause_are_put_in_at_once():
    both = (kit.literal("follows", "y", power={"width": -1}), kit.literal("share", "p", value=0.25))
    assert clause_of(both)[0] == "holds"
    wrong = (both[0], kit.literal("share", "p", value=0.4))
    assert clause_of(wrong)[0] == "contradicted"


@pytest.mark.parametrize(
    ("numbers", "part"),
    [
        ({"law": "z", "value": 1.0}, "states numbers of 'z'"),
        ({"law": "y", "power": {"depth": 1}}, "names depth, and y lies along width"),
        ({"law": "y", "value": 1.0, "at": {"depth": 1}}, "names depth, and y lies along width"),
    ],
)
def test_rule_20_numbers_of_what_is_not_predicted_are_refused(numbers, part):
    with pytest.raises(kit.UserError, match=part):
        clause_of(kit.literal("follows", **numbers))


def test_rule_20_a_literal_states_a_number():
    with pytest.raises(kit.UserError, match="states no number"):
        kit.literal("follows", "y")


# ------------------------------------------------------------------------------------------- arrays


def test_arrays_that_disagree_on_an_axis_are_refused():
    observed = Observation(a=("width", np.ones(4)), b=("width", np.ones(3)))
    with pytest.raises(kit.UserError, match="the axis 'width' has 4 entries in a and 3 in b"):
        labelled(Decay(), observed)


def test_a_rival_of_an_unknown_array_is_refused():
    from steepest.kit._laws import completed_rival

    with pytest.raises(kit.UserError, match="gives 'z', and the claim y"):
        completed_rival(kit.rival("z", "why", z=1.0), Prediction(y=1.0))


def test_a_law_inherits_its_axes():
    law = arrays(y=("width", 1 / WIDTHS))
    entry = kit.rival("half", "why", y=law.y / 2).prediction["y"]
    assert entry[0] == ("width",)
    assert entry[1] == pytest.approx(0.5 / WIDTHS)


@pytest.mark.parametrize("within", [(1.1, 1.2), (-0.5, -0.1)])
def test_a_margin_goes_around_its_prediction(within):
    measured = arrays(y=("seed width", np.ones((3, 4)))).y
    with pytest.raises(ValueError, match="leaves out the prediction"):
        kit.follows("a", 1.0, measured, within, over="width")


def test_what_is_not_finite_fails():
    values = np.ones((3, 4))
    values[1, 2] = np.nan
    check = kit.follows("a", 1.0, arrays(y=("seed width", values)).y, 0.1, over="width")
    assert check.verdict is Verdict.FAILS
    assert [point.verdict for point in check.points].count(Verdict.FAILS) == 1


def test_a_law_that_differs_between_repetitions_is_compared_with_each():
    factors = np.array([1.0, 5.0, 25.0])[:, None]
    law = arrays(y=("seed width", factors / WIDTHS)).y
    measured = arrays(y=("seed width", factors / WIDTHS * 1.01)).y
    check = kit.follows("a", law, measured, 0.02, over="width")
    assert check.verdict is Verdict.HOLDS
    assert kit.follows("a", law, measured, 0.005, over="width").verdict is Verdict.FAILS


def test_one_repetition_that_disagrees_refutes_what_each_must_keep():
    values = np.ones((6, 4))
    values[2, 1] = 1.4
    measured = arrays(y=("seed width", values)).y
    assert kit.follows("a", 1.0, measured, 0.2, over="width").verdict is Verdict.INCONCLUSIVE
    refuted = kit.follows("a", 1.0, measured, 0.2, over="width", each=True)
    assert refuted.verdict is Verdict.FAILS
    assert "width = 20" in refuted.note
    assert kit.at_most("a", 1.2, measured, over="width", each=True).verdict is Verdict.FAILS


def test_one_entry_that_disagrees_refutes_an_agreement():
    deviation = xarray.DataArray(np.geomspace(1e-16, 1e-12, 50), dims=["try"])
    assert kit.agrees("ways", deviation, 1e-11).verdict is Verdict.HOLDS
    refuted = kit.agrees("ways", deviation, 1e-13)
    assert refuted.verdict is Verdict.FAILS
    assert "largest of 50" in refuted.interval.how


class Derives(Decay):
    def derive(self, law, seen):
        return {"ratio": seen.y / law.y}

    def judge(self, law, seen):
        yield kit.follows("follows", 1.0, seen.ratio, 0.2, over="width")


def test_what_is_derived_is_derived_again_of_every_wrong_law():
    claim = Derives()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    (own,) = claim.checks(predicted, observed)
    twice = predicted.replace(y=("width", 2 * predicted["y"]))
    (wrong,) = claim.checks(twice, observed)
    assert (own.verdict, wrong.verdict) == (Verdict.HOLDS, Verdict.FAILS)


def test_what_is_derived_hides_nothing_that_was_measured():
    class Hides(Derives):
        def derive(self, law, seen):
            return {"y": seen.y}

    claim = Hides()
    setting = claim.setting(jax.random.key(0))
    with pytest.raises(kit.UserError, match="derive.. gives y, which observe gives"):
        claim.checks(claim.predict(setting), claim.observe(setting, jax.random.key(1)))


def test_the_result_survives_json(decay):
    from steepest.engine.results import Result

    record = decay.to_json()
    again = Result.from_json(record, predicted=decay.predicted, observed=decay.observed)
    assert again.to_json() == record
    assert {clause["clause"] for clause in record["says"]} >= {"fall like 1/n"}
    assert {law["kind"] for law in record["laws"]} == KINDS
    assert record["scope"]["noise"] == {"low": 0.01, "high": 0.04, "why": ""}


# ------------------------------------------------------------------------- what a hostile reader of the kit tried


NEGATIVE = arrays(y=("width", -1 / WIDTHS)).y


def test_a_negative_law_is_judged_like_its_mirror_image():
    measured = arrays(
        y=("seed width", -np.ones((5, 1)) / WIDTHS * (1 + 0.01 * RNG.normal(size=(5, 4))))
    )
    check = kit.follows("y", NEGATIVE, measured.y, (0.9, 1.2))
    assert check.verdict is Verdict.HOLDS
    assert all(
        at.low <= at.measured <= at.high and at.least <= at.predicted <= at.most
        for at in check.points
    )
    assert kit.follows("y", NEGATIVE, 1.3 * measured.y, (0.9, 1.2)).verdict is Verdict.FAILS
    assert kit.follows("y", NEGATIVE, -measured.y, (0.9, 1.2)).verdict is Verdict.FAILS


@pytest.mark.parametrize("name", ["y", "success"])
def test_what_is_not_finite_fails_every_check(name):
    claim = Decay()
    own = claim.observe(claim.setting(jax.random.key(0)), jax.random.key(1)).quantity(name)
    holed = np.array(own.values, float)
    holed.flat[0] = np.nan
    judgement, verdict = judged(seen={name: (own.dims, holed)})
    assert verdict is Verdict.FAILS
    assert all(check.verdict is Verdict.FAILS for check in judgement.checks)
    assert f"1 of {holed.size} entries of {name}" in judgement.checks[0].note

    class Ragged(Decay):
        ragged = ("y", "success")

        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y.isel(seed=slice(1, None)), 0.1)

    ragged = Ragged()
    setting = ragged.setting(jax.random.key(0))
    observed = ragged.observe(setting, jax.random.key(1)).replace(**{name: (own.dims, holed)})
    (check,) = ragged.checks(ragged.predict(setting), observed)
    assert check.verdict is Verdict.HOLDS


def test_a_mean_with_what_is_not_finite_is_none():
    law = arrays(y=("seed width", np.ones((5, 4)))).y
    holed = law.where(law.coords["width"] > 10)
    assert kit.follows("y", 1.0, holed, 0.1, over="width").verdict is Verdict.FAILS
    assert (
        kit.ranks("y", arrays(y=("width", WIDTHS)).y, holed, over="width").verdict is Verdict.FAILS
    )


def test_a_control_that_is_not_finite_challenges_nothing():
    class Broken(Decay):
        def controls(self, seen):
            yield kit.control("broken", "it diverged", y=np.nan * seen.y, success=seen.always)

    claim = Broken()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    (broken,) = judgement.controls
    assert not broken.rejected
    assert judgement.conclude([], claim.headline)[0] is Verdict.INCONCLUSIVE


def test_a_check_of_the_program_alone_rejects_no_null():
    """What compares the law with itself fails for every wrong law, and looks at no data."""

    class Circular(Decay):
        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y, 50.0)
            yield kit.follows("exponent", law.y, xarray.zeros_like(law.y) + 1 / law.width, 1e-6)
            yield kit.share("share", law.p, seen.success, 0.05)

        def controls(self, seen):
            yield kit.control("huge", "other units", y=1000 * seen.y, success=seen.always)

    claim = Circular()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    assert not any(null.rejected for null in judgement.nulls if null.law == "y" and null.axis)


def test_a_constant_has_rivals_too():
    """Without an axis a law can still be larger or smaller than it is."""

    class Loose(Decay):
        def predict(self, setting):
            return kit.law(y=("width", 1 / setting.widths), p=0.25)

        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y, 0.1)
            yield kit.power("exponent", law.y, seen.y, 0.1, over="width")
            yield kit.share("share", law.p, seen.success, 0.3, over="width")

    claim = Loose()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    nulls = claim.judged(predicted, observed, ()).nulls
    untold = [null.untold for null in nulls if null.headline and not null.rejected]
    assert untold == ["p from 1.5 × p", "p from ⅔ × p"]


def test_the_size_of_a_law_is_not_asked_of_its_exponent():
    class Exponent(Decay):
        headline = ("exponent",)

        def judge(self, law, seen):
            yield kit.power("exponent", law.y, seen.y, 0.1, over="width")

    claim = Exponent()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    nulls = claim.judged(predicted, observed, ()).nulls
    asked = {null.kind for null in nulls if null.headline}
    assert asked == {"flat", "halved", "reversed", "steeper", "shallower"}


def test_a_law_along_an_axis_without_coordinates_is_refused():
    class Unnamed(Decay):
        def axes(self):
            return {}

    claim = Unnamed()
    setting = claim.setting(jax.random.key(0))
    observed = claim.observe(setting, jax.random.key(1))
    with pytest.raises(kit.UserError, match="y is predicted along 'width', of which axes"):
        claim.checks(claim.predict(setting), observed)


def test_repetitions_without_a_name_are_refused():
    measured = xarray.DataArray(np.ones((5, 7)), dims=["network", "image"])
    with pytest.raises(ValueError, match="none is called seed"):
        kit.follows("y", 1.0, measured, 0.1)


def test_the_seed_is_what_is_independent_wherever_it_stands():
    noise = RNG.normal(size=(4, 1)) + 0.01 * RNG.normal(size=(4, 500))
    by_seed = xarray.DataArray(1 + 0.1 * noise, dims=["seed", "start"])
    first = kit.follows("y", 1.0, by_seed, 0.5)
    last = kit.follows("y", 1.0, by_seed.transpose("start", "seed"), 0.5)
    assert first.interval == last.interval
    assert "4 repetitions" in last.interval.how


@pytest.mark.parametrize("kind", [kit.at_most, kit.at_least])
def test_points_are_paired_by_their_coordinates(kind):
    limit = arrays(y=("width", 1 / WIDTHS)).y
    measured = arrays(y=("seed width", np.ones((5, 1)) / WIDTHS)).y
    with pytest.raises(ValueError, match="other points along an axis"):
        kind("y", limit.isel(width=slice(None, None, -1)), measured)
    with pytest.raises(ValueError, match="other points along an axis"):
        kit.follows("y", limit.isel(width=[0, 1]), measured, 0.1)


def test_a_limit_of_each_repetition_bounds_that_repetition():
    """On average below its limit, and above it in half of the networks."""
    limit = xarray.DataArray(np.array([1.0, 3.0, 1.0, 3.0]), dims=["seed"])
    kept = kit.at_most("y", limit, limit - 0.1, each=True)
    crossed = kit.at_most("y", limit, xarray.DataArray(np.full(4, 1.5), dims=["seed"]), each=True)
    assert kept.verdict is Verdict.HOLDS
    assert crossed.verdict is Verdict.FAILS


def test_rule_13_a_rare_count_may_be_far_off():
    """Eleven networks with three and one with nine: the interval reaches as far as more of the latter would take it."""
    few = np.full(12, 3)
    few[0] = 9
    spread = kit.follows("count", 3.0, xarray.DataArray(few, dims=["seed"]), 0.5, absolute=True)
    assert spread.interval.high > 4.5


def test_rule_17_one_bound_with_room_is_enough():
    """A headline of which one clause alone is tested does not hold."""

    class Roomy(Decay):
        says = {"fall like 1/n": ("follows", "exponent"), "one in four networks succeeds": "share"}
        headline = ("follows", "exponent", "share")

        def judge(self, law, seen):
            yield kit.follows("follows", law.y, seen.y, 0.1)
            yield kit.power("exponent", law.y, seen.y, 0.1, over="width")
            yield kit.at_most("share", 0.9, seen.success.mean("start"), over="width")

    claim = Roomy()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, ())
    verdict, reason = judgement.conclude([], claim.headline)
    assert verdict is Verdict.INCONCLUSIVE
    assert "room" in reason
    assert [clause.verdict for clause in judgement.says] == ["holds", "consistent"]


def test_rule_17_a_bound_that_is_tight_at_one_point_is_tested():
    limit = arrays(y=("width", np.array([1.0, 10, 100, 1000]))).y
    measured = arrays(y=("seed width", np.full((5, 4), 0.9))).y
    assert not kit.at_most("y", limit, measured).consistent


def test_rule_18_a_search_takes_tries():
    few = xarray.DataArray(np.full(10, 0.5), dims=["seed"])
    many = xarray.DataArray(np.full(40, 0.5), dims=["seed"])
    assert kit.excluded("none", 0.1, few).verdict is Verdict.INCONCLUSIVE
    assert kit.excluded("none", 0.1, many).verdict is Verdict.HOLDS
    assert kit.excluded("none", 0.6, few).verdict is Verdict.FAILS


def test_a_headline_that_no_check_has_is_not_forgiven():
    class Typo(Decay):
        says = {"fall like 1/n": ("follows", "exponnent")}
        headline = ("follows", "exponnent")

    claim = Typo()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    judgement = claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))
    verdict, reason = judgement.conclude([], claim.headline)
    assert verdict is Verdict.INCONCLUSIVE
    assert "nothing judges exponnent" in reason
    assert [clause.verdict for clause in judgement.says] == ["not tested"]


def test_two_challenges_of_one_name_are_refused():
    class Twice(Decay):
        def controls(self, seen):
            yield kit.control("root", "no width", y=seen.flat, success=seen.always)

    claim = Twice()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    with pytest.raises(kit.UserError, match="called 'root'"):
        claim.judged(predicted, observed, claim.wrong_theories(setting, predicted))


def test_a_control_lies_along_the_axes_that_it_replaces():
    class Narrow(Decay):
        def controls(self, seen):
            yield kit.control(
                "no width",
                "nothing depends on width",
                y=seen.flat.isel(width=0).drop_vars("width"),
                success=seen.always.transpose("width", "start", "seed"),
            )

    claim = Narrow()
    observed = claim.observe(claim.setting(jax.random.key(0)), jax.random.key(1))
    (control,) = claim.changed_worlds(observed)
    assert control.observation.quantity("y").dims == ("seed", "width")
    assert control.observation.quantity("success").dims == ("seed", "start", "width")


def test_the_size_of_a_bound_is_asked_by_its_room():
    """A laxer bound passes what the bound passes: no null that a check could reject."""

    class Bounded(Decay):
        headline = ("bound",)

        def judge(self, law, seen):
            yield kit.at_most("bound", 1.2 * law.y, seen.y)

    claim = Bounded()
    setting = claim.setting(jax.random.key(0))
    predicted = claim.predict(setting)
    observed = claim.observe(setting, jax.random.key(1))
    nulls = claim.judged(predicted, observed, ()).nulls
    assert not any(null.headline for null in nulls if not null.axis)


def test_a_range_is_no_scope_of_several_values():
    with pytest.raises(kit.UserError, match="list the tuples"):

        @kit.claim
        class Ranged(Decay):
            widths: tuple[kit.Count, ...] = kit.param(
                (10, 20), "n", scope=kit.between(10, 80, "why")
            )
