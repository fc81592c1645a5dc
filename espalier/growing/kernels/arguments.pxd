cdef class Arguments:
    cdef tuple names


cdef class GrowParameters(Arguments):
    cdef public int criterion
    cdef public int n_classes
    cdef public int nominal
    cdef public int numeric
    cdef public bint observed
    cdef public bint window
    cdef public bint mdl_correction
    cdef public bint average_gain_guard
    cdef public int missing
    cdef public int max_surrogates
    cdef public long long max_depth
    cdef public long long max_leaf_nodes
    cdef public bint leaf_weight_of_winner
    cdef public int cost_function
    cdef public bint all_many_valued
    cdef public double min_weight_split
    cdef public double min_weight_leaf
    cdef public double min_impurity_decrease
    cdef public double chi_square_alpha
    cdef public double min_sd
    cdef public double min_variance
    cdef public double cost_weight
    cdef public double cheapest
    cdef public double root_weight
    cdef public bint has_class_weights
    cdef public const double[::1] class_scale


cdef class EncodedColumns(Arguments):
    cdef public const int[:, ::1] codes
    cdef public const int[::1] kind
    cdef public const int[::1] n_codes
    cdef public const int[::1] order_place
    cdef public const long long[::1] value_start
    cdef public const double[::1] value
    cdef public const long long[::1] recode_start
    cdef public const int[::1] recode
    cdef public const int[::1] many_valued
    cdef public const double[::1] cost
    cdef public int first_attribute


cdef class Targets(Arguments):
    cdef public const int[::1] target_class
    cdef public const double[::1] target
    cdef public const double[::1] weight


cdef class NodeContext:
    cdef public long long start
    cdef public long long stop
    cdef public double weight
    cdef public double impurity
    cdef public double centre


cdef class SplitSearch:
    cdef public int attribute
    cdef public bint paid
    cdef public int n_present
    cdef public bint places_unknown
    cdef public double known_weight
    cdef public double unknown_weight
    cdef public double known_size
    cdef public double unknown_size
    cdef public double margin
    cdef public double offset
    cdef public double scale
    cdef public double tie
    cdef public bint found
    cdef public double gain
    cdef public double best


cdef class Sums(Arguments):
    cdef public double[::1] weight
    cdef public double[::1] node
    cdef public double[::1] known
    cdef public double[::1] unknown
    cdef public double[::1] left
    cdef public double[::1] right
    cdef public double[::1] trial
    cdef public double[::1] best_left
    cdef public double[::1] best_right


cdef class Categories(Arguments):
    cdef public double[:, ::1] group
    cdef public int[::1] n_rows_of
    cdef public int[::1] present
    cdef public int[::1] slot
    cdef public int[::1] branch
    cdef public int[::1] ascending
    cdef public int[::1] scratch
    cdef public double[::1] key
    cdef public int[::1] order
    cdef public double[:, ::1] direction


cdef class Medians(Arguments):
    cdef public const int[::1] target_rank
    cdef public const double[::1] target_value
    cdef public int[::1] bucket
    cdef public int[::1] bucket_start
    cdef public int[::1] sequence
    cdef public double[::1] forward
    cdef public double[::1] backward
    cdef public double[::1] forward_all
    cdef public double[::1] backward_all
    cdef public double[::1] weight_tree
    cdef public double[::1] sum_tree
    cdef public double weight_in_trees
    cdef public double sum_in_trees
    cdef public const double[::1] progress


cdef class CutPoints(Arguments):
    cdef public const long long[::1] start
    cdef public const int[::1] rank
    cdef public const double[::1] value


cdef class ValidationRows(Arguments):
    cdef public const double[:, ::1] codes
    cdef public const double[::1] target
    cdef public const double[::1] weight


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
