"""Compare the speed of Espalier with its peers, other libraries and servers, in one run. ``make bench`` runs all."""
