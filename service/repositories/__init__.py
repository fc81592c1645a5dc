"""Queries and changes of the database as functions on a session, and the decision log."""
