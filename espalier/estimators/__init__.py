"""Estimators with the interface of scikit-learn; the extra `sklearn` installs scikit-learn."""

try:
    import sklearn  # noqa: F401
except ImportError as error:
    message = "TreeClassifier and TreeRegressor need scikit-learn: pip install 'espalier[sklearn]'"
    raise ImportError(message, name="sklearn") from error
