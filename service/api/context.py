"""The shared state of the views of one process: created by `create_app`, found through the current application."""

import logging
import re
import secrets
import threading
import uuid
from collections.abc import Callable
from typing import cast

from cachetools import TTLCache, cached
from flask import current_app, g, request

from service.database.engine import Sessions, read_session
from service.database.migrate import check_schema_revision
from service.log_config import RateLimitedWarning
from service.metrics import Metrics
from service.permissions import Caller
from service.rate_limit import RateLimit
from service.repositories.decision_log import DecisionLog
from service.repositories.keys import KeyRing
from service.repositories.models import ModelCache
from service.settings import Settings
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
        callbacks = {"on_lost": self.metrics.lost} if settings.metrics == "on" else {}
        self.log = DecisionLog(sessions.engine, **callbacks)
        self.recorder = Recorder(settings, self.log, self.metrics, settings.decisions)
        # Signs the cookies of browsers; all processes of a server share it.
        given = settings.session_secret
        self.session_secret = secrets.token_hex(32) if given == "random" else given
        self.waiting = threading.Semaphore(settings.web_threads // 4)  # permits to wait for a job
        self.unavailable = RateLimitedWarning(logging.getLogger("service"))
        self.is_stopping: Callable[[], bool] = bool  # bool() is False; requests that wait for a job then return at once
        # Compares once a second.
        self.check_schema_revision = cached(TTLCache(1, 1.0), lock=threading.Lock())(self._check_schema_revision)

    @property
    def models(self) -> ModelCache:
        """The decoded models by version."""
        return self.versions.models

    @property
    def audited(self) -> dict[str, bool]:
        """The member of a response that says that its decisions may be lost; empty if they are committed."""
        return {} if self.settings.decisions == "durable" else {"audited": False}

    def _check_schema_revision(self) -> None:
        with read_session(self.sessions) as session:
            check_schema_revision(session)


def current_service() -> Service:
    """Return the service of the current request."""
    return cast(Service, current_app.extensions[EXTENSION])


def current_caller() -> Caller:
    """Return the caller, whom `service.api.auth` has identified before the view."""
    return cast(Caller, g.caller)


def request_id() -> str:
    """Return the id of the current request, which the log and the response contain.

    Behind a trusted proxy it is the proxy's id, so that both logs have the same.
    """
    if "request_id" not in g:
        given = request.headers.get(REQUEST_ID, "") if current_service().settings.proxies else ""
        g.request_id = given if LEGAL_ID.fullmatch(given) else uuid.uuid4().hex
    return cast(str, g.request_id)
