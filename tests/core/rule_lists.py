"""Lists of rules over planted attributes, drawn at random."""

from hypothesis import strategies as st

from espalier import (
    Condition,
    Rule,
    RuleList,
)
from tests.core.planted import MIXED

LENGTH, COLOUR, SIZE, SOLD = MIXED.attributes
CONDITIONS = st.one_of(
    st.tuples(st.integers(-3, 2), st.integers(0, 3)).map(
        lambda ends: Condition(LENGTH, above=ends[0] + 0.5, at_most=ends[0] + 0.5 + ends[1])
    ),
    st.integers(-3, 3).map(lambda end: Condition(LENGTH, above=end + 0.5)),
    st.sets(st.sampled_from(["red", "green", "blue"]), min_size=1).map(
        lambda labels: Condition(COLOUR, categories=tuple(each for each in COLOUR.categories if each in labels))
    ),
    st.sampled_from(
        [Condition(SIZE, above=0.0), Condition(SIZE, at_most=1.0), Condition(SIZE, above=0.5, at_most=1.5)]
    ),
    st.builds(Condition, st.sampled_from([LENGTH, COLOUR, SOLD]), known=st.booleans()),
)


@st.composite
def rule_lists(draw):
    rules = []
    for _ in range(draw(st.integers(0, 4))):
        conditions = draw(st.lists(CONDITIONS, max_size=3, unique_by=lambda each: each.attribute.name))
        rules.append(Rule(tuple(conditions), draw(st.integers(0, 2)), 1.0, (1.0, 1.0, 1.0)))
    return RuleList(tuple(rules), Rule((), draw(st.integers(0, 2)), 1.0, (1.0, 1.0, 1.0)), exclusive=False)
