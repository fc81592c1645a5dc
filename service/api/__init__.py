"""The HTTP API has one module per resource; each view calls use cases or repositories in a few lines.

The decorators of ``blueprint.py`` declare what a view accepts and returns. ``problems.py`` turns errors into
responses. ``request_bodies.py`` reads bodies. ``context.py`` holds the state that the views of a process share.
"""
