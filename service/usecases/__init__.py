"""Use cases: plain functions over a session, without HTTP and without SQL text."""
