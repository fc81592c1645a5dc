"""The migrations of the database; `service.database.migrate.migrate` runs them."""
