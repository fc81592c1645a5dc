"""The application for a WSGI server: ``gunicorn service.wsgi:application``."""

import espalier
from service.app import create_app
from service.settings import Settings

espalier.load_all()  # before there are several processes: they share it, and no request waits for an import
application = create_app(Settings.from_env())
