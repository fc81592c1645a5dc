"""Where the public names are at home: what `import espalier` looks up, and imports, when a name is first used."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

__all__ = ["MODULES", "MODULE_OF", "load_all"]

MODULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "candidates": (
            "Candidate",
            "check_candidate_rows",
        ),
        "cells": ("stands_for",),
        "columns": ("to_columns",),
        "comparison": (
            "Comparison",
            "compare",
        ),
        "config": (
            "Holdout",
            "PRESETS",
            "PRESET_SENTENCES",
            "TrainingConfig",
            "config_from_dict",
            "config_to_dict",
            "holdout_from_dict",
            "training_config",
        ),
        "consultation": (
            "Consultation",
            "Question",
            "consult",
        ),
        "costs": ("PathCost",),
        "explanation.counterfactual": (
            "Change",
            "Counterfactual",
            "Counterfactuals",
            "counterfactuals",
        ),
        "csv_batches": (
            "RowBatch",
            "batches_from_csv",
        ),
        "data.readers": (
            "FORMATS",
            "dataset_from_arrow",
            "dataset_from_csv",
            "dataset_from_file",
            "format_of",
            "read_table",
        ),
        "data.readers.json": ("dataset_from_json",),
        "data.readers.python": (
            "dataset_from_columns",
            "dataset_from_rows",
        ),
        "data.readers.source": (
            "ByteStream",
            "unpacked",
        ),
        "dataset": ("Dataset",),
        "documents": (
            "FORMAT_VERSION",
            "from_document",
            "from_json",
            "to_document",
            "to_json",
        ),
        "errors": (
            "Cancelled",
            "ConfigError",
            "DataError",
            "DocumentError",
            "EspalierError",
            "EstimatorError",
            "Fault",
            "InvalidInput",
            "NotApplicable",
            "RowError",
            "SchemaError",
            "TooLarge",
        ),
        "estimators.estimators": (
            "TreeClassifier",
            "TreeRegressor",
        ),
        "evaluation": (
            "Evaluation",
            "evaluate",
        ),
        "explanation.explain": (
            "DecisionStep",
            "Explanation",
            "explain",
            "explain_each",
            "render_explanation",
            "rule_of",
        ),
        "fields": (
            "FieldInfo",
            "field_table",
        ),
        "holding_out": (
            "held_out_rows",
            "needed_holdout",
        ),
        "importances": (
            "LOSS_MEASURES",
            "PermutationImportance",
            "attribute_importances",
            "permutation_importances",
        ),
        "limits": (
            "Limits",
            "UNLIMITED",
        ),
        "marks": ("number_from_text",),
        "model": (
            "Model",
            "OperatingPoint",
            "TrainingRecord",
        ),
        "operating": (
            "answering_at",
            "operating_point_from_dict",
        ),
        "prediction.predict": (
            "MOST_VISITS",
            "Prediction",
            "leaf_prediction",
            "predict",
            "predict_each",
        ),
        "profiling": (
            "AttributeProfile",
            "ClassShare",
            "Profile",
            "profile",
        ),
        "progress": ("Progress",),
        "pruners": (
            "CostComplexity",
            "ModelTree",
            "PRUNERS",
            "Pessimistic",
            "ReducedError",
            "needs_held_out",
            "pruning_method",
        ),
        "pruning": (
            "Pruned",
            "PruningPath",
            "add_errs",
            "check_pruning",
            "pruning_path",
        ),
        "explanation.reasons": ("SufficientReason",),
        "rendering": (
            "to_dot",
            "to_mermaid",
            "to_svg",
            "to_text",
        ),
        "resampling": (
            "DEFAULT_FOLDS",
            "check_comparison",
        ),
        "row_files": (
            "rows_from_csv",
            "rows_from_file",
        ),
        "rows": ("rows_from_text",),
        "rule_extraction": (
            "class_dnf",
            "extract_rules",
        ),
        "rule_rendering": (
            "class_sentences",
            "rules_to_dict",
            "to_logic",
        ),
        "rules": (
            "ClassDescription",
            "Condition",
            "Rule",
            "RuleList",
        ),
        "schema": (
            "Feature",
            "FeatureKind",
            "Label",
            "Role",
            "Schema",
            "label_text",
        ),
        "explanation.shap": ("ShapleyValues",),
        "steps": ("StandIn",),
        "strategies": (
            "PREDICTION_STRATEGIES",
            "answering_with",
        ),
        "svg_marks": ("SVG_STYLE",),
        "table_prediction": (
            "TableAnswers",
            "check_table",
            "predict_table",
        ),
        "training": (
            "prune",
            "summary",
            "train",
            "train_traced",
        ),
        "training_checks": ("check_training",),
        "tree": ("Tree",),
        "wanted": ("MOST_COUNTERFACTUALS",),
        "warming": ("WARM_UPS", "CompiledCode", "compiled_code", "warm_up"),
    }
)
"""The public names of each module of the package."""

MODULE_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: module for module, names in MODULES.items() for name in names}
)


def load_all() -> None:
    """Import everything public at once, so that nothing is imported while a request or a job waits.

    numba and pyarrow are loaded by the first work that needs them, all the same; see `espalier.warm_up`. The
    estimators are left out: scikit-learn may not be installed.
    """
    for module in MODULES:
        if not module.startswith("estimators."):
            importlib.import_module(f"espalier.{module}")
