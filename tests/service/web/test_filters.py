"""How values are written on pages."""

from service.web.filters import largest_shares, number, percent


def test_a_number_and_a_truth_value_that_python_calls_equal_are_two_classes() -> None:
    assert largest_shares([(True, 0.25), (1, 0.75)], most=2) == [("1", 0.75), ("true", 0.25)]


def test_the_smallest_shares_are_left_out() -> None:
    assert largest_shares({"a": 0.2, "b": 0.5, "c": 0.3}.items(), most=2) == [("b", 0.5), ("c", 0.3)]


def test_a_number_has_all_digits_before_its_point() -> None:
    written = {
        12.0: "12",
        12_345.678: "12\u202f346",
        -2_253_448.59: "-2\u202f253\u202f449",
        1234.56: "1235",
        9999.6: "10\u202f000",
    }
    assert {value: number(value) for value in written} == written


def test_a_number_without_an_exact_whole_part_has_an_exponent() -> None:
    written = {1e300: "1e+300", 1.23456e-7: "1.235e-07", 2e16: "2e+16", float("inf"): "inf"}
    assert {value: number(value) for value in written} == written


def test_a_share_that_is_not_the_whole_is_not_written_as_the_whole() -> None:
    written = {
        0.0: "0.0 %",
        0.0004: "< 0.1 %",
        0.0006: "0.1 %",
        0.5: "50.0 %",
        0.9994: "99.9 %",
        0.99996: "> 99.9 %",
        1 - 1e-15: "100.0 %",  # a sum of shares that was rounded
        1.0: "100.0 %",
    }
    assert {share: percent(share) for share in written} == written
