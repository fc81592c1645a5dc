"""The rate limit of callers. `service.api.problems` answers a request above it with 429 and Retry-After."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.errors import LimitExceeded

BURST_SECONDS = 1.0  # the requests of one second may come at once


@dataclass(slots=True)
class RateLimit:
    """Limits the requests per second of each key in one process; if `per_second` is 0, there is no limit.

    The generic cell rate algorithm (ATM Forum, 1996) stores a time for each key. A request adds 1/`per_second` s to the
    later of this time and the present. The request is accepted if the sum is at most a second ahead of the clock.
    """

    per_second: int
    clock: Callable[[], float] = time.monotonic
    _even: dict[str | None, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, key_id: str | None) -> None:
        """Count a request of this key (None: keys are off); raise `LimitExceeded` if it comes too early."""
        if self.per_second == 0:
            return
        now = self.clock()
        with self._lock:
            even = max(now, self._even.get(key_id, now)) + 1 / self.per_second
            early = even - now - BURST_SECONDS
            if early <= 1e-9:  # rounding: the intervals may not add up to a second exactly
                self._even[key_id] = even
                return
        raise LimitExceeded(f"at most {self.per_second} requests per second are accepted from one key", seconds=early)
