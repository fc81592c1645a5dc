"""What is said of models beside their versions, and what is put away, over HTTP.

Saying something needs the scope admin: a mask and the days of retention decide what the decision log keeps.
"""

from typing import Any

from flask import Response
from sqlalchemy.orm import Session

from service.api.blueprint import ETAG, Blueprint
from service.api.context import current_service
from service.api.responses import changed_answer, has_condition, json_answer, refuse_if_changed
from service.api.routing import MODEL, VERSION
from service.database.engine import transaction
from service.database.tables import Scope
from service.repositories.models import find_version, lock_model
from service.schemas import models as schemas
from service.usecases import models as usecases

curation = Blueprint("curation", __name__, description="What is said of models, and what is put away")

SHOWN = schemas.Model()
SHOWN_VERSION = schemas.Version()


@curation.patch(MODEL, scope=Scope.ADMIN)
@curation.arguments(schemas.ModelChange)
@curation.response(200, schemas.Model, headers=ETAG)
@curation.refuses(400, 404, 413, 415, 422)
@curation.guarded
def change_model(changes: dict[str, Any], name: str) -> Response:
    """Describe a model, tag it, mask inputs, set how long its decisions are kept.

    Values of masked inputs are not logged from then on, everywhere within a second. Decisions older than
    `retention_days` are deleted by the workers.
    """
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name)
        shown = SHOWN.dump(usecases.change_settings(session, current_service().models, name, changes))
    current_service().versions.invalidate()
    return changed_answer(shown)


@curation.post(f"{VERSION}/archive", scope=Scope.TRAIN)
@curation.response(200, schemas.Version)
@curation.refuses(404, 409)
def archive_version(name: str, number: int) -> Response:
    """Have a version answer no more, everywhere within a second; what it has answered can still be explained.

    Refused while an alias points at it. Asked again, it stays as it was. There is no way back but to import the
    version's document, which makes a new version.
    """
    with transaction(current_service().sessions) as session:
        shown = SHOWN_VERSION.dump(usecases.archive_version(session, name, number))
    current_service().versions.invalidate()
    return json_answer(shown)


@curation.delete(VERSION, scope=Scope.TRAIN)
@curation.response(204, description="It is gone")
@curation.refuses(404, 409)
@curation.guarded
def delete_version(name: str, number: int) -> Response:
    """Delete a version that no decision, no alias, no unfinished job and no other version refers to."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name, number)
        usecases.delete_version(session, name, number)
    current_service().versions.invalidate()
    return Response(status=204)


@curation.delete(MODEL, scope=Scope.TRAIN)
@curation.response(204, description="It is gone")
@curation.refuses(404, 409)
@curation.guarded
def delete_model(name: str) -> Response:
    """Delete a model with its versions and aliases; refused while there are decisions by it, or unfinished jobs."""
    with transaction(current_service().sessions) as session:
        _refuse_if_changed(session, name)
        usecases.delete_model(session, name)
    current_service().versions.invalidate()
    return Response(status=204)


def _refuse_if_changed(session: Session, name: str, number: int | None = None) -> None:
    """Refuse where a model, or one of its versions, is not as the caller has seen it.

    Raises:
        NotFound: There is no such model or version.
        PreconditionFailed: It is another by now.
    """
    if has_condition():
        model = lock_model(session, name)  # its versions, too, change only for who holds it
        shown = SHOWN.dump(model) if number is None else SHOWN_VERSION.dump(find_version(session, name, number))
        refuse_if_changed(shown)
