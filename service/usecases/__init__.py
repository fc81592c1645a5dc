"""Use cases: plain functions, without HTTP."""
