"""The HTTP API: one module a resource, each view a few lines over the use cases.

``blueprint.py`` declares what a view accepts and returns, ``problems.py`` turns errors into responses,
``request_bodies.py`` reads bodies, ``context.py`` holds what the views of a process share.
"""
