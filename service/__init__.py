"""The service: decision trees trained, pruned and applied over HTTP, with its worker and its command line."""
