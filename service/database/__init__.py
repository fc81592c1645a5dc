"""The database: engine, tables, clock and migrations."""
