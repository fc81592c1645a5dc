"""What the views share within one process: made once by `create_app`, found through the current application."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from flask import current_app, g

from service.aliases import AliasCache
from service.api.rates import Rates
from service.catalog import ModelCache
from service.db import Sessions
from service.keys import Caller, KeyRing
from service.policies import PolicyCache
from service.settings import Settings

__all__ = ["EXTENSION", "Service", "caller", "here"]

EXTENSION = "espalier"


@dataclass(slots=True)
class Service:
    """One web process.

    Attributes:
        settings: As read at the start.
        sessions: Where transactions begin.
        models: Decoded models by version.
        aliases: Where aliases point.
        policies: What is said of models beside their versions.
        keys: Finds out who asks.
        rates: Counts the requests of each key.
        waiting: Permits to hold a thread while waiting for a job: a quarter of the threads.
        is_stopping: Whether the process was asked to end; those who wait then answer at once.
    """

    settings: Settings
    sessions: Sessions
    models: ModelCache = field(default_factory=ModelCache)
    aliases: AliasCache = field(default_factory=AliasCache)
    policies: PolicyCache = field(default_factory=PolicyCache)
    keys: KeyRing = field(default_factory=KeyRing)
    rates: Rates = field(init=False)
    waiting: threading.Semaphore = field(init=False)
    is_stopping: Callable[[], bool] = bool  # bool() is False

    def __post_init__(self) -> None:
        self.rates = Rates(self.settings.max_requests)
        self.waiting = threading.Semaphore(self.settings.web_threads // 4)


def here() -> Service:
    """Give the service that the current request came to."""
    return cast(Service, current_app.extensions[EXTENSION])


def caller() -> Caller:
    """Give the one who asks, as `service.api.access` found out before the view began."""
    return cast(Caller, g.caller)
