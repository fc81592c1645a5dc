"""The split of a node: the candidates of all attributes, the stopping rules, and the best candidate."""

import cython
from cython.cimports.espalier.growing.kernels import constants as c, node_columns as column
from cython.cimports.espalier.growing.kernels.splits.candidate import negligible_gain, tie_of_scores
from cython.cimports.espalier.growing.kernels.splits.criterion import (
    WEIGHT_TOLERANCE,
    add_row,
    clear,
    is_leaf,
    poisson_deviance,
    term,
)
from cython.cimports.espalier.growing.kernels.splits.deviations import group_deviation
from cython.cimports.espalier.growing.kernels.splits.nominal_split import best_nominal_split
from cython.cimports.espalier.growing.kernels.splits.numeric_split import best_numeric_split
from cython.cimports.espalier.model.node_tests import LEAF, NUMERIC
from cython.cimports.libc.math import INFINITY, isnan

GUARD_SLACK = 1e-3


def choose_split(work, nodes, rows, candidates, node, start, stop, progress):
    """Compute all attributes' candidates at a node. Return the best one's attribute; -1 for a leaf or after a stop."""
    if must_stop(work, nodes, node):
        return -1
    set_context(work, nodes, rows, node, start, stop)
    if not find_candidates(work, nodes, rows, candidates, node, progress):
        return -1
    return best_candidate(work, candidates)


def find_candidates(work, nodes, rows, candidates, node, progress):
    """Write the candidate of each attribute at the node whose context is set. Return False if the stop flag is set."""
    attribute: cython.int
    paid: cython.bint = False
    for attribute in range(work.columns.codes.shape[0]):
        if progress[1] != 0.0:
            return False
        if work.parameters.cost_function != c.NO_COSTS:
            paid = is_paid(nodes, node, work.columns.first_attribute + attribute)
        ints, reals = candidates.ints[attribute], candidates.reals[attribute]
        if work.columns.kind[attribute] == c.NOMINAL_KIND:
            best_nominal_split(work, rows.master, attribute, paid, ints, reals)
        else:
            sequence = rows.orders[work.columns.order_place[attribute]]
            best_numeric_split(work, sequence, attribute, paid, ints, reals)
    return True


def set_context(work, nodes, rows, node, start, stop):
    """Write a node's range, statistics, impurity and row weights into `work`."""
    work.context.start, work.context.stop = start, stop
    work.context.weight = nodes.reals[node, column.WEIGHT]
    work.context.centre = 0.0
    if work.parameters.n_classes > 0:
        for k in range(work.parameters.n_classes):
            work.sums.node[k] = nodes.stats[node, k]
        for at in range(start, stop):
            work.sums.weight[rows.master[at]] = rows.weight[at]
    else:
        work.context.centre = nodes.stats[node, 1]
        clear(work.sums.node)
        sums = cython.address(work.sums.node[0])
        for at in range(start, stop):
            row = rows.master[at]
            work.sums.weight[row] = rows.weight[at]
            add_row(sums, work.targets, 0, row, rows.weight[at], work.context.centre)
    work.context.impurity = _impurity_of_node(work, rows.master, start, stop)


def best_candidate(work, candidates):
    """Return the attribute of the admissible candidate with the best score, -1 if there is none.

    Except with `spread`, ``leaf_weight_rule: winner`` rejects this candidate if its second largest branch is too light.
    """
    attribute: cython.int
    min_gain = negligible_gain(work)
    average: cython.double = -INFINITY
    if work.parameters.average_gain_guard:
        total: cython.double = 0.0
        n_counted: cython.int = 0
        for attribute in range(candidates.ints.shape[0]):
            test = candidates.ints[attribute, c.INT_TEST]
            if test == LEAF or (work.columns.many_valued[attribute] == 1 and not work.parameters.all_many_valued):
                continue
            if test == NUMERIC and not candidates.reals[attribute, c.REAL_GAIN] > min_gain:
                continue
            total += candidates.reals[attribute, c.REAL_GAIN]
            n_counted += 1
        if n_counted == 0:
            return -1
        average = total / n_counted - GUARD_SLACK
    best: cython.int = -1
    best_score: cython.double = 0.0
    for attribute in range(candidates.ints.shape[0]):
        if candidates.ints[attribute, c.INT_TEST] == LEAF:
            continue
        gain = candidates.reals[attribute, c.REAL_GAIN]
        if isnan(work.parameters.min_impurity_decrease):
            if not gain > min_gain:
                continue
        elif (
            work.context.weight / work.parameters.root_weight * gain < work.parameters.min_impurity_decrease - min_gain
        ):
            continue
        if gain < average:
            continue
        score = candidates.reals[attribute, c.REAL_SCORE]
        if best < 0 or score > best_score + tie_of_scores(work):
            best = attribute
            best_score = score
    # With `spread` the winner is weighed later: see `assign_branches.weigh_row_by_row`.
    if best >= 0 and work.parameters.leaf_weight_of_winner and work.parameters.missing != c.SPREAD:
        second = candidates.reals[best, c.REAL_SECOND]
        if second < work.parameters.min_weight_leaf * (1.0 - WEIGHT_TOLERANCE):
            return -1
    return best


def must_stop(work, nodes, node):
    """Return whether a stopping rule makes a node a leaf, before any attribute is tried."""
    is_constant: cython.bint = nodes.reals[node, column.LOWEST] == nodes.reals[node, column.HIGHEST]
    depth: cython.longlong = nodes.ints[node, column.DEPTH]
    return is_leaf(work.parameters, cython.address(nodes.stats[node, 0]), depth, is_constant)


def _impurity_of_node(work, master, start, stop):
    weight = work.context.weight
    sums = cython.address(work.sums.node[0])
    if work.parameters.criterion == c.ABSOLUTE_ERROR:
        return group_deviation(work, master, start, stop) / weight
    if work.parameters.criterion == c.POISSON:
        total: cython.double = 0.0
        for at in range(start, stop):
            apart = work.targets.target[master[at]] - work.context.centre
            total += poisson_deviance(work.sums.weight[master[at]], apart, work.context.centre)
        return (total + term(c.POISSON, 0, sums, sums)) / weight
    criterion: cython.int = c.GINI if work.parameters.criterion == c.CHI_SQUARE else work.parameters.criterion
    return term(criterion, work.parameters.n_classes, sums, sums) / weight


def is_paid(nodes, node, attribute):
    """Return whether a node above has tested an attribute. Only the nodes linked by PAID_LINK are read."""
    link: cython.int = nodes.ints[node, column.PAID_LINK]
    while link >= 0:
        if nodes.ints[link, column.FEATURE] == attribute:
            return True
        link = nodes.ints[link, column.PAID_LINK]
    return False
