"""Request and response schemas, one module a resource: the source of validation and of the OpenAPI document."""
