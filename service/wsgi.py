"""The application for a WSGI server; ``espalier serve`` runs it in gunicorn with the settings in `gunicorn_conf`."""

import numpy.ma  # noqa: F401 - numpy imports it when `unique` is first called
from sqlalchemy.orm import configure_mappers

import espalier
from service.app import create_app
from service.settings import Settings

# Loaded before the processes are forked: they share the memory, and no request waits for an import.
espalier.load_all()
configure_mappers()
application = create_app(Settings.from_env())
