"""Values of the database that are kept for a moment: what is looked up with every request, and changes seldom."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

RECENT_SECONDS = 1.0
"""Within so many seconds a change holds in every process."""
CAPACITY = 1024
FRESH = 0.8
"""The share of its time after which a value is looked up again by the first who asks."""


@dataclass(slots=True)
class Recent(Generic[Key, Value]):
    """What was looked up within the last second; a change elsewhere is seen after it. For any number of threads.

    When a value is nearly too old, the first who asks looks it up again, while the others go on with the one that is
    kept: otherwise all of them would look it up at once.

    Attributes:
        clock: Monotonic seconds.
        seconds: For how long a value is kept.
    """

    clock: Callable[[], float] = time.monotonic
    seconds: float = RECENT_SECONDS
    _kept: OrderedDict[Key, tuple[float, Value]] = field(default_factory=OrderedDict)
    _n_forgotten: int = 0
    _renewed: set[Key] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, look_up: Callable[[], Value]) -> Value:
        """Give the value of `key`: the one kept, if its look-up began not long ago, else a new one."""
        began = self.clock()
        kept = self._kept.get(key)
        if kept is not None:
            age = began - kept[0]
            if age < self.seconds * FRESH or (age < self.seconds and not self._renews(key)):
                return kept[1]
        n_forgotten = self._n_forgotten
        try:
            value = look_up()  # outside the lock; its age counts from before the look-up, so that no change is missed
        finally:
            self._renewed.discard(key)
        with self._lock:
            if n_forgotten != self._n_forgotten:  # it changed meanwhile: the next one looks again
                return value
            self._kept[key] = (began, value)
            self._kept.move_to_end(key)
            # What is too old is let go of: it may be large, and hold what a cache of its own has given up.
            while len(self._kept) > CAPACITY or began - next(iter(self._kept.values()))[0] >= self.seconds:
                self._kept.popitem(last=False)
        return value

    def _renews(self, key: Key) -> bool:
        """Whether it falls to the one who asks to look `key` up again, or to have that done."""
        with self._lock:
            if key in self._renewed:
                return False
            self._renewed.add(key)
            return True

    def forget(self, key: Key) -> None:
        """Look `key` up again next time."""
        with self._lock:
            self._n_forgotten += 1
            self._kept.pop(key, None)

    def forget_all(self) -> None:
        """Look everything up again next time."""
        with self._lock:
            self._n_forgotten += 1
            self._kept.clear()
