"""Explain a logged decision: answer its row again by the version that answered it, and compare."""

from sqlalchemy.orm import Session

from service import decisions, replays
from service.errors import Conflict
from service.model_cache import ModelCache


def replay_decision(
    session: Session, models: ModelCache, decision_id: str
) -> tuple[decisions.Decision, replays.Replay]:
    """Answer a logged row again by the version that answered it, and compare.

    Raises:
        NotFound: There is no such decision.
        Conflict: The row was refused: there is no answer that could be explained.
    """
    decision = decisions.find(session, decision_id)
    if decision.leaf is None:
        raise Conflict(f"decision {decision_id} is a row that was refused: its errors stand in the decision itself")
    return decision, replays.replay(models.get(session, decision.version_id), decision)
