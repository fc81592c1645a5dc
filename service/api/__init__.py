"""The HTTP API: one module a resource, each view a few lines over the use cases.

``blueprint.py`` says what a view takes and answers, ``problems.py`` what an error is on the wire, ``bodies.py`` how a
body is read, ``context.py`` what the views share.
"""
