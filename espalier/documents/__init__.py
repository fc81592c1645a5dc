"""Models as JSON documents, written, and read back as hostile input."""
