"""The split of a node: the candidates of all attributes, the stopping rules, and the best candidate."""

import math

from espalier.growing.kernels import constants as c, nodes as n
from espalier.growing.kernels.candidate import (
    INT_TEST,
    REAL_GAIN,
    REAL_SCORE,
    REAL_SECOND,
    WEIGHT_TOLERANCE,
    negligible_gain,
    tie_of_scores,
)
from espalier.growing.kernels.constants import NodeContext
from espalier.growing.kernels.criterion import clear, term
from espalier.growing.kernels.median import group_deviation
from espalier.growing.kernels.nominal_split import best_nominal_split
from espalier.growing.kernels.numeric_split import best_numeric_split
from espalier.kernels.jit import inner

GUARD_SLACK = 1e-3


@inner
def choose_split(
    parameters, columns, targets, work, orders, master, master_weight, node_ints, node_reals, node_stats, node, start,
    stop, candidate_ints, candidate_reals, progress,
):  # fmt: skip
    """Compute the candidates of all attributes at a node. Return the attribute of the best one, -1 for a leaf."""
    if must_stop(parameters, node_ints, node_reals, node_stats, node):
        return -1
    weight = node_reals[node, n.WEIGHT]
    context = node_context(parameters, targets, work, master, master_weight, start, stop, weight, node_stats[node])
    for attribute in range(columns.codes.shape[0]):
        if progress[1] != 0.0:
            return -1
        paid = False
        if parameters.cost_function != c.NO_COSTS:
            paid = is_paid(node_ints, node, attribute)
        ints, reals = candidate_ints[attribute], candidate_reals[attribute]
        if columns.kind[attribute] == c.NOMINAL_KIND:
            best_nominal_split(parameters, columns, targets, work, context, master, attribute, paid, ints, reals)
        else:
            sequence = orders[columns.order_place[attribute]]
            best_numeric_split(parameters, columns, targets, work, context, sequence, attribute, paid, ints, reals)
    return _winner(parameters, columns, context, candidate_ints, candidate_reals)


@inner
def node_context(parameters, targets, work, master, master_weight, start, stop, weight, stats):
    """Write a node's statistics and its rows' weights into `work` and return its context.

    weight, stats: of the node, from the node tables.
    """
    centre = 0.0
    if parameters.n_classes > 0:
        for k in range(parameters.n_classes):
            work.sums.node[k] = stats[k]
        for at in range(start, stop):
            work.sums.weight[master[at]] = master_weight[at]
        if parameters.n_classes == 2:
            for at in range(start, stop):
                row = master[at]
                other = master_weight[at] * targets.target_class[row]  # the whole weight or 0, so exact
                work.sums.by_class[row, 0], work.sums.by_class[row, 1] = master_weight[at] - other, other
    else:
        centre = stats[1]
        clear(work.sums.node)
        for at in range(start, stop):
            row = master[at]
            work.sums.weight[row] = master_weight[at]
            apart = targets.target[row] - centre
            work.sums.node[0] += master_weight[at]
            work.sums.node[1] += master_weight[at] * apart
            work.sums.node[2] += master_weight[at] * apart * apart
            work.sums.node[3] += master_weight[at] * targets.target[row]
    impurity = _impurity_of_node(parameters, targets, work, master, start, stop, weight)
    return NodeContext(start, stop, weight, impurity, centre)


@inner
def _winner(parameters, columns, context, candidate_ints, candidate_reals):
    """Return the attribute of the best score among the admissible candidates, -1 for none."""
    min_gain = negligible_gain(parameters, context)
    average = -math.inf
    if parameters.average_gain_guard == 1:
        total = 0.0
        n_counted = 0
        for attribute in range(candidate_ints.shape[0]):
            test = candidate_ints[attribute, INT_TEST]
            if test == c.LEAF or (columns.many_valued[attribute] == 1 and parameters.all_many_valued == 0):
                continue
            if test == c.NUMERIC and not candidate_reals[attribute, REAL_GAIN] > min_gain:
                continue
            total += candidate_reals[attribute, REAL_GAIN]
            n_counted += 1
        if n_counted == 0:
            return -1
        average = total / n_counted - GUARD_SLACK
    best = -1
    best_score = 0.0
    for attribute in range(candidate_ints.shape[0]):
        if candidate_ints[attribute, INT_TEST] == c.LEAF:
            continue
        gain = candidate_reals[attribute, REAL_GAIN]
        if math.isnan(parameters.min_impurity_decrease):
            if not gain > min_gain:
                continue
        elif context.weight / parameters.root_weight * gain < parameters.min_impurity_decrease - min_gain:
            continue
        if gain < average:
            continue
        score = candidate_reals[attribute, REAL_SCORE]
        if best < 0 or score > best_score + tie_of_scores(parameters, best_score, context):
            best = attribute
            best_score = score
    # With `spread` the winner is weighed later: see `assign_branches.weigh_row_by_row`.
    if best >= 0 and parameters.leaf_weight_of_winner == 1 and parameters.missing != c.SPREAD:
        second = candidate_reals[best, REAL_SECOND]
        if second < parameters.min_weight_leaf - WEIGHT_TOLERANCE:
            return -1
    return best


@inner
def must_stop(parameters, node_ints, node_reals, node_stats, node):
    """Return whether a node is a leaf before any attribute is tried."""
    weight = node_reals[node, n.WEIGHT]
    if weight <= 0.0 or weight < max(parameters.min_weight_split, 2.0 * parameters.min_weight_leaf) - WEIGHT_TOLERANCE:
        return True
    if parameters.max_depth >= 0 and node_ints[node, n.DEPTH] >= parameters.max_depth:
        return True
    if parameters.n_classes > 0:
        n_present = 0
        for k in range(parameters.n_classes):
            if node_stats[node, k] > 0.0:
                n_present += 1
        return n_present < 2
    if node_reals[node, n.LOWEST] == node_reals[node, n.HIGHEST]:
        return True
    variance = node_stats[node, 2] / weight
    return variance < parameters.min_variance or math.sqrt(variance) < parameters.min_sd


@inner
def _impurity_of_node(parameters, targets, work, master, start, stop, weight):
    if parameters.criterion == c.ABSOLUTE_ERROR:
        return group_deviation(targets, work, master, start, stop, master, stop, stop, 0.0) / weight
    criterion = c.GINI if parameters.criterion == c.CHI_SQUARE else parameters.criterion
    if criterion == c.POISSON:
        inner = work.sums.node[3] * math.log(work.sums.node[3] / weight) if work.sums.node[3] > 0.0 else 0.0
        total = 0.0
        for at in range(start, stop):
            target = targets.target[master[at]]
            if target > 0.0:
                total += work.sums.weight[master[at]] * target * math.log(target)
        return (total - inner) / weight
    return term(criterion, work.sums.node, work.sums.node) / weight


@inner
def is_paid(node_ints, node, attribute):
    """Return whether the path above a node has tested an attribute. Visits only the nodes that paid for a new one."""
    link = node_ints[node, n.PAID_LINK]
    while link >= 0:
        if node_ints[link, n.FEATURE] == attribute:
            return True
        link = node_ints[link, n.PAID_LINK]
    return False
