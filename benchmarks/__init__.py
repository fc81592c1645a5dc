"""Speed beside the peers, in one run: ratios, not absolute times. ``make bench`` runs all of it."""
