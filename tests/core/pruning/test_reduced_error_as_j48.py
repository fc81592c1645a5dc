"""Reduced-error pruning against Weka 3.6.14's own figures, on a small table made for it.

The tree was printed by ``java -cp weka.jar weka.classifiers.trees.J48 -R -N 3 -M 2 -t rows.arff -no-cv`` with the
rows below as ARFF: an attribute a letter, the class last. Of three stratified parts, not shuffled, the last is
held back.
"""

from espalier import Holdout, train
from tests.core.pruning.test_subtree_raising import data_of, printed

NO_FEWER_ERRORS = """
    yyyq yxzn xxxq yyzp xyzn yxzn xxzq xxyp yyzp xxxn xyyq yyxp xxxn xyxp yyxq xyzp yxzn xxzq yxzp yyzp yxyn xyzn xyzn
"""
"""Below a2 = x the test of a1 leaves as many training errors as there were; J48 -R keeps it."""
HELD_BACK = (5, 6, 8, 11, 12, 17, 22)
ITS_TREE = """
a2 = x
|   a1 = x: n (2.0/1.0)
|   a1 = y: p (2.0/1.0)
a2 = y: q (4.0/2.0)
a2 = z
|   a0 = x: n (3.0/1.0)
|   a0 = y
|   |   a1 = x: n (3.0/1.0)
|   |   a1 = y: p (2.0)
"""


def test_j48_r_is_reduced_error_pruning_of_a_tree_that_is_not_collapsed() -> None:
    data = data_of(NO_FEWER_ERRORS, "xy xy xyz", "npq")
    model = train(data, "j48", holdout=Holdout(rows=HELD_BACK), collapse=False, pruning={"method": "reduced_error"})
    assert list(printed(model)) == ITS_TREE.strip().splitlines()
