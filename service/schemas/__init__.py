"""What comes in and goes out over HTTP, one module a resource: the source of validation and of the OpenAPI document."""
