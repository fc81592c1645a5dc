"""Which attribute a node is split by: the offers of all, and the best of those that may compete."""

import math

from espalier.growing.kernels import constants as c
from espalier.growing.kernels.candidate import (
    INT_TEST,
    REAL_GAIN,
    REAL_SCORE,
    REAL_SECOND,
    WEIGHT_TOLERANCE,
    nothing,
    tie_of_scores,
)
from espalier.growing.kernels.constants import Place
from espalier.growing.kernels.criterion import clear, term
from espalier.growing.kernels.median import group_deviation
from espalier.growing.kernels.nodes import DEPTH, FEATURE, HIGHEST, LOWEST, PAID_LINK, WEIGHT
from espalier.growing.kernels.nominal_split import offer_nominal
from espalier.growing.kernels.numeric_split import offer_ordered
from espalier.kernels.jit import inner

GUARD_SLACK = 1e-3


@inner
def choose(
    rules, columns, rows, work, groups, subsets, rare, orders, master, master_weight, node_ints, node_reals, node_stats,
    node, start, stop, offer_ints, offer_reals, progress,
):  # fmt: skip
    """Collect the offers of all attributes at a node; returns the attribute that wins, -1 for a leaf."""
    if must_stop(rules, node_ints, node_reals, node_stats, node):
        return -1
    weight = node_reals[node, WEIGHT]
    place = place_of(rules, rows, work, rare, master, master_weight, start, stop, weight, node_stats[node])
    for attribute in range(columns.codes.shape[0]):
        if progress[1] != 0.0:
            return -1
        paid = False
        if rules.cost_function != c.NO_COSTS:
            paid = is_paid(node_ints, node, attribute)
        ints, reals = offer_ints[attribute], offer_reals[attribute]
        if columns.kind[attribute] == c.NOMINAL_KIND:
            offer_nominal(
                rules, columns, rows, work, groups, subsets, rare, place, master, attribute, paid, ints, reals
            )
        else:
            sequence = orders[columns.order_place[attribute]]
            offer_ordered(rules, columns, rows, work, rare, place, sequence, attribute, paid, ints, reals)
    return _winner(rules, columns, place, offer_ints, offer_reals)


@inner
def place_of(rules, rows, work, rare, master, master_weight, start, stop, weight, stats):
    """Write a node's statistics and its rows' weights into `work`; returns its place.

    weight, stats: of the node, as they stand in the tables.
    """
    centre = 0.0
    if rules.n_classes > 0:
        for k in range(rules.n_classes):
            work.node[k] = stats[k]
        for at in range(start, stop):
            work.weight[master[at]] = master_weight[at]
        if rules.n_classes == 2:
            for at in range(start, stop):
                row = master[at]
                other = master_weight[at] * rows.target_class[row]  # the whole weight or none: nothing is rounded
                work.by_class[row, 0], work.by_class[row, 1] = master_weight[at] - other, other
    else:
        centre = stats[1]
        clear(work.node)
        for at in range(start, stop):
            row = master[at]
            work.weight[row] = master_weight[at]
            apart = rows.target[row] - centre
            work.node[0] += master_weight[at]
            work.node[1] += master_weight[at] * apart
            work.node[2] += master_weight[at] * apart * apart
            work.node[3] += master_weight[at] * rows.target[row]
    impurity = _impurity_of_node(rules, rows, work, rare, master, start, stop, weight)
    return Place(start, stop, weight, impurity, centre)


@inner
def _winner(rules, columns, place, offer_ints, offer_reals):
    """Give the attribute of the best score among those that may compete, -1 for none."""
    least_gain = nothing(rules, place)
    average = -math.inf
    if rules.average_gain_guard == 1:
        total = 0.0
        n_counted = 0
        for attribute in range(offer_ints.shape[0]):
            test = offer_ints[attribute, INT_TEST]
            if test == c.LEAF or (columns.many_valued[attribute] == 1 and rules.all_many_valued == 0):
                continue
            if test == c.NUMERIC and not offer_reals[attribute, REAL_GAIN] > least_gain:
                continue
            total += offer_reals[attribute, REAL_GAIN]
            n_counted += 1
        if n_counted == 0:
            return -1
        average = total / n_counted - GUARD_SLACK
    best = -1
    worth = 0.0
    for attribute in range(offer_ints.shape[0]):
        if offer_ints[attribute, INT_TEST] == c.LEAF:
            continue
        gain = offer_reals[attribute, REAL_GAIN]
        if math.isnan(rules.min_impurity_decrease):
            if not gain > least_gain:
                continue
        elif place.weight / rules.root_weight * gain < rules.min_impurity_decrease - least_gain:
            continue
        if gain < average:
            continue
        score = offer_reals[attribute, REAL_SCORE]
        if best < 0 or score > worth + tie_of_scores(rules, worth, place):
            best = attribute
            worth = score
    # With `spread` the winner is weighed once its rows have sides: see `sides.weigh_row_by_row`.
    if best >= 0 and rules.leaf_weight_of_winner == 1 and rules.missing != c.SPREAD:
        second = offer_reals[best, REAL_SECOND]
        if second < rules.min_weight_leaf - WEIGHT_TOLERANCE:
            return -1
    return best


@inner
def must_stop(rules, node_ints, node_reals, node_stats, node):
    """Whether a node is a leaf before any attribute is looked at."""
    weight = node_reals[node, WEIGHT]
    if weight <= 0.0 or weight < max(rules.min_weight_split, 2.0 * rules.min_weight_leaf) - WEIGHT_TOLERANCE:
        return True
    if rules.max_depth >= 0 and node_ints[node, DEPTH] >= rules.max_depth:
        return True
    if rules.n_classes > 0:
        n_present = 0
        for k in range(rules.n_classes):
            if node_stats[node, k] > 0.0:
                n_present += 1
        return n_present < 2
    if node_reals[node, LOWEST] == node_reals[node, HIGHEST]:
        return True
    variance = node_stats[node, 2] / weight
    return variance < rules.min_variance or math.sqrt(variance) < rules.min_sd


@inner
def _impurity_of_node(rules, rows, work, rare, master, start, stop, weight):
    if rules.criterion == c.ABSOLUTE_ERROR:
        return group_deviation(
            master, start, stop, master, stop, stop, 0.0, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree,
        ) / weight  # fmt: skip
    criterion = c.GINI if rules.criterion == c.CHI_SQUARE else rules.criterion
    if criterion == c.POISSON:
        inner = work.node[3] * math.log(work.node[3] / weight) if work.node[3] > 0.0 else 0.0
        total = 0.0
        for at in range(start, stop):
            target = rows.target[master[at]]
            if target > 0.0:
                total += work.weight[master[at]] * target * math.log(target)
        return (total - inner) / weight
    return term(criterion, work.node, work.node) / weight


@inner
def is_paid(node_ints, node, attribute):
    """Whether the path above a node has tested an attribute; walks only the nodes that paid for a new one."""
    link = node_ints[node, PAID_LINK]
    while link >= 0:
        if node_ints[link, FEATURE] == attribute:
            return True
        link = node_ints[link, PAID_LINK]
    return False
