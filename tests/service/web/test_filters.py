"""How values are written on pages."""

from service.web.filters import largest_shares


def test_a_number_and_a_truth_value_that_python_calls_equal_are_two_classes() -> None:
    assert largest_shares([(True, 0.25), (1, 0.75)], most=2) == [("1", 0.75), ("true", 0.25)]


def test_the_smallest_shares_are_left_out() -> None:
    assert largest_shares({"a": 0.2, "b": 0.5, "c": 0.3}.items(), most=2) == [("b", 0.5), ("c", 0.3)]
