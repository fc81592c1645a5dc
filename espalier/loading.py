"""Import everything public at once."""

import espalier

NEEDS_SKLEARN = {"TreeClassifier", "TreeRegressor"}


def load_all() -> None:
    """Import everything public but the estimators, so that nothing is imported while a request or a job waits.

    >>> from espalier import load_all
    >>> load_all()
    """
    for name in dir(espalier):
        if name not in NEEDS_SKLEARN:
            getattr(espalier, name)
