r"""Espalier's algorithm core: decision trees trained, pruned, answered from and explained.

>>> import espalier
>>> data = espalier.dataset_from_csv("wind,play\nweak,yes\nweak,yes\nstrong,no\n", target="play")
>>> model = espalier.train(data, "id3")
>>> espalier.explain(model, [{"wind": "strong"}])[0].rule
'if wind is strong then no'
"""

from espalier.arrow import dataset_from_arrow
from espalier.comparison import Candidate, Comparison, check_candidate_rows, compare
from espalier.config import (
    PRESET_SENTENCES,
    PRESETS,
    Holdout,
    TrainingConfig,
    config_from_dict,
    config_to_dict,
    holdout_from_dict,
    training_config,
)
from espalier.dataset import Dataset
from espalier.documents import from_document, from_json, to_document, to_json
from espalier.errors import (
    Cancelled,
    ConfigError,
    DataError,
    DocumentError,
    EspalierError,
    Fault,
    InvalidInput,
    NotApplicable,
    RowError,
    SchemaError,
)
from espalier.estimators import EstimatorError, TreeClassifier, TreeRegressor
from espalier.evaluation import Evaluation, evaluate
from espalier.explanation import DecisionStep, Explanation, explain, render_explanation
from espalier.fields import FieldInfo, field_table
from espalier.model import Model, TrainingRecord
from espalier.prediction import Prediction, predict
from espalier.profile import AttributeProfile, ClassShare, Profile, profile
from espalier.progress import Progress
from espalier.pruners import (
    PRUNERS,
    CostComplexity,
    ModelTree,
    Pessimistic,
    ReducedError,
    needs_held_out,
    pruning_method,
)
from espalier.pruning import Pruned, PruningPath, add_errs, check_pruning, pruning_path
from espalier.reading import dataset_from_columns, dataset_from_csv, dataset_from_rows, rows_from_csv
from espalier.rendering import to_mermaid, to_text
from espalier.resampling import DEFAULT_FOLDS, check_comparison
from espalier.rule_extraction import class_dnf, extract_rules
from espalier.rule_rendering import class_sentences, rules_to_dict, to_logic
from espalier.rules import ClassDescription, Condition, Rule, RuleList
from espalier.schema import Feature, FeatureKind, Label, Role, Schema
from espalier.training import held_out_rows, needed_holdout, prune, summary, train, train_traced
from espalier.training_checks import check_training
from espalier.tree import Tree

__all__ = [
    "DEFAULT_FOLDS",
    "PRESETS",
    "PRESET_SENTENCES",
    "PRUNERS",
    "AttributeProfile",
    "Cancelled",
    "Candidate",
    "ClassDescription",
    "ClassShare",
    "Comparison",
    "Condition",
    "ConfigError",
    "CostComplexity",
    "DataError",
    "Dataset",
    "DecisionStep",
    "DocumentError",
    "EspalierError",
    "EstimatorError",
    "Evaluation",
    "Explanation",
    "Fault",
    "Feature",
    "FeatureKind",
    "FieldInfo",
    "Holdout",
    "InvalidInput",
    "Label",
    "Model",
    "ModelTree",
    "NotApplicable",
    "Pessimistic",
    "Prediction",
    "Profile",
    "Progress",
    "Pruned",
    "PruningPath",
    "ReducedError",
    "Role",
    "RowError",
    "Rule",
    "RuleList",
    "Schema",
    "SchemaError",
    "TrainingConfig",
    "TrainingRecord",
    "Tree",
    "TreeClassifier",
    "TreeRegressor",
    "add_errs",
    "check_candidate_rows",
    "check_comparison",
    "check_pruning",
    "check_training",
    "class_dnf",
    "class_sentences",
    "compare",
    "config_from_dict",
    "config_to_dict",
    "dataset_from_arrow",
    "dataset_from_columns",
    "dataset_from_csv",
    "dataset_from_rows",
    "evaluate",
    "explain",
    "extract_rules",
    "field_table",
    "from_document",
    "from_json",
    "held_out_rows",
    "holdout_from_dict",
    "needed_holdout",
    "needs_held_out",
    "predict",
    "profile",
    "prune",
    "pruning_method",
    "pruning_path",
    "render_explanation",
    "rows_from_csv",
    "rules_to_dict",
    "summary",
    "to_document",
    "to_json",
    "to_logic",
    "to_mermaid",
    "to_text",
    "train",
    "train_traced",
    "training_config",
]
