"""Models of other systems, read as models of Espalier that give the same answers."""
