"""Import this to run `preload` once; on Linux the forkserver of the children does so."""

import gc

from service.worker.child import preload

preload()
gc.collect()
gc.freeze()  # the collector would write to all the memory that the children share
