"""Extract rules from a tree and simplify them."""
