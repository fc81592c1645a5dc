"""A host whose clock is wrong."""

from datetime import datetime, timedelta, tzinfo

import pytest


def set_wrong(monkeypatch: pytest.MonkeyPatch, *, hours: float) -> None:
    """Have this process read the time of day so many hours too late; the database's clock stays right."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Shifted":  # type: ignore[override] # of a subclass
            return datetime.now(tz) + timedelta(hours=hours)  # type: ignore[return-value] # any moment will do

    monkeypatch.setattr("service.database.clock.datetime", Shifted)
