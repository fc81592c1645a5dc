"""Sums of absolute deviations from the weighted median, for every prefix of a sequence of rows.

Two binary indexed trees (Fenwick, 1994) over the ranks of the target hold weights and weighted targets::

    tree[i] = sum over ranks (i − lowbit(i), i]        add: walk up      find the median's rank: walk down

so a prefix costs O(log n) a row instead of a sort.
"""

from espalier.kernels.jit import inner

LOOK_EVERY = 1 << 16


@inner
def add_to_trees(rank, weight, target, weight_tree, sum_tree):
    """Add one row (or take it away, with a negative weight); the trees have one entry more than there are ranks."""
    at = rank + 1
    while at < weight_tree.size:
        weight_tree[at] += weight
        sum_tree[at] += weight * target
        at += at & -at


@inner
def deviation(whole, total, target_value, weight_tree, sum_tree):
    """Give Σ w·|y − median| of the rows in the trees; `whole` is their weight, `total` their Σ w·y."""
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
    median = target_value[min(at, target_value.size - 1)]
    return max(0.0, (median * below - sum_below) + ((total - sum_below) - median * (whole - below)))


@inner
def prefix_deviations(
    sequence, start, stop, step, extra, extra_start, extra_stop, node_weight, ranks, target, target_value,
    weight_tree, sum_tree, answer, progress,
):  # fmt: skip
    """Write the deviation of each prefix of ``sequence[start:stop:step]``, with the rows of `extra` always in.

    sequence, extra: int32 rows. node_weight: float64 (n) weights by row. answer: float64; ``answer[i]`` is of the first
    i rows. The trees are empty before and after; a stop that `progress` asks for leaves them as they are.
    """
    whole = 0.0
    total = 0.0
    for place in range(extra_start, extra_stop):
        row = extra[place]
        add_to_trees(ranks[row], node_weight[row], target[row], weight_tree, sum_tree)
        whole += node_weight[row]
        total += node_weight[row] * target[row]
    answer[0] = deviation(whole, total, target_value, weight_tree, sum_tree)
    count = 0
    at = start
    while at != stop:
        row = sequence[at]
        add_to_trees(ranks[row], node_weight[row], target[row], weight_tree, sum_tree)
        whole += node_weight[row]
        total += node_weight[row] * target[row]
        count += 1
        answer[count] = deviation(whole, total, target_value, weight_tree, sum_tree)
        at += step
        if count % LOOK_EVERY == 0 and progress[1] != 0.0:
            return
    at = start
    while at != stop:
        take_out(sequence[at], ranks, weight_tree, sum_tree)
        at += step
    for place in range(extra_start, extra_stop):
        take_out(extra[place], ranks, weight_tree, sum_tree)


@inner
def take_out(row, ranks, weight_tree, sum_tree):
    """Empty every entry that holds this row: all rows leave together, so nothing is left to rounding."""
    at = ranks[row] + 1
    while at < weight_tree.size:
        weight_tree[at] = 0.0
        sum_tree[at] = 0.0
        at += at & -at


@inner
def group_deviation(
    sequence, start, stop, extra, extra_start, extra_stop, share, node_weight, ranks, target, target_value,
    weight_tree, sum_tree,
):  # fmt: skip
    """Give the deviation of ``sequence[start:stop]`` together with `share` of the rows of `extra`."""
    whole = 0.0
    total = 0.0
    for place in range(start, stop):
        row = sequence[place]
        add_to_trees(ranks[row], node_weight[row], target[row], weight_tree, sum_tree)
        whole += node_weight[row]
        total += node_weight[row] * target[row]
    for place in range(extra_start, extra_stop):
        row = extra[place]
        add_to_trees(ranks[row], node_weight[row] * share, target[row], weight_tree, sum_tree)
        whole += node_weight[row] * share
        total += node_weight[row] * share * target[row]
    answer = deviation(whole, total, target_value, weight_tree, sum_tree)
    for place in range(start, stop):
        take_out(sequence[place], ranks, weight_tree, sum_tree)
    for place in range(extra_start, extra_stop):
        take_out(extra[place], ranks, weight_tree, sum_tree)
    return answer


@inner
def deviations_of_order(rows, work, rare, sequence, start, end, stop, both):
    """Fill the four tables of prefix deviations of a sequence of rows."""
    prefix_deviations(
        sequence, start, end, 1, sequence, end, end, work.weight, rare.target_rank, rows.target, rare.target_value,
        rare.weight_tree, rare.sum_tree, rare.forward, rare.progress,
    )  # fmt: skip
    prefix_deviations(
        sequence, end - 1, start - 1, -1, sequence, end, end, work.weight, rare.target_rank, rows.target,
        rare.target_value, rare.weight_tree, rare.sum_tree, rare.backward, rare.progress,
    )  # fmt: skip
    if both:
        prefix_deviations(
            sequence, start, end, 1, sequence, end, stop, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree, rare.forward_all, rare.progress,
        )  # fmt: skip
        prefix_deviations(
            sequence, end - 1, start - 1, -1, sequence, end, stop, work.weight, rare.target_rank, rows.target,
            rare.target_value, rare.weight_tree, rare.sum_tree, rare.backward_all, rare.progress,
        )  # fmt: skip
