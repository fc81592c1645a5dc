from .config.compatibility import check_training as check_training
from .config.holdout import Holdout as Holdout, holdout_from_dict as holdout_from_dict
from .config.parameter_constraints import FieldInfo as FieldInfo, field_table as field_table
from .config.presets import (
    PRESET_SENTENCES as PRESET_SENTENCES,
    PRESETS as PRESETS,
    config_from_dict as config_from_dict,
    config_to_dict as config_to_dict,
    training_config as training_config,
)
from .config.pruning import (
    PRUNERS as PRUNERS,
    CostComplexity as CostComplexity,
    ModelTree as ModelTree,
    Pessimistic as Pessimistic,
    ReducedError as ReducedError,
    RulePostPruning as RulePostPruning,
    needs_held_out as needs_held_out,
    pruning_method as pruning_method,
)
from .config.training_parameters import TrainingConfig as TrainingConfig
from .data.dataset import Dataset as Dataset
from .data.labels import (
    Label as Label,
    class_code as class_code,
    label_text as label_text,
    legal_classes as legal_classes,
)
from .data.limits import UNLIMITED as UNLIMITED, Limits as Limits
from .data.notices import Notice as Notice, NoticedCell as NoticedCell
from .data.number_parsing import number_from_text as number_from_text
from .data.readers import (
    FORMATS as FORMATS,
    dataset_from_arrow as dataset_from_arrow,
    dataset_from_csv as dataset_from_csv,
    dataset_from_file as dataset_from_file,
    format_of as format_of,
    read_table as read_table,
)
from .data.readers.json import dataset_from_json as dataset_from_json
from .data.readers.python import dataset_from_columns as dataset_from_columns, dataset_from_rows as dataset_from_rows
from .data.readers.source import (
    ByteStream as ByteStream,
    unpacked as unpacked,
    unpacked_file as unpacked_file,
)
from .data.schema import Feature as Feature, FeatureKind as FeatureKind, Role as Role, Schema as Schema
from .data.stored_dataset import store_dataset as store_dataset
from .documents.model import (
    FORMAT_VERSION as FORMAT_VERSION,
    from_document as from_document,
    from_json as from_json,
    to_document as to_document,
    to_json as to_json,
)
from .errors import (
    Cancelled as Cancelled,
    ClusterError as ClusterError,
    ConfigError as ConfigError,
    DataError as DataError,
    DocumentError as DocumentError,
    EspalierError as EspalierError,
    EstimatorError as EstimatorError,
    Fault as Fault,
    InvalidInput as InvalidInput,
    NotApplicable as NotApplicable,
    RowError as RowError,
    SchemaError as SchemaError,
    TooLarge as TooLarge,
    listed as listed,
)
from .estimators.estimators import TreeClassifier as TreeClassifier, TreeRegressor as TreeRegressor
from .evaluation.importances import (
    LOSS_MEASURES as LOSS_MEASURES,
    PermutationImportance as PermutationImportance,
    attribute_importances as attribute_importances,
    permutation_importances as permutation_importances,
)
from .evaluation.metrics import (
    MAX_CONFUSION_CLASSES as MAX_CONFUSION_CLASSES,
    Evaluation as Evaluation,
    evaluate as evaluate,
)
from .evaluation.profile import (
    AttributeProfile as AttributeProfile,
    ClassShare as ClassShare,
    Profile as Profile,
    profile as profile,
)
from .explanation.consultation import Consultation as Consultation, Question as Question, consult as consult
from .explanation.costs import PathCost as PathCost
from .explanation.counterfactuals.counterfactual import (
    Change as Change,
    Counterfactual as Counterfactual,
    Counterfactuals as Counterfactuals,
    counterfactuals as counterfactuals,
)
from .explanation.counterfactuals.request import MOST_COUNTERFACTUALS as MOST_COUNTERFACTUALS
from .explanation.explain import (
    Explanation as Explanation,
    explain as explain,
    explain_each as explain_each,
    rule_of as rule_of,
)
from .explanation.explanation_text import render_explanation as render_explanation
from .explanation.shap import ShapleyValues as ShapleyValues
from .explanation.steps import DecisionStep as DecisionStep, StandIn as StandIn
from .explanation.sufficient_reasons import SufficientReason as SufficientReason
from .export.exports import (
    EXPORTS as EXPORTS,
    Export as Export,
    applicable_exports as applicable_exports,
    export_model as export_model,
)
from .importing.pmml import from_pmml as from_pmml
from .importing.sklearn import from_sklearn as from_sklearn, from_skops as from_skops
from .loading import load_all as load_all
from .model.model import Model as Model, TrainingRecord as TrainingRecord
from .model.operating_point import (
    OperatingPoint as OperatingPoint,
    operating_point_from_dict as operating_point_from_dict,
)
from .model.rules import (
    ClassDescription as ClassDescription,
    Condition as Condition,
    Rule as Rule,
    RuleList as RuleList,
)
from .model.tree import Tree as Tree
from .model_selection.candidates import Candidate as Candidate, check_candidate_rows as check_candidate_rows
from .model_selection.compare import Comparison as Comparison, compare as compare
from .model_selection.folds_and_label_noise import DEFAULT_FOLDS as DEFAULT_FOLDS, check_comparison as check_comparison
from .plotting.colours import SVG_STYLE as SVG_STYLE
from .plotting.graphviz import to_dot as to_dot
from .plotting.json_columns import to_columns as to_columns
from .plotting.mermaid import to_mermaid as to_mermaid
from .plotting.rules import class_sentences as class_sentences, rules_to_dict as rules_to_dict, to_logic as to_logic
from .plotting.svg import to_svg as to_svg
from .plotting.text import to_text as to_text
from .prediction.answers import Prediction as Prediction
from .prediction.encode_columns import is_compatible as is_compatible
from .prediction.encode_rows import rows_from_text as rows_from_text
from .prediction.leaf_values import with_operating_point as with_operating_point
from .prediction.missing_strategies import (
    PREDICTION_STRATEGIES as PREDICTION_STRATEGIES,
    with_missing_strategy as with_missing_strategy,
)
from .prediction.predict import leaf_prediction as leaf_prediction, predict as predict, predict_each as predict_each
from .prediction.row_files import (
    RowBatch as RowBatch,
    batches_from_csv as batches_from_csv,
    rows_from_csv as rows_from_csv,
    rows_from_file as rows_from_file,
)
from .prediction.table import TableAnswers as TableAnswers, check_table as check_table, predict_table as predict_table
from .prediction.tree_predictor import MAX_VISITS as MAX_VISITS
from .progress import Progress as Progress
from .pruning.applicable import check_pruning as check_pruning
from .pruning.cost_complexity import PruningPath as PruningPath, pruning_path as pruning_path
from .pruning.pessimistic import add_errs as add_errs
from .pruning.result import Pruned as Pruned
from .rules.extract import class_dnf as class_dnf, extract_rules as extract_rules
from .training.holdout_rows import held_out_rows as held_out_rows, needed_holdout as needed_holdout
from .training.out_of_core import check_out_of_core as check_out_of_core
from .training.train import prune as prune, summary as summary, train as train, train_traced as train_traced
from .version import __version__ as __version__
