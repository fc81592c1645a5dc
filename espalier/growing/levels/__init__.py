"""Growing trees from tables larger than memory: level by level, with one column in memory at a time."""
