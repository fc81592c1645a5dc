"""Import a model document."""

import espalier
from service.repositories import models
from service.settings import Settings
from service.usecases.datasets import check_columns
from service.usecases.limits import check_size


def read_document(content: bytes, *, name: str, settings: Settings) -> models.NewVersion:
    """Read a model document, taking nothing on trust, into a version that is not stored yet.

    What is kept is the canonical form, so that a document that came from here has the same SHA-256 again.

    Raises:
        espalier.DocumentError: It is not a model document; what is wrong, and where.
        espalier.TooLarge: More nodes or conditions, more columns or a longer text than the settings allow.
    """
    model = espalier.from_json(content)
    check_columns(model.schema, settings)
    sizes = espalier.summary(model)
    check_size("nodes", given=sizes.get("n_nodes") or 0, limit=settings.max_nodes)
    if isinstance(model.body, espalier.RuleList):
        n_conditions = sum(len(rule.conditions) + 1 for rule in model.body.rules)
        check_size("rules and conditions", given=n_conditions, limit=settings.max_nodes)
    return models.NewVersion(
        model=name, document=espalier.to_json(model), preset=model.config.preset, summary=sizes, seconds=0.0
    )
