"""The migrations of the database; `service.db.migrate` runs them."""
