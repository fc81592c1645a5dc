"""Import public names before they are used."""

import espalier

NEEDS_SKLEARN = {"TreeClassifier", "TreeRegressor"}


def load_all() -> None:
    """Import all public names except the estimators, so that later code does not wait for imports.

    >>> from espalier import load_all
    >>> load_all()
    """
    for name in dir(espalier):
        if name not in NEEDS_SKLEARN:
            getattr(espalier, name)
