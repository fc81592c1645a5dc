"""Web pages, rendered by the server. Importing the package registers the views of all pages."""

from service.web import (  # noqa: F401 - their views are registered
    about,
    comparison,
    datasets,
    decisions,
    home,
    jobs,
    keys,
    models,
    predictions,
    profile,
    pruning,
    training,
    versions,
)
