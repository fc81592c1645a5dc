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


@dataclass(slots=True)
class Recent(Generic[Key, Value]):
    """What was looked up within the last second; a change elsewhere is seen after it. For any number of threads.

    Attributes:
        clock: Monotonic seconds.
        seconds: For how long a value is kept.
    """

    clock: Callable[[], float] = time.monotonic
    seconds: float = RECENT_SECONDS
    _kept: OrderedDict[Key, tuple[float, Value]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key, look_up: Callable[[], Value]) -> Value:
        """Give the value of `key`: the one kept, if its look-up began not long ago, else a new one."""
        began = self.clock()
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and began - kept[0] < self.seconds:
            return kept[1]
        value = look_up()  # outside the lock; its age counts from before the look-up, so that no change is missed
        with self._lock:
            self._kept[key] = (began, value)
            self._kept.move_to_end(key)
            while len(self._kept) > CAPACITY:
                self._kept.popitem(last=False)
        return value

    def forget(self, key: Key) -> None:
        """Look `key` up again next time."""
        with self._lock:
            self._kept.pop(key, None)

    def forget_all(self) -> None:
        """Look everything up again next time."""
        with self._lock:
            self._kept.clear()
