"""Rules read off a tree, and made shorter."""
