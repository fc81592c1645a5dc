"""Compare the speed of Espalier with other libraries and servers. The table `endurance` runs only if it is named."""
