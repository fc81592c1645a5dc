"""What the service can do: plain functions over a session, without HTTP and without SQL text."""
