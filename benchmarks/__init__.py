"""Compare the speed of Espalier with other libraries and servers in one run; `endurance` runs only if it is named."""
