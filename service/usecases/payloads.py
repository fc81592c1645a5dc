"""What a job of each kind needs: `usecases.job_requests` writes it into the queue, `worker.handlers` reads it."""

from typing import Any, TypedDict


class TrainingPayload(TypedDict):
    """What a job of kind `train` is told."""

    model: str
    dataset: str  # data set id
    preset: str
    config: dict[str, Any]  # espalier.config_to_dict
    holdout: dict[str, Any] | None  # {"fraction", "seed", "stratified"} | {"rows"} | {"dataset": id}
    fingerprints: dict[str, str]  # of the data sets by their ids, as they were when the job was asked for


class PruningPayload(TypedDict):
    """What a job of kind `prune` is told."""

    model: str
    version: int
    version_id: str
    method: str
    params: dict[str, Any]
    holdout: dict[str, Any] | None  # None: the rows that the training held out
    fingerprints: dict[str, str]  # as for a training


class EvaluationPayload(TypedDict):
    """What a job of kind `evaluate` is told."""

    dataset: str
    candidates: list[dict[str, Any]]  # [{"name", "config": espalier.config_to_dict}]
    folds: int | None  # None with a holdout, or for the core's own number
    holdout: dict[str, Any] | None  # None: folds
    label_noise: float
    seed: int
    fingerprints: dict[str, str]  # as for a training


class PredictionPayload(TypedDict):
    """What a job of kind `predict` is told."""

    model: str
    version: int
    version_id: str
    document_sha256: str
    alias: str | None  # that led to the version
    dataset: str
    explain: str  # none, or path for the rule as a sentence
    missing: str | None  # a strategy for missing values; None: the model's own
    operating_point: dict[str, Any] | None  # {"label", "probability"} that was in force when the job was asked for
    fingerprints: dict[str, str]  # as for a training
