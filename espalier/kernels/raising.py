"""Pessimistic pruning: leaves and raised branches by their estimated errors; see `spreading` for the buffers."""

import numpy as np

from espalier.kernels import limits
from espalier.kernels.jit import compiled, inner, shared
from espalier.kernels.limits import exact_errors, normal_errors
from espalier.kernels.settling import N_SLOTS, Cells, send_down, set_step, settle, steps_of
from espalier.kernels.spreading import AT_LEAVES, EVERYWHERE, copy, first_of, longer, preorder, spread

__all__ = ["prune_pessimistically"]

for _name in ("normal_errors", "larger_errors", "exact_errors", "exact_limit", "beta_ratio", "beta_series"):
    shared(getattr(limits, _name))

SLACK = 0.1
"""A leaf or a raised branch may be this many errors worse than the subtree (Quinlan 1993)."""
ABOVE_ROUNDING = 1.0 + 1e-9
STRETCH = 64
"""So many rows are tried in a branch before it is asked whether more of them could still let it rise; then twice as
many, to `LONGEST_STRETCH`."""
LONGEST_STRETCH = 4096
ALL_ROWS = 0
PARTS = 1


@inner
def estimated_errors(stats, node, confidence, z, quantile, exact):  # type: ignore[no-untyped-def]
    """Give the upper limit of the errors of a node as a leaf, from its class weights."""
    weight, most = 0.0, 0.0
    for place in range(stats.shape[1]):
        weight += stats[node, place]
        most = max(most, stats[node, place])
    errors = weight - most
    if confidence > 0.5 or weight <= 0.0:
        return errors
    if exact is not None:
        return errors + exact_errors(weight, errors, confidence)
    return errors + normal_errors(weight, errors, confidence, z, quantile)


@inner
def add_up(  # type: ignore[no-untyped-def]
    target, row, weight, first, n_pieces, reached, extra, touched, is_touched, n_touched, listed, arriving, n_listed
):  # fmt: skip
    """Add up in `extra` the pieces from `first` on by the leaves that they reach, and list those that go several ways.

    Returns how many leaves `touched` lists now.
    """
    for place in range(n_pieces):
        leaf = reached[place]
        own = row[first + place]
        own = own if own >= 0 else ~own
        if leaf < 0:
            listed[n_listed], arriving[n_listed] = own, weight[first + place]
            n_listed += 1
            continue
        code = int(target[own])
        if code >= 0:
            extra[leaf, code] += weight[first + place]
        if not is_touched[leaf]:
            is_touched[leaf] = True
            touched[n_touched] = leaf
            n_touched += 1
    return n_touched


@inner
def least_errors(  # type: ignore[no-untyped-def]
    stats, estimate, branch_node, extra, touched, n_touched, both, confidence, z, quantile, exact
):
    """Give the estimated errors of a branch whose leaves `touched` have `extra` rows more; both: scratch (1, classes).

    No estimate falls when rows are added, so what some rows give is the least that more of them will.
    """
    total = estimate[branch_node]
    for each in range(n_touched):
        leaf = touched[each]
        for code in range(stats.shape[1]):
            both[0, code] = extra[leaf, code] + stats[leaf, code]
        total += estimated_errors(both, 0, confidence, z, quantile, exact) - estimate[leaf]
    return total


@inner
def rows_of(row, weight, first, last, which, held, listed, arriving, n_listed):  # type: ignore[no-untyped-def]
    """List the rows of the pieces first:last with their weights there, after the n_listed first ones; give how many.

    which: ALL_ROWS, or only those in PARTS. held: zeros (n), scratch. A row in several pieces is listed as ~row,
    as a part of one is.
    """
    begin = n_listed
    for piece in range(first, last):
        if which == PARTS and row[piece] >= 0:
            continue
        own = row[piece] if row[piece] >= 0 else ~row[piece]
        if held[own] == 0.0:
            listed[n_listed] = row[piece]
            n_listed += 1
        held[own] += weight[piece]
    for each in range(begin, n_listed):
        own = listed[each] if listed[each] >= 0 else ~listed[each]
        arriving[each] = held[own]
        held[own] = 0.0
    return n_listed


@inner
def mark_parts(row, first, last, marked_from, marked_to, held):  # type: ignore[no-untyped-def]
    """Make parts of those pieces marked_from:marked_to whose rows are in parts in first:last. held: zeros (n), scratch.

    Of a node whose branch was raised the first are as they were before: rows that go one way there may go several now.
    """
    for piece in range(first, last):
        if row[piece] < 0:
            held[~row[piece]] = 1.0
    for piece in range(marked_from, marked_to):
        if row[piece] >= 0 and held[row[piece]] > 0.0:
            row[piece] = ~row[piece]
    for piece in range(first, last):
        if row[piece] < 0:
            held[~row[piece]] = 0.0


@inner
def counts_as_it_goes(nodes, substitutes, shape, target):  # type: ignore[no-untyped-def]
    """Whether every row that goes one way knows what is asked for there, and has a class."""
    for node in range(len(shape)):
        if shape[node] >= 0 and nodes.fallback[node] >= 0:
            return False
    for each in range(len(target)):
        if target[each] < 0:
            return False
    return substitutes.start[len(shape)] == 0


@compiled
def prune_pessimistically(  # type: ignore[no-untyped-def]
    nodes,
    substitutes,
    shape,
    shares,
    stats,
    values,
    rows,
    weights,
    target,
    confidence,
    z,
    quantile,
    exact,
    raising,
    renew,
    stop,
):
    """Prune from the leaves by estimated errors, raising branches if asked (Quinlan 1993, chapter 4).

    A node becomes a leaf, or its heaviest branch (of equals the last) takes its place, as `prune_pessimistic` says.
    shape, shares and stats (float64 (n, classes)) are written: the pruned tree. values: float64 (n, F). rows, weights,
    target and renew as in `spread`: the training rows, not looked at without `raising`. exact: None, but for the exact
    limit. stop: float64 (2); ends early where stop[1] is not 0.

    Returns, a line a node that went: (node, the branch put in its place or -1, estimates: of the subtree, as a leaf, of
    the raised branch (NaN without raising)).
    """
    n_nodes, n_classes = stats.shape
    width = n_classes + 1
    mass, estimate = np.zeros(n_nodes), np.zeros(n_nodes)
    for node in range(n_nodes):
        for code in range(n_classes):
            mass[node] += stats[node, code]
        if shape[node] < 0:
            estimate[node] = estimated_errors(stats, node, confidence, z, quantile, exact)
    gone, put = np.empty(64, np.int32), np.empty(64, np.int32)
    was, as_leaf, as_branch = np.empty(64), np.empty(64), np.empty(64)
    n_gone = 0
    n_held = n_nodes if raising else 1
    sums, answers, trial_shares = np.zeros((n_held, 2 * width)), np.zeros(1), np.zeros(len(shares))
    # Of the rows that go one way only, to the leaves below: what `stats` and `estimate` are of all.
    whole, least = np.zeros((n_held, n_classes)), np.zeros(n_held)
    divides = np.zeros(n_nodes, np.bool_)
    extra, both = np.zeros((n_held, n_classes)), np.zeros((1, n_classes))
    touched, is_touched = np.empty(n_nodes, np.int32), np.zeros(n_nodes, np.bool_)
    reached = np.empty(LONGEST_STRETCH, np.int32)
    first, slots = np.empty(N_SLOTS, np.uint64), np.empty(N_SLOTS, np.int64)
    n_rows = len(rows)
    held, listed, arriving = np.zeros(n_rows), np.empty(n_rows, np.int32), np.empty(n_rows)
    nothing, known_before, is_plain = np.zeros(n_nodes), np.zeros(n_nodes), False
    steps = steps_of(nodes, shape)
    if raising:
        order, size, lo, row, weight, cells, own_target = settle(
            nodes, steps, substitutes, shape, shares, values, rows, weights, target, n_classes, answers, sums, divides
        )
        is_plain = counts_as_it_goes(nodes, substitutes, shape, own_target)
        for node in range(n_nodes):
            if shape[node] < 0:
                piece, last = lo[node], lo[node + 1] if node + 1 < n_nodes else len(row)
                while piece < last and row[piece] >= 0:
                    if own_target[row[piece]] >= 0:
                        whole[node, int(own_target[row[piece]])] += weight[piece]
                    piece += 1
                least[node] = estimated_errors(whole, node, confidence, z, quantile, exact)
    else:
        order, _, size = preorder(nodes.child_start, nodes.child, shape)
        lo, row, weight = np.zeros(len(order), np.int64), np.zeros(0, np.int32), np.zeros(0)
        cells, own_target = Cells(values.T, values.reshape(-1), values.shape[1]), np.zeros(0)
    # A frame is a subtree whose nodes wait to be looked at, the last first; a raised branch opens one of its own.
    base, n_own = np.empty(16, np.int64), np.empty(16, np.int64)
    piece_base, at = np.empty(16, np.int64), np.empty(16, np.int64)
    base[0], n_own[0], piece_base[0], at[0] = 0, len(order), 0, len(order) - 1
    n_frames, end, piece_end = 1, len(order), len(row)
    while n_frames > 0 and stop[1] == 0.0:
        frame = n_frames - 1
        place = at[frame]
        if place < 0:
            if frame > 0:
                # The branch stands in the place of the node looked at last in the frame before.
                raised_at, frame_end = base[frame - 1] + at[frame - 1] + 1, base[frame - 1] + n_own[frame - 1]
                after = raised_at + size[raised_at]
                until = lo[after] if after < frame_end else piece_base[frame]
                mark_parts(row, piece_base[frame], piece_end, lo[raised_at], until, held)
            end, piece_end = base[frame], piece_base[frame]
            n_frames -= 1
            continue
        at[frame] -= 1
        here = base[frame] + place
        node = order[here]
        split = shape[node]
        if split < 0:
            continue
        below, least_below, largest, largest_at = 0.0, 0.0, -1, here
        for code in range(n_classes if raising else 0):
            whole[node, code] = 0.0
        child_at = here + 1
        for each in range(nodes.child_start[split], nodes.child_start[split + 1]):
            child = nodes.child[each]
            below += estimate[child]
            if raising:
                least_below += least[child]
                for code in range(n_classes):
                    whole[node, code] += whole[child, code]
                divides[node] = divides[node] or divides[child]
            if largest < 0 or mass[child] >= mass[largest]:
                largest, largest_at = child, child_at
            child_at += size[child_at]
        leaf_estimate = estimated_errors(stats, node, confidence, z, quantile, exact)
        branch_estimate = np.inf
        last = piece_end
        if raising and shape[largest] < 0:
            branch_estimate = leaf_estimate
        elif raising:
            # This frame is the newest, so its pieces end where all pieces end.
            frame_end = base[frame] + n_own[frame]
            beyond, largest_beyond = here + size[here], largest_at + size[largest_at]
            last = lo[beyond] if beyond < frame_end else piece_end
            largest_last = lo[largest_beyond] if largest_beyond < frame_end else piece_end
            # A row that goes several ways below has no place of its own in a sum: the others give the least there is.
            counted, known = stats, estimate
            if divides[largest]:
                counted, known = whole, least
            may_stay = leaf_estimate > below + SLACK
            enough = (below + SLACK) * ABOVE_ROUNDING
            n_touched, n_left_out, sent, stretch = 0, 0, lo[here], STRETCH
            branch_estimate = known[largest]
            if last - lo[here] > len(listed):
                listed, arriving = longer(listed, last - lo[here]), longer(arriving, last - lo[here])
            while sent < last:
                if sent == lo[largest_at]:
                    sent = largest_last
                until = min(sent + stretch, last if sent >= largest_last else lo[largest_at])
                n_more = send_down(
                    nodes, steps, substitutes, shape, cells, row, sent, until, largest, reached, first, slots
                )
                n_touched = add_up(
                    own_target, row, weight, sent, until - sent, reached, extra, touched, is_touched, n_touched,
                    listed, arriving, n_left_out,
                )  # fmt: skip
                n_left_out += n_more
                sent = until
                stretch = min(2 * stretch, LONGEST_STRETCH)
                if sent == last or may_stay:
                    branch_estimate = least_errors(
                        counted, known, largest, extra, touched, n_touched, both, confidence, z, quantile, exact
                    )
                if may_stay and branch_estimate > enough:
                    break
            stays = may_stay and branch_estimate > enough
            if not stays and (divides[largest] or n_left_out > 0):
                # The rows that know a test's value share out those that do not, and with the others they are more.
                for place in range(largest_beyond - 1, largest_at - 1, -1):
                    below_it, test = order[place], shape[order[place]]
                    known_before[below_it] = 0.0
                    if test < 0:
                        for code in range(n_classes):
                            known_before[below_it] += whole[below_it, code] + extra[below_it, code]
                        continue
                    first_child = nodes.child_start[test]
                    n_children = nodes.child_start[test + 1] - first_child
                    copy(shares, first_child, trial_shares, first_child, n_children)
                    for each in range(first_child, first_child + n_children):
                        known_before[below_it] += known_before[nodes.child[each]]
                from_piece, to_piece = (lo[largest_at], largest_last) if is_plain else (lo[here], last)
                n_listed = rows_of(
                    row, weight, from_piece, to_piece, PARTS if is_plain else ALL_ROWS, held, listed, arriving,
                    n_left_out if is_plain else 0,
                )  # fmt: skip
                for each in range(n_listed):
                    listed[each] = listed[each] if listed[each] >= 0 else ~listed[each]
                tried, _, _, _, _ = spread(
                    nodes, substitutes, shape, trial_shares, cells.values, largest, first_of(listed, n_listed),
                    first_of(arriving, n_listed), own_target, n_classes, answers, sums, AT_LEAVES, renew, 0,
                    divides, known_before if is_plain else nothing,
                )  # fmt: skip
                branch_estimate = 0.0
                for place in range(len(tried)):
                    if shape[tried[place]] < 0:
                        for code in range(n_classes):
                            both[0, code] = sums[tried[place], code]
                            if is_plain:
                                both[0, code] += whole[tried[place], code] + extra[tried[place], code]
                        branch_estimate += estimated_errors(both, 0, confidence, z, quantile, exact)
            for each in range(n_touched):
                is_touched[touched[each]] = False
                for code in range(n_classes):
                    extra[touched[each], code] = 0.0
        # Without raising the branch's estimate is infinite and does not count.
        becomes_leaf = leaf_estimate <= below + SLACK and leaf_estimate <= branch_estimate + SLACK
        raises = raising and not becomes_leaf and branch_estimate <= below + SLACK
        if not becomes_leaf and not raises:
            estimate[node] = below
            if raising:
                least[node] = least_below
            continue
        if n_gone == len(gone):
            gone, put, was = longer(gone, 0), longer(put, 0), longer(was, 0)
            as_leaf, as_branch = longer(as_leaf, 0), longer(as_branch, 0)
        gone[n_gone], put[n_gone], was[n_gone] = node, largest if raises else -1, below
        as_leaf[n_gone], as_branch[n_gone] = leaf_estimate, branch_estimate if raising else np.nan
        n_gone += 1
        if becomes_leaf:
            shape[node] = -1
            set_step(nodes, steps, shape, node)
            estimate[node] = leaf_estimate
            if raising:
                least[node] = estimated_errors(whole, node, confidence, z, quantile, exact)
                divides[node] = False
            continue
        shape[node] = shape[largest]
        set_step(nodes, steps, shape, node)
        n_listed = rows_of(row, weight, lo[here], last, ALL_ROWS, held, listed, arriving, 0)
        new_order, new_size, new_lo, new_row, new_weight = spread(
            nodes, substitutes, shape, shares, cells.values, node, first_of(listed, n_listed),
            first_of(arriving, n_listed), own_target, n_classes, answers, sums, EVERYWHERE, renew, 1, divides, nothing,
        )  # fmt: skip
        for each in range(1, len(new_order)):
            changed = new_order[each]
            mass[changed] = 0.0
            for code in range(n_classes):
                whole[changed, code] = sums[changed, code]
                stats[changed, code] = sums[changed, code] + sums[changed, width + code]
                mass[changed] += stats[changed, code]
            if shape[changed] < 0:
                estimate[changed] = estimated_errors(stats, changed, confidence, z, quantile, exact)
                least[changed] = estimated_errors(whole, changed, confidence, z, quantile, exact)
        if place == 0:
            # Nothing of this frame is left to look at: the new one takes its place.
            end, piece_end = base[frame], piece_base[frame]
            n_frames -= 1
        if end + len(new_order) > len(order):
            order, size = longer(order, end + len(new_order)), longer(size, end + len(new_order))
            lo = longer(lo, end + len(new_order))
        if piece_end + len(new_row) > len(row):
            row, weight = longer(row, piece_end + len(new_row)), longer(weight, piece_end + len(new_row))
        if n_frames == len(base):
            base, n_own = longer(base, 0), longer(n_own, 0)
            piece_base, at = longer(piece_base, 0), longer(at, 0)
        base[n_frames], n_own[n_frames], piece_base[n_frames] = end, len(new_order), piece_end
        at[n_frames] = len(new_order) - 1
        n_frames += 1
        copy(new_order, 0, order, end, len(new_order))
        copy(new_size, 0, size, end, len(new_order))
        for each in range(len(new_order)):
            lo[end + each] = new_lo[each] + piece_end
        copy(new_row, 0, row, piece_end, len(new_row))
        copy(new_weight, 0, weight, piece_end, len(new_row))
        end += len(new_order)
        piece_end += len(new_row)
    return (
        first_of(gone, n_gone), first_of(put, n_gone), first_of(was, n_gone), first_of(as_leaf, n_gone),
        first_of(as_branch, n_gone),
    )  # fmt: skip
