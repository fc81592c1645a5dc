cdef class Arguments:
    cdef tuple names


cdef class GrowParameters(Arguments):
    cdef public int criterion, n_classes, nominal, numeric
    cdef public bint observed, window, mdl_correction, average_gain_guard
    cdef public int missing, max_surrogates
    cdef public long long max_depth, max_leaf_nodes
    cdef public bint leaf_weight_of_winner
    cdef public int cost_function
    cdef public bint all_many_valued
    cdef public double min_weight_split, min_weight_leaf, min_impurity_decrease, chi_square_alpha, min_sd, min_variance
    cdef public double cost_weight, cheapest, root_weight
    cdef public bint has_class_weights
    cdef public const double[::1] class_scale


cdef class EncodedColumns(Arguments):
    cdef public const int[:, ::1] codes
    cdef public const int[::1] kind, n_codes, order_place
    cdef public const long long[::1] value_start
    cdef public const double[::1] value
    cdef public const long long[::1] recode_start
    cdef public const int[::1] recode, many_valued
    cdef public const double[::1] cost
    cdef public int first_attribute


cdef class Targets(Arguments):
    cdef public const int[::1] target_class
    cdef public const double[::1] target, weight


cdef class NodeContext:
    cdef public long long start, stop
    cdef public double weight, impurity, centre


cdef class SplitSearch:
    cdef public int attribute
    cdef public bint paid
    cdef public int n_present
    cdef public bint places_unknown
    cdef public double known_weight, unknown_weight, known_size, unknown_size, margin, offset, scale, tie
    cdef public bint found
    cdef public double gain, best, excluded


cdef class Sums(Arguments):
    cdef public double[::1] weight, node, known, unknown, left, right, trial, best_left, best_right


cdef class Categories(Arguments):
    cdef public double[:, ::1] group
    cdef public int[::1] n_rows_of, present, slot, branch, ascending, scratch
    cdef public double[::1] key
    cdef public int[::1] order
    cdef public double[:, ::1] direction


cdef class Medians(Arguments):
    cdef public const int[::1] target_rank
    cdef public const double[::1] target_value
    cdef public int[::1] bucket, bucket_start, sequence
    cdef public double[::1] forward, backward, forward_all, backward_all, weight_tree, sum_tree
    cdef public double weight_in_trees, sum_in_trees
    cdef public const double[::1] progress


cdef class CutPoints(Arguments):
    cdef public const long long[::1] start
    cdef public const int[::1] rank
    cdef public const double[::1] value


cdef class ValidationRows(Arguments):
    cdef public const double[:, ::1] codes
    cdef public const double[::1] target, weight


cdef class Workspace(Arguments):
    cdef public GrowParameters parameters
    cdef public EncodedColumns columns
    cdef public Targets targets
    cdef public NodeContext context
    cdef public SplitSearch search
    cdef public Sums sums
    cdef public Categories categories
    cdef public Medians medians
    cdef public CutPoints cut_points
    cdef public ValidationRows validation
