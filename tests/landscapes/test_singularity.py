"""The exact learning coefficient of deep linear networks, against what is known otherwise."""

from fractions import Fraction
from itertools import product

import pytest

from steepest.core.errors import UserError
from steepest.landscapes import linear_network_singularity


def reduced_rank(inputs, hidden, outputs, rank):
    """Aoyagi and Watanabe 2005, four cases for one hidden layer, found before deep networks and otherwise."""
    if outputs + hidden < inputs + rank:
        return Fraction(hidden * outputs - hidden * rank + inputs * rank, 2)
    if inputs + hidden < outputs + rank:
        return Fraction(hidden * inputs - hidden * rank + outputs * rank, 2)
    if outputs + inputs < hidden + rank:
        return Fraction(outputs * inputs, 2)
    wide = hidden + rank
    even = 2 * wide * (outputs + inputs) + 2 * outputs * inputs - wide**2 - outputs**2 - inputs**2
    return Fraction(even + (outputs + hidden + inputs + rank) % 2, 8)


def is_uneven(inputs, hidden, outputs, rank):
    """Whether the sum is odd in the first of their cases: there m = 2, and else 1."""
    balanced = (
        outputs + hidden >= inputs + rank
        and inputs + hidden >= outputs + rank
        and outputs + inputs >= hidden + rank
    )
    return balanced and (outputs + hidden + inputs + rank) % 2 == 1


def test_one_hidden_layer():
    for widths in product(range(1, 7), repeat=3):
        for rank in range(min(widths) + 1):
            singularity = linear_network_singularity(widths, rank)
            assert singularity.coefficient == reduced_rank(*widths, rank)
            assert singularity.multiplicity == 1 + is_uneven(*widths, rank)


def test_one_matrix_is_regular():
    """Half of the number of weights."""
    assert linear_network_singularity((3, 5), 2) == (Fraction(15, 2), 1)


def test_a_product_of_numbers_has_one_half():
    """The zeros of ``w_1 ⋯ w_L`` are L hyperplanes, and λ of their crossing is ½ too."""
    for depth in range(1, 8):
        assert linear_network_singularity((1,) * (depth + 1), 0) == (Fraction(1, 2), depth)


def test_full_rank_leaves_the_group_of_basis_changes():
    """At full rank the zeros are a smooth orbit of invertible hidden matrices: half the weights beside it."""
    for depth in range(2, 5):
        widths = (3,) * (depth + 1)
        weights = 9 * depth
        orbit = 9 * (depth - 1)
        assert linear_network_singularity(widths, 3) == (Fraction(weights - orbit, 2), 1)


def test_an_order_of_widths_does_not_matter_inside():
    assert linear_network_singularity((4, 2, 3, 5), 1) == (
        linear_network_singularity((4, 3, 2, 5), 1)
    )


@pytest.mark.parametrize("widths, rank", [((3,), 1), ((2, 3, 2), 3), ((2, 0, 2), 0), ((2, 2), -1)])
def test_wrong_numbers_are_refused(widths, rank):
    with pytest.raises(UserError):
        linear_network_singularity(widths, rank)
