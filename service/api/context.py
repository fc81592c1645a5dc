"""What the views share within one process: made once by `create_app`, found through the current application."""

import logging
import re
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from cachetools import TTLCache, cached
from flask import current_app, g, request

from service.database.engine import Sessions, read_session
from service.database.migrate import check_schema_revision
from service.log_config import RateLimitedWarning
from service.metrics import Metrics
from service.repositories.decision_log import DecisionLog
from service.repositories.keys import Caller, KeyRing
from service.settings import Settings
from service.usecases.model_cache import ModelCache
from service.usecases.predictions import Recorder
from service.usecases.version_resolver import VersionResolver

if TYPE_CHECKING:
    from service.api.auth import Rates

EXTENSION = "espalier"
REQUEST_ID = "X-Request-Id"
LEGAL_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


@dataclass(slots=True)
class Service:
    """One web process.

    Attributes:
        settings: As read at the start.
        sessions: Where transactions begin.
        rates: Counts the requests of each key.
        versions: Resolves model names to versions.
        keys: Identifies callers.
        log: The decision log.
        recorder: Logs and counts answers.
        metrics: The counters of this process.
        waiting: Permits to hold a thread while waiting for a job: a quarter of the threads.
        away: Warns that requests are answered 503.
        check_schema_revision: Raises `SchemaMismatch` if the tables are those of another release, `Unavailable` if the
            database cannot be reached; looks once a second.
        is_stopping: Whether the process was asked to end; requests that wait for a job then answer at once.
    """

    settings: Settings
    sessions: Sessions
    rates: "Rates"
    versions: VersionResolver = field(init=False)
    keys: KeyRing = field(default_factory=KeyRing)
    log: DecisionLog = field(init=False)
    recorder: Recorder = field(init=False)
    metrics: Metrics = field(default_factory=Metrics)
    waiting: threading.Semaphore = field(init=False)
    away: RateLimitedWarning = field(default_factory=lambda: RateLimitedWarning(logging.getLogger("service")))
    is_stopping: Callable[[], bool] = bool  # bool() is False
    check_schema_revision: Callable[[], None] = field(init=False)

    @property
    def models(self) -> ModelCache:
        """Decoded models by version."""
        return self.versions.models

    @property
    def audited(self) -> dict[str, bool]:
        """What an answer says of being logged: nothing, where it is."""
        return {} if self.settings.decisions == "durable" else {"audited": False}

    def __post_init__(self) -> None:
        self.versions = VersionResolver(self.sessions)
        self.check_schema_revision = cached(TTLCache(1, 1.0), lock=threading.Lock())(self._check_schema_revision)
        counted = {"on_lost": self.metrics.lost} if self.settings.metrics == "on" else {}
        self.log = DecisionLog(self.sessions.engine, **counted)
        self.recorder = Recorder(self.settings, self.log, self.metrics, self.settings.decisions)
        self.waiting = threading.Semaphore(self.settings.web_threads // 4)

    def _check_schema_revision(self) -> None:
        with read_session(self.sessions) as session:
            check_schema_revision(session)


def current_service() -> Service:
    """Return the service of the current request."""
    return cast(Service, current_app.extensions[EXTENSION])


def current_caller() -> Caller:
    """Return the caller, as `service.api.auth` identified it before the view began."""
    return cast(Caller, g.caller)


def request_id() -> str:
    """Return the id of the current request, in the log and in the answer.

    Behind a proxy that is trusted, it is the proxy's, so that one name leads through the logs of both.
    """
    if "request_id" not in g:
        given = request.headers.get(REQUEST_ID, "") if current_service().settings.proxies else ""
        g.request_id = given if LEGAL_ID.fullmatch(given) else uuid.uuid4().hex
    return cast(str, g.request_id)
