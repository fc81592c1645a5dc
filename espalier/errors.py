"""The errors of the core.

::

    EspalierError
    ├── InvalidInput            an input is wrong; `faults` holds what was found
    │   ├── SchemaError         the declaration of columns: kinds, roles, categories
    │   ├── DataError           the content of a data set: cells, rows, columns
    │   ├── ConfigError         a preset, a training field, a pruning parameter, another argument
    │   ├── RowError            rows to predict
    │   ├── DocumentError       a model document
    │   └── EstimatorError      data or parameters given to an estimator
    ├── TooLarge                a limit on size or time is exceeded
    ├── NotApplicable           the method cannot be used with this model, or needs rows that are not given
    ├── ClusterError            a cluster cannot be reached, does not answer or fails; or Dask is not installed
    └── Cancelled               the caller has set the stop flag
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SHOWN_FAULTS = 5


class EspalierError(Exception):
    """Base of all errors of the core."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        path: JSON pointer (RFC 6901) from the given value to the fault; "" is the whole value.
        code: A stable word for programs, such as ``unknown_field``.
        message: What is wrong and what is legal, for people. A message about a cell does not repeat the cell.
    """

    path: str
    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidInput(EspalierError):  # noqa: N818 - the name already says that it is an error
    """The input is wrong. ``faults`` holds all faults that were found.

    >>> str(ConfigError([Fault("/criterion", "unknown_value", "must be one of gini, sdr")]))
    '/criterion: must be one of gini, sdr'
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.faults)

    @classmethod
    def raise_for(cls, faults: Iterable[Fault]) -> None:
        """Raise this error with `faults`, if there are any."""
        if collected := tuple(faults):
            raise cls(collected)

    def __str__(self) -> str:
        shown = "; ".join(str(fault) for fault in self.faults[:SHOWN_FAULTS])
        hidden = len(self.faults) - SHOWN_FAULTS
        return f"{shown}; and {hidden} more" if hidden > 0 else shown


class SchemaError(InvalidInput):
    """The declaration of columns is wrong: kinds, roles, categories."""


class DataError(InvalidInput):
    """The content of a data set (cells, rows, columns) is wrong, or a training cannot write to its folder."""


class ConfigError(InvalidInput):
    """A preset, a training field, a pruning parameter or another argument, such as a holdout or a class, is wrong."""


class RowError(InvalidInput):
    """Rows to predict are wrong; paths are like ``/0/Age``, or like ``/Age`` in the error of a single row."""


class DocumentError(InvalidInput):
    """A model document is wrong."""


class EstimatorError(InvalidInput, ValueError):
    """Data or parameters given to an estimator are not valid. It is a ValueError, as scikit-learn's callers expect."""


class TooLarge(EspalierError):  # noqa: N818 - a measure, not a defect
    """A limit on size or time is exceeded, such as the number of rows of a table.

    >>> str(TooLarge("rows", 1_000))
    'too many rows: at most 1000 are allowed'
    """

    def __init__(self, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        super().__init__(what, limit)

    def __str__(self) -> str:
        return f"too many {self.what}: at most {self.limit} are allowed"


class NotApplicable(EspalierError):  # noqa: N818 - a state, not a defect
    """The method cannot be used with this model, or needs rows that are not given."""


class ClusterError(EspalierError):
    """A cluster cannot be reached, does not answer or fails; or Dask is not installed."""


class Cancelled(EspalierError):  # noqa: N818 - an event, not a defect
    """The caller has set the stop flag."""


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer (RFC 6901) made of `parts`.

    >>> pointer("rows", 0, "a/b")
    '/rows/0/a~1b'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def within(prefix: str, faults: Iterable[Fault]) -> list[Fault]:
    """Return `faults` with the pointer `prefix` before each path."""
    return [Fault(prefix + fault.path, fault.code, fault.message) for fault in faults]


def listed(names: Iterable[str], most: int = 20) -> str:
    """Return names with commas between them; "…" replaces the names after the first `most`.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, …'
    """
    shown = list(names)
    return ", ".join(shown[:most] + ["…"] * (len(shown) > most))


@contextmanager
def located(prefix: str, kind: type[InvalidInput] | None = None) -> Iterator[None]:
    """Re-raise an `InvalidInput` of the ``with`` block with `prefix` before each path, and as `kind` if it is given."""
    try:
        yield
    except InvalidInput as error:
        raise (kind or type(error))(within(prefix, error.faults)) from None
