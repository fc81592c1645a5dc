"""The application for a WSGI server: ``gunicorn service.wsgi:application``."""

from service.app import create_app
from service.settings import Settings

__all__ = ["application"]

application = create_app(Settings.from_env())
