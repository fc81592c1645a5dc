"""Tables: their schema, their cells, and how they are read."""
