"""Keys for tests where keys are on."""

from service.database.engine import transaction
from service.database.tables import Scope
from service.repositories import keys
from tests.service.served import Served


def token_of(served: Served, *scopes: Scope, models: list[str] | None = None) -> str:
    """Make a key and give its token."""
    with transaction(served.service.sessions) as session:
        return keys.create(session, name="test", scopes=scopes, models=models)[1]
