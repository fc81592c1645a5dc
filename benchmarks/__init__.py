"""Compare the speed of Espalier with other libraries and servers in one run. ``make bench`` omits `endurance`."""
