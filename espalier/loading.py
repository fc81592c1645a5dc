"""Import everything public at once, except the estimators."""

import espalier

NEEDS_SKLEARN = {"TreeClassifier", "TreeRegressor"}


def load_all() -> None:
    """Import all public names except the estimators, so that no request or job waits for an import.

    >>> from espalier import load_all
    >>> load_all()
    """
    for name in dir(espalier):
        if name not in NEEDS_SKLEARN:
            getattr(espalier, name)
