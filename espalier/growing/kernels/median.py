"""Sums of absolute deviations from the weighted median, for every prefix of a sequence of rows.

Two binary indexed trees (Fenwick, 1994) over the ranks of the target hold weights and weighted targets::

    tree[i] = sum over ranks (i − lowbit(i), i]        add: walk up      find the median's rank: walk down

so a prefix costs O(log n) a row instead of a sort.
"""

from espalier.kernels.jit import inner

ROWS_BETWEEN_CHECKS = 1 << 16


@inner
def add_to_trees(medians, rank, weight, target):
    """Add one row, or remove it with a negative weight. The trees have one entry more than there are ranks."""
    at = rank + 1
    while at < medians.weight_tree.size:
        medians.weight_tree[at] += weight
        medians.sum_tree[at] += weight * target
        at += at & -at


@inner
def deviation(medians, whole, total):
    """Return Σ w·|y − median| of the rows in the trees; `whole` is their weight, `total` their Σ w·y."""
    weight_tree, sum_tree = medians.weight_tree, medians.sum_tree
    if whole <= 0.0:
        return 0.0
    step = 1
    while step * 2 < weight_tree.size:
        step *= 2
    at = 0
    below = 0.0
    sum_below = 0.0
    half = 0.5 * whole * (1.0 - 1e-12)
    while step > 0:
        following = at + step
        if following < weight_tree.size and below + weight_tree[following] < half:
            at = following
            below += weight_tree[at]
            sum_below += sum_tree[at]
        step //= 2
    # Rank `at` (from 0) is the first at which half of the weight is reached.
    median = medians.target_value[min(at, medians.target_value.size - 1)]
    return max(0.0, (median * below - sum_below) + ((total - sum_below) - median * (whole - below)))


@inner
def prefix_deviations(targets, work, sequence, start, stop, step, extra_start, extra_stop, answer):
    """Write the deviation of each prefix of ``sequence[start:stop:step]``.

    The rows ``sequence[extra_start:extra_stop]`` belong to every prefix. answer: float64; ``answer[i]`` is the
    deviation of the first i rows. The trees are empty before and after, unless the stop flag is set meanwhile.
    """
    medians, row_weight = work.medians, work.sums.weight
    whole = 0.0
    total = 0.0
    for place in range(extra_start, extra_stop):
        row = sequence[place]
        add_to_trees(medians, medians.target_rank[row], row_weight[row], targets.target[row])
        whole += row_weight[row]
        total += row_weight[row] * targets.target[row]
    answer[0] = deviation(medians, whole, total)
    count = 0
    at = start
    while at != stop:
        row = sequence[at]
        add_to_trees(medians, medians.target_rank[row], row_weight[row], targets.target[row])
        whole += row_weight[row]
        total += row_weight[row] * targets.target[row]
        count += 1
        answer[count] = deviation(medians, whole, total)
        at += step
        if count % ROWS_BETWEEN_CHECKS == 0 and medians.progress[1] != 0.0:
            return
    at = start
    while at != stop:
        remove_from_trees(medians, sequence[at])
        at += step
    for place in range(extra_start, extra_stop):
        remove_from_trees(medians, sequence[place])


@inner
def remove_from_trees(medians, row):
    """Set every entry that holds this row to 0: all rows leave together, so no rounding errors remain."""
    at = medians.target_rank[row] + 1
    while at < medians.weight_tree.size:
        medians.weight_tree[at] = 0.0
        medians.sum_tree[at] = 0.0
        at += at & -at


@inner
def group_deviation(targets, work, sequence, start, stop, extra, extra_start, extra_stop, share):
    """Return the deviation of ``sequence[start:stop]`` together with `share` of ``extra[extra_start:extra_stop]``."""
    medians, row_weight = work.medians, work.sums.weight
    whole = 0.0
    total = 0.0
    for place in range(start, stop):
        row = sequence[place]
        add_to_trees(medians, medians.target_rank[row], row_weight[row], targets.target[row])
        whole += row_weight[row]
        total += row_weight[row] * targets.target[row]
    for place in range(extra_start, extra_stop):
        row = extra[place]
        add_to_trees(medians, medians.target_rank[row], row_weight[row] * share, targets.target[row])
        whole += row_weight[row] * share
        total += row_weight[row] * share * targets.target[row]
    answer = deviation(medians, whole, total)
    for place in range(start, stop):
        remove_from_trees(medians, sequence[place])
    for place in range(extra_start, extra_stop):
        remove_from_trees(medians, extra[place])
    return answer


@inner
def deviations_of_order(targets, work, sequence, start, end, stop, both):
    """Fill the tables of prefix deviations: from both ends of ``sequence[start:end]``, without and with the rest."""
    medians = work.medians
    prefix_deviations(targets, work, sequence, start, end, 1, end, end, medians.forward)
    prefix_deviations(targets, work, sequence, end - 1, start - 1, -1, end, end, medians.backward)
    if both:
        prefix_deviations(targets, work, sequence, start, end, 1, end, stop, medians.forward_all)
        prefix_deviations(targets, work, sequence, end - 1, start - 1, -1, end, stop, medians.backward_all)
