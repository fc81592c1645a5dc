"""The service trains, prunes and applies decision trees over HTTP; it includes the worker and the command line."""
