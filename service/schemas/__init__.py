"""Request and response schemas, one module per resource: the source of validation and of the OpenAPI document."""
