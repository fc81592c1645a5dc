r"""Espalier's algorithm core: train and prune decision trees, predict with them and explain their predictions.

>>> import espalier
>>> data = espalier.dataset_from_csv("wind,play\nweak,yes\nweak,yes\nstrong,no\n", target="play")
>>> model = espalier.train(data, "id3")
>>> espalier.explain(model, [{"wind": "strong"}])[0].rule
'if wind is strong then no'
"""

import lazy_loader

# A name is imported on first use, from the module given in __init__.pyi, so a process that only predicts loads little.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
