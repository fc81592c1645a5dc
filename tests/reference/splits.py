"""The best split of one attribute at one node: which candidates are admissible, and their gains and scores."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.reference import scores
from tests.reference.candidates import Attribute, Candidate, candidates, every_subset
from tests.reference.scores import Config, Sample
from tests.reference.table import Target

TIE_OF_RATIOS = 1e-6
TIE = 1e-9
TIE_OF_M5 = 1e-6
LEAST_M5_GAIN = 1e-6
WEIGHT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Place:
    """Where a split is chosen: the rows of a node, their impurity, and the attributes its path has paid for."""

    sample: Sample
    impurity: float
    paid: frozenset[int]


@dataclass(frozen=True, slots=True)
class Split:
    """A split of a node by one attribute.

    Attributes:
        branches: The known rows of each branch; with the strategy `direction` all rows.
        unknown: The rows without the value that are in no branch.
        gain: The criterion's value, after the corrections of MDL and for unknown rows.
        score: The figure by which attributes are compared: the gain, or its ratio, after costs.
        shares: The part of an unknown row that goes to each branch; empty until the attribute's best split is known.
    """

    attribute: Attribute
    test: str
    threshold: float
    branch_of_category: tuple[int, ...]
    branches: tuple[Sample, ...]
    unknown: Sample
    unknown_branch: int
    gain: float
    score: float
    shares: tuple[float, ...] = ()


def best_split(attribute: Attribute, place: Place, target: Target, config: Config) -> Split | None:
    """The attribute's best candidate; None if none is admissible."""
    known = [entry for entry in place.sample if attribute.values[entry[0]] is not None]
    unknown = [entry for entry in place.sample if attribute.values[entry[0]] is None]
    margin = least_side(attribute, known, target, config)

    def split_of(candidate: Candidate, branch: int) -> Split | None:
        return measured(attribute, candidate, branch, unknown, place=place, target=target, config=config)

    found = list(candidates(attribute, known, target, config))
    if attribute.kind == "nominal" and config["nominal"] == "subset" and config["criterion"] != "absolute_error":
        gains: dict[bool, list[float]] = {True: [], False: []}
        for candidate, branch in with_unknown(found, [], unknown, config):
            split = split_of(candidate, branch)
            if split is not None:
                gains[admissible(candidate, margin, target, config)].append(split.gain)
        # The limit on the weight of a branch may exclude the best split of the categories' order.
        if max(gains[False], default=-math.inf) > max(gains[True], default=-math.inf) + tie_of_gains(place, config):
            found += every_subset(attribute, known)
    pairs = with_unknown(found, known, unknown, config)
    tried = [pair for pair in pairs if admissible(pair[0], margin, target, config)]
    best: Split | None = None
    worth = 0.0
    for candidate, branch in tried:
        split = split_of(candidate, branch)
        if split is None:
            continue
        value = ratio(split) if chosen_by_ratio(split, config) else split.gain
        if best is None or value > worth + tie_of_gains(place, config):
            best, worth = split, value
    return best and finished(best, len(tried), place, target, config)


def least_side(attribute: Attribute, known: Sample, target: Target, config: Config) -> float:
    """The minimum weight of a branch: `min_weight_leaf`; with C4.5's window also a tenth of the mean weight of a class,
    at most 25.
    """
    least: float = config["min_weight_leaf"] or 0.0
    if config["window"] != "c45" or attribute.kind == "nominal":
        return least
    return max(least, min(25.0, 0.1 * scores.size(known, target, config) / target.k))


def with_unknown(
    found: Iterable[Candidate], known: Sample, unknown: Sample, config: Config
) -> Iterator[tuple[Candidate, int]]:
    """Each candidate and the branch of its unknown rows, -1 where they are set aside.

    With `direction` each candidate is tried with the unknown rows in each branch, and at last unknown against known.
    """
    if config["missing"] != "direction" or not unknown:
        yield from ((candidate, -1) for candidate in found)
        return
    for candidate in found:
        for branch in range(len(candidate.branches)):
            branches = list(candidate.branches)
            branches[branch] = branches[branch] + unknown
            yield replace(candidate, branches=tuple(branches)), branch
    if known:
        yield Candidate("unknown", math.nan, (), (known, unknown)), 1


def admissible(candidate: Candidate, margin: float, target: Target, config: Config) -> bool:
    """At least two branches must hold rows and weigh the margin.

    With `leaf_weight_rule="winner"` (REPTree) only the weights of the split that has won are looked at.
    """
    least = 0.0 if config["leaf_weight_rule"] == "winner" else margin * (1 - WEIGHT_TOLERANCE)
    return sum(1 for branch in candidate.branches if branch and scores.size(branch, target, config) >= least) >= 2


def measured(
    attribute: Attribute,
    candidate: Candidate,
    unknown_branch: int,
    unknown: Sample,
    *,
    place: Place,
    target: Target,
    config: Config,
) -> Split | None:
    """The candidate with its gain on the known rows and its score; None where the score is undefined."""
    aside = [] if unknown_branch >= 0 else unknown
    if config["criterion"] == "chi_square":
        gain = scores.chi_square(candidate.branches, target)[0]
    else:
        share = sum(map(scores.total, candidate.branches)) / scores.total(place.sample)
        gain = share * scores.decrease(config["criterion"], candidate.branches, target)
    split = Split(
        attribute,
        candidate.test,
        candidate.threshold,
        candidate.branch_of_category,
        candidate.branches,
        aside,
        unknown_branch,
        gain,
        gain,
    )
    return rated(split, place, config)


def rated(split: Split, place: Place, config: Config) -> Split | None:
    """The split with the score that follows from its gain; None where a ratio has no denominator.

    A trace of a gain, of either sign, is none: rounding would decide between splits that gain nothing.
    """
    noise = TIE * (scores.total(place.sample) if config["criterion"] == "chi_square" else place.impurity)
    if abs(split.gain) <= noise:
        split = replace(split, gain=0.0)
    score = split.gain
    if config["cost_function"] is not None and split.gain <= nothing(place, config):
        score = 0.0
    if config["criterion"] == "gain_ratio":
        if information(split) <= 0:
            return None
        score /= information(split)
    elif config["criterion"] == "normalized_gain":
        score = score / place.impurity if place.impurity > 0 else 0.0
    return replace(split, score=scores.with_cost(score, split.attribute.source, paid=place.paid, config=config))


def information(split: Split) -> float:
    return scores.split_information([*map(scores.total, split.branches)], scores.total(split.unknown))


def ratio(split: Split) -> float:
    """The gain ratio before costs; a split that has any has split information."""
    return split.gain / information(split)


def chosen_by_ratio(split: Split, config: Config) -> bool:
    """C4.5 and J48 choose a cut by gain, but the value of a `one_vs_rest` test by gain ratio, unknown among them."""
    return (
        config["criterion"] == "gain_ratio" and config["nominal"] == "one_vs_rest" and split.attribute.kind == "nominal"
    )


def tie_of_gains(place: Place, config: Config) -> float:
    """The difference below which two gains count as equal."""
    if config["criterion"] == "gain_ratio":
        return TIE_OF_RATIOS
    return TIE * (scores.total(place.sample) if config["criterion"] == "chi_square" else place.impurity)


def tie_of_scores(score: float, place: Place, config: Config) -> float:
    """The difference below which another attribute's score counts as equal to this one."""
    if config["cost_function"] is not None:
        return TIE * score
    if config["criterion"] == "m5":
        return TIE_OF_M5
    return TIE if config["criterion"] == "normalized_gain" else tie_of_gains(place, config)


def nothing(place: Place, config: Config) -> float:
    """The gain up to which a split gains nothing."""
    return LEAST_M5_GAIN if config["criterion"] == "m5" else tie_of_gains(place, config)


def finished(split: Split, n_tried: int, place: Place, target: Target, config: Config) -> Split | None:
    """The attribute's best split with its shares, and after the steps that are taken only for it: the gain with unknown
    rows, the MDL correction, the observed threshold and the chi-square test. None if the test fails.
    """
    split = replace(split, shares=shares_of(split, target, config))
    if config["missing"] == "spread" and split.unknown:
        split = replace(split, gain=spread_gain(split, target, config))
    if config["mdl_correction"] and split.test == "numeric":
        split = replace(split, gain=split.gain - math.log2(n_tried) / scores.total(place.sample))
    experts = config["cut_points"] or {}
    if config["threshold"] == "observed" and split.test == "numeric" and split.attribute.source not in experts:
        at_most = [v for v in split.attribute.values if v is not None and v <= split.threshold]
        split = replace(split, threshold=max(at_most))
    alpha = config["chi_square_alpha"]
    if alpha is not None and scores.chi_square(split.branches, target)[2] > alpha:
        return None
    return rated(split, place, config)


def spread_gain(split: Split, target: Target, config: Config) -> float:
    """The gain once the unknown rows are shared out over the branches."""
    if config["criterion"] == "chi_square":
        return scores.chi_square(shared_out(split), target)[0]
    return scores.decrease(config["criterion"], shared_out(split), target)


def shared_out(split: Split) -> tuple[Sample, ...]:
    """The branches with each unknown row in every one, by the branch's share of the known weight."""
    pairs = zip(split.branches, split.shares, strict=True)
    return tuple(
        branch + [(row, weight * share) for row, weight in split.unknown if share > 0] for branch, share in pairs
    )


def shares_of(split: Split, target: Target, config: Config) -> tuple[float, ...]:
    """Each branch's share of the known weight; for REPTree's rule in REPTree's order of additions, to the last bit."""
    if config["missing"] == "spread" and config["leaf_weight_rule"] == "winner":
        weights = [max(0.0, in_turn(part)) for part in row_by_row(split, target)]
        return tuple(weight / in_turn(weights) for weight in weights)
    whole = math.fsum(map(scores.total, split.branches))
    return tuple(scores.total(branch) / whole for branch in split.branches)


def row_by_row(split: Split, target: Target) -> list[list[float]]:
    """The known weight of each class in each branch; of numbers, the weight.

    The upper side of a cut is what is left when the rows below are taken away one by one, in the order of their values.
    """

    def place(row: int) -> int:
        return int(target.values[row]) if target.kind == "class" else 0

    parts = [[0.0] * max(1, target.k) for _ in split.branches]
    if split.test == "numeric":
        lower, upper = ([*branch] for branch in split.branches)
        for row, weight in lower + upper:
            parts[1][place(row)] += weight
        for row, weight in lower:
            parts[0][place(row)] += weight
            parts[1][place(row)] -= weight
        return parts
    for part, branch in zip(parts, split.branches, strict=True):
        for row, weight in sorted(branch):
            part[place(row)] += weight
    return parts


def sizes_with_unknown(split: Split, target: Target, config: Config) -> list[float]:
    """What each branch weighs with its share of the unknown rows, added row by row; without class weights."""
    factors = config["class_factors"]
    parts = row_by_row(split, target)
    for part, share in zip(parts, split.shares, strict=True):
        for row, weight in sorted(split.unknown):
            part[int(target.values[row]) if target.kind == "class" else 0] += weight * share
    if config["class_weight"] is not None and target.kind == "class":
        parts = [[weight / (factors[c] or 1.0) for c, weight in enumerate(part)] for part in parts]
    return [in_turn(part) for part in parts]


def in_turn(weights: Sequence[float]) -> float:
    """The sum, one after the other, every step rounded."""
    total = 0.0
    for weight in weights:
        total += weight
    return total
