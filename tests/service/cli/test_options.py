"""The arguments that several commands share."""

import pytest

from service.cli import Refused
from service.cli.options import assignments


@pytest.mark.parametrize("given", [[".x=1"], ["a.=1"], ["a..b=1"], ["=1"], ["a"]])
def test_a_field_without_a_name_is_refused_with_an_example(given: list[str]) -> None:
    with pytest.raises(Refused, match="must be FIELD=VALUE, such as max_depth=4"):
        assignments(given)


@pytest.mark.parametrize("given", [["a.b=1", "a=5"], ["a=5", "a.b=1"]])
def test_a_field_and_a_member_of_it_are_not_both_set(given: list[str]) -> None:
    with pytest.raises(Refused, match="set either it or its fields"):
        assignments(given)
