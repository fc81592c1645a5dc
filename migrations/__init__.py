"""The migrations of the database; `service.database.revision.migrate` runs them."""
