"""Trees of tables that are larger than memory, grown level by level with one column in memory at a time."""
