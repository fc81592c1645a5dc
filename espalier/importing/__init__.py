"""Read models of other systems as models of Espalier that give the same answers."""
