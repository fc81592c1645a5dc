"""Models as JSON documents. A document is not trusted: its parts are checked when it is read."""
