"""Arguments of the general grower's kernels: objects with typed arrays. `arguments.pxd` declares the types.

In shapes, F is the number of attributes and n the number of rows. P is one more than the largest number of categories
that can occur in a node. width is the number of classes, or 4 for a regression.
"""


class Arguments:
    """Arrays and numbers. Each is passed by keyword and becomes an attribute of the object."""

    def __init__(self, **given):
        self.names = tuple(given)
        for name, value in given.items():
            setattr(self, name, value)

    def replaced(self, **changes):
        """Return a copy with some arguments changed."""
        return type(self)(**{name: getattr(self, name) for name in self.names} | changes)


class GrowParameters(Arguments):
    """The training configuration as numbers. A limit that is not set is -1 (an integer) or NaN (a real number).

    n_classes: number of classes; 0 for a regression. root_weight: sum of the weights of all rows.
    all_many_valued: whether `EncodedColumns.many_valued` is 1 for every attribute.
    cheapest: the smallest configured cost, but at most 1.
    min_impurity_decrease: if it is NaN, a split needs a gain above a small tolerance.
    min_sd, min_variance: a node with a smaller standard deviation or variance of the target is not split.
    class_scale: float64 (classes), 1 / class weight, or 0 for a class weight of 0. Read only if `has_class_weights`.
    """


class EncodedColumns(Arguments):
    """The columns of the attributes.

    kind: int32 (F), ORDERED_KIND, NOMINAL_KIND or BINARIES_KIND (categories that are ranked by mean target).
    codes: int32 (F, n), -1 for a missing value. For ORDERED_KIND, the rank of the value among the attribute's distinct
    training values; for NOMINAL_KIND, the code of the category; for BINARIES_KIND, the rank of the category.
    n_codes: int32 (F), number of categories in the schema.
    order_place: int32 (F), the attribute's row in the table of presorted orders; not read for NOMINAL_KIND.
    value: float64. The values of attribute i, by rank, are ``value[value_start[i]:value_start[i + 1]]``: for
    BINARIES_KIND the ranks themselves, for NOMINAL_KIND none. value_start: int64 (F + 1).
    recode: int32, the rank of each category of BINARIES_KIND attributes. recode_start: int64 (F + 1), like value_start.
    many_valued: int32 (F), 1 for an attribute that `average_gain_guard` leaves out of the average, unless all are 1.
    cost: float64 (F), cost of each attribute. first_attribute: number of the attribute of the first column. It is above
    0 only if a tree is grown level by level, because there is then one column at a time.
    """


class Targets(Arguments):
    """The target and the weights of the rows.

    target_class: int32 (n), zeros for a regression. target: float64 (n), zeros for a classification. weight: float64
    (n), above 0. If a tree is grown level by level, an array that is not read may be shorter.
    """


class NodeContext:
    """The node that is split: its rows ``start:stop``, weight, impurity and `centre` (mean target; 0 for classes)."""


class SplitSearch:
    """The search for the best split of one attribute at the node.

    The attribute's value is present in the *known rows* of the node and missing in the *unknown rows*.
    paid: whether a node above tests the attribute, so that its cost is paid already.
    n_present: number of the attribute's categories that occur in the node.
    places_unknown: whether each split is tried with the unknown rows in each of its branches in turn.
    known_weight, unknown_weight: weight of the known and of the unknown rows of the node.
    known_size, unknown_size: the same weights with class weights divided out. margin: least size of a branch.
    offset, scale: the gain of a split is ``offset + scale * sum of the terms of its branches``.
    found: whether a split is found. gain: the gain of the best split so far. best: its gain or gain ratio, by which
    splits are compared. tie: splits that differ by at most this are equal. excluded: the largest gain of a split of
    categories in two groups that is rejected, as a branch is too light.
    """


class Sums(Arguments):
    """Statistics of the node and of the branches of a split.

    weight: float64 (n), the weight of each row in the node. All other arrays are float64 (width). node: all rows.
    known, unknown: the known and the unknown rows. left, right: the branches of the current split. best_left,
    best_right: the branches of the best split so far. trial: scratch.
    """


class Categories(Arguments):
    """The categories of a nominal attribute. A category is *present* if it occurs in the node.

    present: int32 (P), the codes of the categories present.
    group: float64 (P, width), their statistics. n_rows_of: int32 (P), their numbers of rows.
    ascending: int32 (P), indexes in `present`, ascending by code. branch: int32 (P); branch[j] is that of ascending[j].
    order: int32 (P), indexes in `ascending`, sorted by `key`, float64 (P). A split cuts this sequence in two.
    slot: int32 (largest number of categories), index of each code in `present` or `ascending`; -1 between uses.
    scratch: int32 (P). direction: float64 (3, classes), scratch of the principal component.
    """


class Medians(Arguments):
    """Work arrays of ``absolute_error``. The criteria ``sdr`` and ``m5`` use only the tables of prefixes.

    target_value: float64, the distinct targets, ascending. target_rank: int32 (n), index of each row's target there.
    bucket: int32 (n + 1), the node's rows by category. bucket_start: int32 (P + 1). See `fill_buckets`.
    sequence: int32 (n + 1), the node's rows in the order of `Categories.order`.
    forward, backward, forward_all, backward_all: float64 (n + 1), the tables of prefixes; see `fill_prefixes`.
    Under ``one_vs_rest``: the deviation of each category, in `forward` without, in `backward` with the unknown rows.
    weight_tree, sum_tree: float64 (distinct targets + 1), binary indexed trees; see `deviations`.
    weight_in_trees, sum_in_trees: Σ w and Σ w·(y − mean) over the rows in the trees.
    progress: float64 (2). The second entry, the stop flag, ends a long scan of one attribute.
    """


class CutPoints(Arguments):
    """The configured cut points. No other thresholds are tried for their attributes.

    start: int64 (F + 1), start of each attribute's cut points. value: float64, the cut points. rank: int32, for each
    cut point the rank of the largest training value that is not above it, -1 if there is none.
    """


class ValidationRows(Arguments):
    """The held-out rows of ``validation_stop``.

    codes: float64 (F, rows), values or category codes, NaN for a missing value. target, weight: float64 (rows).
    """


class Workspace(Arguments):
    """The input and the work arrays of a training, the current node, and the search for the split of one attribute."""

    def __init__(self, **parts):
        super().__init__(**parts)
        self.context, self.search = NodeContext(), SplitSearch()
