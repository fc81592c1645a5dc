"""What the views share within one process: made once by `create_app`, found through the current application."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from flask import current_app, g

from service.answering import Finder
from service.api.rates import Rates
from service.catalog import ModelCache
from service.db import Sessions
from service.decision_log import DecisionLog
from service.keys import Caller, KeyRing
from service.settings import Settings

__all__ = ["EXTENSION", "Service", "caller", "here"]

EXTENSION = "espalier"


@dataclass(slots=True)
class Service:
    """One web process.

    Attributes:
        settings: As read at the start.
        sessions: Where transactions begin.
        finder: Finds what answers a prediction.
        keys: Finds out who asks.
        log: The way of a request's answers into the decision log.
        rates: Counts the requests of each key.
        waiting: Permits to hold a thread while waiting for a job: a quarter of the threads.
        is_stopping: Whether the process was asked to end; those who wait then answer at once.
    """

    settings: Settings
    sessions: Sessions
    finder: Finder = field(default_factory=Finder)
    keys: KeyRing = field(default_factory=KeyRing)
    log: DecisionLog = field(init=False)
    rates: Rates = field(init=False)
    waiting: threading.Semaphore = field(init=False)
    is_stopping: Callable[[], bool] = bool  # bool() is False

    @property
    def models(self) -> ModelCache:
        """Decoded models by version."""
        return self.finder.models

    def __post_init__(self) -> None:
        self.log = DecisionLog(self.sessions.engine)
        self.rates = Rates(self.settings.max_requests)
        self.waiting = threading.Semaphore(self.settings.web_threads // 4)


def here() -> Service:
    """Give the service that the current request came to."""
    return cast(Service, current_app.extensions[EXTENSION])


def caller() -> Caller:
    """Give the one who asks, as `service.api.access` found out before the view began."""
    return cast(Caller, g.caller)
