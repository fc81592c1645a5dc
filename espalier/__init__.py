r"""Espalier's algorithm core: decision trees trained, pruned, answered from and explained.

>>> import espalier
>>> data = espalier.dataset_from_csv("wind,play\nweak,yes\nweak,yes\nstrong,no\n", target="play")
>>> model = espalier.train(data, "id3")
>>> espalier.explain(model, [{"wind": "strong"}])[0].rule
'if wind is strong then no'
"""

import lazy_loader

# Who only predicts does not pay for what trains: a name is imported, from where __init__.pyi says, when it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
