"""What must hold of the code itself."""
