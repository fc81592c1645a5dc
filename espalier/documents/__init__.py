"""Models as JSON documents. A document is not trusted when it is read: every part is checked."""
