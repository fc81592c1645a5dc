"""Use cases: functions on database sessions, which know nothing of HTTP."""
