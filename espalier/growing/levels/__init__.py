"""Growing trees from tables larger than memory, level by level. Each worker loads one column at a time."""
