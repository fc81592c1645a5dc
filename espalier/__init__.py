r"""Espalier's algorithm core: decision trees trained, pruned, answered from and explained.

>>> import espalier
>>> data = espalier.dataset_from_csv("wind,play\nweak,yes\nweak,yes\nstrong,no\n", target="play")
>>> model = espalier.train(data, "id3")
>>> espalier.explain(model, [{"wind": "strong"}])[0].rule
'if wind is strong then no'
"""

import importlib
import typing

import espalier.public_names as _public
from espalier.public_names import load_all

if typing.TYPE_CHECKING:
    from espalier.candidates import Candidate, check_candidate_rows
    from espalier.cells import stands_for
    from espalier.columns import to_columns
    from espalier.comparison import Comparison, compare
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
    from espalier.consultation import Consultation, Question, consult
    from espalier.costs import PathCost
    from espalier.csv_batches import RowBatch, batches_from_csv
    from espalier.data.readers import (
        FORMATS,
        dataset_from_arrow,
        dataset_from_csv,
        dataset_from_file,
        format_of,
        read_table,
    )
    from espalier.data.readers.json import dataset_from_json
    from espalier.data.readers.python import dataset_from_columns, dataset_from_rows
    from espalier.data.readers.source import ByteStream, unpacked
    from espalier.dataset import Dataset
    from espalier.documents import FORMAT_VERSION, from_document, from_json, to_document, to_json
    from espalier.errors import (
        Cancelled,
        ConfigError,
        DataError,
        DocumentError,
        EspalierError,
        EstimatorError,
        Fault,
        InvalidInput,
        NotApplicable,
        RowError,
        SchemaError,
        TooLarge,
    )
    from espalier.estimators.estimators import TreeClassifier, TreeRegressor
    from espalier.evaluation import Evaluation, evaluate
    from espalier.explanation.counterfactual import Change, Counterfactual, Counterfactuals, counterfactuals
    from espalier.explanation.explain import (
        DecisionStep,
        Explanation,
        explain,
        explain_each,
        render_explanation,
        rule_of,
    )
    from espalier.explanation.reasons import SufficientReason
    from espalier.explanation.shap import ShapleyValues
    from espalier.fields import FieldInfo, field_table
    from espalier.holding_out import held_out_rows, needed_holdout
    from espalier.importances import (
        LOSS_MEASURES,
        PermutationImportance,
        attribute_importances,
        permutation_importances,
    )
    from espalier.limits import UNLIMITED, Limits
    from espalier.marks import number_from_text
    from espalier.model import Model, OperatingPoint, TrainingRecord
    from espalier.operating import answering_at, operating_point_from_dict
    from espalier.prediction.predict import MOST_VISITS, Prediction, leaf_prediction, predict, predict_each
    from espalier.profiling import AttributeProfile, ClassShare, Profile, profile
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
    from espalier.rendering import to_dot, to_mermaid, to_svg, to_text
    from espalier.resampling import DEFAULT_FOLDS, check_comparison
    from espalier.row_files import rows_from_csv, rows_from_file
    from espalier.rows import rows_from_text
    from espalier.rule_extraction import class_dnf, extract_rules
    from espalier.rule_rendering import class_sentences, rules_to_dict, to_logic
    from espalier.rules import ClassDescription, Condition, Rule, RuleList
    from espalier.schema import Feature, FeatureKind, Label, Role, Schema, label_text
    from espalier.steps import StandIn
    from espalier.strategies import PREDICTION_STRATEGIES, answering_with
    from espalier.svg_marks import SVG_STYLE
    from espalier.table_prediction import TableAnswers, check_table, predict_table
    from espalier.training import prune, summary, train, train_traced
    from espalier.training_checks import check_training
    from espalier.tree import Tree
    from espalier.wanted import MOST_COUNTERFACTUALS
    from espalier.warming import WARM_UPS, CompiledCode, compiled_code, warm_up

__all__ = [
    "DEFAULT_FOLDS",
    "FORMATS",
    "FORMAT_VERSION",
    "LOSS_MEASURES",
    "MOST_COUNTERFACTUALS",
    "MOST_VISITS",
    "PREDICTION_STRATEGIES",
    "PRESETS",
    "PRESET_SENTENCES",
    "PRUNERS",
    "SVG_STYLE",
    "UNLIMITED",
    "WARM_UPS",
    "AttributeProfile",
    "ByteStream",
    "Cancelled",
    "Candidate",
    "Change",
    "ClassDescription",
    "ClassShare",
    "Comparison",
    "CompiledCode",
    "Condition",
    "ConfigError",
    "Consultation",
    "CostComplexity",
    "Counterfactual",
    "Counterfactuals",
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
    "Limits",
    "Model",
    "ModelTree",
    "NotApplicable",
    "OperatingPoint",
    "PathCost",
    "PermutationImportance",
    "Pessimistic",
    "Prediction",
    "Profile",
    "Progress",
    "Pruned",
    "PruningPath",
    "Question",
    "ReducedError",
    "Role",
    "RowBatch",
    "RowError",
    "Rule",
    "RuleList",
    "Schema",
    "SchemaError",
    "ShapleyValues",
    "StandIn",
    "SufficientReason",
    "TableAnswers",
    "TooLarge",
    "TrainingConfig",
    "TrainingRecord",
    "Tree",
    "TreeClassifier",
    "TreeRegressor",
    "add_errs",
    "answering_at",
    "answering_with",
    "attribute_importances",
    "batches_from_csv",
    "check_candidate_rows",
    "check_comparison",
    "check_pruning",
    "check_table",
    "check_training",
    "class_dnf",
    "class_sentences",
    "compare",
    "compiled_code",
    "config_from_dict",
    "config_to_dict",
    "consult",
    "counterfactuals",
    "dataset_from_arrow",
    "dataset_from_columns",
    "dataset_from_csv",
    "dataset_from_file",
    "dataset_from_json",
    "dataset_from_rows",
    "evaluate",
    "explain",
    "explain_each",
    "extract_rules",
    "field_table",
    "format_of",
    "from_document",
    "from_json",
    "held_out_rows",
    "holdout_from_dict",
    "label_text",
    "leaf_prediction",
    "load_all",
    "needed_holdout",
    "needs_held_out",
    "number_from_text",
    "operating_point_from_dict",
    "permutation_importances",
    "predict",
    "predict_each",
    "predict_table",
    "profile",
    "prune",
    "pruning_method",
    "pruning_path",
    "read_table",
    "render_explanation",
    "rows_from_csv",
    "rows_from_file",
    "rows_from_text",
    "rule_of",
    "rules_to_dict",
    "stands_for",
    "summary",
    "to_columns",
    "to_document",
    "to_dot",
    "to_json",
    "to_logic",
    "to_mermaid",
    "to_svg",
    "to_text",
    "train",
    "train_traced",
    "training_config",
    "unpacked",
    "warm_up",
]

if not typing.TYPE_CHECKING:  # to a type checker every name is imported, and none besides

    def __getattr__(name: str) -> object:
        """Import what is asked for the first time: who only predicts does not pay for what trains."""
        module = _public.MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
        return value

    def __dir__() -> list[str]:
        """Give the public names, those not imported yet among them."""
        return sorted({*globals(), *__all__})
