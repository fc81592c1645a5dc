"""How many requests a second a key may make, counted in this process."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.errors import LimitExceeded

BURST_SECONDS = 1.0  # a second's worth of requests may come at once


@dataclass(slots=True)
class Rates:
    """Lets each key make so many requests a second, and a second's worth at once.

    For each key one number is kept: the moment at which all requests so far would have come, had they come evenly. A
    request is let in while that moment is less than a second ahead (the generic cell rate algorithm, ATM Forum, 1996).

    Attributes:
        per_second: Requests a second of one key; 0: no limit.
        clock: Monotonic seconds.
    """

    per_second: int
    clock: Callable[[], float] = time.monotonic
    _even: dict[str | None, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, key_id: str | None) -> None:
        """Count a request of this key (None: of everybody, where keys are off).

        Raises:
            LimitExceeded: It comes too early; the error says how many seconds too early.
        """
        if self.per_second == 0:
            return
        now = self.clock()
        with self._lock:
            even = max(now, self._even.get(key_id, now)) + 1 / self.per_second
            early = even - now - BURST_SECONDS
            if early <= 1e-9:  # the sum of a second's parts may miss the second by a rounding
                self._even[key_id] = even
                return
        raise LimitExceeded(f"at most {self.per_second} requests a second of one key are taken", seconds=early)
