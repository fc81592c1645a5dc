"""Arguments of the general grower's kernels: objects with typed arrays. `arguments.pxd` holds the types.

F attributes, n rows, P = most categories that can occur in a node, width = number of classes, or 4 for a regression.
"""


class Arguments:
    """Arrays and numbers that are given by keyword; each becomes an attribute."""

    def __init__(self, **given):
        self.names = tuple(given)
        for name, value in given.items():
            setattr(self, name, value)

    def replaced(self, **changes):
        """Return a copy with some arguments changed."""
        return type(self)(**{name: getattr(self, name) for name in self.names} | changes)


class GrowParameters(Arguments):
    """A configuration as numbers; unset parameters are -1 (whole numbers) or NaN (real ones).

    n_classes: 0 for a regression. all_many_valued: whether `many_valued` is 1 for every attribute. cheapest: the least
    cost of an attribute, at most 1. root_weight: sum of all weights. min_impurity_decrease: if NaN, a gain must exceed
    rounding error. min_sd, min_variance: the least standard deviation and variance of a node that is split, in the
    target's unit and its square. class_scale: float64 (classes), 1 / class weight, 0 where that weight
    is 0; read if has_class_weights.
    """


class EncodedColumns(Arguments):
    """The attributes, feature-major.

    codes: int32 (F, n); -1 missing. ORDERED_KIND: rank of the value among the attribute's distinct training values.
    NOMINAL_KIND: code of the category. BINARIES_KIND: rank of the category by mean target.
    kind: int32 (F): ORDERED_KIND, NOMINAL_KIND or BINARIES_KIND (a nominal one recoded by mean target).
    n_codes: int32 (F), number of categories in the schema.
    order_place: int32 (F), the row of an ordered attribute in the presorted orders; not read for a nominal attribute.
    value_start: int64 (F+1), value: float64: the value of each rank, ascending; NOMINAL_KIND has none.
    recode_start: int64 (F+1), recode: int32: the rank of each category of a BINARIES_KIND attribute.
    many_valued: int32 (F), 1 if the attribute does not count in the average of `average_gain_guard`, unless all are 1.
    cost: float64 (F). first_attribute: number of the first column's attribute, which the others follow; above 0 only
    when a tree is grown level by level, from one column at a time.
    """


class Targets(Arguments):
    """The target and the weights of the rows.

    target_class: int32 (n), zeros for a regression. target: float64 (n), zeros for a classification.
    weight: float64 (n), above 0.
    """


class NodeContext:
    """The node to be split: rows ``start:stop``, weight, impurity, and the centre subtracted from numeric targets."""


class SplitSearch:
    """The attribute whose splits are tried at the node.

    paid: whether a node above tests the attribute (so its cost is paid). n_present: number of its categories present.
    places_unknown: whether each split is tried with the unknown rows in either branch. known_weight, unknown_weight:
    weight of the node's rows with known and with unknown value. known_size, unknown_size: the same without class
    weights. margin: least size of a branch. offset, scale: the gain of a split is ``offset + scale * sum of the terms
    of its branches``. found: whether there is a split. gain: gain of the best split so far. best: the value by
    which it is compared, its gain or gain ratio. tie: difference up to which two splits are equal.
    """


class Sums(Arguments):
    """Statistics of the node and of the branches of a split.

    weight: float64 (n), weight of each row in the node. All others are float64 (width). node: all rows; known, unknown:
    the rows whose value is known, and the others. left, right: the branches of the current split; best_left,
    best_right: those of the best split so far. trial: scratch.
    """


class Categories(Arguments):
    """The categories of a nominal attribute.

    group: float64 (P, width), statistics of each category present. n_rows_of: int32 (P), number of its rows. present:
    int32 (P), its code. slot: int32 (largest number of categories), index of each code in `present` or `ascending`,
    -1 between uses. branch: int32 (P), branch of each category present, in the order of `ascending`. ascending: int32
    (P), indexes in `present`, ascending by code. scratch: int32 (P). key: float64 (P), sort keys. order: int32 (P),
    indexes in `ascending`, sorted by key; a split cuts this sequence in two. direction: float64 (3, classes), scratch
    of the principal component.
    """


class Medians(Arguments):
    """Work arrays of ``absolute_error``. Under ``sdr`` and ``m5`` only the tables of prefixes are used.

    target_rank: int32 (n), dense rank of the target. target_value: float64, distinct targets, ascending. bucket: int32
    (n), rows by category. bucket_start: int32 (P + 1). sequence: int32 (n), rows along an order of categories. forward,
    backward, forward_all, backward_all: float64 (n + 1), absolute or squared deviations of prefixes; see `deviations`.
    sequence, forward and backward are scratch for one category against the rest. weight_tree, sum_tree: float64
    (distinct targets + 1), binary indexed trees. weight_in_trees, sum_in_trees: Σ w and Σ w·(y − mean) of their rows.
    progress: float64 (2), its stop flag ends a long scan of one attribute.
    """


class CutPoints(Arguments):
    """Given cut points: the only thresholds that are tried for their attributes.

    start: int64 (F + 1), start of each attribute's cut points. value: float64, the cut points. rank: int32, the rank of
    the largest training value at or below each, -1 if there is none.
    """


class ValidationRows(Arguments):
    """The held-out rows of ``validation_stop``.

    codes: float64 (F, rows), values or category codes, NaN missing. target, weight: float64 (rows).
    """


class Workspace(Arguments):
    """Input and work arrays of a training, in parts; also the current node and the attribute that is searched."""

    def __init__(self, **parts):
        super().__init__(**parts)
        self.context, self.search = NodeContext(), SplitSearch()
