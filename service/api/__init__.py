"""The HTTP API: one module per resource; each view calls a use case in a few lines.

A view declares what it accepts and returns by the decorators of ``blueprint.py``. ``problems.py`` turns errors into
responses. ``request_bodies.py`` reads bodies. ``context.py`` holds the state that the views of a process share.
"""
