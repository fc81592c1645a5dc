"""The state that the views of a process share: `create_app` creates it, `current_service` returns it."""

import logging
import re
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import marshmallow as ma
from cachetools import TTLCache, cached
from flask import Request, current_app, g, request
from sqlalchemy.orm import Session

from service.database.engine import Sessions, read_session, transaction
from service.database.migrate import check_schema_revision
from service.database.tables import Job, Scope
from service.errors import NotFound
from service.log_config import RateLimitedWarning
from service.metrics import Metrics
from service.permissions import Caller
from service.rate_limit import RateLimit
from service.repositories import decisions, job_queue
from service.repositories.decision_log import DecisionLog
from service.repositories.decisions import Decision
from service.repositories.key_ring import KeyRing
from service.repositories.model_cache import LoadedVersion
from service.schemas.fields import load_members
from service.settings import Settings
from service.usecases.jobs import JobRequest, Planner, queue_job
from service.usecases.predictions import Recorder
from service.usecases.version_resolver import VersionResolver

EXTENSION = "espalier"
REQUEST_ID = "X-Request-Id"
LEGAL_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class Service:
    """The shared state of one web process."""

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self.settings, self.sessions, self.rate_limit = settings, sessions, RateLimit(settings.max_requests)
        self.versions, self.keys, self.metrics = VersionResolver(sessions), KeyRing(), Metrics()
        self.models = self.versions.models  # cache of decoded versions
        # Prediction responses have this member unless each decision is committed before its response.
        self.audited = {} if settings.decisions == "durable" else {"audited": False}
        callbacks = {"on_lost": self.metrics.lost.inc} if settings.metrics == "on" else {}
        self.log = DecisionLog(sessions.engine, **callbacks)
        self.recorder = Recorder(settings, self.log, self.metrics, settings.decisions)
        # The secret signs the cookies of browsers; all processes of a server share it.
        given = settings.session_secret
        self.session_secret = secrets.token_hex(32) if given == "random" else given
        self.waiting = threading.Semaphore(settings.web_threads // 4)  # requests and streams that may wait for jobs
        self.unavailable = RateLimitedWarning(logging.getLogger("service"))
        self.is_stopping: Callable[[], bool] = bool  # bool() is False; `gunicorn_conf` replaces it
        # A successful check is cached for a second.
        self.check_schema_revision = cached(TTLCache(1, 1.0), lock=threading.Lock())(self._check_schema_revision)

    @contextmanager
    def changing_versions(self) -> Iterator[Session]:
        """Open a transaction that changes models, versions or aliases; then clear this process's cache of them."""
        with transaction(self.sessions) as session:
            yield session
        self.versions.invalidate()

    def _check_schema_revision(self) -> None:
        with read_session(self.sessions) as session:
            check_schema_revision(session)


def current_service() -> Service:
    """Return the service of the current request."""
    return cast(Service, current_app.extensions[EXTENSION])


def current_request() -> Request:
    """Return the current request. Flask's `request` looks it up again each time that an attribute is read."""
    return cast(Request, request.environ["werkzeug.request"])


def current_caller() -> Caller:
    """Return the caller of the current request, who was identified before the view."""
    return cast(Caller, g.caller)


def find_decision(session: Session, decision_id: str) -> Decision:
    """Return a decision. A key limited to models gets `Forbidden` if the decision is unknown or of another model."""
    try:
        decision = decisions.find(session, decision_id)
    except NotFound:
        current_caller().check_found(None)
        raise
    current_caller().check_found(decision.model_name)
    return decision


def find_job(session: Session, job_id: str, scope: Scope) -> Job:
    """Return a job. A caller who may not use it gets `Forbidden`, as if there were no such job: see `check_job`."""
    current_caller().check_job(session.get(Job, job_id), scope)
    return job_queue.find_job(session, job_id)


def find_with_version(decision_id: str) -> tuple[Decision, LoadedVersion]:
    """Return a decision (see `find_decision`) and the version that made it."""
    with read_session(current_service().sessions) as session:
        decision = find_decision(session, decision_id)
        return decision, current_service().models.get(session, decision.version_id)


@contextmanager
def queued_job(make_plan: Planner, schema: ma.Schema, body: object) -> Iterator[tuple[Session, Job]]:
    """Plan the job that a request body describes, queue it for the caller's key, and yield the transaction and the job.

    If some members of a body are invalid, the others are checked nevertheless, so that their faults are reported, too.
    """
    service, caller = current_service(), current_caller()
    members, faults = load_members(schema, body)
    caller.check_model(members.get("model"))
    with read_session(service.sessions) as session:
        plan = make_plan(JobRequest(session, service.models, members, faults))
    with transaction(service.sessions) as session:
        yield session, queue_job(session, plan, settings=service.settings, key_id=caller.key_id)


def request_id() -> str:
    """Return the id of the current request for the log and the response.

    Behind a trusted proxy it is the proxy's X-Request-Id, if legal, so that both logs have the same id.
    """
    if "request_id" not in g:
        given = request.headers.get(REQUEST_ID, "") if current_service().settings.proxies else ""
        g.request_id = given if LEGAL_ID.fullmatch(given) else uuid.uuid4().hex
    return cast(str, g.request_id)
