"""codegen room."""
